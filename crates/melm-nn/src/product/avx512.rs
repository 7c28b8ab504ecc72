//! Computes a tile in 512-bit registers: up to 8 rows of 3 vectors, so 24 independent sums.
#![expect(unsafe_code, reason = "intrinsics on raw tiles")]

use super::tile::Tile;
use std::arch::x86_64::{
    __m512, _MM_HINT_T0, _MM_HINT_T1, _mm_prefetch, _mm512_add_ps, _mm512_castpd_ps,
    _mm512_castps_pd, _mm512_fmadd_ps, _mm512_loadu_ps, _mm512_mask_storeu_ps,
    _mm512_maskz_loadu_ps, _mm512_set1_ps, _mm512_setzero_ps, _mm512_shuffle_f32x4,
    _mm512_storeu_ps, _mm512_unpackhi_pd, _mm512_unpackhi_ps, _mm512_unpacklo_pd,
    _mm512_unpacklo_ps,
};
use std::array::from_fn;
use std::hint::black_box;

const LANES: usize = 16;

/// Transposes a 16 x 16 square. The rows of `from` are `row` numbers apart, those of `to` are `width` numbers apart.
///
/// # Safety
/// Both squares must be valid, `to` also for writing, and the CPU must have AVX-512F.
#[target_feature(enable = "avx512f")]
pub(crate) unsafe fn transpose(from: *const f32, row: usize, to: *mut f32, width: usize) {
    // SAFETY: the caller guarantees that the 16 rows of 16 numbers are valid.
    let rows: [__m512; 16] = from_fn(|i| unsafe { _mm512_loadu_ps(from.add(i * row)) });
    // Interleaves pairs of rows, then groups of four rows. After that, quarter q of vector 4 g + c holds column 4 q + c
    // of rows 4 g to 4 g + 3.
    let pairs: [__m512; 16] = from_fn(|i| match i % 2 {
        0 => _mm512_unpacklo_ps(rows[i], rows[i + 1]),
        _ => _mm512_unpackhi_ps(rows[i - 1], rows[i]),
    });
    let fours: [__m512; 16] = from_fn(|i| {
        let first = i / 4 * 4 + i % 4 / 2;
        let (a, b) = (_mm512_castps_pd(pairs[first]), _mm512_castps_pd(pairs[first + 2]));
        _mm512_castpd_ps(match i % 2 {
            0 => _mm512_unpacklo_pd(a, b),
            _ => _mm512_unpackhi_pd(a, b),
        })
    });
    // Makes one vector of the even quarters of two vectors, and another one of their odd quarters.
    let eights: [__m512; 16] = from_fn(|i| {
        let first = i / 8 * 8 + i % 4;
        match i / 4 % 2 {
            0 => _mm512_shuffle_f32x4::<0x88>(fours[first], fours[first + 4]),
            _ => _mm512_shuffle_f32x4::<0xdd>(fours[first], fours[first + 4]),
        }
    });
    for i in 0..8 {
        let low = _mm512_shuffle_f32x4::<0x88>(eights[i], eights[i + 8]);
        let high = _mm512_shuffle_f32x4::<0xdd>(eights[i], eights[i + 8]);
        // SAFETY: the caller guarantees that the 16 rows of 16 numbers are valid for writing.
        unsafe {
            _mm512_storeu_ps(to.add(i * width), low);
            _mm512_storeu_ps(to.add((i + 8) * width), high);
        }
    }
}

