//! Sentences without tags.

mod sentence;

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
}

impl UnlabelledText {
    /// Makes a text from sentences.
    pub fn new(sentences: Vec<UnlabelledSentence>) -> Self {
        Self { sentences: Arc::new(sentences) }
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

    /// Returns the text with the language of every sentence set to `code`.
    #[must_use]
    pub fn with_language(self, code: &str) -> Self {
        let code: Arc<str> = code.into();
        let sentences = self.into_sentences().into_iter();
        Self::new(sentences.map(|sentence| sentence.with_language(Arc::clone(&code))).collect())
    }

    /// Returns the sentences of all `parts`, in their order.
    #[must_use]
    pub fn join(parts: impl IntoIterator<Item = Self>) -> Self {
        Self::new(parts.into_iter().flat_map(Self::into_sentences).collect())
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
mod tests {
    use super::*;
    use crate::{ReadOptions, Source};

    fn read(name: &str, text: &str) -> Corpus {
        let source = Source::from_text(name, text);
        LabelledFile::read(source, &ReadOptions::default()).unwrap().into_corpus()
    }

    fn describe(text: &UnlabelledText) -> Vec<(&str, usize, Option<&str>, &str)> {
        let sentences = text.sentences().iter();
        sentences.map(|s| (s.file(), s.line(), s.language(), s.tokens()[0].as_str())).collect()
    }

    #[test]
    fn a_corpus_becomes_a_text_with_the_files_lines_and_languages_of_its_sentences() {
        let en = read("en.conll", "# id 1\nin O\nBonn B-LOC\n\n\nAda B-PER\n");
        let de = read("de.jsonl", "\n{\"tokens\":[\"Rom\"],\"tags\":[\"B-LOC\"]}\n");
        let both = Corpus::from_languages([("en", &en), ("de", &de)]);
        assert_eq!(
            describe(&UnlabelledText::from_corpus(&both)),
            [
                ("en.conll", 2, Some("en"), "in"),
                ("en.conll", 6, Some("en"), "Ada"),
                ("de.jsonl", 2, Some("de"), "Rom"),
            ]
        );
        let without_files = en.with_sentences(en.sentences().iter().cloned());
        assert_eq!(
            describe(&UnlabelledText::from_corpus(&without_files)),
            [("memory", 1, None, "in"), ("memory", 2, None, "Ada")]
        );
    }

    #[test]
    fn joined_texts_keep_their_order_and_clones_are_not_changed() {
        let text = UnlabelledText::from_corpus(&read("a", "Ada O\n"));
        let joined = UnlabelledText::join([text.clone().with_language("nl"), text.clone()]);
        assert_eq!(describe(&joined), [("a", 1, Some("nl"), "Ada"), ("a", 1, None, "Ada")]);
        assert_eq!(text.sentences()[0].language(), None);
    }
}
