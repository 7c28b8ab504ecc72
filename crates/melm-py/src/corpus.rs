//! Labelled sentences.

use melm_text::{EntityTypes, LabelledFile, Scheme, Sentence, add_missing_tags};
use pyo3::exceptions::PyIndexError;
use pyo3::prelude::*;
use pyo3::types::PyIterator;

use crate::error::to_exception;
use crate::source::Source;

/// A sentence in Python: tokens, tags, and the text before each token. The texts are missing if only tokens are known.
pub(crate) type Row = (Vec<String>, Vec<String>, Vec<String>);

/// Labelled sentences: a sequence of `(tokens, tags)`. It is immutable.
#[pyclass(frozen, sequence, module = "melm")]
pub(crate) struct Corpus {
    pub(crate) corpus: melm_text::Corpus,
    notes: Vec<String>,
}

#[pymethods]
impl Corpus {
    /// Reads labelled data. If `allows_untagged` is true, rows may have tokens only; all tags are then `O`.
    #[staticmethod]
    #[pyo3(signature = (source, allows_untagged=false))]
    fn read(py: Python<'_>, source: &Source, allows_untagged: bool) -> PyResult<Self> {
        let read = || {
            let Source { source, options } = source;
            let with_tags = if allows_untagged { add_missing_tags(source, options) } else { None };
            LabelledFile::read(with_tags.unwrap_or_else(|| source.clone()), options)
        };
        let file = py.detach(read).map_err(to_exception)?;
        let notes = file.structure().notes();
        Ok(Self { corpus: file.into_corpus(), notes })
    }

    /// Joins the corpora of several languages, each with its language code.
    #[staticmethod]
    fn from_languages(parts: Vec<(String, Py<Corpus>)>) -> Self {
        let corpora = parts.iter().map(|(code, part)| (code.as_str(), &part.get().corpus));
        let corpus = melm_text::Corpus::from_languages(corpora);
        let notes = parts.iter().flat_map(|(_, part)| part.get().notes.clone()).collect();
        Self { corpus, notes }
    }

    /// The language codes with the sentences of each language; empty if the corpus has no languages.
    fn split_languages(&self) -> Vec<(String, Self)> {
        let parts = self.corpus.split_languages().into_iter();
        parts.map(|(code, part)| (code.to_owned(), Self::from(part))).collect()
    }

    /// What a user should know about how the data was read, such as spans that were left out.
    #[getter]
    fn notes(&self) -> Vec<String> {
        self.notes.clone()
    }

    /// Returns warnings about a dev set whose scores mislead, for this training set.
    fn dev_warnings(&self, py: Python<'_>, dev: &Self) -> Vec<String> {
        py.detach(|| melm::notes::dev_warnings(&self.corpus, &dev.corpus))
    }

    /// The name of the tag scheme.
    #[getter]
    fn scheme(&self) -> &'static str {
        self.corpus.scheme().name()
    }

    /// The names of the entity types, sorted.
    #[getter]
    fn types(&self) -> Vec<String> {
        let types = self.corpus.types();
        types.sorted_by_name().into_iter().map(|t| types.name(t).to_owned()).collect()
    }

    /// The language codes; empty if the corpus has no languages.
    #[getter]
    fn languages(&self) -> Vec<String> {
        self.corpus.languages().iter().map(|part| part.code.to_string()).collect()
    }

    /// True if a sentence has a mention.
    #[getter]
    fn has_mentions(&self) -> bool {
        self.corpus.sentences().iter().any(|sentence| sentence.mentions().next().is_some())
    }

    /// All sentences with the text before each token.
    fn rows(&self) -> Vec<Row> {
        self.corpus.sentences().iter().map(|sentence| self.row(sentence)).collect()
    }

    fn __len__(&self) -> usize {
        self.corpus.sentences().len()
    }

    fn __getitem__(&self, index: isize) -> PyResult<(Vec<String>, Vec<String>)> {
        let sentences = self.corpus.sentences();
        let from_end = sentences.len().checked_add_signed(index);
        let at = if index < 0 { from_end } else { usize::try_from(index).ok() };
        let sentence = at.and_then(|at| sentences.get(at));
        let missing = || PyIndexError::new_err("the corpus has no such sentence");
        let (tokens, tags, _) = self.row(sentence.ok_or_else(missing)?);
        Ok((tokens, tags))
    }

    fn __iter__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyIterator>> {
        let pair = |sentence: &Sentence| {
            let (tokens, tags, _) = self.row(sentence);
            (tokens, tags)
        };
        let pairs: Vec<_> = self.corpus.sentences().iter().map(pair).collect();
        pairs.into_pyobject(py)?.try_iter()
    }

    fn __eq__(&self, other: &Self) -> bool {
        self.corpus == other.corpus
    }

    fn __repr__(&self) -> String {
        let n = self.corpus.sentences().len();
        let s = if n == 1 { "" } else { "s" };
        let (scheme, types) = (self.corpus.scheme(), self.types());
        let languages = match self.languages() {
            none if none.is_empty() => String::new(),
            codes => format!(", languages {codes:?}"),
        };
        format!("Corpus({n} sentence{s}, {scheme}, types {types:?}{languages})")
    }
}

impl From<melm_text::Corpus> for Corpus {
    fn from(corpus: melm_text::Corpus) -> Self {
        Self { corpus, notes: Vec::new() }
    }
}

impl Corpus {
    fn row(&self, sentence: &Sentence) -> Row {
        row(sentence, self.corpus.types(), self.corpus.scheme())
    }
}

/// Returns a sentence as Python values.
pub(crate) fn row(sentence: &Sentence, types: &EntityTypes, scheme: Scheme) -> Row {
    let spell = |tag: &_| types.spell(*tag, scheme).to_string();
    let tokens = sentence.tokens().iter().map(ToString::to_string).collect();
    let gaps = sentence.gaps().iter().map(ToString::to_string).collect();
    (tokens, sentence.tags().iter().map(spell).collect(), gaps)
}
