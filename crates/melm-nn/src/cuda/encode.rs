//! A batch through the encoder and back.

use super::kernels::{Argument, Drop, Kernels, launch};
use super::machine::{Factor, Numbers, Product, Span};
use super::memory::{Arena, Parcel, Plain};
use super::n32;
use super::program::{ROWS_PER_SUM, attention_block, norm_rows};
use super::sums::Sums;
use super::weights::Weights;
use crate::config::Config;
use crate::dropout::{Dropout, Site};
use crate::encoder::{Encoder, LayerPlace, LinearPlace};
use crate::error::Error;
use crate::gradients::Gradients;
use crate::packed::Packed;
use crate::params::Parameters;

/// Where a row belongs, as `common.cuh` has it.
#[derive(Clone, Copy)]
pub(super) struct Place {
    sentence: u64,
    position: u32,
}

impl Plain for Place {
    fn put(&self, bytes: &mut Vec<u8>) {
        self.sentence.put(bytes);
        u64::from(self.position).put(bytes);
    }
}

/// A block's queries or keys, as `attention.cu` has it.
#[derive(Clone, Copy)]
pub(super) struct Task {
    start: u32,
    length: u32,
    first: u32,
    sentence: u64,
}

impl Plain for Task {
    fn put(&self, bytes: &mut Vec<u8>) {
        for number in [self.start, self.length, self.first, 0] {
            number.put(bytes);
        }
        self.sentence.put(bytes);
    }
}

/// What the kernels read of a batch.
#[derive(Clone, Copy)]
pub(super) struct Inputs {
    pieces: Span<u32>,
    pub(super) places: Span<Place>,
    starts: Span<u32>,
    tasks: Span<Task>,
    n_sentences: usize,
    longest: usize,
}

impl Inputs {
    /// Packs a batch; [`Self::placed`] says where it came to lie.
    pub(super) fn pack(config: &Config, batch: &Packed, parcel: &mut Parcel) -> Self {
        let n_sentences = batch.n_sentences();
        let (_, n_queries) = attention_block(config.hidden_size / config.n_heads);
        let rows = || (0..n_sentences).map(|sentence| (sentence, batch.rows(sentence)));
        let places =
            batch.places().map(|(sentence, position)| Place { sentence, position: n32(position) });
        let tasks = rows().flat_map(|(sentence, rows)| {
            let (start, length, sentence) = (n32(rows.start), n32(rows.len()), batch.key(sentence));
            (0..length).step_by(n_queries).map(move |first| Task { start, length, first, sentence })
        });
        Self {
            pieces: parcel.put(batch.pieces().iter().copied()),
            places: parcel.put(places),
            starts: parcel
                .put(rows().map(|(_, rows)| n32(rows.start)).chain([n32(batch.n_rows())])),
            tasks: parcel.put(tasks),
            n_sentences,
            longest: rows().map(|(_, rows)| rows.len()).max().unwrap_or(0),
        }
    }

    pub(super) fn placed(self, block: &super::Block) -> Self {
        Self {
            pieces: Parcel::placed(self.pieces, block),
            places: Parcel::placed(self.places, block),
            starts: Parcel::placed(self.starts, block),
            tasks: Parcel::placed(self.tasks, block),
            ..self
        }
    }
}

/// Rows after a layer norm, and what its backward pass needs; as `norm.cu` has it.
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub(super) struct Normed {
    pub(super) rows: Span<f32>,
    pub(super) scale: Span<f32>,
    pub(super) y: Span<f32>,
    pub(super) y_product: Span<u16>,
}

impl Argument for Normed {}

/// Scale and shift of a layer norm; as `norm.cu` has it.
#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct Affine {
    weight: Span<f32>,
    bias: Span<f32>,
    eps: f32,
    unused: u32,
}

impl Argument for Affine {}

