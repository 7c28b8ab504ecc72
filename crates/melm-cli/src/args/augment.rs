//! The options of `melm augment`.

use std::num::NonZeroU32;
use std::path::PathBuf;

use clap::Args as Group;
use melm::methods::Method;
use melm::shard::Shard;
use melm_text::TextFormat;

use super::plan::PlanOptions;
use super::{InputFile, InputOptions, NamesInput, SilverInput, VectorInput};

/// Make more labelled sentences: put new entities into your own sentences and keep the tags
///
/// Fine-tunes a masked language model on TRAIN to predict entity tokens from their tags and
/// context, replaces entities by predictions of the model, and keeps the drafts whose tags are
/// confirmed by a tagger trained on TRAIN. With --unlabelled, several taggers label the text too,
/// and the sentences that they agree on are kept. With --silver, they check the labels of others. Writes to DIR: train.augmented (TRAIN unchanged,
/// then the kept drafts, then the kept sentences of the text), drafts.jsonl (every draft and every
/// sentence of the text with its verdict), metrics.jsonl, plan.toml (the settings, to repeat the
/// run exactly) and run.json.
///
/// If the command is interrupted or killed, run it again to resume; the result has the same bytes.
/// Run it with more rounds to add drafts to the existing ones; unlabelled text is then labelled
/// again, by panels that learn from all kept drafts. For several languages, pass LANG=FILE for each; DIR then
/// contains train.augmented.LANG for each language.
#[derive(Debug, Group)]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of its own")]
#[command(after_help = "Examples:\n  melm augment train.conll --dev dev.conll -o more\n  \
    melm augment train.conll --dev dev.conll --unlabelled text.txt -o more\n  \
    melm augment train.conll --dev dev.conll --silver gliner=labelled.jsonl -o more\n  \
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
    #[command(flatten)]
    pub(crate) text: TextInput,
    /// File of sentences that somebody else labelled, such as a large language model or another tagger;
    /// may be repeated. The panel decides which of them are kept. NAME is shown in drafts.jsonl and
    /// the summary [default: the name of the file without its ending]
    #[arg(long, value_name = "[NAME=]FILE", help_heading = "Labels from elsewhere")]
    pub(crate) silver: Vec<SilverInput>,
    /// Drop and count mentions of --silver files whose entity type TRAIN does not have, instead of
    /// refusing the file
    #[arg(long, requires = "silver", help_heading = "Labels from elsewhere")]
    pub(crate) silver_drop_types: bool,
    /// List of names of an entity type, one name on each line, also in gzip; may be repeated. The
    /// methods melm-both and label-wise draw a share of the new entities from it (names.share of the
    /// plan, default: half)
    #[arg(long, value_name = "TYPE=FILE")]
    pub(crate) name_list: Vec<NamesInput>,
    /// Aligned word vectors of a language, for the methods codemix-ess and melm-codemix; repeat for
    /// each language, or pass `pieces` to use the embeddings of the model
    #[arg(long, value_name = "LANG=FILE")]
    pub(crate) vectors: Vec<VectorInput>,
    /// Output folder
    #[arg(short, long, value_name = "DIR", value_parser = super::folder_parser())]
    pub(crate) out: PathBuf,
    /// Train only part I of N of the taggers that label the text, and save their votes in
    /// DIR.shard-I-of-N; the command without --shard uses the votes of all parts
    #[arg(
        long,
        value_name = "I/N",
        requires = "unlabelled",
        conflicts_with_all = ["json", "keep_model"]
    )]
    pub(crate) shard: Option<Shard>,
    /// Method: melm-both, melm, melm-plain, mlm-entity, mulda, daga, label-wise, lwtr or gold; for
    /// several languages also codemix-random, codemix-ess or melm-codemix [default: melm-both]
    #[arg(long, value_parser = parse_method)]
    pub(crate) method: Option<Method>,
    /// Number of rounds: each round makes one draft of every sentence, or two with melm-both
    #[arg(long, value_name = "R")]
    pub(crate) rounds: Option<NonZeroU32>,
    /// Also look for wrong tags in TRAIN: train K taggers, each on all folds but one, and compare
    /// their tags of the remaining fold with yours; writes gold.jsonl, which `melm report` shows
    /// [default of K: 4]
    #[arg(
        long,
        value_name = "K",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "4",
        value_parser = clap::value_parser!(u16).range(2..=20)
    )]
    pub(crate) check_gold: Option<u16>,
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

/// The options for unlabelled text.
#[derive(Debug, Group)]
#[command(next_help_heading = "Unlabelled text")]
pub(crate) struct TextInput {
    /// File of sentences that a panel of taggers labels, to add those it agrees on; may be repeated.
    /// It contains plain text, CoNLL with or without tags, or JSON lines, also in gzip. If TRAIN has
    /// languages, write LANG=FILE; the language may be one that TRAIN does not have
    #[arg(long, value_name = "[LANG=]FILE")]
    pub(crate) unlabelled: Vec<InputFile>,
    /// File whose sentences are left out of the unlabelled text, such as a test set; may be repeated
    #[arg(long, value_name = "FILE")]
    pub(crate) held_out: Vec<PathBuf>,
    /// Format of the unlabelled text: text, conll or jsonl [default: detected]
    #[arg(long, value_name = "FORMAT", requires = "unlabelled")]
    pub(crate) text_format: Option<TextFormat>,
    /// Unlabelled text in CoNLL: number of the token column, counted from 1 [default: detected]
    #[arg(long, value_name = "N", requires = "unlabelled")]
    pub(crate) text_column: Option<usize>,
    /// Unlabelled text in JSON lines: key of the text [default: text]
    #[arg(long, value_name = "KEY", requires = "unlabelled")]
    pub(crate) text_key: Option<String>,
}

fn parse_method(name: &str) -> Result<Method, String> {
    let names = || Method::ALL.map(Method::name).join(", ");
    Method::from_name(name).ok_or_else(|| format!("expected one of {}", names()))
}
