//! Converts stored numbers to f32.

use half::slice::HalfFloatSliceExt;
use half::{bf16, f16};
use safetensors::Dtype;

/// Converts little-endian bytes to f32. Returns false if the type is not F32, F16 or BF16.
///
/// `bytes` must contain exactly `out.len()` numbers. The loops read single bytes and so need no alignment. The compiler
/// turns the F32 loop into a copy.
pub(crate) fn to_f32(dtype: Dtype, bytes: &[u8], out: &mut [f32]) -> bool {
    match dtype {
        Dtype::F32 => each(bytes, out, |b: [u8; 4]| f32::from_le_bytes(b)),
        Dtype::F16 => halves(bytes, out, f16::from_le_bytes),
        Dtype::BF16 => halves(bytes, out, bf16::from_le_bytes),
        _ => return false,
    }
    true
}

/// Converts 16-bit floats in blocks. `half` converts aligned slices with vector instructions, but `bytes` need not be
/// aligned, so each block is copied first.
fn halves<H: Copy + Default>(bytes: &[u8], out: &mut [f32], from_le_bytes: fn([u8; 2]) -> H)
where
    [H]: HalfFloatSliceExt,
{
    const BLOCK: usize = 256;
    debug_assert_eq!(bytes.len(), out.len() * 2);
    let mut block = [H::default(); BLOCK];
    let (numbers, _) = bytes.as_chunks::<2>();
    for (out, numbers) in out.chunks_mut(BLOCK).zip(numbers.chunks(BLOCK)) {
        let block = &mut block[..numbers.len()];
        for (half, number) in block.iter_mut().zip(numbers) {
            *half = from_le_bytes(*number);
        }
        block.convert_to_f32_slice(out);
    }
}

/// Converts one row of an int8 tensor: weight = value * scale.
pub(crate) fn dequantize_row(bytes: &[u8], scale: f32, out: &mut [f32]) {
    each(bytes, out, |b: [u8; 1]| f32::from(i8::from_le_bytes(b)) * scale);
}

fn each<const N: usize>(bytes: &[u8], out: &mut [f32], convert: impl Fn([u8; N]) -> f32) {
    debug_assert_eq!(bytes.len(), out.len() * N);
    let (numbers, _) = bytes.as_chunks::<N>();
    for (out, &number) in out.iter_mut().zip(numbers) {
        *out = convert(number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Computes the value of an f16 from its definition in IEEE 754. The result is exact in f64.
    fn defined(half: u16) -> f64 {
        let sign = if half >> 15 == 1 { -1.0 } else { 1.0 };
        let (exponent, fraction) = (i32::from(half >> 10 & 31), f64::from(half & 1023) / 1024.0);
        sign * match exponent {
            0 => fraction * 2f64.powi(-14),
            31 if fraction == 0.0 => f64::INFINITY,
            31 => f64::NAN,
            _ => (1.0 + fraction) * 2f64.powi(exponent - 15),
        }
    }

    /// Converts all 65,536 bit patterns of a 16-bit type.
    fn all_patterns(dtype: Dtype) -> Vec<f32> {
        let bytes: Vec<u8> = (0..=u16::MAX).flat_map(u16::to_le_bytes).collect();
        let mut out = vec![0.0; 1 << 16];
        assert!(to_f32(dtype, &bytes, &mut out));
        out
    }

    #[test]
    fn every_f16_has_the_value_of_its_definition() {
        for (half, found) in (0..=u16::MAX).zip(all_patterns(Dtype::F16)) {
            let (found, expected) = (f64::from(found), defined(half));
            let same =
                found.to_bits() == expected.to_bits() || (found.is_nan() && expected.is_nan());
            assert!(same, "{half:#06x}: {found} for {expected}");
        }
    }

    #[test]
    fn every_bf16_is_the_upper_half_of_an_f32() {
        for (half, found) in (0..=u16::MAX).zip(all_patterns(Dtype::BF16)) {
            let expected = f32::from_bits(u32::from(half) << 16);
            let same =
                found.to_bits() == expected.to_bits() || (found.is_nan() && expected.is_nan());
            assert!(same, "{half:#06x}: {found} for {expected}");
        }
    }

    #[test]
    fn not_a_number_keeps_its_sign_and_payload() {
        // Converting a NaN sets its quiet bit, as the instructions of the CPU do.
        for (dtype, infinity, shift) in [(Dtype::F16, 0x7c00, 13), (Dtype::BF16, 0x7f80, 16)] {
            let found = all_patterns(dtype);
            for half in (0..=u16::MAX).filter(|half| half & 0x7fff > infinity) {
                let sign = u32::from(half & 0x8000) << 16;
                let payload = u32::from(half & !infinity & 0x7fff) << shift;
                let expected = sign | 0x7fc0_0000 | payload;
                assert_eq!(found[usize::from(half)].to_bits(), expected, "{dtype:?} {half:#06x}");
            }
        }
    }

    #[test]
    fn bytes_at_any_address_convert_alike() {
        let numbers = [0x00, 0x3c].repeat(1000);
        for offset in 0..4 {
            let mut bytes = vec![0; offset];
            bytes.extend(&numbers);
            let mut out = [0.0; 1000];
            assert!(to_f32(Dtype::F16, &bytes[offset..], &mut out));
            assert!(out.iter().all(|value| value.to_bits() == 1.0_f32.to_bits()));
        }
    }

    #[test]
    fn every_type_converts_its_own_bytes() {
        let converted = |dtype, bytes: &[u8]| {
            let mut out = [0.0; 2];
            to_f32(dtype, bytes, &mut out).then(|| out.map(f32::to_bits))
        };
        let expected = Some([1.0f32, -2.0].map(f32::to_bits));
        let single = [0, 0, 0x80, 0x3f, 0, 0, 0, 0xc0];
        assert_eq!(converted(Dtype::F32, &single), expected);
        assert_eq!(converted(Dtype::BF16, &[0x80, 0x3f, 0, 0xc0]), expected);
        assert_eq!(converted(Dtype::F16, &[0, 0x3c, 0, 0xc0]), expected);
        assert_eq!(converted(Dtype::I64, &[0; 16]), None);
    }

    #[test]
    fn a_scaled_row_is_value_times_scale() {
        let mut out = [0.0; 2];
        dequantize_row(&[127, 0x80], 0.5, &mut out);
        assert_eq!(out.map(f32::to_bits), [63.5f32, -64.0].map(f32::to_bits));
    }
}