impl Affine {
    pub(super) fn of(weights: &Weights, place: &LinearPlace, eps: f32) -> Self {
        let (weight, bias) = (weights.plain(&place.weight), weights.plain(&place.bias));
        Self { weight, bias, eps, unused: 0 }
    }
}

/// Heads of attention; as `attention.cu` has it.
#[repr(C)]
#[derive(Clone, Copy)]
struct Heads {
    qkv: Span<f32>,
    count: u32,
    scale: f32,
    drop: Drop,
}

impl Argument for Heads {}

/// A norm's output with the numbers that products read.
#[derive(Clone, Copy, Default)]
pub(super) struct NormTape {
    pub(super) normed: Normed,
    pub(super) y: Numbers,
}

impl NormTape {
    pub(super) fn lay_out(arena: &mut Arena, n_rows: usize, width: usize) -> Self {
        let y = arena.numbers(n_rows * width);
        let normed = Normed {
            rows: arena.span(n_rows * width),
            scale: arena.span(n_rows),
            y: arena.span(n_rows * width),
            y_product: y.span(),
        };
        Self { normed, y }
    }
}

/// What one layer leaves.
#[derive(Clone, Copy)]
struct LayerTape {
    qkv: Span<f32>,
    context: Numbers,
    plain_context: Span<f32>,
    log_sums: Span<f32>,
    attended: NormTape,
    /// The feed-forward part before and after its gelu.
    inner: Span<f32>,
    activated: Numbers,
    output: NormTape,
}

/// Buffers of one batch.
pub(super) struct Tape {
    embedded: NormTape,
    layers: Vec<LayerTape>,
    narrow: Span<f32>,
    pub(super) d: Span<f32>,
    dx: Numbers,
    d_inner: Span<f32>,
    du: Numbers,
    d_context: Span<f32>,
    d_qkv: Numbers,
    inner_products: Span<f32>,
}

impl Tape {
    /// With `keeps_layers` a tape that can be played back; without, two layers take turns.
    pub(super) fn lay_out(
        arena: &mut Arena,
        config: &Config,
        n: usize,
        keeps_layers: bool,
    ) -> Self {
        let (hidden, inner) = (config.hidden_size, config.intermediate_size);
        let n_kept = if keeps_layers { config.n_layers } else { 2.min(config.n_layers) };
        let back = if keeps_layers { n } else { 0 };
        Self {
            embedded: NormTape::lay_out(arena, n, hidden),
            layers: (0..n_kept)
                .map(|_| LayerTape {
                    qkv: arena.span(n * 3 * hidden),
                    context: arena.numbers(n * hidden),
                    plain_context: arena.span(back * hidden),
                    log_sums: arena.span(n * config.n_heads),
                    attended: NormTape::lay_out(arena, n, hidden),
                    inner: arena.span(n * inner),
                    activated: arena.numbers(n * inner),
                    output: NormTape::lay_out(arena, n, hidden),
                })
                .collect(),
            narrow: arena.span(n * hidden),
            d: arena.span(back * hidden),
            dx: arena.numbers(back * hidden),
            d_inner: arena.span(back * inner),
            du: arena.numbers(back * inner),
            d_context: arena.span(back * hidden),
            d_qkv: arena.numbers(back * 3 * hidden),
            inner_products: arena.span(back * config.n_heads),
        }
    }

    /// The partial sums that a backward pass over `n` rows leaves.
    pub(super) fn n_partials(config: &Config, n: usize) -> usize {
        let (hidden, inner) = (config.hidden_size, config.intermediate_size);
        let (norm, columns) = (n.div_ceil(norm_rows(hidden)), n.div_ceil(ROWS_PER_SUM));
        3 * hidden * norm + config.n_layers * (6 * hidden * norm + (inner + 3 * hidden) * columns)
    }

    /// What the last layer made.
    pub(super) fn hidden(&self, config: &Config) -> NormTape {
        self.after(config.n_layers)
    }

    fn after(&self, n_layers: usize) -> NormTape {
        match n_layers.checked_sub(1) {
            None => self.embedded,
            Some(layer) => self.layers[layer % self.layers.len()].output,
        }
    }
}

