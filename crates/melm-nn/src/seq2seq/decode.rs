//! Decodes piece by piece. The keys and values of earlier pieces are cached, so that a step computes only one row for
//! each target.

use super::attention::AttentionParams;
use super::feed_forward::FeedForwardParams;
use super::model::Seq2Seq;
use super::pass::NORM_EPS;
use super::stack::StackTape;
use crate::device::Cpu;
use crate::dropout::Dropout;
use crate::encoder::LinearParams;
use crate::error::Error;
use crate::isa::Isa;
use crate::ops::linear::Linear;
use crate::ops::norm::{Affine, normalise};
use crate::ops::{add, dot, gelu};
use crate::packed::Packed;
use crate::split::Split;
use std::rc::Rc;

/// Cached keys and values of one layer, `[rows, width]`.
#[derive(Clone, Default)]
struct Cache {
    keys: Vec<f32>,
    values: Vec<f32>,
}

/// One target that is being decoded.
#[derive(Clone)]
struct Hypothesis {
    n_written: usize,
    /// For each layer, the keys and values of the pieces generated so far.
    own: Vec<Cache>,
    /// For each layer, the keys and values of the source.
    source: Rc<Vec<Cache>>,
}

/// Several targets that are being decoded.
pub(super) struct Decoding<'m> {
    model: &'m Seq2Seq,
    cpu: &'m Cpu,
    hypotheses: Vec<Hypothesis>,
}

impl<'m> Decoding<'m> {
    /// Starts one empty target for each source.
    pub(super) fn start(model: &'m Seq2Seq, cpu: &'m Cpu, sources: &Packed) -> Result<Self, Error> {
        let (width, mut tape) = (model.config.width, StackTape::default());
        model.encode(cpu, sources, Dropout::NONE, &mut tape)?;
        let memory = tape.output(width);
        let mut decoding = Self { model, cpu, hypotheses: Vec::new() };
        for sentence in 0..sources.n_sentences() {
            let rows = sources.rows(sentence);
            let rows = &memory[rows.start * width..rows.end * width];
            let cache = |cross: &AttentionParams| Cache {
                keys: decoding.linear(&cross.key, rows),
                values: decoding.linear(&cross.value, rows),
            };
            let layers = model.decoder.layers.iter();
            let source =
                layers.filter_map(|layer| layer.cross_attention.as_ref().map(cache)).collect();
            let own = vec![Cache::default(); model.decoder.layers.len()];
            decoding.hypotheses.push(Hypothesis { n_written: 0, own, source: Rc::new(source) });
        }
        Ok(decoding)
    }

    /// Keeps only the given targets, in the given order. An index may occur several times.
    pub(super) fn keep(&mut self, chosen: &[usize]) {
        self.hypotheses = chosen.iter().map(|at| self.hypotheses[*at].clone()).collect();
    }

    fn linear(&self, params: &LinearParams, x: &[f32]) -> Vec<f32> {
        let (parameters, linear) = (&self.model.parameters, params.linear());
        let (weight, bias) = (parameters.at(&params.weight), parameters.at(&params.bias));
        let mut rows = vec![0.0; x.len() / linear.inputs * linear.outputs];
        linear.forward_with_bias(self.cpu, x, weight, bias, &mut rows);
        rows
    }

    fn norm(&self, params: &LinearParams, x: &[f32]) -> Vec<f32> {
        let parameters = &self.model.parameters;
        let (weight, bias) = (parameters.at(&params.weight), parameters.at(&params.bias));
        let affine = Affine { weight, bias, eps: NORM_EPS };
        let (mut normed, mut y) = (x.to_vec(), vec![0.0; x.len()]);
        let width = weight.len();
        for (row, y) in normed.chunks_exact_mut(width).zip(y.chunks_exact_mut(width)) {
            normalise(self.cpu.isa(), affine, row, y);
        }
        y
    }

    /// Computes the attention of each row of `queries` to the cache of its target.
    fn attend(&self, queries: &[f32], n_heads: usize, caches: &[&Cache]) -> Vec<f32> {
        let width = self.model.config.width;
        let mut context = vec![0.0; queries.len()];
        let parts = Split::every(&mut context, width);
        self.cpu.each(caches.len(), parts, |at, _, context| {
            let query = &queries[at * width..(at + 1) * width];
            attend_row(self.cpu.isa(), query, n_heads, caches[at], context);
        });
        context
    }

