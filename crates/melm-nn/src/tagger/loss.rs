//! The loss of the tags and its gradient, with a softmax or a CRF.

use super::decoder::Decoder;
use super::head::HeadTape;
use super::{HeadKind, TaggedBatch, TaggerSettings};
use crate::crf::{Chain, Scores};
use crate::error::Error;
use crate::gradients::Gradients;
use crate::ops::linear::Accumulator;
use crate::params::Parameters;
use std::ops::Range;

/// The loss of a tagger, and the ranges of the scores of the CRF.
pub(super) struct TagLoss {
    settings: TaggerSettings,
    /// The ranges of the start, transition and end scores of the CRF, or `None` without a CRF.
    pub(super) crf: Option<[Range<usize>; 3]>,
    /// Zeros that are used as transition scores if there is no CRF.
    zeros: Vec<f32>,
}

impl TagLoss {
    /// The names of the tensors of the CRF, as in `pytorch-crf`.
    pub(super) const NAMES: [&str; 3] =
        ["crf.start_transitions", "crf.transitions", "crf.end_transitions"];

    pub(super) fn new(settings: TaggerSettings, parameters: &Parameters) -> Self {
        let has_crf = settings.kind == HeadKind::Crf;
        let crf = has_crf.then(|| Self::NAMES.map(|name| parameters.span(name, name)));
        Self { zeros: vec![0.0; settings.n_tags * settings.n_tags], settings, crf }
    }

    pub(super) fn settings(&self) -> &TaggerSettings {
        &self.settings
    }

    /// Sets `chain` to the scores of the CRF. Without a CRF these scores are zero, so that each token has an
    /// independent softmax.
    pub(super) fn set_chain(
        &self,
        parameters: &Parameters,
        chain: &mut Chain,
    ) -> Result<(), Error> {
        let (n, allowed) = (self.settings.n_tags, self.settings.allowed.as_ref());
        if let Some([start, transitions, end]) = &self.crf {
            let [start, transitions, end] =
                [parameters.read(start)?, parameters.read(transitions)?, parameters.read(end)?];
            let scores = Scores { start: &start, transitions: &transitions, end: &end };
            chain.set(scores, allowed);
        } else {
            let (ends, transitions) = (&self.zeros[..n], &self.zeros[..]);
            chain.set(Scores { start: ends, transitions, end: ends }, allowed);
        }
        Ok(())
    }

    /// Returns the sum of the negative log-likelihoods of all tokens (without a CRF) or of all sentences (with a CRF).
    ///
    /// The gradient of `weight` times this sum is written to the tape of the head for the emissions, and added to
    /// `gradients` for the scores of the CRF. `gradients` is unchanged after an error.
    pub(super) fn train(
        &self,
        parameters: &Parameters,
        batch: &TaggedBatch,
        weight: f32,
        head: &mut HeadTape,
        gradients: &mut Gradients,
    ) -> Result<f64, Error> {
        let (n, len) = (self.settings.n_tags, batch.n_tokens() * self.settings.n_tags);
        head.d_emissions.try_reserve(len)?;
        let (emissions, d_emissions) = (&head.emissions[..len], &mut head.d_emissions[..len]);
        let Some(crf) = &self.crf else {
            let rows = emissions.chunks_exact(n).zip(d_emissions.chunks_exact_mut(n));
            return Ok(rows
                .zip(batch.tags())
                .map(|((x, d), tag)| softmax(x, d, *tag, weight))
                .sum());
        };
        let Decoder { chain, lattice } = &mut head.decoder;
        self.set_chain(parameters, chain)?;
        head.chain_gradient.clear(n);
        let mut loss = 0.0;
        for sentence in 0..batch.sentences().n_sentences() {
            let tokens = batch.tokens(sentence);
            let rows = tokens.start * n..tokens.end * n;
            loss += chain.accumulate(
                &emissions[rows.clone()],
                &batch.tags()[tokens],
                f64::from(weight),
                lattice,
                &mut d_emissions[rows],
                &mut head.chain_gradient,
            )?;
        }
        let gradient = &head.chain_gradient;
        let values = [&gradient.start, &gradient.transitions, &gradient.end];
        for (range, values) in crf.iter().zip(values) {
            add_into(values, gradients.slot(range));
        }
        Ok(loss)
    }
}

/// Returns the negative log-likelihood of `tag` under the softmax of `scores`. Writes the gradient of `weight` times
/// this loss to `d`.
#[expect(clippy::cast_possible_truncation, reason = "the precision of the engine")]
fn softmax(scores: &[f32], d: &mut [f32], tag: u32, weight: f32) -> f64 {
    let largest = scores.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let exponential = |score: f32| (f64::from(score) - f64::from(largest)).exp();
    let total: f64 = scores.iter().map(|score| exponential(*score)).sum();
    for ((index, d), score) in (0..).zip(d).zip(scores) {
        let is_gold = f64::from(u8::from(index == tag));
        *d = (f64::from(weight) * (exponential(*score) / total - is_gold)) as f32;
    }
    total.ln() + f64::from(largest) - f64::from(scores[tag as usize])
}

fn add_into(values: &[f64], out: Accumulator<'_>) {
    let Accumulator { data, accumulates } = out;
    for (out, value) in data.iter_mut().zip(values) {
        #[expect(clippy::cast_possible_truncation, reason = "the precision of the engine")]
        let value = *value as f32;
        *out = if accumulates { *out + value } else { value };
    }
}
