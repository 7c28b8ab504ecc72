//! Multi-head attention, computed for each sentence and head separately. A row attends only to rows of its own
//! sentence.
//!
//! The encoder stores query, key and value side by side in the rows of one matrix. The sequence-to-sequence model
//! stores them in three matrices, because keys and values may come from another sequence. Both use the same kernels.
//!
//! A task computes one sentence. If there are too few sentences for the threads, a task of the encoder computes some heads
//! of a sentence (`heads.rs`), with the same results.

mod cut;
mod head;
mod heads;

use super::rotary::{Direction, rotate_sentence};
use crate::device::Cpu;
use crate::dropout::Dropout;
use crate::packed::Packed;
use crate::split::Split;
use head::{Sentence, SentenceGradients};
use heads::LayoutByHead;
use std::ops::Range;

/// The rows of a sentence that a row attends to.
#[derive(Clone, Copy)]
pub(crate) enum Seen {
    All,
    /// The row itself and the rows before it.
    Before,
    /// The row itself and this many rows on each side.
    Window(usize),
}

impl Seen {
    /// Returns the keys that the query at `position` attends to.
    fn keys(self, position: usize, n_keys: usize) -> Range<usize> {
        match self {
            Self::All => 0..n_keys,
            Self::Before => 0..position + 1,
            Self::Window(half) => {
                position.saturating_sub(half)..n_keys.min(position.saturating_add(half + 1))
            }
        }
    }
}

/// The sizes, the mask, the positions and the dropout of an attention layer.
#[derive(Clone, Copy)]
pub(crate) struct Attention<'a> {
    pub(crate) n_heads: usize,
    /// The width of a query, key, value or context row, summed over all heads.
    pub(crate) width: usize,
    pub(crate) seen: Seen,
    /// The angles of rotary positions, `[positions, head size]`, as [`angles`](super::rotary::angles) returns them; `None`
    /// without rotary positions. Only rows that contain query, key and value side by side can be rotated.
    pub(crate) angles: Option<&'a [f32]>,
    pub(crate) layer: usize,
    pub(crate) dropout: Dropout,
}

/// For each sentence, where its rows and probabilities start (counted in elements), and its key for dropout.
#[derive(Default)]
pub(crate) struct AttentionLayout {
    sentence_keys: Vec<u64>,
    queries: Vec<usize>,
    keys: Vec<usize>,
    /// Where each sentence starts in rows that contain query, key and value side by side.
    joined: Vec<usize>,
    probabilities: Vec<usize>,
}

impl AttentionLayout {
    /// Computes the layout for queries from `queries` and keys from `keys`. Each sentence of `queries` attends to the
    /// sentence of `keys` with the same index.
    pub(crate) fn set(&mut self, queries: &Packed, keys: &Packed, n_heads: usize, width: usize) {
        self.sentence_keys.clear();
        for offsets in
            [&mut self.queries, &mut self.keys, &mut self.joined, &mut self.probabilities]
        {
            offsets.clear();
            offsets.push(0);
        }
        let mut total = 0;
        for sentence in 0..queries.n_sentences() {
            let (query_rows, key_rows) = (queries.rows(sentence), keys.rows(sentence));
            self.sentence_keys.push(queries.key(sentence));
            self.queries.push(query_rows.end * width);
            self.keys.push(key_rows.end * width);
            self.joined.push(query_rows.end * 3 * width);
            total += n_heads * query_rows.len() * key_rows.len();
            self.probabilities.push(total);
        }
    }

    /// Returns the number of attention probabilities of the whole batch.
    pub(crate) fn n_probabilities(&self) -> usize {
        self.probabilities.last().copied().unwrap_or(0)
    }

    fn n_sentences(&self) -> usize {
        self.sentence_keys.len()
    }

    /// Returns the number of rows of each sentence.
    fn lengths(&self, width: usize) -> Vec<usize> {
        self.queries.windows(2).map(|ends| (ends[1] - ends[0]) / width).collect()
    }
}

/// Returns the part of `data` that belongs to one sentence.
fn part<'a>(data: &'a [f32], offsets: &[usize], sentence: usize) -> &'a [f32] {
    &data[offsets[sentence]..offsets[sentence + 1]]
}

/// Queries, keys and values in three matrices `[rows, width]`, with biases added.
#[derive(Clone, Copy)]
pub(crate) struct AttentionInputs<'a> {
    pub(crate) queries: &'a [f32],
    pub(crate) keys: &'a [f32],
    pub(crate) values: &'a [f32],
}

/// The gradients of [`AttentionInputs`].
pub(crate) struct AttentionGradients<'a> {
    pub(crate) queries: &'a mut [f32],
    pub(crate) keys: &'a mut [f32],
    pub(crate) values: &'a mut [f32],
}