    /// Reads the next piece of every target. Returns the scores of the piece after it, `[targets, vocabulary]`.
    pub(super) fn step(&mut self, pieces: &[u32]) -> Vec<f32> {
        let (model, width) = (self.model, self.model.config.width);
        let mut h = vec![0.0; pieces.len() * width];
        for ((row, piece), own) in h.chunks_exact_mut(width).zip(pieces).zip(&self.hypotheses) {
            model.decoder.embed(&model.parameters, *piece, own.n_written, row);
        }
        h = self.norm(&model.decoder.embedding_norm, &h);
        for (index, layer) in model.decoder.layers.iter().enumerate() {
            self.extend_cache(&layer.self_attention, index, &h);
            self.add_attention(&layer.self_attention, &mut h, |own| &own.own[index]);
            if let Some(cross) = &layer.cross_attention {
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

    /// Appends the keys and values of the new rows to the cache of each target.
    fn extend_cache(&mut self, params: &AttentionParams, layer: usize, h: &[f32]) {
        let width = self.model.config.width;
        let y = self.norm(&params.norm, h);
        let keys = self.linear(&params.key, &y);
        let values = self.linear(&params.value, &y);
        let rows = keys.chunks_exact(width).zip(values.chunks_exact(width));
        for (own, (key, value)) in self.hypotheses.iter_mut().zip(rows) {
            own.own[layer].keys.extend(key);
            own.own[layer].values.extend(value);
        }
    }

    fn add_attention(
        &self,
        params: &AttentionParams,
        h: &mut [f32],
        cache: impl Fn(&Hypothesis) -> &Cache,
    ) {
        let y = self.norm(&params.norm, h);
        let queries = self.linear(&params.query, &y);
        let caches: Vec<_> = self.hypotheses.iter().map(cache).collect();
        let context = self.attend(&queries, params.n_heads, &caches);
        add(self.cpu.isa(), h, &self.linear(&params.output, &context));
    }

    fn add_feed_forward(&self, params: &FeedForwardParams, h: &mut [f32]) {
        let parameters = &self.model.parameters;
        let y = self.norm(&params.norm, h);
        let len = h.len() / self.model.config.width * params.inner;
        let (mut before, mut after) = (vec![0.0; len], vec![0.0; len]);
        let weight = parameters.at(&params.up.weight);
        params.up.linear().forward(self.cpu, &y, weight, &mut before);
        let bias = parameters.at(&params.up.bias);
        gelu::forward(self.cpu, params.inner, bias, &mut before, &mut after);
        add(self.cpu.isa(), h, &self.linear(&params.down, &after));
    }

    fn scores(&self, states: &[f32]) -> Vec<f32> {
        let output = self.model.output();
        let vocab_size = output.bias.len();
        let mut scores = vec![0.0; states.len() / output.width * vocab_size];
        let linear = Linear { inputs: output.width, outputs: vocab_size };
        linear.forward_with_bias(self.cpu, states, output.table, output.bias, &mut scores);
        scores
    }
}

/// Computes the attention of one row to its cache, head by head.
fn attend_row(isa: Isa, query: &[f32], n_heads: usize, cache: &Cache, context: &mut [f32]) {
    let width = query.len();
    let size = width / n_heads;
    let scale = 1.0 / (size as f32).sqrt();
    for (head, context) in context.chunks_exact_mut(size).enumerate() {
        let at = head * size..(head + 1) * size;
        let keys = cache.keys.chunks_exact(width);
        let scores = keys.map(|key| scale * dot(isa, &query[at.clone()], &key[at.clone()]));
        let scores: Vec<f32> = scores.collect();
        let largest = scores.iter().copied().fold(f32::NEG_INFINITY, f32::max);
        let weights: Vec<f32> = scores.iter().map(|score| (score - largest).exp()).collect();
        let total: f32 = weights.iter().sum();
        for (weight, value) in weights.iter().zip(cache.values.chunks_exact(width)) {
            for (x, value) in context.iter_mut().zip(&value[at.clone()]) {
                *x += weight / total * value;
            }
        }
    }
}
