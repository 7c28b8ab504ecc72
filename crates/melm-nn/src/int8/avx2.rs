//! Computes a tile with AVX2. The integers are widened to 16 bits, so that no product saturates.
#![expect(unsafe_code, reason = "intrinsics on raw tiles")]

use super::kernel::{Block, GROUP, Int8Tile, LANES, Sums};
use std::arch::x86_64::{
    __m128i, __m256i, _mm_loadu_si128, _mm_set1_epi32, _mm256_add_epi32, _mm256_cvtepi8_epi16,
    _mm256_cvtepu8_epi16, _mm256_hadd_epi32, _mm256_madd_epi16, _mm256_permute4x64_epi64,
    _mm256_setzero_si256, _mm256_storeu_si256,
};
use std::array::from_fn;

/// The number of vectors of 16 widened weights in a block. Each holds the weights of four outputs.
const VECTORS: usize = 4;
/// The number of rows that are summed at a time: eight sums are in registers.
const ROWS: usize = 2;

/// Computes the sums of a tile, two rows of one panel at a time.
///
/// # Safety
/// The slices of the tile must contain every element that its sizes describe, and the CPU must have AVX2.
pub(crate) unsafe fn multiply(tile: &Int8Tile<'_>, sums: &mut Sums) {
    for panel in 0..tile.n_panels {
        let mut row = 0;
        while row < tile.n_rows {
            let n = ROWS.min(tile.n_rows - row);
            // SAFETY: the caller guarantees that the tile is valid and the CPU has AVX2. Rows and panel are in the tile.
            unsafe {
                match n {
                    1 => kernel::<1>(tile, row, panel, sums),
                    _ => kernel::<ROWS>(tile, row, panel, sums),
                }
            }
            row += n;
        }
    }
}

// SAFETY: as for `multiply`. The tile must have `N` rows from `row` on, and the panel.
#[target_feature(enable = "avx2")]
unsafe fn kernel<const N: usize>(tile: &Int8Tile<'_>, row: usize, panel: usize, sums: &mut Sums) {
    // The sum of an output is in two neighbouring lanes until the end.
    let mut totals = [[_mm256_setzero_si256(); VECTORS]; N];
    let rows: [*const u8; N] =
        from_fn(|at| tile.rows.as_ptr().wrapping_add((row + at) * tile.stride));
    let blocks: *const Block = tile.panels.as_ptr().wrapping_add(panel * tile.n_steps);
    for step in 0..tile.n_steps {
        // SAFETY: `step` is below `n_steps`, and the caller guarantees that all rows and panels have that many steps.
        let (weights, x): ([__m256i; VECTORS], [__m256i; N]) = unsafe {
            let block = blocks.add(step).cast::<__m128i>();
            (
                from_fn(|at| _mm256_cvtepi8_epi16(_mm_loadu_si128(block.add(at)))),
                from_fn(|at| {
                    let x = rows[at].add(step * GROUP).cast::<i32>().read_unaligned();
                    _mm256_cvtepu8_epi16(_mm_set1_epi32(x))
                }),
            )
        };
        for (totals, x) in totals.iter_mut().zip(x) {
            for (total, weights) in totals.iter_mut().zip(weights) {
                *total = _mm256_add_epi32(*total, _mm256_madd_epi16(x, weights));
            }
        }
    }
    for (sums, [a, b, c, d]) in sums[row..row + N].iter_mut().zip(totals) {
        let sums = &mut sums[panel * LANES..(panel + 1) * LANES];
        for (half, (a, b)) in sums.chunks_exact_mut(LANES / 2).zip([(a, b), (c, d)]) {
            // `hadd` works in each half of a register. The permutation puts the outputs in order.
            let pairs = _mm256_permute4x64_epi64::<0b11_01_10_00>(_mm256_hadd_epi32(a, b));
            // SAFETY: `half` has eight numbers.
            unsafe { _mm256_storeu_si256(half.as_mut_ptr().cast(), pairs) };
        }
    }
}
