//! A linear map with 8-bit weights.

use super::QuantizedRows;
use super::kernel::{BLOCK, Block, GROUP, Int8Tile, Kernel, LANES, PANELS, ROWS, Sums};
use super::rows::RowScale;
use crate::device::Cpu;
use crate::error::Error;
use crate::isa::{Isa, per_isa};
use crate::math::{self, largest_of, smallest_of};
use crate::ops::linear::Linear;
use crate::product::part;
use crate::split::Cells;
use std::ops::Range;

/// The largest integer that a weight is scaled to. It is 127, not 128, so that the range is symmetric.
const MOST: f32 = 127.0;
/// The largest number of inputs. The sum of this many products fits into an `i32`.
const MOST_INPUTS: usize = 1 << 16;
/// The number of rows of a task. The rows of a task and a panel stay in the second-level cache.
const TASK_ROWS: usize = 96;
/// The number of outputs of a task.
const TASK_OUTPUTS: usize = 512;

/// A linear map `y = x W^T`, whose weights are integers with one scale for each output.
pub(crate) struct Int8Linear {
    inputs: usize,
    outputs: usize,
    /// The weights: for each group of [`LANES`] outputs a panel, `[inputs / GROUP]` blocks. Inputs and outputs are padded
    /// with zeros.
    panels: Vec<Block>,
    /// For each output, the factor from integers to numbers, padded as the panels are.
    scales: Vec<f32>,
    /// For each output, the sum of its integers, padded as the panels are. The zero point of a row times this sum is
    /// subtracted from each sum of products.
    weight_sums: Vec<i32>,
}

/// One call of [`Int8Linear::forward`].
struct Call<'a> {
    isa: Isa,
    kernel: Kernel,
    x: &'a QuantizedRows,
    finish: Finish<'a>,
    out: Cells<'a>,
}

/// What is done with the results of the map.
#[derive(Clone, Copy)]
pub(crate) enum Finish<'a> {
    /// They are written.
    Plain,
    /// A bias is added.
    Bias(&'a [f32]),
    /// A bias is added, and the GELU is applied, off by at most 2e-4. The step from one integer to the next is far larger
    /// when the result is quantized.
    Gelu(&'a [f32]),
}

impl<'a> Finish<'a> {
    /// Adds a bias, which is empty if there is none.
    pub(crate) fn with_bias(bias: &'a [f32]) -> Self {
        if bias.is_empty() { Self::Plain } else { Self::Bias(bias) }
    }

    /// Returns the part for some outputs.
    fn part(self, columns: Range<usize>) -> Self {
        match self {
            Self::Plain => Self::Plain,
            Self::Bias(bias) => Self::Bias(&bias[columns]),
            Self::Gelu(bias) => Self::Gelu(&bias[columns]),
        }
    }
}

impl Int8Linear {
    /// Quantizes the weights of a linear map, which must be finite.
    ///
    /// # Errors
    /// [`Error::Limit`] if there are too many inputs, [`Error::OutOfMemory`] if the memory cannot be allocated.
    pub(crate) fn new(linear: Linear, weight: &[f32]) -> Result<Self, Error> {
        let Linear { inputs, outputs } = linear;
        Error::check_limit("inputs of an 8-bit product", inputs, MOST_INPUTS)?;
        let (n_panels, n_steps) = (outputs.div_ceil(LANES), inputs.div_ceil(GROUP));
        let mut panels = Vec::new();
        let n_blocks = n_panels * n_steps;
        panels.try_reserve_exact(n_blocks).map_err(|_| Error::out_of_memory(n_blocks * 16))?;
        panels.resize(n_blocks, Block([0; BLOCK]));
        let mut map = Self {
            inputs,
            outputs,
            panels,
            scales: vec![0.0; n_panels * LANES],
            weight_sums: vec![0; n_panels * LANES],
        };
        let mut integers = vec![0; n_steps * GROUP];
        for (output, row) in weight.chunks_exact(inputs).enumerate() {
            map.set_output(output, n_steps, row, &mut integers);
        }
        Ok(map)
    }

    fn set_output(&mut self, output: usize, n_steps: usize, row: &[f32], integers: &mut [i8]) {
        let most = largest_of(row).max(-smallest_of(row));
        let factor = if most > 0.0 { MOST / most } else { 0.0 };
        round_weights(Isa::detect(), factor, row, integers);
        let panel = &mut self.panels[output / LANES * n_steps..][..n_steps];
        let lane = output % LANES;
        for (Block(block), group) in panel.iter_mut().zip(integers.as_chunks::<GROUP>().0) {
            block.as_chunks_mut::<GROUP>().0[lane] = *group;
        }
        self.weight_sums[output] = integers.iter().map(|integer| i32::from(*integer)).sum();
        self.scales[output] = most / MOST;
    }

    /// Returns the number of outputs.
    pub(crate) fn outputs(&self) -> usize {
        self.outputs
    }

    /// Computes `y = x W^T` from quantized rows, then `finish`.
    pub(crate) fn forward(&self, cpu: &Cpu, x: &QuantizedRows, finish: Finish<'_>, y: &mut [f32]) {
        let n = x.n_rows();
        assert_eq!(x.width(), self.inputs, "rows of the width of the map");
        assert_eq!(y.len(), n * self.outputs, "an output for each row");
        let n_panels = self.outputs.div_ceil(LANES);
        let n_down = n.div_ceil(TASK_ROWS);
        let n_across = self.outputs.div_ceil(TASK_OUTPUTS);
        let (isa, out) = (cpu.isa(), Cells::new(y, self.outputs));
        let call = Call { isa, kernel: Kernel::detect(isa), x, finish, out };
        cpu.pool().run(n_down * n_across, &|task, _| {
            let rows = part(n.div_ceil(ROWS), n_down, task / n_across);
            let panels = part(n_panels.div_ceil(PANELS), n_across, task % n_across);
            // One array for all tiles, because clearing it for each tile takes as long as scaling its sums.
            let mut sums: Sums = [[0; PANELS * LANES]; ROWS];
            for panel in panels.map(|tile| tile * PANELS) {
                for row in rows.clone().map(|tile| tile * ROWS) {
                    self.tile(&call, row, panel, &mut sums);
                }
            }
        });
    }

    /// Computes one tile of the output, which starts at a row and a panel. `sums` is working memory.
    fn tile(&self, call: &Call<'_>, row: usize, panel: usize, sums: &mut Sums) {
        let Call { isa, kernel, x, finish, ref out } = *call;
        let n_steps = self.inputs.div_ceil(GROUP);
        let n_rows = ROWS.min(x.n_rows() - row);
        let n_panels = PANELS.min(self.outputs.div_ceil(LANES) - panel);
        let tile = Int8Tile {
            rows: &x.data()[row * x.stride()..],
            stride: x.stride(),
            n_rows,
            panels: &self.panels[panel * n_steps..],
            n_panels,
            n_steps,
        };
        kernel.multiply(&tile, sums);
        let first = panel * LANES;
        let columns = first..self.outputs.min(first + n_panels * LANES);
        let weights = Weights {
            scales: &self.scales[columns.clone()],
            sums: &self.weight_sums[columns.clone()],
        };
        let mut y: [&mut [f32]; ROWS] = std::array::from_fn(|at| {
            let width = if at < n_rows { columns.clone() } else { first..first };
            #[expect(unsafe_code, reason = "a part of a row of this tile")]
            // SAFETY: `forward` gives every tile to one task. The rows after the last one of the tile are empty.
            unsafe {
                out.part(row + at.min(n_rows - 1), width)
            }
        });
        let y = &mut y[..n_rows];
        finish_tile(isa, &x.scales()[row..row + n_rows], weights, sums, finish.part(columns), y);
    }
}

/// The scales and the sums of integers of some outputs.
#[derive(Clone, Copy)]
struct Weights<'a> {
    scales: &'a [f32],
    sums: &'a [i32],
}

