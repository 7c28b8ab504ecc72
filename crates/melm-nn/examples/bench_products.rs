//! Compares our matrix products with the `gemm` crate: `bench_products [REPEATS] [SHAPE ...]`.
//!
//! SHAPE is `mini` or `base`; without SHAPE, both are run. The benchmark runs the three products of a training step
//! (output, input gradient, weight gradient) for every layer of the model and for the vocabulary head. Our code and
//! `gemm` compute each product REPEATS times (default 20) in turn, so that noise of the machine affects both. The table
//! shows the median speed of each, and the median of the speed of `gemm` divided by ours; above 1, `gemm` is faster.
//! The column `same bits` shows if one thread and two threads give the same result.
//!
//! The head of `base` needs about 4 GB of memory.
#![expect(clippy::print_stdout, reason = "a benchmark prints")]
#![expect(unsafe_code, reason = "`gemm` takes raw pointers")]

use gemm::Parallelism;
use melm_nn::device::Cpu;
use melm_nn::probe::{LinearProbe, Product};
use std::time::Instant;

/// The number of rows of a batch, as in `bench/engine.py`.
const N_ROWS: usize = 672;
/// The number of masked rows in this batch.
const N_MASKED: usize = 101;
const THREADS: [usize; 2] = [1, 2];

type Failure = Box<dyn std::error::Error>;

/// A linear layer of a model.
struct Layer {
    name: String,
    n_rows: usize,
    inputs: usize,
    outputs: usize,
}

/// Returns the layers of a model: those of the encoder and the vocabulary head.
fn layers(shape: &str) -> Result<Vec<Layer>, Failure> {
    let (hidden, inner, vocab_size) = match shape {
        "mini" => (512, 2048, 50_960),
        "base" => (768, 3072, 250_015),
        _ => return Err(format!("no shape `{shape}`").into()),
    };
    let layer = |name: &str, n_rows, inputs, outputs| Layer {
        name: format!("{shape} {name}"),
        n_rows,
        inputs,
        outputs,
    };
    Ok(vec![
        layer("qkv", N_ROWS, hidden, 3 * hidden),
        layer("output", N_ROWS, hidden, hidden),
        layer("up", N_ROWS, hidden, inner),
        layer("down", N_ROWS, inner, hidden),
        layer("head", N_MASKED, hidden, vocab_size),
    ])
}

/// A matrix: its numbers, and the strides of rows and columns.
struct Matrix<'a> {
    data: &'a [f32],
    row_stride: usize,
    column_stride: usize,
}

impl<'a> Matrix<'a> {
    fn rows(data: &'a [f32], width: usize) -> Self {
        Self { data, row_stride: width, column_stride: 1 }
    }

    fn transposed(data: &'a [f32], width: usize) -> Self {
        Self { data, row_stride: 1, column_stride: width }
    }

    fn contains(&self, rows: usize, columns: usize) -> bool {
        (rows - 1) * self.row_stride + (columns - 1) * self.column_stride < self.data.len()
    }
}

/// The sizes of a product: `[m, k]` times `[k, n]`.
#[derive(Clone, Copy)]
struct Sizes {
    m: usize,
    k: usize,
    n: usize,
}

impl Sizes {
    fn new(layer: &Layer, product: Product) -> Self {
        let Layer { n_rows, inputs, outputs, .. } = *layer;
        match product {
            Product::Forward => Self { m: n_rows, k: inputs, n: outputs },
            Product::Backward => Self { m: n_rows, k: outputs, n: inputs },
            Product::Weights => Self { m: outputs, k: n_rows, n: inputs },
        }
    }
}

/// Returns the left and the right matrix of a product.
fn operands<'a>(
    layer: &Layer,
    probe: &'a LinearProbe,
    product: Product,
) -> (Matrix<'a>, Matrix<'a>) {
    let Layer { inputs, outputs, .. } = *layer;
    let (x, weight, dy) = (probe.input(), probe.weight(), probe.output_gradient());
    match product {
        Product::Forward => (Matrix::rows(x, inputs), Matrix::transposed(weight, inputs)),
        Product::Backward => (Matrix::rows(dy, outputs), Matrix::rows(weight, inputs)),
        Product::Weights => (Matrix::transposed(dy, outputs), Matrix::rows(x, inputs)),
    }
}

