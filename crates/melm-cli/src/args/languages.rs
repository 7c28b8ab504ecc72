//! Files of several languages: `LANG=FILE`.

use std::path::PathBuf;
use std::str::FromStr;

use clap::Args as Group;
use melm_text::is_language_code;

use super::Reading;
use super::plan::Layers;

/// A file, perhaps with its language.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Input {
    pub(crate) language: Option<String>,
    pub(crate) path: PathBuf,
}

impl FromStr for Input {
    type Err = std::convert::Infallible;

    /// What stands before `=` is a language if it could be one: `./a=b` is a file.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let pair = text.split_once('=').filter(|(code, _)| is_language_code(code));
        Ok(match pair {
            Some((code, path)) => Self { language: Some(code.to_owned()), path: path.into() },
            None => Self { language: None, path: text.into() },
        })
    }
}

/// What mentions of two languages are compared by.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum VectorInput {
    /// A file of a language's word vectors.
    File(String, PathBuf),
    /// The masked language model's own.
    Pieces,
}

impl FromStr for VectorInput {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.split_once('=') {
            None if text == "pieces" => Ok(Self::Pieces),
            Some((code, path)) if is_language_code(code) => {
                Ok(Self::File(code.to_owned(), path.into()))
            }
            _ => Err("expected LANG=FILE or pieces".into()),
        }
    }
}

/// Replace entities by entities of the same type from your data in other languages
///
/// Every mention gives way to one of another language, drawn at random, that is most like it:
/// the highest cosine between the means of their words' aligned vectors. OUT is a CoNLL file of
/// the code-mixed sentences, a comment before each naming its language; OUT.jsonl says for each
/// where every mention came from, and how similar it is.
#[derive(Debug, Group)]
#[command(after_help = "Examples:\n  melm codemix en=en.conll de=de.conll \
    --vectors en=wiki.multi.en.vec --vectors de=wiki.multi.de.vec.gz -o mixed.conll\n  \
    melm codemix en=en.conll de=de.conll --vectors pieces -o mixed.conll\n  \
    melm codemix en=en.conll de=de.conll --random -o mixed.conll")]
pub(crate) struct Codemix {
    /// Files to mix, each with its language
    #[arg(value_name = "LANG=TRAIN", required = true)]
    pub(crate) files: Vec<Input>,
    /// Aligned word vectors of a language, or `pieces` for those of the model; repeat for each
    #[arg(long, value_name = "LANG=FILE", conflicts_with = "random")]
    pub(crate) vectors: Vec<VectorInput>,
    /// Take any entity of the type instead of the most similar one
    #[arg(long)]
    pub(crate) random: bool,
    #[command(flatten)]
    pub(crate) output: super::Output,
    /// Where to write what was replaced [default: OUT.jsonl; nothing if OUT is standard output]
    #[arg(long, value_name = "FILE")]
    pub(crate) drafts: Option<PathBuf>,
    /// How many drafts each sentence gets
    #[arg(long, value_name = "R", default_value = "1")]
    pub(crate) rounds: std::num::NonZeroU32,
    /// Masked language model for `--vectors pieces`: a folder, a name on the hub, or mini
    #[arg(long, value_name = "DIR|NAME", default_value = melm::models::MINI)]
    pub(crate) model: String,
    #[command(flatten)]
    pub(crate) layers: Layers,
    #[command(flatten)]
    pub(crate) reading: Reading,
}
