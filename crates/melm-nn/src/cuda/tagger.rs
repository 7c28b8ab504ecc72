//! The tagger on a card: emissions, losses of softmax or chain, and back to the encoder.

use super::backward::Back;
use super::encode::Pass;
use super::inputs::{Inputs, filled_rows};
use super::kernels::{Argument, Drop, Kernels, launch};
use super::machine::Span;
use super::memory::{Arena, Parcel, read_floats};
use super::program::{MOST_TAGS, ROWS_PER_SUM};
use super::sums::Sums;
use super::tape::Tape;
use super::weights::Weights;
use super::{Cuda, n32};
use crate::crf;
use crate::dropout::{Dropout, Site};
use crate::encoder::{Encoder, LinearParams};
use crate::error::Error;
use crate::gradients::Gradients;
use crate::params::Parameters;
use crate::tagger::TaggedBatch;
use std::ops::Range;

/// A tagger, as the card reads it.
#[derive(Clone, Copy)]
pub(crate) struct OnCard<'a> {
    pub(crate) parameters: &'a Parameters,
    pub(crate) encoder: &'a Encoder,
    pub(crate) classifier: &'a LinearParams,
    /// Start, transitions, end of the chain, when there is one.
    pub(crate) chain: Option<&'a [Range<usize>; 3]>,
    pub(crate) allowed: Option<&'a crf::AllowedTransitions>,
    pub(crate) n_tags: usize,
}

/// As `tagger.cu` has it.
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

/// Buffers of the head.
struct HeadTape {
    gathered: Span<f32>,
    emissions: Span<f32>,
    d_emissions: Span<f32>,
    d_gathered: Span<f32>,
    origins: Span<f64>,
    marginals: Span<f64>,
    losses: Span<f64>,
}

impl HeadTape {
    fn lay_out(
        arena: &mut Arena,
        model: &OnCard<'_>,
        batch: &TaggedBatch,
        goes_back: bool,
    ) -> Self {
        let (n, width, n_tags) =
            (batch.n_tokens(), model.encoder.config().hidden_size, model.n_tags);
        let back = if goes_back { n } else { 0 };
        let chain = if model.chain.is_some() { back } else { 0 };
        Self {
            gathered: arena.span(n * width),
            emissions: arena.span(n * n_tags),
            d_emissions: arena.span(back * n_tags),
            d_gathered: arena.span(back * width),
            origins: arena.span(chain * n_tags * n_tags),
            marginals: arena.span(chain * n_tags),
            losses: arena.span(back.max(batch.sentences().n_sentences())),
        }
    }

    fn n_partials(model: &OnCard<'_>, batch: &TaggedBatch) -> usize {
        let n = model.n_tags;
        let chain = if model.chain.is_some() { batch.sentences().n_sentences() } else { 0 };
        n * batch.n_tokens().div_ceil(ROWS_PER_SUM) + chain * (n * n + 2 * n)
    }
}

impl Cuda {
    /// Adds the gradient of a batch as [`crate::tagger::Tagger::accumulate`] does, in halves where memory is short.
    pub(crate) fn train_tagger(
        &self,
        model: OnCard<'_>,
        (batch, weight, dropout): (&TaggedBatch, f32, Dropout),
        gradients: &mut Gradients,
    ) -> Result<f64, Error> {
        match self.try_tagger(model, (batch, weight, dropout), gradients) {
            Err(Error::DeviceMemory { .. }) if batch.sentences().n_sentences() > 1 => {
                self.workspace().arena.give_back();
                let mut loss = 0.0;
                for half in batch.halves() {
                    if half.n_tokens() > 0 {
                        loss += self.train_tagger(model, (&half, weight, dropout), gradients)?;
                    }
                }
                Ok(loss)
            }
            done => done,
        }
    }

