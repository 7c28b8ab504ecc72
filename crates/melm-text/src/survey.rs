//! One pass over a whole file, which gives counts, the scheme and all problems.

use std::ops::Range;

use crate::conll::Layout;
use crate::error::Error;
use crate::format::{ReadOptions, Reader, Structure};
use crate::formats::Format;
use crate::notes::shown;
use crate::problem::{Fault, Problems};
use crate::record::Record;
use crate::scheme::{DetectedScheme, Scheme, Transitions};
use crate::source::Source;
use crate::tag::{EndLetters, EntityTypes, Tag};

/// The result of one pass over a file.
#[derive(Debug, Clone)]
pub struct Survey {
    /// How the file stores its sentences.
    pub structure: Structure,
    /// The entity types.
    pub types: EntityTypes,
    /// The number of sentences without a problem.
    pub n_sentences: usize,
    /// The number of tokens in these sentences.
    pub n_tokens: usize,
    /// The number of sentences of which a part of the rows cannot be read.
    pub n_incomplete: usize,
    /// The scheme: given, or detected from the tags.
    pub scheme: DetectedScheme,
    /// The comment lines after the last sentence.
    pub lines_after: Vec<String>,
    /// The places that cannot be read.
    pub problems: Problems,
    /// Tags that the scheme does not allow after the previous tag. Such tags can be read and repaired.
    pub violations: Problems,
}

impl Survey {
    /// Reads all of `source`. Calls `on_sentence` for each sentence without a problem, with the entity types so far and the
    /// number of bytes read so far.
    ///
    /// Fails as [`Structure::detect`] does. Problems of single lines are collected in the result:
    /// see [`Self::require_sound`].
    pub fn read<'t>(
        source: &'t Source,
        options: &ReadOptions,
        mut on_sentence: impl FnMut(&Record<'t>, &EntityTypes, usize),
    ) -> Result<Self, Error> {
        let structure = Structure::detect(source, options)?;
        let mut reader = Reader::with_structure(source, &structure);
        let mut record = Record::default();
        let mut types = EntityTypes::default();
        let mut problems = Problems::default();
        let mut transitions = Transitions::default();
        let (mut n_sentences, mut n_tokens, mut n_incomplete) = (0, 0, 0);
        while reader.read(&mut record, &mut types, &mut problems) {
            // A sentence without one of its rows has other tags, transitions and mentions than the file.
            if record.is_incomplete {
                n_incomplete += 1;
                continue;
            }
            n_sentences += 1;
            n_tokens += record.tokens.len();
            transitions.add(&record.tags);
            on_sentence(&record, &types, reader.position());
        }
        if n_sentences == 0 && problems.is_empty() {
            problems.push(1, 0..0, Fault::NoSentences);
        }
        let scheme = choose_scheme(options.scheme, &transitions, &types);
        let violations = find_violations(source, &structure, &scheme, types.end_letters());
        let lines_after = reader.lines_after().iter().map(|&line| line.to_owned()).collect();
        Ok(Self {
            structure,
            types,
            n_sentences,
            n_tokens,
            n_incomplete,
            scheme,
            lines_after,
            problems,
            violations,
        })
    }

    /// The format of the file.
    pub fn format(&self) -> Format {
        self.structure.format()
    }

    /// The columns of the file, if it is CoNLL.
    pub fn layout(&self) -> Option<&Layout> {
        self.structure.layout()
    }

    /// Fails with [`Error::Data`] if there are problems. If `repair` is false, tags that violate the scheme are
    /// problems too.
    pub fn require_sound(&self, source: &Source, repair: bool) -> Result<(), Error> {
        let mut problems = self.problems.clone();
        if !repair {
            problems.append(&self.violations);
        }
        if problems.is_empty() {
            Ok(())
        } else {
            Err(Error::data(source.name(), source.text(), problems))
        }
    }
}

/// Returns the given scheme, or else the one that fits the tags best.
fn choose_scheme(
    given: Option<Scheme>,
    transitions: &Transitions,
    types: &EntityTypes,
) -> DetectedScheme {
    match given {
        None => transitions.detect(types.end_letters()),
        Some(scheme) => DetectedScheme {
            scheme,
            n_violations: transitions.n_violations(scheme),
            also_valid: Vec::new(),
        },
    }
}

/// Returns the tags that violate the scheme. Reads the file again to find their lines, if there are some.
fn find_violations(
    source: &Source,
    structure: &Structure,
    detected: &DetectedScheme,
    letters: EndLetters,
) -> Problems {
    let mut violations = Problems::default();
    if letters.iobes && letters.bilou {
        violations.push(1, 0..0, Fault::MixedLetters);
    }
    if detected.n_violations == 0 {
        return violations;
    }
    let scheme = detected.scheme;
    let mut reader = Reader::with_structure(source, structure);
    let mut record = Record::default();
    let mut types = EntityTypes::default();
    let mut problems = Problems::default();
    while reader.read(&mut record, &mut types, &mut problems) {
        if record.is_incomplete {
            continue;
        }
        for at in scheme.violations(&record.tags) {
            let spell = |tag: Option<&Tag>, edge: &str| {
                let spelled = tag.map(|&tag| types.spell(tag, scheme).to_string());
                spelled.map_or(edge.to_owned(), |tag| format!("`{}`", shown(&tag)))
            };
            let before =
                spell(at.checked_sub(1).map(|b| &record.tags[b]), "the start of a sentence");
            let found = spell(record.tags.get(at), "the end of the sentence");
            let span = tag_span(&record, at, &reader);
            violations.push(record.line_of(at), span, Fault::TagSequence { found, before, scheme });
        }
    }
    violations
}

/// Returns the byte range of the tag of a token in its line. For JSON lines, returns that of the whole list of tags.
fn tag_span<'t>(record: &Record<'t>, token: usize, reader: &Reader<'t>) -> Range<usize> {
    match (record.rows.get(token).or(record.rows.last()), reader) {
        (Some(row), _) => row.tag.clone(),
        (None, Reader::Jsonl(reader)) => reader.tags_span(record),
        (None, Reader::Conll(_) | Reader::Documents(_)) => 0..0,
    }
}
