//! Measures the time of training steps and predictions of a model with random weights.
//!
//! Usage: `bench_step SHAPE WHAT N [WHERE] [BATCH]`
//!
//! - SHAPE is `base`, `large` or `mini`.
//! - WHAT is `train`, `generate`, `frozen` (train with a frozen piece table, with and without added rows, and with a
//!   table that is not frozen, in turn), `ceiling` (only the matrix products and the memory traffic of a step), or
//!   `cycle FOLDER` (open a checkpoint, train one step, save).
//! - N is the number of measurements.
//! - WHERE is `avx2`, `scalar`, `cuda`, `cuda-f32` or `cuda-eager` (every kernel is launched separately). The default
//!   is the CPU with its best instruction set.
//! - BATCH is `16` or `32`, for this number of sentences with lengths that change at every step, `full`, for 16
//!   sentences of 128 pieces, all masked, or `long`, for 16 sentences of 512 pieces (256 if the shape has no more).
//!
//! Prints one line for each measurement. `bench/engine.py` reads these lines.
#![expect(clippy::print_stdout, reason = "a benchmark prints")]

use melm_nn::config::Config;
use melm_nn::cuda::{Cuda, CudaSettings, Precision};
use melm_nn::device::{Cpu, Device};
use melm_nn::dropout::Dropout;
use melm_nn::gradients::Gradients;
use melm_nn::isa::{Isa, IsaKind};
use melm_nn::mlm::{MaskedBatch, MaskedLm, MaskedLmTape, Predictions};
use melm_nn::optim::{Adam, AdamSettings};
use melm_nn::params::TABLE;
use melm_nn::probe::{LinearProbe, Product, StreamProbe};
use melm_nn::weights::Checkpoint;
use std::path::Path;
use std::time::Instant;

/// The lengths of the sentences of a batch, 672 pieces in total, as in `bench/engine.py`.
const LENGTHS: [u32; 16] = [64, 60, 56, 52, 48, 46, 44, 42, 40, 38, 36, 34, 32, 30, 28, 22];

type Failure = Box<dyn std::error::Error>;

fn shape(name: &str) -> Result<Config, Failure> {
    let base = Config { vocab_size: 250_015, ..Config::default() };
    match name {
        "base" => Ok(base),
        "large" => Ok(Config {
            hidden_size: 1024,
            n_layers: 24,
            n_heads: 16,
            intermediate_size: 4096,
            ..base
        }),
        "mini" => Ok(Config {
            vocab_size: 50_960,
            hidden_size: 512,
            n_layers: 6,
            n_heads: 8,
            intermediate_size: 2048,
            max_position_embeddings: 258,
            ..base
        }),
        _ => Err(format!("no shape `{name}`").into()),
    }
}

/// Which sentences a step uses.
#[derive(Clone, Copy)]
enum Sentences {
    /// The same sentences at every step.
    Same,
    /// Sentences whose lengths change at every step.
    Varied(usize),
    /// 16 sentences of 128 pieces. All pieces are masked.
    Full,
    /// 16 sentences of 512 pieces, or of the most that the shape has positions for.
    Long,
}

impl Sentences {
    fn lengths(self, max_length: u32, step: u64) -> Vec<u32> {
        match self {
            Self::Same => LENGTHS.to_vec(),
            Self::Full => vec![128; 16],
            Self::Long => vec![max_length.min(512); 16],
            Self::Varied(n) => {
                let varied = |(i, length): (u64, u32)| {
                    let shift = (step * 7 + i * 5 + step * i % 3) % 9;
                    length + u32::try_from(shift).unwrap_or(0) - 4
                };
                (0..n as u64).zip(LENGTHS.into_iter().cycle()).map(varied).collect()
            }
        }
    }
}

fn batch(config: &Config, sentences: Sentences, step: u64) -> Result<MaskedBatch, Failure> {
    let n_pieces = u32::try_from(config.vocab_size)?;
    let max_length = u32::try_from(config.max_pieces())?;
    let mut batch = MaskedBatch::default();
    for (key, length) in (0_u32..).zip(sentences.lengths(max_length, step)) {
        let pieces: Vec<_> =
            (0..length).map(|i| 5 + (key * 7919 + i * 104_729) % (n_pieces - 5)).collect();
        batch.sentences.push(&pieces, u64::from(key));
    }
    for (row, piece) in batch.sentences.pieces().iter().enumerate() {
        if matches!(sentences, Sentences::Full) || [3, 9, 16].contains(&(row % 20)) {
            batch.positions.push(row);
            batch.originals.push(*piece);
        }
    }
    Ok(batch)
}

struct Trainer {
    device: Device,
    model: MaskedLm,
    tape: MaskedLmTape,
    gradients: Gradients,
    adam: Adam,
}

