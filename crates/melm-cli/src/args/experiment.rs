//! The commands that compare methods.

use std::num::{NonZeroU16, NonZeroU64, NonZeroUsize};
use std::path::PathBuf;

use clap::Args as Group;
use melm::plan::Preset;
use melm_eval::table::Table;
use melm_eval::{CellFilter, Shard, System};

use super::plan::{Machine, preset};
use super::{Reading, VectorInput};

/// Run the paper's comparison on your data and backbone, and print its table with intervals
///
/// TABLE is mono (a tagger for each language), cross (the same taggers on other languages) or
/// multi (one tagger for all languages); add-entity is the paper's Figure 1, masking Table 4, rounds
/// Table 5, costs Tables 6 to 8, predictions Table 3, entities Figure 4. Each cell of the grid is one
/// tagger. DIR/ledger.jsonl keeps the scores and provenance of every cell, so the same command continues
/// where it stopped. Scores are of the dev sets. Test sets are opened only with --test: use it when all
/// choices are made.
#[derive(Debug, Group)]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of its own")]
#[command(after_help = "Examples:\n  melm reproduce mono --smoke -o smoke\n  \
    melm reproduce mono --data conll -o mono --only size=100,200 --jobs 4\n  \
    melm reproduce mono --data conll -o mono --test\n  \
    melm reproduce cross --data conll -o mono --test")]
pub(crate) struct Reproduce {
    /// Table to make: mono, cross, multi, add-entity, masking, rounds, costs, predictions or entities
    #[arg(value_name = "TABLE", value_parser = subject)]
    pub(crate) subject: Subject,
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
    /// Run only some cells, as in `--only method=gold,melm`: by language, size, draw, seed, method,
    /// budget or variant; may be repeated
    #[arg(long, value_name = "NAME=VALUES")]
    pub(crate) only: Vec<CellFilter>,
    /// Seeds instead of the grid's, as in `--seed 1,2,3`
    #[arg(long, value_name = "SEEDS", value_delimiter = ',')]
    pub(crate) seed: Vec<u64>,
    /// Run one part of the grid, as in `--shard 1/4`; the parts may share DIR
    #[arg(long, value_name = "I/N")]
    pub(crate) shard: Option<Shard>,
    /// Keep every tagger, in DIR/taggers
    #[arg(long)]
    pub(crate) keep_taggers: bool,
    /// Run nothing and read no data: make the table from the ledger as it is (with --test, print its test scores)
    #[arg(long, conflicts_with_all = ["shard", "keep_taggers", "dry_run", "seed"])]
    pub(crate) table_only: bool,
    /// List the cells that would be run, and run none
    #[arg(long)]
    pub(crate) dry_run: bool,
    #[command(flatten)]
    pub(crate) comparing: Comparing,
    #[command(flatten)]
    pub(crate) reading: Reading,
}

/// Find out whether augmentation helps on your own data, before you use it
///
/// Cuts TRAIN into folds. Each fold is scored by taggers trained on the others: on gold alone, and on
/// gold augmented by each method, with the same number of updates. Prints whether to use the method.
#[derive(Debug, Group)]
#[command(after_help = "Examples:\n  melm trial train.conll\n  \
    melm trial train.conll --dev dev.conll --folds 10 --seeds 3 --updates 500 -o trial")]
pub(crate) struct Try {
    /// File with your gold
    #[arg(value_name = "TRAIN")]
    pub(crate) file: PathBuf,
    /// File that chooses the best epochs, cut to as many sentences as TRAIN has [default: keep the
    /// last epoch]
    #[arg(long)]
    pub(crate) dev: Option<PathBuf>,
    /// Folder that keeps finished cells, so that the same command continues where it stopped
    #[arg(short, long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
    /// Number of folds
    #[arg(long, value_name = "K", default_value_t = 5, value_parser = clap::value_parser!(u16).range(2..))]
    pub(crate) folds: u16,
    /// Number of seeds: each tagger is trained once with each
    #[arg(long, value_name = "N", default_value = "2")]
    pub(crate) seeds: NonZeroU16,
    /// Number of updates of every tagger
    #[arg(long, value_name = "N", default_value = "300")]
    pub(crate) updates: NonZeroU64,
    /// Methods to compare with gold; the verdict is about the last
    #[arg(
        long,
        value_name = "NAMES",
        value_delimiter = ',',
        default_value = "label-wise,melm,melm-both"
    )]
    pub(crate) methods: Vec<System>,
    /// Write the result to standard output as JSON
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) comparing: Comparing,
    #[command(flatten)]
    pub(crate) reading: Reading,
}

/// The settings and the machine of a comparison.
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
    /// Preset that settings start from: best, paper or reference-code
    #[arg(long, value_parser = preset, default_value = "best")]
    pub(crate) preset: Preset,
    /// Set one key of the plan, as in `--set generate.rounds=5`; may be repeated
    #[arg(long, value_name = "KEY=VALUE")]
    pub(crate) set: Vec<String>,
    /// Number of taggers trained at a time, each with its share of the threads
    #[arg(long, value_name = "N", default_value = "1")]
    pub(crate) jobs: NonZeroUsize,
    #[command(flatten)]
    pub(crate) machine: Machine,
}

/// The thing to make.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Subject {
    /// A table of the scores of taggers.
    Table(Table),
    /// The words that models predict for entities.
    Predictions,
    /// The number of different entities that methods add.
    Entities,
}

fn subject(name: &str) -> Result<Subject, String> {
    let tables = Table::NAMES.map(|(name, table)| (name, Subject::Table(table)));
    let others = [("predictions", Subject::Predictions), ("entities", Subject::Entities)];
    let all = || tables.into_iter().chain(others);
    let names = || all().map(|(name, _)| name).collect::<Vec<_>>().join(", ");
    let found = all().find(|(known, _)| *known == name);
    found.map(|(_, subject)| subject).ok_or_else(|| format!("expected one of {}", names()))
}
