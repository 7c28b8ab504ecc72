//! Training of the masked language model: losses, gradients of the scores, and the backward pass of the head.

use super::backward::GradientSink;
use super::gradients::{BatchFactors, GpuGradients};
use super::inputs::{NO_PIECE, n_padded_positions, pad};
use super::kernels::{Grid, launch};
use super::memory::{Arena, Staged};
use super::pass::{Pass, PassSetup};
use super::product::{Operand, Product, ProductSize};
use super::program::{ERROR_COLUMNS, SEGMENTS};
use super::span::{FloatSpan, Span};
use super::transform::TransformTape;
use super::views::MaskedLmView;
use super::{Cuda, SPLITS, to_u32};
use crate::config::Config;
use crate::dropout::Dropout;
use crate::error::Error;
use crate::gradients::Gradients;
use crate::mlm::{LmHead, MaskedBatch};

/// The number of masked positions whose scores are in memory at the same time (`MOST_ROWS` in `head.cu`).
pub(super) const CHUNK: usize = 256;

/// The masked positions of a batch, including padding, in a staging buffer.
pub(super) struct StagedPositions {
    pub(super) n: usize,
    pub(super) rows: Staged<u32>,
    pub(super) originals: Staged<u32>,
}

impl StagedPositions {
    /// Stages the masked positions. Padding positions point to the first row and have no original piece.
    pub(super) fn new(batch: &MaskedBatch, setup: &mut PassSetup<'_>) -> Self {
        let n = n_padded_positions(batch.positions.len());
        let rows = batch.positions.iter().map(|row| to_u32(*row));
        let originals = batch.originals.iter().copied();
        Self {
            n,
            rows: setup.stage(pad(rows, 0, n)),
            originals: setup.stage(pad(originals, NO_PIECE, n)),
        }
    }
}

/// The buffers of the masked-LM head. Buffers whose name starts with `d_` are gradients.
pub(super) struct MlmHeadTape {
    pub(super) transform: TransformTape,
    pub(super) scores: Span<f32>,
    pub(super) totals: Span<f32>,
    pub(super) losses: Span<f32>,
    /// The partial products of errors and table, before they are added up.
    parts: Span<f32>,
}

impl MlmHeadTape {
    /// Lays out the buffers for `m` masked positions and `stride` scores per position. Without training, the buffers of
    /// the backward pass are empty.
    pub(super) fn lay_out(
        arena: &mut Arena,
        config: &Config,
        m: usize,
        stride: usize,
        is_training: bool,
    ) -> Self {
        let (hidden, chunk) = (config.hidden_size, m.min(CHUNK));
        let n_backward = if is_training { m } else { 0 };
        Self {
            transform: TransformTape::lay_out(arena, m, hidden, is_training),
            scores: arena.span(chunk * stride),
            totals: arena.span(chunk * SEGMENTS * 2),
            losses: arena.span(m),
            parts: arena.span(SPLITS * n_backward.min(CHUNK) * hidden),
        }
    }

    /// Returns the hidden states that are multiplied by the table.
    pub(super) fn states(&self) -> FloatSpan {
        self.transform.states()
    }
}

impl Cuda {
    /// Adds the gradient of a batch as [`crate::mlm::MaskedLm::accumulate`] does, and returns the loss. If GPU memory
    /// does not suffice, the batch is split in halves. This changes only the last bits of the sums.
    pub(crate) fn train_masked(
        &self,
        model: MaskedLmView<'_>,
        batch: &MaskedBatch,
        weight: f32,
        dropout: Dropout,
        gradients: &mut Gradients,
    ) -> Result<f64, Error> {
        let result = self.try_train_masked(model, batch, weight, dropout, gradients);
        self.retry_if_out_of_memory(result, batch.sentences.n_sentences() > 1, || {
            let mut loss = 0.0;
            for half in batch.halves() {
                if !half.positions.is_empty() {
                    loss += self.train_masked(model, &half, weight, dropout, gradients)?;
                }
            }
            Ok(loss)
        })
    }

    fn try_train_masked(
        &self,
        model: MaskedLmView<'_>,
        batch: &MaskedBatch,
        weight: f32,
        dropout: Dropout,
        gradients: &mut Gradients,
    ) -> Result<f64, Error> {
        let MaskedLmView { parameters, encoder, head } = model;
        let config = encoder.config();
        let mut setup = self.begin_pass(parameters, encoder, &batch.sentences, Some(gradients))?;
        let positions = StagedPositions::new(batch, &mut setup);
        let (m, stride) = (positions.n, setup.weights.n_table_rows);
        let (tape, head_tape, sums) = setup
            .lay_out_training(TransformTape::n_partials(m, config.hidden_size), |arena| {
                MlmHeadTape::lay_out(arena, config, m, stride, true)
            })?;
        setup.reserve_gradients(parameters, gradients, m)?;
        let mut pass = setup.upload(dropout)?;
        let (rows, originals) = (pass.staged(positions.rows), pass.staged(positions.originals));

        // The sizes include the number of earlier states: later micro-batches of a step add to the gradients of earlier
        // ones, so their products differ and need their own graph.
        let n_before = gradients.gpu_mut().n_states;
        let sizes = [pass.n_rows, m, 2 * n_before + usize::from(gradients.has_any())];
        let factors = gradients.gpu_mut().push_states(m, stride);
        let mut sink = GradientSink { parameters, gradients, sums };
        pass.forward(&tape)?;
        let (hidden, transform) = (tape.last_hidden(config).operand, &head_tape.transform);
        pass.transform_forward(&head.transform, hidden, rows, transform)?;
        let errors = factors.whole_errors;
        pass.compute_errors(head, originals, weight, &head_tape, errors, &mut sink)?;
        pass.keep_factors(&head_tape, factors, sink.gradients.gpu_mut())?;
        pass.submit("masked forward", sizes)?;
        // The CPU waits only for the losses. While the GPU computes the backward pass, the CPU prepares the next batch.
        let losses = head_tape.losses;
        let download = pass.gpu().begin_download(losses.address, losses.n_bytes())?;
        pass.transform_backward(&head.transform, rows, &tape, transform, &mut sink)?;
        pass.finish_backward(&tape, batch.sentences.pieces(), sink)?;
        pass.submit("masked backward", sizes)?;
        let mut bytes = vec![0; losses.n_bytes()];
        pass.gpu().end_download(download, &mut bytes)?;
        let losses = bytes.chunks_exact(4).map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]]));
        Ok(losses.map(f64::from).sum())
    }
}

