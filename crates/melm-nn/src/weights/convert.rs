//! Converts stored numbers to f32.

use safetensors::Dtype;

/// Converts little-endian bytes to f32. Returns false if the type is not F32, F16 or BF16.
///
/// `bytes` has exactly `out.len()` numbers. The byte loops need no alignment, and the compiler turns the F32 loop
/// into a copy.
pub(crate) fn to_f32(dtype: Dtype, bytes: &[u8], out: &mut [f32]) -> bool {
    match dtype {
        Dtype::F32 => each(bytes, out, |b: [u8; 4]| f32::from_le_bytes(b)),
        Dtype::F16 => each(bytes, out, |b: [u8; 2]| f32_of_f16(u16::from_le_bytes(b))),
        Dtype::BF16 => {
            each(bytes, out, |b: [u8; 2]| f32::from_bits(u32::from(u16::from_le_bytes(b)) << 16));
        }
        _ => return false,
    }
    true
}

/// Converts one row of the int8 form: weight = value * scale.
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

/// Binary16 to binary32 without branches per number, so that the loop vectorises.
///
/// Moving the bits into place leaves an exponent that is too small by 112 = 127 - 15. One product with 2^112 repairs
/// normal and subnormal numbers alike, exactly; infinities and NaNs keep their all-ones exponent by the added mask.
fn f32_of_f16(half: u16) -> f32 {
    let bits = u32::from(half);
    let (sign, magnitude) = ((bits & 0x8000) << 16, bits & 0x7fff);
    let rebias = f32::from_bits((127 + 112) << 23);
    let value = (f32::from_bits(magnitude << 13) * rebias).to_bits();
    let all_ones = if magnitude >= 0x7c00 { 0x7f80_0000 } else { 0 };
    f32::from_bits(sign | value | all_ones)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The value by the definition in IEEE 754, in f64, where it is exact.
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

    #[test]
    fn every_half_has_the_value_of_its_definition() {
        for half in 0..=u16::MAX {
            let (found, expected) = (f64::from(f32_of_f16(half)), defined(half));
            let same =
                found.to_bits() == expected.to_bits() || (found.is_nan() && expected.is_nan());
            assert!(same, "{half:#06x}: {found} for {expected}");
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