per_isa! {
    /// Rounds scaled weights to integers, which are below 2^22 in absolute value.
    fn round_weights(factor: f32, weights: &[f32], out: &mut [i8]) {
        // 1.5 * 2^23. Adding this number rounds to an integer, which is then in the low bits.
        const ROUND: f32 = 12_582_912.0;
        for (out, weight) in out.iter_mut().zip(weights) {
            #[expect(clippy::cast_possible_truncation, reason = "the integer is in the low byte")]
            let integer = (weight * factor + ROUND).to_bits() as i8;
            *out = integer;
        }
    }
}

per_isa! {
    /// Converts the sums of the rows of a tile to numbers, and finishes them.
    fn finish_tile(rows: &[RowScale], weights: Weights<'_>, sums: &Sums, finish: Finish<'_>, y: &mut [&mut [f32]]) {
        for ((row, sums), y) in rows.iter().zip(sums).zip(y) {
            match finish {
                Finish::Plain => finish_row(*row, weights, sums, weights.scales, |x, _| x, y),
                Finish::Bias(bias) => finish_row(*row, weights, sums, bias, |x, bias| x + bias, y),
                Finish::Gelu(bias) => {
                    finish_row(*row, weights, sums, bias, |x, bias| math::rough_gelu(x + bias), y);
                }
            }
        }
    }
}

/// Converts the sums of a row to numbers, and writes `finish` of each number and its bias.
#[expect(clippy::inline_always, reason = "it is compiled for the caller's instruction set")]
#[inline(always)]
fn finish_row(
    row: RowScale,
    weights: Weights<'_>,
    sums: &[i32],
    bias: &[f32],
    finish: impl Fn(f32, f32) -> f32,
    y: &mut [f32],
) {
    let columns = weights.scales.iter().zip(weights.sums).zip(bias);
    for ((y, sum), ((scale, weight_sum), bias)) in y.iter_mut().zip(sums).zip(columns) {
        *y = finish((sum - row.zero * weight_sum) as f32 * (row.scale * scale), *bias);
    }
}
