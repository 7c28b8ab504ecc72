//! Unlabelled text.

use std::path::PathBuf;

use melm_cli::host;
use melm_text::{TextFile, TextOptions, Tokenizer, TokenizerRules, UnlabelledText};
use pyo3::prelude::*;

use crate::corpus::Corpus;
use crate::error::to_exception;

/// Sentences without tags.
#[pyclass(frozen, module = "melm._melm")]
pub(crate) struct Text {
    pub(crate) text: UnlabelledText,
}

#[pymethods]
impl Text {
    /// Reads a file. Plain text is split into tokens like those of `train`.
    #[staticmethod]
    fn open(
        py: Python<'_>,
        path: PathBuf,
        train: &Corpus,
        language: Option<&str>,
    ) -> PyResult<Self> {
        let options = options(train, language)?;
        let text = py.detach(|| UnlabelledText::open(path, &options)).map_err(to_exception)?;
        Ok(Self::with_language(text, language))
    }

    /// Reads JSON lines with `tokens` or `text` from memory. `name` is the name for messages.
    #[staticmethod]
    fn from_bytes(
        py: Python<'_>,
        name: &str,
        content: &[u8],
        train: &Corpus,
        language: Option<&str>,
    ) -> PyResult<Self> {
        let options = options(train, language)?;
        let text = py.detach(|| UnlabelledText::read(name, content, &options));
        Ok(Self::with_language(text.map_err(to_exception)?, language))
    }

    /// Joins texts.
    #[staticmethod]
    fn join(parts: Vec<Py<Text>>) -> Self {
        Self { text: UnlabelledText::join(parts.iter().map(|part| part.get().text.clone())) }
    }

    /// What was left out while reading.
    #[getter]
    fn notes(&self) -> Vec<String> {
        self.text.files().iter().filter_map(TextFile::note).collect()
    }

    /// What was not read, as warnings for a held-out text.
    #[getter]
    fn held_out_warnings(&self) -> Vec<String> {
        self.text.files().iter().filter_map(TextFile::held_out_warning).collect()
    }

    fn __len__(&self) -> usize {
        self.text.sentences().len()
    }
}

impl Text {
    fn with_language(text: UnlabelledText, language: Option<&str>) -> Self {
        let text = match language {
            Some(code) => text.with_language(code),
            None => text,
        };
        Self { text }
    }
}

/// Returns options that split text like the training set.
fn options(train: &Corpus, language: Option<&str>) -> PyResult<TextOptions> {
    let rules = match language {
        Some(code) => TokenizerRules::for_language(&train.corpus, code),
        None => TokenizerRules::from_corpus(&train.corpus),
    };
    let limits = host::limits().map_err(to_exception)?;
    Ok(TextOptions::with_tokenizer(Tokenizer::new(rules)).within(limits))
}
