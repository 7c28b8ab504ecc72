//! The working memory of the encoder: results of the forward pass that the backward pass needs.

use crate::architecture::{FeedForward, Residual};
use crate::buffer::Buffer;
use crate::config::Config;
use crate::dropout::Dropout;
use crate::error::Error;
use crate::int8::QuantizedRows;
use crate::isa::Isa;
use crate::ops::attention::AttentionLayout;
use crate::ops::norm::{NormOutput, SavedNorm};
use crate::ops::rotary::Angles;
use crate::ops::{ColumnSums, RowDropout, add};
use crate::packed::Packed;

/// The rows after a layer norm, and the values that the backward pass of the norm needs.
#[derive(Default)]
pub(crate) struct NormTape {
    pub(crate) normed: Buffer,
    pub(crate) scale: Buffer,
    pub(crate) y: Buffer,
}

impl NormTape {
    /// Grows the buffers to at least `n_rows` rows.
    pub(crate) fn try_reserve(&mut self, n_rows: usize, width: usize) -> Result<(), Error> {
        self.normed.try_reserve(n_rows * width)?;
        self.scale.try_reserve(n_rows)?;
        self.y.try_reserve(n_rows * width)?;
        Ok(())
    }

    /// Returns the buffers for `n_rows` rows, which the forward pass writes.
    pub(crate) fn output(&mut self, n_rows: usize, width: usize) -> NormOutput<'_> {
        NormOutput {
            normed: &mut self.normed[..n_rows * width],
            scale: &mut self.scale[..n_rows],
            y: &mut self.y[..n_rows * width],
        }
    }

    /// Returns the values of `n_rows` rows that the backward pass reads.
    pub(crate) fn saved(&self, n_rows: usize, width: usize) -> SavedNorm<'_> {
        SavedNorm { normed: &self.normed[..n_rows * width], scale: &self.scale[..n_rows] }
    }
}

/// The results of the forward pass for one layer.
#[derive(Default)]
pub(crate) struct LayerTape {
    pub(crate) qkv: Buffer,
    pub(crate) probabilities: Buffer,
    pub(crate) context: Buffer,
    pub(crate) attended: NormTape,
    /// The rows of the inner feed-forward layer before the GELU. Gated rows are twice as wide.
    pub(crate) inner: Buffer,
    pub(crate) output: NormTape,
}

/// The rows of a batch, and those that its head reads. After attention, the last layer computes only the latter.
#[derive(Default)]
pub(crate) struct Rows {
    n_layers: usize,
    /// For each row, the key of its sentence and its position in the sentence.
    pub(crate) places: Vec<(u64, usize)>,
    /// The rows that the head reads, in the order of the hidden states.
    pub(crate) head: Vec<usize>,
    head_places: Vec<(u64, usize)>,
}

impl Rows {
    fn set(&mut self, batch: &Packed, head: &[usize]) {
        self.places.clear();
        self.places.extend(batch.places());
        self.head.clear();
        self.head.extend_from_slice(head);
        self.head_places.clear();
        self.head_places.extend(head.iter().map(|row| self.places[*row]));
    }

    /// Returns true if `layer` is the last one.
    pub(super) fn is_last(&self, layer: usize) -> bool {
        layer + 1 == self.n_layers
    }

    /// Returns the places of the rows that a layer computes after attention.
    pub(super) fn after_attention(&self, layer: usize) -> &[(u64, usize)] {
        if self.is_last(layer) { &self.head_places } else { &self.places }
    }
}

/// Intermediate results of one batch. Buffers grow to the largest batch so far and are reused.
pub(crate) struct EncoderTape {
    /// If true, the results of every layer are stored for a backward pass. If false, the layers use two tapes in turn.
    keeps_layers: bool,
    pub(crate) n_rows: usize,
    width: usize,
    pub(crate) rows: Rows,
    pub(crate) layout: AttentionLayout,
    pub(crate) dropout: Dropout,
    pub(crate) embedded: NormTape,
    pub(crate) layers: Vec<LayerTape>,
    /// Working memory `[rows, hidden]` for the output of a product, or its gradient.
    pub(crate) narrow: Buffer,
    /// Working memory `[head rows, hidden]`: the rows of a matrix that the head reads.
    pub(crate) selected: Buffer,
    /// The sum before the last norm, `[rows, hidden]`, if sums are the residual.
    pub(crate) residual: Buffer,
    /// The angles of rotary positions.
    pub(crate) angles: Angles,
    /// The input of a product with 8-bit weights.
    pub(crate) quantized: QuantizedRows,
    /// Working memory `[rows, inner]`: the rows of the inner feed-forward layer after the GELU.
    pub(crate) inner: Buffer,
    /// The gradient of the inner feed-forward rows before the GELU, `[rows, inner]`, or `[rows, 2 inner]` if they are
    /// gated.
    pub(crate) d_inner: Buffer,
    /// The gradient of gated inner rows, `[rows, inner]`.
    pub(crate) d_gated: Buffer,
    /// The gradient of query, key and value, `[rows, 3 hidden]`.
    pub(crate) d_qkv: Buffer,
    pub(crate) d_context: Buffer,
    /// The gradient of the rows between two layers, `[rows, hidden]`.
    pub(crate) d: Buffer,
    /// The gradient of the sum before a norm, `[rows, hidden]`, if sums are the residual.
    pub(crate) d_residual: Buffer,
    pub(crate) sums: ColumnSums,
}

impl EncoderTape {
    /// Creates a tape that stores the results of every layer, for training and prediction.
    pub(crate) fn for_training(config: &Config) -> Self {
        Self::new(config, true)
    }

