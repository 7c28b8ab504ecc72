//! The masked-LM head on a card: losses, errors, and back to the encoder.

use super::backward::Back;
use super::encode::Pass;
use super::inputs::{Inputs, filled_positions, filled_rows};
use super::kernels::{Drop, launch};
use super::machine::{Factor, Numbers, Product, Span};
use super::memory::{Arena, Parcel};
use super::program::{ROWS_PER_SUM, SEGMENTS, norm_rows};
use super::sums::Sums;
use super::tape::{NormTape, Tape};
use super::{Cuda, SPLITS, n32};
use crate::config::Config;
use crate::dropout::Dropout;
use crate::encoder::Encoder;
use crate::error::Error;
use crate::gradients::Gradients;
use crate::mlm::{Head, MaskedBatch};
use crate::params::Parameters;

/// Masked positions whose scores are in memory at once.
pub(super) const CHUNK: usize = 256;

/// A masked language model, as the card reads it.
#[derive(Clone, Copy)]
pub(crate) struct Masked<'a> {
    pub(crate) parameters: &'a Parameters,
    pub(crate) encoder: &'a Encoder,
    pub(crate) head: &'a Head,
}

/// Buffers of the head.
pub(super) struct HeadTape {
    gathered: Numbers,
    dense: Span<f32>,
    activated: Span<f32>,
    norm: NormTape,
    pub(super) scores: Span<f32>,
    pub(super) totals: Span<f32>,
    pub(super) losses: Span<f32>,
    parts: Span<f32>,
    d: Span<f32>,
    du: Numbers,
    d_gathered: Span<f32>,
}

impl HeadTape {
    /// For `m` masked positions and scores `stride` wide; with `goes_back` what a backward pass needs too.
    pub(super) fn lay_out(
        arena: &mut Arena,
        config: &Config,
        (m, stride): (usize, usize),
        goes_back: bool,
    ) -> Self {
        let (hidden, chunk) = (config.hidden_size, m.min(CHUNK));
        let back = if goes_back { m } else { 0 };
        Self {
            gathered: arena.numbers(m * hidden),
            dense: arena.span(m * hidden),
            activated: arena.span(m * hidden),
            norm: NormTape::lay_out(arena, m, hidden),
            scores: arena.span(chunk * stride),
            totals: arena.span(chunk * SEGMENTS * 2),
            losses: arena.span(m),
            parts: arena.span(SPLITS * back.min(CHUNK) * hidden),
            d: arena.span(back * hidden),
            du: arena.numbers(back * hidden),
            d_gathered: arena.span(back * hidden),
        }
    }

    fn n_partials(config: &Config, m: usize) -> usize {
        let hidden = config.hidden_size;
        3 * hidden * m.div_ceil(norm_rows(hidden)) + hidden * m.div_ceil(ROWS_PER_SUM)
    }

    /// The rows before the table.
    pub(super) fn states(&self) -> Numbers {
        self.norm.y
    }
}

impl Cuda {
    /// Adds the gradient of a batch as [`crate::mlm::MaskedLm::accumulate`] does. Where memory is short the batch is
    /// halved, which changes the sums in their last bits only.
    pub(crate) fn train_masked(
        &self,
        model: Masked<'_>,
        (batch, weight, dropout): (&MaskedBatch, f32, Dropout),
        gradients: &mut Gradients,
    ) -> Result<f64, Error> {
        match self.try_masked(model, (batch, weight, dropout), gradients) {
            Err(Error::DeviceMemory { .. }) if batch.sentences.n_sentences() > 1 => {
                self.workspace().arena.give_back();
                let mut loss = 0.0;
                for half in batch.halves() {
                    if !half.positions.is_empty() {
                        loss += self.train_masked(model, (&half, weight, dropout), gradients)?;
                    }
                }
                Ok(loss)
            }
            done => done,
        }
    }

