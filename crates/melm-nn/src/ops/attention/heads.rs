//! Attention with a task for some heads of a sentence, for many threads.
//!
//! A head is computed in the working memory of its task and copied to its columns of the result. All sums are those of a task
//! for a whole sentence, so results are the same.

use super::cut::{FEW_THREADS, HeadCut, HeadTask};
use super::head::SentenceGradients;
use super::{Attention, AttentionLayout, part};
use crate::device::Cpu;
use crate::ops::ROWS_PER_TASK;
use crate::ops::rotary::Direction;
use crate::product::Out;
use crate::split::{Cells, Split};

/// The layout of a batch, and its cut into tasks.
pub(super) struct LayoutByHead<'a> {
    layout: &'a AttentionLayout,
    cut: HeadCut,
}

impl<'a> LayoutByHead<'a> {
    /// Returns `None` if a task for each sentence keeps `n_threads` threads busy.
    pub(super) fn new(
        layout: &'a AttentionLayout,
        attention: &Attention<'_>,
        n_threads: usize,
    ) -> Option<Self> {
        if n_threads <= FEW_THREADS {
            return None;
        }
        let lengths = layout.lengths(attention.width);
        HeadCut::new(&lengths, attention.n_heads, n_threads).map(|cut| Self { layout, cut })
    }
}

