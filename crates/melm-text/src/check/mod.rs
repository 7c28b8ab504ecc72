//! The report of `melm check`: counts of the contents of a file, and places that look wrong.

mod checked_file;
mod repeats;
mod suspicion;

use std::collections::BTreeMap;

use serde::Serialize;

pub use checked_file::{CheckedFile, FileProblem, SplitDifference};
pub use repeats::{Repeat, RepeatCounts, Repeats, SeenSentences, SentenceLocation};
pub use suspicion::{Occurrence, Occurrences, Suspicion, Suspicions, has_joined_tags};

use crate::error::Error;
use crate::format::ReadOptions;
use crate::mention::mentions;
use crate::record::Record;
use crate::source::Source;
use crate::survey::Survey;
use crate::tag::{EntityType, EntityTypes};

/// The number of longest sentences in a report.
const N_LONGEST: usize = 3;

/// The contents of one file. It serialises to the JSON of `melm check --json`.
#[derive(Debug, Clone, Serialize)]
pub struct Report {
    /// The name of the file.
    pub file: String,
    /// `conll` or `jsonl`.
    pub format: &'static str,
    /// CoNLL: the columns.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub columns: Option<Columns>,
    /// The name of the scheme.
    pub scheme: &'static str,
    /// The number of tags that the scheme does not allow. If the scheme was detected, no other scheme has fewer.
    #[serde(skip_serializing_if = "is_zero")]
    pub scheme_violations: usize,
    /// The names of other schemes that all tags fit too.
    pub also_valid_as: Vec<&'static str>,
    /// The number of `-DOCSTART-` lines.
    pub documents: usize,
    /// The number of sentences whose rows can all be read.
    pub sentences: usize,
    /// The number of sentences of which a part of the rows cannot be read. The other numbers do not include them.
    #[serde(skip_serializing_if = "is_zero")]
    pub incomplete_sentences: usize,
    /// The number of these sentences without a mention.
    pub sentences_without_mention: usize,
    /// The number of tokens.
    pub tokens: usize,
    /// The number of mentions of each entity type.
    pub mentions: BTreeMap<String, usize>,
    /// The longest sentences, longest first.
    pub longest: Vec<LongSentence>,
    /// Sentences that also occur earlier in this file or in a file that was read before.
    pub repeats: Repeats,
    /// Places that look wrong but are not errors, by kind.
    pub suspicions: Suspicions,
}

/// The columns of a CoNLL file. Columns count from 1.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Columns {
    /// The number of columns.
    pub n: usize,
    /// The column of the token.
    pub token: usize,
    /// The column of the tag.
    pub tag: usize,
    /// Other columns that look like tags.
    pub also_tags: Vec<usize>,
}

/// The length and position of a long sentence.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct LongSentence {
    /// The number of tokens.
    pub tokens: usize,
    /// The line of the first token of the sentence, from 1.
    pub line: usize,
    /// BRAT: the name of the file with the text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<Box<str>>,
}

impl Report {
    /// Reads `source` and reports on it. `seen` contains the sentences of the files read before, to find repeated
    /// sentences. The sentences of this file are added to `seen`. Calls `on_progress` with the number of bytes read
    /// so far.
    ///
    /// Fails as [`Survey::read`] does. Problems of single lines are in the returned survey.
    pub fn read(
        source: &Source,
        options: &ReadOptions,
        seen: &mut SeenSentences,
        mut on_progress: impl FnMut(usize),
    ) -> Result<(Self, Survey), Error> {
        let mut tally = Tally::default();
        seen.start_file(source.name());
        let survey = Survey::read(source, options, |record, types, position| {
            tally.add(record, types);
            seen.add(record, types);
            on_progress(position);
        })?;
        let is_sound = survey.n_sentences > 0 && survey.problems.is_empty();
        tally.suspicions.check_types(&survey.types, &tally.by_type, is_sound);
        let mentions = tally
            .by_type
            .iter()
            .map(|(&t, of_type)| (survey.types.display_name(t).to_owned(), of_type.n_mentions));
        let report = Self {
            file: source.name().to_owned(),
            format: survey.format().name(),
            columns: survey.layout().map(|layout| Columns {
                n: layout.n_columns,
                token: layout.token + 1,
                tag: layout.tag + 1,
                also_tags: layout.also_tags.iter().map(|c| c + 1).collect(),
            }),
            scheme: survey.scheme.scheme.name(),
            scheme_violations: usize::try_from(survey.scheme.n_violations).unwrap_or(usize::MAX),
            also_valid_as: survey.scheme.also_valid.iter().map(|s| s.name()).collect(),
            documents: tally.documents,
            sentences: survey.n_sentences,
            incomplete_sentences: survey.n_incomplete,
            sentences_without_mention: tally.without_mention,
            tokens: survey.n_tokens,
            mentions: mentions.collect(),
            longest: tally.longest,
            repeats: seen.take_repeats(),
            suspicions: tally.suspicions,
        };
        Ok((report, survey))
    }

    /// The number of mentions of all types.
    pub fn n_mentions(&self) -> usize {
        self.mentions.values().sum()
    }
}

/// Returns true if a count is 0 and is therefore left out of the JSON form.
fn is_zero(n: &usize) -> bool {
    *n == 0
}

/// Counts collected while reading.
#[derive(Default)]
struct Tally {
    documents: usize,
    without_mention: usize,
    by_type: BTreeMap<EntityType, TypeTally>,
    longest: Vec<LongSentence>,
    suspicions: Suspicions,
}

/// The number of mentions of one entity type, and the line of the first one.
struct TypeTally {
    n_mentions: usize,
    /// The line of the first mention.
    line: usize,
    /// BRAT: the file of the first mention.
    file: Option<Box<str>>,
}

impl Tally {
    fn add(&mut self, record: &Record<'_>, types: &EntityTypes) {
        self.documents +=
            record.lines_before.iter().filter(|line| crate::conll::is_document_start(line)).count();
        let mut any = false;
        for mention in mentions(&record.tags) {
            any = true;
            let line = record.line_of(mention.tokens.start);
            let first = || TypeTally { n_mentions: 0, line, file: record.file.clone() };
            self.by_type.entry(mention.entity_type).or_insert_with(first).n_mentions += 1;
            self.suspicions.check_mention(record, &mention, types);
        }
        self.without_mention += usize::from(!any);
        self.suspicions.check_tokens(record);
        self.keep_if_long(record);
    }

    /// Keeps the sentence if it is one of the longest so far. Of equally long sentences, the earlier one is kept.
    fn keep_if_long(&mut self, record: &Record<'_>) {
        let (tokens, line) = (record.tokens.len(), record.line);
        let full = self.longest.len() == N_LONGEST;
        if full && self.longest.last().is_some_and(|last| last.tokens >= tokens) {
            return;
        }
        let at = self.longest.partition_point(|other| other.tokens >= tokens);
        self.longest.insert(at, LongSentence { tokens, line, file: record.file.clone() });
        self.longest.truncate(N_LONGEST);
    }
}