impl Trainer {
    fn new(device: Device, model: MaskedLm) -> Result<Self, Failure> {
        let settings =
            AdamSettings { weight_decay: 0.01, max_norm: Some(1.0), ..AdamSettings::default() };
        Ok(Self {
            tape: MaskedLmTape::for_training(model.config()),
            gradients: Gradients::new(model.parameters())?,
            adam: Adam::new(model.parameters(), settings)?,
            device,
            model,
        })
    }

    fn step(&mut self, batch: &MaskedBatch, step: u64) -> Result<f64, Failure> {
        self.gradients.clear();
        let weight = 1.0 / batch.positions.len() as f32;
        let dropout = Dropout::new(self.model.config(), 1, step);
        let Self { device, model, tape, gradients, .. } = self;
        let loss = model.accumulate(device, batch, weight, dropout, tape, gradients)?;
        let parameters = self.model.parameters_mut();
        self.adam.step(&self.device, 1e-5, parameters, &mut self.gradients)?;
        Ok(loss / batch.positions.len() as f64)
    }
}

fn train(device: Device, config: &Config, n: u64, sentences: Sentences) -> Result<(), Failure> {
    let mut trainer = Trainer::new(device, MaskedLm::random(config, 1)?)?;
    let start = Instant::now();
    for step in 0..=n {
        let batch = batch(config, sentences, step)?;
        let before = Instant::now();
        let loss = trainer.step(&batch, step)?;
        if let (Device::Cuda(cuda), true) = (&trainer.device, step % 10 == 0) {
            cuda.synchronize()?;
        }
        let seconds = before.elapsed().as_secs_f64();
        // The first step also allocates memory, so it is reported separately. The benchmark of torch does the same.
        if step > 0 {
            println!("seconds {seconds:.6} loss {loss:.4}");
        } else {
            println!("first {:.4} loss {loss:.4}", start.elapsed().as_secs_f64());
        }
    }
    if let Device::Cuda(cuda) = &trainer.device {
        let memory = cuda.memory()?;
        println!(
            "gpu_mib {} allocated_mib {}",
            (memory.total - memory.free) >> 20,
            cuda.peak_bytes() >> 20
        );
        let graphs = cuda.graph_counts();
        println!("{graphs:?}");
    }
    Ok(())
}

/// The model, the number of steps, and the sentences of a measurement.
#[derive(Clone, Copy)]
struct Step<'a> {
    config: &'a Config,
    n: u64,
    sentences: Sentences,
}

/// How much of the piece table is trained.
const FREEZES: [(&str, bool, usize); 3] =
    [("frozen", true, 0), ("added rows", true, N_ADDED), ("whole table", false, 0)];
/// The number of added rows: about the number of markers of nine entity types.
const N_ADDED: usize = 20;

/// Trains with different frozen parts of the piece table, in turn, so that a change of the machine's load affects all
/// of them. Prints the median and the shortest time of a step, and their ratios to those with a frozen table.
fn frozen(device: &dyn Fn() -> Result<Device, Failure>, measured: Step<'_>) -> Result<(), Failure> {
    let Step { config, n, sentences } = measured;
    let mut trainers = Vec::new();
    for (_, is_frozen, n_added) in FREEZES {
        let mut model = MaskedLm::random(config, 1)?;
        model.set_first_added_piece(config.vocab_size - n_added);
        model.parameters_mut().freeze(|name| is_frozen && name == TABLE);
        trainers.push((Trainer::new(device()?, model)?, Vec::new()));
    }
    for step in 0..=n {
        let batch = batch(config, sentences, step)?;
        for (trainer, seconds) in &mut trainers {
            let before = Instant::now();
            trainer.step(&batch, step)?;
            if let Device::Cuda(cuda) = &trainer.device {
                cuda.synchronize()?;
            }
            seconds.push(before.elapsed().as_secs_f64());
        }
    }
    let times: Vec<[f64; 2]> = trainers
        .iter()
        .map(|(_, seconds)| {
            let mut sorted = seconds[1..].to_vec();
            sorted.sort_by(f64::total_cmp);
            [sorted[sorted.len() / 2], sorted[0]]
        })
        .collect();
    for ((name, ..), [median, shortest]) in FREEZES.iter().zip(&times) {
        let ratios = [median / times[0][0], shortest / times[0][1]];
        println!("{name}: median {median:.4} ratio {:.3}", ratios[0]);
        println!("{name}: shortest {shortest:.4} ratio {:.3}", ratios[1]);
    }
    Ok(())
}

fn generate(device: &Device, config: &Config, n: u64, sentences: Sentences) -> Result<(), Failure> {
    let model = MaskedLm::random(config, 1)?;
    let mut tape = MaskedLmTape::for_prediction(config);
    let mut out = Predictions::default();
    for step in 0..=n {
        let batch = batch(config, sentences, step)?;
        let start = Instant::now();
        model.predict(device, &batch, 5, &mut tape, &mut out)?;
        if step > 0 {
            println!("seconds {:.6}", start.elapsed().as_secs_f64());
        }
    }
    Ok(())
}

