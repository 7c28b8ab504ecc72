//! The commands and options of `melm`. Clap prints the doc comments as help texts.

mod augment;
mod experiment;
mod languages;
mod pick;
mod plan;
mod report;
mod shards;
mod stages;
mod tagger;

pub(crate) use augment::{Augment, TextInput};
pub(crate) use experiment::{ComparisonOptions, Reproduce, ReproduceTarget, Trial};
pub(crate) use languages::{Codemix, InputFile, NamesInput, SilverInput, VectorInput};
pub(crate) use pick::Pick;
pub(crate) use plan::{DeviceOption, DeviceOptions, PlanOptions, PlanOverrides, PrecisionOption};
pub(crate) use report::Report;
pub(crate) use shards::{Merge, ShardOption};
pub(crate) use stages::{Filter, Finetune, Generate};
pub(crate) use tagger::{Config, ShowConfig, Tag, Train, TrainingOptions};

use std::path::PathBuf;

use clap::builder::{PathBufValueParser, TypedValueParser};
use clap::{Args as Group, Parser, Subcommand};
use clap_complete::Shell;
use melm_text::conll::Separator;
use melm_text::{AnnotationChoice, Encoding, Format, OffsetUnit, OverlapRule, Scheme};

use crate::terminal::Verbosity;

/// Data augmentation for named-entity recognition: makes more labelled sentences from the ones you have
///
/// Input files are CoNLL (a token and its tag on each line, an empty line after each sentence), JSON
/// lines as Hugging Face datasets write them (`tokens`, `ner_tags`), or texts with spans from Label
/// Studio, Doccano, Prodigy, GLiNER, BRAT or spaCy. The format, the columns and the tag scheme are
/// detected. The file name `-` means standard input or output.
#[derive(Debug, Parser)]
#[command(name = "melm", version, max_term_width = 100, arg_required_else_help = true)]
#[command(after_help = "Exit codes: 0 success, 1 failure (data, file or device), 2 wrong usage, \
                        130 interrupted")]
pub(crate) struct Args {
    #[command(subcommand)]
    pub(crate) command: Command,
    /// Print only errors
    #[arg(short, long, global = true, conflicts_with = "verbose")]
    pub(crate) quiet: bool,
    /// Print more: every training epoch, and up to 200 problems of a file instead of 5
    #[arg(short, long, global = true)]
    pub(crate) verbose: bool,
}

impl Args {
    pub(crate) fn verbosity(&self) -> Verbosity {
        match (self.quiet, self.verbose) {
            (true, _) => Verbosity::Quiet,
            (false, true) => Verbosity::Verbose,
            (false, false) => Verbosity::Normal,
        }
    }
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Check(Check),
    Convert(Convert),
    Sample(Sample),
    Score(Score),
    Augment(Augment),
    Pick(Pick),
    Codemix(Codemix),
    Finetune(Finetune),
    Generate(Generate),
    Filter(Filter),
    Train(Train),
    Tag(Tag),
    Merge(Merge),
    Trial(Trial),
    Reproduce(Reproduce),
    Report(Report),
    #[command(subcommand)]
    Config(Config),
    /// Print a completion script for a shell
    #[command(
        after_help = "Example:\n  melm completions bash > ~/.local/share/bash-completion/completions/melm"
    )]
    Completions {
        /// Shell to complete for
        shell: Shell,
    },
}

/// Count sentences, tokens and mentions, and report errors and suspicious places with their lines
///
/// If several files are given, a sentence that also occurs in an earlier file is reported as a
/// leak. Errors (unreadable rows, tags that break the scheme) cause exit code 1. Leaks and
/// suspicious places do not.
#[derive(Debug, Group)]
#[command(
    after_help = "Examples:\n  melm check train.conll dev.conll test.conll\n  melm check --json data.jsonl"
)]
pub(crate) struct Check {
    /// Files to check, in the order train, dev, test; `-` for standard input
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    /// Print the report as JSON
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) input: InputOptions,
}

/// Convert a file to another format or tag scheme
///
/// Other columns, JSON keys, comments and the spacing of texts are preserved if the output format
/// has a place for them. If some are left out, their number is reported. If the input has an error,
/// no output is written.
#[derive(Debug, Group)]
#[command(after_help = "Examples:\n  melm convert train.conll -o train.jsonl\n  \
    melm convert train.conll --to-scheme iobes -o train.iobes.conll\n  \
    melm convert --encoding latin1 esp.train --repair -o train.conll\n  \
    melm convert export.json --to doccano -o train.jsonl")]
pub(crate) struct Convert {
    /// File to read; `-` for standard input
    #[arg(value_name = "IN")]
    pub(crate) file: PathBuf,
    #[command(flatten)]
    pub(crate) output: OutputOptions,
    /// Output format, one of those of `--format` [default: the extension of OUT, or else the format
    /// of IN]
    #[arg(long, value_name = "FORMAT")]
    pub(crate) to: Option<Format>,
    /// Output tag scheme: io, iob1, iob2, iobes, bilou, ioe1 or ioe2 [default: the scheme of IN]
    #[arg(long, value_name = "SCHEME")]
    pub(crate) to_scheme: Option<Scheme>,
    /// Correct tags that the scheme does not allow, and report how many
    #[arg(long)]
    pub(crate) repair: bool,
    /// CoNLL: separator of the columns in the output, tab or space [default: the separator of IN]
    #[arg(long)]
    pub(crate) separator: Option<Separator>,
    /// JSON lines: write tags as integer ids, and the tag names to OUT.names
    #[arg(long)]
    pub(crate) tag_ids: bool,
    #[command(flatten)]
    pub(crate) input: InputOptions,
}

