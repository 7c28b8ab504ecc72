//! Matrix products. The matrices are packed into panels, and tiles of the output are summed in registers.
//!
//! The order of each sum depends only on the shape, so every number of threads gives the same bits.

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
mod cut;
#[cfg(any(feature = "gemm_products", not(target_arch = "x86_64")))]
mod gemm_products;
mod pack;
mod small;
mod tile;

pub(crate) use pack::{pack_columns, pack_rows};
pub(crate) use small::{small_product, small_product_ahead};
pub(crate) use tile::{Extent, Tile, extent, multiply};

use crate::buffer::Buffer;
use crate::device::Cpu;
use crate::isa::Isa;
use cut::Cut;
use std::ops::Range;

/// The left matrix `[m, k]`. Element `(i, k)` is `data[i * row + k * step]`. One of the two strides is 1.
#[derive(Clone, Copy)]
pub(crate) struct Left<'a> {
    pub(crate) data: &'a [f32],
    pub(crate) row: usize,
    pub(crate) step: usize,
}

/// The right matrix `[k, n]`. Element `(k, j)` is `data[k * step + j * column]`. One of the two strides is 1.
#[derive(Clone, Copy)]
pub(crate) struct Right<'a> {
    pub(crate) data: &'a [f32],
    pub(crate) step: usize,
    pub(crate) column: usize,
}

impl<'a> Left<'a> {
    /// Describes a matrix that is stored in rows of `width` numbers.
    pub(crate) fn rows(data: &'a [f32], width: usize) -> Self {
        Self { data, row: width, step: 1 }
    }

    /// Describes the transpose of a matrix that is stored in rows of `width` numbers.
    pub(crate) fn columns(data: &'a [f32], width: usize) -> Self {
        Self { data, row: 1, step: width }
    }

    /// Returns true if all elements of an `[m, k]` matrix lie inside the data.
    fn contains(&self, m: usize, k: usize) -> bool {
        is_inside(self.data.len(), [m, k], [self.row, self.step])
    }
}

impl<'a> Right<'a> {
    /// Describes a matrix that is stored in rows of `width` numbers.
    pub(crate) fn rows(data: &'a [f32], width: usize) -> Self {
        Self { data, step: width, column: 1 }
    }

    /// Describes the transpose of a matrix that is stored in rows of `width` numbers. Each stored row is a column of
    /// the right matrix.
    pub(crate) fn columns(data: &'a [f32], width: usize) -> Self {
        Self { data, step: 1, column: width }
    }

    /// Returns true if all elements of a `[k, n]` matrix lie inside the data.
    fn contains(&self, k: usize, n: usize) -> bool {
        is_inside(self.data.len(), [k, n], [self.step, self.column])
    }
}

/// Returns true if the last element of a matrix with these `sizes` and `strides` lies inside `len` numbers. The sizes
/// must not be 0.
///
/// The unsafe kernels rely on this check, so its arithmetic must not overflow.
fn is_inside(len: usize, sizes: [usize; 2], strides: [usize; 2]) -> bool {
    let offset = |at: usize| (sizes[at] - 1).checked_mul(strides[at]);
    let last = offset(0).zip(offset(1)).and_then(|(a, b)| a.checked_add(b));
    last.is_some_and(|last| last < len)
}

/// The sizes of a product: the output is `[m, n]`, and `k` is the summed dimension.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Shape {
    pub(crate) m: usize,
    pub(crate) k: usize,
    pub(crate) n: usize,
}

/// The output of a product. The starts of its rows are `row` numbers apart.
pub(crate) struct Out<'a> {
    pub(crate) data: &'a mut [f32],
    pub(crate) row: usize,
    pub(crate) accumulates: bool,
}

/// The largest part of `k` that is summed in registers at a time. A right panel of this length (48 columns) stays in
/// the second-level cache. Shorter parts would read the output more often.
const RUN: usize = 1536;
#[derive(Clone, Copy)]
struct Output(*mut f32);
#[expect(unsafe_code, reason = "tasks write disjoint blocks of one matrix")]
// SAFETY: the pointer is only used to write the blocks of the tasks, which do not overlap.
unsafe impl Sync for Output {}

impl Output {
    /// Returns the address of an element. This is a method, so that closures capture the struct, which is `Sync`, and
    /// not the pointer.
    fn at(&self, index: usize) -> *mut f32 {
        self.0.wrapping_add(index)
    }
}

/// Splits `total` into `n_parts` ranges of nearly the same size and returns range `index`.
pub(crate) fn part(total: usize, n_parts: usize, index: usize) -> Range<usize> {
    let (base, extra) = (total / n_parts, total % n_parts);
    let start = index * base + index.min(extra);
    start..start + base + usize::from(index < extra)
}

/// Like [`part`], but splits only at multiples of `tile`, so that vectors stay aligned and only the last tile can be
/// smaller.
fn part_of_tiles(total: usize, tile: usize, n_parts: usize, index: usize) -> Range<usize> {
    let tiles = part(total.div_ceil(tile), n_parts, index);
    tiles.start * tile..(tiles.end * tile).min(total)
}

