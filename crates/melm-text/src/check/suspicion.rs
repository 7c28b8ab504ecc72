//! Finds places that look wrong but are not errors.

use std::collections::BTreeMap;

use serde::{Serialize, Serializer};

use super::TypeTally;
use crate::mention::Mention;
use crate::notes::shown;
use crate::record::Record;
use crate::tag::{EntityType, EntityTypes};

/// If a sentence has more tokens, an empty line is probably missing in it.
const LONG_SENTENCE: usize = 200;
/// If a mention has more tokens, it is probably an annotation error.
const LONG_MENTION: usize = 15;
/// If a type has fewer mentions, its name may be misspelt, or it is too rare to learn.
const FEW_MENTIONS: usize = 3;
/// The number of places of each kind that are stored.
const N_KEPT: usize = 5;

/// Places that look wrong, by kind.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct Suspicions(BTreeMap<Suspicion, Occurrences>);

/// How often a kind of suspicion occurs, and where.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Occurrences {
    /// The number of occurrences.
    pub n: usize,
    /// The first occurrences.
    pub first: Vec<Occurrence>,
}

/// One occurrence. In JSON it is a list of the line and the description, and the file if there is one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Occurrence {
    /// The line, from 1.
    pub line: usize,
    /// A description.
    pub what: String,
    /// BRAT: the name of the file with the text.
    pub file: Option<Box<str>>,
}

impl Serialize for Occurrence {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match &self.file {
            None => (self.line, &self.what).serialize(serializer),
            Some(file) => (self.line, &self.what, file).serialize(serializer),
        }
    }
}

/// A line, and the file with the text for BRAT.
#[derive(Clone, Copy)]
struct Location<'r> {
    line: usize,
    file: Option<&'r str>,
}

impl<'r> Location<'r> {
    fn of_token(record: &'r Record<'_>, token: usize) -> Self {
        Self { line: record.line_of(token), file: record.file.as_deref() }
    }
}

/// A kind of place that looks wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Suspicion {
    /// A sentence of more than 200 tokens.
    LongSentence,
    /// A mention of more than 15 tokens.
    LongMention,
    /// A mention that starts or ends with a punctuation mark.
    MentionEdge,
    /// A zero-width, control or replacement character in a token.
    OddCharacter,
    /// UTF-8 that was decoded as Latin-1, as in `MÃ¼ller`.
    Mojibake,
    /// A space inside a token.
    InnerSpace,
    /// A type with one or two mentions.
    RareType,
    /// Two types whose names differ in case only.
    TypeCase,
    /// A type whose name contains another tag, as in `B-PER|B-ORG`.
    JoinedTags,
    /// No mention in the whole file.
    NoMention,
}

impl Suspicion {
    /// A description for the user.
    pub fn text(self) -> &'static str {
        match self {
            Self::LongSentence => "sentence of more than 200 tokens: is an empty line missing?",
            Self::LongMention => "mention of more than 15 tokens",
            Self::MentionEdge => "mention that starts or ends with punctuation",
            Self::OddCharacter => "token with an invisible or broken character",
            Self::Mojibake => "token that looks like UTF-8 read as Latin-1",
            Self::InnerSpace => "token with a space inside",
            Self::RareType => "entity type with fewer than 3 mentions: misspelt?",
            Self::TypeCase => "entity types that differ in case only",
            Self::JoinedTags => {
                "entity type that looks like several tags: melm reads one tag for each token, and takes this as one type"
            }
            Self::NoMention => "no mention in the whole file",
        }
    }
}

impl Suspicions {
    /// Returns all kinds that occur, with their occurrences.
    pub fn iter(&self) -> impl Iterator<Item = (Suspicion, &Occurrences)> {
        self.0.iter().map(|(&kind, found)| (kind, found))
    }

    /// Returns true if nothing looks wrong.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Counts an occurrence. Calls `describe` only if the occurrence is also stored.
    fn push(&mut self, kind: Suspicion, at: Location<'_>, describe: impl FnOnce() -> String) {
        let found = self.0.entry(kind).or_default();
        found.n += 1;
        if found.first.len() < N_KEPT {
            let (line, file) = (at.line, at.file.map(Into::into));
            found.first.push(Occurrence { line, what: describe(), file });
        }
    }

