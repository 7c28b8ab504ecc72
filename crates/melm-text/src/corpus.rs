//! A corpus: sentences that are valid in one declared scheme.

use std::io::{self, Write};

use crate::conll::{Separator, guard_mark, is_document_start, push_row};
use crate::error::Error;
use crate::format::ReadOptions;
use crate::language::{Language, LanguagePart};
use crate::mention::Mention;
use crate::scheme::Scheme;
use crate::sentence::{Frame, Sentence};
use crate::source::Source;
use crate::survey::Survey;
use crate::tag::EntityTypes;

/// Sentences with their entity types and the scheme their tags are in.
///
/// ```
/// use melm_text::{Corpus, ReadOptions, Source};
/// let source = Source::from_text("a.conll", "Angela B-PER\nMerkel I-PER\nspoke O\n");
/// let corpus = Corpus::read(&source, &ReadOptions::default())?;
/// let mention = corpus.sentences()[0].mentions().next().unwrap();
/// assert_eq!((corpus.types().name(mention.entity_type), mention.tokens), ("PER", 0..2));
/// # Ok::<(), melm_text::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Corpus {
    types: EntityTypes,
    scheme: Scheme,
    sentences: Vec<Sentence>,
    after: Vec<String>,
    languages: Vec<LanguagePart>,
}

impl Corpus {
    /// Reads a file. Any problem in it, and any tag that breaks its scheme, is an error.
    pub fn read(source: &Source, options: &ReadOptions) -> Result<Self, Error> {
        let mut sentences = Vec::new();
        let survey = Survey::read(source, options, |record, _, _| {
            sentences.push(Sentence::from_record(record).expect("readers check what they yield"));
        })?;
        survey.require_sound(source, false)?;
        let (types, scheme) = (survey.types, survey.scheme.scheme);
        Ok(Self { types, scheme, sentences, after: survey.after, languages: Vec::new() })
    }

    /// Makes a corpus of sentences, unless the tags of one are not valid in `scheme`: its position.
    pub fn new(
        types: EntityTypes,
        scheme: Scheme,
        sentences: Vec<Sentence>,
    ) -> Result<Self, usize> {
        match sentences.iter().position(|s| scheme.breaks(s.tags()).next().is_some()) {
            Some(broken) => Err(broken),
            None => Ok(Self { types, scheme, sentences, after: Vec::new(), languages: Vec::new() }),
        }
    }

    /// One corpus of the corpora of several languages, one after the other, each under its code. Types go by name; if
    /// the schemes are not all the same, tags are written anew in IOB2, which every other can be written in.
    ///
    /// ```
    /// use melm_text::{Corpus, ReadOptions, Source};
    /// let read = |text| Corpus::read(&Source::from_text("a", text), &ReadOptions::default());
    /// let (en, de) = (read("in O\nBonn B-LOC\n")?, read("Ada S-PER\n\nin O\nBonn S-LOC\n")?);
    /// let both = Corpus::of_languages([("en", &en), ("de", &de)]);
    /// let last = &both.sentences()[2];
    /// assert_eq!(both.languages()[last.language().unwrap().index()].code.as_ref(), "de");
    /// assert_eq!(last.tags(), both.sentences()[0].tags());
    /// # Ok::<(), melm_text::Error>(())
    /// ```
    pub fn of_languages<'c>(parts: impl IntoIterator<Item = (&'c str, &'c Corpus)>) -> Self {
        let parts: Vec<_> = parts.into_iter().collect();
        let schemes: Vec<_> = parts.iter().map(|(_, corpus)| corpus.scheme).collect();
        let scheme = match schemes.first() {
            Some(first) if schemes.iter().all(|scheme| scheme == first) => *first,
            _ => Scheme::Iob2,
        };
        let mut all = Self {
            types: EntityTypes::default(),
            scheme,
            sentences: Vec::new(),
            after: Vec::new(),
            languages: Vec::new(),
        };
        for (code, corpus) in parts {
            let language = Language::at(all.languages.len());
            let types = corpus.types.iter().map(|one| all.types.intern(corpus.types.name(one)));
            let types: Vec<_> = types.collect();
            let start = all.sentences.len();
            all.sentences.extend(corpus.sentences.iter().map(|sentence| {
                let renamed = sentence.mentions().map(|mention| Mention {
                    entity_type: types[mention.entity_type.index()],
                    ..mention
                });
                let renamed: Vec<_> = renamed.collect();
                sentence.clone().with_mentions(renamed, scheme).in_language(language)
            }));
            let (code, sentences) = (code.into(), start..all.sentences.len());
            all.languages.push(LanguagePart { code, scheme: corpus.scheme, sentences });
        }
        all
    }

    /// The corpus with more sentences behind its own, in its languages, types and scheme.
    #[must_use]
    pub fn with_more(&self, more: impl IntoIterator<Item = Sentence>) -> Self {
        let mut all = self.clone();
        all.sentences.extend(more);
        all
    }

    /// Its languages, if it was made of corpora with languages.
    pub fn languages(&self) -> &[LanguagePart] {
        &self.languages
    }

    /// The code of a language, and the number of a sentence in its own file, from 0; without languages only the number.
    pub fn place(&self, sentence: usize) -> (Option<&str>, usize) {
        let part = self.languages.iter().find(|part| part.sentences.contains(&sentence));
        let place = |part: &LanguagePart| sentence - part.sentences.start;
        part.map_or((None, sentence), |part| (Some(&*part.code), place(part)))
    }

    /// The sentence at a [`Self::place`], if there is one.
    pub fn at(&self, (code, number): (Option<&str>, usize)) -> Option<usize> {
        let Some(code) = code else {
            return (self.languages.is_empty() && number < self.sentences.len()).then_some(number);
        };
        let part = self.languages.iter().find(|part| &*part.code == code)?;
        let at = part.sentences.start.checked_add(number)?;
        part.sentences.contains(&at).then_some(at)
    }

    /// Its entity types.
    pub fn types(&self) -> &EntityTypes {
        &self.types
    }

    /// The scheme its tags are valid in.
    pub fn scheme(&self) -> Scheme {
        self.scheme
    }

    /// Its sentences, in the order of the file.
    pub fn sentences(&self) -> &[Sentence] {
        &self.sentences
    }

    /// Writes CoNLL rows; sentences that did not come from a column file get `token TAB tag`.
    pub fn write_conll(&self, mut out: impl Write) -> io::Result<()> {
        let plain = (["", Separator::Tab.text(), ""], false);
        let mut lines = Vec::new();
        for (number, sentence) in self.sentences.iter().enumerate() {
            lines.clear();
            for comment in sentence.before() {
                lines.extend_from_slice(comment.as_bytes());
                lines.extend_from_slice(if is_document_start(comment) { b"\n\n" } else { b"\n" });
            }
            for (at, token) in sentence.tokens().iter().enumerate() {
                let around = sentence.frames().get(at).map_or(plain, Frame::around);
                let tag = self.types.spell(sentence.tags()[at], self.scheme);
                push_row(around, token.as_str(), tag, &mut lines);
                lines.push(b'\n');
            }
            lines.push(b'\n');
            if number == 0 {
                guard_mark(&mut lines);
            }
            out.write_all(&lines)?;
        }
        self.after.iter().try_for_each(|comment| writeln!(out, "{comment}"))?;
        out.flush()
    }
}
