//! Scores every row of the piece table at the masked rows, one block of table rows at a time.

use super::{BLOCK, HeadTape, rows_per_group};
use crate::device::Cpu;
use crate::error::Error;
use crate::isa::{Isa, per_isa};
use crate::math::{exp, sum_of};
use crate::ops::linear::Accumulator;
use crate::ops::{add, dot};
use crate::product::{Left, Out, Right, Shape, extent, pack_columns, part, small_product_ahead};
use crate::split::Split;
use crate::table::HeadFactors;
use std::ops::Range;

/// The number of blocks that one task scores.
const SPAN: usize = 4;
/// The number of table rows that are multiplied at a time in the backward pass. These rows and the sum of the
/// gradient stay in the second-level cache.
const RUN: usize = 2 * BLOCK;

/// The output layer: the tied piece table and the output bias.
#[derive(Clone, Copy)]
pub(crate) struct Output<'a> {
    pub(crate) table: &'a [f32],
    pub(crate) bias: &'a [f32],
    pub(crate) width: usize,
}

impl Output<'_> {
    /// Returns the score of one piece at one row.
    pub(crate) fn score(&self, isa: Isa, state: &[f32], piece: u32) -> f32 {
        let at = piece as usize;
        let row = &self.table[at * self.width..(at + 1) * self.width];
        dot(isa, state, row) + self.bias[at]
    }

    /// Returns the sum of the negative log-likelihoods of `targets`. There is one target for each row of `states`.
    pub(crate) fn loss(
        &self,
        isa: Isa,
        states: &[f32],
        targets: &[u32],
        log_totals: &[f32],
    ) -> f64 {
        let rows = states.chunks_exact(self.width).zip(targets).zip(log_totals);
        let losses = rows.map(|((state, target), log_total)| {
            f64::from(log_total - self.score(isa, state, *target))
        });
        losses.sum()
    }
}

per_isa! {
    fn add_bias(bias: f32, row: &mut [f32]) {
        for x in row {
            *x += bias;
        }
    }
}

per_isa! {
    /// Computes the maximum of each column of `scores`, whose rows are `stride` apart.
    pub(super) fn column_maxima(scores: &[f32], stride: usize, largest: &mut [f32]) {
        largest.fill(f32::NEG_INFINITY);
        for row in scores.chunks(stride) {
            for (largest, x) in largest.iter_mut().zip(row) {
                *largest = if *x > *largest { *x } else { *largest };
            }
        }
    }
}

per_isa! {
    /// Replaces `scores` by `exp(scores - largest)`, and sums the results by column into `totals`.
    fn exponentiate(scores: &mut [f32], stride: usize, largest: &[f32], totals: &mut [f32]) {
        totals.fill(0.0);
        for row in scores.chunks_mut(stride) {
            for ((x, largest), total) in row.iter_mut().zip(largest).zip(totals.iter_mut()) {
                *x = exp(*x - largest);
                *total += *x;
            }
        }
    }
}

per_isa! {
    /// Multiplies each element of a row by the factor of its column. Returns the sum of the row.
    fn scale_row(row: &mut [f32], factors: &[f32]) -> f32 {
        for (x, factor) in row.iter_mut().zip(factors) {
            *x *= factor;
        }
        sum_of(row, row, |x, _| x)
    }
}

per_isa! {
    /// Computes the factors that turn the exponentials of a block into probabilities times `weight`.
    fn factors_into(largest: &[f32], log_totals: &[f32], weight: f32, out: &mut [f32]) {
        for ((out, largest), log_total) in out.iter_mut().zip(largest).zip(log_totals) {
            *out = exp(largest - log_total) * weight;
        }
    }
}

/// Packs rows of `width` numbers into the panels that [`score_block`] reads.
pub(super) fn pack_states(isa: Isa, states: &[f32], width: usize, panels: &mut [f32]) {
    let n = states.len() / width;
    let columns = extent(isa).columns;
    for start in (0..n).step_by(columns) {
        let breadth = columns.min(n - start);
        let panel = &mut panels[start * width..(start + breadth) * width];
        pack_columns(isa, &states[start * width..], width, breadth, panel);
    }
}