impl Attention<'_> {
    /// Does what [`Self::forward_joined`] does.
    pub(super) fn forward_heads(
        &self,
        cpu: &Cpu,
        by_head: &LayoutByHead<'_>,
        qkv: &mut [f32],
        bias: &[f32],
        probabilities: &mut [f32],
        context: &mut [f32],
    ) {
        let LayoutByHead { layout, cut } = by_head;
        self.add_bias(cpu, qkv, bias);
        self.rotate_all(cpu, layout, Direction::Forward, qkv);
        let (isa, size, qkv) = (cpu.isa(), self.head_size(), &*qkv);
        let n_probabilities = probabilities.len();
        let (context, probabilities) =
            (Cells::new(context, self.width), Cells::new(probabilities, n_probabilities));
        cpu.pool().run(cut.tasks.len(), &|task, worker| {
            let HeadTask { sentence: index, heads } = cut.tasks[task].clone();
            let qkv = part(qkv, &layout.joined, index);
            let sentence = self.joined_sentence(layout.sentence_keys[index], qkv);
            let n = sentence.n_queries;
            let mut scratch = cpu.scratch(worker);
            scratch.reserve(2 * size * n + n * n);
            let (own, scratch) = scratch.split_at_mut(size * n);
            for head in heads {
                let start = layout.probabilities[index] + head * n * n;
                #[expect(unsafe_code, reason = "the probabilities of one head")]
                // SAFETY: every head of every sentence belongs to one task.
                let probabilities = unsafe { probabilities.part(0, start..start + n * n) };
                let out = Out { data: &mut *own, row: size, accumulates: false };
                self.forward_head(isa, self.head(sentence, head), probabilities, out, scratch);
                let first = layout.queries[index] / self.width;
                self.copy_head(own, &context, first, head * size);
            }
        });
    }

    /// Does what [`Self::backward_joined`] does.
    pub(super) fn backward_heads(
        &self,
        cpu: &Cpu,
        by_head: &LayoutByHead<'_>,
        qkv: &[f32],
        probabilities: &[f32],
        d_context: &[f32],
        d_qkv: &mut [f32],
    ) {
        let LayoutByHead { layout, cut } = by_head;
        let (isa, size) = (cpu.isa(), self.head_size());
        let out = Cells::new(d_qkv, 3 * self.width);
        cpu.pool().run(cut.tasks.len(), &|task, worker| {
            let HeadTask { sentence: index, heads } = cut.tasks[task].clone();
            let qkv = part(qkv, &layout.joined, index);
            let sentence = self.joined_sentence(layout.sentence_keys[index], qkv);
            let n = sentence.n_queries;
            let probabilities = part(probabilities, &layout.probabilities, index);
            let d_context = part(d_context, &layout.queries, index);
            let mut scratch = cpu.scratch(worker);
            scratch.reserve(4 * size * n + 2 * n * n);
            let (own, scratch) = scratch.split_at_mut(3 * size * n);
            for index_of_head in heads {
                let head = self.head(sentence, index_of_head);
                let probabilities = &probabilities[index_of_head * n * n..][..n * n];
                let (queries, rest) = own.split_at_mut(size * n);
                let (keys, values) = rest.split_at_mut(size * n);
                let mut gradients = SentenceGradients::OneHead([queries, keys, values]);
                self.backward_head(isa, head, probabilities, d_context, &mut gradients, scratch);
                let first = layout.queries[index] / self.width;
                for (projection, own) in own.chunks_exact(size * n).enumerate() {
                    let column = projection * self.width + index_of_head * size;
                    self.copy_head(own, &out, first, column);
                }
            }
        });
        self.rotate_all(cpu, layout, Direction::Back, d_qkv);
    }

    /// Copies the rows of one head of a sentence to the rows from `first` of a matrix, starting at `column`.
    fn copy_head(&self, own: &[f32], out: &Cells<'_>, first: usize, column: usize) {
        let size = self.head_size();
        for (row, own) in (first..).zip(own.chunks_exact(size)) {
            #[expect(unsafe_code, reason = "the columns of one head")]
            // SAFETY: every head of every sentence belongs to one task.
            unsafe { out.part(row, column..column + size) }.copy_from_slice(own);
        }
    }

    fn add_bias(&self, cpu: &Cpu, qkv: &mut [f32], bias: &[f32]) {
        let block = 3 * self.width * ROWS_PER_TASK;
        let n_tasks = qkv.len().div_ceil(block);
        cpu.each(n_tasks, Split::every(qkv, block), |_, _, rows| {
            for row in rows.chunks_exact_mut(3 * self.width) {
                crate::ops::add(cpu.isa(), row, bias);
            }
        });
    }

    /// Rotates the queries and keys of all sentences, or their gradients, if positions are rotary.
    fn rotate_all(
        &self,
        cpu: &Cpu,
        layout: &AttentionLayout,
        direction: Direction,
        qkv: &mut [f32],
    ) {
        if self.angles.is_some() {
            let parts = Split::at(qkv, &layout.joined);
            cpu.each(layout.n_sentences(), parts, |_, _, qkv| self.rotate(cpu, direction, qkv));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Attention, AttentionLayout, Seen};
    use crate::device::Cpu;
    use crate::dropout::{Dropout, DropoutRates};
    use crate::ops::rotary;
    use crate::packed::Packed;

    const HEADS: usize = 4;
    const WIDTH: usize = 64;

    /// Returns numbers that look random.
    fn numbers(n: usize, seed: u32) -> Vec<f32> {
        let next = |state: &mut u32| {
            *state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            Some((*state >> 8) as f32 / (1 << 23) as f32 - 1.0)
        };
        std::iter::repeat_n((), n).scan(seed, |state, ()| next(state)).collect()
    }

    /// Returns the joined rows with bias, the context, and the gradients of the joined rows.
    fn compute(attention: &Attention<'_>, n_threads: usize) -> [Vec<f32>; 4] {
        let cpu = Cpu::new(n_threads);
        let mut batch = Packed::default();
        for (key, length) in [(3, 41), (9, 1), (4, 17)] {
            batch.push(&vec![5; length], key);
        }
        let mut layout = AttentionLayout::default();
        layout.set(&batch, &batch, HEADS, WIDTH);
        let n = batch.n_rows();
        let (mut qkv, bias) = (numbers(n * 3 * WIDTH, 1), numbers(3 * WIDTH, 2));
        let mut probabilities = vec![0.0; layout.n_probabilities()];
        let (mut context, mut d_qkv) = (vec![0.0; n * WIDTH], vec![0.0; n * 3 * WIDTH]);
        attention.forward_joined(&cpu, &layout, &mut qkv, &bias, &mut probabilities, &mut context);
        let d = numbers(n * WIDTH, 3);
        attention.backward_joined(&cpu, &layout, &qkv, &probabilities, &d, &mut d_qkv);
        [qkv, probabilities, context, d_qkv]
    }

    #[test]
    fn every_number_of_threads_gives_the_same_bits() {
        let angles = rotary::angles(10_000.0, WIDTH / HEADS, 64);
        for (seen, angles) in [(Seen::All, None), (Seen::Window(5), Some(&angles[..]))] {
            let rates = DropoutRates { attention: 0.2, ..DropoutRates::default() };
            let dropout = Dropout::with_rates(rates, 7, 1);
            let attention =
                Attention { n_heads: HEADS, width: WIDTH, seen, angles, layer: 1, dropout };
            let wanted = compute(&attention, 1);
            for n_threads in [2, 5, 16] {
                let found = compute(&attention, n_threads);
                for (found, wanted) in found.iter().zip(&wanted) {
                    let bits = |numbers: &[f32]| -> Vec<u32> {
                        numbers.iter().map(|number| number.to_bits()).collect()
                    };
                    assert_eq!(bits(found), bits(wanted), "{n_threads} threads");
                }
            }
        }
    }
}
