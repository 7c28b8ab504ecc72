//! What can be typed. Nothing is done here.

mod augment;
mod experiment;
mod languages;
mod plan;
mod stages;
mod tagger;

pub(crate) use augment::Augment;
pub(crate) use experiment::{Comparing, Reproduce, Subject, Try};
pub(crate) use languages::{Codemix, Input, VectorInput};
pub(crate) use plan::{DeviceChoice, Layers, Machine, Planning};
pub(crate) use stages::{Filter, Finetune, Generate};
pub(crate) use tagger::{Config, Learning, Tag, Train};

use std::path::PathBuf;

use clap::{Args as Group, Parser, Subcommand};
use clap_complete::Shell;
use melm_text::conll::Separator;
use melm_text::{Encoding, Format, Scheme};

use crate::terminal::Loudness;

/// More labelled sentences for named-entity recognition, from the few you have.
///
/// Files are CoNLL (one token and its tag a line, an empty line after each sentence) or JSON
/// lines as Hugging Face datasets write them (`tokens`, `ner_tags`); which of the two, its columns
/// and its tag scheme are told from the file, and said. `-` is standard input or output.
#[derive(Debug, Parser)]
#[command(name = "melm", version, max_term_width = 100, arg_required_else_help = true)]
#[command(after_help = "Exit codes: 0 done, 1 could not be done (data, file, device), 2 usage, \
                        130 interrupted")]
pub(crate) struct Args {
    #[command(subcommand)]
    pub(crate) command: Command,
    /// Say only what is wrong
    #[arg(short, long, global = true, conflicts_with = "verbose")]
    pub(crate) quiet: bool,
    /// Say more: the first 200 problems of a file, not five
    #[arg(short, long, global = true)]
    pub(crate) verbose: bool,
}

impl Args {
    pub(crate) fn loudness(&self) -> Loudness {
        match (self.quiet, self.verbose) {
            (true, _) => Loudness::Quiet,
            (false, true) => Loudness::Verbose,
            (false, false) => Loudness::Usual,
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
    Codemix(Codemix),
    Finetune(Finetune),
    Generate(Generate),
    Filter(Filter),
    Train(Train),
    Tag(Tag),
    Trial(Try),
    Reproduce(Reproduce),
    #[command(subcommand)]
    Config(Config),
    /// Write the completions of a shell to standard output
    #[command(
        after_help = "Example:\n  melm completions bash > ~/.local/share/bash-completion/completions/melm"
    )]
    Completions {
        /// The shell
        shell: Shell,
    },
}

/// Count what is in files, and say everything that is wrong or suspicious, with its line
///
/// Given several splits, sentences of a later file that stand in an earlier one are reported as
/// leaks. Problems (what could not be read, tags that break the scheme) end with exit code 1;
/// suspicions do not.
#[derive(Debug, Group)]
#[command(
    after_help = "Examples:\n  melm check train.conll dev.conll test.conll\n  melm check --json data.jsonl"
)]
pub(crate) struct Check {
    /// Files to check, in the order train, dev, test; `-` for standard input
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    /// Write the report as JSON
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) reading: Reading,
}

/// Rewrite a file in another format or tag scheme, keeping all its other columns or keys
///
/// The whole file is checked before the first byte is written.
#[derive(Debug, Group)]
#[command(after_help = "Examples:\n  melm convert train.conll -o train.jsonl\n  \
    melm convert train.conll --to-scheme iobes -o train.iobes.conll\n  \
    melm convert --encoding latin1 esp.train --repair -o train.conll")]
