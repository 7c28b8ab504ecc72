//! Compares the attention kernels with brute force in f64: rotary positions and windows, forward and backward.

use super::backward::AttentionBackward;
use super::emulated::EmulatedGpu;
use super::forward::{Heads, NO_WINDOW};
use super::gpu::Gpu;
use super::inputs::{Inputs, StagedInputs, n_padded_rows};
use super::kernels::{Grid, KernelDropout, Kernels, launch};
use super::memory::{DeviceBuffer, StagingBuffer, download_floats, upload_floats};
use super::program::{KernelConfig, Switches, attention_block};
use super::settings::{CudaSettings, Precision};
use super::to_u32;
use crate::config::{Config, GlobalLayers, ModelType, Rotary};
use crate::error::Error;
use crate::packed::Packed;
use std::ops::Range;
use std::sync::Arc;

const HEADS: usize = 2;
const HEAD_SIZE: usize = 6;
const HIDDEN: usize = HEADS * HEAD_SIZE;
/// The first sentence is longer than a tile of keys plus a window.
const LENGTHS: [usize; 3] = [47, 7, 1];

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

fn batch() -> Packed {
    let mut batch = Packed::default();
    for (key, length) in (0..).zip(LENGTHS) {
        batch.push(&vec![3; length], key);
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

/// Runs the kernels of a layer. Returns the context, and the gradient of `qkv` if the gradient of the context is
/// `d_context`.
fn run(
    config: &Config,
    layer: usize,
    qkv: &[f32],
    d_context: &[f32],
) -> Result<[Vec<f32>; 2], Error> {
    let settings = CudaSettings { precision: Precision::F32, ..CudaSettings::default() };
    let gpu: Arc<dyn Gpu> = Arc::new(EmulatedGpu::new(&settings));
    let kernel_config = KernelConfig {
        hidden: HIDDEN,
        head_size: HEAD_SIZE,
        precision: Precision::F32,
        is_checked: true,
        switches: Switches::new(config),
    };
    let kernels = Kernels::load(&gpu, kernel_config)?;
    let mut staging = StagingBuffer::default();
    let inputs = StagedInputs::new(config, &batch(), &mut staging);
    let mut block = DeviceBuffer::empty(&gpu);
    staging.upload(&mut block)?;
    let inputs: Inputs = inputs.uploaded(&block);

    let n_rows = n_padded_rows(&batch());
    let array = |n: usize| DeviceBuffer::zeros(&gpu, n * size_of::<f32>());
    let (rows, context, plain) =
        (array(n_rows * 3 * HIDDEN)?, array(n_rows * HIDDEN)?, array(n_rows * HIDDEN)?);
    let (log_sums, gradient) = (array(n_rows * HEADS)?, array(n_rows * 3 * HIDDEN)?);
    let d = array(n_rows * HIDDEN)?;
    upload_floats(&*gpu, qkv, rows.span())?;
    upload_floats(&*gpu, d_context, d.span())?;
    let half = HEAD_SIZE / 2;
    let heads = Heads {
        qkv: rows.span(),
        count: 2,
        scale: 1.0 / (HEAD_SIZE as f32).sqrt(),
        dropout: KernelDropout::NONE,
        frequencies: inputs.frequencies.slice(layer * half..(layer + 1) * half),
        window: config.window(layer).map_or(NO_WINDOW, to_u32),
        unused: 0,
    };
    let grid = Grid::linear(n_rows, 256);
    launch!(kernels, Rotate, grid, heads.qkv, heads.frequencies, inputs.row_positions);
    let n_threads = 32 * attention_block(HEAD_SIZE).0;
    let grid = |n: usize| Grid::new([inputs.tiles.len(), HEADS, n], n_threads);
    let (out, plain_out, sums) =
        (context.span::<u16>(), plain.span::<f32>(), log_sums.span::<f32>());
    launch!(kernels, AttentionForward, grid(1), heads, inputs.tiles, out, plain_out, sums);
    let arguments = AttentionBackward {
        heads,
        tiles: inputs.tiles,
        context: plain_out,
        log_sums: sums,
        d_context: d.span(),
    };
    let d_qkv = gradient.floats(size_of::<f32>()).argument();
    launch!(kernels, AttentionBackward, grid(2), arguments, d_qkv);
    let mut found = [vec![0.0; n_rows * HIDDEN], vec![0.0; n_rows * 3 * HIDDEN]];
    download_floats(&*gpu, plain.span(), &mut found[0])?;
    download_floats(&*gpu, gradient.span(), &mut found[1])?;
    Ok(found)
}

#[expect(clippy::cast_possible_truncation, reason = "the precision of the engine")]
fn single(values: &[f64]) -> Vec<f32> {
    values.iter().map(|x| *x as f32).collect()
}

/// Compares the gradient of every fifth number of a sentence with a central difference.
fn check_gradient(config: &Config, layer: usize, qkv: &[f64], d_context: &[f64], found: &[f32]) {
    let mut changed = qkv.to_vec();
    let mut loss = |at: usize, value: f64| -> f64 {
        let before = std::mem::replace(&mut changed[at], value);
        let context = brute_force(config, layer, &changed);
        changed[at] = before;
        context.iter().zip(d_context).map(|(x, d)| x * d).sum()
    };
    for at in (0..qkv.len()).step_by(5) {
        let step = 1e-4;
        let wanted = (loss(at, qkv[at] + step) - loss(at, qkv[at] - step)) / (2.0 * step);
        let error = (f64::from(found[at]) - wanted).abs();
        assert!(error < 1e-5, "layer {layer}, {at}: {} instead of {wanted}", found[at]);
    }
}

#[test]
fn attention_with_rotary_positions_and_windows_equals_brute_force() {
    let (config, batch) = (config(), batch());
    let n_rows = n_padded_rows(&batch);
    let (qkv, d_context) = (numbers(1, n_rows * 3 * HIDDEN), numbers(2, n_rows * HIDDEN));
    let qkv: Vec<_> = qkv.into_iter().map(|x| 2.0 * x).collect();
    for layer in 0..2 {
        let [context, gradient] =
            run(&config, layer, &single(&qkv), &single(&d_context)).expect("the emulator runs");
        for sentence in 0..LENGTHS.len() {
            let rows = batch.rows(sentence);
            let part = |width: usize| -> Range<usize> { rows.start * width..rows.end * width };
            let own = &qkv[part(3 * HIDDEN)];
            let wanted = brute_force(&config, layer, own);
            for (found, wanted) in context[part(HIDDEN)].iter().zip(wanted) {
                assert!((f64::from(*found) - wanted).abs() < 1e-5, "{found} {wanted}");
            }
            let found = &gradient[part(3 * HIDDEN)];
            check_gradient(&config, layer, own, &d_context[part(HIDDEN)], found);
        }
    }
}
