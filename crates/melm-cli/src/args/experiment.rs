//! The options of `melm trial` and `melm reproduce`.

use std::num::{NonZeroU16, NonZeroU64, NonZeroUsize};
use std::path::PathBuf;

use clap::Args as Group;
use melm::plan::Preset;
use melm::shard::Shard;
use melm_eval::table::Table;
use melm_eval::{CellFilter, System};

use super::plan::{DeviceOptions, parse_preset};
use super::{InputOptions, TextInput, VectorInput};

/// Repeat an experiment of the paper on your data and model, and print its table with confidence
/// intervals
///
/// TABLE is mono (one tagger for each language), cross (the same taggers on other languages),
/// multi (one tagger for all languages), add-entity (Figure 1 of the paper), masking (Table 4),
/// rounds (Table 5), costs (Tables 6 and 7), costs-multi (Table 8), predictions (Table 3) or entities
/// (Figure 4).
///
/// Each cell of the grid is one tagger. DIR/ledger.jsonl records the scores and settings of every
/// finished cell, so the same command resumes an interrupted experiment. The scores are those of
/// the dev sets. Test sets are read only with --test; use it after all choices are made.
#[derive(Debug, Group)]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of its own")]
#[command(after_help = "Examples:\n  melm reproduce mono --smoke -o smoke\n  \
    melm reproduce mono --data conll -o mono --only size=100,200 --jobs 4\n  \
    melm reproduce mono --data conll -o mono --test\n  \
    melm reproduce cross --data conll -o mono --test")]
pub(crate) struct Reproduce {
    /// Table to make: mono, cross, multi, add-entity, masking, rounds, costs, costs-multi, predictions
    /// or entities
    #[arg(value_name = "TABLE", value_parser = parse_target)]
    pub(crate) target: ReproduceTarget,
    /// Grid of the experiment, as TOML: languages, sizes, draws, seeds, methods, budgets and settings
    /// [default: the grid of the paper]
    #[arg(long, value_name = "FILE", conflicts_with = "smoke")]
    pub(crate) config: Option<PathBuf>,
    /// Folder with the data: LANG/train.conll, LANG/dev.conll and LANG/test.conll
    #[arg(long, value_name = "DIR")]
    pub(crate) data: Option<PathBuf>,
    /// Output folder
    #[arg(short, long, value_name = "DIR", value_parser = super::folder_parser())]
    pub(crate) out: PathBuf,
    /// Run a small grid on examples/politics, which takes minutes on two cores
    #[arg(long)]
    pub(crate) smoke: bool,
    /// Also score the test sets; use it once, after all choices are made
    #[arg(long)]
    pub(crate) test: bool,
    /// Run only cells with these values, as in `--only method=gold,melm`; NAME is language, size,
    /// draw, seed, method, budget or variant; may be repeated
    #[arg(long, value_name = "NAME=VALUES")]
    pub(crate) only: Vec<CellFilter>,
    /// Seeds to use instead of those in the grid, as in `--seed 1,2,3`
    #[arg(long, value_name = "SEEDS", value_delimiter = ',')]
    pub(crate) seed: Vec<u64>,
    /// Run one part of the grid, as in `--shard 1/4`; all parts may use the same DIR
    #[arg(long, value_name = "I/N")]
    pub(crate) shard: Option<Shard>,
    /// Save every tagger to DIR/taggers
    #[arg(long)]
    pub(crate) keep_taggers: bool,
    /// Make the table from the ledger without running cells or reading data; with --test, print test
    /// scores
    #[arg(long, conflicts_with_all = ["shard", "keep_taggers", "dry_run", "seed"])]
    pub(crate) table_only: bool,
    /// List the cells that would be run, and stop
    #[arg(long)]
    pub(crate) dry_run: bool,
    #[command(flatten)]
    pub(crate) comparison: ComparisonOptions,
    #[command(flatten)]
    pub(crate) input: InputOptions,
}

/// Measure by cross-validation whether augmentation helps on your data
///
/// Splits TRAIN into folds. Trains taggers on all folds but one, with gold only and with gold
/// augmented by each method, and scores them on the remaining fold. All taggers get the same number
/// of updates. Prints a table and a verdict on the last method. With --unlabelled, also compares gold
/// and the last method with the text added, and the verdict is about the last method with the text.
#[derive(Debug, Group)]
#[command(after_help = "Examples:\n  melm trial train.conll\n  \
    melm trial train.conll --dev dev.conll --folds 10 --seeds 3 --updates 500 -o trial")]