/// Draw a random sample of sentences; the same seed draws the same sentences
///
/// With the same seed, a smaller sample is part of a larger one: a sample of 100 sentences is part
/// of the sample of 200. The sentences are written in the order of the file. The numbers of the
/// drawn sentences in IN are written to OUT.ids.
#[derive(Debug, Group)]
#[command(
    after_help = "Example:\n  melm sample train.conll --size 100 --seed 1 -o train-100.conll"
)]
pub(crate) struct Sample {
    /// File to draw from; `-` for standard input
    #[arg(value_name = "IN")]
    pub(crate) file: PathBuf,
    /// Number of sentences to draw
    #[arg(long, short = 'n', value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) size: u32,
    /// Seed of the random draw
    #[arg(long, default_value_t = 1)]
    pub(crate) seed: u64,
    #[command(flatten)]
    pub(crate) output: OutputOptions,
    #[command(flatten)]
    pub(crate) input: InputOptions,
}

/// Score predicted tags: precision, recall and F1 of exact mentions
///
/// The scores equal those of conlleval and seqeval. With `--strict` they equal those of seqeval's
/// strict mode, which ignores malformed mentions. Both files must have the same sentences and
/// tokens in the same order.
#[derive(Debug, Group)]
#[command(after_help = "Examples:\n  melm score test.conll predicted.conll\n  \
    melm score --strict --scheme iobes --json test.conll predicted.conll")]
pub(crate) struct Score {
    /// File with the gold tags; `-` for standard input
    pub(crate) gold: PathBuf,
    /// File with the predicted tags; `-` for standard input
    #[arg(value_name = "PRED")]
    pub(crate) predicted: PathBuf,
    /// Count only mentions that are well-formed in the tag scheme
    #[arg(long)]
    pub(crate) strict: bool,
    /// Print the scores as JSON, as fractions from 0 to 1
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) input: InputOptions,
}

/// Options for the format of input files. Options that are not given are detected.
#[derive(Debug, Group)]
#[command(next_help_heading = "Input format")]
pub(crate) struct InputOptions {
    /// Format: conll, jsonl, label-studio, doccano, spacy, parquet, gliner, prodigy or brat
    /// [default: detected]
    #[arg(long, value_name = "FORMAT")]
    pub(crate) format: Option<Format>,
    /// Tag scheme: io, iob1, iob2, iobes, bilou, ioe1 or ioe2 [default: detected]
    #[arg(long)]
    pub(crate) scheme: Option<Scheme>,
    /// CoNLL: number of the token column, counted from 1 [default: detected]
    #[arg(long, value_name = "N")]
    pub(crate) token_column: Option<usize>,
    /// CoNLL: number of the tag column, counted from 1 [default: detected]
    #[arg(long, value_name = "N")]
    pub(crate) tag_column: Option<usize>,
    /// JSON lines: key of the tokens [default: detected]
    #[arg(long, value_name = "KEY")]
    pub(crate) tokens_key: Option<String>,
    /// JSON lines: key of the tags [default: detected]
    #[arg(long, value_name = "KEY")]
    pub(crate) tags_key: Option<String>,
    /// JSON lines: tag names of the ids, as a list `O,B-PER,…` or a file [default: a file next to
    /// the input]
    #[arg(long)]
    pub(crate) names: Option<String>,
    /// Formats with spans: unit of the offsets, code-points, utf16, graphemes or bytes [default: the
    /// usual one of the format]
    #[arg(long, value_name = "UNIT")]
    pub(crate) offsets: Option<OffsetUnit>,
    /// Formats with spans: what happens to overlapping spans, longest (keep the longest) or refuse
    #[arg(long, value_name = "RULE", default_value = "longest")]
    pub(crate) overlaps: OverlapRule,
    /// Label Studio: which annotation of a task is read, first, last or merge
    #[arg(long, value_name = "WHICH", default_value = "first")]
    pub(crate) annotations: AnnotationChoice,
    /// Character encoding: utf-8 or latin1
    #[arg(long, default_value = "utf-8")]
    pub(crate) encoding: Encoding,
}

/// Parses an output folder. Refuses `-`, which means standard output for other commands.
fn folder_parser() -> impl TypedValueParser<Value = PathBuf> {
    PathBufValueParser::new().try_map(|path| {
        if path.as_os_str() == "-" {
            return Err("expected a folder: several files cannot be written to standard output");
        }
        Ok(path)
    })
}

/// The output file.
#[derive(Debug, Group)]
pub(crate) struct OutputOptions {
    /// Output file; `-` for standard output
    #[arg(short, long, value_name = "OUT", default_value = "-")]
    pub(crate) out: PathBuf,
    /// Overwrite OUT if it exists
    #[arg(long)]
    pub(crate) force: bool,
}
