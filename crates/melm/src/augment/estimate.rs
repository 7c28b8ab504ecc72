//! An estimate of time and memory: operations are counted, and the speed of the machine is measured for a moment.

use melm_nn::config::Config;
use melm_nn::device::{Cpu, Device};
use melm_nn::probe::{LinearProbe, Product};
use melm_text::{Corpus, Sentence, Tag};

use super::AugmentJob;
use crate::methods::Method;
use crate::models::Pretrained;
use crate::training::{Budget, EvaluationInterval, TrainingSettings};

/// The share of the speed of matrix products that a training step reaches on the CPU (docs/performance.md).
const CPU_SHARE: f64 = 0.7;
/// The same on a GPU, which waits for launches and memory.
const GPU_SHARE: f64 = 0.2;
/// How long the speed is measured.
const MEASURED_SECONDS: f64 = 0.3;
/// Pieces in a micro-batch.
const MAX_PIECES: f64 = 2_048.0;

/// The time and memory that a run is expected to take.
#[derive(Clone, Debug, PartialEq)]
pub struct Estimate {
    /// The stages in order.
    pub stages: Vec<StageEstimate>,
}

/// The time and memory of one stage.
#[derive(Clone, Debug, PartialEq)]
pub struct StageEstimate {
    /// What the stage does, for people.
    pub title: &'static str,
    /// Seconds.
    pub seconds: f64,
    /// Bytes of memory.
    pub bytes: f64,
}

impl Estimate {
    /// The seconds of all stages together.
    pub fn seconds(&self) -> f64 {
        self.stages.iter().map(|stage| stage.seconds).sum()
    }

    /// The most memory that a stage needs, in bytes.
    pub fn bytes(&self) -> f64 {
        self.stages.iter().map(|stage| stage.bytes).fold(0.0, f64::max)
    }
}

impl AugmentJob {
    /// Estimates the time and memory of a run from the start, without running it. `seconds` is a clock: it returns the seconds
    /// since any fixed moment.
    pub fn estimate(&self, seconds: &dyn Fn() -> f64) -> Estimate {
        let speed = match &*self.device {
            Device::Cpu(cpu) => measure_speed(cpu, seconds) * CPU_SHARE,
            // A GPU that cannot be measured now is reported when the run starts.
            Device::Cuda(cuda) => cuda.measure_flops(&layer(), 672).unwrap_or(f64::NAN) * GPU_SHARE,
        };
        let stages = costs(self).into_iter().map(|(title, cost)| StageEstimate {
            title,
            seconds: cost.operations / speed,
            bytes: cost.bytes,
        });
        Estimate { stages: stages.collect() }
    }
}

/// A layer with the shape of the embedded model's.
fn layer() -> Config {
    Config { hidden_size: 512, n_heads: 8, intermediate_size: 2048, ..Config::default() }
}