    fn try_tagger(
        &self,
        model: OnCard<'_>,
        (batch, weight, dropout): (&TaggedBatch, f32, Dropout),
        gradients: &mut Gradients,
    ) -> Result<f64, Error> {
        let OnCard { parameters, encoder, .. } = model;
        if model.chain.is_some() && model.n_tags > MOST_TAGS {
            let reason = format!("a chain of {} tags, of which it takes {MOST_TAGS}", model.n_tags);
            return Err(Error::Cuda { what: "the tagger", reason });
        }
        let config = encoder.config();
        let kernels = self.kernels(config)?;
        let weights = parameters.on(self, &kernels)?;
        gradients.on(self, &kernels, parameters)?;
        let n = filled_rows(batch.sentences());
        let mut workspace = self.workspace();
        let super::Workspace { arena, parcel, parcel_block, sums_block } = &mut *workspace;
        parcel.clear();
        let inputs = Inputs::pack(config, batch.sentences(), parcel);
        let rows = parcel.put(batch.rows().iter().map(|row| n32(*row)));
        let tags = parcel.put(batch.tags().iter().copied());
        let sentences = 0..batch.sentences().n_sentences();
        let ends = parcel.put(sentences.clone().map(|sentence| n32(batch.tokens(sentence).end)));
        let allowed = parcel.put(model.allowed.iter().flat_map(|allowed| allowed.bytes()));
        let lay_out = |arena: &mut Arena| {
            let n_partials = Tape::n_partials(config, n) + HeadTape::n_partials(&model, batch);
            let tape = Tape::lay_out(arena, config, n, true);
            let own = HeadTape::lay_out(arena, &model, batch, true);
            (tape, own, Sums::over(arena.span(n_partials)))
        };
        let (tape, own, mut sums) = arena.lay_out(self.precision.size(), lay_out)?;
        gradients.card_mut().make_room((0, weights.n_rows), n)?;
        sums_block.reserve(super::SUMS_BYTES)?;
        parcel.send(parcel_block)?;
        let inputs = inputs.placed(parcel_block);
        let rows = Parcel::placed(rows, parcel_block);
        let tags = Parcel::placed(tags, parcel_block);
        let ends = Parcel::placed(ends, parcel_block);
        let allowed = Parcel::placed(allowed, parcel_block);

        // Later micro-batches of a step add to what is there.
        let sizes = [n, usize::from(gradients.has_any()), 0];
        let written = kernels.written();
        let pass = Pass { kernels: &written, weights: &weights, encoder, inputs, dropout, n };
        pass.forward(&tape)?;
        pass.emissions(&model, rows, (&tape, &own))?;
        let (n_tags, n_tokens) = (n32(model.n_tags), n32(batch.n_tokens()));
        let n_losses = if let Some(places) = model.chain {
            let n_sentences = sentences.len();
            let size = model.n_tags * (model.n_tags + 2);
            let partial = sums.take(n_sentences, size);
            launch!(
                written,
                ChainLoss,
                ([n_sentences, 1, 1], 128),
                chain(&weights, places, allowed, n_tags),
                own.emissions,
                tags,
                ends,
                weight,
                own.origins,
                own.marginals,
                own.d_emissions,
                partial.span,
                own.losses,
            );
            let mut from = 0;
            for place in places {
                sums.finish_into(&partial, from, (place, gradients));
                from += place.len();
            }
            n_sentences
        } else {
            launch!(
                written,
                SoftmaxLoss,
                ([batch.n_tokens().div_ceil(64), 1, 1], 64),
                own.emissions,
                tags,
                weight,
                own.d_emissions,
                own.losses,
                n_tags,
                n_tokens,
            );
            batch.n_tokens()
        };
        written.play(weights.bucket("tagger forward", sizes))?;
        let mut bytes = vec![0; n_losses * size_of::<f64>()];
        kernels.machine().begin_download(own.losses.address, bytes.len())?;
        let mut back = Back { parameters, gradients, sums: &mut sums };
        pass.emissions_backward(&model, rows, (&tape, &own), &mut back)?;
        pass.backward(&tape, batch.sentences().pieces(), &mut back)?;
        sums.finish(&written, sums_block, gradients.card_mut().values.span())?;
        written.play(weights.bucket("tagger backward", sizes))?;
        kernels.machine().end_download(&mut bytes)?;
        let losses = bytes
            .chunks_exact(8)
            .map(|b| f64::from_le_bytes([b[0], b[1], b[2], b[3], b[4], b[5], b[6], b[7]]));
        Ok(losses.sum())
    }

    /// The emissions of every token of a batch, added to `out`.
    pub(crate) fn tagger_emissions(
        &self,
        model: OnCard<'_>,
        batch: &TaggedBatch,
        out: &mut Vec<f32>,
    ) -> Result<(), Error> {
        match self.try_emissions(&model, batch, out) {
            Err(Error::DeviceMemory { .. }) if batch.sentences().n_sentences() > 1 => {
                self.workspace().arena.give_back();
                for half in batch.halves() {
                    self.tagger_emissions(model, &half, out)?;
                }
                Ok(())
            }
            done => done,
        }
    }