impl Attention<'_> {
    /// Computes the context row of every query, and the probabilities, which the backward pass needs.
    pub(crate) fn forward(
        &self,
        cpu: &Cpu,
        layout: &AttentionLayout,
        inputs: AttentionInputs<'_>,
        probabilities: &mut [f32],
        context: &mut [f32],
    ) {
        let parts =
            (Split::at(probabilities, &layout.probabilities), Split::at(context, &layout.queries));
        cpu.each(layout.n_sentences(), parts, |index, worker, (probabilities, context)| {
            let sentence = self.separate_sentence(layout, inputs, index);
            let mut scratch = cpu.scratch(worker);
            self.forward_sentence(cpu.isa(), sentence, probabilities, context, &mut scratch);
        });
    }

    /// Like [`Self::forward`], for self-attention over rows `qkv` `[rows, 3 width]` that contain query, key and value
    /// side by side. Adds `bias`, unless it is empty, and rotates queries and keys first.
    pub(crate) fn forward_joined(
        &self,
        cpu: &Cpu,
        layout: &AttentionLayout,
        qkv: &mut [f32],
        bias: &[f32],
        probabilities: &mut [f32],
        context: &mut [f32],
    ) {
        if let Some(layout) = LayoutByHead::new(layout, self, cpu.n_threads()) {
            return self.forward_heads(cpu, &layout, qkv, bias, probabilities, context);
        }
        let parts = (
            Split::at(qkv, &layout.joined),
            Split::at(probabilities, &layout.probabilities),
            Split::at(context, &layout.queries),
        );
        cpu.each(layout.n_sentences(), parts, |index, worker, (qkv, probabilities, context)| {
            for row in qkv.chunks_exact_mut(3 * self.width) {
                super::add(cpu.isa(), row, bias);
            }
            self.rotate(cpu, Direction::Forward, qkv);
            let sentence = self.joined_sentence(layout.sentence_keys[index], qkv);
            let mut scratch = cpu.scratch(worker);
            self.forward_sentence(cpu.isa(), sentence, probabilities, context, &mut scratch);
        });
    }

    /// Computes the gradients of queries, keys and values from the gradient of the context rows.
    pub(crate) fn backward(
        &self,
        cpu: &Cpu,
        layout: &AttentionLayout,
        inputs: AttentionInputs<'_>,
        probabilities: &[f32],
        d_context: &[f32],
        gradients: AttentionGradients<'_>,
    ) {
        let AttentionGradients { queries, keys, values } = gradients;
        let parts = (
            Split::at(queries, &layout.queries),
            Split::at(keys, &layout.keys),
            Split::at(values, &layout.keys),
        );
        cpu.each(layout.n_sentences(), parts, |index, worker, (queries, keys, values)| {
            let sentence = self.separate_sentence(layout, inputs, index);
            let probabilities = part(probabilities, &layout.probabilities, index);
            let d_context = part(d_context, &layout.queries, index);
            let mut out = SentenceGradients::Separate([queries, keys, values]);
            let scratch = &mut cpu.scratch(worker);
            self.backward_sentence(
                cpu.isa(),
                sentence,
                probabilities,
                d_context,
                &mut out,
                scratch,
            );
        });
    }

    /// Like [`Self::backward`], for the rows of [`Self::forward_joined`].
    pub(crate) fn backward_joined(
        &self,
        cpu: &Cpu,
        layout: &AttentionLayout,
        qkv: &[f32],
        probabilities: &[f32],
        d_context: &[f32],
        d_qkv: &mut [f32],
    ) {
        if let Some(layout) = LayoutByHead::new(layout, self, cpu.n_threads()) {
            return self.backward_heads(cpu, &layout, qkv, probabilities, d_context, d_qkv);
        }
        let parts = Split::at(d_qkv, &layout.joined);
        cpu.each(layout.n_sentences(), parts, |index, worker, d_qkv| {
            let qkv = part(qkv, &layout.joined, index);
            let sentence = self.joined_sentence(layout.sentence_keys[index], qkv);
            let probabilities = part(probabilities, &layout.probabilities, index);
            let d_context = part(d_context, &layout.queries, index);
            let mut out = SentenceGradients::Joined(&mut *d_qkv);
            let scratch = &mut cpu.scratch(worker);
            self.backward_sentence(
                cpu.isa(),
                sentence,
                probabilities,
                d_context,
                &mut out,
                scratch,
            );
            self.rotate(cpu, Direction::Back, d_qkv);
        });
    }

    /// Rotates the queries and keys of one sentence, or their gradients, if positions are rotary.
    fn rotate(&self, cpu: &Cpu, direction: Direction, qkv: &mut [f32]) {
        if let Some(angles) = self.angles {
            let (head_size, width) = (self.width / self.n_heads, self.width);
            rotate_sentence(cpu.isa(), direction, angles, head_size, width, qkv);
        }
    }

    fn separate_sentence<'a>(
        &self,
        layout: &AttentionLayout,
        inputs: AttentionInputs<'a>,
        index: usize,
    ) -> Sentence<'a> {
        let inputs = AttentionInputs {
            queries: part(inputs.queries, &layout.queries, index),
            keys: part(inputs.keys, &layout.keys, index),
            values: part(inputs.values, &layout.keys, index),
        };
        Sentence {
            key: layout.sentence_keys[index],
            n_queries: inputs.queries.len() / self.width,
            n_keys: inputs.keys.len() / self.width,
            inputs,
            stride: self.width,
        }
    }

    fn joined_sentence<'a>(&self, key: u64, qkv: &'a [f32]) -> Sentence<'a> {
        let (width, stride) = (self.width, 3 * self.width);
        let n = qkv.len() / stride;
        let inputs =
            AttentionInputs { queries: qkv, keys: &qkv[width..], values: &qkv[2 * width..] };
        Sentence { key, n_queries: n, n_keys: n, inputs, stride }
    }
}
