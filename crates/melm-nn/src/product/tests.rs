#![expect(clippy::many_single_char_names, reason = "the letters of matrix algebra")]

use super::{Left, Out, Right, Shape, product};
use crate::device::Cpu;
use crate::isa::{Isa, IsaKind};

fn numbers(n: usize, seed: u32) -> Vec<f32> {
    let mut state = seed;
    (0..n)
        .map(|_| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 8) as f32 / 8_388_608.0 - 1.0
        })
        .collect()
}

fn transposed(data: &[f32], rows: usize, columns: usize) -> Vec<f32> {
    (0..columns).flat_map(|j| (0..rows).map(move |i| data[i * columns + j])).collect()
}

/// Compares a product in all four layouts with sums in f64.
fn check(cpu: &Cpu, Shape { m, k, n }: Shape) {
    let (a, b) = (numbers(m * k, 1), numbers(k * n, 2));
    let (a_t, b_t) = (transposed(&a, m, k), transposed(&b, k, n));
    let old = numbers(m * n, 3);
    for (left, right) in [
        (Left::rows(&a, k), Right::rows(&b, n)),
        (Left::rows(&a, k), Right::columns(&b_t, k)),
        (Left::columns(&a_t, m), Right::rows(&b, n)),
        (Left::columns(&a_t, m), Right::columns(&b_t, k)),
    ] {
        for accumulates in [false, true] {
            let mut c = old.clone();
            let out = Out { data: &mut c, row: n, accumulates };
            product(cpu, Shape { m, k, n }, left, right, out);
            for i in 0..m {
                for j in 0..n {
                    let sum: f64 =
                        (0..k).map(|l| f64::from(a[i * k + l]) * f64::from(b[l * n + j])).sum();
                    let wanted = sum + if accumulates { f64::from(old[i * n + j]) } else { 0.0 };
                    let found = f64::from(c[i * n + j]);
                    assert!(
                        (found - wanted).abs() < 1e-4,
                        "{m}x{k}x{n} at {i},{j}: {found} {wanted}"
                    );
                }
            }
        }
    }
}

#[test]
fn products_equal_plain_sums_on_every_instruction_set() {
    for kind in [IsaKind::Avx512, IsaKind::Avx2, IsaKind::Gemm, IsaKind::Scalar] {
        let Some(isa) = Isa::from_kind(kind) else { continue };
        let cpu = Cpu::with_isa(2, isa);
        for (m, k, n) in [
            (1, 1, 1),
            (3, 5, 7),
            (17, 33, 49),
            (9, 400, 65),
            (50, 13, 400),
            (230, 20, 51),
            (300, 9, 820),
            // Longer than what is summed in registers at a time.
            (5, 3100, 50),
        ] {
            check(&cpu, Shape { m, k, n });
        }
    }
}

#[test]
fn products_of_gemm_do_not_depend_on_the_number_of_threads() {
    let gemm = Isa::from_kind(IsaKind::Gemm).unwrap();
    let (m, k, n) = (700, 130, 900);
    let (a, b) = (numbers(m * k, 5), numbers(n * k, 6));
    let multiply = |n_threads: usize| {
        let mut c = vec![0.0; m * n];
        let out = Out { data: &mut c, row: n, accumulates: false };
        let cpu = Cpu::with_isa(n_threads, gemm);
        product(&cpu, Shape { m, k, n }, Left::rows(&a, k), Right::columns(&b, k), out);
        c
    };
    let one = multiply(1);
    assert_eq!(one, multiply(2));
    assert_eq!(one, multiply(3));
}

#[test]
fn a_row_does_not_depend_on_the_rows_around_it_nor_on_the_threads() {
    let (k, n) = (500, 90);
    let (a, b) = (numbers(40 * k, 5), numbers(n * k, 6));
    let multiply = |rows: &[f32], n_threads: usize| {
        let m = rows.len() / k;
        let mut c = vec![0.0; m * n];
        let out = Out { data: &mut c, row: n, accumulates: false };
        let cpu = Cpu::new(n_threads);
        product(&cpu, Shape { m, k, n }, Left::rows(rows, k), Right::columns(&b, k), out);
        c
    };
    let whole = multiply(&a, 1);
    assert_eq!(whole, multiply(&a, 2));
    for i in [0, 7, 23, 39] {
        assert_eq!(whole[i * n..(i + 1) * n], multiply(&a[i * k..(i + 1) * k], 2));
    }
}

#[test]
fn any_number_of_threads_gives_the_same_bits() {
    for Shape { m, k, n } in [Shape { m: 330, k: 40, n: 500 }, Shape { m: 40, k: 3100, n: 100 }] {
        let (a, b) = (numbers(m * k, 4), numbers(k * n, 5));
        let a_t = transposed(&a, m, k);
        let multiply = |left: Left<'_>, n_threads: usize| {
            let mut c = vec![0.0; m * n];
            let out = Out { data: &mut c, row: n, accumulates: false };
            product(&Cpu::new(n_threads), Shape { m, k, n }, left, Right::rows(&b, n), out);
            c.into_iter().map(f32::to_bits).collect::<Vec<_>>()
        };
        for left in [Left::rows(&a, k), Left::columns(&a_t, m)] {
            let wanted = multiply(left, 1);
            for n_threads in [2, 5, 16] {
                assert!(multiply(left, n_threads) == wanted, "{n_threads} threads");
            }
        }
    }
}
