//! Finds repeated sentences: duplicates within a file, and leaks between splits.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::Path;

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
    /// BRAT: the name of the file with the text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<Box<str>>,
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
    /// The names of the files. Each text of a BRAT folder is a file of its own.
    files: Vec<String>,
    /// The index of the first file of the current input.
    n_before: usize,
    /// The name of the current input.
    input: String,
    /// The name of the current text of a BRAT folder.
    part: Option<Box<str>>,
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
        self.n_before = self.files.len();
        self.files.push(name.to_owned());
        name.clone_into(&mut self.input);
        self.part = None;
    }

    /// Starts the next text of a BRAT folder, if the sentence is not in the current one.
    fn start_part(&mut self, record: &Record<'_>) {
        if record.file.is_some() && record.file != self.part {
            self.part.clone_from(&record.file);
            let (folder, part) =
                (self.input.trim_end_matches('/'), self.part.as_deref().unwrap_or_default());
            // A single pair is named by its annotations.
            let name = if Path::new(folder).extension().is_some_and(|extension| extension == "ann")
            {
                folder.to_owned()
            } else {
                format!("{folder}/{part}")
            };
            self.files.push(name);
        }
    }

    /// Adds a sentence. Counts it as a repeat if a sentence with the same tokens was added before.
    pub(super) fn add(&mut self, record: &Record<'_>, types: &EntityTypes) {
        self.start_part(record);
        let file = u32::try_from(self.files.len() - 1).expect("fewer than 2^32 files");
        let line = u32::try_from(record.line).unwrap_or(u32::MAX);
        let mentions = digest_mentions(record, types);
        let this = FirstOccurrence { file, line, mentions };
        let first = *self.by_digest.entry(digest_tokens(record)).or_insert(this);
        if (first.file, first.line) == (file, line) {
            return;
        }
        let is_leak = (first.file as usize) < self.n_before;
        let kind = if is_leak { &mut self.repeats.leaks } else { &mut self.repeats.duplicates };
        let same_mentions = first.mentions == mentions;
        kind.n += 1;
        kind.n_other_mentions += usize::from(!same_mentions);
        if kind.first.len() < N_KEPT {
            let name = self.files[first.file as usize].clone();
            let first = SentenceLocation { file: name, line: first.line as usize };
            let (line, file) = (record.line, record.file.clone());
            kind.first.push(Repeat { line, file, first, same_mentions });
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
