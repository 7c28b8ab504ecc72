//! A corpus: sentences whose tags are valid in one scheme.

use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;

use crate::conll::{escape_byte_order_mark, is_document_start, push_row};
use crate::error::Error;
use crate::format::{ReadOptions, Structure};
use crate::labelled_file::LabelledFile;
use crate::language::{Language, LanguagePart};
use crate::mention::Mention;
use crate::record::RowFrame;
use crate::scheme::Scheme;
use crate::sentence::{Frame, Sentence};
use crate::source::Source;
use crate::survey::Survey;
use crate::tag::EntityTypes;

/// Sentences with their entity types and the scheme of their tags.
///
/// A corpus is immutable. Clones share the sentences, so cloning is cheap. A corpus that was read from a file stores
/// the text and format of the file ([`Self::files`]), so that [`Self::append_sentences`] can write more sentences in
/// the same format.
///
/// ```
/// use melm_text::{Corpus, ReadOptions, Source};
/// let source = Source::from_text("a.conll", "Angela B-PER\nMerkel I-PER\nspoke O\n");
/// let corpus = Corpus::read(&source, &ReadOptions::default())?;
/// let mention = corpus.sentences()[0].mentions().next().unwrap();
/// assert_eq!((corpus.types().name(mention.entity_type), mention.tokens), ("PER", 0..2));
/// # Ok::<(), melm_text::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Corpus {
    content: Arc<Content>,
    /// The files that the sentences were read from; empty if there are none.
    files: Vec<Arc<LabelledFile>>,
}

/// Compares corpora by their sentences, types and scheme. The files that they were read from do not matter.
impl PartialEq for Corpus {
    fn eq(&self, other: &Self) -> bool {
        self.content == other.content
    }
}

impl Eq for Corpus {}

/// The data that all clones of a corpus share.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Content {
    types: EntityTypes,
    scheme: Scheme,
    sentences: Vec<Sentence>,
    /// Comment lines after the last sentence.
    lines_after: Vec<String>,
    languages: Vec<LanguagePart>,
}

impl Corpus {
    /// Opens a UTF-8 file and reads it. Format, columns or keys, and scheme are detected; names of
    /// tag ids are looked for beside the file ([`ReadOptions::with_names_beside`]).
    ///
    /// Fails if the file cannot be read, or as [`Self::read`] does. To set an encoding or
    /// options, use [`Source::open`] and [`Self::read`]. To store the text of the file too, use [`LabelledFile`].
    ///
    /// ```no_run
    /// let corpus = melm_text::Corpus::open("train.conll")?;
    /// println!("{} sentences", corpus.sentences().len());
    /// # Ok::<(), melm_text::Error>(())
    /// ```
    pub fn open(path: impl AsRef<Path>) -> Result<Self, Error> {
        Ok(LabelledFile::open(path)?.into_corpus())
    }

    /// Reads a text. Fails with all problems of the text ([`Error::Data`]) if a line cannot be read
    /// or a tag is not valid in its scheme.
    pub fn read(source: &Source, options: &ReadOptions) -> Result<Self, Error> {
        Ok(Self::read_with_structure(source, options)?.0)
    }

    /// Does what [`Self::read`] does, and returns the detected structure of the text too.
    pub(crate) fn read_with_structure(
        source: &Source,
        options: &ReadOptions,
    ) -> Result<(Self, Structure), Error> {
        let mut sentences = Vec::new();
        let survey = Survey::read(source, options, |record, _, _| {
            sentences.push(Sentence::from_record(record).expect("readers check what they yield"));
        })?;
        survey.require_sound(source, false)?;
        let corpus = Self::from_content(Content {
            types: survey.types,
            scheme: survey.scheme.scheme,
            sentences,
            lines_after: survey.lines_after,
            languages: Vec::new(),
        });
        Ok((corpus, survey.structure))
    }