    /// Creates a tape that stores only what the next layer needs, for prediction only.
    pub(crate) fn for_prediction(config: &Config) -> Self {
        Self::new(config, false)
    }

    fn new(config: &Config, keeps_layers: bool) -> Self {
        let n_kept = if keeps_layers { config.n_layers } else { 2.min(config.n_layers) };
        Self {
            keeps_layers,
            n_rows: 0,
            width: config.hidden_size,
            rows: Rows { n_layers: config.n_layers, ..Rows::default() },
            layout: AttentionLayout::default(),
            dropout: Dropout::NONE,
            embedded: NormTape::default(),
            layers: (0..n_kept).map(|_| LayerTape::default()).collect(),
            narrow: Buffer::default(),
            selected: Buffer::default(),
            residual: Buffer::default(),
            angles: Angles::default(),
            quantized: QuantizedRows::default(),
            inner: Buffer::default(),
            d_inner: Buffer::default(),
            d_gated: Buffer::default(),
            d_qkv: Buffer::default(),
            d_context: Buffer::default(),
            d: Buffer::default(),
            d_residual: Buffer::default(),
            sums: ColumnSums::default(),
        }
    }

    /// Grows the buffers for a batch, and records the key and position of each row. `head_rows` are the rows that the
    /// head reads.
    pub(crate) fn start(
        &mut self,
        config: &Config,
        batch: &Packed,
        head_rows: &[usize],
        dropout: Dropout,
    ) -> Result<(), Error> {
        let (hidden, inner) = (config.hidden_size, config.intermediate_size);
        let before_gelu = config.intermediate_outputs();
        self.n_rows = batch.n_rows();
        self.dropout = dropout;
        self.rows.set(batch, head_rows);
        // A head may read a row twice.
        let n = batch.n_rows().max(head_rows.len());
        self.layout.set(batch, batch, config.n_heads, hidden);
        self.angles.grow(config, batch.lengths().max().unwrap_or(0));
        self.embedded.try_reserve(n, hidden)?;
        for layer in &mut self.layers {
            layer.qkv.try_reserve(n * 3 * hidden)?;
            layer.probabilities.try_reserve(self.layout.n_probabilities())?;
            layer.context.try_reserve(n * hidden)?;
            layer.attended.try_reserve(n, hidden)?;
            layer.inner.try_reserve(n * before_gelu)?;
            layer.output.try_reserve(n, hidden)?;
        }
        self.narrow.try_reserve(n * hidden)?;
        self.selected.try_reserve(head_rows.len() * hidden)?;
        self.inner.try_reserve(n * inner)?;
        if self.keeps_layers {
            self.d_inner.try_reserve(n * before_gelu)?;
            self.d_qkv.try_reserve(n * 3 * hidden)?;
            self.d_context.try_reserve(n * hidden)?;
            self.d.try_reserve(n * hidden)?;
        }
        let family = config.architecture();
        if family.residual == Residual::Sum {
            self.residual.try_reserve(n * hidden)?;
            self.d_residual.try_reserve(if self.keeps_layers { n * hidden } else { 0 })?;
        }
        if family.feed_forward == FeedForward::Gated && self.keeps_layers {
            self.d_gated.try_reserve(n * inner)?;
        }
        Ok(())
    }

    /// Returns the dropout for the rows that the head reads.
    pub(crate) fn head_dropout(&self) -> RowDropout<'_> {
        RowDropout { dropout: self.dropout, places: &self.rows.head_places }
    }

    /// Returns the index in `layers` where the results of a layer are stored.
    pub(crate) fn slot(&self, layer: usize) -> usize {
        layer % self.layers.len()
    }

    /// Returns the hidden states after the last layer at the rows that the head reads, `[head rows, hidden]`.
    pub(crate) fn hidden(&self) -> &[f32] {
        self.hidden_after(self.rows.n_layers)
    }

    /// Returns the hidden states after `n_layers` layers and the norm that follows them; 0 means the embedding. Only a tape
    /// for training stores all of them. After the last layer these are only the rows that the head reads.
    pub(crate) fn hidden_after(&self, n_layers: usize) -> &[f32] {
        let Some(layer) = n_layers.checked_sub(1) else {
            return &self.embedded.y[..self.n_rows * self.width];
        };
        let n = self.rows.after_attention(layer).len();
        &self.layers[self.slot(layer)].output.y[..n * self.width]
    }

    /// Returns the gradient of [`Self::hidden`], which must be written before a backward pass.
    ///
    /// # Panics
    /// Panics on a tape for prediction.
    pub(crate) fn d_hidden(&mut self) -> &mut [f32] {
        assert!(self.keeps_layers, "a backward pass needs a tape for training");
        &mut self.d[..self.rows.head.len() * self.width]
    }
}

/// Copies the given rows of `width` numbers of `x` to `out`.
pub(super) fn select_rows(x: &[f32], rows: &[usize], width: usize, out: &mut [f32]) {
    for (out, row) in out.chunks_exact_mut(width).zip(rows) {
        out.copy_from_slice(&x[row * width..(row + 1) * width]);
    }
}

/// Adds each row of `x` to the given row of `out`, and sets the other rows of `out` to zero.
pub(super) fn scatter_rows(isa: Isa, x: &[f32], rows: &[usize], width: usize, out: &mut [f32]) {
    out.fill(0.0);
    for (x, row) in x.chunks_exact(width).zip(rows) {
        add(isa, &mut out[row * width..(row + 1) * width], x);
    }
}
