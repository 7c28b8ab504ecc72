//! Elementary functions in plain arithmetic, so that loops over them are vectorised on every instruction set.
#![expect(
    clippy::inline_always,
    reason = "only what is inlined is compiled for the caller's instruction set"
)]

/// The number of partial sums of a reduction. It is the same on every instruction set.
pub(crate) const LANES: usize = 16;

/// Returns `exp(x)` for `x <= 88`, to about one unit in the last place. Returns 0 below -87.
#[inline(always)]
pub(crate) fn exp(x: f32) -> f32 {
    // ln 2 in two parts, so that the rounding error of x - n ln 2 is small.
    const LN2_HIGH: f32 = 0.693_359_4;
    const LN2_LOW: f32 = -2.121_944_4e-4;
    // 1.5 * 2^23. Adding this number rounds to an integer, which is then in the low bits.
    const ROUND: f32 = 12_582_912.0;
    let clamped = x.clamp(-87.0, 88.0);
    let shifted = clamped * std::f32::consts::LOG2_E + ROUND;
    let n = shifted - ROUND;
    let r = clamped - n * LN2_HIGH - n * LN2_LOW;
    // Taylor series with |r| <= ln(2)/2. The first omitted term is below 6e-9.
    let series = 1.0 / 5040.0_f32;
    let series = series * r + 1.0 / 720.0;
    let series = series * r + 1.0 / 120.0;
    let series = series * r + 1.0 / 24.0;
    let series = series * r + 1.0 / 6.0;
    let series = series * r + 0.5;
    let series = series * r * r + r + 1.0;
    let power = f32::from_bits(shifted.to_bits().wrapping_shl(23).wrapping_add(0x3f80_0000));
    if x < -87.0 { 0.0 } else { series * power }
}

/// Returns the logistic function of `x`.
#[inline(always)]
pub(crate) fn sigmoid(x: f32) -> f32 {
    1.0 / (1.0 + exp(-x))
}

/// Returns the hyperbolic tangent of `x`, to about one unit in the last place of 1.
#[inline(always)]
pub(crate) fn tanh(x: f32) -> f32 {
    2.0 * sigmoid(2.0 * x) - 1.0
}

/// Returns the cumulative distribution function and the density of the standard normal distribution at `x`.
#[inline(always)]
fn normal(x: f32) -> (f32, f32) {
    // erfc(x / sqrt(2)) = exp(-x^2 / 2) (c1 t + ... + c6 t^6), t = 1 / (1 + P x): the form of Abramowitz and Stegun
    // 7.1.26 with one more term, fitted to minimise the largest error. That of the distribution function is below 1e-8.
    const P: f32 = 0.39 * std::f32::consts::FRAC_1_SQRT_2;
    const C: [f32; 6] =
        [0.235_325_3, 0.091_387_88, 0.649_560_74, -0.635_401_94, 0.886_665_4, -0.227_537_37];
    const INVERSE_SQRT_TAU: f32 = 0.398_942_3;
    let bell = exp(-0.5 * x * x);
    let t = 1.0 / (1.0 + P * x.abs());
    let sum = ((((C[5] * t + C[4]) * t + C[3]) * t + C[2]) * t + C[1]) * t + C[0];
    let tail = 0.5 * bell * t * sum;
    let cumulative = if x < 0.0 { tail } else { 1.0 - tail };
    (cumulative, bell * INVERSE_SQRT_TAU)
}

/// Returns the exact (error-function) GELU of `x`.
#[inline(always)]
pub(crate) fn gelu(x: f32) -> f32 {
    x * normal(x).0
}

/// Returns the GELU of `x`, off by at most 2e-4. It takes a third of the instructions of [`gelu`], and no division.
#[inline(always)]
pub(crate) fn rough_gelu(x: f32) -> f32 {
    // Phi(x) - 1/2 is about x (C[0] + C[1] x^2 + ...): fitted to minimise the largest error of x Phi(x) on [-4, 4]. Outside,
    // Phi is 0 or 1.
    const C: [f32; 7] = [
        0.397_883_36,
        -0.064_573_11,
        0.008_772_389,
        -0.000_814_015_7,
        4.795_554e-5,
        -1.598_603_4e-6,
        2.278_146_2e-8,
    ];
    let u = x.clamp(-4.0, 4.0);
    let s = u * u;
    let sum = (((((C[6] * s + C[5]) * s + C[4]) * s + C[3]) * s + C[2]) * s + C[1]) * s + C[0];
    x * (0.5 + u * sum).clamp(0.0, 1.0)
}

/// Returns the GELU of `x` and its derivative.
#[inline(always)]
pub(crate) fn gelu_with_slope(x: f32) -> (f32, f32) {
    let (cumulative, density) = normal(x);
    (x * cumulative, cumulative + x * density)
}

