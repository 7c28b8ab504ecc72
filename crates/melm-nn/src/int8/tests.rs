#![expect(clippy::many_single_char_names, reason = "the letters of matrix algebra")]
#![expect(clippy::cast_possible_truncation, reason = "integers from -127 to 127")]

use super::kernel::{GROUP, Kernel, LANES};
use super::rows::quantize_row;
use super::{Finish, Int8Linear, QuantizedRows};
use crate::device::Cpu;
use crate::isa::{Isa, IsaKind};
use crate::math;
use crate::ops::linear::Linear;
use proptest::prelude::*;

/// The instruction sets of this machine, best first.
fn instruction_sets() -> Vec<Isa> {
    [IsaKind::Avx512, IsaKind::Avx2, IsaKind::Scalar]
        .into_iter()
        .filter_map(Isa::from_kind)
        .collect()
}

/// Numbers from -1 to 1, with a few that are far larger, as the activations of encoders have.
fn numbers(n: usize, seed: u32) -> Vec<f32> {
    let mut state = seed;
    (0..n)
        .map(|_| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let number = (state >> 8) as f32 / 8_388_608.0 - 1.0;
            if state.is_multiple_of(61) { 12.0 * number } else { number }
        })
        .collect()
}

/// Returns the integers of a row of weights, and their scale.
fn round_weights(row: &[f32]) -> (Vec<i64>, f64) {
    let most = row.iter().fold(0.0_f32, |most, x| most.max(x.abs()));
    let round =
        |x: &f32| if most > 0.0 { (x * (127.0 / most)).round_ties_even() as i64 } else { 0 };
    (row.iter().map(round).collect(), f64::from(most) / 127.0)
}

/// Compares the output on every instruction set, with 1, 2 and 5 threads, with sums in `i64` and `f64`.
fn check(n: usize, linear: Linear, seed: u32) {
    let Linear { inputs, outputs } = linear;
    let (x, w) = (numbers(n * inputs, seed), numbers(outputs * inputs, seed + 1));
    let map = Int8Linear::new(linear, &w).unwrap();
    let mut found: Vec<Vec<f32>> = Vec::new();
    for isa in instruction_sets() {
        for n_threads in [1, 2, 5] {
            let cpu = Cpu::with_isa(n_threads, isa);
            let mut rows = QuantizedRows::default();
            rows.set(cpu.isa(), &x, inputs);
            let mut y = vec![f32::NAN; n * outputs];
            map.forward(&cpu, &rows, Finish::Plain, &mut y);
            found.push(y);
        }
    }
    for other in &found[1..] {
        assert!(found[0].iter().zip(other).all(|(a, b)| a.to_bits() == b.to_bits()));
    }
    for (i, row) in x.chunks_exact(inputs).enumerate() {
        let mut q = vec![0; inputs];
        let scale = quantize_row(Isa::from_kind(IsaKind::Scalar).unwrap(), row, &mut q);
        for (j, weights) in w.chunks_exact(inputs).enumerate() {
            let (weights, weight_scale) = round_weights(weights);
            let sum: i64 = q
                .iter()
                .zip(&weights)
                .map(|(q, w)| (i64::from(*q) - i64::from(scale.zero)) * w)
                .sum();
            let wanted = sum as f64 * f64::from(scale.scale) * weight_scale;
            let y = f64::from(found[0][i * outputs + j]);
            // Only the conversions to f32 round: the sums are equal.
            assert!((y - wanted).abs() <= 4e-7 * wanted.abs() + 1e-12, "{i},{j}: {y} {wanted}");
        }
    }
}

#[test]
fn products_equal_sums_of_integers_on_every_instruction_set() {
    for (n, inputs, outputs) in
        [(1, 1, 1), (6, 4, 64), (7, 5, 65), (13, 33, 17), (100, 64, 130), (3, 1030, 600)]
    {
        check(n, Linear { inputs, outputs }, 7);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn products_of_any_shape_equal_sums_of_integers(
        n in 1_usize..40, inputs in 1_usize..150, outputs in 1_usize..150, seed in 0_u32..1000
    ) {
        check(n, Linear { inputs, outputs }, seed);
    }
}

/// The largest products of one sign, for which the 16-bit sums of `vpmaddubsw` would saturate.
#[test]
fn the_largest_sums_do_not_saturate() {
    let (inputs, outputs) = (4096, LANES + 1);
    let linear = Linear { inputs, outputs };
    let map = Int8Linear::new(linear, &vec![-3.0; inputs * outputs]).unwrap();
    for isa in instruction_sets() {
        let cpu = Cpu::with_isa(1, isa);
        let mut rows = QuantizedRows::default();
        rows.set(cpu.isa(), &vec![2.0; inputs], inputs);
        let mut y = vec![0.0; outputs];
        map.forward(&cpu, &rows, Finish::Plain, &mut y);
        for y in y {
            assert!((y + 6.0 * inputs as f32).abs() < 0.01, "{y} with {}", isa.name());
        }
    }
}

#[test]
fn a_quantized_row_is_within_half_a_step_at_the_ends_within_one_and_zero_is_exact() {
    for isa in instruction_sets() {
        for x in [numbers(77, 3), vec![0.0; 5], vec![-4.0, -1.0, -0.5], vec![3.0, 7.0, 0.0]] {
            let mut q = vec![9; x.len()];
            let scale = quantize_row(isa, &x, &mut q);
            let (least, most) = (q.iter().min().copied(), q.iter().max().copied());
            for (x, q) in x.iter().zip(q) {
                let back = scale.scale * (i32::from(q) - scale.zero) as f32;
                // The zero point is rounded too, so the ends of the range may be off by one step.
                let is_end = Some(q) == least || Some(q) == most;
                let allowed = if is_end { 1.001 } else { 0.501 };
                assert!((x - back).abs() <= scale.scale * allowed, "{x} {back}");
                assert!(*x != 0.0 || back == 0.0);
            }
        }
    }
}

#[test]
fn the_gelu_is_that_of_the_sum_with_the_bias() {
    let linear = Linear { inputs: 40, outputs: 70 };
    let (x, w, bias) = (numbers(9 * 40, 1), numbers(70 * 40, 2), numbers(70, 3));
    let map = Int8Linear::new(linear, &w).unwrap();
    let cpu = Cpu::new(2);
    let mut rows = QuantizedRows::default();
    rows.set(cpu.isa(), &x, 40);
    let (mut plain, mut gelu) = (vec![0.0; 9 * 70], vec![0.0; 9 * 70]);
    map.forward(&cpu, &rows, Finish::Plain, &mut plain);
    map.forward(&cpu, &rows, Finish::Gelu(&bias), &mut gelu);
    for (at, (plain, gelu)) in plain.iter().zip(gelu).enumerate() {
        let wanted = math::gelu(plain + bias[at % 70]);
        assert!((gelu - wanted).abs() <= 2e-4 + 1e-6 * wanted.abs(), "{gelu} {wanted}");
    }
}

#[test]
fn only_vnni_is_called_fast() {
    #[cfg(target_arch = "x86_64")]
    let has_vnni = is_x86_feature_detected!("avx512vnni");
    #[cfg(not(target_arch = "x86_64"))]
    let has_vnni = false;
    for isa in instruction_sets() {
        let is_fast = isa.kind() == IsaKind::Avx512 && has_vnni;
        assert_eq!(Kernel::detect(isa).is_fast(), is_fast, "{}", isa.name());
    }
    assert_eq!(GROUP, 4, "the instruction adds four products");
}
