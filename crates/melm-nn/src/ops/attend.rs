//! Attention of one sequence's rows to another's, or to its own and those before: an encoder-decoder needs both.
#![expect(clippy::many_single_char_names, reason = "the letters of matrix algebra")]

use super::attention::{softmax, softmax_backward};
use super::norm::drop_row;
use crate::device::Cpu;
use crate::dropout::{Dropout, RowMask, Site};
use crate::isa::Isa;
use crate::packed::Packed;
use crate::product::{Left, Out, Right, Shape, pack_columns, small_product};
use crate::split::Split;

/// The sizes of an attention, whether a row sees those after it, and where its dropout is drawn.
#[derive(Clone, Copy)]
pub(crate) struct Attend {
    pub(crate) n_heads: usize,
    pub(crate) hidden: usize,
    pub(crate) is_causal: bool,
    pub(crate) layer: usize,
    pub(crate) dropout: Dropout,
}

/// Where each sentence's query rows, key rows and probabilities begin, in elements.
#[derive(Default)]
pub(crate) struct Cuts {
    queries: Vec<usize>,
    keys: Vec<usize>,
    probabilities: Vec<usize>,
}

impl Cuts {
    pub(crate) fn set(&mut self, queries: &Packed, keys: &Packed, attend: &Attend) {
        for cuts in [&mut self.queries, &mut self.keys, &mut self.probabilities] {
            cuts.clear();
            cuts.push(0);
        }
        let mut total = 0;
        for sentence in 0..queries.n_sentences() {
            let (query, key) = (queries.rows(sentence), keys.rows(sentence));
            self.queries.push(query.end * attend.hidden);
            self.keys.push(key.end * attend.hidden);
            total += attend.n_heads * query.len() * key.len();
            self.probabilities.push(total);
        }
    }

    /// Probabilities of the whole batch.
    pub(crate) fn n_probabilities(&self) -> usize {
        self.probabilities.last().copied().unwrap_or(0)
    }
}

/// One head of one sentence: its first column, its key for dropout and its number.
#[derive(Clone, Copy)]
struct Head {
    at: usize,
    sentence: u64,
    number: usize,
}

impl Attend {
    fn head_size(&self) -> usize {
        self.hidden / self.n_heads
    }

    fn scale(&self) -> f32 {
        1.0 / (self.head_size() as f32).sqrt()
    }

    fn head(&self, sentence: u64, number: usize) -> Head {
        Head { at: number * self.head_size(), sentence, number }
    }

    /// Every head draws its own rows: position and head make one number.
    fn mask(&self, head: Head, position: usize) -> RowMask {
        let place = position * self.n_heads + head.number;
        self.dropout.row(self.layer, Site::Attention, head.sentence, place)
    }

    /// The context of every query row and, for the backward pass, the probabilities. Biases are in already.
    pub(crate) fn forward(
        &self,
        cpu: &Cpu,
        (queries, cuts): (&Packed, &Cuts),
        [q, k, v]: [&[f32]; 3],
        (probabilities, context): (&mut [f32], &mut [f32]),
    ) {
        let parts =
            (Split::at(probabilities, &cuts.probabilities), Split::at(context, &cuts.queries));
        cpu.each(queries.n_sentences(), parts, |sentence, worker, (probabilities, context)| {
            let q = &q[cuts.queries[sentence]..cuts.queries[sentence + 1]];
            let [k, v] = [k, v].map(|rows| &rows[cuts.keys[sentence]..cuts.keys[sentence + 1]]);
            let size = probabilities.len() / self.n_heads;
            let mut scratch = cpu.scratch(worker);
            scratch.reserve(k.len() + size);
            for (number, probabilities) in probabilities.chunks_exact_mut(size).enumerate() {
                let head = self.head(queries.key(sentence), number);
                let out = (probabilities, &mut *context);
                self.forward_head(cpu.isa(), head, [q, k, v], out, &mut scratch);
            }
        });
    }