/// Calls the kernel compiled for exactly this number of rows and vectors.
///
/// # Safety
/// As [`super::tile::multiply`], on a CPU with AVX-512F.
pub(crate) unsafe fn multiply(tile: &Tile) {
    macro_rules! rows {
        ($vectors:literal, $in_place:literal) => {
            match tile.rows {
                1 => kernel::<1, $vectors, $in_place>(tile),
                2 => kernel::<2, $vectors, $in_place>(tile),
                3 => kernel::<3, $vectors, $in_place>(tile),
                4 => kernel::<4, $vectors, $in_place>(tile),
                5 => kernel::<5, $vectors, $in_place>(tile),
                6 => kernel::<6, $vectors, $in_place>(tile),
                7 => kernel::<7, $vectors, $in_place>(tile),
                _ => kernel::<8, $vectors, $in_place>(tile),
            }
        };
    }
    // SAFETY: the caller guarantees that the tile is valid and the CPU has the features.
    unsafe {
        match (tile.columns.div_ceil(LANES), tile.a_k == 1) {
            (1, true) => rows!(1, true),
            (1, false) => rows!(1, false),
            (2, true) => rows!(2, true),
            (2, false) => rows!(2, false),
            (_, true) => rows!(3, true),
            (_, false) => rows!(3, false),
        }
    }
}

/// Computes one tile. If `IN_PLACE` is true, `a` is read along its rows (`a_k` is 1), otherwise across them (`a_row` is
/// 1).
///
/// The two cases are compiled separately, because the address arithmetic of a general stride would cost a fifth of the
/// speed. The first case uses one pointer for each row, the second constant offsets from one pointer. The loop then
/// consists of little more than its 24 multiply-adds.
// SAFETY: as for `multiply`. The constants must match the size of the tile.
#[target_feature(enable = "avx512f")]
unsafe fn kernel<const ROWS: usize, const VECTORS: usize, const IN_PLACE: bool>(tile: &Tile) {
    let last = u16::MAX >> (VECTORS * LANES - tile.columns);
    let mut sums = [[_mm512_setzero_ps(); VECTORS]; ROWS];
    let (mut across, mut b, mut ahead) = (tile.a, tile.b, tile.ahead);
    // `black_box` keeps the compiler from recomputing the pointers by additions in every iteration.
    let along: [*const f32; ROWS] = if IN_PLACE {
        black_box(from_fn(|row| tile.a.wrapping_add(row * tile.a_row)))
    } else {
        [tile.a; ROWS]
    };
    // SAFETY: every address is an element of the tile, which the caller guarantees to be valid. The masked lanes of the
    // last vector are not accessed.
    unsafe {
        for row in 0..ROWS {
            for vector in 0..VECTORS {
                let c = tile.c.wrapping_add(row * tile.c_row + vector * LANES);
                _mm_prefetch::<_MM_HINT_T0>(c.cast());
            }
        }
        for k in 0..tile.k {
            let mut right = [_mm512_setzero_ps(); VECTORS];
            for (vector, right) in right.iter_mut().enumerate().take(VECTORS - 1) {
                *right = _mm512_loadu_ps(b.add(vector * LANES));
            }
            right[VECTORS - 1] = _mm512_maskz_loadu_ps(last, b.add((VECTORS - 1) * LANES));
            for (row, sums) in sums.iter_mut().enumerate() {
                let left = if IN_PLACE { *along[row].add(k) } else { *across.add(row) };
                let left = _mm512_set1_ps(left);
                for (sum, right) in sums.iter_mut().zip(&right) {
                    *sum = _mm512_fmadd_ps(left, *right, *sum);
                }
            }
            _mm_prefetch::<_MM_HINT_T1>(ahead.cast());
            ahead = ahead.wrapping_add(tile.ahead_step);
            across = across.wrapping_add(tile.a_k);
            b = b.wrapping_add(tile.b_k);
        }
        for (row, sums) in sums.iter().enumerate() {
            let c = tile.c.add(row * tile.c_row);
            for (vector, sum) in sums.iter().enumerate() {
                let c = c.add(vector * LANES);
                let mask = if vector == VECTORS - 1 { last } else { u16::MAX };
                let old = if tile.accumulates {
                    _mm512_maskz_loadu_ps(mask, c)
                } else {
                    _mm512_setzero_ps()
                };
                _mm512_mask_storeu_ps(c, mask, _mm512_add_ps(old, *sum));
            }
        }
    }
}
