//! The options of `melm train`, `tag` and `config`.

use std::path::PathBuf;

use clap::Args as Group;
use melm_text::Format;

use super::plan::{DeviceOptions, PlanOptions};
use super::{InputFile, InputOptions, OutputOptions, ShardOption};

/// Train a tagger: fine-tune a pretrained model on labelled sentences
///
/// Writes MODEL, a Hugging Face folder for `melm tag` and Python's `AutoModelForTokenClassification`.
/// The folder also contains plan.toml (the settings), metrics.jsonl and run.json. If the command is
/// interrupted or killed, run it again to resume; the result has the same bytes.
#[derive(Debug, Group)]
#[command(after_help = "Examples:\n  melm train train.conll --dev dev.conll -o tagger\n  \
    melm train train.conll --dev dev.conll -o tagger --model xlm-roberta-base \
    --set tagger.head=linear")]
pub(crate) struct Train {
    #[command(flatten)]
    pub(crate) training: TrainingOptions,
}

/// The options of commands that train a model.
#[derive(Debug, Group)]
pub(crate) struct TrainingOptions {
    /// Training file; for several languages, LANG=FILE for each
    #[arg(value_name = "TRAIN", required = true)]
    pub(crate) files: Vec<InputFile>,
    /// Dev set, which selects the best epoch [default: none, use the last epoch]; for several
    /// languages, repeat --dev LANG=FILE
    #[arg(long)]
    pub(crate) dev: Vec<InputFile>,
    /// Output folder
    #[arg(short, long, value_name = "MODEL", value_parser = super::folder_parser())]
    pub(crate) out: PathBuf,
    /// Number of epochs (passes over TRAIN) [default: the budget in the settings]
    #[arg(long, value_name = "N", conflicts_with = "updates")]
    pub(crate) epochs: Option<std::num::NonZeroU64>,
    /// Number of training updates, instead of --epochs
    #[arg(long, value_name = "N")]
    pub(crate) updates: Option<std::num::NonZeroU64>,
    /// Start from the beginning and overwrite the contents of MODEL
    #[arg(long)]
    pub(crate) force: bool,
    /// Print the record of the run (run.json) to standard output
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) plan_options: PlanOptions,
    #[command(flatten)]
    pub(crate) input: InputOptions,
}

/// Tag a file with a trained tagger
///
/// Replaces the tags of the file. If the file has no tags, adds a last column, or the key
/// `ner_tags` in JSON lines. Everything else stays as it is, except that line ends become LF.
///
/// Plain text, JSON lines with `text` and all formats with spans can be tagged too. The spans of the
/// output are places in the original text.
#[derive(Debug, Group)]
#[command(after_help = "Examples:\n  melm tag tagger test.conll -o predicted.conll\n  \
    melm tag tagger --probabilities untagged.jsonl -o tagged.jsonl\n  \
    melm tag tagger letters.txt --to label-studio -o tasks.json\n  \
    melm tag tagger letters.txt -o tagged.conll --shard 1/8")]
pub(crate) struct Tag {
    /// Folder of the tagger
    pub(crate) model: PathBuf,
    /// File to tag; `-` for standard input
    #[arg(value_name = "IN")]
    pub(crate) file: PathBuf,
    #[command(flatten)]
    pub(crate) output: OutputOptions,
    /// Output format: conll, jsonl, label-studio, doccano, spacy, parquet, gliner, prodigy or brat
    /// [default: the extension of OUT, or else the format of IN; conll for plain text]
    #[arg(long, value_name = "FORMAT")]
    pub(crate) to: Option<Format>,
    /// Read IN as plain text, with a sentence or paragraph on each line [default: detected]
    #[arg(long, conflicts_with = "format")]
    pub(crate) plain: bool,
    /// Also write the probability of each tag, as a last column or as the key `ner_probabilities`
    #[arg(long)]
    pub(crate) probabilities: bool,
    #[command(flatten)]
    pub(crate) shard: ShardOption,
    #[command(flatten)]
    pub(crate) device_options: DeviceOptions,
    #[command(flatten)]
    pub(crate) input: InputOptions,
}

/// Show settings
#[derive(Debug, clap::Subcommand)]
pub(crate) enum Config {
    /// Print all settings as TOML, with the given options applied
    #[command(after_help = "Examples:\n  melm config show\n  \
        melm config show --preset paper > plan.toml\n  \
        melm config show --explain tagger.head")]
    Show(ShowConfig),
}

/// The options of `melm config show`.
#[derive(Debug, Group)]
pub(crate) struct ShowConfig {
    /// Explain one setting, or all settings of a section: meaning, value, allowed values, defaults
    /// and their source
    #[arg(long, value_name = "KEY|SECTION")]
    pub(crate) explain: Option<String>,
    #[command(flatten)]
    pub(crate) plan_options: PlanOptions,
}
