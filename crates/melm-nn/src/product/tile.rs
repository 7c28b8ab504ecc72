//! The innermost loop of a product: one small tile of the output, summed over one range of `k`.
//!
//! Every element is summed by multiply-adds in the order of `k`, whatever the size of the tile. So a value depends
//! neither on the borders of the tile nor on the other rows of the batch.

use crate::isa::{Isa, IsaKind};

/// One tile: `c[i, j]` is set to, or increased by, the sum over `k` of `a[i, k] * b[k, j]`.
#[derive(Clone, Copy)]
pub(crate) struct Tile {
    pub(crate) k: usize,
    /// `a[i, k]` is at `a + i * a_row + k * a_k`. Either `a_row` or `a_k` is 1.
    pub(crate) a: *const f32,
    pub(crate) a_row: usize,
    pub(crate) a_k: usize,
    /// `b[k, j]` is at `b + k * b_k + j`.
    pub(crate) b: *const f32,
    pub(crate) b_k: usize,
    /// `c[i, j]` is at `c + i * c_row + j`.
    pub(crate) c: *mut f32,
    pub(crate) c_row: usize,
    /// The numbers of rows and columns, at most [`Extent::rows`] and [`Extent::columns`].
    pub(crate) rows: usize,
    pub(crate) columns: usize,
    /// The data to prefetch with AVX-512. Each step of `k` prefetches one cache line and moves on by `ahead_step`.
    pub(crate) ahead: *const f32,
    pub(crate) ahead_step: usize,
    /// True to add to `c`, false to overwrite it.
    pub(crate) accumulates: bool,
}

/// The size of the largest tile that fits into the registers of an instruction set.
#[derive(Clone, Copy)]
pub(crate) struct Extent {
    pub(crate) rows: usize,
    pub(crate) columns: usize,
}

pub(crate) fn extent(isa: Isa) -> Extent {
    match isa.kind() {
        IsaKind::Avx512 => Extent { rows: 8, columns: 48 },
        IsaKind::Avx2 => Extent { rows: 6, columns: 16 },
        IsaKind::Gemm | IsaKind::Scalar => SCALAR,
    }
}

/// Computes one tile.
///
/// # Safety
/// All elements that `tile` describes must be valid. Those of `c` must also be writable and not shared with another
/// thread. `rows` and `columns` must be between 1 and the [`extent`] for the instruction set.
#[expect(unsafe_code, reason = "raw tiles of strided matrices")]
pub(crate) unsafe fn multiply(isa: Isa, tile: &Tile) {
    debug_assert!(tile.a_row == 1 || tile.a_k == 1);
    debug_assert!((1..=extent(isa).rows).contains(&tile.rows));
    debug_assert!((1..=extent(isa).columns).contains(&tile.columns));
    // SAFETY: the caller guarantees that the tile is valid, and `isa` guarantees that the CPU has the features.
    unsafe {
        match isa.kind() {
            #[cfg(target_arch = "x86_64")]
            IsaKind::Avx512 => super::avx512::multiply(tile),
            #[cfg(target_arch = "x86_64")]
            IsaKind::Avx2 => super::avx2::multiply(tile),
            #[cfg(not(target_arch = "x86_64"))]
            IsaKind::Avx512 | IsaKind::Avx2 => unreachable!("`Isa` proves that the CPU has it"),
            IsaKind::Gemm | IsaKind::Scalar => scalar(tile),
        }
    }
}

const SCALAR: Extent = Extent { rows: 4, columns: 8 };

/// Computes one tile in plain Rust. Whole tiles use loops with constant bounds, so that the sums stay in registers.
#[expect(unsafe_code, reason = "raw tiles of strided matrices")]
// SAFETY: as for `multiply`.
unsafe fn scalar(tile: &Tile) {
    let is_whole = tile.rows == SCALAR.rows && tile.columns == SCALAR.columns;
    let mut sums = [[0.0_f32; SCALAR.columns]; SCALAR.rows];
    for k in 0..tile.k {
        let mut right = [0.0; SCALAR.columns];
        let mut left = [0.0; SCALAR.rows];
        // SAFETY: the caller guarantees that the elements are valid.
        unsafe {
            let b = tile.b.add(k * tile.b_k);
            let a = tile.a.add(k * tile.a_k);
            if is_whole {
                right = b.cast::<[f32; SCALAR.columns]>().read_unaligned();
                left = std::array::from_fn(|i| *a.add(i * tile.a_row));
            } else {
                right[..tile.columns].copy_from_slice(std::slice::from_raw_parts(b, tile.columns));
                for (i, left) in left.iter_mut().enumerate().take(tile.rows) {
                    *left = *a.add(i * tile.a_row);
                }
            }
        }
        for (row, a) in sums.iter_mut().zip(left) {
            for (sum, b) in row.iter_mut().zip(right) {
                *sum += a * b;
            }
        }
    }
    for (i, row) in sums.iter().enumerate().take(tile.rows) {
        // SAFETY: the caller guarantees that the elements are valid.
        let c = unsafe { std::slice::from_raw_parts_mut(tile.c.add(i * tile.c_row), tile.columns) };
        for (c, sum) in c.iter_mut().zip(row) {
            *c = if tile.accumulates { *c + sum } else { *sum };
        }
    }
}
