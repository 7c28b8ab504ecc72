//! The tagger: emissions, the loss of softmax or CRF, and the backward pass of the head.

use super::backward::GradientSink;
use super::forward::column_grid;
use super::inputs::{n_padded_positions, pad};
use super::kernels::{Argument, Grid, KernelDropout, launch};
use super::memory::{Arena, Staged, bytes_mut};
use super::pass::{Pass, PassSetup};
use super::program::ROWS_PER_SUM;
use super::span::Span;
use super::sums::PartialSums;
use super::tape::Tape;
use super::transform::TransformTape;
use super::views::TaggerView;
use super::weights::GpuWeights;
use super::{Cuda, to_u32};
use crate::dropout::{Dropout, Site};
use crate::error::Error;
use crate::gradients::Gradients;
use crate::tagger::{MAX_GPU_CRF_TAGS, TaggedBatch};
use std::ops::Range;

impl TaggerView<'_> {
    /// Fails if the CRF has more tags than fit into the shared memory of the kernel.
    fn check_tags(&self) -> Result<(), Error> {
        if self.chain.is_some() && self.n_tags > MAX_GPU_CRF_TAGS {
            let reason =
                format!("its CRF has {} tags, the kernel takes {MAX_GPU_CRF_TAGS}", self.n_tags);
            return Err(Error::Cuda { what: "the tagger", reason });
        }
        Ok(())
    }
}

/// The scores of a CRF, in the form that kernels take (`Chain` in `tagger.cu`).
#[repr(C)]
#[derive(Clone, Copy)]
struct Chain {
    start: Span<f32>,
    transitions: Span<f32>,
    end: Span<f32>,
    allowed: Span<u8>,
    n_tags: u32,
    unused: u32,
}

impl Argument for Chain {}

impl Chain {
    fn new(
        weights: &GpuWeights,
        ranges: &[Range<usize>; 3],
        allowed: Span<u8>,
        n_tags: usize,
    ) -> Self {
        let [start, transitions, end] = ranges.each_ref().map(|range| weights.master(range));
        Self { start, transitions, end, allowed, n_tags: to_u32(n_tags), unused: 0 }
    }
}

/// The gold tags of a batch and the transitions that the CRF allows, in a staging buffer.
struct StagedTags {
    tags: Staged<u32>,
    /// For each sentence, the index after its last token.
    ends: Staged<u32>,
    allowed: Staged<u8>,
}

impl StagedTags {
    fn new(model: &TaggerView<'_>, batch: &TaggedBatch, setup: &mut PassSetup<'_>) -> Self {
        let sentences = 0..batch.sentences().n_sentences();
        Self {
            tags: setup.stage(batch.tags().iter().copied()),
            ends: setup.stage(sentences.map(|sentence| to_u32(batch.tokens(sentence).end))),
            allowed: setup.stage(model.allowed.iter().flat_map(|allowed| allowed.bytes())),
        }
    }
}

/// The buffers of the tagger's head. Buffers whose name starts with `d_` are gradients.
struct TaggerHeadTape {
    /// The buffers of the transform; `None` if the family has none.
    transform: Option<TransformTape>,
    /// The input of the classifier.
    gathered: Span<f32>,
    emissions: Span<f32>,
    d_emissions: Span<f32>,
    d_gathered: Span<f32>,
    origins: Span<f64>,
    marginals: Span<f64>,
    losses: Span<f64>,
}

impl TaggerHeadTape {
    /// Lays out the buffers. Without training, the buffers of the backward pass are empty.
    fn lay_out(
        arena: &mut Arena,
        model: &TaggerView<'_>,
        batch: &TaggedBatch,
        is_training: bool,
    ) -> Self {
        let (n, width, n_tags) =
            (batch.n_tokens(), model.encoder.config().hidden_size, model.n_tags);
        let n_backward = if is_training { n } else { 0 };
        let n_chain = if model.chain.is_some() { n_backward } else { 0 };
        let lay_out_transform =
            |_| TransformTape::lay_out(arena, n_padded_positions(n), width, is_training);
        Self {
            transform: model.transform.map(lay_out_transform),
            gathered: arena.span(n * width),
            emissions: arena.span(n * n_tags),
            d_emissions: arena.span(n_backward * n_tags),
            d_gathered: arena.span(n_backward * width),
            origins: arena.span(n_chain * n_tags * n_tags),
            marginals: arena.span(n_chain * n_tags),
            losses: arena.span(n_backward.max(batch.sentences().n_sentences())),
        }
    }

