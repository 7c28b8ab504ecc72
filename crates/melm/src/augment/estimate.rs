//! Estimates the time and memory of a run.
//!
//! The number of floating-point operations of each stage follows from the plan and the corpora. The speed of the
//! machine is measured for a moment. The estimated time is the number of operations divided by the speed.

use std::collections::BTreeSet;

use melm_nn::config::Config;
use melm_nn::device::{Cpu, Device};
use melm_nn::probe::{LinearProbe, Product};
use melm_text::{Corpus, Sentence, Tag};

use super::cost::{BYTES, CorpusSize, Cost, EncoderSize, FORWARD, GeneratorSize, Markers};
use super::panel_cost::{PanelWork, n_kept_drafts};
use super::{AugmentJob, Gold};
use crate::gold_check::training_share;
use crate::methods::Method;
use crate::models::Pretrained;
use crate::tagger::transition_bytes;

/// The speed of a training step on the CPU, as a share of the speed of matrix products (docs/performance.md).
const CPU_SHARE: f64 = 0.7;
/// The speed of a training step on a GPU, as a share of the speed of matrix products. It is lower than on the CPU
/// because a GPU also waits for kernel launches and memory.
const GPU_SHARE: f64 = 0.2;
/// The number of seconds for which the speed of the CPU is measured.
const MEASURED_SECONDS: f64 = 0.3;
/// The number of rows of the matrices whose product is measured.
const MEASURED_ROWS: usize = 672;
/// The assumed number of pieces per token, used where no tokenizer exists yet.
const PIECES_PER_TOKEN: f64 = 1.5;

/// The time and memory that a run is expected to take.
#[derive(Clone, Debug, PartialEq)]
pub struct Estimate {
    /// The stages in order.
    pub stages: Vec<StageEstimate>,
}

/// The time and memory of one stage.
#[derive(Clone, Debug, PartialEq)]
pub struct StageEstimate {
    /// A short description of the stage, such as `training the judge`.
    pub title: &'static str,
    /// The expected time in seconds.
    pub seconds: f64,
    /// The expected memory in bytes.
    pub bytes: f64,
}

impl Estimate {
    /// The seconds of all stages together.
    pub fn seconds(&self) -> f64 {
        // The sum of no numbers would be -0.0.
        self.stages.iter().fold(0.0, |sum, stage| sum + stage.seconds)
    }

    /// The memory of the stage that needs the most, in bytes.
    pub fn bytes(&self) -> f64 {
        self.stages.iter().map(|stage| stage.bytes).fold(0.0, f64::max)
    }
}

impl AugmentJob {
    /// Estimates the time and memory of a complete run, without running it. `seconds` is a clock: it returns the
    /// seconds since some fixed moment.
    pub fn estimate(&self, seconds: &dyn Fn() -> f64) -> Estimate {
        Estimate::measure(stage_costs(self), &self.device, seconds)
    }
}