    /// Checks the length and the tokens of a sentence.
    pub(super) fn check_tokens(&mut self, record: &Record<'_>) {
        if record.tokens.len() > LONG_SENTENCE {
            let n = record.tokens.len();
            let at = Location { line: record.line, file: record.file.as_deref() };
            self.push(Suspicion::LongSentence, at, || format!("{n} tokens"));
        }
        for (index, token) in record.tokens.iter().enumerate() {
            let plain = token.bytes().all(|b| b.is_ascii_graphic());
            if plain {
                continue;
            }
            let at = Location::of_token(record, index);
            let describe = || shown(token);
            if token.contains(' ') {
                self.push(Suspicion::InnerSpace, at, describe);
            }
            if token.chars().any(is_odd) {
                self.push(Suspicion::OddCharacter, at, describe);
            }
            if is_mojibake(token) {
                self.push(Suspicion::Mojibake, at, describe);
            }
        }
    }

    /// Checks the length and the ends of a mention.
    pub(super) fn check_mention(
        &mut self,
        record: &Record<'_>,
        mention: &Mention,
        types: &EntityTypes,
    ) {
        let tokens = &record.tokens[mention.tokens.clone()];
        let at = Location::of_token(record, mention.tokens.start);
        let describe = || {
            let name = shown(types.display_name(mention.entity_type));
            format!("{name} `{}`", shown(&tokens.join(" ")))
        };
        if tokens.len() > LONG_MENTION {
            let n = tokens.len();
            self.push(Suspicion::LongMention, at, || format!("{}, {n} tokens", describe()));
        }
        let (first, last) = (&*tokens[0], &*tokens[tokens.len() - 1]);
        if NEVER_FIRST.contains(&first) || NEVER_LAST.contains(&last) {
            self.push(Suspicion::MentionEdge, at, describe);
        }
    }

    /// Checks the entity types of a whole file. `is_sound` is true if the file has sentences and no problems.
    pub(super) fn check_types(
        &mut self,
        types: &EntityTypes,
        by_type: &BTreeMap<EntityType, TypeTally>,
        is_sound: bool,
    ) {
        let mut lower: BTreeMap<String, EntityType> = BTreeMap::new();
        for (&entity_type, tally) in by_type {
            let n = tally.n_mentions;
            let at = Location { line: tally.line, file: tally.file.as_deref() };
            let name = types.display_name(entity_type);
            if n < FEW_MENTIONS {
                self.push(Suspicion::RareType, at, || format!("`{}`: {n}", shown(name)));
            }
            if let Some(&other) = lower.get(&name.to_lowercase()) {
                let other = types.display_name(other);
                let names = || format!("`{}` and `{}`", shown(name), shown(other));
                self.push(Suspicion::TypeCase, at, names);
            }
            lower.insert(name.to_lowercase(), entity_type);
            if has_joined_tags(name) {
                self.push(Suspicion::JoinedTags, at, || format!("`{}`: {n}", shown(name)));
            }
        }
        if by_type.is_empty() && is_sound {
            let at = Location { line: 1, file: None };
            self.push(Suspicion::NoMention, at, || "every tag is `O`".to_owned());
        }
    }
}

/// Returns true for invisible characters and for U+FFFD, which decoders write for invalid bytes.
fn is_odd(c: char) -> bool {
    matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}' | '\u{feff}' | '\u{ad}' | '\u{fffd}')
        || c.is_control()
}

/// Returns true if the token contains a UTF-8 sequence that was decoded as Latin-1.
fn is_mojibake(token: &str) -> bool {
    let mut chars = token.chars().peekable();
    while let Some(c) = chars.next() {
        if matches!(c, 'Ã' | 'Â') && chars.peek().is_some_and(|n| ('\u{80}'..='\u{bf}').contains(n))
        {
            return true;
        }
    }
    false
}

/// Characters that join the tags of nested mentions in one column.
const TAG_JOINERS: [char; 6] = ['|', ';', ',', '/', '+', '&'];

/// Returns true if a part of the name of a type is a tag, as in `PER|B-ORG`, which the tag `B-PER|B-ORG` has. Names such as
/// `PER/LOC` and `A+B` are no joined tags.
pub fn has_joined_tags(name: &str) -> bool {
    let is_tag = |part: &str| {
        let rest = part.trim().strip_prefix(['B', 'I', 'E', 'S', 'L', 'U']);
        let rest = rest.and_then(|rest| rest.strip_prefix(['-', '_']));
        rest.is_some_and(|rest| !rest.is_empty())
    };
    let mut parts = name.split(TAG_JOINERS).skip(1);
    parts.any(is_tag) || name.ends_with("|O") || name.contains("|O|")
}

/// Punctuation marks with which no correct mention starts.
const NEVER_FIRST: [&str; 7] = [",", ".", ";", ":", "!", "?", ")"];
/// Punctuation marks with which no correct mention ends. A full stop may belong to an abbreviation.
const NEVER_LAST: [&str; 4] = [",", ";", ":", "("];
