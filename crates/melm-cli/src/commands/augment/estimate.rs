//! What a run will cost, before it is begun: arithmetic counted, the machine's speed measured for a moment.

use std::time::{Duration, Instant};

use melm::fit::{Budget, FitSettings};
use melm::model::Pretrained;
use melm_nn::ceiling::{LinearProbe, Product};
use melm_nn::config::Config;
use melm_nn::device::Device;
use melm_text::{Corpus, Tag};

use super::Job;
use crate::progress::duration;
use crate::terminal::Terminal;

/// A step reaches about this share of the speed of its products alone; docs/performance.md.
const OF_THE_FLOOR: f64 = 0.7;
/// How long the machine's speed is measured.
const MEASURED: Duration = Duration::from_millis(300);
/// Pieces that are read at once.
const MOST_PIECES: f64 = 2_048.0;

pub(super) fn say(job: &Job, terminal: &Terminal) {
    let speed = speed(&job.device) * OF_THE_FLOOR;
    let (mut total, mut memory) = (0.0, 0.0_f64);
    for (what, cost) in costs(job) {
        let seconds = cost.operations / speed;
        total += seconds;
        memory = memory.max(cost.bytes);
        terminal.say(&format!("  {what:<40}{:>8}", duration(seconds)));
    }
    terminal.say(&format!(
        "about {} and {:.1} GiB of memory; nothing was done (--dry-run)",
        duration(total),
        memory / f64::from(1 << 30),
    ));
}

/// Operations a second of a product such as a model's.
fn speed(device: &Device) -> f64 {
    let Device::Cpu(cpu) = device;
    let mut probe = LinearProbe::new(672, 512, 2048);
    probe.run(cpu, Product::Forward);
    let (begun, mut n) = (Instant::now(), 0.0);
    while begun.elapsed() < MEASURED {
        probe.run(cpu, Product::Forward);
        n += 1.0;
    }
    n * probe.n_operations() / begun.elapsed().as_secs_f64()
}

struct Cost {
    operations: f64,
    bytes: f64,
}

/// A corpus in pieces.
struct Size {
    sentences: f64,
    pieces: f64,
    /// Pieces of entity tokens.
    entities: f64,
}

fn costs(job: &Job) -> Vec<(&'static str, Cost)> {
    let plan = &job.plan;
    let rounds = f64::from(plan.generate.rounds.get());
    let dev = job.dev.as_ref().map(|dev| &dev.corpus);
    let mut costs = Vec::new();
    if let Some(model) = &job.masked_lm {
        let shape = Shape::of(model);
        let [train, dev] = [Some(&job.train.corpus), dev].map(|corpus| size(model, corpus, true));
        let masked = f64::from(plan.finetune.mask.rate) * train.entities / train.sentences.max(1.0);
        if plan.method != melm::augment::Method::MlmEntity {
            let what = "fine-tuning the masked language model";
            costs.push((what, shape.training(&plan.finetune.fit, (&train, &dev), masked)));
        }
        let guessed = rounds * train.entities * f64::from(plan.generate.mask.mean);
        let operations = rounds * train.pieces * 2.0 * shape.encoder + guessed * 2.0 * shape.table;
        costs.push(("generating", Cost { operations, bytes: 4.0 * shape.all }));
    }
    if plan.method == melm::augment::Method::Daga {
        costs.push(("training the language model", language_model(job)));
    }
    if let Some(model) = &job.tagger {
        let shape = Shape::of(model);
        let [train, dev] = [Some(&job.train.corpus), dev].map(|corpus| size(model, corpus, false));
        costs.push(("training the judge", shape.training(&plan.tagger.fit, (&train, &dev), 0.0)));
        let operations = rounds * train.pieces * 2.0 * shape.encoder;
        costs.push(("judging", Cost { operations, bytes: 4.0 * shape.all }));
    }
    costs
}

