//! Scores of masked rows against every row of the table, a block of table rows at a time.

use super::{BLOCK, HeadTape, rows_per_group};
use crate::device::Cpu;
use crate::isa::{Isa, per_isa};
use crate::math::{exp, sum_of};
use crate::ops::add;
use crate::ops::linear::Accumulator;
use crate::product::{Left, Out, Right, Shape, extent, pack_columns, small_product};
use crate::split::Split;
use crate::table::HeadPart;
use std::ops::Range;

/// The tied table and the output bias.
#[derive(Clone, Copy)]
pub(super) struct Output<'a> {
    pub(super) table: &'a [f32],
    pub(super) bias: &'a [f32],
    pub(super) width: usize,
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
    /// From exponentials to errors: the factor of each column is in `factors`. Returns their sum.
    fn scale_row(row: &mut [f32], factors: &[f32]) -> f32 {
        for (x, factor) in row.iter_mut().zip(factors) {
            *x *= factor;
        }
        sum_of(row, row, |x, _| x)
    }
}

per_isa! {
    fn factors_into(largest: &[f32], log_totals: &[f32], weight: f32, out: &mut [f32]) {
        for ((out, largest), log_total) in out.iter_mut().zip(largest).zip(log_totals) {
            *out = exp(largest - log_total) * weight;
        }
    }
}

/// Packs `n` rows for [`score_block`].
pub(super) fn pack_states(
    isa: Isa,
    states: &[f32],
    (n, width): (usize, usize),
    panels: &mut [f32],
) {
    let columns = extent(isa).columns;
    for start in (0..n).step_by(columns) {
        let breadth = columns.min(n - start);
        let panel = &mut panels[start * width..(start + breadth) * width];
        pack_columns(isa, &states[start * width..], width, breadth, panel);
    }
}

/// Scores of the table's `rows`, `[rows, stride]`: product and bias.
pub(super) fn score_block(
    isa: Isa,
    output: Output<'_>,
    rows: Range<usize>,
    panels: (&[f32], usize),
    (scores, stride): (&mut [f32], usize),
) {
    let (panels, n) = panels;
    let (width, columns) = (output.width, extent(isa).columns);
    let table = Left::rows(&output.table[rows.start * width..], width);
    for start in (0..n).step_by(columns) {
        let breadth = columns.min(n - start);
        let shape = Shape {
            m: rows.len(),
            k: width,
            n: breadth,
        };
        let panel = Right::rows(&panels[start * width..], breadth);
        let out = Out {
            data: &mut scores[start..],
            row: stride,
            accumulates: false,
        };
        small_product(isa, shape, table, panel, out);
    }
    for (row, bias) in scores.chunks_mut(stride).zip(&output.bias[rows]) {
        add_bias(isa, *bias, &mut row[..n]);
    }
}

impl HeadTape {
    /// Fills `part.errors` with the exponentials of the scores, and notes each block's largest score and total.
    pub(super) fn score(&mut self, cpu: &Cpu, output: Output<'_>, part: &mut HeadPart) {
        let (n, stride, vocab_size) = (part.n, part.stride, output.bias.len());
        let n_blocks = vocab_size.div_ceil(BLOCK);
        self.panels.reserve(n * output.width);
        pack_states(cpu.isa(), &part.states, (n, output.width), &mut self.panels);
        self.largest.reserve(n_blocks * stride);
        self.totals.reserve(n_blocks * stride);
        let parts = (
            Split::every(&mut part.errors[..vocab_size * stride], BLOCK * stride),
            Split::every(&mut self.largest[..n_blocks * stride], stride),
            Split::every(&mut self.totals[..n_blocks * stride], stride),
        );
        let panels = &self.panels;
        cpu.each(n_blocks, parts, |block, _, (scores, largest, totals)| {
            let rows = block * BLOCK..vocab_size.min((block + 1) * BLOCK);
            score_block(cpu.isa(), output, rows, (panels, n), (scores, stride));
            column_maxima(cpu.isa(), scores, stride, &mut largest[..n]);
            exponentiate(cpu.isa(), scores, stride, &largest[..n], &mut totals[..n]);
        });
        self.log_totals.reserve(stride);
        for column in 0..n {
            let blocks = || (0..n_blocks).map(|block| block * stride + column);
            let largest = blocks()
                .map(|at| self.largest[at])
                .fold(f32::NEG_INFINITY, f32::max);
            let total: f64 = blocks()
                .map(|at| f64::from(self.totals[at]) * f64::from(exp(self.largest[at] - largest)))
                .sum();
            #[expect(
                clippy::cast_possible_truncation,
                reason = "the precision of the engine"
            )]
            let log_total = total.ln() as f32 + largest;
            self.log_totals[column] = log_total;
        }
    }

    /// Turns the exponentials into errors (probability less 1 at the original, times `weight`), and gives the bias and,
    /// in `self.d`, the normed rows their gradients.
    pub(super) fn errors(
        &mut self,
        cpu: &Cpu,
        output: Output<'_>,
        (part, originals, weight): (&mut HeadPart, &[u32], f32),
        bias: Accumulator<'_>,
    ) {
        let (n, stride, width, vocab_size) = (part.n, part.stride, output.width, output.bias.len());
        let Accumulator { data, accumulates } = bias;
        let group_rows = rows_per_group(vocab_size);
        let n_groups = vocab_size.div_ceil(group_rows);
        self.shares.reserve(n_groups * n * width);
        let parts = (
            Split::every(&mut part.errors[..vocab_size * stride], group_rows * stride),
            Split::every(data, group_rows),
            Split::every(&mut self.shares[..n_groups * n * width], n * width),
        );
        let (largest, log_totals) = (&self.largest, &self.log_totals[..n]);
        cpu.each(
            n_groups,
            parts,
            |group, worker, (errors, bias_part, share)| {
                share.fill(0.0);
                let mut factors = cpu.scratch(worker);
                factors.reserve(n);
                let first = group * group_rows;
                for (index, (errors, bias_part)) in errors
                    .chunks_mut(BLOCK * stride)
                    .zip(bias_part.chunks_mut(BLOCK))
                    .enumerate()
                {
                    let start = first + index * BLOCK;
                    let largest = &largest[start / BLOCK * stride..];
                    factors_into(cpu.isa(), largest, log_totals, weight, &mut factors[..n]);
                    for (row, bias_gradient) in errors.chunks_mut(stride).zip(bias_part.iter_mut())
                    {
                        let sum = scale_row(cpu.isa(), &mut row[..n], &factors[..n]);
                        *bias_gradient = if accumulates {
                            *bias_gradient + sum
                        } else {
                            sum
                        };
                    }
                    let block = start..start + errors.len() / stride;
                    for (column, original) in originals.iter().enumerate() {
                        if block.contains(&(*original as usize)) {
                            let at = *original as usize - start;
                            errors[at * stride + column] -= weight;
                            bias_part[at] -= weight;
                        }
                    }
                    let shape = Shape {
                        m: n,
                        k: block.len(),
                        n: width,
                    };
                    let table = Right::rows(&output.table[start * width..], width);
                    let out = Out {
                        data: share,
                        row: width,
                        accumulates: true,
                    };
                    small_product(cpu.isa(), shape, Left::columns(errors, stride), table, out);
                }
            },
        );
        self.d.reserve(n * width);
        let d = &mut self.d[..n * width];
        d.fill(0.0);
        for share in self.shares[..n_groups * n * width].chunks_exact(n * width) {
            add(cpu.isa(), d, share);
        }
    }
}
