//! The data of a run, as Python passes it.

use std::path::PathBuf;

use melm::augment::Silver;
use melm::names::NameList;
use melm_text::{Limits, TextOptions, UnlabelledText};
use pyo3::prelude::*;

use crate::corpus::Corpus;
use crate::text::Text;

/// The data of a run: the attributes of a Python object.
#[derive(FromPyObject)]
pub(crate) struct Data {
    train: Py<Corpus>,
    dev: Option<Py<Corpus>>,
    text: Option<Py<Text>>,
    held_out: Vec<Py<Text>>,
    names: Vec<NamesInput>,
    silver: Vec<SilverInput>,
}

/// Sentences that somebody else labelled: the attributes of a Python object.
#[derive(FromPyObject)]
struct SilverInput {
    name: String,
    corpus: Py<Corpus>,
    drops_types: bool,
}

/// Names of one entity type: the attributes of a Python object. There is either a path or a list of names.
#[derive(FromPyObject)]
struct NamesInput {
    entity_type: String,
    path: Option<PathBuf>,
    names: Vec<String>,
}

impl Data {
    /// The training set.
    pub(crate) fn train(&self) -> &melm_text::Corpus {
        &self.train.get().corpus
    }

    /// The dev set.
    pub(crate) fn dev(&self) -> Option<&melm_text::Corpus> {
        self.dev.as_ref().map(|dev| &dev.get().corpus)
    }

    /// The unlabelled text.
    pub(crate) fn text(&self) -> Option<&UnlabelledText> {
        self.text.as_ref().map(|text| &text.get().text)
    }

    /// True if there are sentences for a panel of taggers to label or to check.
    pub(crate) fn has_text(&self) -> bool {
        self.text.is_some() || !self.silver.is_empty()
    }

    /// Texts whose sentences must not be used.
    pub(crate) fn held_out(&self) -> Vec<UnlabelledText> {
        self.held_out.iter().map(|text| text.get().text.clone()).collect()
    }

    /// Sentences that somebody else labelled.
    pub(crate) fn silver(&self) -> impl Iterator<Item = Silver> {
        self.silver.iter().map(|input| {
            let silver = Silver::new(&input.name, input.corpus.get().corpus.clone());
            if input.drops_types { silver.dropping_other_types() } else { silver }
        })
    }

    /// Reads the lists of names. Fails as [`NameList::open`] does.
    pub(crate) fn names(&self, limits: Limits) -> Result<Vec<NameList>, melm::Error> {
        let read = |list: &NamesInput| {
            if let Some(path) = &list.path {
                let options = TextOptions::default().within(limits);
                return NameList::open(&list.entity_type, path, self.train(), options);
            }
            let source = format!("names of {}", list.entity_type);
            NameList::from_names(&list.entity_type, &source, &list.names, self.train())
        };
        self.names.iter().map(read).collect()
    }
}
