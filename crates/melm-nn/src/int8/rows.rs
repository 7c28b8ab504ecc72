//! Rows of activations as 8-bit integers.

use super::kernel::GROUP;
use crate::isa::{Isa, per_isa};
use crate::math::{largest_of, smallest_of};

/// How the integers of a row stand for numbers: `x = scale * (q - zero)`.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct RowScale {
    pub(crate) scale: f32,
    pub(crate) zero: i32,
}

/// The largest integer of a row.
const MOST: f32 = 255.0;
/// 2^23. Adding it to a number from 0 to 2^23 rounds the number to an integer, which is then in the low bits.
const ROUND: f32 = 8_388_608.0;

per_isa! {
    /// Quantizes one row. The range always contains 0, so that `zero` is one of the integers.
    pub(crate) fn quantize_row(x: &[f32], out: &mut [u8]) -> RowScale {
        let (low, high) = (smallest_of(x).min(0.0), largest_of(x).max(0.0));
        let range = high - low;
        if range == 0.0 {
            out.fill(0);
            return RowScale { scale: 0.0, zero: 0 };
        }
        let factor = MOST / range;
        let shift = (-low * factor + ROUND) - ROUND;
        for (out, x) in out.iter_mut().zip(x) {
            let q = (x * factor + shift).clamp(0.0, MOST);
            #[expect(clippy::cast_possible_truncation, reason = "the integer is in the low byte")]
            let byte = (q + ROUND).to_bits() as u8;
            *out = byte;
        }
        #[expect(clippy::cast_possible_truncation, reason = "an integer from 0 to 255")]
        let zero = shift as i32;
        RowScale { scale: range / MOST, zero }
    }
}

/// A matrix of activations, quantized row by row. Memory is reused.
#[derive(Default)]
pub(crate) struct QuantizedRows {
    /// The integers, `[rows, stride]`. The last bytes of a row are 0 if its length is not a multiple of [`GROUP`].
    data: Vec<u8>,
    scales: Vec<RowScale>,
    width: usize,
}

impl QuantizedRows {
    /// Quantizes rows of `width` numbers.
    pub(crate) fn set(&mut self, isa: Isa, x: &[f32], width: usize) {
        let n = x.len() / width;
        let stride = width.next_multiple_of(GROUP);
        self.width = width;
        // The memory only grows: `resize` would clear it again and again, because widths alternate.
        if self.data.len() < n * stride {
            self.data.resize(n * stride, 0);
        }
        self.scales.resize(n, RowScale::default());
        let rows = self.data.chunks_exact_mut(stride).zip(&mut self.scales);
        for ((out, scale), x) in rows.zip(x.chunks_exact(width)) {
            out[width..].fill(0);
            *scale = quantize_row(isa, x, &mut out[..width]);
        }
    }

    pub(super) fn n_rows(&self) -> usize {
        self.scales.len()
    }

    pub(super) fn width(&self) -> usize {
        self.width
    }

    /// Returns the number of bytes between the starts of two rows.
    pub(super) fn stride(&self) -> usize {
        self.width.next_multiple_of(GROUP)
    }

    pub(super) fn data(&self) -> &[u8] {
        &self.data
    }

    pub(super) fn scales(&self) -> &[RowScale] {
        &self.scales
    }
}