    /// Returns the length of the buffer for the partial sums that the backward pass of the head writes.
    fn n_partials(model: &TaggerView<'_>, batch: &TaggedBatch) -> usize {
        let n = model.n_tags;
        let n_chains = if model.chain.is_some() { batch.sentences().n_sentences() } else { 0 };
        let (n_padded, width) = (n_transformed(model, batch), model.encoder.config().hidden_size);
        PartialSums::n_taken(batch.n_tokens().div_ceil(ROWS_PER_SUM), n)
            + PartialSums::n_taken(n_chains, n * n + 2 * n)
            + TransformTape::n_partials(n_padded, width)
    }
}

/// Returns the number of rows of the transform, including padding; 0 if the family has no transform.
fn n_transformed(model: &TaggerView<'_>, batch: &TaggedBatch) -> usize {
    model.transform.map_or(0, |_| n_padded_positions(batch.n_tokens()))
}

/// Stages the rows with emissions: the first piece of every token. Padding rows are the first row of the batch.
fn stage_rows(
    model: &TaggerView<'_>,
    batch: &TaggedBatch,
    setup: &mut PassSetup<'_>,
) -> Staged<u32> {
    let n = n_transformed(model, batch).max(batch.n_tokens());
    setup.stage(pad(batch.rows().iter().map(|row| to_u32(*row)), 0, n))
}

impl Cuda {
    /// Adds the gradient of a batch as [`crate::tagger::Tagger::accumulate`] does, and returns the loss. If GPU memory
    /// does not suffice, the batch is split in halves.
    pub(crate) fn train_tagger(
        &self,
        model: TaggerView<'_>,
        batch: &TaggedBatch,
        weight: f32,
        dropout: Dropout,
        gradients: &mut Gradients,
    ) -> Result<f64, Error> {
        let result = self.try_train_tagger(model, batch, weight, dropout, gradients);
        self.retry_if_out_of_memory(result, batch.sentences().n_sentences() > 1, || {
            let mut loss = 0.0;
            for half in batch.halves() {
                if half.n_tokens() > 0 {
                    loss += self.train_tagger(model, &half, weight, dropout, gradients)?;
                }
            }
            Ok(loss)
        })
    }

    fn try_train_tagger(
        &self,
        model: TaggerView<'_>,
        batch: &TaggedBatch,
        weight: f32,
        dropout: Dropout,
        gradients: &mut Gradients,
    ) -> Result<f64, Error> {
        model.check_tags()?;
        let TaggerView { parameters, encoder, .. } = model;
        let mut setup = self.begin_pass(parameters, encoder, batch.sentences(), Some(gradients))?;
        let rows = stage_rows(&model, batch, &mut setup);
        let tags = StagedTags::new(&model, batch, &mut setup);
        let n_partials = TaggerHeadTape::n_partials(&model, batch);
        let (tape, head_tape, sums) = setup.lay_out_training(n_partials, |arena| {
            TaggerHeadTape::lay_out(arena, &model, batch, true)
        })?;
        setup.reserve_gradients(parameters, gradients, 0)?;
        let mut pass = setup.upload(dropout)?;
        let rows = pass.staged(rows);

        // The sizes tell whether there are earlier gradients: later micro-batches of a step add to them, so their
        // products differ and need their own graph.
        let sizes = [pass.n_rows, usize::from(gradients.has_any()), n_transformed(&model, batch)];
        let mut sink = GradientSink { parameters, gradients, sums };
        pass.forward(&tape)?;
        pass.compute_emissions(&model, rows, &tape, &head_tape)?;
        let n_losses = match model.chain {
            Some(ranges) => {
                let allowed = pass.staged(tags.allowed);
                let chain = Chain::new(&pass.weights, ranges, allowed, model.n_tags);
                pass.compute_chain_loss(chain, ranges, &tags, weight, &head_tape, &mut sink)?
            }
            None => pass.compute_softmax_loss(&model, &tags, weight, &head_tape)?,
        };
        pass.submit("tagger forward", sizes)?;
        let mut bytes = vec![0; n_losses * size_of::<f64>()];
        let download = pass.gpu().begin_download(head_tape.losses.address, bytes.len())?;
        pass.emissions_backward(&model, rows, &tape, &head_tape, &mut sink)?;
        pass.finish_backward(&tape, batch.sentences().pieces(), sink)?;
        pass.submit("tagger backward", sizes)?;
        pass.gpu().end_download(download, &mut bytes)?;
        let number = |b: &[u8]| f64::from_le_bytes(b.try_into().expect("eight bytes"));
        Ok(bytes.chunks_exact(size_of::<f64>()).map(number).sum())
    }

