//! Compares the attention kernels with brute force in f64: rotary positions and windows, forward and backward. Compares
//! the kernels on tensor cores with the others where there is dropout.

use super::attention::{AttentionBackward, AttentionQuery};
use super::dropout_bits::DropoutBits;
use super::emulated::EmulatedGpu;
use super::forward::{Heads, NO_WINDOW};
use super::gpu::Gpu;
use super::inputs::{Inputs, StagedInputs, n_padded_rows};
use super::kernels::{Grid, KernelDropout, Kernels, launch};
use super::memory::{DeviceBuffer, StagingBuffer, download_floats, upload_floats};
use super::program::{Kernel, KernelConfig, Switches};
use super::settings::{CudaSettings, Precision};
use super::to_u32;
use crate::config::{Config, GlobalLayers, ModelType, Rotary};
use crate::dropout::{Dropout, Site};
use crate::error::Error;
use crate::packed::Packed;
use std::ops::Range;
use std::sync::Arc;

const HEADS: usize = 2;
const HEAD_SIZE: usize = 6;
const HIDDEN: usize = HEADS * HEAD_SIZE;
/// The first sentence is longer than a tile of keys plus a window.
const LENGTHS: [usize; 3] = [47, 7, 1];
/// The first sentence has several blocks and tiles of the kernels on tensor cores, and ends inside both. The second ends
/// inside the rows of a warp.
const LONG_LENGTHS: [usize; 3] = [135, 21, 1];
/// The largest error relative to the norm, in f32.
const F32_TOLERANCE: f64 = 5e-7;
/// The same for the kernels on tensor cores. The significand of f16 has eleven bits.
const F16_TOLERANCE: f64 = 1e-3;

/// Returns a model whose layer 0 is global and whose layer 1 has a window of 5 rows on each side.
fn config() -> Config {
    Config {
        model_type: ModelType::ModernBert,
        hidden_size: HIDDEN,
        n_heads: HEADS,
        n_layers: 2,
        rotary: Rotary {
            local_attention: 10,
            global_layers: GlobalLayers::Every(2),
            ..Rotary::default()
        },
        ..Config::default()
    }
}

fn batch(lengths: &[usize]) -> Packed {
    let mut batch = Packed::default();
    for (key, length) in (0..).zip(lengths) {
        batch.push(&vec![3; *length], key);
    }
    batch
}

/// Returns numbers in `[-1, 1)` that look random.
fn numbers(seed: u64, n: usize) -> Vec<f64> {
    let draw = |i: usize| crate::dropout::mix(seed << 32 | i as u64) >> 40;
    (0..n).map(|i| draw(i) as f64 / f64::from(1 << 23) - 1.0).collect()
}

/// Returns the context of one sentence, `[rows, hidden]`, from its rows `[3, hidden]`.
fn brute_force(config: &Config, layer: usize, qkv: &[f64]) -> Vec<f64> {
    let theta = config.theta(layer).expect("rotary positions");
    let window = config.window(layer).unwrap_or(usize::MAX);
    let n_rows = qkv.len() / (3 * HIDDEN);
    let rotated = |row: usize, start: usize| -> Vec<f64> {
        let x = &qkv[row * 3 * HIDDEN + start..][..HEAD_SIZE];
        (0..HEAD_SIZE)
            .map(|d| {
                let half = HEAD_SIZE / 2;
                let angle = row as f64 * theta.powf(-2.0 * (d % half) as f64 / HEAD_SIZE as f64);
                let other = if d < half { -x[d + half] } else { x[d - half] };
                x[d] * angle.cos() + other * angle.sin()
            })
            .collect()
    };
    let mut context = vec![0.0; n_rows * HIDDEN];
    for head in (0..HIDDEN).step_by(HEAD_SIZE) {
        let keys: Vec<_> = (0..n_rows).map(|row| rotated(row, HIDDEN + head)).collect();
        for i in 0..n_rows {
            let query = rotated(i, head);
            let seen: Vec<_> = (0..n_rows).filter(|j| i.abs_diff(*j) <= window).collect();
            let weight = |j: usize| {
                let score: f64 = query.iter().zip(&keys[j]).map(|(a, b)| a * b).sum();
                (score / (HEAD_SIZE as f64).sqrt()).exp()
            };
            let total: f64 = seen.iter().map(|j| weight(*j)).sum();
            for j in seen {
                for d in head..head + HEAD_SIZE {
                    context[i * HIDDEN + d] +=
                        weight(j) / total * qkv[j * 3 * HIDDEN + 2 * HIDDEN + d];
                }
            }
        }
    }
    context
}

