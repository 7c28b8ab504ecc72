//! A whole file read once: what is in it, in which scheme, and everything wrong with it.

use crate::conll::Layout;
use crate::error::Error;
use crate::format::{Format, ReadOptions, Reader};
use crate::problem::{Fault, Problems};
use crate::record::Record;
use crate::scheme::{Detected, Scheme, Transitions};
use crate::source::Source;
use crate::tag::{EntityTypes, Tag};

/// What one pass over a file found.
#[derive(Debug, Clone)]
pub struct Survey {
    /// Its format.
    pub format: Format,
    /// Its columns, if it has any.
    pub layout: Option<Layout>,
    /// Its entity types.
    pub types: EntityTypes,
    /// Its sentences.
    pub n_sentences: usize,
    /// Their tokens.
    pub n_tokens: usize,
    /// Its scheme, told from its tags or given.
    pub scheme: Detected,
    /// Comment lines after its last sentence.
    pub after: Vec<String>,
    /// What cannot be read.
    pub problems: Problems,
    /// Tags that the scheme does not allow where they stand: readable, repairable.
    pub breaks: Problems,
}

impl Survey {
    /// Reads all of `source`, handing each sentence to `each` with the bytes read so far.
    pub fn read<'t>(
        source: &'t Source,
        options: &ReadOptions,
        mut each: impl FnMut(&Record<'t>, &EntityTypes, usize),
    ) -> Result<Self, Error> {
        let mut reader = Reader::new(source, options)?;
        let mut record = Record::default();
        let mut types = EntityTypes::default();
        let mut problems = Problems::default();
        let mut transitions = Transitions::default();
        let (mut n_sentences, mut n_tokens) = (0, 0);
        let mut n_problems = 0;
        while reader.read(&mut record, &mut types, &mut problems) {
            n_sentences += 1;
            n_tokens += record.tokens.len();
            // A sentence with a hole says nothing about what may follow what.
            if problems.len() == n_problems {
                transitions.add(&record.tags);
            }
            n_problems = problems.len();
            each(&record, &types, reader.position());
        }
        if n_sentences == 0 && problems.is_empty() {
            problems.push(1, 0..0, Fault::NoSentence);
        }
        let scheme = match options.scheme {
            None => transitions.detect(types.end_letters()),
            Some(scheme) => {
                Detected { scheme, n_breaks: transitions.n_breaks(scheme), also: Vec::new() }
            }
        };
        let mut breaks = Problems::default();
        let letters = types.end_letters();
        if letters.iobes && letters.bilou {
            breaks.push(1, 0..0, Fault::MixedLetters);
        }
        if scheme.n_breaks > 0 {
            find_breaks(source, options, scheme.scheme, &mut breaks)?;
        }
        let format = reader.format();
        let after = reader.after().iter().map(|&line| line.to_owned()).collect();
        let layout = match reader {
            Reader::Conll(_, layout) => Some(layout),
            Reader::Jsonl(_) => None,
        };
        Ok(Self { format, layout, types, n_sentences, n_tokens, scheme, after, problems, breaks })
    }

    /// Refuses a file with problems; with breaks of its scheme too, unless they will be repaired.
    pub fn require_sound(&self, source: &Source, repair: bool) -> Result<(), Error> {
        let mut problems = self.problems.clone();
        if !repair {
            problems.append(&self.breaks);
        }
        if problems.is_empty() {
            Ok(())
        } else {
            Err(Error::data(source.name(), source.text(), problems))
        }
    }
}

/// Reads again, for the lines of what breaks the scheme.
fn find_breaks(
    source: &Source,
    options: &ReadOptions,
    scheme: Scheme,
    breaks: &mut Problems,
) -> Result<(), Error> {
    let mut reader = Reader::new(source, options)?;
    let mut record = Record::default();
    let mut types = EntityTypes::default();
    let mut problems = Problems::default();
    let mut n_problems = 0;
    while reader.read(&mut record, &mut types, &mut problems) {
        let has_hole = problems.len() > n_problems;
        n_problems = problems.len();
        if has_hole {
            continue;
        }
        for at in scheme.breaks(&record.tags) {
            let spell = |tag: Option<&Tag>, edge: &str| {
                tag.map_or(edge.to_owned(), |&tag| format!("`{}`", types.spell(tag, scheme)))
            };
            let before =
                spell(at.checked_sub(1).map(|b| &record.tags[b]), "the start of a sentence");
            let found = spell(record.tags.get(at), "the end of the sentence");
            let span = place(&record, at, &reader);
            breaks.push(record.line_of(at), span, Fault::Sequence { found, before, scheme });
        }
    }
    Ok(())
}

/// Where in its line the tag of a token stands: in its row, or somewhere in the list of tags.
fn place<'t>(record: &Record<'t>, token: usize, reader: &Reader<'t>) -> std::ops::Range<usize> {
    match (record.rows.get(token).or(record.rows.last()), reader) {
        (Some(row), _) => row.tag.0..row.tag.1,
        (None, Reader::Jsonl(reader)) => reader.place_of_tags(record),
        (None, Reader::Conll(..)) => 0..0,
    }
}
