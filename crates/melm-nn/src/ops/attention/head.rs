//! The attention of one sentence, head by head.

use super::{Attention, AttentionInputs};
use crate::buffer::Buffer;
use crate::dropout::{RowMask, Site};
use crate::isa::{Isa, per_isa};
use crate::math::{exp, largest_of, sum_of};
use crate::ops::norm::drop_row;
use crate::product::{Left, Out, Right, Shape, pack_columns, small_product};

/// The inputs of attention for one sentence.
#[derive(Clone, Copy)]
pub(super) struct Sentence<'a> {
    /// The key of the sentence, which determines its dropout.
    pub(super) key: u64,
    pub(super) n_queries: usize,
    pub(super) n_keys: usize,
    pub(super) inputs: AttentionInputs<'a>,
    /// The distance between two rows of the inputs, in elements.
    pub(super) stride: usize,
}

/// One attention head of one sentence.
#[derive(Clone, Copy)]
pub(super) struct Head<'a> {
    sentence: Sentence<'a>,
    index: usize,
    /// The first column of the head.
    column: usize,
}

/// One of the three projections, in the order in which a joined row contains them.
#[derive(Clone, Copy)]
enum Projection {
    Query,
    Key,
    Value,
}

/// The memory for the gradients of the queries, keys and values of one sentence.
pub(super) enum SentenceGradients<'a> {
    /// Query, key and value are adjacent in rows of `3 * width` numbers.
    Joined(&'a mut [f32]),
    /// Queries, keys and values are three matrices, in the order of [`Projection`].
    Separate([&'a mut [f32]; 3]),
    /// As `Separate`, but the matrices have only the columns of one head.
    OneHead([&'a mut [f32]; 3]),
}

impl SentenceGradients<'_> {
    fn out(
        &mut self,
        projection: Projection,
        head: Head<'_>,
        attention: &Attention<'_>,
    ) -> Out<'_> {
        let index = projection as usize;
        let (column, width) = (head.column, attention.width);
        let (data, row) = match self {
            Self::Joined(rows) => (&mut rows[index * width + column..], 3 * width),
            Self::Separate(matrices) => (&mut matrices[index][column..], width),
            Self::OneHead(matrices) => (&mut *matrices[index], attention.head_size()),
        };
        Out { data, row, accumulates: false }
    }
}

per_isa! {
    /// Replaces `row` by the softmax of `scale * row`.
    fn softmax(scale: f32, row: &mut [f32]) {
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
    /// Replaces the gradient of the attention probabilities after dropout by the gradient of the attention scores
    /// before scaling.
    fn softmax_backward(mask: RowMask, scale: f32, probabilities: &[f32], d: &mut [f32]) {
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

impl Attention<'_> {
    pub(super) fn head_size(&self) -> usize {
        self.width / self.n_heads
    }

    fn scale(&self) -> f32 {
        1.0 / (self.head_size() as f32).sqrt()
    }

    /// Returns the dropout mask of a row of probabilities. Position and head are combined into one number, so that each
    /// head has its own mask.
    fn mask(&self, head: Head<'_>, position: usize) -> RowMask {
        let place = position * self.n_heads + head.index;
        self.dropout.row(self.layer, Site::Attention, head.sentence.key, place)
    }

    pub(super) fn head<'a>(&self, sentence: Sentence<'a>, index: usize) -> Head<'a> {
        Head { sentence, index, column: index * self.head_size() }
    }

    /// Computes the context rows of one sentence and the attention probabilities of all heads.
    pub(super) fn forward_sentence(
        &self,
        isa: Isa,
        sentence: Sentence<'_>,
        probabilities: &mut [f32],
        context: &mut [f32],
        scratch: &mut Buffer,
    ) {
        let n_pairs = sentence.n_queries * sentence.n_keys;
        scratch.reserve(self.head_size() * sentence.n_keys + n_pairs);
        for (index, probabilities) in probabilities.chunks_exact_mut(n_pairs).enumerate() {
            let head = self.head(sentence, index);
            let context = &mut context[head.column..];
            let context = Out { data: context, row: self.width, accumulates: false };
            self.forward_head(isa, head, probabilities, context, scratch);
        }
    }

    /// Computes one head of a sentence. The size of `scratch` is that of [`Self::forward_sentence`].
    pub(super) fn forward_head(
        &self,
        isa: Isa,
        head: Head<'_>,
        probabilities: &mut [f32],
        context: Out<'_>,
        scratch: &mut [f32],
    ) {
        let Sentence { n_queries, n_keys, inputs, stride, .. } = head.sentence;
        let (size, column) = (self.head_size(), head.column);
        let (key_columns, rest) = scratch.split_at_mut(size * n_keys);
        let dropped = &mut rest[..n_queries * n_keys];
        pack_columns(isa, &inputs.keys[column..], stride, n_keys, key_columns);
        let shape = Shape { m: n_queries, k: size, n: n_keys };
        let queries = Left::rows(&inputs.queries[column..], stride);
        let out = Out { data: probabilities, row: n_keys, accumulates: false };
        small_product(isa, shape, queries, Right::rows(key_columns, n_keys), out);
        for (position, row) in probabilities.chunks_exact_mut(n_keys).enumerate() {
            let seen = self.seen.keys(position, n_keys);
            row[..seen.start].fill(0.0);
            row[seen.end..].fill(0.0);
            softmax(isa, self.scale(), &mut row[seen]);
        }
        self.drop_probabilities(isa, head, probabilities, dropped);
        let shape = Shape { m: n_queries, k: n_keys, n: size };
        let values = Right::rows(&inputs.values[column..], stride);
        small_product(isa, shape, Left::rows(dropped, n_keys), values, context);
    }

    /// Writes the probabilities of a head after dropout to `out`.
    fn drop_probabilities(&self, isa: Isa, head: Head<'_>, probabilities: &[f32], out: &mut [f32]) {
        out.copy_from_slice(probabilities);
        for (position, row) in out.chunks_exact_mut(head.sentence.n_keys).enumerate() {
            drop_row(isa, self.mask(head, position), row);
        }
    }

    /// Computes the gradients of queries, keys and values of one sentence from the gradient of the context rows.
    pub(super) fn backward_sentence(
        &self,
        isa: Isa,
        sentence: Sentence<'_>,
        probabilities: &[f32],
        d_context: &[f32],
        out: &mut SentenceGradients<'_>,
        scratch: &mut Buffer,
    ) {
        let n_pairs = sentence.n_queries * sentence.n_keys;
        scratch.reserve(self.head_size() * sentence.n_keys + 2 * n_pairs);
        for (index, probabilities) in probabilities.chunks_exact(n_pairs).enumerate() {
            let head = self.head(sentence, index);
            self.backward_head(isa, head, probabilities, d_context, out, scratch);
        }
    }

    /// Computes the gradients of one head of a sentence. The size of `scratch` is that of [`Self::backward_sentence`].
    pub(super) fn backward_head(
        &self,
        isa: Isa,
        head: Head<'_>,
        probabilities: &[f32],
        d_context: &[f32],
        out: &mut SentenceGradients<'_>,
        scratch: &mut [f32],
    ) {
        let Sentence { n_queries, n_keys, inputs, stride, .. } = head.sentence;
        let (size, width, column) = (self.head_size(), self.width, head.column);
        let (value_columns, rest) = scratch.split_at_mut(size * n_keys);
        let (dropped, rest) = rest.split_at_mut(n_queries * n_keys);
        let d = &mut rest[..n_queries * n_keys];
        self.drop_probabilities(isa, head, probabilities, dropped);
        pack_columns(isa, &inputs.values[column..], stride, n_keys, value_columns);
        let d_head = &d_context[column..];
        let shape = Shape { m: n_queries, k: size, n: n_keys };
        let d_out = Out { data: &mut *d, row: n_keys, accumulates: false };
        let values = Right::rows(value_columns, n_keys);
        small_product(isa, shape, Left::rows(d_head, width), values, d_out);

        let over_queries = Shape { m: n_keys, k: n_queries, n: size };
        let factors = (Left::columns(dropped, n_keys), Right::rows(d_head, width));
        let d_values = out.out(Projection::Value, head, self);
        small_product(isa, over_queries, factors.0, factors.1, d_values);
        let rows = d.chunks_exact_mut(n_keys).zip(probabilities.chunks_exact(n_keys));
        for (position, (d, probabilities)) in rows.enumerate() {
            let mask = self.mask(head, position);
            softmax_backward(isa, mask, self.scale(), probabilities, d);
        }
        let shape = Shape { m: n_queries, k: n_keys, n: size };
        let keys = Right::rows(&inputs.keys[column..], stride);
        let d_queries = out.out(Projection::Query, head, self);
        small_product(isa, shape, Left::rows(d, n_keys), keys, d_queries);
        let queries = Right::rows(&inputs.queries[column..], stride);
        let d_keys = out.out(Projection::Key, head, self);
        small_product(isa, over_queries, Left::columns(d, n_keys), queries, d_keys);
    }
}