    fn forward_head(
        &self,
        isa: Isa,
        head: Head,
        [q, k, v]: [&[f32]; 3],
        (probabilities, context): (&mut [f32], &mut [f32]),
        scratch: &mut [f32],
    ) {
        let (size, hidden, at) = (self.head_size(), self.hidden, head.at);
        let (m, n) = (q.len() / hidden, k.len() / hidden);
        let (key_columns, dropped) = scratch[..size * n + m * n].split_at_mut(size * n);
        pack_columns(isa, &k[at..], hidden, n, key_columns);
        let out = Out { data: probabilities, row: n, accumulates: false };
        let factors = (Left::rows(&q[at..], hidden), Right::rows(key_columns, n));
        small_product(isa, Shape { m, k: size, n }, factors.0, factors.1, out);
        for (position, row) in probabilities.chunks_exact_mut(n).enumerate() {
            let n_seen = if self.is_causal { position + 1 } else { n };
            softmax(isa, self.scale(), &mut row[..n_seen]);
            row[n_seen..].fill(0.0);
        }
        self.drop(isa, head, (probabilities, n), dropped);
        let out = Out { data: &mut context[at..], row: hidden, accumulates: false };
        let factors = (Left::rows(dropped, n), Right::rows(&v[at..], hidden));
        small_product(isa, Shape { m, k: n, n: size }, factors.0, factors.1, out);
    }

    /// The probabilities after dropout.
    fn drop(&self, isa: Isa, head: Head, (probabilities, n): (&[f32], usize), out: &mut [f32]) {
        out.copy_from_slice(probabilities);
        for (position, row) in out.chunks_exact_mut(n).enumerate() {
            drop_row(isa, self.mask(head, position), row);
        }
    }

    /// The gradients of queries, keys and values from that of the context.
    pub(crate) fn backward(
        &self,
        cpu: &Cpu,
        (queries, cuts): (&Packed, &Cuts),
        ([q, k, v], probabilities, d_context): ([&[f32]; 3], &[f32], &[f32]),
        [d_q, d_k, d_v]: [&mut [f32]; 3],
    ) {
        let parts =
            (Split::at(d_q, &cuts.queries), Split::at(d_k, &cuts.keys), Split::at(d_v, &cuts.keys));
        cpu.each(queries.n_sentences(), parts, |sentence, worker, (d_q, d_k, d_v)| {
            let own = cuts.queries[sentence]..cuts.queries[sentence + 1];
            let (q, d_context) = (&q[own.clone()], &d_context[own]);
            let [k, v] = [k, v].map(|rows| &rows[cuts.keys[sentence]..cuts.keys[sentence + 1]]);
            let own = cuts.probabilities[sentence]..cuts.probabilities[sentence + 1];
            let size = own.len() / self.n_heads;
            let mut scratch = cpu.scratch(worker);
            scratch.reserve(k.len() + 2 * size);
            for (number, probabilities) in probabilities[own].chunks_exact(size).enumerate() {
                let head = self.head(queries.key(sentence), number);
                let saved = ([q, k, v], probabilities, d_context);
                let out = [&mut *d_q, &mut *d_k, &mut *d_v];
                self.backward_head(cpu.isa(), head, saved, out, &mut scratch);
            }
        });
    }

    fn backward_head(
        &self,
        isa: Isa,
        head: Head,
        ([q, k, v], probabilities, d_context): ([&[f32]; 3], &[f32], &[f32]),
        [d_q, d_k, d_v]: [&mut [f32]; 3],
        scratch: &mut [f32],
    ) {
        let (size, hidden, at) = (self.head_size(), self.hidden, head.at);
        let (m, n) = (q.len() / hidden, k.len() / hidden);
        let (value_columns, rest) = scratch[..size * n + 2 * m * n].split_at_mut(size * n);
        let (dropped, d) = rest.split_at_mut(m * n);
        self.drop(isa, head, (probabilities, n), dropped);
        pack_columns(isa, &v[at..], hidden, n, value_columns);
        let d_head = &d_context[at..];
        let out = Out { data: &mut *d, row: n, accumulates: false };
        let factors = (Left::rows(d_head, hidden), Right::rows(value_columns, n));
        small_product(isa, Shape { m, k: size, n }, factors.0, factors.1, out);
        let over_queries = Shape { m: n, k: m, n: size };
        let to = |data| Out { data, row: hidden, accumulates: false };
        let factors = (Left::columns(dropped, n), Right::rows(d_head, hidden));
        small_product(isa, over_queries, factors.0, factors.1, to(&mut d_v[at..]));
        let rows = d.chunks_exact_mut(n).zip(probabilities.chunks_exact(n));
        for (position, (d, p)) in rows.enumerate() {
            softmax_backward(isa, self.mask(head, position), self.scale(), p, d);
        }
        let factors = (Left::rows(d, n), Right::rows(&k[at..], hidden));
        small_product(isa, Shape { m, k: n, n: size }, factors.0, factors.1, to(&mut d_q[at..]));
        let factors = (Left::columns(d, n), Right::rows(&q[at..], hidden));
        small_product(isa, over_queries, factors.0, factors.1, to(&mut d_k[at..]));
    }
}