pub(crate) struct Trial {
    /// File with gold sentences
    #[arg(value_name = "TRAIN")]
    pub(crate) file: PathBuf,
    /// Dev set, which selects the best epoch; if it has more sentences than TRAIN, only as many as
    /// TRAIN has are used [default: none, use the last epoch]
    #[arg(long)]
    pub(crate) dev: Option<PathBuf>,
    /// Folder that stores the scores of finished taggers, so that the same command can resume
    #[arg(short, long, value_name = "DIR", value_parser = super::folder_parser())]
    pub(crate) out: Option<PathBuf>,
    /// Number of folds
    #[arg(long, value_name = "K", default_value_t = 5, value_parser = clap::value_parser!(u16).range(2..))]
    pub(crate) folds: u16,
    /// Number of seeds; each tagger is trained once with each seed [default: 2 on a GPU, 1 on a CPU]
    #[arg(long, value_name = "N")]
    pub(crate) seeds: Option<NonZeroU16>,
    /// Number of training updates of each tagger [default: 300 on a GPU, 100 on a CPU]
    #[arg(long, value_name = "N")]
    pub(crate) updates: Option<NonZeroU64>,
    /// Methods to compare with gold, separated by commas; the verdict is about the last one [default:
    /// label-wise,melm,melm-both on a GPU, label-wise,melm-both on a CPU]
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub(crate) methods: Vec<System>,
    /// Print the result as JSON
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) text: TextInput,
    #[command(flatten)]
    pub(crate) comparison: ComparisonOptions,
    #[command(flatten)]
    pub(crate) input: InputOptions,
}

/// The settings and the device of an experiment.
#[derive(Debug, Group)]
#[command(next_help_heading = "Settings")]
pub(crate) struct ComparisonOptions {
    /// Pretrained model: a folder, a name on the Hugging Face hub, or mini (embedded)
    #[arg(long, value_name = "DIR|NAME")]
    pub(crate) model: Option<String>,
    /// Pretrained model of the tagger [default: the same as --model]
    #[arg(long, value_name = "DIR|NAME")]
    pub(crate) tagger_model: Option<String>,
    /// Pretrained mBART or mBART-50 for the method mulda: a folder or a name on the Hugging Face hub
    /// [default: train a small model]
    #[arg(long, value_name = "DIR|NAME")]
    pub(crate) mulda_model: Option<String>,
    /// Aligned word vectors of a language, for the methods codemix-ess and melm-codemix of
    /// `melm reproduce multi`; repeat for each language, or pass `pieces` to use the embeddings of
    /// the model
    #[arg(long, value_name = "LANG=FILE")]
    pub(crate) vectors: Vec<VectorInput>,
    /// Preset of the settings: best, quick, paper or reference-code
    #[arg(long, value_parser = parse_preset, default_value = "best")]
    pub(crate) preset: Preset,
    /// Change one setting, as in `--set generate.rounds=5`; may be repeated
    #[arg(long, value_name = "KEY=VALUE")]
    pub(crate) set: Vec<String>,
    /// Number of taggers to train in parallel; they share the threads
    #[arg(long, value_name = "N", default_value = "1")]
    pub(crate) jobs: NonZeroUsize,
    #[command(flatten)]
    pub(crate) device_options: DeviceOptions,
}

/// A result that `melm reproduce` can make.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReproduceTarget {
    /// A table of the scores of taggers.
    Table(Table),
    /// A table of the words that models predict for entities.
    Predictions,
    /// A table of the number of different entities that methods add.
    Entities,
}

fn parse_target(name: &str) -> Result<ReproduceTarget, String> {
    let tables = Table::NAMES.map(|(name, table)| (name, ReproduceTarget::Table(table)));
    let others =
        [("predictions", ReproduceTarget::Predictions), ("entities", ReproduceTarget::Entities)];
    let all = || tables.into_iter().chain(others);
    let names = || all().map(|(name, _)| name).collect::<Vec<_>>().join(", ");
    let found = all().find(|(known, _)| *known == name);
    found.map(|(_, subject)| subject).ok_or_else(|| format!("expected one of {}", names()))
}
