//! Writing piece by piece: keys and values of what was written stay, so that a step costs one row.

use super::attention::AttentionParams;
use super::feed_forward::FeedForwardParams;
use super::model::Seq2Seq;
use super::pass::NORM_EPS;
use super::stack::StackTape;
use crate::device::Cpu;
use crate::dropout::Dropout;
use crate::encoder::LinearParams;
use crate::ops::linear::Linear;
use crate::ops::norm::{Affine, normalise};
use crate::ops::{add, dot, gelu};
use crate::packed::Packed;
use crate::split::Split;
use std::rc::Rc;

/// Keys and values, `[rows, width]`.
#[derive(Clone, Default)]
struct Seen {
    keys: Vec<f32>,
    values: Vec<f32>,
}

/// One sequence under way.
#[derive(Clone)]
struct Hypothesis {
    n_written: usize,
    /// By layer: what it has written itself, and its source.
    own: Vec<Seen>,
    source: Rc<Vec<Seen>>,
}

/// Several sequences under way.
pub(super) struct Decoding<'m> {
    model: &'m Seq2Seq,
    cpu: &'m Cpu,
    hypotheses: Vec<Hypothesis>,
}

impl<'m> Decoding<'m> {
    /// One sequence for each source, nothing written yet.
    pub(super) fn start(model: &'m Seq2Seq, cpu: &'m Cpu, sources: &Packed) -> Self {
        let (width, mut tape) = (model.config.width, StackTape::default());
        model.encode(cpu, (sources, Dropout::NONE), &mut tape);
        let made = tape.made(width);
        let mut decoding = Self { model, cpu, hypotheses: Vec::new() };
        for sentence in 0..sources.n_sentences() {
            let rows = sources.rows(sentence);
            let rows = &made[rows.start * width..rows.end * width];
            let seen = |cross: &AttentionParams| Seen {
                keys: decoding.linear(&cross.k, (width, width), rows),
                values: decoding.linear(&cross.v, (width, width), rows),
            };
            let layers = model.decoder.layers.iter();
            let source = layers.filter_map(|layer| layer.cross.as_ref().map(seen)).collect();
            let own = vec![Seen::default(); model.decoder.layers.len()];
            decoding.hypotheses.push(Hypothesis { n_written: 0, own, source: Rc::new(source) });
        }
        decoding
    }

    /// Goes on with these sequences only, in this order; one may come several times.
    pub(super) fn keep(&mut self, chosen: &[usize]) {
        self.hypotheses = chosen.iter().map(|at| self.hypotheses[*at].clone()).collect();
    }

    fn linear(
        &self,
        place: &LinearParams,
        (inputs, outputs): (usize, usize),
        x: &[f32],
    ) -> Vec<f32> {
        let (parameters, n) = (&self.model.parameters, x.len() / inputs);
        let mut rows = vec![0.0; n * outputs];
        let linear = Linear { inputs, outputs };
        linear.forward(self.cpu, n, (x, parameters.at(&place.weight)), &mut rows);
        for row in rows.chunks_exact_mut(outputs) {
            add(self.cpu.isa(), row, parameters.at(&place.bias));
        }
        rows
    }

    fn norm(&self, place: &LinearParams, x: &[f32]) -> Vec<f32> {
        let parameters = &self.model.parameters;
        let (weight, bias) = (parameters.at(&place.weight), parameters.at(&place.bias));
        let affine = Affine { weight, bias, eps: NORM_EPS };
        let (mut normed, mut y) = (x.to_vec(), vec![0.0; x.len()]);
        let width = weight.len();
        for (row, y) in normed.chunks_exact_mut(width).zip(y.chunks_exact_mut(width)) {
            normalise(self.cpu.isa(), affine, row, y);
        }
        y
    }

    /// What each row of `q` finds among what it has seen.
    fn attend(&self, (q, n_heads): (&[f32], usize), seen: &[&Seen]) -> Vec<f32> {
        let width = self.model.config.width;
        let mut context = vec![0.0; q.len()];
        let parts = Split::every(&mut context, width);
        self.cpu.each(seen.len(), parts, |at, _, context| {
            let q = &q[at * width..(at + 1) * width];
            attend_row((self.cpu, n_heads), q, seen[at], context);
        });
        context
    }

