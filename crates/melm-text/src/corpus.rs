//! A corpus: sentences that are valid in one declared scheme.

use std::io::{self, Write};

use crate::conll::{Separator, guard_mark, is_document_start, push_row};
use crate::error::Error;
use crate::format::ReadOptions;
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
        Ok(Self { types, scheme, sentences, after: survey.after })
    }

    /// Makes a corpus of sentences, unless the tags of one are not valid in `scheme`: its position.
    pub fn new(
        types: EntityTypes,
        scheme: Scheme,
        sentences: Vec<Sentence>,
    ) -> Result<Self, usize> {
        match sentences.iter().position(|s| scheme.breaks(s.tags()).next().is_some()) {
            Some(broken) => Err(broken),
            None => Ok(Self { types, scheme, sentences, after: Vec::new() }),
        }
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
