//! Markers: pieces that are added to the vocabulary. There is one for each tag, such as `<B-PER>` (section 2.1), and,
//! if there are several languages, one for each language, such as `<de>` (section 2.5).
//!
//! The embedding row of a marker is initialised with the mean of the rows of words related to the tag's entity type.
//! A linearized sentence is then close to a natural one even before fine-tuning.

use std::collections::{BTreeMap, BTreeSet};

use melm_nn::mlm::MaskedLm;
use melm_nn::params::TABLE;
use melm_text::{Corpus, Sentence, Tag};
use serde::{Deserialize, Serialize};

use crate::Error;
use crate::pieces::Tokenizer;
use crate::related::{language_name, related_words};

/// Words related to entity types, by the name of the type. For types that are not listed, the words are derived from
/// the name.
pub type RelatedWords = BTreeMap<String, Vec<String>>;

/// How the rows of markers are initialised (`docs/fidelity.md` row 13).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RowStart {
    /// Rows and biases are the mean over the pieces of related words (the paper).
    #[default]
    RelatedWords,
    /// Rows are random.
    Random,
    /// Rows are random, plus the mean over the pieces of related words (the authors' code).
    RelatedAdded,
}

/// The markers of a task and their ids in a tokenizer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Markers {
    markers: BTreeMap<String, Marker>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Marker {
    id: u32,
    meaning: MarkerMeaning,
}

/// The entity type or language that a marker stands for.
#[derive(Debug, Clone, PartialEq, Eq)]
enum MarkerMeaning {
    /// The name of an entity type; empty for bare `B` and `I` tags.
    EntityType(String),
    /// The code of a language.
    Language(String),
}

impl MarkerMeaning {
    /// Returns the words whose embedding rows initialise a marker. Words in `given` take precedence over the built-in
    /// words.
    fn related_words(&self, given: &RelatedWords) -> Vec<String> {
        match self {
            Self::EntityType(name) => {
                given.get(name).cloned().unwrap_or_else(|| related_words(name))
            }
            Self::Language(code) => {
                given.get(code).cloned().unwrap_or_else(|| vec![language_name(code)])
            }
        }
    }
}

/// How the embedding row of a marker was initialised.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MarkerStart {
    /// The marker's text.
    pub marker: String,
    /// The related words; empty if the row is random.
    pub words: Vec<String>,
    /// The number of known pieces in these words. The row is the mean over these pieces, or random if there are none.
    pub n_pieces: usize,
}

impl Markers {
    /// Adds a marker for each tag of the corpora to the tokenizer, sorted by text. Languages get markers too if one
    /// of the corpora has several, or if the tokenizer already has the marker of one of them.
    ///
    /// # Errors
    /// If the text of a marker is already a piece.
    pub fn from_corpora(corpora: &[&Corpus], tokenizer: &mut Tokenizer) -> Result<Self, Error> {
        let mut meanings = BTreeMap::new();
        for corpus in corpora {
            for (tag, text) in tag_markers(corpus) {
                let name = tag.entity_type().map_or("", |t| corpus.types().name(t));
                meanings.insert(text, MarkerMeaning::EntityType(name.to_owned()));
            }
        }
        for code in language_codes(corpora, tokenizer) {
            let (text, meaning) = (format!("<{code}>"), MarkerMeaning::Language(code.to_owned()));
            let before = meanings.insert(text, meaning);
            if matches!(before, Some(MarkerMeaning::EntityType(_))) {
                return Err(Error::MarkerTaken { marker: format!("<{code}>") });
            }
        }
        let texts: Vec<_> = meanings.keys().collect();
        let ids = tokenizer.add_markers(&texts)?;
        let markers = meanings.into_iter().zip(ids);
        let markers = markers.map(|((text, meaning), id)| (text, Marker { id, meaning })).collect();
        Ok(Self { markers })
    }

    /// Iterates over the texts of the markers, with their ids.
    pub fn iter(&self) -> impl Iterator<Item = (&str, u32)> {
        self.markers.iter().map(|(text, marker)| (text.as_str(), marker.id))
    }

    /// Returns the id of the marker of each tag of a corpus.
    pub(crate) fn by_tag(&self, corpus: &Corpus) -> Result<BTreeMap<Tag, u32>, Error> {
        tag_markers(corpus)
            .into_iter()
            .map(|(tag, text)| match self.markers.get(&text) {
                Some(marker) => Ok((tag, marker.id)),
                None => Err(Error::NoMarker { tag: text[1..text.len() - 1].to_owned() }),
            })
            .collect()
    }

