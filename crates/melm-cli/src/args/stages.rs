//! The stages of the method, one at a time: each reads what the one before it wrote.

use std::num::NonZeroU32;
use std::path::PathBuf;

use clap::Args as Group;
use melm::judge::FilterMode;
use melm::rate::Rate;

use super::plan::{Layers, Machine};
use super::tagger::Learning;
use super::{Input, Output, Reading};

/// Fine-tune a masked language model to guess entity tokens: the first stage of `augment`
///
/// MODEL is a Hugging Face folder that `melm generate` and Python's `AutoModelForMaskedLM` open,
/// with a marker for every tag, and plan.toml, metrics.jsonl and run.json beside. Interrupted or
/// killed, the same command goes on where it stopped and ends with the same bytes.
#[derive(Debug, Group)]
#[command(after_help = "Examples:\n  melm finetune train.conll --dev dev.conll -o lm\n  \
    melm finetune train.conll -o lm --set method=melm-plain")]
pub(crate) struct Finetune {
    #[command(flatten)]
    pub(crate) learning: Learning,
}

/// Make drafts with a fine-tuned model: the second stage of `augment`
///
/// Settings are those that MODEL was fine-tuned with unless given. Each line of OUT is a draft
/// with its provenance; its verdict is `new`, or what it repeats. `melm filter` judges them.
#[derive(Debug, Group)]
#[command(after_help = "Example:\n  melm generate lm train.conll -o drafts.jsonl --rounds 5")]
pub(crate) struct Generate {
    /// Folder that `melm finetune` wrote
    pub(crate) model: PathBuf,
    /// File to make drafts of; or files of several languages, each as LANG=FILE
    #[arg(value_name = "TRAIN", required = true)]
    pub(crate) files: Vec<Input>,
    #[command(flatten)]
    pub(crate) output: Output,
    /// How many drafts each sentence gets; with melm-both twice as many
    #[arg(long, value_name = "R")]
    pub(crate) rounds: Option<NonZeroU32>,
    #[command(flatten)]
    pub(crate) layers: Layers,
    #[command(flatten)]
    pub(crate) machine: Machine,
    #[command(flatten)]
    pub(crate) reading: Reading,
}

/// Judge drafts with a trained tagger: the last stage of `augment`
///
/// Every draft gets its verdict anew, with the tagger's probability of its tags and the tags it
/// would give instead; what repeats a sentence stays so.
#[derive(Debug, Group)]
#[command(
    after_help = "Examples:\n  melm filter drafts.jsonl train.conll --tagger tagger -o judged.jsonl\n  \
    melm filter drafts.jsonl train.conll --tagger tagger --mode probability --threshold 0.8 \
    -o judged.jsonl --augmented more.conll"
)]
pub(crate) struct Filter {
    /// File of drafts, from `generate` or `augment`; `-` for standard input
    pub(crate) drafts: PathBuf,
    /// File that the drafts were made of; or files of several languages, each as LANG=FILE
    #[arg(value_name = "TRAIN", required = true)]
    pub(crate) files: Vec<Input>,
    /// Folder of the tagger that judges, trained on TRAIN
    #[arg(long, value_name = "DIR")]
    pub(crate) tagger: PathBuf,
    #[command(flatten)]
    pub(crate) output: Output,
    /// What a draft must pass: agreement (the tagger's tags are its own) or probability
    #[arg(long, value_parser = mode, default_value = "agreement")]
    pub(crate) mode: FilterMode,
    /// The least probability of a draft's tags, all together, in the mode probability [default: 0.5]
    #[arg(long, value_name = "P", value_parser = rate)]
    pub(crate) threshold: Option<Rate>,
    /// Also write TRAIN, untouched, and the kept drafts, in the format of TRAIN
    #[arg(long, value_name = "FILE")]
    pub(crate) augmented: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) machine: Machine,
    #[command(flatten)]
    pub(crate) reading: Reading,
}

fn mode(name: &str) -> Result<FilterMode, String> {
    match name {
        "agreement" => Ok(FilterMode::Agreement),
        "probability" => Ok(FilterMode::Probability),
        _ => Err("expected agreement or probability".into()),
    }
}

fn rate(text: &str) -> Result<Rate, String> {
    let number = text.parse::<f64>().map_err(|_| "expected a number from 0 to 1")?;
    Rate::try_from(number).map_err(|error| error.to_string())
}
