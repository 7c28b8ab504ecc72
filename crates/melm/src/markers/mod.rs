//! Markers: pieces that are added to the vocabulary. There is one for each tag, such as `<B-PER>` (section 2.1), and,
//! if there are several languages, one for each language, such as `<de>` (section 2.5).
//!
//! The embedding row of a marker is initialised with the mean of other rows: those of words related to the tag's entity
//! type, those of the type's mentions in the training set, or both. A linearized sentence is then close to a natural
//! one even before fine-tuning.

mod start;

use std::collections::{BTreeMap, BTreeSet};

use melm_text::{Corpus, Sentence, Tag};

pub use start::{MarkerStart, RelatedWords, RowStart};

use crate::Error;
use crate::pieces::Tokenizer;

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