/// Computes the scores (product and bias) of some rows of the table at `n` packed states. The rows of `scores` are
/// `stride` apart.
pub(super) fn score_block(
    isa: Isa,
    output: Output<'_>,
    rows: Range<usize>,
    panels: &[f32],
    n: usize,
    scores: &mut [f32],
    stride: usize,
) {
    let (width, columns) = (output.width, extent(isa).columns);
    let table = Left::rows(&output.table[rows.start * width..], width);
    // These are the table rows that this task or a neighbouring task scores next. Each panel prefetches a part of them.
    let next = &output.table[(rows.end * width).min(output.table.len())..];
    let next = &next[..next.len().min(rows.len() * width)];
    let n_panels = n.div_ceil(columns);
    for (index, start) in (0..n).step_by(columns).enumerate() {
        let breadth = columns.min(n - start);
        let shape = Shape { m: rows.len(), k: width, n: breadth };
        let panel = Right::rows(&panels[start * width..], breadth);
        let out = Out { data: &mut scores[start..], row: stride, accumulates: false };
        let ahead = &next[part(next.len(), n_panels, index)];
        small_product_ahead(isa, shape, table, panel, out, ahead);
    }
    for (row, bias) in scores.chunks_mut(stride).zip(&output.bias[rows]) {
        add_bias(isa, *bias, &mut row[..n]);
    }
}

/// The inputs of the backward pass through the scores.
#[derive(Clone, Copy)]
struct ErrorPass<'a> {
    output: Output<'a>,
    targets: &'a [u32],
    weight: f32,
    /// The largest score of each block, `[blocks, stride]`.
    largest: &'a [f32],
    log_totals: &'a [f32],
    stride: usize,
}

impl ErrorPass<'_> {
    /// Replaces the exponentials of one group of table rows, starting at `first_row`, by the gradients of the scores.
    /// Also computes the gradients of the biases, and adds the contribution of this group to the gradient of the masked
    /// rows in `d_rows`.
    fn run_group(
        &self,
        isa: Isa,
        first_row: usize,
        errors: &mut [f32],
        bias: Accumulator<'_>,
        factors: &mut [f32],
        d_rows: &mut [f32],
    ) {
        let (stride, width) = (self.stride, self.output.width);
        let Accumulator { data, accumulates } = bias;
        let runs = errors.chunks_mut(RUN * stride).zip(data.chunks_mut(RUN));
        for ((errors, bias), start) in runs.zip((first_row..).step_by(RUN)) {
            self.scale_to_errors(isa, start, errors, bias, accumulates, factors);
            let k = bias.len();
            for (column, target) in self.targets.iter().enumerate() {
                if let Some(at) = (*target as usize).checked_sub(start).filter(|at| *at < k) {
                    errors[at * stride + column] -= self.weight;
                    bias[at] -= self.weight;
                }
            }
            let (table, next) = self.output.table[start * width..].split_at(k * width);
            let (errors, table) = (Left::columns(errors, stride), Right::rows(table, width));
            let out = Out { data: &mut *d_rows, row: width, accumulates: true };
            let next = &next[..next.len().min(RUN * width)];
            let shape = Shape { m: factors.len(), k, n: width };
            small_product_ahead(isa, shape, errors, table, out, next);
        }
    }

    /// Replaces the exponentials of the table rows from `start` on by `weight` times the probabilities, block by block.
    /// The sum of each row is written to `bias`, or added to it if `accumulates` is true.
    fn scale_to_errors(
        &self,
        isa: Isa,
        start: usize,
        errors: &mut [f32],
        bias: &mut [f32],
        accumulates: bool,
        factors: &mut [f32],
    ) {
        let blocks = errors.chunks_mut(BLOCK * self.stride).zip(bias.chunks_mut(BLOCK));
        for ((errors, bias), block) in blocks.zip(start / BLOCK..) {
            let largest = &self.largest[block * self.stride..];
            factors_into(isa, largest, self.log_totals, self.weight, factors);
            for (row, bias) in errors.chunks_mut(self.stride).zip(bias) {
                let sum = scale_row(isa, &mut row[..factors.len()], factors);
                *bias = if accumulates { *bias + sum } else { sum };
            }
        }
    }
}

impl HeadTape {
    /// Scores every piece at the rows in `part.states`. Computes the gradient of the bias, and writes the gradient of
    /// the rows to `self.d`. Returns the sum of the negative log-likelihoods of `targets`.
    pub(crate) fn train(
        &mut self,
        cpu: &Cpu,
        output: Output<'_>,
        part: &mut HeadFactors,
        targets: &[u32],
        weight: f32,
        bias: Accumulator<'_>,
    ) -> Result<f64, Error> {
        self.score(cpu, output, part)?;
        let loss = output.loss(cpu.isa(), &part.states, targets, &self.log_totals);
        self.errors(cpu, output, part, targets, weight, bias)?;
        Ok(loss)
    }

