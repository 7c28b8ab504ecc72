//! The commands that compare methods.

use std::num::NonZeroUsize;
use std::path::PathBuf;

use clap::Args as Group;
use melm::experiment::table::Table;
use melm::experiment::{Only, Shard};
use melm::plan::Preset;

use super::plan::{Machine, preset};
use super::{Reading, VectorInput};

/// Run the paper's comparison on your data and backbone, and print its table with intervals
///
/// TABLE is mono (a tagger for each language), cross (the same taggers on other languages) or
/// multi (one tagger for all languages). Each cell of the grid is one tagger; DIR/ledger.jsonl
/// keeps every one with its scores and provenance, and the same command goes on where it stopped.
/// Scores are of the dev sets; test sets are opened with --test only, when all choices are made.
#[derive(Debug, Group)]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of its own")]
#[command(after_help = "Examples:\n  melm reproduce mono --smoke -o smoke\n  \
    melm reproduce mono --data conll -o mono --only size=100,200 --jobs 4\n  \
    melm reproduce mono --data conll -o mono --test\n  \
    melm reproduce cross --data conll -o mono --test")]
pub(crate) struct Reproduce {
    /// Table to make: mono, cross or multi
    #[arg(value_parser = table)]
    pub(crate) table: Table,
    /// Grid: languages, sizes, draws, seeds, methods, budgets, settings [default: the paper's]
    #[arg(long, value_name = "FILE", conflicts_with = "smoke")]
    pub(crate) config: Option<PathBuf>,
    /// Folder of the data, as LANG/train.conll, LANG/dev.conll and LANG/test.conll
    #[arg(long, value_name = "DIR")]
    pub(crate) data: Option<PathBuf>,
    /// Folder to write
    #[arg(short, long, value_name = "DIR")]
    pub(crate) out: PathBuf,
    /// A small grid on the shipped example, in minutes on two cores
    #[arg(long)]
    pub(crate) smoke: bool,
    /// Score the test sets too: once, when all choices are made
    #[arg(long)]
    pub(crate) test: bool,
    /// Only some cells, as in `--only method=gold,melm`; by language, size, draw, seed, method,
    /// budget or variant; may be repeated
    #[arg(long, value_name = "NAME=VALUES")]
    pub(crate) only: Vec<Only>,
    /// Seeds instead of the grid's, as in `--seed 1,2,3`
    #[arg(long, value_name = "SEEDS", value_delimiter = ',')]
    pub(crate) seed: Vec<u64>,
    /// Run one part of the grid, as in `--shard 1/4`; parts may share DIR
    #[arg(long, value_name = "I/N")]
    pub(crate) shard: Option<Shard>,
    /// Keep every tagger, in DIR/taggers
    #[arg(long)]
    pub(crate) keep_taggers: bool,
    /// Run nothing and read no data: make the table of the ledger as it is
    #[arg(long, conflicts_with_all = ["test", "shard", "keep_taggers", "dry_run"])]
    pub(crate) table_only: bool,
    /// Say which cells would be run, and run none
    #[arg(long)]
    pub(crate) dry_run: bool,
    #[command(flatten)]
    pub(crate) comparing: Comparing,
    #[command(flatten)]
    pub(crate) reading: Reading,
}

/// Settings and machine of a comparison.
#[derive(Debug, Group)]
#[command(next_help_heading = "Settings")]
pub(crate) struct Comparing {
    /// Pretrained model: a folder, a name on the Hugging Face hub, or mini, which is built in
    #[arg(long, value_name = "DIR|NAME")]
    pub(crate) model: Option<String>,
    /// Pretrained model of the tagger [default: the same]
    #[arg(long, value_name = "DIR|NAME")]
    pub(crate) tagger_model: Option<String>,
    /// Aligned word vectors of a language, or `pieces` for those of the model; for codemix-ess and
    /// melm-codemix, repeated
    #[arg(long, value_name = "LANG=FILE")]
    pub(crate) vectors: Vec<VectorInput>,
    /// Where settings start from: best, paper or reference-code
    #[arg(long, value_parser = preset, default_value = "best")]
    pub(crate) preset: Preset,
    /// Set one key of the plan, as in `--set generate.rounds=5`; may be repeated
    #[arg(long, value_name = "KEY=VALUE")]
    pub(crate) set: Vec<String>,
    /// Taggers trained at a time, each with its share of the threads
    #[arg(long, value_name = "N", default_value = "1")]
    pub(crate) jobs: NonZeroUsize,
    #[command(flatten)]
    pub(crate) machine: Machine,
}

fn table(name: &str) -> Result<Table, String> {
    let found = Table::NAMES.into_iter().find(|(known, _)| *known == name);
    found.map(|(_, table)| table).ok_or("expected mono, cross or multi".into())
}
