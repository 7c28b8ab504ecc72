//! The cross-entropy of rows of scores. The scores are replaced by their gradient.

use super::ROWS_PER_TASK;
use crate::device::Cpu;
use crate::isa::per_isa;
use crate::math::{exp, largest_of, sum_of};
use crate::split::Split;

per_isa! {
    /// Replaces scores by probabilities. Returns the logarithm of the sum of the exponentials of the scores.
    fn softmax(row: &mut [f32]) -> f32 {
        let largest = largest_of(row);
        for x in row.iter_mut() {
            *x = exp(*x - largest);
        }
        let total = sum_of(row, row, |x, _| x);
        for x in row {
            *x /= total;
        }
        total.ln() + largest
    }
}

per_isa! {
    fn scale(factor: f32, row: &mut [f32]) {
        for x in row {
            *x *= factor;
        }
    }
}

/// Writes the negative log-likelihood of the target of each row to `losses`, and replaces the scores by the gradient of
/// `weight` times the sum of the losses.
pub(crate) fn backward(
    cpu: &Cpu,
    targets: &[u32],
    weight: f32,
    scores: &mut [f32],
    losses: &mut [f32],
) {
    let width = scores.len() / targets.len();
    let block = ROWS_PER_TASK * width;
    let parts = (Split::every(scores, block), Split::every(losses, ROWS_PER_TASK));
    cpu.each(targets.len().div_ceil(ROWS_PER_TASK), parts, |task, _, (scores, losses)| {
        let rows = scores.chunks_exact_mut(width).zip(losses);
        for ((row, loss), target) in rows.zip(&targets[task * ROWS_PER_TASK..]) {
            let target = *target as usize;
            let score = row[target];
            *loss = softmax(cpu.isa(), row) - score;
            scale(cpu.isa(), weight, row);
            row[target] -= weight;
        }
    });
}