    /// Fills `part.errors` with the exponentials of the scores. Records the largest score and the sum of exponentials
    /// of each block.
    fn score(
        &mut self,
        cpu: &Cpu,
        output: Output<'_>,
        part: &mut HeadFactors,
    ) -> Result<(), Error> {
        let (n, stride, vocab_size) = (part.n, part.stride, output.bias.len());
        let n_blocks = vocab_size.div_ceil(BLOCK);
        self.panels.try_reserve(n * output.width)?;
        let states = &part.states[..n * output.width];
        pack_states(cpu.isa(), states, output.width, &mut self.panels);
        self.largest.try_reserve(n_blocks * stride)?;
        self.totals.try_reserve(n_blocks * stride)?;
        let parts = (
            Split::every(&mut part.errors[..vocab_size * stride], SPAN * BLOCK * stride),
            Split::every(&mut self.largest[..n_blocks * stride], SPAN * stride),
            Split::every(&mut self.totals[..n_blocks * stride], SPAN * stride),
        );
        let panels = &self.panels;
        cpu.each(n_blocks.div_ceil(SPAN), parts, |task, _, (scores, largest, totals)| {
            let blocks = scores.chunks_mut(BLOCK * stride);
            let summaries = largest.chunks_mut(stride).zip(totals.chunks_mut(stride));
            for ((scores, (largest, totals)), block) in blocks.zip(summaries).zip(task * SPAN..) {
                let rows = block * BLOCK..vocab_size.min((block + 1) * BLOCK);
                score_block(cpu.isa(), output, rows, panels, n, scores, stride);
                column_maxima(cpu.isa(), scores, stride, &mut largest[..n]);
                exponentiate(cpu.isa(), scores, stride, &largest[..n], &mut totals[..n]);
            }
        });
        self.log_totals.try_reserve(stride)?;
        for column in 0..n {
            let blocks = || (0..n_blocks).map(|block| block * stride + column);
            let largest = blocks().map(|at| self.largest[at]).fold(f32::NEG_INFINITY, f32::max);
            let total: f64 = blocks()
                .map(|at| f64::from(self.totals[at]) * f64::from(exp(self.largest[at] - largest)))
                .sum();
            #[expect(clippy::cast_possible_truncation, reason = "the precision of the engine")]
            let log_total = total.ln() as f32 + largest;
            self.log_totals[column] = log_total;
        }
        Ok(())
    }

    /// Replaces the exponentials in `part.errors` by the gradients of the scores: `weight` times the probability, minus
    /// `weight` at the target. Computes the gradient of the bias, and writes the gradient of the rows to `self.d`.
    fn errors(
        &mut self,
        cpu: &Cpu,
        output: Output<'_>,
        part: &mut HeadFactors,
        targets: &[u32],
        weight: f32,
        bias: Accumulator<'_>,
    ) -> Result<(), Error> {
        let (n, stride, width, vocab_size) = (part.n, part.stride, output.width, output.bias.len());
        let Accumulator { data, accumulates } = bias;
        let group_rows = rows_per_group(vocab_size);
        let n_groups = vocab_size.div_ceil(group_rows);
        self.shares.try_reserve(n_groups * n * width)?;
        let parts = (
            Split::every(&mut part.errors[..vocab_size * stride], group_rows * stride),
            Split::every(data, group_rows),
            Split::every(&mut self.shares[..n_groups * n * width], n * width),
        );
        let (largest, log_totals) = (&self.largest[..], &self.log_totals[..n]);
        let pass = ErrorPass { output, targets, weight, largest, log_totals, stride };
        cpu.each(n_groups, parts, |group, worker, (errors, bias, share)| {
            share.fill(0.0);
            let mut factors = cpu.scratch(worker);
            factors.reserve(n);
            let bias = Accumulator { data: bias, accumulates };
            let first_row = group * group_rows;
            pass.run_group(cpu.isa(), first_row, errors, bias, &mut factors[..n], share);
        });
        self.d.try_reserve(n * width)?;
        let d = &mut self.d[..n * width];
        d.fill(0.0);
        for share in self.shares[..n_groups * n * width].chunks_exact(n * width) {
            add(cpu.isa(), d, share);
        }
        Ok(())
    }
}
