//! What is in a file, and what in it is suspicious: everything `melm check` says.

mod repeats;
mod suspicion;

use std::collections::BTreeMap;

use serde::Serialize;

pub use repeats::{Memory, Place, Repeat, Repeated, Repeats};
pub use suspicion::{Found, Suspicion, Suspicions};

use crate::error::Error;
use crate::format::ReadOptions;
use crate::mention::mentions;
use crate::record::Record;
use crate::source::Source;
use crate::survey::Survey;
use crate::tag::{EntityType, EntityTypes};

/// How many of the longest sentences are named.
const N_LONGEST: usize = 3;

/// What one file holds.
#[derive(Debug, Clone, Serialize)]
pub struct Report {
    /// The file.
    pub file: String,
    /// `conll` or `jsonl`.
    pub format: &'static str,
    /// Columns in use, from 1: token, tag; and others that look like tags.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub columns: Option<Columns>,
    /// Its scheme.
    pub scheme: &'static str,
    /// Schemes in which it is just as valid.
    pub also_valid_as: Vec<&'static str>,
    /// Its `-DOCSTART-` lines.
    pub documents: usize,
    /// Its sentences.
    pub sentences: usize,
    /// Sentences without any mention.
    pub sentences_without_mention: usize,
    /// Its tokens.
    pub tokens: usize,
    /// Its mentions, by type.
    pub mentions: BTreeMap<String, usize>,
    /// Line and tokens of the longest sentences.
    pub longest: Vec<Long>,
    /// Sentences seen before, in this file or an earlier one.
    pub repeats: Repeats,
    /// What looks wrong without being an error, by kind.
    pub suspicions: Suspicions,
}

/// Which columns hold what, from 1.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Columns {
    /// How many there are.
    pub n: usize,
    /// The token's.
    pub token: usize,
    /// The tag's.
    pub tag: usize,
    /// Others that look like tags.
    pub also_tags: Vec<usize>,
}

/// A long sentence.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Long {
    /// Its tokens.
    pub tokens: usize,
    /// Where it starts.
    pub line: usize,
}

impl Report {
    /// Reads `source` and reports on it. `seen` carries sentences from one split to the next;
    /// `progress` hears of the bytes read so far.
    pub fn read(
        source: &Source,
        options: &ReadOptions,
        seen: &mut Memory,
        mut progress: impl FnMut(usize),
    ) -> Result<(Self, Survey), Error> {
        let mut tally = Tally::default();
        seen.next_file(source.name());
        let survey = Survey::read(source, options, |record, types, position| {
            tally.add(record, types);
            seen.add(record, types);
            progress(position);
        })?;
        tally.suspicions.of_types(&survey.types, &tally.by_type, survey.n_sentences);
        let mentions =
            tally.by_type.iter().map(|(&t, &(n, _))| (survey.types.shown(t).to_owned(), n));
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
            also_valid_as: survey.scheme.also.iter().map(|s| s.name()).collect(),
            documents: tally.documents,
            sentences: survey.n_sentences,
            sentences_without_mention: tally.without_mention,
            tokens: survey.n_tokens,
            mentions: mentions.collect(),
            longest: tally.longest,
            repeats: seen.take(),
            suspicions: tally.suspicions,
        };
        Ok((report, survey))
    }

    /// All mentions.
    pub fn n_mentions(&self) -> usize {
        self.mentions.values().sum()
    }
}

#[derive(Default)]
struct Tally {
    documents: usize,
    without_mention: usize,
    by_type: BTreeMap<EntityType, (usize, usize)>,
    longest: Vec<Long>,
    suspicions: Suspicions,
}

impl Tally {
    fn add(&mut self, record: &Record<'_>, types: &EntityTypes) {
        self.documents +=
            record.before.iter().filter(|line| crate::conll::is_document_start(line)).count();
        let mut any = false;
        for mention in mentions(&record.tags) {
            any = true;
            let line = record.line_of(mention.tokens.start);
            self.by_type.entry(mention.entity_type).or_insert((0, line)).0 += 1;
            self.suspicions.of_mention(record, &mention, types);
        }
        self.without_mention += usize::from(!any);
        self.suspicions.of_tokens(record);
        self.keep_if_long(Long { tokens: record.tokens.len(), line: record.line });
    }

    fn keep_if_long(&mut self, long: Long) {
        let full = self.longest.len() == N_LONGEST;
        if full && self.longest.last().is_some_and(|last| last.tokens >= long.tokens) {
            return;
        }
        let at = self.longest.partition_point(|other| other.tokens >= long.tokens);
        self.longest.insert(at, long);
        self.longest.truncate(N_LONGEST);
    }
}