    fn try_masked(
        &self,
        model: Masked<'_>,
        (batch, weight, dropout): (&MaskedBatch, f32, Dropout),
        gradients: &mut Gradients,
    ) -> Result<f64, Error> {
        let Masked { parameters, encoder, head } = model;
        let config = encoder.config();
        let kernels = self.kernels(config)?;
        let weights = parameters.on(self, &kernels)?;
        gradients.on(self, &kernels, parameters)?;
        let (n, stride) = (filled_rows(&batch.sentences), weights.n_rows);
        let (m, positions, originals) = filled_positions(&batch.positions, &batch.originals);
        let mut workspace = self.workspace();
        let super::Workspace { arena, parcel, parcel_block, sums_block } = &mut *workspace;
        parcel.clear();
        let inputs = Inputs::pack(config, &batch.sentences, parcel);
        let (positions, originals) = (parcel.put(positions), parcel.put(originals));
        let lay_out = |arena: &mut Arena| {
            let n_partials = Tape::n_partials(config, n) + HeadTape::n_partials(config, m);
            let tape = Tape::lay_out(arena, config, n, true);
            let head = HeadTape::lay_out(arena, config, (m, stride), true);
            (tape, head, Sums::over(arena.span(n_partials)))
        };
        let (tape, own, mut sums) = arena.lay_out(self.precision.size(), lay_out)?;
        gradients.card_mut().make_room((m, stride), n)?;
        sums_block.reserve(super::SUMS_BYTES)?;
        parcel.send(parcel_block)?;
        // Later micro-batches of a step add to what is there.
        let sizes = [n, m, 2 * gradients.card_mut().n_states + usize::from(gradients.has_any())];
        let (errors, states) = gradients.card_mut().next_states(m, stride);
        let inputs = inputs.placed(parcel_block);
        let positions = Parcel::placed(positions, parcel_block);
        let originals = Parcel::placed(originals, parcel_block);

        let written = kernels.written();
        let pass = Pass { kernels: &written, weights: &weights, encoder, inputs, dropout, n };
        pass.forward(&tape)?;
        let before = (tape.hidden(config).y, positions);
        pass.head_forward(head, before, &own)?;
        written.copy(own.states().address, states.address, states.n_bytes())?;
        pass.scores_to_errors(head, (originals, weight), (&own, errors), gradients)?;
        written.play(weights.bucket("masked forward", sizes))?;
        let machine = kernels.machine();
        // While the way back is computed, the processor waits for the losses only, and goes on to the next batch.
        machine.begin_download(own.losses.address, own.losses.n_bytes())?;
        if !parameters.trains(&head.table) {
            gradients.card_mut().forget_states(m);
        }
        let mut back = Back { parameters, gradients, sums: &mut sums };
        pass.head_backward(head, positions, (&tape, &own), &mut back)?;
        pass.backward(&tape, batch.sentences.pieces(), &mut back)?;
        sums.finish(&written, sums_block, gradients.card_mut().values.span())?;
        written.play(weights.bucket("masked backward", sizes))?;
        let mut bytes = vec![0; own.losses.n_bytes()];
        machine.end_download(&mut bytes)?;
        let losses = bytes.chunks_exact(4).map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]]));
        Ok(losses.map(f64::from).sum())
    }
}