impl Estimate {
    /// Measures the speed of a device for a moment, and estimates the time of stages with these titles and costs.
    pub(super) fn measure(
        stages: Vec<(&'static str, Cost)>,
        device: &Device,
        seconds: &dyn Fn() -> f64,
    ) -> Self {
        let layer = Config {
            // These are the sizes of a layer of the embedded model.
            hidden_size: 512,
            n_heads: 8,
            intermediate_size: 2048,
            ..Config::default()
        };
        let operations_per_second = match device {
            Device::Cpu(cpu) => measure_cpu(cpu, &layer, seconds) * CPU_SHARE,
            // If the measurement fails, the run itself reports the error when it starts.
            Device::Cuda(cuda) => {
                cuda.measure_flops(&layer, MEASURED_ROWS).unwrap_or(f64::NAN) * GPU_SHARE
            }
        };
        let stages = stages.into_iter().map(|(title, cost)| StageEstimate {
            title,
            seconds: cost.operations / operations_per_second,
            bytes: cost.bytes,
        });
        Self { stages: stages.collect() }
    }
}

/// Measures the speed of matrix products of a layer, in operations per second.
fn measure_cpu(cpu: &Cpu, layer: &Config, seconds: &dyn Fn() -> f64) -> f64 {
    let mut probe = LinearProbe::new(MEASURED_ROWS, layer.hidden_size, layer.intermediate_size);
    probe.run(cpu, Product::Forward);
    let started = seconds();
    let mut n_products = 0.0;
    loop {
        probe.run(cpu, Product::Forward);
        n_products += 1.0;
        let elapsed = seconds() - started;
        // The second condition ends the loop if the clock stands still.
        if elapsed >= MEASURED_SECONDS || n_products >= 1e6 {
            return n_products * probe.n_operations() / elapsed.max(f64::MIN_POSITIVE);
        }
    }
}

/// Lists the stages of a run in order, each with its title and cost.
fn stage_costs(job: &AugmentJob) -> Vec<(&'static str, Cost)> {
    let method = job.plan.method;
    let mut costs = Vec::new();
    if let Some(model) = job.masked_lm.as_ref().filter(|_| method.has_masked_lm()) {
        add_masked_lm_stages(job, model, &mut costs);
    }
    if method == Method::Daga {
        costs.push(("training the language model", daga_cost(job)));
    }
    if method == Method::Mulda {
        costs.push(("training the encoder-decoder", mulda_cost(job)));
    }
    if let Some(model) = job.tagger.as_ref().filter(|_| job.plan.has_judge()) {
        add_judge_stages(job, model, &mut costs);
    }
    if let (Some(text), Some(model)) = (&job.text, &job.tagger) {
        let gold = Gold { train: &job.train, dev: job.dev.as_ref() };
        let work = PanelWork { plan: &job.plan, gold, text, n_drafts: n_kept_drafts(job) };
        costs.extend(work.costs(model));
    }
    if let Some(model) = job.tagger.as_ref().filter(|_| job.plan.gold_check.folds > 0) {
        costs.push(("checking gold", gold_check_cost(job, model)));
    }
    costs
}

/// Returns true if each round makes two drafts of every sentence.
pub(super) fn makes_two_drafts(job: &AugmentJob) -> bool {
    reads_code_mixed_copies(job) || job.plan.method == Method::MelmBoth
}

/// Returns true if the masked language model also reads a code-mixed copy of every sentence.
fn reads_code_mixed_copies(job: &AugmentJob) -> bool {
    job.plan.method.mixes() && job.plan.method.has_masked_lm()
}

/// Adds the stages of the masked language model: fine-tuning, if the method does that, and generating.
fn add_masked_lm_stages(
    job: &AugmentJob,
    model: &Pretrained,
    costs: &mut Vec<(&'static str, Cost)>,
) {
    let plan = &job.plan;
    let size = EncoderSize::new(model);
    let train = CorpusSize::new(model, Some(&job.train), Markers::Counted);
    let train = if reads_code_mixed_copies(job) { train.doubled() } else { train };
    if plan.method.finetunes() {
        let dev = CorpusSize::new(model, job.dev.as_ref(), Markers::Counted);
        let masked_per_sentence =
            f64::from(plan.finetune.mask.rate) * train.entity_pieces / train.sentences.max(1.0);
        let cost = size.training_cost(&plan.finetune.training, &train, &dev, masked_per_sentence);
        costs.push(("fine-tuning the masked language model", cost));
    }
    let rounds = f64::from(plan.generate.rounds.get());
    let predicted = rounds * train.entity_pieces * f64::from(plan.generate.mask.mean);
    let operations =
        rounds * train.pieces * FORWARD * size.encoder + predicted * FORWARD * size.embedding;
    costs.push(("generating", Cost { operations, bytes: BYTES * size.all }));
}

/// Adds training the judge and judging the drafts.
fn add_judge_stages(job: &AugmentJob, model: &Pretrained, costs: &mut Vec<(&'static str, Cost)>) {
    let plan = &job.plan;
    let size = EncoderSize::new(model);
    let train = CorpusSize::new(model, Some(&job.train), Markers::Absent);
    let dev = CorpusSize::new(model, job.dev.as_ref(), Markers::Absent);
    let training = size.training_cost(&plan.tagger.training, &train, &dev, 0.0);
    let n_judges = plan.filter.judges.get() as f64;
    let operations = n_judges * training.operations;
    // The time for the transition scores is left out: a warning names it if there are many.
    let bytes = training.bytes + transition_bytes(&job.train, plan.tagger.head) as f64;
    costs.push(("training the judge", Cost { operations, bytes }));
    let drafts = if makes_two_drafts(job) { train.doubled() } else { train };
    let rounds = f64::from(plan.generate.rounds.get());
    let operations = n_judges * rounds * drafts.pieces * FORWARD * size.encoder;
    costs.push(("judging", Cost { operations, bytes: BYTES * size.all }));
}

/// The cost of training a tagger for each fold. The cost of reading the sentences is small and left out.
fn gold_check_cost(job: &AugmentJob, model: &Pretrained) -> Cost {
    let settings = job.plan.gold_check;
    let size = EncoderSize::new(model);
    let train = CorpusSize::new(model, Some(&job.train), Markers::Absent);
    let dev = CorpusSize::new(model, job.dev.as_ref(), Markers::Absent);
    let train = train.scaled(training_share(settings));
    let one = size.training_cost(&job.plan.tagger.training, &train, &dev, 0.0);
    Cost { operations: settings.folds as f64 * one.operations, ..one }
}

/// The cost of training DAGA's language model, which predicts tokens and tags.
fn daga_cost(job: &AugmentJob) -> Cost {
    let daga = &job.plan.daga;
    let embedding_size = daga.embedding_size.get() as f64;
    let hidden = daga.hidden_size.get() as f64;
    let upper_layers = 2.0 * hidden * (daga.layers.get() as f64 - 1.0);
    let vocabulary = count_distinct_tokens(&job.train);
    let model = GeneratorSize {
        used_weights: 4.0 * hidden * (embedding_size + hidden + upper_layers) + vocabulary * hidden,
        embedding: vocabulary * embedding_size,
        activations: vocabulary + 8.0 * hidden,
    };
    model.training_cost(&daga.training, &job.train, count_tokens_and_tags(&job.train))
}

/// The cost of training `MulDA`'s encoder-decoder. A piece passes either through the encoder or through the decoder,
/// so it uses half of the layers' weights. Predicting a piece also uses the embedding.
fn mulda_cost(job: &AugmentJob) -> Cost {
    let mulda = &job.plan.mulda;
    let (width, layers, vocabulary) = if let Some(model) = &job.seq2seq {
        let config = model.config();
        let n_layers = config.encoder.n_layers + config.decoder.n_layers;
        (config.width, n_layers, config.vocab_size as f64)
    } else {
        let vocabulary = PIECES_PER_TOKEN * count_distinct_tokens(&job.train);
        (mulda.width.get(), 2 * mulda.layers.get(), vocabulary)
    };
    let (width, layers) = (width as f64, layers as f64);
    let model = GeneratorSize {
        used_weights: layers * 14.0 * width * width / 2.0 + vocabulary * width,
        embedding: vocabulary * width,
        activations: vocabulary + layers * 14.0 * width,
    };
    let n_pieces = PIECES_PER_TOKEN * count_tokens_and_tags(&job.train);
    model.training_cost(&mulda.training, &job.train, n_pieces)
}

/// The number of tokens of a corpus plus the number of its tags other than `O`.
fn count_tokens_and_tags(corpus: &Corpus) -> f64 {
    let sentences = corpus.sentences();
    let n_tokens = sentences.iter().flat_map(Sentence::tokens).count();
    let tags = sentences.iter().flat_map(Sentence::tags);
    (n_tokens + tags.filter(|tag| **tag != Tag::Outside).count()) as f64
}

fn count_distinct_tokens(corpus: &Corpus) -> f64 {
    let tokens = corpus.sentences().iter().flat_map(Sentence::tokens);
    tokens.collect::<BTreeSet<_>>().len() as f64
}
