//! The pieces of a layer, each forward with its backward.

pub(crate) mod attend;
pub(crate) mod attention;
pub(crate) mod cross_entropy;
pub(crate) mod embedding;
pub(crate) mod gelu;
pub(crate) mod linear;
pub(crate) mod norm;

use crate::buffer::Buffer;
use crate::device::Cpu;
use crate::isa::per_isa;
use crate::split::Split;
use linear::Accumulator;

/// Rows of one task in loops over rows. Also fixes the order in which columns are summed.
pub(crate) const ROWS_PER_TASK: usize = 16;

per_isa! {
    /// `out += row`, element by element.
    pub(crate) fn add(out: &mut [f32], row: &[f32]) {
        for (out, x) in out.iter_mut().zip(row) {
            *out += x;
        }
    }
}

per_isa! {
    /// The scalar product of two rows.
    pub(crate) fn dot(x: &[f32], y: &[f32]) -> f32 {
        crate::math::sum_of(x, y, |x, y| x * y)
    }
}

/// Sums of columns over rows, in two stages: each task sums its rows, then the tasks' sums are added in order.
#[derive(Default)]
pub(crate) struct ColumnSums {
    partial: Buffer,
}

impl ColumnSums {
    /// Zeros for `n_tasks` partial sums of `width`.
    pub(crate) fn start(&mut self, n_tasks: usize, width: usize) -> &mut [f32] {
        self.partial.reserve(n_tasks * width);
        let partial = &mut self.partial[..n_tasks * width];
        partial.fill(0.0);
        partial
    }

    /// Sums the rows of `data`. Returns the shape of the partial sums.
    pub(crate) fn of_rows(&mut self, cpu: &Cpu, data: &[f32], width: usize) -> (usize, usize) {
        let block = width * ROWS_PER_TASK;
        let n_tasks = data.len().div_ceil(block);
        let parts = Split::every(self.start(n_tasks, width), width);
        cpu.each(n_tasks, parts, |task, _, sum| {
            let end = data.len().min((task + 1) * block);
            for row in data[task * block..end].chunks_exact(width) {
                add(cpu.isa(), sum, row);
            }
        });
        (n_tasks, width)
    }

    /// Adds up columns of the partial sums, starting at column `from`.
    pub(crate) fn finish_into(
        &self,
        cpu: &Cpu,
        (n_tasks, width): (usize, usize),
        from: usize,
        out: Accumulator<'_>,
    ) {
        let Accumulator { data, accumulates } = out;
        if !accumulates {
            data.fill(0.0);
        }
        for partial in self.partial[..n_tasks * width].chunks_exact(width) {
            add(cpu.isa(), data, &partial[from..from + data.len()]);
        }
    }
}
