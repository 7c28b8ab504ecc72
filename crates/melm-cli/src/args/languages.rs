//! Files with their languages (`LANG=FILE`), and the options of `melm codemix`.

use std::path::PathBuf;
use std::str::FromStr;

use clap::Args as Group;
use melm_text::is_language_code;

use super::InputOptions;
use super::plan::PlanOverrides;

/// An input file, with its language if it is given.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct InputFile {
    pub(crate) language: Option<String>,
    pub(crate) path: PathBuf,
}

impl FromStr for InputFile {
    type Err = std::convert::Infallible;

    /// The part before `=` is a language only if it is a language code: `./a=b` is a file.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let pair = text.split_once('=').filter(|(code, _)| is_language_code(code));
        Ok(match pair {
            Some((code, path)) => Self { language: Some(code.to_owned()), path: path.into() },
            None => Self { language: None, path: text.into() },
        })
    }
}

/// A file of sentences that somebody else labelled, and the name of its source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SilverInput {
    pub(crate) name: String,
    pub(crate) path: PathBuf,
}

impl FromStr for SilverInput {
    type Err = String;

    /// The part before `=` is a name only if it has no path separator and is not empty: `./a=b` is a file.
    fn from_str(text: &str) -> Result<Self, String> {
        let pair = text.split_once('=').filter(|(name, _)| !name.contains(['/', '\\']));
        let (name, path) = match pair {
            Some(("", _) | (_, "")) => return Err("expected NAME=FILE or FILE".into()),
            Some((name, path)) => (name.to_owned(), PathBuf::from(path)),
            None => {
                let path = PathBuf::from(text);
                let stem = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
                (stem, path)
            }
        };
        Ok(Self { name, path })
    }
}

/// The vectors that are used to compare mentions of two languages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum VectorInput {
    /// A file of word vectors of one language.
    File(String, PathBuf),
    /// The piece embeddings of the masked language model.
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

/// A list of names of one entity type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NamesInput {
    pub(crate) entity_type: String,
    pub(crate) path: PathBuf,
}

impl FromStr for NamesInput {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.split_once('=') {
            Some((name, path)) if !name.is_empty() && !path.is_empty() => {
                Ok(Self { entity_type: name.to_owned(), path: path.into() })
            }
            _ => Err("expected TYPE=FILE".into()),
        }
    }
}

/// Replace each entity by the most similar entity of the same type in another language
///
/// For each mention, another language is drawn at random. The mention is replaced by the mention of
/// that language with the highest cosine similarity. The vector of a mention is the mean of the
/// aligned vectors of its words. OUT is a CoNLL file of the code-mixed sentences, each with its
/// language in a comment. OUT.jsonl records the origin and the similarity of every replacement.
#[derive(Debug, Group)]
#[command(after_help = "Examples:\n  melm codemix en=en.conll de=de.conll \
    --vectors en=wiki.multi.en.vec --vectors de=wiki.multi.de.vec.gz -o mixed.conll\n  \
    melm codemix en=en.conll de=de.conll --vectors pieces -o mixed.conll\n  \
    melm codemix en=en.conll de=de.conll --random -o mixed.conll")]
pub(crate) struct Codemix {
    /// Files to mix, each with its language
    #[arg(value_name = "LANG=TRAIN", required = true)]
    pub(crate) files: Vec<InputFile>,
    /// Aligned word vectors of a language; repeat for each language, or pass `pieces` to use the
    /// embeddings of the model
    #[arg(long, value_name = "LANG=FILE", conflicts_with = "random")]
    pub(crate) vectors: Vec<VectorInput>,
    /// Use a random entity of the type instead of the most similar one
    #[arg(long)]
    pub(crate) random: bool,
    #[command(flatten)]
    pub(crate) output: super::OutputOptions,
    /// File that records the replacements [default: OUT.jsonl, or none if OUT is standard output]
    #[arg(long, value_name = "FILE")]
    pub(crate) drafts: Option<PathBuf>,
    /// Number of rounds; each round makes one draft of every sentence
    #[arg(long, value_name = "R", default_value = "1")]
    pub(crate) rounds: std::num::NonZeroU32,
    /// Model for `--vectors pieces`: a folder, a name on the Hugging Face hub, or mini (embedded)
    #[arg(long, value_name = "DIR|NAME", default_value = melm::models::MINI)]
    pub(crate) model: String,
    #[command(flatten)]
    pub(crate) overrides: PlanOverrides,
    #[command(flatten)]
    pub(crate) input: InputOptions,
}