pub(crate) struct Convert {
    /// File to read; `-` for standard input
    #[arg(value_name = "IN")]
    pub(crate) file: PathBuf,
    #[command(flatten)]
    pub(crate) output: Output,
    /// Format to write [default: by the name of the output, else as the input]
    #[arg(long, value_name = "FORMAT")]
    pub(crate) to: Option<Format>,
    /// Scheme to write: io, iob1, iob2, iobes, bilou, ioe1, ioe2 [default: as the input]
    #[arg(long, value_name = "SCHEME")]
    pub(crate) to_scheme: Option<Scheme>,
    /// Correct tags that the scheme does not allow; how many is said
    #[arg(long)]
    pub(crate) repair: bool,
    /// CoNLL: what to write between columns, tab or space [default: as the input]
    #[arg(long)]
    pub(crate) separator: Option<Separator>,
    /// JSON lines: write tags as ids, their names beside the output in OUT.names
    #[arg(long)]
    pub(crate) tag_ids: bool,
    #[command(flatten)]
    pub(crate) reading: Reading,
}

/// Draw sentences at random: the same seed draws the same ones, and draws are nested
///
/// The 100 sentences of a seed are among its 200. They are written in the order of the file, and
/// their numbers in it beside the output, in OUT.ids.
#[derive(Debug, Group)]
#[command(
    after_help = "Example:\n  melm sample train.conll --size 100 --seed 1 -o train-100.conll"
)]
pub(crate) struct Sample {
    /// File to draw from; `-` for standard input
    #[arg(value_name = "IN")]
    pub(crate) file: PathBuf,
    /// How many sentences to draw
    #[arg(long, short = 'n', value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) size: u32,
    /// Seed of the draw
    #[arg(long, default_value_t = 1)]
    pub(crate) seed: u64,
    #[command(flatten)]
    pub(crate) output: Output,
    #[command(flatten)]
    pub(crate) reading: Reading,
}

/// Score predicted tags: precision, recall and F1 over exact mentions
///
/// The default counts as conlleval and seqeval do; `--strict` as seqeval's strict mode, where a
/// malformed mention does not count. Sentences and tokens of both files must agree.
#[derive(Debug, Group)]
#[command(after_help = "Examples:\n  melm score test.conll predicted.conll\n  \
    melm score --strict --scheme iobes --json test.conll predicted.conll")]
pub(crate) struct Score {
    /// File with the right tags; `-` for standard input
    pub(crate) gold: PathBuf,
    /// File with the predicted tags; `-` for standard input
    #[arg(value_name = "PRED")]
    pub(crate) predicted: PathBuf,
    /// Count only mentions that are well formed in the scheme
    #[arg(long)]
    pub(crate) strict: bool,
    /// Write the scores as JSON, as fractions
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) reading: Reading,
}

/// How input is read; all of it is told from the file unless given.
#[derive(Debug, Group)]
#[command(next_help_heading = "Reading")]
pub(crate) struct Reading {
    /// Format of the input: conll or jsonl
    #[arg(long, value_name = "FORMAT")]
    pub(crate) format: Option<Format>,
    /// Scheme of the input: io, iob1, iob2, iobes, bilou, ioe1, ioe2
    #[arg(long)]
    pub(crate) scheme: Option<Scheme>,
    /// CoNLL: column of the token, from 1
    #[arg(long, value_name = "N")]
    pub(crate) token_column: Option<usize>,
    /// CoNLL: column of the tag, from 1
    #[arg(long, value_name = "N")]
    pub(crate) tag_column: Option<usize>,
    /// JSON lines: key of the tokens
    #[arg(long, value_name = "KEY")]
    pub(crate) tokens_key: Option<String>,
    /// JSON lines: key of the tags
    #[arg(long, value_name = "KEY")]
    pub(crate) tags_key: Option<String>,
    /// JSON lines: names behind tag ids, as `O,B-PER,…` or a file [default: found beside IN]
    #[arg(long)]
    pub(crate) names: Option<String>,
    /// Encoding of the input: utf-8 or latin1
    #[arg(long, default_value = "utf-8")]
    pub(crate) encoding: Encoding,
}

/// Where output goes.
#[derive(Debug, Group)]
pub(crate) struct Output {
    /// File to write; `-` for standard output
    #[arg(short, long, value_name = "OUT", default_value = "-")]
    pub(crate) out: PathBuf,
    /// Overwrite OUT if it exists
    #[arg(long)]
    pub(crate) force: bool,
}
