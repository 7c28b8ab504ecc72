//! Self-attention, sentence by sentence and head by head: no row ever sees another sentence.

use crate::device::Cpu;
use crate::dropout::{Dropout, RowMask, Site};
use crate::isa::{Isa, per_isa};
use crate::math::{exp, largest_of, sum_of};
use crate::ops::norm::drop_row;
use crate::packed::Packed;
use crate::product::{Left, Out, Right, Shape, pack_columns, small_product};
use crate::split::Split;

/// The sizes of an attention and where its dropout is drawn.
#[derive(Clone, Copy)]
pub(crate) struct Attention {
    pub(crate) n_heads: usize,
    pub(crate) hidden: usize,
    pub(crate) layer: usize,
    pub(crate) dropout: Dropout,
}

/// Where each sentence's rows and probabilities begin, in elements.
#[derive(Default)]
pub(crate) struct AttentionCuts {
    rows: Vec<usize>,
    wide_rows: Vec<usize>,
    probabilities: Vec<usize>,
}

impl AttentionCuts {
    pub(crate) fn set(&mut self, batch: &Packed, n_heads: usize, hidden: usize) {
        let Self { rows, wide_rows, probabilities } = self;
        for cuts in [&mut *rows, &mut *wide_rows, &mut *probabilities] {
            cuts.clear();
            cuts.push(0);
        }
        let mut total = 0;
        for sentence in 0..batch.n_sentences() {
            let at = batch.rows(sentence);
            rows.push(at.end * hidden);
            wide_rows.push(at.end * 3 * hidden);
            total += n_heads * at.len() * at.len();
            probabilities.push(total);
        }
    }

    /// Probabilities of the whole batch.
    pub(crate) fn n_probabilities(&self) -> usize {
        self.probabilities.last().copied().unwrap_or(0)
    }
}

per_isa! {
    /// The softmax of `scale * row`, in place.
    pub(super) fn softmax(scale: f32, row: &mut [f32]) {
        let largest = largest_of(row);
        for x in row.iter_mut() {
            *x = exp((*x - largest) * scale);
        }
        let total = sum_of(row, row, |x, _| x);
        for x in row {
            *x /= total;
        }
    }
}

per_isa! {
    /// From the gradient of the dropped probabilities to that of the products of query and key, in place.
    pub(super) fn softmax_backward(mask: RowMask, scale: f32, probabilities: &[f32], d: &mut [f32]) {
        if !mask.keeps_all() {
            for (d, column) in d.iter_mut().zip(0_u32..) {
                *d *= mask.factor(column);
            }
        }
        let mean = sum_of(d, probabilities, |d, p| d * p);
        for (d, p) in d.iter_mut().zip(probabilities) {
            *d = scale * p * (*d - mean);
        }
    }
}

impl Attention {
    fn head_size(&self) -> usize {
        self.hidden / self.n_heads
    }

    fn scale(&self) -> f32 {
        1.0 / (self.head_size() as f32).sqrt()
    }

    /// Every head draws its own rows: position and head make one number.
    fn mask(&self, sentence: u64, head: usize, position: usize) -> RowMask {
        self.dropout.row(self.layer, Site::Attention, sentence, position * self.n_heads + head)
    }

    /// Adds `bias` to query, key and value, and attends: `context` and, for the backward pass, the probabilities.
    pub(crate) fn forward(
        &self,
        cpu: &Cpu,
        (batch, cuts): (&Packed, &AttentionCuts),
        (qkv, bias): (&mut [f32], &[f32]),
        (probabilities, context): (&mut [f32], &mut [f32]),
    ) {
        let parts = (
            Split::at(qkv, &cuts.wide_rows),
            Split::at(probabilities, &cuts.probabilities),
            Split::at(context, &cuts.rows),
        );
        cpu.each(batch.n_sentences(), parts, |sentence, worker, (qkv, probabilities, context)| {
            for row in qkv.chunks_exact_mut(3 * self.hidden) {
                super::add(cpu.isa(), row, bias);
            }
            let n = batch.rows(sentence).len();
            let mut scratch = cpu.scratch(worker);
            scratch.reserve(self.head_size() * n + n * n);
            for (head, probabilities) in probabilities.chunks_exact_mut(n * n).enumerate() {
                let key = batch.key(sentence);
                self.forward_head(
                    cpu.isa(),
                    (key, head),
                    qkv,
                    (probabilities, context),
                    &mut scratch,
                );
            }
        });
    }