/// Computes `out = left * right` or `out += left * right` on all threads.
pub(crate) fn product(cpu: &Cpu, shape: Shape, left: Left<'_>, right: Right<'_>, out: Out<'_>) {
    let Shape { m, k, n } = shape;
    let Out { data, row, accumulates } = out;
    if m == 0 || n == 0 {
        return;
    }
    assert!(k > 0, "an empty sum");
    assert!(left.contains(m, k) && right.contains(k, n));
    assert!(n <= row && is_inside(data.len(), [m, n], [row, 1]));
    #[cfg(any(feature = "gemm_products", not(target_arch = "x86_64")))]
    if cpu.isa().kind() == crate::isa::IsaKind::Gemm {
        return gemm_products::product(cpu, shape, left, right, Out { data, row, accumulates });
    }
    let tile = extent(cpu.isa());
    let Extent { rows: tile_rows, columns: tile_columns } = tile;
    let Cut { n_down, n_across } = Cut::new(shape, left.step != 1, tile, cpu.n_threads());
    let n_runs = k.div_ceil(RUN);
    let c = Output(data.as_mut_ptr());
    cpu.pool().run(n_down * n_across, &|task, worker| {
        let block = Block {
            rows: part_of_tiles(m, tile_rows, n_down, task / n_across),
            columns: part_of_tiles(n, tile_columns, n_across, task % n_across),
        };
        let mut scratch = cpu.scratch(worker);
        for index in 0..n_runs {
            let run = part(k, n_runs, index);
            let accumulates = accumulates || index > 0;
            let target = Target { c: c.at(0), row, accumulates };
            multiply_block(cpu.isa(), &block, run, left, right, &target, &mut scratch);
        }
    });
}

struct Block {
    rows: Range<usize>,
    columns: Range<usize>,
}

struct Target {
    c: *mut f32,
    row: usize,
    accumulates: bool,
}

/// Computes one block of the output for one range of `k`.
fn multiply_block(
    isa: Isa,
    block: &Block,
    run: Range<usize>,
    left: Left<'_>,
    right: Right<'_>,
    target: &Target,
    scratch: &mut Buffer,
) {
    let k = run.len();
    let Extent { rows: tile_rows, columns: tile_columns } = extent(isa);
    let n_down = block.rows.len().div_ceil(tile_rows);
    let packs_left = left.step != 1;
    let left_len = if packs_left { (block.rows.len() * k).next_multiple_of(16) } else { 0 };
    let needed = left_len + tile_columns * k;
    scratch.reserve(needed);
    let (left_panels, right_panel) = scratch.split_at_mut(left_len);
    if packs_left {
        pack_left(isa, block, &run, left, left_panels);
    }
    for start in block.columns.clone().step_by(tile_columns) {
        let width = tile_columns.min(block.columns.end - start);
        let panel = &mut right_panel[..width * k];
        pack_right(isa, right, run.start, start, width, panel);
        for down in 0..n_down {
            let rows = part(block.rows.len(), n_down, down);
            let first = block.rows.start + rows.start;
            let (a, a_row, a_k) = if packs_left {
                (left_panels[rows.start * k..].as_ptr(), 1, rows.len())
            } else {
                (left.data[first * left.row + run.start..].as_ptr(), left.row, 1)
            };
            let tile = Tile {
                k,
                a,
                a_row,
                a_k,
                b: panel.as_ptr(),
                b_k: width,
                c: target.c.wrapping_add(first * target.row + start),
                c_row: target.row,
                rows: rows.len(),
                columns: width,
                ahead: a,
                ahead_step: 0,
                accumulates: target.accumulates,
            };
            #[expect(unsafe_code, reason = "the tile is raw")]
            // SAFETY: `product` checked both matrices and the output against the shape, and blocks do not overlap.
            unsafe {
                multiply(isa, &tile);
            }
        }
    }
}

/// Packs the left rows of a block for one range of `k` into consecutive panels, one for each tile.
fn pack_left(isa: Isa, block: &Block, run: &Range<usize>, left: Left<'_>, panels: &mut [f32]) {
    let n_down = block.rows.len().div_ceil(extent(isa).rows);
    for down in 0..n_down {
        let rows = part(block.rows.len(), n_down, down);
        let panel = &mut panels[rows.start * run.len()..rows.end * run.len()];
        let from = &left.data[block.rows.start + rows.start + run.start * left.step..];
        pack_rows(isa, from, left.step, rows.len(), panel);
    }
}

/// Packs `width` columns of the right matrix, starting at the element `(first_k, first_column)`.
fn pack_right(
    isa: Isa,
    right: Right<'_>,
    first_k: usize,
    first_column: usize,
    width: usize,
    panel: &mut [f32],
) {
    let from = &right.data[first_k * right.step + first_column * right.column..];
    if right.column == 1 {
        pack_rows(isa, from, right.step, width, panel);
    } else {
        pack_columns(isa, from, right.column, width, panel);
    }
}

#[cfg(test)]
mod tests;