    /// Appends the emissions of every token of a batch to `out`. If GPU memory does not suffice, the batch is split in
    /// halves.
    pub(crate) fn tagger_emissions(
        &self,
        model: TaggerView<'_>,
        batch: &TaggedBatch,
        out: &mut Vec<f32>,
    ) -> Result<(), Error> {
        let result = self.try_tagger_emissions(&model, batch, out);
        self.retry_if_out_of_memory(result, batch.sentences().n_sentences() > 1, || {
            batch.halves().iter().try_for_each(|half| self.tagger_emissions(model, half, out))
        })
    }

    fn try_tagger_emissions(
        &self,
        model: &TaggerView<'_>,
        batch: &TaggedBatch,
        out: &mut Vec<f32>,
    ) -> Result<(), Error> {
        let sentences = batch.sentences();
        let mut setup = self.begin_pass(model.parameters, model.encoder, sentences, None)?;
        let rows = stage_rows(model, batch, &mut setup);
        let lay_out = |arena: &mut _| TaggerHeadTape::lay_out(arena, model, batch, false);
        let (tape, head_tape) = setup.lay_out(lay_out)?;
        let pass = setup.upload(Dropout::NONE)?;
        pass.forward(&tape)?;
        pass.compute_emissions(model, pass.staged(rows), &tape, &head_tape)?;
        pass.submit("emissions", [pass.n_rows, 0, n_transformed(model, batch)])?;
        let (start, found) = (out.len(), head_tape.emissions);
        out.resize(start + found.len(), 0.0);
        let download = pass.gpu().begin_download(found.address, found.n_bytes())?;
        // Other threads can start their passes while this one waits. The GPU runs them after the copy.
        drop(pass);
        self.gpu.end_download(download, bytes_mut(&mut out[start..]))
    }
}