    /// Reads one more piece of every sequence; the scores `[sequences, pieces]` of what follows.
    pub(super) fn step(&mut self, pieces: &[u32]) -> Vec<f32> {
        let (model, width) = (self.model, self.model.config.width);
        let mut h = vec![0.0; pieces.len() * width];
        for ((row, piece), own) in h.chunks_exact_mut(width).zip(pieces).zip(&self.hypotheses) {
            model.decoder.embed(&model.parameters, (*piece, own.n_written), row);
        }
        h = self.norm(&model.decoder.embedding_norm, &h);
        for (index, layer) in model.decoder.layers.iter().enumerate() {
            self.remember(&layer.own, index, &h);
            self.add_attention(&layer.own, &mut h, |own| &own.own[index]);
            if let Some(cross) = &layer.cross {
                self.add_attention(cross, &mut h, |own| &own.source[index]);
            }
            self.add_feed_forward(&layer.feed_forward, &mut h);
        }
        for own in &mut self.hypotheses {
            own.n_written += 1;
        }
        let states = self.norm(&model.decoder.norm, &h);
        self.scores(&states)
    }

    /// Adds the keys and values of the new rows to what each sequence has written.
    fn remember(&mut self, place: &AttentionParams, layer: usize, h: &[f32]) {
        let width = self.model.config.width;
        let y = self.norm(&place.norm, h);
        let keys = self.linear(&place.k, (width, width), &y);
        let values = self.linear(&place.v, (width, width), &y);
        let rows = keys.chunks_exact(width).zip(values.chunks_exact(width));
        for (own, (key, value)) in self.hypotheses.iter_mut().zip(rows) {
            own.own[layer].keys.extend(key);
            own.own[layer].values.extend(value);
        }
    }

    fn add_attention(
        &self,
        place: &AttentionParams,
        h: &mut [f32],
        seen: impl Fn(&Hypothesis) -> &Seen,
    ) {
        let width = self.model.config.width;
        let y = self.norm(&place.norm, h);
        let q = self.linear(&place.q, (width, width), &y);
        let seen: Vec<_> = self.hypotheses.iter().map(seen).collect();
        let context = self.attend((&q, place.n_heads), &seen);
        add(self.cpu.isa(), h, &self.linear(&place.out, (width, width), &context));
    }

    fn add_feed_forward(&self, place: &FeedForwardParams, h: &mut [f32]) {
        let (parameters, width) = (&self.model.parameters, self.model.config.width);
        let y = self.norm(&place.norm, h);
        let n = h.len() / width;
        let (mut before, mut after) = (vec![0.0; n * place.inner], vec![0.0; n * place.inner]);
        let up = Linear { inputs: width, outputs: place.inner };
        up.forward(self.cpu, n, (&y, parameters.at(&place.up.weight)), &mut before);
        gelu::forward(self.cpu, parameters.at(&place.up.bias), &mut before, &mut after);
        add(self.cpu.isa(), h, &self.linear(&place.down, (place.inner, width), &after));
    }

    fn scores(&self, states: &[f32]) -> Vec<f32> {
        let output = self.model.output();
        let (n, vocab_size) = (states.len() / output.width, output.bias.len());
        let mut scores = vec![0.0; n * vocab_size];
        let linear = Linear { inputs: output.width, outputs: vocab_size };
        linear.forward(self.cpu, n, (states, output.table), &mut scores);
        for row in scores.chunks_exact_mut(vocab_size) {
            add(self.cpu.isa(), row, output.bias);
        }
        scores
    }
}

/// One row's attention, head by head.
fn attend_row((cpu, n_heads): (&Cpu, usize), q: &[f32], seen: &Seen, context: &mut [f32]) {
    let width = q.len();
    let size = width / n_heads;
    let scale = 1.0 / (size as f32).sqrt();
    for (head, context) in context.chunks_exact_mut(size).enumerate() {
        let at = head * size..(head + 1) * size;
        let keys = seen.keys.chunks_exact(width);
        let scores = keys.map(|key| scale * dot(cpu.isa(), &q[at.clone()], &key[at.clone()]));
        let scores: Vec<f32> = scores.collect();
        let largest = scores.iter().copied().fold(f32::NEG_INFINITY, f32::max);
        let weights: Vec<f32> = scores.iter().map(|score| (score - largest).exp()).collect();
        let total: f32 = weights.iter().sum();
        for (weight, value) in weights.iter().zip(seen.values.chunks_exact(width)) {
            for (x, value) in context.iter_mut().zip(&value[at.clone()]) {
                *x += weight / total * value;
            }
        }
    }
}
