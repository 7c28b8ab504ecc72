//! Sentences without tags.

mod conll;
mod detect;
mod jsonl;
mod leaks;
mod options;
mod read;
mod sentence;

pub use leaks::{KnownSentences, LeftOut, SentenceRole};
pub use options::{TextFile, TextFormat, TextOptions};
pub use sentence::UnlabelledSentence;

use std::sync::Arc;

use crate::corpus::Corpus;
use crate::format::Reader;
use crate::labelled_file::LabelledFile;
use crate::problem::Problems;
use crate::record::Record;
use crate::tag::EntityTypes;

/// The name of the file of a sentence that was not read from a file.
const MEMORY: &str = "memory";

/// Sentences without tags, from one or several files. Clones share the sentences, so cloning is cheap.
///
/// ```
/// use melm_text::{Corpus, ReadOptions, Source, UnlabelledText};
/// let source = Source::from_text("a.conll", "in O\nBonn B-LOC\n");
/// let corpus = Corpus::read(&source, &ReadOptions::default())?;
/// let text = UnlabelledText::from_corpus(&corpus).with_language("en");
/// assert_eq!(text.sentences()[0].tokens()[1].as_str(), "Bonn");
/// assert_eq!(text.sentences()[0].language(), Some("en"));
/// # Ok::<(), melm_text::Error>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct UnlabelledText {
    sentences: Arc<Vec<UnlabelledSentence>>,
    files: Vec<TextFile>,
}

impl UnlabelledText {
    /// Makes a text from sentences.
    pub fn new(sentences: Vec<UnlabelledSentence>) -> Self {
        Self { sentences: Arc::new(sentences), files: Vec::new() }
    }

    /// Returns the tokens of all sentences of `corpus`, with their languages. Tags, columns and comments are ignored.
    ///
    /// File and line are those of the files of the corpus ([`Corpus::files`]). If the corpus stores no files, the file
    /// is `memory` and the line is the number of the sentence in the corpus, from 1.
    pub fn from_corpus(corpus: &Corpus) -> Self {
        let mut locations = corpus.files().iter().flat_map(|file| locate_sentences(file));
        let memory: Arc<str> = MEMORY.into();
        let codes: Vec<Arc<str>> =
            corpus.languages().iter().map(|part| Arc::from(&*part.code)).collect();
        let sentences = corpus.sentences().iter().enumerate().map(|(index, sentence)| {
            let location = locations.next();
            let (file, line) = location.unwrap_or_else(|| (Arc::clone(&memory), index + 1));
            let own = UnlabelledSentence::new(sentence.tokens().to_vec(), file, line)
                .expect("a sentence of a corpus has tokens");
            match sentence.language() {
                Some(language) => own.with_language(Arc::clone(&codes[language.index()])),
                None => own,
            }
        });
        Self::new(sentences.collect())
    }

    /// The sentences, in the order of the files.
    pub fn sentences(&self) -> &[UnlabelledSentence] {
        &self.sentences
    }

    /// How each file was read. Empty if the text was not read from files.
    pub fn files(&self) -> &[TextFile] {
        &self.files
    }

    /// Returns the text with the language of every sentence set to `code`.
    #[must_use]
    pub fn with_language(self, code: &str) -> Self {
        let code: Arc<str> = code.into();
        let files = self.files.clone();
        let sentences = self.into_sentences().into_iter();
        let sentences = sentences.map(|sentence| sentence.with_language(Arc::clone(&code)));
        Self { files, ..Self::new(sentences.collect()) }
    }

    /// Returns the sentences of all `parts`, in their order.
    #[must_use]
    pub fn join(parts: impl IntoIterator<Item = Self>) -> Self {
        let (mut sentences, mut files) = (Vec::new(), Vec::new());
        for part in parts {
            files.extend(part.files.iter().cloned());
            sentences.extend(part.into_sentences());
        }
        Self { files, ..Self::new(sentences) }
    }

    /// Returns the sentences. Copies them only if another clone of this text exists.
    fn into_sentences(self) -> Vec<UnlabelledSentence> {
        Arc::try_unwrap(self.sentences).unwrap_or_else(|shared| Vec::clone(&shared))
    }
}

/// Returns the name of the file and the line of each of its sentences.
fn locate_sentences(file: &LabelledFile) -> impl Iterator<Item = (Arc<str>, usize)> {
    let name: Arc<str> = file.source().name().into();
    let mut reader = Reader::with_structure(file.source(), file.structure());
    let (mut record, mut types) = (Record::default(), EntityTypes::default());
    std::iter::from_fn(move || {
        let is_read = reader.read(&mut record, &mut types, &mut Problems::default());
        is_read.then(|| (Arc::clone(&name), record.line))
    })
}

#[cfg(test)]
mod tests;
