//! Initial embedding rows of the markers (`docs/fidelity.md` row 13).

use std::collections::BTreeMap;

use melm_nn::mlm::MaskedLm;
use melm_nn::params::TABLE;
use melm_text::Corpus;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{MarkerMeaning, Markers, tag_markers};
use crate::Error;
use crate::pieces::Tokenizer;
use crate::related::{language_name, related_words};

/// The maximum number of pieces of a derived related word, if any of the words is that short. The mean over many
/// pieces, such as those of `mis-cella-ne-ous`, has little to do with the meaning of the word.
const MAX_WORD_PIECES: usize = 2;

/// Words related to entity types, by the name of the type. For types that are not listed, the words are derived from
/// the name.
pub type RelatedWords = BTreeMap<String, Vec<String>>;

/// How the rows of markers are initialised (`docs/fidelity.md` row 13). Rows of language markers use the name of the
/// language wherever rows of tags use mentions.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RowStart {
    /// Rows and biases are the mean over the pieces of related words (the paper).
    #[default]
    RelatedWords,
    /// Rows and biases are the mean over the pieces of the training tokens that have the marker's tag. `<B-X>` and
    /// `<I-X>` therefore differ. A tag that no training token has starts as with `related-words`.
    Mentions,
    /// Rows and biases are the mean of what `related-words` and `mentions` give.
    RelatedAndMentions,
    /// Rows are random.
    Random,
    /// Rows are random, plus the mean over the pieces of related words (the authors' code).
    RelatedAdded,
}

impl RowStart {
    /// The tensors whose rows are initialised. The authors' code leaves the bias unchanged.
    fn tensors(self) -> &'static [&'static str] {
        match self {
            Self::RelatedWords | Self::Mentions | Self::RelatedAndMentions => {
                &[TABLE, "lm_head.bias"]
            }
            Self::RelatedAdded => &[TABLE],
            Self::Random => &[],
        }
    }

    /// Initialises the rows of one marker with the rows of groups of pieces. No group is empty.
    fn set_rows(self, model: &mut MaskedLm, id: u32, groups: &[Vec<u32>]) -> Result<(), Error> {
        let n_rows = model.config().vocab_size;
        for tensor in self.tensors() {
            let values = model.parameters_mut().get_mut(tensor)?;
            let width = values.len() / n_rows;
            set_to_mean(values, width, id, groups, self == Self::RelatedAdded);
        }
        Ok(())
    }

    fn uses_mentions(self) -> bool {
        matches!(self, Self::Mentions | Self::RelatedAndMentions)
    }
}

/// How the embedding row of a marker was initialised.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MarkerStart {
    /// The marker's text.
    pub marker: String,
    /// The related words that were used; empty if none were.
    pub words: Vec<String>,
    /// The number of known pieces in these words.
    pub n_pieces: usize,
    /// The number of training tokens that were used. The row is random if this and `n_pieces` are 0.
    pub n_tokens: usize,
}

/// The training tokens that have one tag.
#[derive(Debug, Default)]
struct TagTokens {
    /// The number of tokens that have a known piece.
    n_tokens: usize,
    /// The known pieces of the tokens.
    pieces: Vec<u32>,
}

impl Markers {
    /// Initialises the embedding rows and biases of the markers, which are random before this call. Returns how each
    /// marker was initialised.
    ///
    /// `given` contains related words of some types and languages, which are used as they are. The words of other types
    /// are derived from their names. Of these, only the words with one or two pieces are used, or, if there are none,
    /// the words with the fewest pieces. `train` contains the mentions that rows can start from.
    ///
    /// # Errors
    /// If the tokenizer fails on a word or a token, or the model has no such rows.
    pub fn initialise(
        &self,
        model: &mut MaskedLm,
        tokenizer: &Tokenizer,
        start: RowStart,
        given: &RelatedWords,
        train: &Corpus,
    ) -> Result<Vec<MarkerStart>, Error> {
        let mut by_marker = BTreeMap::new();
        if start.uses_mentions() {
            by_marker = tokens_by_marker(tokenizer, train)?;
        }
        let mut starts = Vec::with_capacity(self.markers.len());
        for (text, marker) in &self.markers {
            let tokens = by_marker.remove(text).unwrap_or_default();
            let words = match start {
                RowStart::Random => Vec::new(),
                RowStart::Mentions if tokens.n_tokens > 0 => Vec::new(),
                _ => marker.meaning.related_words(tokenizer, given)?,
            };
            let word_pieces = known_pieces(tokenizer, &words)?;
            starts.push(MarkerStart {
                marker: text.clone(),
                words,
                n_pieces: word_pieces.len(),
                n_tokens: tokens.n_tokens,
            });
            let groups = [word_pieces, tokens.pieces];
            let groups: Vec<_> = groups.into_iter().filter(|group| !group.is_empty()).collect();
            if !groups.is_empty() {
                start.set_rows(model, marker.id, &groups)?;
            }
        }
        Ok(starts)
    }
}