    fn try_emissions(
        &self,
        model: &OnCard<'_>,
        batch: &TaggedBatch,
        out: &mut Vec<f32>,
    ) -> Result<(), Error> {
        let (encoder, config) = (model.encoder, model.encoder.config());
        let kernels = self.kernels(config)?;
        let weights = model.parameters.on(self, &kernels)?;
        let n = filled_rows(batch.sentences());
        let mut workspace = self.workspace();
        let super::Workspace { arena, parcel, parcel_block, .. } = &mut *workspace;
        parcel.clear();
        let inputs = Inputs::pack(config, batch.sentences(), parcel);
        let rows = parcel.put(batch.rows().iter().map(|row| n32(*row)));
        let lay_out = |arena: &mut Arena| {
            let tape = Tape::lay_out(arena, config, n, false);
            (tape, HeadTape::lay_out(arena, model, batch, false))
        };
        let (tape, own) = arena.lay_out(self.precision.size(), lay_out)?;
        parcel.send(parcel_block)?;
        let inputs = inputs.placed(parcel_block);
        let rows = Parcel::placed(rows, parcel_block);
        let dropout = Dropout::NONE;
        let written = kernels.written();
        let pass = Pass { kernels: &written, weights: &weights, encoder, inputs, dropout, n };
        pass.forward(&tape)?;
        pass.emissions(model, rows, (&tape, &own))?;
        written.play(weights.bucket("emissions", [n, 0, 0]))?;
        let start = out.len();
        out.resize(start + own.emissions.len(), 0.0);
        read_floats(&**kernels.machine(), own.emissions, &mut out[start..])
    }
}

fn chain(weights: &Weights, places: &[Range<usize>; 3], allowed: Span<u8>, n_tags: u32) -> Chain {
    let [start, transitions, end] = places.each_ref().map(|place| weights.plain(place));
    Chain { start, transitions, end, allowed, n_tags, unused: 0 }
}

impl Pass<'_> {
    fn emissions(
        &self,
        model: &OnCard<'_>,
        rows: Span<u32>,
        (tape, own): (&Tape, &HeadTape),
    ) -> Result<(), Error> {
        let (kernels, config): (&Kernels, _) = (self.kernels, self.encoder.config());
        let n = rows.len();
        launch!(
            kernels,
            GatherDropped,
            ([n, 1, 1], 128),
            tape.hidden(config).normed.y,
            rows,
            Drop::at(&self.dropout, 0, Site::Classifier),
            self.inputs.places,
            own.gathered,
            n32(config.hidden_size),
        );
        launch!(
            kernels,
            Classify,
            ([n.div_ceil(4), 1, 1], 128),
            own.gathered,
            self.weights.plain(&model.classifier.weight),
            self.weights.plain(&model.classifier.bias),
            own.emissions,
            n32(model.n_tags),
            n32(n),
        );
        Ok(())
    }

    fn emissions_backward(
        &self,
        model: &OnCard<'_>,
        rows: Span<u32>,
        (tape, own): (&Tape, &HeadTape),
        back: &mut Back<'_>,
    ) -> Result<(), Error> {
        let (n, width, n_tags) = (rows.len(), self.encoder.config().hidden_size, model.n_tags);
        let classifier = model.classifier;
        let n_sums = n.div_ceil(ROWS_PER_SUM);
        let partial = back.sums.take(n_sums, n_tags);
        let (d, span) = (own.d_emissions, partial.span);
        let over = ([n_tags.div_ceil(64), n_sums, 1], 64);
        launch!(self.kernels, ColumnSumsPlain, over, d, span, n32(n_tags), n32(n));
        back.sums.finish_into(&partial, 0, (&classifier.bias, back.gradients));
        if back.parameters.trains(&classifier.weight) {
            let accumulates = u32::from(back.gradients.mark(&classifier.weight));
            let out = back.gradients.card_mut().at(&classifier.weight);
            let over = ([width.div_ceil(64), n_tags, 1], 64);
            let x = own.gathered;
            launch!(
                self.kernels,
                ClassifyWeights,
                over,
                d,
                x,
                out,
                n32(n_tags),
                n32(n),
                accumulates
            );
        }
        let weight = self.weights.plain(&classifier.weight);
        let over = ([n, 1, 1], 128);
        launch!(self.kernels, ClassifyBackward, over, d, weight, own.d_gathered, n32(n_tags));
        let drop = Drop::at(&self.dropout, 0, Site::Classifier);
        self.scatter(own.d_gathered, rows, drop, tape)
    }
}
