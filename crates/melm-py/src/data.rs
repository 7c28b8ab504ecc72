//! The data of a run, as Python passes it.

use melm_text::UnlabelledText;
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

    /// Texts whose sentences must not be used.
    pub(crate) fn held_out(&self) -> Vec<UnlabelledText> {
        self.held_out.iter().map(|text| text.get().text.clone()).collect()
    }
}
