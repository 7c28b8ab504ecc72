//! Matrix products by the crate `gemm`, for machines that have no kernels of their own here.
//!
//! The split into blocks depends only on the shape, and each block is computed by one thread, so every number of threads
//! gives the same bits. Unlike the other products, an element can depend on the other rows of the batch in its last
//! bits, because `gemm` chooses the order of the sums by the size of the block.

use super::{Left, Out, Output, Right, Shape, part};
use crate::device::Cpu;
use gemm::Parallelism;

/// The largest numbers of rows and columns of a block. `gemm` packs both matrices for every block, so that smaller
/// blocks would cost time.
const ROWS: usize = 256;
const COLUMNS: usize = 768;

/// Computes a product on all threads. The caller has checked that the matrices fit the shape, which is not empty.
pub(super) fn product(cpu: &Cpu, shape: Shape, left: Left<'_>, right: Right<'_>, out: Out<'_>) {
    let (n_down, n_across) = (shape.m.div_ceil(ROWS), shape.n.div_ceil(COLUMNS));
    let Out { data, row, accumulates } = out;
    let c = Output(data.as_mut_ptr());
    cpu.pool().run(n_down * n_across, &|task, _| {
        let rows = part(shape.m, n_down, task / n_across);
        let columns = part(shape.n, n_across, task % n_across);
        let block = Block {
            shape: Shape { m: rows.len(), n: columns.len(), k: shape.k },
            left: Left { data: &left.data[rows.start * left.row..], ..left },
            right: Right { data: &right.data[columns.start * right.column..], ..right },
            c: c.at(rows.start * row + columns.start),
            c_row: row,
            accumulates,
        };
        #[expect(unsafe_code, reason = "tasks write disjoint blocks of one matrix")]
        // SAFETY: the caller checked the matrices against the shape, and the blocks lie inside it and do not overlap.
        unsafe {
            multiply(&block);
        }
    });
}

/// Computes a product on the calling thread. The caller has checked that the matrices fit the shape, which is not empty.
pub(super) fn small_product(shape: Shape, left: Left<'_>, right: Right<'_>, out: Out<'_>) {
    let Out { data, row: c_row, accumulates } = out;
    let block = Block { shape, left, right, c: data.as_mut_ptr(), c_row, accumulates };
    #[expect(unsafe_code, reason = "the block is raw")]
    // SAFETY: the caller checked the three matrices against the shape.
    unsafe {
        multiply(&block);
    }
}

/// A part of a product that one thread computes.
struct Block<'a> {
    shape: Shape,
    left: Left<'a>,
    right: Right<'a>,
    c: *mut f32,
    c_row: usize,
    accumulates: bool,
}

/// Computes one block.
///
/// # Safety
/// Both matrices must contain all elements of the shape. `c` must be valid for reading and writing its `m` rows, and
/// not shared with another thread.
#[expect(unsafe_code, reason = "`gemm` takes raw matrices")]
unsafe fn multiply(block: &Block<'_>) {
    let Block { shape: Shape { m, k, n }, left, right, c, c_row, accumulates } = *block;
    let stride = |stride: usize| isize::try_from(stride).expect("a stride inside a slice");
    // SAFETY: the caller guarantees that the three matrices are valid.
    unsafe {
        gemm::gemm(
            m,
            n,
            k,
            c,
            1,
            stride(c_row),
            accumulates,
            left.data.as_ptr(),
            stride(left.step),
            stride(left.row),
            right.data.as_ptr(),
            stride(right.column),
            stride(right.step),
            1.0,
            1.0,
            false,
            false,
            false,
            Parallelism::None,
        );
    }
}
