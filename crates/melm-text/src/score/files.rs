//! Scores two files. Reads both sentence by sentence, without storing the sentences in memory.

use super::{Reading, Scores};
use crate::error::Error;
use crate::format::{ReadOptions, Reader};
use crate::problem::{Fault, Problems};
use crate::record::Record;
use crate::scheme::Scheme;
use crate::source::Source;
use crate::survey::Survey;
use crate::tag::{EntityTypes, Tag};

/// A file to score, with the settings for reading it.
#[derive(Debug, Clone, Copy)]
pub struct FileInput<'a> {
    /// The text.
    pub source: &'a Source,
    /// How to read it.
    pub options: &'a ReadOptions,
}

impl Scores {
    /// Scores the tags of `predicted` against those of `gold`. Calls `on_progress` with the number
    /// of bytes of `gold` read so far.
    ///
    /// Fails with [`Error::Data`] if a file has problems, and with [`Error::Mismatch`] if the files
    /// do not have the same sentences with the same tokens.
    pub fn from_files(
        gold: FileInput<'_>,
        predicted: FileInput<'_>,
        reading: Reading,
        mut on_progress: impl FnMut(usize),
    ) -> Result<Self, Error> {
        let sources = [gold.source, predicted.source];
        let mut scores = Scores::new(reading, EntityTypes::default());
        let mut readers = [
            Reader::new(gold.source, gold.options)?,
            Reader::new(predicted.source, predicted.options)?,
        ];
        let mut problems = [Problems::default(), Problems::default()];
        let mut records = [Record::default(), Record::default()];
        let mut mismatch = None;
        let mut n_sentences = 0;
        loop {
            let has_sentence = [0, 1]
                .map(|f| readers[f].read(&mut records[f], &mut scores.types, &mut problems[f]));
            if has_sentence == [false, false] {
                break;
            }
            n_sentences += 1;
            if mismatch.is_none() {
                mismatch = describe_mismatch(sources, &records, has_sentence);
            }
            if mismatch.is_none() {
                scores.add(&records[0].tags, &records[1].tags);
            }
            on_progress(readers[0].position());
        }
        if n_sentences == 0 && problems[0].is_empty() {
            problems[0].push(1, 0..0, Fault::NoSentences);
        }
        require_none(sources, problems)?;
        mismatch.map_or(Ok(scores), |what| Err(Error::Mismatch(what)))
    }
}

/// Fails with the problems of the first file that has some.
fn require_none(sources: [&Source; 2], problems: [Problems; 2]) -> Result<(), Error> {
    for (source, problems) in sources.into_iter().zip(problems) {
        if !problems.is_empty() {
            return Err(Error::data(source.name(), source.text(), problems));
        }
    }
    Ok(())
}

/// Returns the scheme of `gold`, which strict scoring uses for both files.
///
/// Fails with [`Error::Data`] if `gold` has problems, and with [`Error::ForeignTag`] if a tag of
/// either file has a prefix that the scheme does not use.
pub fn strict_scheme(gold: FileInput<'_>, predicted: FileInput<'_>) -> Result<Scheme, Error> {
    let survey = Survey::read(gold.source, gold.options, |_, _, _| {})?;
    survey.require_sound(gold.source, true)?;
    let scheme = survey.scheme.scheme;
    for FileInput { source, options } in [gold, predicted] {
        let mut foreign = None;
        Survey::read(source, options, |record, types, _| {
            if foreign.is_none() {
                let is_foreign =
                    |tag: &Tag| matches!(tag, Tag::In(prefix, _) if !scheme.uses(*prefix));
                foreign = record.tags.iter().position(is_foreign).map(|at| {
                    let tag = types.spell(record.tags[at], types.input_spelling()).to_string();
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

/// Describes the first difference between the tokens of two sentences. `has_sentence` is false for a file that has
/// ended. Returns `None` if the tokens are the same.
fn describe_mismatch(
    sources: [&Source; 2],
    records: &[Record<'_>; 2],
    has_sentence: [bool; 2],
) -> Option<String> {
    let [g, p] = sources.map(Source::name);
    let [gold, predicted] = records;
    match has_sentence {
        [true, false] => {
            return Some(format!("the sentence at {g}:{} is missing in {p}", gold.line));
        }
        [false, true] => {
            return Some(format!("the sentence at {p}:{} is missing in {g}", predicted.line));
        }
        _ if gold.tokens == predicted.tokens => return None,
        _ => {}
    }
    let n = gold.tokens.len().min(predicted.tokens.len());
    let at = (0..n).find(|&at| gold.tokens[at] != predicted.tokens[at]).unwrap_or(n);
    let show = |record: &Record<'_>| {
        record.tokens.get(at).map_or("the end of the sentence".into(), |token| format!("`{token}`"))
    };
    Some(format!(
        "the tokens differ: {g}:{} has {}, {p}:{} has {}",
        gold.line_of(at),
        show(gold),
        predicted.line_of(at),
        show(predicted)
    ))
}
