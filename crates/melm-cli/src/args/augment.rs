//! The options of `melm augment`.

use std::num::NonZeroU32;
use std::path::PathBuf;

use clap::Args as Group;
use melm::methods::Method;

use super::plan::PlanOptions;
use super::{InputFile, InputOptions, VectorInput};

/// Make more labelled sentences: put new entities into your own sentences and keep the tags
///
/// Fine-tunes a masked language model on TRAIN to predict entity tokens from their tags and
/// context, replaces entities by predictions of the model, and keeps the drafts whose tags are
/// confirmed by a tagger trained on TRAIN. Writes to DIR: train.augmented (TRAIN unchanged, then
/// the kept drafts), drafts.jsonl (every draft with its source and verdict), metrics.jsonl,
/// plan.toml (the settings, to repeat the run exactly) and run.json.
///
/// If the command is interrupted or killed, run it again to resume; the result has the same bytes.
/// Run it with more rounds to add drafts to the existing ones. For several languages, pass
/// LANG=FILE for each; DIR then contains train.augmented.LANG for each language.
#[derive(Debug, Group)]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of its own")]
#[command(after_help = "Examples:\n  melm augment train.conll --dev dev.conll -o more\n  \
    melm augment train.conll -o more --method label-wise --rounds 5\n  \
    melm augment train.conll -o more --model xlm-roberta-base --preset paper --dry-run\n  \
    melm augment en=en.conll de=de.conll -o more --method melm-codemix --vectors pieces")]
pub(crate) struct Augment {
    /// File to augment; for several languages, LANG=FILE for each
    #[arg(value_name = "TRAIN", required = true)]
    pub(crate) files: Vec<InputFile>,
    /// Dev set, which selects the best epoch [default: none, use the last epoch]; for several
    /// languages, repeat --dev LANG=FILE
    #[arg(long)]
    pub(crate) dev: Vec<InputFile>,
    /// Unlabelled text: sentences that a panel of taggers labels, to add those it agrees on; may be
    /// repeated. If TRAIN has languages, write LANG=FILE; the language may be
    /// one that TRAIN does not have
    #[arg(long, value_name = "[LANG=]FILE")]
    pub(crate) unlabelled: Vec<InputFile>,
    /// Aligned word vectors of a language, for the methods codemix-ess and melm-codemix; repeat for
    /// each language, or pass `pieces` to use the embeddings of the model
    #[arg(long, value_name = "LANG=FILE")]
    pub(crate) vectors: Vec<VectorInput>,
    /// Output folder
    #[arg(short, long, value_name = "DIR")]
    pub(crate) out: PathBuf,
    /// Method: melm-both, melm, melm-plain, mlm-entity, mulda, daga, label-wise, lwtr or gold; for
    /// several languages also codemix-random, codemix-ess or melm-codemix [default: melm-both]
    #[arg(long, value_parser = parse_method)]
    pub(crate) method: Option<Method>,
    /// Number of rounds: each round makes one draft of every sentence, or two with melm-both
    #[arg(long, value_name = "R")]
    pub(crate) rounds: Option<NonZeroU32>,
    /// Also write the fine-tuned model to DIR/model
    #[arg(long)]
    pub(crate) keep_model: bool,
    /// Print what would be done, with an estimate of time and memory, and stop
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Start from the beginning and overwrite the contents of DIR
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

fn parse_method(name: &str) -> Result<Method, String> {
    let names = || Method::ALL.map(Method::name).join(", ");
    Method::from_name(name).ok_or_else(|| format!("expected one of {}", names()))
}
