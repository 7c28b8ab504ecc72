//! A batch in time-major order: the first tokens of all sequences, then the second tokens of all sequences, and so on.
//! Each step of the recurrence is one block of rows.

use crate::packed::Packed;
use std::ops::Range;

/// A batch in time-major order. Within a step, longer sequences come first. So the sequences that continue in the next
/// step are the first rows of a step.
#[derive(Default)]
pub(super) struct TimeMajorBatch {
    /// The first row of each step, and the end of the last step.
    starts: Vec<usize>,
    pub(super) inputs: Vec<u32>,
    /// The token after each input, which is to be predicted.
    pub(super) targets: Vec<u32>,
    /// The key of the sequence and the position in the sequence, for each row. Dropout depends on them.
    pub(super) places: Vec<(u64, usize)>,
}

impl TimeMajorBatch {
    /// Replaces the contents by the sequences of `batch`. Every token of a sequence except the last is an input, and
    /// every token except the first is a target.
    pub(super) fn set(&mut self, batch: &Packed) {
        let mut order: Vec<_> = (0..batch.n_sentences()).collect();
        order.sort_by_key(|sentence| std::cmp::Reverse(batch.rows(*sentence).len()));
        self.starts.clear();
        self.inputs.clear();
        self.targets.clear();
        self.places.clear();
        for time in 0.. {
            self.starts.push(self.inputs.len());
            for sentence in &order {
                let tokens = &batch.pieces()[batch.rows(*sentence)];
                if let Some([input, target]) = tokens.array_windows().nth(time) {
                    self.inputs.push(*input);
                    self.targets.push(*target);
                    self.places.push((batch.key(*sentence), time));
                }
            }
            if self.starts.last() == Some(&self.inputs.len()) {
                return;
            }
        }
    }

    pub(super) fn n_rows(&self) -> usize {
        self.inputs.len()
    }

    pub(super) fn n_steps(&self) -> usize {
        self.starts.len() - 1
    }

    /// Returns the rows of a step.
    pub(super) fn rows(&self, step: usize) -> Range<usize> {
        self.starts[step]..self.starts[step + 1]
    }

    /// Returns the rows of the previous step whose sequences continue in this step.
    pub(super) fn rows_before(&self, step: usize) -> Range<usize> {
        let start = self.starts[step - 1];
        start..start + self.rows(step).len()
    }
}