impl Pass<'_> {
    /// Computes the emissions of the tokens whose first pieces are at `rows`.
    fn compute_emissions(
        &self,
        model: &TaggerView<'_>,
        rows: Span<u32>,
        tape: &Tape,
        head_tape: &TaggerHeadTape,
    ) -> Result<(), Error> {
        let width = self.config().hidden_size;
        let (hidden, n) = (tape.last_hidden(self.config()), head_tape.gathered.len() / width);
        let (width, grid, out) = (to_u32(width), Grid::linear(n, 128), head_tape.gathered);
        let dropout = KernelDropout::new(&self.dropout, 0, Site::Classifier);
        let positions = self.inputs.row_positions;
        if let (Some(transform), Some(states)) = (model.transform, &head_tape.transform) {
            self.transform_forward(transform, hidden.operand, rows, states)?;
            let x = states.states_f32();
            launch!(self.kernels, DropRows, grid, x, rows, dropout, positions, out, width);
        } else {
            let x = hidden.normed.y;
            launch!(self.kernels, GatherDropped, grid, x, rows, dropout, positions, out, width);
        }
        launch!(
            self.kernels,
            Classify,
            Grid::linear(n.div_ceil(4), 128),
            head_tape.gathered,
            self.weights.master(&model.classifier.weight),
            self.weights.master(&model.classifier.bias),
            head_tape.emissions,
            to_u32(model.n_tags),
            to_u32(n),
        );
        Ok(())
    }

    /// Computes the loss of the CRF for each sentence, and the gradients of the CRF's scores and of the emissions.
    /// Returns the number of losses, which is the number of sentences.
    fn compute_chain_loss(
        &self,
        chain: Chain,
        ranges: &[Range<usize>; 3],
        staged: &StagedTags,
        weight: f32,
        head_tape: &TaggerHeadTape,
        sink: &mut GradientSink<'_>,
    ) -> Result<usize, Error> {
        let n_sentences = self.inputs.n_sentences;
        let width = ranges.iter().map(Range::len).sum();
        let partial = sink.sums.take(n_sentences, width);
        launch!(
            self.kernels,
            ChainLoss,
            Grid::linear(n_sentences, 128),
            chain,
            head_tape.emissions,
            self.staged(staged.tags),
            self.staged(staged.ends),
            weight,
            head_tape.origins,
            head_tape.marginals,
            head_tape.d_emissions,
            partial.span,
            head_tape.losses,
        );
        let mut first_column = 0;
        for range in ranges {
            sink.reduce(&partial, first_column, range);
            first_column += range.len();
        }
        Ok(n_sentences)
    }

    /// Computes the softmax loss of each token, and the gradients of the emissions. Returns the number of losses, which
    /// is the number of tokens.
    fn compute_softmax_loss(
        &self,
        model: &TaggerView<'_>,
        staged: &StagedTags,
        weight: f32,
        head_tape: &TaggerHeadTape,
    ) -> Result<usize, Error> {
        let tags = self.staged(staged.tags);
        let n_tokens = tags.len();
        launch!(
            self.kernels,
            SoftmaxLoss,
            Grid::linear(n_tokens.div_ceil(64), 64),
            head_tape.emissions,
            tags,
            weight,
            head_tape.d_emissions,
            head_tape.losses,
            to_u32(model.n_tags),
            to_u32(n_tokens),
        );
        Ok(n_tokens)
    }

    /// Computes the gradient of the encoder's hidden states (in `tape.d_hidden`) from the gradient of the emissions.
    fn emissions_backward(
        &self,
        model: &TaggerView<'_>,
        rows: Span<u32>,
        tape: &Tape,
        head_tape: &TaggerHeadTape,
        sink: &mut GradientSink<'_>,
    ) -> Result<(), Error> {
        let (width, n_tags) = (self.config().hidden_size, model.n_tags);
        let n = head_tape.gathered.len() / width;
        let classifier = model.classifier;
        let partial = sink.sums.take(n.div_ceil(ROWS_PER_SUM), n_tags);
        let (d, span) = (head_tape.d_emissions, partial.span);
        let grid = column_grid(n_tags, n);
        launch!(self.kernels, ColumnSumsPlain, grid, d, span, to_u32(n_tags), to_u32(n));
        sink.reduce(&partial, 0, &classifier.bias);
        if sink.parameters.trains(&classifier.weight) {
            let accumulates = u32::from(sink.gradients.mark(&classifier.weight));
            launch!(
                self.kernels,
                ClassifyWeights,
                Grid::new([width.div_ceil(64), n_tags, 1], 64),
                d,
                head_tape.gathered,
                sink.gradients.gpu_mut().at(&classifier.weight),
                to_u32(n_tags),
                to_u32(n),
                accumulates,
            );
        }
        let weight = self.weights.master(&classifier.weight);
        let (grid, d_gathered) = (Grid::linear(n, 128), head_tape.d_gathered);
        launch!(self.kernels, ClassifyBackward, grid, d, weight, d_gathered, to_u32(n_tags));
        let dropout = KernelDropout::new(&self.dropout, 0, Site::Classifier);
        let (Some(transform), Some(states)) = (model.transform, &head_tape.transform) else {
            return self.scatter(d_gathered, rows, dropout, tape);
        };
        // Padding rows have no gradient.
        self.kernels.clear(states.d_states)?;
        let (d, out, positions) = (d_gathered, states.d_states, self.inputs.row_positions);
        launch!(self.kernels, DropRows, grid, d, rows, dropout, positions, out, to_u32(width));
        self.transform_backward(transform, rows, tape, states, sink)
    }
}
