//! The commands around taggers, and what training a model asks for.

use std::path::PathBuf;

use clap::Args as Group;

use super::plan::{Machine, Planning};
use super::{Input, Output, Reading};

/// Train a tagger: a pretrained model that learns the tags of a file
///
/// MODEL is a Hugging Face folder that `melm tag` and Python's
/// `AutoModelForTokenClassification` open, with plan.toml, metrics.jsonl and run.json beside.
/// Interrupted or killed, the same command goes on where it stopped and ends with the same bytes.
#[derive(Debug, Group)]
#[command(after_help = "Examples:\n  melm train train.conll --dev dev.conll -o tagger\n  \
    melm train train.conll --dev dev.conll -o tagger --model xlm-roberta-base \
    --set tagger.head=linear")]
pub(crate) struct Train {
    #[command(flatten)]
    pub(crate) learning: Learning,
}

/// What every command has that trains a model.
#[derive(Debug, Group)]
pub(crate) struct Learning {
    /// File to learn from; or files of several languages, each as LANG=FILE
    #[arg(value_name = "TRAIN", required = true)]
    pub(crate) files: Vec<Input>,
    /// File that chooses the best epoch [default: the last epoch is kept]; repeated, as LANG=FILE
    #[arg(long)]
    pub(crate) dev: Vec<Input>,
    /// Folder to write
    #[arg(short, long, value_name = "MODEL")]
    pub(crate) out: PathBuf,
    /// Passes over the file
    #[arg(long, value_name = "N", conflicts_with = "updates")]
    pub(crate) epochs: Option<std::num::NonZeroU64>,
    /// Updates of the model, however many passes that is
    #[arg(long, value_name = "N")]
    pub(crate) updates: Option<std::num::NonZeroU64>,
    /// Begin anew over whatever MODEL holds
    #[arg(long)]
    pub(crate) force: bool,
    /// Write what was done to standard output as JSON
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) planning: Planning,
    #[command(flatten)]
    pub(crate) reading: Reading,
}

/// Tag a file with a trained tagger
///
/// Everything in the file stays as it is (line ends become LF); its tags are replaced, or added as a last column (or as
/// the key `ner_tags`) where it has none.
#[derive(Debug, Group)]
#[command(after_help = "Examples:\n  melm tag tagger test.conll -o predicted.conll\n  \
    melm tag tagger --probabilities untagged.jsonl -o tagged.jsonl")]
pub(crate) struct Tag {
    /// Folder of the tagger
    pub(crate) model: PathBuf,
    /// File to tag; `-` for standard input
    #[arg(value_name = "IN")]
    pub(crate) file: PathBuf,
    #[command(flatten)]
    pub(crate) output: Output,
    /// Also write how likely each tag is: a last column, or the key `ner_probabilities`
    #[arg(long)]
    pub(crate) probabilities: bool,
    #[command(flatten)]
    pub(crate) machine: Machine,
    #[command(flatten)]
    pub(crate) reading: Reading,
}

/// Look at settings
#[derive(Debug, clap::Subcommand)]
pub(crate) enum Config {
    /// Write the whole plan that the options give, as TOML
    #[command(after_help = "Examples:\n  melm config show\n  \
        melm config show --preset paper > plan.toml")]
    Show(Planning),
}