/// A word of DAGA's language model uses every weight once, forward, and twice backward; writing costs little beside it.
fn language_model(job: &Job) -> Cost {
    let (daga, corpus) = (&job.plan.daga, &job.train.corpus);
    let (embedding, hidden) = (daga.embedding_size.get() as f64, daga.hidden_size.get() as f64);
    let tokens: Vec<_> = corpus.sentences().iter().flat_map(melm_text::Sentence::tokens).collect();
    let n_words = 2.0 * tokens.len() as f64;
    let n_different = tokens.into_iter().collect::<std::collections::BTreeSet<_>>().len() as f64;
    let layers =
        4.0 * hidden * (embedding + hidden + 2.0 * hidden * (daga.layers.get() as f64 - 1.0));
    let weights = layers + n_different * (hidden + embedding);
    let epochs = match daga.fit.budget {
        Budget::Epochs(n) => n.get() as f64,
        Budget::Updates(n) => {
            n.get() as f64 * daga.fit.batch_size.get() as f64
                / corpus.sentences().len().max(1) as f64
        }
    };
    let bytes = 4.0 * (4.0 * weights + MOST_PIECES * (n_different + 8.0 * hidden));
    Cost { operations: epochs * 6.0 * n_words * weights, bytes }
}

fn size(model: &Pretrained, corpus: Option<&Corpus>, with_markers: bool) -> Size {
    let mut size = Size { sentences: 0.0, pieces: 0.0, entities: 0.0 };
    let (Some(corpus), Ok(tokenizer)) = (corpus, model.tokenizer()) else { return size };
    for sentence in corpus.sentences() {
        let Ok(encoded) = tokenizer.encode(sentence.tokens()) else { continue };
        size.sentences += 1.0;
        size.pieces += encoded.pieces.len() as f64;
        for (range, tag) in encoded.tokens.iter().zip(sentence.tags()) {
            if *tag != Tag::Outside {
                size.entities += range.len() as f64;
                size.pieces += if with_markers { 2.0 } else { 0.0 };
            }
        }
    }
    size
}

/// Numbers of a model.
struct Shape {
    /// Weights of the layers, each used once a piece.
    encoder: f64,
    table: f64,
    all: f64,
    /// Numbers that a training keeps of each piece.
    kept: f64,
}

impl Shape {
    fn of(model: &Pretrained) -> Self {
        let Config { hidden_size, intermediate_size, n_layers, vocab_size, .. } =
            *model.checkpoint().config();
        let (h, inner, layers) = (hidden_size as f64, intermediate_size as f64, n_layers as f64);
        let encoder = layers * (4.0 * h * h + 2.0 * h * inner);
        let table = vocab_size as f64 * h;
        Self { encoder, table, all: encoder + table, kept: layers * (9.0 * h + inner) }
    }

    /// A training: forward once and backward twice, with `masked` guesses a sentence, and the evaluations.
    fn training(&self, fit: &FitSettings, (train, dev): (&Size, &Size), masked: f64) -> Cost {
        let batch = fit.batch_size.get() as f64;
        let epochs = match fit.budget {
            Budget::Epochs(n) => n.get() as f64,
            Budget::Updates(n) => n.get() as f64 * batch / train.sentences.max(1.0),
        };
        let learned = 6.0 * (train.pieces * self.encoder + train.sentences * masked * self.table);
        let evaluated = 2.0 * dev.pieces * self.encoder / fit.evaluate_every.get() as f64;
        let is_frozen =
            |name: &str| fit.freeze.0.iter().any(|start| name.starts_with(start.as_str()));
        let frozen = if is_frozen(melm_nn::params::TABLE) { self.table } else { 0.0 };
        let rows = (batch * train.pieces / train.sentences.max(1.0)).min(MOST_PIECES);
        let trained = self.all - frozen;
        let numbers = self.all + 2.0 * trained + self.encoder + rows * self.kept;
        Cost { operations: epochs * (learned + evaluated), bytes: 4.0 * numbers }
    }
}
