//! `--shard`, and the options of `melm merge`.

use std::path::PathBuf;

use clap::Args as Group;
use melm::shard::Shard;

use super::OutputOptions;

/// The option for one part of the work.
#[derive(Debug, Group)]
pub(crate) struct ShardOption {
    /// Process only part I of N of the input, and write it to OUT.shard-I-of-N; `melm merge` joins
    /// all parts
    #[arg(long, value_name = "I/N")]
    pub(crate) shard: Option<Shard>,
}

/// Join the shards that `melm tag --shard` or `melm generate --shard` wrote
///
/// The output has the same bytes as that of the command without `--shard`. Fails if a shard is
/// missing, given twice or damaged, or if the shards differ in input, model, settings or version.
/// The shards may be given in any order.
#[derive(Debug, Group)]
#[command(after_help = "Examples:\n  melm merge tagged.conll.shard-*-of-8 -o tagged.conll\n  \
    melm merge drafts.jsonl.shard-* -o drafts.jsonl")]
pub(crate) struct Merge {
    /// Shards of one output; `-` for standard input
    #[arg(required = true, value_name = "SHARD")]
    pub(crate) files: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) output: OutputOptions,
    /// Print a summary as JSON; OUT must be a file
    #[arg(long)]
    pub(crate) json: bool,
}
