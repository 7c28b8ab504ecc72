//! Sentences that stand twice: duplicates within a file, leaks between splits.

use std::hash::{DefaultHasher, Hash, Hasher};

use serde::Serialize;

use crate::hash::FastMap;
use crate::record::Record;
use crate::tag::EntityTypes;

/// Where a sentence stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Place {
    /// Its file.
    pub file: String,
    /// Its first line.
    pub line: usize,
}

/// A sentence whose tokens were seen before.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Repeat {
    /// Where it stands now.
    pub line: usize,
    /// Where it stood first.
    pub first: Place,
    /// Whether its mentions are the same too.
    pub same_mentions: bool,
}

/// Repeated sentences of one kind.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Repeated {
    /// How many.
    pub n: usize,
    /// How many of them with other mentions than the first time.
    pub n_other_mentions: usize,
    /// The first of them.
    pub first: Vec<Repeat>,
}

/// The repeated sentences of one file.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Repeats {
    /// Seen before in the same file.
    pub duplicates: Repeated,
    /// Seen in a file given before it: leaks from one split into another.
    pub leaks: Repeated,
}

/// How many of each kind are kept with their place.
const N_PLACES: usize = 5;

/// All sentences seen so far, as digests of 64 bits: among a million sentences the chance of one
/// collision is below 1 in 10 million. The table takes about
/// 55 bytes a distinct sentence (measured with 1.5 million), whatever its length.
#[derive(Debug, Default)]
pub struct Memory {
    files: Vec<String>,
    seen: FastMap<u64, Seen>,
    found: Repeats,
}

#[derive(Debug, Clone, Copy)]
struct Seen {
    file: u32,
    line: u32,
    mentions: u32,
}

impl Memory {
    /// What follows comes from another file.
    pub fn next_file(&mut self, name: &str) {
        self.files.push(name.to_owned());
    }

    /// Looks a sentence up, and remembers it.
    pub fn add(&mut self, record: &Record<'_>, types: &EntityTypes) {
        let file = u32::try_from(self.files.len() - 1).expect("fewer than 2^32 files");
        let line = u32::try_from(record.line).unwrap_or(u32::MAX);
        let mentions = digest_mentions(record, types);
        let first =
            *self.seen.entry(digest_tokens(record)).or_insert(Seen { file, line, mentions });
        if (first.file, first.line) == (file, line) {
            return;
        }
        let leak = first.file != file;
        let kind = if leak { &mut self.found.leaks } else { &mut self.found.duplicates };
        let same_mentions = first.mentions == mentions;
        kind.n += 1;
        kind.n_other_mentions += usize::from(!same_mentions);
        if kind.first.len() < N_PLACES {
            let name = self.files[first.file as usize].clone();
            let first = Place { file: name, line: first.line as usize };
            kind.first.push(Repeat { line: record.line, first, same_mentions });
        }
    }

    /// The repeats of the current file.
    pub(super) fn take(&mut self) -> Repeats {
        std::mem::take(&mut self.found)
    }
}

fn digest_tokens(record: &Record<'_>) -> u64 {
    let mut hasher = DefaultHasher::new();
    record.tokens.hash(&mut hasher);
    hasher.finish()
}

/// Mentions are the same in every scheme once they are spelt in one.
fn digest_mentions(record: &Record<'_>, types: &EntityTypes) -> u32 {
    let mut hasher = DefaultHasher::new();
    for mention in crate::mention::mentions(&record.tags) {
        mention.tokens.hash(&mut hasher);
        types.name(mention.entity_type).hash(&mut hasher);
    }
    #[expect(clippy::cast_possible_truncation, reason = "half of a digest is one too")]
    let half = hasher.finish() as u32;
    half
}
