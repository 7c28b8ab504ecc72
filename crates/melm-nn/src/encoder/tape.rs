//! What the forward pass leaves for the backward pass, in memory that is allocated once.

use crate::buffer::Buffer;
use crate::config::Config;
use crate::dropout::Dropout;
use crate::ops::ColumnSums;
use crate::ops::attention::AttentionCuts;
use crate::ops::norm::Normed;
use crate::packed::Packed;

/// Rows after a layer norm, and what its backward pass needs.
#[derive(Default)]
pub(crate) struct NormTape {
    pub(crate) normed: Buffer,
    pub(crate) scale: Buffer,
    pub(crate) y: Buffer,
}

impl NormTape {
    pub(crate) fn reserve(&mut self, n_rows: usize, width: usize) {
        self.normed.reserve(n_rows * width);
        self.scale.reserve(n_rows);
        self.y.reserve(n_rows * width);
    }

    pub(crate) fn out(&mut self, n_rows: usize, width: usize) -> (Normed<'_>, &mut [f32]) {
        let normed =
            Normed { rows: &mut self.normed[..n_rows * width], scale: &mut self.scale[..n_rows] };
        (normed, &mut self.y[..n_rows * width])
    }
}

/// What one layer leaves.
#[derive(Default)]
pub(crate) struct LayerTape {
    pub(crate) qkv: Buffer,
    pub(crate) probabilities: Buffer,
    pub(crate) context: Buffer,
    pub(crate) attended: NormTape,
    /// The feed-forward part before its gelu.
    pub(crate) inner: Buffer,
    pub(crate) output: NormTape,
}

/// Intermediate results of one batch. Buffers grow to the largest batch seen and stay.
pub struct EncoderTape {
    /// Whether every layer is kept for a backward pass, or two take turns.
    keeps_layers: bool,
    pub(crate) n_rows: usize,
    width: usize,
    n_layers: usize,
    /// Each row's sentence and position.
    pub(crate) places: Vec<(u64, usize)>,
    pub(crate) cuts: AttentionCuts,
    pub(crate) dropout: Dropout,
    pub(crate) embedded: NormTape,
    pub(crate) layers: Vec<LayerTape>,
    /// `[rows, hidden]`: a product's output, or the gradient of one.
    pub(crate) narrow: Buffer,
    /// `[rows, inner]`: after the gelu.
    pub(crate) inner: Buffer,
    /// `[rows, inner]` and `[rows, 3 hidden]`: gradients.
    pub(crate) d_inner: Buffer,
    pub(crate) d_qkv: Buffer,
    pub(crate) d_context: Buffer,
    pub(crate) d: Buffer,
    pub(crate) sums: ColumnSums,
}

impl EncoderTape {
    /// A tape that can be played back: for training.
    pub fn for_training(config: &Config) -> Self {
        Self::new(config, true)
    }

    /// A tape that keeps only what the next layer needs.
    pub fn for_prediction(config: &Config) -> Self {
        Self::new(config, false)
    }

    fn new(config: &Config, keeps_layers: bool) -> Self {
        let n_kept = if keeps_layers { config.n_layers } else { 2.min(config.n_layers) };
        Self {
            keeps_layers,
            n_rows: 0,
            width: config.hidden_size,
            n_layers: config.n_layers,
            places: Vec::new(),
            cuts: AttentionCuts::default(),
            dropout: Dropout::NONE,
            embedded: NormTape::default(),
            layers: (0..n_kept).map(|_| LayerTape::default()).collect(),
            narrow: Buffer::default(),
            inner: Buffer::default(),
            d_inner: Buffer::default(),
            d_qkv: Buffer::default(),
            d_context: Buffer::default(),
            d: Buffer::default(),
            sums: ColumnSums::default(),
        }
    }

    /// Makes room for a batch and notes where its rows belong.
    pub(crate) fn start(&mut self, config: &Config, batch: &Packed, dropout: Dropout) {
        let (n, hidden, inner) = (batch.n_rows(), config.hidden_size, config.intermediate_size);
        self.n_rows = n;
        self.dropout = dropout;
        self.places.clear();
        self.places.extend(batch.places());
        self.cuts.set(batch, config.n_heads, hidden);
        self.embedded.reserve(n, hidden);
        for layer in &mut self.layers {
            layer.qkv.reserve(n * 3 * hidden);
            layer.probabilities.reserve(self.cuts.n_probabilities());
            layer.context.reserve(n * hidden);
            layer.attended.reserve(n, hidden);
            layer.inner.reserve(n * inner);
            layer.output.reserve(n, hidden);
        }
        self.narrow.reserve(n * hidden);
        self.inner.reserve(n * inner);
        if self.keeps_layers {
            self.d_inner.reserve(n * inner);
            self.d_qkv.reserve(n * 3 * hidden);
            self.d_context.reserve(n * hidden);
            self.d.reserve(n * hidden);
        }
    }

    /// The slot of a layer's results.
    pub(crate) fn slot(&self, layer: usize) -> usize {
        layer % self.layers.len()
    }

    /// The rows that the last layer made, `[rows, hidden]`.
    pub fn hidden(&self) -> &[f32] {
        self.hidden_after(self.n_layers)
    }

    /// The rows after so many layers, 0 for the embedding; every layer is there only on a training tape.
    pub fn hidden_after(&self, n_layers: usize) -> &[f32] {
        let tape = if n_layers == 0 {
            &self.embedded
        } else {
            &self.layers[self.slot(n_layers - 1)].output
        };
        &tape.y[..self.n_rows * self.width]
    }

    /// Where the gradient of [`Self::hidden`] goes before a backward pass.
    ///
    /// # Panics
    /// On a tape for prediction.
    pub fn d_hidden(&mut self) -> &mut [f32] {
        assert!(self.keeps_layers, "a tape for prediction cannot be played back");
        &mut self.d[..self.n_rows * self.width]
    }
}