/// Returns the sum of `f(x, y)` over two slices, computed in [`LANES`] partial sums.
#[inline(always)]
pub(crate) fn sum_of(x: &[f32], y: &[f32], f: impl Fn(f32, f32) -> f32) -> f32 {
    let mut sums = [0.0_f32; LANES];
    let (xs, ys) = (x.chunks_exact(LANES), y.chunks_exact(LANES));
    let rest: f32 = xs.remainder().iter().zip(ys.remainder()).map(|(x, y)| f(*x, *y)).sum();
    for (x, y) in xs.zip(ys) {
        for lane in 0..LANES {
            sums[lane] += f(x[lane], y[lane]);
        }
    }
    let mut width = LANES / 2;
    while width > 0 {
        for lane in 0..width {
            sums[lane] += sums[lane + width];
        }
        width /= 2;
    }
    sums[0] + rest
}

/// Returns the largest number of `x`, computed in [`LANES`] partial maxima.
#[inline(always)]
pub(crate) fn largest_of(x: &[f32]) -> f32 {
    let larger = |a: f32, b: f32| if b > a { b } else { a };
    let (chunks, rest) = x.as_chunks::<LANES>();
    let mut lanes = [f32::NEG_INFINITY; LANES];
    for chunk in chunks {
        for lane in 0..LANES {
            lanes[lane] = larger(lanes[lane], chunk[lane]);
        }
    }
    lanes.iter().chain(rest).copied().fold(f32::NEG_INFINITY, larger)
}

/// Returns the smallest number of `x`.
#[inline(always)]
pub(crate) fn smallest_of(x: &[f32]) -> f32 {
    let smaller = |a: f32, b: f32| if b < a { b } else { a };
    let (chunks, rest) = x.as_chunks::<LANES>();
    let mut lanes = [f32::INFINITY; LANES];
    for chunk in chunks {
        for lane in 0..LANES {
            lanes[lane] = smaller(lanes[lane], chunk[lane]);
        }
    }
    lanes.iter().chain(rest).copied().fold(f32::INFINITY, smaller)
}

#[cfg(test)]
mod tests {
    use super::{exp, gelu, gelu_with_slope, rough_gelu, sigmoid, sum_of, tanh};

    #[test]
    fn sigmoid_and_tanh_equal_the_standard_library() {
        for i in -2000..=2000_i16 {
            let x = f32::from(i) / 20.0;
            let wide = f64::from(x);
            assert!((f64::from(tanh(x)) - wide.tanh()).abs() < 3e-7, "{x}");
            assert!((f64::from(sigmoid(x)) - 1.0 / (1.0 + (-wide).exp())).abs() < 2e-7, "{x}");
        }
    }

    #[test]
    fn exp_equals_the_standard_library() {
        for i in -8700..=8800_i16 {
            let x = f32::from(i) / 100.0;
            let wanted = f64::from(x).exp();
            assert!((f64::from(exp(x)) - wanted).abs() <= 3e-7 * wanted, "{x}");
        }
        assert_eq!((exp(-100.0), exp(f32::NEG_INFINITY)), (0.0, 0.0));
    }

    /// The expected values of x Phi(x) were computed with Python's `math.erf` in double precision.
    #[test]
    fn gelu_equals_pythons_erf() {
        for (x, wanted) in [
            (-5.0, -1.433_257_9e-6),
            (-3.0, -4.049_694e-3),
            (-1.0, -0.158_655_25),
            (-0.1, -0.046_017_216),
            (0.0, 0.0),
            (0.25, 0.149_676_58),
            (1.0, 0.841_344_8),
            (2.5, 2.484_475_8),
            (6.0, 6.0),
        ] {
            let found = gelu(x);
            assert!((found - wanted).abs() < 3e-7 * (1.0 + wanted.abs()), "{x}: {found} {wanted}");
        }
    }

    #[test]
    fn the_rough_gelu_is_within_its_bound() {
        for i in -12_000..=12_000_i16 {
            let x = f32::from(i) / 1000.0;
            assert!((rough_gelu(x) - gelu(x)).abs() < 2e-4, "{x}");
        }
        assert_eq!((rough_gelu(-1e9), rough_gelu(1e9)), (0.0, 1e9));
    }

    #[test]
    fn the_slope_is_the_difference_quotient() {
        for i in -60..=60_i8 {
            let x = f32::from(i) / 10.0;
            let quotient = (f64::from(gelu(x + 0.01)) - f64::from(gelu(x - 0.01))) / 0.02;
            let (value, slope) = gelu_with_slope(x);
            assert!((quotient - f64::from(slope)).abs() < 1e-4, "{x}");
            assert_eq!(value.to_bits(), gelu(x).to_bits());
        }
    }

    #[test]
    fn a_sum_includes_every_element() {
        let x: Vec<f32> = (0..37_u8).map(f32::from).collect();
        assert!((sum_of(&x, &x, |x, y| x + y) - 37.0 * 36.0).abs() < f32::EPSILON);
    }
}