impl Pass<'_> {
    /// Computes the scores of some states for the whole vocabulary, including the bias, and the softmax totals of each
    /// row's segments.
    pub(super) fn compute_scores(
        &self,
        head: &LmHead,
        states: FloatSpan,
        scores: Span<f32>,
        totals: Span<f32>,
    ) -> Result<(), Error> {
        let (width, stride) = (self.config().hidden_size, self.weights.n_table_rows);
        let m = states.len / width;
        let table = Operand::new(self.weights.table_operand(), width).transposed();
        let size = ProductSize { m, n: stride, k: width };
        // The columns after the vocabulary get other numbers than biases. The kernels that read these scores discard them.
        let bias = self.weights.master(&(head.bias.start..head.bias.start + stride));
        let product = Product::new(size, Operand::new(states, width), table, scores);
        self.kernels.product(&product.with_bias(bias))?;
        let (vocab, stride) = (to_u32(head.bias.len()), to_u32(stride));
        let grid = Grid::new([SEGMENTS, m, 1], 256);
        launch!(self.kernels, ScoreTotals, grid, scores, totals, vocab, stride);
        Ok(())
    }

    /// Computes the losses of all states and the gradients of scores (errors), bias and states, one chunk of states
    /// after another.
    fn compute_errors(
        &self,
        head: &LmHead,
        originals: Span<u32>,
        weight: f32,
        head_tape: &MlmHeadTape,
        errors: FloatSpan,
        sink: &mut GradientSink<'_>,
    ) -> Result<(), Error> {
        let (width, stride) = (self.config().hidden_size, self.weights.n_table_rows);
        let m = originals.len();
        let bias_gradient = sink.gradients.gpu_mut().at(&head.bias);
        for start in (0..m).step_by(CHUNK) {
            let end = m.min(start + CHUNK);
            let states = head_tape.states().slice(start * width..end * width);
            let scores = head_tape.scores.first((end - start) * stride);
            self.compute_scores(head, states, scores, head_tape.totals)?;
            let errors = errors.slice(start * stride..end * stride);
            let accumulates = u32::from(sink.gradients.mark(&head.bias));
            launch!(
                self.kernels,
                ScoreErrors,
                Grid::linear(stride.div_ceil(ERROR_COLUMNS), ERROR_COLUMNS),
                scores,
                head_tape.totals,
                originals.slice(start..end),
                weight,
                errors.argument(),
                head_tape.losses.slice(start..end),
                bias_gradient,
                to_u32(end - start),
                to_u32(stride),
                accumulates,
            );
            let d_states = head_tape.transform.d_states.slice(start * width..end * width);
            self.errors_times_table(errors, head_tape.parts, d_states)?;
        }
        Ok(())
    }

    /// Copies the factors of the table's gradient to where the optimiser reads them. Of the errors, only those of
    /// trained rows are copied. Does nothing if no row is trained.
    fn keep_factors(
        &self,
        head_tape: &MlmHeadTape,
        factors: BatchFactors,
        gradients: &GpuGradients,
    ) -> Result<(), Error> {
        let BatchFactors { whole_errors, kept } = factors;
        if kept.states.len == 0 {
            return Ok(());
        }
        self.kernels.copy(
            head_tape.states().address,
            kept.states.address,
            kept.states.n_bytes(),
        )?;
        if whole_errors == kept.errors {
            return Ok(());
        }
        launch!(
            self.kernels,
            CopyColumns,
            Grid::linear(kept.states.len / gradients.width, 128),
            whole_errors.argument(),
            kept.errors.argument(),
            to_u32(gradients.trained.start),
            to_u32(gradients.trained.len()),
            to_u32(self.weights.n_table_rows),
            to_u32(gradients.stride),
        );
        Ok(())
    }

    /// Computes `d_states = errors table`. The sum over the vocabulary is split into parts, so that the whole GPU is
    /// busy.
    fn errors_times_table(
        &self,
        errors: FloatSpan,
        parts: Span<f32>,
        d_states: Span<f32>,
    ) -> Result<(), Error> {
        let (width, stride) = (self.config().hidden_size, self.weights.n_table_rows);
        let (m, k) = (errors.len / stride, stride / SPLITS);
        let parts = parts.first(SPLITS * m * width);
        let errors = Operand::new(errors, stride).with_batch_stride(k);
        let table = Operand::new(self.weights.table_operand(), width).with_batch_stride(k * width);
        let product = Product::new(ProductSize { m, n: width, k }, errors, table, parts);
        self.kernels.product(&product.batched(SPLITS))?;
        let grid = Grid::linear((m * width).div_ceil(256), 256);
        launch!(self.kernels, AddParts, grid, parts, d_states, to_u32(SPLITS));
        Ok(())
    }
}
