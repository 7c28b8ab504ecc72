//! Measures how fast taggers with random weights compute emissions on the CPU, in f32 and with 8-bit weights, in turns.
//!
//! Usage: `bench_tag SHAPE N_THREADS N_RUNS [ROWS]`
//!
//! SHAPE is `mini` or `base`. Every thread computes its own batches of about ROWS pieces (384). Prints the number of
//! pieces in a second of wall time, and in a second of CPU time of one thread, which other programs disturb less.
#![expect(clippy::print_stdout, reason = "a benchmark prints")]

use melm_nn::config::Config;
use melm_nn::device::{Cpu, Device};
use melm_nn::isa::Isa;
use melm_nn::tagger::{HeadKind, Int8Weights, TaggedBatch, Tagger, TaggerSettings, TaggerTape};
use std::time::Instant;

const LENGTHS: [u32; 16] = [64, 60, 56, 52, 48, 46, 44, 42, 40, 38, 36, 34, 32, 30, 28, 22];

type Failure = Box<dyn std::error::Error + Send + Sync>;

fn shape(name: &str) -> Result<Config, Failure> {
    match name {
        "base" => Ok(Config { vocab_size: 1000, ..Config::default() }),
        "mini" => Ok(Config {
            vocab_size: 1000,
            hidden_size: 512,
            n_layers: 6,
            n_heads: 8,
            intermediate_size: 2048,
            max_position_embeddings: 258,
            ..Config::default()
        }),
        _ => Err(format!("no shape `{name}`").into()),
    }
}

/// Batches of about `rows` pieces, of sentences of similar length.
fn batches(rows: usize) -> Vec<TaggedBatch> {
    let mut batches = vec![TaggedBatch::default()];
    for length in LENGTHS.iter().flat_map(|length| [*length; 8]) {
        let pieces: Vec<u32> = (0..length).map(|at| 5 + (at * 37 + length) % 900).collect();
        let firsts: Vec<usize> = (1..pieces.len() - 1).step_by(2).collect();
        if batches.last().is_some_and(|last| last.sentences().n_rows() + pieces.len() > rows) {
            batches.push(TaggedBatch::default());
        }
        if let Some(last) = batches.last_mut() {
            last.push(0, &pieces, &firsts, &[]);
        }
    }
    batches
}

/// Returns the seconds of wall time and of CPU time that one thread needs for all batches, in f32 or with 8-bit weights.
fn measure(
    tagger: &Tagger,
    int8: Option<&Int8Weights>,
    batches: &[TaggedBatch],
) -> Result<(f64, f64), Failure> {
    let device = Device::cpu(1);
    let cpu = Cpu::with_isa(1, Isa::detect());
    let mut tape = TaggerTape::for_prediction(tagger.config());
    let mut out = Vec::new();
    let mut pass = |batches: &[TaggedBatch]| {
        for batch in batches {
            match int8 {
                Some(int8) => tagger.emissions_int8(&cpu, int8, batch, &mut tape, &mut out)?,
                None => tagger.emissions(&device, batch, &mut tape, &mut out)?,
            }
        }
        Ok::<_, Failure>(())
    };
    pass(&batches[..1])?;
    let (start, cpu_start) = (Instant::now(), cpu_seconds());
    pass(batches)?;
    Ok((start.elapsed().as_secs_f64(), cpu_seconds() - cpu_start))
}

/// Returns the CPU time of the calling thread, or 0 where it is not known.
fn cpu_seconds() -> f64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let nanoseconds = text.split(' ').next().and_then(|first| first.parse::<u64>().ok());
    nanoseconds.unwrap_or_default() as f64 / 1e9
}

fn main() -> Result<(), Failure> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [name, n_threads, n_runs, rest @ ..] = &arguments[..] else {
        return Err("usage: bench_tag SHAPE N_THREADS N_RUNS [ROWS]".into());
    };
    let config = shape(name)?;
    let settings = TaggerSettings { n_tags: 19, kind: HeadKind::Crf, allowed: None };
    let tagger = Tagger::random(&config, settings, 1)?;
    let start = Instant::now();
    let int8 = tagger.quantize()?;
    println!("quantized in {:.3} s", start.elapsed().as_secs_f64());
    let batches = batches(rest.first().map_or(Ok(384), |rows| rows.parse())?);
    let n_rows: usize = batches.iter().map(|batch| batch.sentences().n_rows()).sum();
    let (n_threads, n_runs): (usize, usize) = (n_threads.parse()?, n_runs.parse()?);
    for _ in 0..n_runs {
        for (name, weights) in [("f32", None), ("int8", Some(&int8))] {
            let seconds = std::thread::scope(|scope| {
                let threads: Vec<_> = (0..n_threads)
                    .map(|_| scope.spawn(|| measure(&tagger, weights, &batches)))
                    .collect();
                let times = threads.into_iter().map(|thread| thread.join().expect("no panic"));
                times.collect::<Result<Vec<_>, _>>()
            })?;
            let slowest = seconds.iter().fold(0.0, |most, (wall, _)| wall.max(most));
            let cpu = seconds.iter().map(|(_, cpu)| cpu).sum::<f64>() / n_threads as f64;
            let (wall, cpu) = ((n_threads * n_rows) as f64 / slowest, n_rows as f64 / cpu);
            println!("{name}: {wall:.0} pieces/s, {cpu:.0} in a second of CPU time");
        }
    }
    Ok(())
}