impl Pass<'_> {
    /// The rows that meet the table, in the head's tape.
    pub(super) fn head_forward(
        &self,
        head: &Head,
        (hidden, positions): (Numbers, Span<u32>),
        own: &HeadTape,
    ) -> Result<(), Error> {
        let (m, width) = (positions.len(), self.encoder.config().hidden_size);
        launch!(
            self.kernels,
            Gather,
            ([m, 1, 1], 128),
            hidden.span(),
            positions,
            own.gathered.span(),
            n32(width),
        );
        let none = Span::default();
        self.linear_of(m, own.gathered, (&head.dense, width, width), own.dense, none)?;
        self.gelu((&head.dense, width), m, own.dense, (Span::default(), own.activated))?;
        self.norm((own.activated, none, none), &head.norm, Drop::NONE, own.norm.normed)
    }

    /// The scores of some rows of states against the whole table, with bias; and their totals.
    pub(super) fn scores(
        &self,
        head: &Head,
        states: Numbers,
        (scores, totals): (Span<f32>, Span<f32>),
    ) -> Result<(), Error> {
        let (width, stride) = (self.encoder.config().hidden_size, self.weights.n_rows);
        let m = states.len / width;
        self.kernels.product(&Product {
            m,
            n: stride,
            k: width,
            a: Factor::of(states, width),
            b: Factor::of(self.weights.table_product(), width).transposed(),
            out: scores,
            out_row: stride,
            out_batch: 0,
            accumulates: false,
            bias: Span::default(),
            n_batches: 1,
        })?;
        let bias = self.weights.plain(&head.bias);
        let (vocab, stride) = (n32(bias.len()), n32(stride));
        let grid = [SEGMENTS, m, 1];
        launch!(self.kernels, ScoreTotals, (grid, 256), scores, bias, totals, vocab, stride);
        Ok(())
    }

    /// Losses and errors of all states, a chunk at a time; and the gradients of the bias and, in the head's tape, of the
    /// states.
    fn scores_to_errors(
        &self,
        head: &Head,
        (originals, weight): (Span<u32>, f32),
        (own, errors): (&HeadTape, Numbers),
        gradients: &mut Gradients,
    ) -> Result<(), Error> {
        let (width, stride) = (self.encoder.config().hidden_size, self.weights.n_rows);
        let (m, vocab) = (originals.len(), head.bias.len());
        let gradient = gradients.card_mut().at(&head.bias);
        for start in (0..m).step_by(CHUNK) {
            let end = m.min(start + CHUNK);
            let states = own.states().part(start * width..end * width);
            let scores = own.scores.first((end - start) * stride);
            self.scores(head, states, (scores, own.totals))?;
            let errors = errors.part(start * stride..end * stride);
            launch!(
                self.kernels,
                ScoreErrors,
                ([SEGMENTS, end - start, 1], 256),
                scores,
                own.totals,
                originals.part(start..end),
                weight,
                errors.span(),
                own.losses.part(start..end),
                n32(vocab),
                n32(stride),
            );
            let accumulates = u32::from(gradients.mark(&head.bias));
            launch!(
                self.kernels,
                BiasGradient,
                ([vocab.div_ceil(256), 1, 1], 256),
                errors.span(),
                gradient,
                n32(end - start),
                n32(stride),
                accumulates,
            );
            let d = own.d.part(start * width..end * width);
            self.errors_times_table(errors, (own.parts, d))?;
        }
        Ok(())
    }

    /// `d = errors table`: a long sum, cut into parts that fill the card.
    fn errors_times_table(
        &self,
        errors: Numbers,
        (parts, d): (Span<f32>, Span<f32>),
    ) -> Result<(), Error> {
        let (width, stride) = (self.encoder.config().hidden_size, self.weights.n_rows);
        let (m, k) = (errors.len / stride, stride / SPLITS);
        let parts = parts.first(SPLITS * m * width);
        self.kernels.product(&Product {
            m,
            n: width,
            k,
            a: Factor::of(errors, stride).every(k),
            b: Factor::of(self.weights.table_product(), width).every(k * width),
            out: parts,
            out_row: width,
            out_batch: m * width,
            accumulates: false,
            bias: Span::default(),
            n_batches: SPLITS,
        })?;
        let grid = [(m * width).div_ceil(256), 1, 1];
        launch!(self.kernels, AddParts, (grid, 256), parts, d, n32(SPLITS));
        Ok(())
    }

    /// From the gradient of the states to that of the encoder's rows, in `tape.d`.
    fn head_backward(
        &self,
        head: &Head,
        positions: Span<u32>,
        (tape, own): (&Tape, &HeadTape),
        back: &mut Back<'_>,
    ) -> Result<(), Error> {
        let (m, width) = (positions.len(), self.encoder.config().hidden_size);
        let normed = (&head.norm, own.norm.normed);
        let nothing = Numbers::default();
        self.norm_backward(normed, Drop::NONE, (own.d, nothing), (&(0..0), back))?;
        self.gelu_backward((&head.dense, width), (m, own.dense, own.d), own.du, back)?;
        self.weight_gradient((m, own.du, own.gathered), (&head.dense, width, width), back)?;
        self.linear_backward((m, own.du), (&head.dense, width, width), own.d_gathered, false)?;
        self.scatter(own.d_gathered, positions, Drop::NONE, tape)
    }

    /// Puts the gradients of some rows into `tape.d`, and zeros into the others.
    pub(super) fn scatter(
        &self,
        d: Span<f32>,
        rows: Span<u32>,
        drop: Drop,
        tape: &Tape,
    ) -> Result<(), Error> {
        let width = n32(self.encoder.config().hidden_size);
        self.kernels.clear(tape.d)?;
        let over = ([rows.len(), 1, 1], 128);
        launch!(self.kernels, Scatter, over, d, rows, drop, self.inputs.places, tape.d, width);
        Ok(())
    }
}