/// A layer, and the numbers that its attention gets.
struct Attention<'a> {
    config: &'a Config,
    layer: usize,
    lengths: &'a [usize],
    qkv: &'a [f32],
    d_context: &'a [f32],
    /// Of layer 0.
    dropout: Option<Dropout>,
}

impl Attention<'_> {
    /// Runs the kernels of the layer. Returns the context, and the gradient of `qkv`. Arrays are in f32. `precision` only
    /// chooses the kernels: with bf16, those on tensor cores.
    fn run(&self, precision: Precision) -> Result<[Vec<f32>; 2], Error> {
        let Self { config, layer, .. } = *self;
        let (hidden, n_heads) = (config.hidden_size, config.n_heads);
        let head_size = hidden / n_heads;
        let settings = CudaSettings { precision: Precision::F32, ..CudaSettings::default() };
        let gpu: Arc<dyn Gpu> = Arc::new(EmulatedGpu::new(&settings));
        let kernel_config = KernelConfig {
            hidden,
            head_size,
            precision: Precision::F32,
            is_checked: true,
            switches: Switches::new(config),
        };
        let kernels = Kernels::load(&gpu, kernel_config)?;
        let mut staging = StagingBuffer::default();
        let batch = batch(self.lengths);
        let inputs = StagedInputs::new(config, precision, &batch, &mut staging);
        let mut block = DeviceBuffer::empty(&gpu);
        staging.upload(&mut block)?;
        let inputs: Inputs = inputs.uploaded(&block);

        let n_rows = n_padded_rows(&batch);
        let array = |n: usize| DeviceBuffer::zeros(&gpu, n * size_of::<f32>());
        let (rows, context, plain) =
            (array(n_rows * 3 * hidden)?, array(n_rows * hidden)?, array(n_rows * hidden)?);
        let (log_sums, gradient) = (array(n_rows * n_heads)?, array(n_rows * 3 * hidden)?);
        let d = array(n_rows * hidden)?;
        upload_floats(&*gpu, self.qkv, rows.span())?;
        upload_floats(&*gpu, self.d_context, d.span())?;
        let mut dropout_bits = DeviceBuffer::empty(&gpu);
        let dropout_bits = dropout_bits.lay_out(size_of::<f32>(), |arena| {
            let length = self.dropout.as_ref().map_or(0, |_| inputs.max_length);
            DropoutBits::lay_out(arena, config, n_rows, length)
        })?;
        if let Some(dropout) = &self.dropout {
            dropout_bits.compute(&kernels, config, dropout, &inputs)?;
        }
        let n_frequencies = inputs.frequencies.len() / config.n_layers;
        let heads = Heads {
            qkv: rows.span(),
            scale: 1.0 / (head_size as f32).sqrt(),
            dropout: self.dropout.as_ref().map_or(KernelDropout::NONE, |dropout| {
                KernelDropout::new(dropout, layer, Site::Attention)
            }),
            dropout_bits,
            frequencies: inputs
                .frequencies
                .slice(layer * n_frequencies..(layer + 1) * n_frequencies),
            window: config.window(layer).map_or(NO_WINDOW, to_u32),
        };
        if n_frequencies > 0 {
            let grid = Grid::linear(n_rows, 256);
            launch!(kernels, Rotate, grid, heads.qkv, heads.frequencies, inputs.row_positions);
        }
        let forward = if inputs.block.uses_tensor_cores {
            Kernel::TensorAttentionForward
        } else {
            Kernel::AttentionForward
        };
        let grid = inputs.attention_grid(config, 1);
        let (out, plain_out, sums) =
            (context.span::<u16>(), plain.span::<f32>(), log_sums.span::<f32>());
        launch!(kernels, (forward), grid, heads, inputs.tiles, out, plain_out, sums);
        let queries = DeviceBuffer::zeros(&gpu, n_rows * n_heads * size_of::<AttentionQuery>())?;
        let backward = AttentionBackward {
            heads,
            grid: inputs.attention_grid(config, 2),
            inputs,
            context: plain_out,
            log_sums: sums,
            d_context: d.span(),
            queries: queries.span(),
        };
        backward.launch(&kernels, gradient.floats(size_of::<f32>()).argument())?;
        let mut found = [vec![0.0; n_rows * hidden], vec![0.0; n_rows * 3 * hidden]];
        download_floats(&*gpu, plain.span(), &mut found[0])?;
        download_floats(&*gpu, gradient.span(), &mut found[1])?;
        Ok(found)
    }
}