/// One batch on its way.
pub(super) struct Pass<'a> {
    pub(super) kernels: &'a Kernels,
    pub(super) weights: &'a Weights,
    pub(super) encoder: &'a Encoder,
    pub(super) inputs: Inputs,
    pub(super) dropout: Dropout,
    pub(super) n: usize,
}

/// What a backward pass writes to.
pub(super) struct Back<'a> {
    pub(super) parameters: &'a Parameters,
    pub(super) gradients: &'a mut Gradients,
    pub(super) sums: &'a mut Sums,
}

impl Pass<'_> {
    fn config(&self) -> &Config {
        self.encoder.config()
    }

    /// Blocks and threads of the kernels that take a warp a row.
    fn by_rows(&self, n: usize) -> ([usize; 3], usize) {
        let rows = norm_rows(self.config().hidden_size);
        ([n.div_ceil(rows), 1, 1], 32 * rows)
    }

    pub(super) fn forward(&self, tape: &Tape) -> Result<(), Error> {
        let encoder = self.encoder;
        let config = self.config();
        launch!(
            self.kernels,
            EmbedForward,
            self.by_rows(self.n),
            self.weights.plain(&encoder.table),
            self.weights.plain(&encoder.positions),
            self.weights.plain(&encoder.kinds),
            Affine::of(self.weights, &encoder.norm, config.layer_norm_eps),
            Drop::at(&self.dropout, 0, Site::Embedding),
            self.inputs.pieces,
            self.inputs.places,
            config.pad_id + 1,
            tape.embedded.normed,
            n32(self.n),
        );
        for (index, place) in encoder.layers.iter().enumerate() {
            self.forward_layer(tape, index, place)?;
        }
        Ok(())
    }

    fn forward_layer(&self, tape: &Tape, index: usize, place: &LayerPlace) -> Result<(), Error> {
        let (config, weights) = (self.config(), self.weights);
        let (hidden, inner) = (config.hidden_size, config.intermediate_size);
        let own = &tape.layers[index % tape.layers.len()];
        let x = tape.after(index);
        let bias = weights.plain(&place.qkv.bias);
        self.linear(x.y, (&place.qkv, hidden, 3 * hidden), own.qkv, bias)?;
        let grid = [self.inputs.tasks.len(), config.n_heads, 1];
        launch!(
            self.kernels,
            AttentionForward,
            (grid, self.attention_threads()),
            self.heads(own, index),
            self.inputs.tasks,
            own.context.span(),
            own.plain_context,
            own.log_sums,
        );
        let none = Span::default();
        self.linear(own.context, (&place.attention_output, hidden, hidden), tape.narrow, none)?;
        let bias = weights.plain(&place.attention_output.bias);
        let drop = Drop::at(&self.dropout, index, Site::AttentionOutput);
        let before = (tape.narrow, bias, x.normed.y);
        self.norm(before, &place.attention_norm, drop, own.attended.normed)?;
        self.linear(own.attended.y, (&place.intermediate, hidden, inner), own.inner, none)?;
        self.gelu((&place.intermediate, inner), self.n, own.inner, (own.activated.span(), none))?;
        self.linear(own.activated, (&place.output, inner, hidden), tape.narrow, none)?;
        let drop = Drop::at(&self.dropout, index, Site::Output);
        let before = (tape.narrow, weights.plain(&place.output.bias), own.attended.normed.y);
        self.norm(before, &place.output_norm, drop, own.output.normed)
    }

    fn attention_threads(&self) -> usize {
        32 * attention_block(self.config().hidden_size / self.config().n_heads).0
    }

    fn heads(&self, own: &LayerTape, layer: usize) -> Heads {
        let config = self.config();
        Heads {
            qkv: own.qkv,
            count: n32(config.n_heads),
            scale: 1.0 / ((config.hidden_size / config.n_heads) as f32).sqrt(),
            drop: Drop::at(&self.dropout, layer, Site::Attention),
        }
    }

    /// `y = x W^T`, and the bias where there is one.
    fn linear(
        &self,
        x: Numbers,
        (place, inputs, outputs): (&LinearPlace, usize, usize),
        y: Span<f32>,
        bias: Span<f32>,
    ) -> Result<(), Error> {
        self.linear_of(self.n, x, (place, inputs, outputs), y, bias)
    }

    pub(super) fn linear_of(
        &self,
        n: usize,
        x: Numbers,
        (place, inputs, outputs): (&LinearPlace, usize, usize),
        y: Span<f32>,
        bias: Span<f32>,
    ) -> Result<(), Error> {
        let weight = Factor::of(self.weights.product(&place.weight), inputs);
        self.kernels.product(&Product {
            m: n,
            n: outputs,
            k: inputs,
            a: Factor::of(x, inputs),
            b: weight.transposed(),
            out: y,
            out_row: outputs,
            out_batch: 0,
            accumulates: false,
            bias,
            n_batches: 1,
        })
    }

    /// `y = norm(residual + dropout(x + bias))`; bias and residual may be empty.
    pub(super) fn norm(
        &self,
        (x, bias, residual): (Span<f32>, Span<f32>, Span<f32>),
        place: &LinearPlace,
        drop: Drop,
        out: Normed,
    ) -> Result<(), Error> {
        let affine = Affine::of(self.weights, place, self.config().layer_norm_eps);
        let n = x.len() / self.config().hidden_size;
        let over = self.by_rows(n);
        let places = self.inputs.places;
        launch!(
            self.kernels,
            NormForward,
            over,
            x,
            bias,
            residual,
            affine,
            drop,
            places,
            out,
            n32(n)
        );
        Ok(())
    }

    /// `u += bias; g = gelu(u)` over `n` rows, `g` for products, plain, or both.
    pub(super) fn gelu(
        &self,
        (place, width): (&LinearPlace, usize),
        n: usize,
        u: Span<f32>,
        (g, plain): (Span<u16>, Span<f32>),
    ) -> Result<(), Error> {
        let grid = [width.div_ceil(256), n.div_ceil(4), 1];
        let bias = self.weights.plain(&place.bias);
        launch!(self.kernels, GeluForward, (grid, 256), bias, u, g, plain, n32(width), n32(n));
        Ok(())
    }

    /// From the gradient in `tape.d` to that of every parameter that is trained.
    pub(super) fn backward(
        &self,
        tape: &Tape,
        pieces: &[u32],
        back: &mut Back<'_>,
    ) -> Result<(), Error> {
        for index in (0..self.encoder.layers.len()).rev() {
            self.feed_forward_backward(tape, index, back)?;
            self.attention_backward(tape, index, back)?;
        }
        self.embedding_backward(tape, pieces, back)
    }

    fn feed_forward_backward(
        &self,
        tape: &Tape,
        index: usize,
        back: &mut Back<'_>,
    ) -> Result<(), Error> {
        let (hidden, inner) = (self.config().hidden_size, self.config().intermediate_size);
        let (place, own) = (&self.encoder.layers[index], &tape.layers[index]);
        let drop = Drop::at(&self.dropout, index, Site::Output);
        let bias = &place.output.bias;
        self.norm_backward(
            (&place.output_norm, own.output.normed),
            drop,
            (tape.d, tape.dx),
            (bias, back),
        )?;
        self.linear_backward(
            (self.n, tape.dx),
            (&place.output, inner, hidden),
            tape.d_inner,
            false,
        )?;
        self.weight_gradient(
            (self.n, tape.dx, own.activated),
            (&place.output, inner, hidden),
            back,
        )?;
        let intermediate = &place.intermediate;
        self.gelu_backward(
            (intermediate, inner),
            (self.n, own.inner, tape.d_inner),
            tape.du,
            back,
        )?;
        self.weight_gradient(
            (self.n, tape.du, own.attended.y),
            (intermediate, hidden, inner),
            back,
        )?;
        self.linear_backward((self.n, tape.du), (intermediate, hidden, inner), tape.d, true)
    }

    fn attention_backward(
        &self,
        tape: &Tape,
        index: usize,
        back: &mut Back<'_>,
    ) -> Result<(), Error> {
        let (n, hidden, n_heads) = (self.n, self.config().hidden_size, self.config().n_heads);
        let (place, own) = (&self.encoder.layers[index], &tape.layers[index]);
        let drop = Drop::at(&self.dropout, index, Site::AttentionOutput);
        let output = &place.attention_output;
        let normed = own.attended.normed;
        self.norm_backward(
            (&place.attention_norm, normed),
            drop,
            (tape.d, tape.dx),
            (&output.bias, back),
        )?;
        self.linear_backward((n, tape.dx), (output, hidden, hidden), tape.d_context, false)?;
        self.weight_gradient((n, tape.dx, own.context), (output, hidden, hidden), back)?;
        let (heads, grid) = (self.heads(own, index), [self.inputs.tasks.len(), n_heads, 1]);
        launch!(
            self.kernels,
            AttentionQueriesBackward,
            (grid, self.attention_threads()),
            heads,
            self.inputs.tasks,
            own.plain_context,
            own.log_sums,
            tape.d_context,
            tape.inner_products,
            tape.d_qkv.span(),
        );
        launch!(
            self.kernels,
            AttentionKeysBackward,
            (grid, self.attention_threads()),
            heads,
            self.inputs.tasks,
            own.log_sums,
            tape.d_context,
            tape.inner_products,
            tape.d_qkv.span(),
        );
        let partial = back.sums.take(n.div_ceil(ROWS_PER_SUM), 3 * hidden);
        let grid = [(3 * hidden).div_ceil(128), n.div_ceil(ROWS_PER_SUM), 1];
        let width = n32(3 * hidden);
        launch!(
            self.kernels,
            ColumnSums,
            (grid, 128),
            tape.d_qkv.span(),
            partial.span,
            width,
            n32(n)
        );
        back.sums.finish_into(&partial, 0, (&place.qkv.bias, back.gradients));
        let x = tape.after(index).y;
        self.weight_gradient((n, tape.d_qkv, x), (&place.qkv, hidden, 3 * hidden), back)?;
        self.linear_backward((n, tape.d_qkv), (&place.qkv, hidden, 3 * hidden), tape.d, true)
    }

    fn embedding_backward(
        &self,
        tape: &Tape,
        pieces: &[u32],
        back: &mut Back<'_>,
    ) -> Result<(), Error> {
        let (encoder, config, hidden) = (self.encoder, self.config(), self.config().hidden_size);
        let over = self.by_rows(self.n);
        let out = if back.parameters.trains(&encoder.table) {
            back.gradients.card_mut().next_lookups(pieces, config.pad_id)
        } else {
            tape.narrow
        };
        let partial = back.sums.take(over.0[0], 3 * hidden);
        let normed = tape.embedded.normed;
        launch!(
            self.kernels,
            EmbedBackward,
            over,
            self.weights.plain(&encoder.norm.weight),
            normed.rows,
            normed.scale,
            Drop::at(&self.dropout, 0, Site::Embedding),
            self.inputs.places,
            tape.d,
            out,
            partial.span,
            n32(self.n),
        );
        let first_kind = encoder.kinds.start..encoder.kinds.start + hidden;
        for place in [&encoder.kinds, &encoder.positions] {
            if !back.gradients.mark(place) {
                let span = back.gradients.card_mut().at(place);
                self.kernels.machine().clear(span.address, span.n_bytes())?;
            }
        }
        let sums = &mut *back.sums;
        sums.finish_into(&partial, 0, (&encoder.norm.weight, back.gradients));
        sums.finish_into(&partial, hidden, (&encoder.norm.bias, back.gradients));
        sums.finish_into(&partial, 2 * hidden, (&first_kind, back.gradients));
        let positions = back.gradients.card_mut().at(&encoder.positions);
        launch!(
            self.kernels,
            PositionGradient,
            ([self.inputs.longest, 1, 1], 256),
            out,
            self.inputs.starts,
            n32(self.inputs.n_sentences),
            config.pad_id + 1,
            positions,
        );
        Ok(())
    }

    /// Back through [`Self::norm`]: `d` becomes the residual's gradient, `dx` that of `x` for products.
    pub(super) fn norm_backward(
        &self,
        (place, normed): (&LinearPlace, Normed),
        drop: Drop,
        (d, dx): (Span<f32>, Numbers),
        (bias, back): (&std::ops::Range<usize>, &mut Back<'_>),
    ) -> Result<(), Error> {
        let hidden = self.config().hidden_size;
        let n = d.len() / hidden;
        let over = self.by_rows(n);
        let partial = back.sums.take(over.0[0], 3 * hidden);
        launch!(
            self.kernels,
            NormBackward,
            over,
            self.weights.plain(&place.weight),
            normed.rows,
            normed.scale,
            drop,
            self.inputs.places,
            d,
            dx.span(),
            partial.span,
            n32(n),
        );
        back.sums.finish_into(&partial, 0, (&place.weight, back.gradients));
        back.sums.finish_into(&partial, hidden, (&place.bias, back.gradients));
        if !bias.is_empty() {
            back.sums.finish_into(&partial, 2 * hidden, (bias, back.gradients));
        }
        Ok(())
    }

    /// From the gradient of `gelu(u)` in `d` to that of `u`, for products.
    pub(super) fn gelu_backward(
        &self,
        (place, width): (&LinearPlace, usize),
        (n, u, d): (usize, Span<f32>, Span<f32>),
        du: Numbers,
        back: &mut Back<'_>,
    ) -> Result<(), Error> {
        let n_sums = n.div_ceil(ROWS_PER_SUM);
        let partial = back.sums.take(n_sums, width);
        let grid = [width.div_ceil(128), n_sums, 1];
        let span = partial.span;
        launch!(self.kernels, GeluBackward, (grid, 128), u, d, du.span(), span, n32(width), n32(n));
        back.sums.finish_into(&partial, 0, (&place.bias, back.gradients));
        Ok(())
    }

    /// `dx (+)= dy W`.
    pub(super) fn linear_backward(
        &self,
        (n, dy): (usize, Numbers),
        (place, inputs, outputs): (&LinearPlace, usize, usize),
        dx: Span<f32>,
        accumulates: bool,
    ) -> Result<(), Error> {
        self.kernels.product(&Product {
            m: n,
            n: inputs,
            k: outputs,
            a: Factor::of(dy, outputs),
            b: Factor::of(self.weights.product(&place.weight), inputs),
            out: dx,
            out_row: inputs,
            out_batch: 0,
            accumulates,
            bias: Span::default(),
            n_batches: 1,
        })
    }

    /// `dW (+)= dy^T x`, unless the weight is frozen.
    pub(super) fn weight_gradient(
        &self,
        (n, dy, x): (usize, Numbers, Numbers),
        (place, inputs, outputs): (&LinearPlace, usize, usize),
        back: &mut Back<'_>,
    ) -> Result<(), Error> {
        if !back.parameters.trains(&place.weight) {
            return Ok(());
        }
        let accumulates = back.gradients.mark(&place.weight);
        let out = back.gradients.card_mut().at(&place.weight);
        self.kernels.product(&Product {
            m: outputs,
            n: inputs,
            k: n,
            a: Factor::of(dy, outputs).transposed(),
            b: Factor::of(x, inputs),
            out,
            out_row: inputs,
            out_batch: 0,
            accumulates,
            bias: Span::default(),
            n_batches: 1,
        })
    }
}