    /// Makes a corpus from sentences. If the tags of a sentence are not valid in `scheme`, fails with the index of the
    /// first such sentence.
    pub fn new(
        types: EntityTypes,
        scheme: Scheme,
        sentences: Vec<Sentence>,
    ) -> Result<Self, usize> {
        match sentences.iter().position(|s| scheme.violations(s.tags()).next().is_some()) {
            Some(broken) => Err(broken),
            None => Ok(Self::from_content(Content {
                types,
                scheme,
                sentences,
                lines_after: Vec::new(),
                languages: Vec::new(),
            })),
        }
    }

    fn from_content(content: Content) -> Self {
        Self { content: Arc::new(content), files: Vec::new() }
    }

    /// Returns the corpus of one file. The corpus stores the file: see [`Self::files`].
    pub(crate) fn from_file(file: LabelledFile) -> Self {
        Self { content: Arc::clone(&file.corpus().content), files: vec![Arc::new(file)] }
    }

    /// The files that the sentences were read from: one, or one for each language with sentences, in the order of the
    /// languages. Empty if the corpus was made from sentences, or changed after reading.
    pub fn files(&self) -> &[Arc<LabelledFile>] {
        &self.files
    }

    /// Joins the corpora of several languages, each given with its language code.
    ///
    /// Entity types with the same name become one. If the corpora have different schemes, all tags
    /// are rewritten in IOB2, which can express every other scheme.
    ///
    /// ```
    /// use melm_text::{Corpus, ReadOptions, Source};
    /// let read = |text| Corpus::read(&Source::from_text("a", text), &ReadOptions::default());
    /// let (en, de) = (read("in O\nBonn B-LOC\n")?, read("Ada S-PER\n\nin O\nBonn S-LOC\n")?);
    /// let both = Corpus::from_languages([("en", &en), ("de", &de)]);
    /// let last = &both.sentences()[2];
    /// assert_eq!(both.languages()[last.language().unwrap().index()].code.as_ref(), "de");
    /// assert_eq!(last.tags(), both.sentences()[0].tags());
    /// # Ok::<(), melm_text::Error>(())
    /// ```
    pub fn from_languages<'c>(corpora: impl IntoIterator<Item = (&'c str, &'c Corpus)>) -> Self {
        let corpora: Vec<_> = corpora.into_iter().collect();
        let schemes: Vec<_> = corpora.iter().map(|(_, corpus)| corpus.scheme()).collect();
        let scheme = match schemes.first() {
            Some(first) if schemes.iter().all(|scheme| scheme == first) => *first,
            _ => Scheme::Iob2,
        };
        let mut all = Content {
            types: EntityTypes::default(),
            scheme,
            sentences: Vec::new(),
            lines_after: Vec::new(),
            languages: Vec::new(),
        };
        let mut files = Vec::new();
        for (code, corpus) in corpora {
            files.extend(corpus.files.iter().map(Arc::clone));
            let language = Language::from_index(all.languages.len());
            let types = all.types.merge(corpus.types());
            let start = all.sentences.len();
            all.sentences.extend(corpus.sentences().iter().map(|sentence| {
                let renamed = sentence.mentions().map(|mention| Mention {
                    entity_type: types[mention.entity_type.index()],
                    ..mention
                });
                let renamed: Vec<_> = renamed.collect();
                sentence.clone().with_mentions(renamed, scheme).with_language(language)
            }));
            let (code, sentences) = (code.into(), start..all.sentences.len());
            all.languages.push(LanguagePart { code, scheme: corpus.scheme(), sentences });
        }
        // Keep the files only if there is one for each language.
        if files.len() != all.languages.len() {
            files.clear();
        }
        Self { content: Arc::new(all), files }
    }

    /// Returns the corpus with a language for each of `codes`. New languages have no sentences yet and come after the
    /// existing ones, whose indices stay the same. A code that the corpus already has is not added again. The files of
    /// the corpus are kept: [`Self::append_sentences`] writes new languages in the format of the first file.
    ///
    /// ```
    /// use melm_text::{Corpus, ReadOptions, Source};
    /// let en = Corpus::read(&Source::from_text("a", "in O\nBonn B-LOC\n"), &ReadOptions::default())?;
    /// let corpus = Corpus::from_languages([("en", &en)]).with_language_codes(&["de", "en"]);
    /// assert_eq!(corpus.languages().len(), 2);
    /// assert_eq!(corpus.languages()[1].code.as_ref(), "de");
    /// assert!(corpus.languages()[1].sentences.is_empty());
    /// # Ok::<(), melm_text::Error>(())
    /// ```
    ///
    /// # Panics
    /// If the corpus has no languages, because the language of its sentences is then not known.
    #[must_use]
    pub fn with_language_codes(&self, codes: &[&str]) -> Self {
        let scheme = self.languages().first().expect("the corpus has languages").scheme;
        let mut all = Content::clone(&self.content);
        let end = all.sentences.len();
        for &code in codes {
            if all.languages.iter().all(|part| &*part.code != code) {
                all.languages.push(LanguagePart { code: code.into(), scheme, sentences: end..end });
            }
        }
        Self { content: Arc::new(all), files: self.files.clone() }
    }

    /// Returns the corpus with the sentences of `more` added at the end. The tags of `more` must use the types and the
    /// scheme of this corpus.
    #[must_use]
    pub fn with_more(&self, more: impl IntoIterator<Item = Sentence>) -> Self {
        let mut all = Content::clone(&self.content);
        all.sentences.extend(more);
        Self::from_content(all)
    }

    /// Returns a corpus with the types, scheme and languages of this one, and other sentences.
    #[must_use]
    pub fn with_sentences(&self, sentences: impl IntoIterator<Item = Sentence>) -> Self {
        let mut all = Content::clone(&self.content);
        all.sentences = sentences.into_iter().collect();
        all.lines_after = Vec::new();
        Self::from_content(all)
    }

    /// Returns the corpus with its tags rewritten in `scheme`. IO merges adjacent mentions of the same type; every
    /// other scheme keeps all mentions.
    #[must_use]
    pub fn with_scheme(&self, scheme: Scheme) -> Self {
        let mut all = Content::clone(&self.content);
        all.scheme = scheme;
        for sentence in &mut all.sentences {
            sentence.rewrite_tags(scheme);
        }
        Self::from_content(all)
    }

    /// The languages, if the corpus was made by [`Self::from_languages`]; otherwise empty.
    pub fn languages(&self) -> &[LanguagePart] {
        &self.content.languages
    }

    /// Splits the corpus by language. Each part has its language code, all sentences of the language and the scheme of
    /// its file. Returns no parts if the corpus has no languages.
    ///
    /// ```
    /// use melm_text::{Corpus, ReadOptions, Source};
    /// let read = |text| Corpus::read(&Source::from_text("a", text), &ReadOptions::default());
    /// let (en, de) = (read("in O\nBonn B-LOC\n")?, read("Ada S-PER\n\nin O\nBonn S-LOC\n")?);
    /// let both = Corpus::from_languages([("en", &en), ("de", &de)]);
    /// let more = both.with_more([both.sentences()[0].clone()]);
    /// let parts = more.split_languages();
    /// assert_eq!(parts.iter().map(|(code, part)| (*code, part.sentences().len())).collect::<Vec<_>>(), [("en", 2), ("de", 2)]);
    /// assert_eq!(parts[1].1.scheme(), de.scheme());
    /// # Ok::<(), melm_text::Error>(())
    /// ```
    pub fn split_languages(&self) -> Vec<(&str, Self)> {
        let part = |index: usize, scheme: Scheme| {
            let is_own = |sentence: &&Sentence| {
                sentence.language().is_some_and(|language| language.index() == index)
            };
            let sentences = self.sentences().iter().filter(is_own).cloned();
            let content = Content {
                types: self.types().clone(),
                scheme: self.scheme(),
                sentences: sentences.collect(),
                lines_after: Vec::new(),
                languages: Vec::new(),
            };
            Self::from_content(content).with_scheme(scheme)
        };
        let parts = self.languages().iter().enumerate();
        parts.map(|(index, found)| (&*found.code, part(index, found.scheme))).collect()
    }

    /// Returns the language code of a sentence and its index in the corpus of that language. For a corpus without
    /// languages, returns no code and the index itself.
    pub fn locate(&self, sentence: usize) -> (Option<&str>, usize) {
        let part = self.languages().iter().find(|part| part.sentences.contains(&sentence));
        let index_in = |part: &LanguagePart| sentence - part.sentences.start;
        part.map_or((None, sentence), |part| (Some(&*part.code), index_in(part)))
    }

    /// Returns the index of a sentence from the values that [`Self::locate`] returns, or `None` if
    /// there is no such sentence.
    pub fn find(&self, language: Option<&str>, index: usize) -> Option<usize> {
        let Some(code) = language else {
            return (self.languages().is_empty() && index < self.sentences().len())
                .then_some(index);
        };
        let part = self.languages().iter().find(|part| &*part.code == code)?;
        let at = part.sentences.start.checked_add(index)?;
        part.sentences.contains(&at).then_some(at)
    }

    /// The entity types.
    pub fn types(&self) -> &EntityTypes {
        &self.content.types
    }

    /// The scheme of the tags.
    pub fn scheme(&self) -> Scheme {
        self.content.scheme
    }

    /// The sentences, in the order of the file.
    pub fn sentences(&self) -> &[Sentence] {
        &self.content.sentences
    }

    /// Writes CoNLL rows. Sentences that did not come from a CoNLL file are written as
    /// `token TAB tag`.
    pub fn write_conll(&self, out: impl Write) -> io::Result<()> {
        self.write_rows(out, false)
    }

    /// Does what [`Self::write_conll`] does. If `bare_types` is true, writes entity types without prefixes.
    pub(crate) fn write_rows(&self, mut out: impl Write, bare_types: bool) -> io::Result<()> {
        let mut lines = Vec::new();
        for (number, sentence) in self.sentences().iter().enumerate() {
            lines.clear();
            for comment in sentence.lines_before() {
                lines.extend_from_slice(comment.as_bytes());
                lines.extend_from_slice(if is_document_start(comment) { b"\n\n" } else { b"\n" });
            }
            for (at, token) in sentence.tokens().iter().enumerate() {
                let frame = sentence.frames().get(at).map_or(RowFrame::TOKEN_TAB_TAG, Frame::row);
                let tag = self.types().spell(sentence.tags()[at], self.scheme());
                let tag = if bare_types { tag.without_prefix() } else { tag };
                push_row(frame, token.as_str(), tag, &mut lines);
                lines.push(b'\n');
            }
            lines.push(b'\n');
            if number == 0 {
                escape_byte_order_mark(&mut lines);
            }
            out.write_all(&lines)?;
        }
        self.content.lines_after.iter().try_for_each(|comment| writeln!(out, "{comment}"))?;
        out.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clones_share_their_sentences_and_can_be_sent_to_threads() {
        fn assert_send_sync<T: Send + Sync + 'static>(_: &T) {}
        let source = Source::from_text("a", "Bonn B-LOC\n");
        let corpus = Corpus::read(&source, &ReadOptions::default()).unwrap();
        assert_send_sync(&corpus);
        assert!(std::ptr::eq(corpus.sentences(), corpus.clone().sentences()));
    }

    #[test]
    fn with_scheme_keeps_the_mentions() {
        let source = Source::from_text("a", "New B-LOC\nYork I-LOC\nor O\nBonn B-LOC\n");
        let corpus = Corpus::read(&source, &ReadOptions::default()).unwrap();
        let iobes = corpus.with_scheme(Scheme::Iobes);
        assert_eq!(iobes.scheme(), Scheme::Iobes);
        assert!(iobes.sentences()[0].mentions().eq(corpus.sentences()[0].mentions()));
        assert_eq!(iobes.with_scheme(Scheme::Iob2), corpus);
    }
}