#[expect(clippy::cast_possible_truncation, reason = "the precision of the engine")]
fn single(values: &[f64]) -> Vec<f32> {
    values.iter().map(|x| *x as f32).collect()
}

/// The sums of the squares of errors, and of the numbers that should have been found.
#[derive(Clone, Copy, Default)]
struct Squares {
    errors: f64,
    wanted: f64,
}

impl Squares {
    fn add(&mut self, found: f64, wanted: f64) {
        self.errors += (found - wanted).powi(2);
        self.wanted += wanted.powi(2);
    }

    fn relative_error(&self) -> f64 {
        (self.errors / self.wanted).sqrt()
    }
}

/// Compares the gradient of some numbers of a sentence with central differences. `factors` are those of the rows of
/// `d_context`. Adds to the squares of queries, keys and values.
fn compare_gradient(
    attention: &Attention<'_>,
    qkv: &[f64],
    d_context: &[f64],
    factors: &[f64],
    found: &[f32],
    squares: &mut [Squares; 3],
) {
    let mut changed = qkv.to_vec();
    let mut context = |at: usize, value: f64| -> Vec<f64> {
        let before = std::mem::replace(&mut changed[at], value);
        let context = brute_force(attention.config, attention.layer, &changed);
        changed[at] = before;
        context
    };
    // The step is prime to the width of a head, so that all columns are compared.
    for at in (0..qkv.len()).step_by(if qkv.len() > 2000 { 29 } else { 5 }) {
        let step = 1e-4;
        let (above, below) = (context(at, qkv[at] + step), context(at, qkv[at] - step));
        let slopes = above.iter().zip(below).map(|(above, below)| (above - below) / (2.0 * step));
        let wanted: f64 = slopes.zip(d_context).map(|(slope, d)| slope * d).sum();
        let (row, part) = (at / (3 * HIDDEN), at / HIDDEN % 3);
        // The gradient of a query has the size of its own row of `d_context`, and all queries count alike.
        let scale = if part == 0 && factors[row] > 0.0 { 1.0 / factors[row] } else { 1.0 };
        squares[part].add(f64::from(found[at]) * scale, wanted * scale);
    }
}

