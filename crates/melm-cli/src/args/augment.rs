//! The commands of the method.

use std::num::NonZeroU32;
use std::path::PathBuf;

use clap::Args as Group;
use melm::methods::Method;

use super::plan::Planning;
use super::{Input, Reading, VectorInput};

/// Write more labelled sentences: new entities in your own sentences, labels that cannot shift
///
/// Fine-tunes a masked language model on TRAIN to guess entity tokens from their labels and
/// context, lets it replace entities, and keeps what a tagger trained on TRAIN agrees with. DIR
/// then holds train.augmented (TRAIN, untouched, and the kept drafts), drafts.jsonl (every draft
/// with its provenance and verdict), metrics.jsonl, plan.toml, which reruns it exactly, and
/// run.json. Interrupted or killed, the same command goes on where it stopped and ends with the
/// same bytes; more rounds later redo nothing. Files of several languages are named LANG=FILE, and
/// each gets its own train.augmented.LANG.
#[derive(Debug, Group)]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of its own")]
#[command(after_help = "Examples:\n  melm augment train.conll --dev dev.conll -o more\n  \
    melm augment train.conll -o more --method label-wise --rounds 5\n  \
    melm augment train.conll -o more --model xlm-roberta-base --preset paper --dry-run\n  \
    melm augment en=en.conll de=de.conll -o more --method melm-codemix --vectors pieces")]
pub(crate) struct Augment {
    /// File to augment; or files of several languages, each as LANG=FILE
    #[arg(value_name = "TRAIN", required = true)]
    pub(crate) files: Vec<Input>,
    /// File that chooses the best epochs [default: the last epoch is kept]; repeated, as LANG=FILE
    #[arg(long)]
    pub(crate) dev: Vec<Input>,
    /// Aligned word vectors of a language, or `pieces` for those of the model; for codemix-ess and
    /// melm-codemix, repeated
    #[arg(long, value_name = "LANG=FILE")]
    pub(crate) vectors: Vec<VectorInput>,
    /// Folder to write
    #[arg(short, long, value_name = "DIR")]
    pub(crate) out: PathBuf,
    /// How drafts are made: melm-both, melm, melm-plain, mlm-entity, mulda, daga, label-wise, lwtr or
    /// gold; of several languages also codemix-random, codemix-ess or melm-codemix [default: melm-both]
    #[arg(long, value_parser = method)]
    pub(crate) method: Option<Method>,
    /// How many drafts each sentence gets; with melm-both twice as many
    #[arg(long, value_name = "R")]
    pub(crate) rounds: Option<NonZeroU32>,
    /// Also write the fine-tuned model, to DIR/model
    #[arg(long)]
    pub(crate) keep_model: bool,
    /// Say what would be done, with an estimate of time and memory, and do nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Begin anew over whatever DIR holds
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

fn method(name: &str) -> Result<Method, String> {
    let names = || Method::ALL.map(Method::name).join(", ");
    Method::from_name(name).ok_or_else(|| format!("expected one of {}", names()))
}