/// Measures the operations a second of matrix products.
fn measure_speed(cpu: &Cpu, seconds: &dyn Fn() -> f64) -> f64 {
    let layer = layer();
    let mut probe = LinearProbe::new(672, layer.hidden_size, layer.intermediate_size);
    probe.run(cpu, Product::Forward);
    let (started, mut n) = (seconds(), 0.0);
    loop {
        probe.run(cpu, Product::Forward);
        n += 1.0;
        let elapsed = seconds() - started;
        // A clock that stands still would never end the loop.
        if elapsed >= MEASURED_SECONDS || n >= 1e6 {
            return n * probe.n_operations() / elapsed.max(f64::MIN_POSITIVE);
        }
    }
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

fn costs(job: &AugmentJob) -> Vec<(&'static str, Cost)> {
    let plan = &job.plan;
    let rounds = f64::from(plan.generate.rounds.get());
    let (train_set, dev) = (&job.train, job.dev.as_ref());
    let is_mixed = plan.method.mixes() && plan.method.has_masked_lm();
    let mut costs = Vec::new();
    if let Some(model) = job.masked_lm.as_ref().filter(|_| plan.method.has_masked_lm()) {
        let shape = ModelShape::new(model);
        let [train, dev] = [Some(train_set), dev].map(|corpus| size(model, corpus, true));
        // Every sentence twice: as it is and code-mixed.
        let train = if is_mixed { train.doubled() } else { train };
        let masked = f64::from(plan.finetune.mask.rate) * train.entities / train.sentences.max(1.0);
        if plan.method.finetunes() {
            let what = "fine-tuning the masked language model";
            costs.push((what, shape.training(&plan.finetune.training, (&train, &dev), masked)));
        }
        let guessed = rounds * train.entities * f64::from(plan.generate.mask.mean);
        let operations = rounds * train.pieces * 2.0 * shape.encoder + guessed * 2.0 * shape.table;
        costs.push(("generating", Cost { operations, bytes: 4.0 * shape.all }));
    }
    if plan.method == Method::Daga {
        costs.push(("training the language model", language_model(job)));
    }
    if plan.method == Method::Mulda {
        costs.push(("training the encoder-decoder", encoder_decoder(job)));
    }
    if let Some(model) = &job.tagger {
        let shape = ModelShape::new(model);
        let [train, dev] = [Some(train_set), dev].map(|corpus| size(model, corpus, false));
        costs.push((
            "training the judge",
            shape.training(&plan.tagger.training, (&train, &dev), 0.0),
        ));
        let are_twice = is_mixed || plan.method == Method::MelmBoth;
        let drafts = if are_twice { train.doubled() } else { train };
        let operations = rounds * drafts.pieces * 2.0 * shape.encoder;
        costs.push(("judging", Cost { operations, bytes: 4.0 * shape.all }));
    }
    costs
}

/// A word of DAGA's language model uses every weight once.
fn language_model(job: &AugmentJob) -> Cost {
    let daga = &job.plan.daga;
    let (embedding, hidden) = (daga.embedding_size.get() as f64, daga.hidden_size.get() as f64);
    let deeper = 2.0 * hidden * (daga.layers.get() as f64 - 1.0);
    let (n_words, n_different) = words(&job.train);
    let weights = 4.0 * hidden * (embedding + hidden + deeper) + n_different * hidden;
    let kept = n_different + 8.0 * hidden;
    writer(job, &daga.training, n_words, (weights, n_different * embedding, kept))
}

/// A piece of `MulDA`'s encoder-decoder uses every weight of its half once; the decoder's the table too.
fn encoder_decoder(job: &AugmentJob) -> Cost {
    let mulda = &job.plan.mulda;
    let (n_words, n_different) = words(&job.train);
    // A token is about one and a half pieces.
    let (width, layers, rows) = match &job.seq2seq {
        Some(model) => {
            let config = model.config();
            (
                config.width,
                config.encoder.n_layers + config.decoder.n_layers,
                config.vocab_size as f64,
            )
        }
        None => (mulda.width.get(), 2 * mulda.layers.get(), 1.5 * n_different),
    };
    let (width, layers) = (width as f64, layers as f64);
    let weights = layers * 14.0 * width * width / 2.0 + rows * width;
    let kept = rows + layers * 14.0 * width;
    writer(job, &mulda.training, 1.5 * n_words, (weights, rows * width, kept))
}

/// Tokens and tags of a corpus, and how many different ones there are.
fn words(corpus: &Corpus) -> (f64, f64) {
    let sentences = corpus.sentences().iter();
    let n_tags = sentences.clone().flat_map(Sentence::tags).filter(|t| **t != Tag::Outside);
    let n_tags = n_tags.count();
    let tokens: Vec<_> = sentences.flat_map(Sentence::tokens).collect();
    let n_words = (tokens.len() + n_tags) as f64;
    (n_words, tokens.into_iter().collect::<std::collections::BTreeSet<_>>().len() as f64)
}

/// Training a model that writes: every weight once forward and twice backward for each word; writing costs little beside
/// it. `kept` numbers are kept of each word of a batch.
fn writer(
    job: &AugmentJob,
    fit: &TrainingSettings,
    n_words: f64,
    (weights, looked_up, kept): (f64, f64, f64),
) -> Cost {
    let n_sentences = job.train.sentences().len().max(1) as f64;
    let epochs = match fit.budget {
        Budget::Epochs(n) => n.get() as f64,
        Budget::Updates(n) => n.get() as f64 * fit.batch_size.get() as f64 / n_sentences,
    };
    let rows = (fit.batch_size.get() as f64 * n_words / n_sentences).min(MAX_PIECES);
    let bytes = 4.0 * (4.0 * (weights + looked_up) + rows * kept);
    Cost { operations: epochs * 6.0 * n_words * weights, bytes }
}

impl Size {
    fn doubled(&self) -> Self {
        let Self { sentences, pieces, entities } = self;
        Self { sentences: 2.0 * sentences, pieces: 2.0 * pieces, entities: 2.0 * entities }
    }
}

fn size(model: &Pretrained, corpus: Option<&Corpus>, with_markers: bool) -> Size {
    let mut size = Size { sentences: 0.0, pieces: 0.0, entities: 0.0 };
    let Some(corpus) = corpus else { return size };
    let tokenizer = model.tokenizer();
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
struct ModelShape {
    /// Weights of the layers, each used once a piece.
    encoder: f64,
    table: f64,
    all: f64,
    /// Numbers that a training keeps of each piece.
    kept: f64,
}

impl ModelShape {
    fn new(model: &Pretrained) -> Self {
        let Config { hidden_size, intermediate_size, n_layers, vocab_size, .. } =
            *model.checkpoint().config();
        let (h, inner, layers) = (hidden_size as f64, intermediate_size as f64, n_layers as f64);
        let encoder = layers * (4.0 * h * h + 2.0 * h * inner);
        let table = vocab_size as f64 * h;
        Self { encoder, table, all: encoder + table, kept: layers * (9.0 * h + inner) }
    }

    /// A training: forward once and backward twice, with `masked` guesses a sentence, and the evaluations.
    fn training(&self, fit: &TrainingSettings, (train, dev): (&Size, &Size), masked: f64) -> Cost {
        let batch = fit.batch_size.get() as f64;
        let in_epochs = |budget: Budget| match budget {
            Budget::Epochs(n) => n.get() as f64,
            Budget::Updates(n) => n.get() as f64 * batch / train.sentences.max(1.0),
        };
        let epochs = in_epochs(fit.budget);
        let every = match fit.evaluate_every {
            EvaluationInterval::Epochs(n) => n.get() as f64,
            EvaluationInterval::Other(budget) => in_epochs(budget),
        };
        let learned = 6.0 * (train.pieces * self.encoder + train.sentences * masked * self.table);
        let evaluated = 2.0 * dev.pieces * self.encoder / every;
        let is_frozen =
            |name: &str| fit.freeze.0.iter().any(|start| name.starts_with(start.as_str()));
        let frozen = if is_frozen(melm_nn::params::TABLE) { self.table } else { 0.0 };
        let rows = (batch * train.pieces / train.sentences.max(1.0)).min(MAX_PIECES);
        let trained = self.all - frozen;
        let numbers = self.all + 2.0 * trained + self.encoder + rows * self.kept;
        Cost { operations: epochs * (learned + evaluated), bytes: 4.0 * numbers }
    }
}