impl MarkerMeaning {
    /// Returns the words whose embedding rows initialise a marker: the words in `given`, or else the short ones of the
    /// built-in words.
    fn related_words(
        &self,
        tokenizer: &Tokenizer,
        given: &RelatedWords,
    ) -> Result<Vec<String>, Error> {
        let (Self::EntityType(name) | Self::Language(name)) = self;
        if let Some(words) = given.get(name) {
            return Ok(words.clone());
        }
        match self {
            Self::EntityType(name) => short_words(tokenizer, related_words(name)),
            Self::Language(code) => Ok(vec![language_name(code)]),
        }
    }
}

/// Keeps the words with at most [`MAX_WORD_PIECES`] pieces or, if there are none, the words with the fewest pieces.
/// Words that contain `<unk>` are kept only if all words do.
fn short_words(tokenizer: &Tokenizer, words: Vec<String>) -> Result<Vec<String>, Error> {
    let encoded = tokenizer.encode(&words)?;
    let unknown = tokenizer.specials().unk;
    let ranges = encoded.tokens.iter();
    let counts = ranges.map(|range| {
        let pieces = &encoded.pieces[range.start as usize..range.end as usize];
        if pieces.contains(&unknown) { usize::MAX } else { pieces.len() }
    });
    let counts: Vec<usize> = counts.collect();
    let fewest = counts.iter().min().copied().unwrap_or_default();
    let limit = fewest.max(MAX_WORD_PIECES);
    let words = words.into_iter().zip(counts);
    Ok(words.filter(|(_, count)| *count <= limit).map(|(word, _)| word).collect())
}

/// Returns the known pieces of the training tokens of each tag, by the text of the tag's marker.
fn tokens_by_marker(
    tokenizer: &Tokenizer,
    train: &Corpus,
) -> Result<BTreeMap<String, TagTokens>, Error> {
    let texts: BTreeMap<_, _> = tag_markers(train).into_iter().collect();
    let mut by_marker: BTreeMap<String, TagTokens> = BTreeMap::new();
    for sentence in train.sentences() {
        for (token, tag) in sentence.tokens().iter().zip(sentence.tags()) {
            let Some(text) = texts.get(tag) else { continue };
            let pieces = known_pieces(tokenizer, &[token])?;
            if !pieces.is_empty() {
                let tokens = by_marker.entry(text.clone()).or_default();
                tokens.n_tokens += 1;
                tokens.pieces.extend(pieces);
            }
        }
    }
    Ok(by_marker)
}

/// Returns the pieces of words, without `<unk>`.
fn known_pieces(tokenizer: &Tokenizer, words: &[impl AsRef<str>]) -> Result<Vec<u32>, Error> {
    let encoded = tokenizer.encode(words)?;
    let ranges = encoded.tokens.iter();
    let pieces = ranges.flat_map(|range| &encoded.pieces[range.start as usize..range.end as usize]);
    let unknown = tokenizer.specials().unk;
    Ok(pieces.copied().filter(|piece| *piece != unknown).collect())
}

/// Sets a row to the mean of the means of groups of other rows, or adds this mean to the row. No group is empty.
fn set_to_mean(values: &mut [f32], width: usize, row: u32, groups: &[Vec<u32>], is_added: bool) {
    let start = row as usize * width;
    for column in 0..width {
        let value = |row: &u32| values[*row as usize * width + column];
        let mean = |group: &Vec<u32>| group.iter().map(value).sum::<f32>() / group.len() as f32;
        let mean = groups.iter().map(mean).sum::<f32>() / groups.len() as f32;
        let before = if is_added { values[start + column] } else { 0.0 };
        values[start + column] = before + mean;
    }
}
