//! Scores of masked rows against every row of the table, one block of table rows at a time.

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

/// Blocks of one task.
const SPAN: usize = 4;
/// Table rows multiplied at a time in the backward pass. With the sum they stay in the second-level cache.
const RUN: usize = 2 * BLOCK;

/// The tied table and the output bias.
#[derive(Clone, Copy)]
pub(crate) struct Output<'a> {
    pub(crate) table: &'a [f32],
    pub(crate) bias: &'a [f32],
    pub(crate) width: usize,
}

impl Output<'_> {
    /// The score of one piece at one row.
    pub(crate) fn score(&self, isa: Isa, state: &[f32], piece: u32) -> f32 {
        let at = piece as usize;
        let row = &self.table[at * self.width..(at + 1) * self.width];
        dot(isa, state, row) + self.bias[at]
    }

    /// The sum of the negative log-likelihoods of `targets`, one for each row of `states`.
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
    /// The largest of each column of `scores`, whose rows are `stride` long.
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
    /// `exp(scores - largest)` in place, summed by column.
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
    /// Multiplies each column by its factor. Returns the sum of the row.
    fn scale_row(row: &mut [f32], factors: &[f32]) -> f32 {
        for (x, factor) in row.iter_mut().zip(factors) {
            *x *= factor;
        }
        sum_of(row, row, |x, _| x)
    }
}

per_isa! {
    /// The factor that turns exponentials of a block into probabilities times `weight`.
    fn factors_into(largest: &[f32], log_totals: &[f32], weight: f32, out: &mut [f32]) {
        for ((out, largest), log_total) in out.iter_mut().zip(largest).zip(log_totals) {
            *out = exp(largest - log_total) * weight;
        }
    }
}

/// Packs rows of `width` for [`score_block`].
pub(super) fn pack_states(isa: Isa, states: &[f32], width: usize, panels: &mut [f32]) {
    let n = states.len() / width;
    let columns = extent(isa).columns;
    for start in (0..n).step_by(columns) {
        let breadth = columns.min(n - start);
        let panel = &mut panels[start * width..(start + breadth) * width];
        pack_columns(isa, &states[start * width..], width, breadth, panel);
    }
}

/// Writes the scores of some rows of the table at `n` packed states: product and bias. The rows of `scores` are
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
    // The table rows that this task or a neighbour scores next. Each panel prefetches a share of them.
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
    /// `[blocks, stride]`: the largest score of each block.
    largest: &'a [f32],
    log_totals: &'a [f32],
    stride: usize,
}

impl ErrorPass<'_> {
    /// Turns the exponentials of one group of table rows, from `first_row` on, into errors. Writes the gradient of their
    /// biases, and adds their part of the gradient of the masked rows to `d_rows`.
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

    /// Turns the exponentials of table rows from `start` on into `weight` times the probability, block by block. Writes
    /// the sum of each row to `bias`, or adds it.
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
    /// Scores every piece at the rows in `part.states`, and writes the gradients of the bias and, to `self.d`, of the
    /// rows. Returns the sum of the negative log-likelihoods of `targets`.
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

    /// Fills `part.errors` with the exponentials of the scores, and records the largest score and the total of each
    /// block.
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

    /// Turns the exponentials in `part.errors` into errors: `weight` times the probability, less `weight` at the target.
    /// Writes the gradients of the bias and, to `self.d`, of the rows.
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
