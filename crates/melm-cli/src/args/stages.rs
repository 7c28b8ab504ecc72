//! The options of `melm finetune`, `generate` and `filter`, which run the stages of `augment` one at a time.

use std::num::NonZeroU32;
use std::path::PathBuf;

use clap::Args as Group;
use melm::judge::FilterMode;
use melm::rate::Rate;

use super::plan::{DeviceOptions, PlanOverrides};
use super::tagger::TrainingOptions;
use super::{InputFile, InputOptions, OutputOptions, ShardOption};

/// Fine-tune a masked language model to predict entity tokens (first stage of `augment`)
///
/// Writes MODEL, a Hugging Face folder for `melm generate` and Python's `AutoModelForMaskedLM`. The
/// tokenizer in MODEL has a marker for every tag. The folder also contains plan.toml (the
/// settings), metrics.jsonl and run.json. If the command is interrupted or killed, run it again to
/// resume; the result has the same bytes.
#[derive(Debug, Group)]
#[command(after_help = "Examples:\n  melm finetune train.conll --dev dev.conll -o lm\n  \
    melm finetune train.conll -o lm --set method=melm-plain")]
pub(crate) struct Finetune {
    #[command(flatten)]
    pub(crate) training: TrainingOptions,
}

/// Make drafts with a fine-tuned model (second stage of `augment`)
///
/// The default settings are those that MODEL was fine-tuned with. Each line of OUT is one draft
/// with its source and a verdict: `new`, or which sentence it repeats (its source, another gold
/// sentence, or an earlier draft). Use `melm filter` to judge the new drafts.
#[derive(Debug, Group)]
#[command(after_help = "Examples:\n  melm generate lm train.conll -o drafts.jsonl --rounds 5\n  \
    melm generate lm train.conll -o drafts.jsonl --rounds 5 --shard 1/4")]
pub(crate) struct Generate {
    /// Model folder, written by `melm finetune`
    pub(crate) model: PathBuf,
    /// File with the sentences to make drafts from; for several languages, LANG=FILE for each
    #[arg(value_name = "TRAIN", required = true)]
    pub(crate) files: Vec<InputFile>,
    #[command(flatten)]
    pub(crate) output: OutputOptions,
    /// Number of rounds: each round makes one draft of every sentence, or two with melm-both
    #[arg(long, value_name = "R")]
    pub(crate) rounds: Option<NonZeroU32>,
    #[command(flatten)]
    pub(crate) shard: ShardOption,
    #[command(flatten)]
    pub(crate) overrides: PlanOverrides,
    #[command(flatten)]
    pub(crate) device_options: DeviceOptions,
    #[command(flatten)]
    pub(crate) input: InputOptions,
}

/// Judge drafts with a trained tagger (last stage of `augment`), or apply your own decisions
///
/// Writes every draft with a new verdict, the probability that the tagger gives to the tags of the
/// draft, and the tags on which the tagger disagrees. Drafts that repeat a sentence are not judged;
/// their verdict does not change. With --decisions, the drafts and sentences that you accepted or
/// rejected on the page of `melm report` get your verdict, after the tagger's if there is one.
#[derive(Debug, Group)]
#[command(
    after_help = "Examples:\n  melm filter drafts.jsonl train.conll --tagger tagger -o judged.jsonl\n  \
    melm filter drafts.jsonl train.conll --tagger tagger --mode probability --threshold 0.8 \
    -o judged.jsonl --augmented more.conll\n  \
    melm filter more/drafts.jsonl train.conll --decisions decisions.jsonl -o decided.jsonl \
    --augmented decided.conll"
)]
pub(crate) struct Filter {
    /// Drafts, written by `melm generate` or `melm augment`; `-` for standard input
    pub(crate) drafts: PathBuf,
    /// File that the drafts were made from; for several languages, LANG=FILE for each
    #[arg(value_name = "TRAIN", required = true)]
    pub(crate) files: Vec<InputFile>,
    /// Folder of the tagger, trained on TRAIN by `melm train`
    #[arg(long, value_name = "DIR", required_unless_present = "decisions")]
    pub(crate) tagger: Option<PathBuf>,
    /// File of decisions, saved by the page of `melm report`; their ids must be those of the drafts
    #[arg(long, value_name = "FILE")]
    pub(crate) decisions: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) output: OutputOptions,
    /// When to keep a draft: agreement (the tagger predicts exactly the tags of the draft) or
    /// probability (the probability of the tags reaches --threshold)
    #[arg(long, value_parser = parse_mode, default_value = "agreement")]
    pub(crate) mode: FilterMode,
    /// Smallest joint probability of the tags of a draft to keep it, for `--mode probability`
    /// [default: 0.5]
    #[arg(long, value_name = "P", value_parser = parse_rate)]
    pub(crate) threshold: Option<Rate>,
    /// Also write TRAIN and the kept drafts to this file, in the format of TRAIN
    #[arg(long, value_name = "FILE")]
    pub(crate) augmented: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) device_options: DeviceOptions,
    #[command(flatten)]
    pub(crate) input: InputOptions,
}

fn parse_mode(name: &str) -> Result<FilterMode, String> {
    match name {
        "agreement" => Ok(FilterMode::Agreement),
        "probability" => Ok(FilterMode::Probability),
        _ => Err("expected agreement or probability".into()),
    }
}

fn parse_rate(text: &str) -> Result<Rate, String> {
    let number = text.parse::<f64>().map_err(|_| "expected a number from 0 to 1")?;
    Rate::try_from(number).map_err(|error| error.to_string())
}