/// Compares the kernels that `precision` chooses with brute force, in both layers of [`config`]. Row i of the gradient of
/// the context of a sentence with n rows is multiplied by `factor(i, n)`.
fn check_against_brute_force(
    lengths: &[usize],
    precision: Precision,
    tolerance: f64,
    factor: impl Fn(usize, usize) -> f64,
) {
    let (config, batch) = (config(), batch(lengths));
    let n_rows = n_padded_rows(&batch);
    let (qkv, mut d_context) = (numbers(1, n_rows * 3 * HIDDEN), numbers(2, n_rows * HIDDEN));
    let qkv: Vec<_> = qkv.into_iter().map(|x| 2.0 * x).collect();
    let factors: Vec<_> = lengths.iter().flat_map(|n| (0..*n).map(|i| factor(i, *n))).collect();
    for (row, factor) in d_context.chunks_exact_mut(HIDDEN).zip(&factors) {
        for d in row {
            *d *= factor;
        }
    }
    for layer in 0..2 {
        let (single_qkv, single_d) = (single(&qkv), single(&d_context));
        let attention = Attention {
            config: &config,
            layer,
            lengths,
            qkv: &single_qkv,
            d_context: &single_d,
            dropout: None,
        };
        let [context, gradient] = attention.run(precision).expect("the emulator runs");
        let (mut of_context, mut of_gradient) = (Squares::default(), [Squares::default(); 3]);
        for sentence in 0..lengths.len() {
            let rows = batch.rows(sentence);
            let part = |width: usize| -> Range<usize> { rows.start * width..rows.end * width };
            let own = &qkv[part(3 * HIDDEN)];
            for (found, wanted) in
                context[part(HIDDEN)].iter().zip(brute_force(&config, layer, own))
            {
                of_context.add(f64::from(*found), wanted);
            }
            let (d_context, found) = (&d_context[part(HIDDEN)], &gradient[part(3 * HIDDEN)]);
            let factors = &factors[rows];
            compare_gradient(&attention, own, d_context, factors, found, &mut of_gradient);
        }
        let errors = [&[of_context], &of_gradient[..]].concat();
        let errors: Vec<_> = errors.iter().map(Squares::relative_error).collect();
        assert!(errors.iter().all(|error| *error < tolerance), "layer {layer}: {errors:?}");
    }
}

#[test]
fn attention_with_rotary_positions_and_windows_equals_brute_force() {
    check_against_brute_force(&LENGTHS, Precision::F32, F32_TOLERANCE, |_, _| 1.0);
}

#[test]
fn attention_on_tensor_cores_equals_brute_force() {
    check_against_brute_force(&LONG_LENGTHS, Precision::Bf16, F16_TOLERANCE, |_, _| 1.0);
    check_against_brute_force(&LENGTHS, Precision::Bf16, F16_TOLERANCE, |_, _| 1.0);
}

/// The kernels scale gradients to the range of f16. Here the scale changes from tile to tile.
#[test]
fn gradients_of_very_different_sizes_equal_brute_force() {
    let rising = |i: usize, n: usize| (40.0 * i as f64 / n as f64 - 20.0).exp2();
    let check = |factor: &dyn Fn(usize, usize) -> f64| {
        check_against_brute_force(&LONG_LENGTHS, Precision::Bf16, F16_TOLERANCE, factor);
    };
    check(&rising);
    check(&|i, n| rising(n - i, n));
    // The first tile has no gradient, and so no scale.
    check(&|i, n| if i < 40 { 0.0 } else { rising(i, n) });
}

#[test]
fn attention_on_tensor_cores_drops_what_the_other_kernels_drop() {
    let config = Config {
        hidden_size: 80,
        n_heads: 2,
        n_layers: 1,
        attention_dropout: 0.3,
        ..Config::default()
    };
    let (n_used, n_rows) = (batch(&LONG_LENGTHS).n_rows(), n_padded_rows(&batch(&LONG_LENGTHS)));
    let (qkv, d_context) = (single(&numbers(3, n_rows * 240)), single(&numbers(4, n_rows * 80)));
    let attention = Attention {
        config: &config,
        layer: 0,
        lengths: &LONG_LENGTHS,
        qkv: &qkv,
        d_context: &d_context,
        dropout: Some(Dropout::new(&config, 7, 0)),
    };
    let found = attention.run(Precision::Bf16).expect("the emulator runs");
    let wanted = attention.run(Precision::F32).expect("the emulator runs");
    for (found, wanted) in found.iter().zip(&wanted) {
        // The padding rows, whose gradient is zero in a training, are left out.
        let [found, wanted] = [found, wanted].map(|rows| &rows[..rows.len() / n_rows * n_used]);
        assert!(wanted.iter().any(|x| x.abs() > 0.1));
        let error = found.iter().zip(wanted).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
        assert!(error < 5e-4, "{error}");
    }
}
