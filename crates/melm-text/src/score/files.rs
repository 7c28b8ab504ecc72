//! Scores of two files, read side by side.

use super::{Reading, Scores};
use crate::error::Error;
use crate::format::{ReadOptions, Reader};
use crate::problem::{Fault, Problems};
use crate::record::Record;
use crate::scheme::Scheme;
use crate::source::Source;
use crate::survey::Survey;
use crate::tag::{EntityTypes, Tag};

/// A file, and what is known about it.
pub type File<'a> = (&'a Source, &'a ReadOptions);

impl Scores {
    /// Scores the tags of `predicted` against those of `gold`, whose sentences and tokens must be
    /// the same. `progress` hears of the bytes of `gold` read so far.
    pub fn of_files(
        gold: File<'_>,
        predicted: File<'_>,
        reading: Reading,
        mut progress: impl FnMut(usize),
    ) -> Result<(Self, EntityTypes), Error> {
        let files = [gold, predicted];
        let mut scores = Scores::new(reading);
        let mut types = EntityTypes::default();
        let mut readers = [Reader::new(gold.0, gold.1)?, Reader::new(predicted.0, predicted.1)?];
        let mut problems = [Problems::default(), Problems::default()];
        let mut records = [Record::default(), Record::default()];
        let mut mismatch = None;
        let mut n_sentences = 0;
        loop {
            let [g, p] =
                [0, 1].map(|f| readers[f].read(&mut records[f], &mut types, &mut problems[f]));
            if !g && !p {
                break;
            }
            n_sentences += 1;
            if mismatch.is_none() {
                mismatch = differ([gold.0, predicted.0], &records, [g, p]);
            }
            if mismatch.is_none() {
                scores.add(&records[0].tags, &records[1].tags);
            }
            progress(readers[0].position());
        }
        if n_sentences == 0 && problems[0].is_empty() {
            problems[0].push(1, 0..0, Fault::NoSentence);
        }
        for ((source, _), problems) in files.into_iter().zip(problems) {
            if !problems.is_empty() {
                return Err(Error::data(source.name(), source.text(), problems));
            }
        }
        mismatch.map_or(Ok((scores, types)), |what| Err(Error::Mismatch(what)))
    }
}

/// The scheme for a strict reading of two files: that of `gold`, whose letters both must use.
pub fn strict_scheme(gold: File<'_>, predicted: File<'_>) -> Result<Scheme, Error> {
    let survey = Survey::read(gold.0, gold.1, |_, _, _| {})?;
    survey.require_sound(gold.0, true)?;
    let scheme = survey.scheme.scheme;
    for (source, options) in [gold, predicted] {
        let mut foreign = None;
        Survey::read(source, options, |record, types, _| {
            if foreign.is_none() {
                let is_foreign = |tag: &Tag| matches!(tag, Tag::In(part, _) if !scheme.has(*part));
                foreign = record.tags.iter().position(is_foreign).map(|at| {
                    let tag = types.spell(record.tags[at], types.own_spelling()).to_string();
                    (tag, source.name().to_owned(), record.line_of(at))
                });
            }
        })?;
        if let Some((tag, name, line)) = foreign {
            return Err(Error::ForeignTag { tag, name, line, scheme });
        }
    }
    Ok(scheme)
}

/// What differs between two sentences that should be the same.
fn differ(sources: [&Source; 2], records: &[Record<'_>; 2], read: [bool; 2]) -> Option<String> {
    let [g, p] = sources.map(Source::name);
    let [gold, predicted] = records;
    match read {
        [true, false] => return Some(format!("{g}:{} has no counterpart in {p}", gold.line)),
        [false, true] => return Some(format!("{p}:{} has no counterpart in {g}", predicted.line)),
        _ if gold.tokens == predicted.tokens => return None,
        _ => {}
    }
    let n = gold.tokens.len().min(predicted.tokens.len());
    let at = (0..n).find(|&at| gold.tokens[at] != predicted.tokens[at]).unwrap_or(n);
    let show = |record: &Record<'_>| {
        record.tokens.get(at).map_or("the end of the sentence".into(), |token| format!("`{token}`"))
    };
    Some(format!(
        "{g}:{} has {} where {p}:{} has {}",
        gold.line_of(at),
        show(gold),
        predicted.line_of(at),
        show(predicted)
    ))
}
