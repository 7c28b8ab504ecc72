//! Computes a tile with AVX-512 VNNI: up to 6 rows of 4 vectors, so 24 independent sums.
#![expect(unsafe_code, reason = "intrinsics on raw tiles")]

use super::kernel::{Block, GROUP, Int8Tile, LANES, Sums};
use std::arch::x86_64::{
    __m512i, _mm512_dpbusd_epi32, _mm512_load_si512, _mm512_set1_epi32, _mm512_setzero_si512,
    _mm512_storeu_si512,
};
use std::array::from_fn;
use std::hint::black_box;

/// Calls the kernel compiled for exactly this number of rows and panels.
///
/// # Safety
/// The slices of the tile must contain every element that its sizes describe, and the CPU must have AVX-512F and
/// AVX-512 VNNI.
pub(crate) unsafe fn multiply(tile: &Int8Tile<'_>, sums: &mut Sums) {
    macro_rules! rows {
        ($panels:literal) => {
            match tile.n_rows {
                1 => kernel::<1, $panels>(tile, sums),
                2 => kernel::<2, $panels>(tile, sums),
                3 => kernel::<3, $panels>(tile, sums),
                4 => kernel::<4, $panels>(tile, sums),
                5 => kernel::<5, $panels>(tile, sums),
                _ => kernel::<6, $panels>(tile, sums),
            }
        };
    }
    // SAFETY: the caller guarantees that the tile is valid and the CPU has the features.
    unsafe {
        match tile.n_panels {
            1 => rows!(1),
            2 => rows!(2),
            3 => rows!(3),
            _ => rows!(4),
        }
    }
}

// SAFETY: as for `multiply`. The constants must match the size of the tile.
#[target_feature(enable = "avx512f,avx512vnni")]
unsafe fn kernel<const ROWS: usize, const PANELS: usize>(tile: &Int8Tile<'_>, sums: &mut Sums) {
    let mut totals = [[_mm512_setzero_si512(); PANELS]; ROWS];
    // `black_box` keeps the compiler from recomputing the pointers by additions in every iteration.
    let rows: [*const u8; ROWS] =
        black_box(from_fn(|row| tile.rows.as_ptr().wrapping_add(row * tile.stride)));
    let panels: [*const Block; PANELS] =
        black_box(from_fn(|panel| tile.panels.as_ptr().wrapping_add(panel * tile.n_steps)));
    // SAFETY: `step` is below `n_steps`, and the caller guarantees that all rows and panels have that many steps. A
    // `Block` is 64 bytes at a multiple of 64.
    unsafe {
        for step in 0..tile.n_steps {
            let weights: [__m512i; PANELS] =
                from_fn(|panel| _mm512_load_si512(panels[panel].add(step).cast()));
            for (row, totals) in totals.iter_mut().enumerate() {
                let x = rows[row].add(step * GROUP).cast::<i32>().read_unaligned();
                let x = _mm512_set1_epi32(x);
                for (total, weights) in totals.iter_mut().zip(&weights) {
                    *total = _mm512_dpbusd_epi32(*total, x, *weights);
                }
            }
        }
        for (sums, totals) in sums.iter_mut().zip(&totals) {
            for (panel, total) in totals.iter().enumerate() {
                _mm512_storeu_si512(sums.as_mut_ptr().add(panel * LANES).cast(), *total);
            }
        }
    }
}