    /// Returns the id of the marker of each language of a corpus, in the order of the languages. Empty if languages
    /// are not marked.
    pub(crate) fn by_language(&self, corpus: &Corpus) -> Result<Vec<u32>, Error> {
        let is_language = |marker: &&Marker| matches!(marker.meaning, MarkerMeaning::Language(_));
        if !self.markers.values().any(|marker| is_language(&marker)) {
            return Ok(Vec::new());
        }
        let ids = corpus.languages().iter().map(|part| {
            let found = self.markers.get(&format!("<{}>", part.code)).filter(is_language);
            let missing = || Error::NoMarker { tag: part.code.to_string() };
            found.map(|marker| marker.id).ok_or_else(missing)
        });
        ids.collect()
    }

    /// Initialises the embedding rows and biases of the markers, which are random before this call. `given` contains
    /// related words of some types; the words of other types are derived from their names. Returns how each marker
    /// was initialised.
    pub fn initialise(
        &self,
        model: &mut MaskedLm,
        tokenizer: &Tokenizer,
        start: RowStart,
        given: &RelatedWords,
    ) -> Result<Vec<MarkerStart>, Error> {
        // The authors' code leaves the bias unchanged.
        let tensors: &[_] = match start {
            RowStart::RelatedWords => &[TABLE, "lm_head.bias"],
            RowStart::RelatedAdded => &[TABLE],
            RowStart::Random => &[],
        };
        let is_added = start == RowStart::RelatedAdded;
        let mut starts = Vec::with_capacity(self.markers.len());
        for (text, marker) in &self.markers {
            if tensors.is_empty() {
                let (marker, words) = (text.clone(), Vec::new());
                starts.push(MarkerStart { marker, words, n_pieces: 0 });
                continue;
            }
            let words = marker.meaning.related_words(given);
            let pieces = known_pieces(tokenizer, &words)?;
            if !pieces.is_empty() {
                for tensor in tensors {
                    let n_rows = model.config().vocab_size;
                    let values = model.parameters_mut().get_mut(tensor)?;
                    let width = values.len() / n_rows;
                    set_to_mean(values, width, marker.id, &pieces, is_added);
                }
            }
            starts.push(MarkerStart { marker: text.clone(), words, n_pieces: pieces.len() });
        }
        Ok(starts)
    }
}

/// Returns the codes of the corpora's languages if languages are marked.
fn language_codes<'c>(corpora: &[&'c Corpus], tokenizer: &Tokenizer) -> Vec<&'c str> {
    let codes = || corpora.iter().flat_map(|c| c.languages()).map(|part| &*part.code);
    let are_several = corpora.iter().any(|corpus| corpus.languages().len() > 1);
    let is_marked =
        |code: &str| tokenizer.id(&format!("<{code}>")).is_some_and(|id| tokenizer.is_marker(id));
    if are_several || codes().any(is_marked) { codes().collect() } else { Vec::new() }
}

/// Returns the tags of a corpus except `O`, each with the text of its marker.
fn tag_markers(corpus: &Corpus) -> Vec<(Tag, String)> {
    let tags: BTreeSet<Tag> = corpus.sentences().iter().flat_map(Sentence::tags).copied().collect();
    let inside = tags.into_iter().filter(|tag| *tag != Tag::Outside);
    inside.map(|tag| (tag, format!("<{}>", corpus.types().spell(tag, corpus.scheme())))).collect()
}

/// Returns the pieces of words, without `<unk>`.
fn known_pieces(tokenizer: &Tokenizer, words: &[String]) -> Result<Vec<u32>, Error> {
    let encoded = tokenizer.encode(words)?;
    let ranges = encoded.tokens.iter();
    let pieces = ranges.flat_map(|range| &encoded.pieces[range.start as usize..range.end as usize]);
    let unknown = tokenizer.specials().unk;
    Ok(pieces.copied().filter(|piece| *piece != unknown).collect())
}

/// Sets a row to the mean of other rows, or adds the mean to it.
fn set_to_mean(values: &mut [f32], width: usize, row: u32, others: &[u32], is_added: bool) {
    let start = row as usize * width;
    for column in 0..width {
        let sum: f32 = others.iter().map(|other| values[*other as usize * width + column]).sum();
        let before = if is_added { values[start + column] } else { 0.0 };
        values[start + column] = before + sum / others.len() as f32;
    }
}
