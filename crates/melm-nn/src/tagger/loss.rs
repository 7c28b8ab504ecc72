//! From emissions to a loss and its gradient: softmax or CRF.

use super::head::HeadTape;
use super::{HeadKind, TaggedBatch, TaggerSettings};
use crate::crf::{Chain, Scores};
use crate::error::Error;
use crate::gradients::Gradients;
use crate::ops::linear::Accumulator;
use crate::params::Parameters;
use std::ops::Range;

/// Where the CRF's scores are, when there is one.
pub(super) struct Loss {
    settings: TaggerSettings,
    /// Start, transitions, end.
    pub(super) places: Option<[Range<usize>; 3]>,
    /// Scores of transitions where there is no CRF: none is better than another.
    zeros: Vec<f32>,
}

impl Loss {
    /// The CRF's tensors, named as `pytorch-crf` names them.
    pub(super) const NAMES: [&str; 3] =
        ["crf.start_transitions", "crf.transitions", "crf.end_transitions"];

    pub(super) fn new(settings: TaggerSettings, parameters: &Parameters) -> Self {
        let has_crf = settings.kind == HeadKind::Crf;
        let places = has_crf.then(|| Self::NAMES.map(|name| parameters.span(name, name)));
        Self { zeros: vec![0.0; settings.n_tags * settings.n_tags], settings, places }
    }

    pub(super) fn settings(&self) -> &TaggerSettings {
        &self.settings
    }

    /// Sets `chain` to the CRF's scores; without a CRF to zeros, at which it is a softmax for every token.
    pub(super) fn set(&self, parameters: &Parameters, chain: &mut Chain) -> Result<(), Error> {
        let (n, allowed) = (self.settings.n_tags, self.settings.allowed.as_ref());
        if let Some([start, transitions, end]) = &self.places {
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

    /// The sum of the negative log-likelihoods, of every token or of every sentence; the gradient of `weight` times
    /// the sum goes to the head's tape and, for the CRF's own scores, to `gradients`, which an error leaves as it was.
    pub(super) fn train(
        &self,
        parameters: &Parameters,
        (batch, weight): (&TaggedBatch, f32),
        (head, gradients): (&mut HeadTape, &mut Gradients),
    ) -> Result<f64, Error> {
        let (n, len) = (self.settings.n_tags, batch.n_tokens() * self.settings.n_tags);
        head.d_emissions.reserve(len);
        let (emissions, d_emissions) = (&head.emissions[..len], &mut head.d_emissions[..len]);
        let Some(places) = &self.places else {
            let rows = emissions.chunks_exact(n).zip(d_emissions.chunks_exact_mut(n));
            return Ok(rows
                .zip(batch.tags())
                .map(|((x, d), tag)| softmax(x, d, *tag, weight))
                .sum());
        };
        self.set(parameters, &mut head.chain)?;
        head.chain_gradient.clear(n);
        let mut loss = 0.0;
        for sentence in 0..batch.sentences().n_sentences() {
            let tokens = batch.tokens(sentence);
            let rows = tokens.start * n..tokens.end * n;
            loss += head.chain.accumulate(
                &emissions[rows.clone()],
                &batch.tags()[tokens],
                f64::from(weight),
                &mut head.lattice,
                &mut d_emissions[rows],
                &mut head.chain_gradient,
            )?;
        }
        let gradient = &head.chain_gradient;
        let values = [&gradient.start, &gradient.transitions, &gradient.end];
        for (place, values) in places.iter().zip(values) {
            add_into(values, gradients.slot(place));
        }
        Ok(loss)
    }
}

/// The negative log-likelihood of `tag` under the softmax of `scores`; `weight` times its gradient goes to `d`.
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

fn add_into(values: &[f64], Accumulator { data, accumulates }: Accumulator<'_>) {
    for (out, value) in data.iter_mut().zip(values) {
        #[expect(clippy::cast_possible_truncation, reason = "the precision of the engine")]
        let value = *value as f32;
        *out = if accumulates { *out + value } else { value };
    }
}
