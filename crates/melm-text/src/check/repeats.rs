//! Finds repeated sentences: duplicates within a file, and leaks between splits.

use std::hash::{DefaultHasher, Hash, Hasher};

use rustc_hash::FxHashMap;
use serde::Serialize;

use crate::record::Record;
use crate::tag::EntityTypes;

/// The position of a sentence.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SentenceLocation {
    /// The name of the file.
    pub file: String,
    /// The line of the first token, from 1.
    pub line: usize,
}

/// A sentence with the same tokens as an earlier one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Repeat {
    /// The line of the sentence.
    pub line: usize,
    /// The position of the first sentence with these tokens.
    pub first: SentenceLocation,
    /// True if the mentions are the same too.
    pub same_mentions: bool,
}

/// Repeated sentences of one kind.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct RepeatCounts {
    /// The number of repeated sentences.
    pub n: usize,
    /// The number of repeated sentences whose mentions differ from those of the first occurrence.
    pub n_other_mentions: usize,
    /// The first few repeated sentences.
    pub first: Vec<Repeat>,
}

/// The repeated sentences of one file.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Repeats {
    /// Sentences that occur earlier in the same file.
    pub duplicates: RepeatCounts,
    /// Sentences that occur in a file that was read before: leaks from one split into another.
    pub leaks: RepeatCounts,
}

/// The number of repeats of each kind whose positions are stored.
const N_KEPT: usize = 5;

/// The sentences of all files read so far, as 64-bit digests.
///
/// Among a million sentences, the chance of one collision is below 1 in 10 million. The table takes about 55 bytes for
/// each distinct sentence of any length (measured with 1.5 million sentences).
#[derive(Debug, Default)]
pub struct SeenSentences {
    files: Vec<String>,
    by_digest: FxHashMap<u64, FirstOccurrence>,
    /// The repeats of the current file.
    repeats: Repeats,
}

/// The first occurrence of a sequence of tokens.
#[derive(Debug, Clone, Copy)]
struct FirstOccurrence {
    /// The index of the file in the list of file names.
    file: u32,
    line: u32,
    /// The digest of the mentions of the sentence.
    mentions: u32,
}

impl SeenSentences {
    /// Starts the next file. Sentences added from now on belong to this file.
    pub(super) fn start_file(&mut self, name: &str) {
        self.files.push(name.to_owned());
    }

    /// Adds a sentence. Counts it as a repeat if a sentence with the same tokens was added before.
    pub(super) fn add(&mut self, record: &Record<'_>, types: &EntityTypes) {
        let file = u32::try_from(self.files.len() - 1).expect("fewer than 2^32 files");
        let line = u32::try_from(record.line).unwrap_or(u32::MAX);
        let mentions = digest_mentions(record, types);
        let this = FirstOccurrence { file, line, mentions };
        let first = *self.by_digest.entry(digest_tokens(record)).or_insert(this);
        if (first.file, first.line) == (file, line) {
            return;
        }
        let is_leak = first.file != file;
        let kind = if is_leak { &mut self.repeats.leaks } else { &mut self.repeats.duplicates };
        let same_mentions = first.mentions == mentions;
        kind.n += 1;
        kind.n_other_mentions += usize::from(!same_mentions);
        if kind.first.len() < N_KEPT {
            let name = self.files[first.file as usize].clone();
            let first = SentenceLocation { file: name, line: first.line as usize };
            kind.first.push(Repeat { line: record.line, first, same_mentions });
        }
    }

    /// Returns the repeats of the current file, and forgets them.
    pub(super) fn take_repeats(&mut self) -> Repeats {
        std::mem::take(&mut self.repeats)
    }
}

fn digest_tokens(record: &Record<'_>) -> u64 {
    let mut hasher = DefaultHasher::new();
    record.tokens.hash(&mut hasher);
    hasher.finish()
}

/// Returns a digest of the spans and type names of all mentions. It does not depend on the tag scheme of the file.
fn digest_mentions(record: &Record<'_>, types: &EntityTypes) -> u32 {
    let mut hasher = DefaultHasher::new();
    for mention in crate::mention::mentions(&record.tags) {
        mention.tokens.hash(&mut hasher);
        types.name(mention.entity_type).hash(&mut hasher);
    }
    #[expect(clippy::cast_possible_truncation, reason = "half of a digest is a digest too")]
    let half = hasher.finish() as u32;
    half
}