    fn forward_head(
        &self,
        isa: Isa,
        (sentence, head): (u64, usize),
        qkv: &[f32],
        (probabilities, context): (&mut [f32], &mut [f32]),
        scratch: &mut [f32],
    ) {
        let (size, wide) = (self.head_size(), 3 * self.hidden);
        let n = qkv.len() / wide;
        let at = head * size;
        let (key_columns, dropped) = scratch[..size * n + n * n].split_at_mut(size * n);
        pack_columns(isa, &qkv[self.hidden + at..], wide, n, key_columns);
        let shape = Shape { m: n, k: size, n };
        let out = Out { data: probabilities, row: n, accumulates: false };
        small_product(isa, shape, Left::rows(&qkv[at..], wide), Right::rows(key_columns, n), out);
        for row in probabilities.chunks_exact_mut(n) {
            softmax(isa, self.scale(), row);
        }
        self.drop(isa, (sentence, head), probabilities, dropped);
        let out = Out { data: &mut context[at..], row: self.hidden, accumulates: false };
        let values = Right::rows(&qkv[2 * self.hidden + at..], wide);
        small_product(isa, Shape { m: n, k: n, n: size }, Left::rows(dropped, n), values, out);
    }

    /// The probabilities after dropout.
    fn drop(
        &self,
        isa: Isa,
        (sentence, head): (u64, usize),
        probabilities: &[f32],
        dropped: &mut [f32],
    ) {
        dropped.copy_from_slice(probabilities);
        let n = dropped.len().isqrt();
        for (position, row) in dropped.chunks_exact_mut(n).enumerate() {
            drop_row(isa, self.mask(sentence, head, position), row);
        }
    }

    /// The gradient of query, key and value from that of the context.
    pub(crate) fn backward(
        &self,
        cpu: &Cpu,
        (batch, cuts): (&Packed, &AttentionCuts),
        (qkv, probabilities, d_context): (&[f32], &[f32], &[f32]),
        d_qkv: &mut [f32],
    ) {
        let parts = Split::at(d_qkv, &cuts.wide_rows);
        cpu.each(batch.n_sentences(), parts, |sentence, worker, d_qkv| {
            let rows = batch.rows(sentence);
            let n = rows.len();
            let qkv = &qkv[cuts.wide_rows[sentence]..cuts.wide_rows[sentence + 1]];
            let d_context = &d_context[cuts.rows[sentence]..cuts.rows[sentence + 1]];
            let probabilities = &probabilities[cuts.probabilities[sentence]..];
            let mut scratch = cpu.scratch(worker);
            scratch.reserve(self.head_size() * n + 2 * n * n);
            for (head, probabilities) in
                probabilities.chunks_exact(n * n).take(self.n_heads).enumerate()
            {
                let key = batch.key(sentence);
                self.backward_head(
                    cpu.isa(),
                    (key, head),
                    (qkv, probabilities, d_context),
                    d_qkv,
                    &mut scratch,
                );
            }
        });
    }

    fn backward_head(
        &self,
        isa: Isa,
        (sentence, head): (u64, usize),
        (qkv, probabilities, d_context): (&[f32], &[f32], &[f32]),
        d_qkv: &mut [f32],
        scratch: &mut [f32],
    ) {
        let (size, hidden, wide) = (self.head_size(), self.hidden, 3 * self.hidden);
        let n = qkv.len() / wide;
        let at = head * size;
        let (value_columns, rest) = scratch[..size * n + 2 * n * n].split_at_mut(size * n);
        let (dropped, d) = rest.split_at_mut(n * n);
        self.drop(isa, (sentence, head), probabilities, dropped);
        pack_columns(isa, &qkv[2 * hidden + at..], wide, n, value_columns);
        let d_head = &d_context[at..];
        let out = Out { data: d, row: n, accumulates: false };
        small_product(
            isa,
            Shape { m: n, k: size, n },
            Left::rows(d_head, hidden),
            Right::rows(value_columns, n),
            out,
        );
        let shape = Shape { m: n, k: n, n: size };
        let out = Out { data: &mut d_qkv[2 * hidden + at..], row: wide, accumulates: false };
        small_product(isa, shape, Left::columns(dropped, n), Right::rows(d_head, hidden), out);
        for (position, (d, p)) in
            d.chunks_exact_mut(n).zip(probabilities.chunks_exact(n)).enumerate()
        {
            softmax_backward(isa, self.mask(sentence, head, position), self.scale(), p, d);
        }
        let out = Out { data: &mut d_qkv[at..], row: wide, accumulates: false };
        small_product(isa, shape, Left::rows(d, n), Right::rows(&qkv[hidden + at..], wide), out);
        let out = Out { data: &mut d_qkv[hidden + at..], row: wide, accumulates: false };
        small_product(isa, shape, Left::columns(d, n), Right::rows(&qkv[at..], wide), out);
    }
}
