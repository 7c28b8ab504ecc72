//! Computes a tile in 256-bit registers: up to 6 rows of 2 vectors, so 12 independent sums.
#![expect(unsafe_code, reason = "intrinsics on raw tiles")]

use super::tile::Tile;
use std::arch::x86_64::{
    __m256i, _mm256_add_ps, _mm256_fmadd_ps, _mm256_loadu_ps, _mm256_loadu_si256,
    _mm256_maskload_ps, _mm256_maskstore_ps, _mm256_set1_ps, _mm256_setzero_ps,
};

const LANES: usize = 8;

/// Eight enabled lanes, then eight disabled lanes. Loading from index `8 - n` gives a mask with `n` enabled lanes.
const MASKS: [i32; 16] = [-1, -1, -1, -1, -1, -1, -1, -1, 0, 0, 0, 0, 0, 0, 0, 0];

fn first_lanes(n: usize) -> *const __m256i {
    MASKS[LANES - n..].as_ptr().cast()
}

/// Calls the kernel compiled for exactly this number of rows and vectors.
///
/// # Safety
/// As [`super::tile::multiply`], on a CPU with AVX2 and FMA.
pub(crate) unsafe fn multiply(tile: &Tile) {
    macro_rules! rows {
        ($vectors:literal, $is_whole:literal) => {
            match tile.rows {
                1 => kernel::<1, $vectors, $is_whole>(tile),
                2 => kernel::<2, $vectors, $is_whole>(tile),
                3 => kernel::<3, $vectors, $is_whole>(tile),
                4 => kernel::<4, $vectors, $is_whole>(tile),
                5 => kernel::<5, $vectors, $is_whole>(tile),
                _ => kernel::<6, $vectors, $is_whole>(tile),
            }
        };
    }
    // SAFETY: the caller guarantees that the tile is valid and the CPU has the features.
    unsafe {
        match (tile.columns.div_ceil(LANES), tile.columns.is_multiple_of(LANES)) {
            (1, true) => rows!(1, true),
            (1, false) => rows!(1, false),
            (_, true) => rows!(2, true),
            (_, false) => rows!(2, false),
        }
    }
}

// SAFETY: as for `multiply`. The constants must match the size of the tile.
#[target_feature(enable = "avx2,fma")]
unsafe fn kernel<const ROWS: usize, const VECTORS: usize, const IS_WHOLE: bool>(tile: &Tile) {
    let n_last = tile.columns - (VECTORS - 1) * LANES;
    let mut sums = [[_mm256_setzero_ps(); VECTORS]; ROWS];
    let (mut a, mut b) = (tile.a, tile.b);
    // SAFETY: every address is an element of the tile, which the caller guarantees to be valid. Masked lanes are not
    // accessed.
    unsafe {
        let mask = _mm256_loadu_si256(first_lanes(n_last));
        for _ in 0..tile.k {
            let mut right = [_mm256_setzero_ps(); VECTORS];
            for (vector, right) in right.iter_mut().enumerate() {
                let b = b.add(vector * LANES);
                *right = if IS_WHOLE || vector < VECTORS - 1 {
                    _mm256_loadu_ps(b)
                } else {
                    _mm256_maskload_ps(b, mask)
                };
            }
            for (row, sums) in sums.iter_mut().enumerate() {
                let left = _mm256_set1_ps(*a.add(row * tile.a_row));
                for (sum, right) in sums.iter_mut().zip(&right) {
                    *sum = _mm256_fmadd_ps(left, *right, *sum);
                }
            }
            a = a.wrapping_add(tile.a_k);
            b = b.wrapping_add(tile.b_k);
        }
        let all = _mm256_loadu_si256(first_lanes(LANES));
        for (row, sums) in sums.iter().enumerate() {
            for (vector, sum) in sums.iter().enumerate() {
                let c = tile.c.add(row * tile.c_row + vector * LANES);
                let mask = if vector == VECTORS - 1 { mask } else { all };
                let old = if tile.accumulates {
                    _mm256_maskload_ps(c, mask)
                } else {
                    _mm256_setzero_ps()
                };
                _mm256_maskstore_ps(c, mask, _mm256_add_ps(old, *sum));
            }
        }
    }
}