/// Computes one product with `gemm`.
fn run_gemm(
    layer: &Layer,
    probe: &LinearProbe,
    product: Product,
    n_threads: usize,
    out: &mut [f32],
) {
    let (left, right) = operands(layer, probe, product);
    let Sizes { m, k, n } = Sizes::new(layer, product);
    assert!(left.contains(m, k) && right.contains(k, n) && out.len() == m * n);
    let parallelism =
        if n_threads == 1 { Parallelism::None } else { Parallelism::Rayon(n_threads) };
    let stride = |stride: usize| isize::try_from(stride).expect("a stride inside a slice");
    // SAFETY: the three matrices lie inside their slices, as checked above, and `out` is borrowed mutably.
    unsafe {
        gemm::gemm(
            m,
            n,
            k,
            out.as_mut_ptr(),
            1,
            stride(n),
            false,
            left.data.as_ptr(),
            stride(left.column_stride),
            stride(left.row_stride),
            right.data.as_ptr(),
            stride(right.column_stride),
            stride(right.row_stride),
            0.0,
            1.0,
            false,
            false,
            false,
            parallelism,
        );
    }
}

fn seconds(mut run: impl FnMut()) -> f64 {
    let start = Instant::now();
    run();
    start.elapsed().as_secs_f64()
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn same_bits(a: &[f32], b: &[f32]) -> bool {
    a.iter().zip(b).all(|(a, b)| a.to_bits() == b.to_bits())
}

/// Returns the largest difference between two results, relative to the largest number.
fn largest_difference(a: &[f32], b: &[f32]) -> f32 {
    let largest = a.iter().fold(0.0_f32, |largest, a| largest.max(a.abs()));
    let difference = a.iter().zip(b).fold(0.0_f32, |most, (a, b)| most.max((a - b).abs()));
    difference / largest
}

/// Compares our products with those of `gemm` on one layer. Prints a row for each product and number of threads.
fn compare(cpus: &[Cpu; 2], layer: &Layer, n_repeats: usize) -> Result<(), Failure> {
    let mut probe = LinearProbe::new(layer.n_rows, layer.inputs, layer.outputs);
    let n_operations = probe.n_operations();
    for product in [Product::Forward, Product::Backward, Product::Weights] {
        let Sizes { m, k, n } = Sizes::new(layer, product);
        let mut theirs = vec![0.0; m * n];
        let ours = probe.run(&cpus[0], product).to_vec();
        run_gemm(layer, &probe, product, 1, &mut theirs);
        let difference = largest_difference(&ours, &theirs);
        if difference > 1e-4 {
            return Err(
                format!("{} {product:?}: results differ by {difference}", layer.name).into()
            );
        }
        let ours_same = same_bits(&ours, probe.run(&cpus[1], product));
        drop(ours);
        let one_thread = theirs.clone();
        run_gemm(layer, &probe, product, 2, &mut theirs);
        let gemm_same = same_bits(&one_thread, &theirs);
        drop(one_thread);
        for (cpu, n_threads) in cpus.iter().zip(THREADS) {
            let (mut our_seconds, mut gemm_seconds) = (Vec::new(), Vec::new());
            for _ in 0..n_repeats {
                our_seconds.push(seconds(|| {
                    let _ = probe.run(cpu, product);
                }));
                gemm_seconds
                    .push(seconds(|| run_gemm(layer, &probe, product, n_threads, &mut theirs)));
            }
            let ratios = our_seconds.iter().zip(&gemm_seconds).map(|(ours, gemm)| ours / gemm);
            let ratio = median(ratios.collect());
            let speed = |seconds: Vec<f64>| n_operations / median(seconds) / 1e9;
            println!(
                "| {} | {product:?} | {m} x {k} x {n} | {n_threads} | {:.1} | {:.1} | {ratio:.2} | {} | {} |",
                layer.name,
                speed(our_seconds),
                speed(gemm_seconds),
                yes(ours_same),
                yes(gemm_same),
            );
        }
    }
    Ok(())
}

fn yes(holds: bool) -> &'static str {
    if holds { "yes" } else { "no" }
}

fn main() -> Result<(), Failure> {
    let mut arguments = std::env::args().skip(1);
    let n_repeats: usize = arguments.next().map_or(Ok(20), |text| text.parse())?;
    let mut shapes: Vec<_> = arguments.collect();
    if shapes.is_empty() {
        shapes = ["mini", "base"].map(str::to_owned).to_vec();
    }
    let cpus = THREADS.map(Cpu::new);
    println!("instruction set: {}, repeats: {n_repeats}", cpus[0].isa().name());
    println!();
    println!(
        "| layer | product | m x k x n | threads | ours, GFLOP/s | gemm, GFLOP/s | gemm / ours | ours: same bits | gemm: same bits |"
    );
    println!("| --- | --- | --- | ---: | ---: | ---: | ---: | --- | --- |");
    for shape in shapes {
        for layer in layers(&shape)? {
            compare(&cpus, &layer, n_repeats.max(1))?;
        }
    }
    Ok(())
}
