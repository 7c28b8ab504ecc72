//! The options of `melm pick`.

use std::path::PathBuf;

use clap::Args as Group;
use melm_text::{Format, TextFormat};

use super::augment::TextInput;
use super::plan::PlanOptions;
use super::{InputFile, InputOptions, OutputOptions};

/// Pick the sentences of a text that you should label next
///
/// Trains a panel of taggers on TRAIN, lets them tag TEXT, and picks sentences that they disagree on
/// and that are not similar to each other. Writes them to OUT with the tags that most taggers
/// predict, for you to correct: in the format of TRAIN, or for an annotation tool. Scores and votes
/// are written to OUT.pick.jsonl. Sentences of TRAIN, of the dev set and of held-out files are not
/// picked.
///
/// If the command is interrupted or killed, run it again to resume; the result has the same bytes.
#[derive(Debug, Group)]
#[command(after_help = "Examples:\n  \
    melm pick text.txt --train train.conll --dev dev.conll -n 50 -o next.conll\n  \
    melm pick text.txt --train train.conll --to label-studio -o tasks.json\n  \
    melm pick text.txt --train train.conll --preset quick --held-out test.conll -o next.jsonl")]
pub(crate) struct Pick {
    /// File of sentences to pick from: plain text, CoNLL with or without tags, or JSON lines, also in
    /// gzip; `-` for standard input. If TRAIN has languages, write LANG=FILE
    #[arg(value_name = "TEXT", required = true)]
    pub(crate) files: Vec<InputFile>,
    /// Labelled sentences; for several languages, repeat --train LANG=FILE
    #[arg(long, value_name = "TRAIN", required = true)]
    pub(crate) train: Vec<InputFile>,
    /// Dev set, which selects the best epoch [default: none, use the last epoch]; for several
    /// languages, repeat --dev LANG=FILE
    #[arg(long)]
    pub(crate) dev: Vec<InputFile>,
    /// Number of sentences to pick
    #[arg(long, short = 'n', value_name = "N", default_value_t = 50,
          value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) size: u32,
    #[command(flatten)]
    pub(crate) output: OutputOptions,
    /// Output format, one of those of `--format` [default: the extension of OUT, or else the format
    /// of TRAIN]
    #[arg(long, value_name = "FORMAT")]
    pub(crate) to: Option<Format>,
    /// File whose sentences are not picked, such as a test set; may be repeated
    #[arg(long, value_name = "FILE")]
    pub(crate) held_out: Vec<PathBuf>,
    /// Format of TEXT: text, conll or jsonl [default: detected]
    #[arg(long, value_name = "FORMAT")]
    pub(crate) text_format: Option<TextFormat>,
    /// TEXT in CoNLL: number of the token column, counted from 1 [default: detected]
    #[arg(long, value_name = "N")]
    pub(crate) text_column: Option<usize>,
    /// TEXT in JSON lines: key of the text [default: text]
    #[arg(long, value_name = "KEY")]
    pub(crate) text_key: Option<String>,
    /// Print what would be done, with an estimate of time and memory, and stop
    #[arg(long)]
    pub(crate) dry_run: bool,
    #[command(flatten)]
    pub(crate) plan_options: PlanOptions,
    #[command(flatten)]
    pub(crate) input: InputOptions,
}

impl Pick {
    /// The options for the text, as `melm augment` has them.
    pub(crate) fn text(&self) -> TextInput {
        TextInput {
            unlabelled: self.files.clone(),
            held_out: self.held_out.clone(),
            text_format: self.text_format,
            text_column: self.text_column,
            text_key: self.text_key.clone(),
        }
    }
}