/// Opens a checkpoint, trains one step, and saves the model in a subfolder of the checkpoint.
fn cycle(device: Device, folder: &Path) -> Result<(), Failure> {
    let start = Instant::now();
    let model = MaskedLm::open(&Checkpoint::open(folder)?, 0, 1)?;
    println!("open {:.2}", start.elapsed().as_secs_f64());
    let batch = batch(model.config(), Sentences::Same, 0)?;
    let mut trainer = Trainer::new(device, model)?;
    let start = Instant::now();
    let loss = trainer.step(&batch, 0)?;
    println!("step {:.2} loss {loss:.4}", start.elapsed().as_secs_f64());
    let start = Instant::now();
    trainer.model.save(&folder.join("trained"))?;
    println!("save {:.2}", start.elapsed().as_secs_f64());
    Ok(())
}

/// Measures the speed of the products of a layer and of the head, and of the memory traffic of the optimiser.
fn ceiling(cpu: &Cpu, config: &Config, n: u64) -> Result<(), Failure> {
    let batch = batch(config, Sentences::Same, 0)?;
    let (rows, hidden, inner) =
        (batch.sentences.n_rows(), config.hidden_size, config.intermediate_size);
    for (what, rows, inputs, outputs) in [
        ("qkv", rows, hidden, 3 * hidden),
        ("output", rows, hidden, hidden),
        ("up", rows, hidden, inner),
        ("down", rows, inner, hidden),
        ("head", batch.positions.len(), hidden, config.vocab_size),
    ] {
        let mut probe = LinearProbe::new(rows, inputs, outputs);
        for product in [Product::Forward, Product::Backward, Product::Weights] {
            for _ in 0..=n {
                let start = Instant::now();
                probe.run(cpu, product);
                let speed = probe.n_operations() / start.elapsed().as_secs_f64() / 1e9;
                println!("gflops {what} {product:?} {speed:.1}");
            }
        }
    }
    let mut probe = StreamProbe::new(1 << 26);
    for _ in 0..=n {
        let start = Instant::now();
        probe.run(cpu);
        println!("gbytes {:.2}", probe.n_bytes() / start.elapsed().as_secs_f64() / 1e9);
    }
    Ok(())
}

/// Opens a GPU. Environment variables name the folders of its libraries.
fn gpu(precision: Precision, is_eager: bool) -> Result<Device, Failure> {
    let start = Instant::now();
    let names = ["VIRTUAL_ENV", "CUDA_HOME", "MELM_CUDA_ROOT"];
    let roots = names.iter().filter_map(std::env::var_os).map(Into::into).collect();
    let cuda = Cuda::open(&CudaSettings { precision, is_eager, roots, ..CudaSettings::default() })?;
    println!("opened {:.3} {}", start.elapsed().as_secs_f64(), cuda.name());
    Ok(cuda.into())
}

fn main() -> Result<(), Failure> {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    let argument = |index: usize| arguments.get(index).map_or("", String::as_str);
    let kind = match argument(3) {
        "avx2" => IsaKind::Avx2,
        "scalar" => IsaKind::Scalar,
        _ => Isa::detect().kind(),
    };
    let isa = Isa::from_kind(kind).ok_or("this CPU does not have it")?;
    let sentences = match argument(4) {
        "16" => Sentences::Varied(16),
        "32" => Sentences::Varied(32),
        "full" => Sentences::Full,
        "long" => Sentences::Long,
        _ => Sentences::Same,
    };
    let config = shape(argument(0))?;
    let n = argument(2).parse().unwrap_or(1);
    if argument(1) == "ceiling" {
        return ceiling(&Cpu::with_isa(2, isa), &config, n);
    }
    let device = || match argument(3) {
        "cuda" => gpu(Precision::Bf16, false),
        "cuda-eager" => gpu(Precision::Bf16, true),
        "cuda-f32" => gpu(Precision::F32, false),
        _ => Ok(Cpu::with_isa(2, isa).into()),
    };
    match argument(1) {
        "train" => train(device()?, &config, n, sentences)?,
        "generate" => generate(&device()?, &config, n, sentences)?,
        "frozen" => frozen(&device, Step { config: &config, n, sentences })?,
        "cycle" => cycle(device()?, Path::new(argument(2)))?,
        other => return Err(format!("no measurement `{other}`").into()),
    }
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    if let Some(peak) = status.lines().find(|line| line.starts_with("VmHWM")) {
        println!("peak_kib {}", peak.split_whitespace().nth(1).unwrap_or("0"));
    }
    Ok(())
}
