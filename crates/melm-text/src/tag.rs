//! Tags: `O`, or a part letter with an entity type (`B-PER`).
//!
//! Entity types are interned in [`EntityTypes`], so a [`Tag`] is a small `Copy` value and a corpus
//! of a million sentences costs no string per token.

use std::collections::HashMap;
use std::fmt;

use thiserror::Error;

use crate::scheme::Scheme;

/// An entity type such as `PER`: a handle into the [`EntityTypes`] that made it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct EntityType(u32);

impl EntityType {
    /// Position in its [`EntityTypes`], in order of first appearance.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// Which part of a mention a token is. `BILOU` spells `End` as `L` and `Single` as `U`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Part {
    /// `B`
    Begin,
    /// `I`
    Inside,
    /// `E` or `L`
    End,
    /// `S` or `U`
    Single,
}

/// The tag of one token.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Tag {
    /// `O`: the token belongs to no mention.
    Outside,
    /// The token is this part of a mention of that type.
    In(Part, EntityType),
}

impl Tag {
    /// The entity type, unless the token is outside.
    pub fn entity_type(self) -> Option<EntityType> {
        match self {
            Tag::Outside => None,
            Tag::In(_, entity_type) => Some(entity_type),
        }
    }

    /// Returns the tag with its type replaced by `types[index of the type]`, where `types` is a
    /// result of [`EntityTypes::merge`].
    #[must_use]
    pub fn with_type_from(self, types: &[EntityType]) -> Self {
        match self {
            Tag::Outside => Tag::Outside,
            Tag::In(part, entity_type) => Tag::In(part, types[entity_type.index()]),
        }
    }
}

/// Why a text is not a tag.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum TagFault {
    /// No part letter, or one that no scheme has.
    #[error("`{0}` is not a tag: expected `O`, or one of B I E S L U, a hyphen and an entity type")]
    NotATag(String),
    /// `B-`: a hyphen with nothing after it.
    #[error("`{0}` is not a tag: no entity type after the hyphen")]
    NoType(String),
    /// A break, or a space at its edge, which a column file cannot hold.
    #[error("`{0}` is not a tag: its entity type holds a break or starts or ends with a space")]
    BadType(String),
}

/// How much of a text that is no tag is repeated in a message.
const LONGEST_SHOWN: usize = 60;

/// `text` for a message: short, and without what would reach the terminal as a command.
fn quoted(text: &str) -> String {
    let shown: String = text.chars().take(LONGEST_SHOWN).flat_map(char::escape_debug).collect();
    if text.chars().count() > LONGEST_SHOWN { shown + "…" } else { shown }
}

/// The letters `E`/`S` and `L`/`U` say the same in two schemes; which of them a file used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct EndLetters {
    /// `E` or `S` was seen.
    pub iobes: bool,
    /// `L` or `U` was seen.
    pub bilou: bool,
}

/// The names of all entity types met so far.
///
/// ```
/// use melm_text::{EntityTypes, Scheme};
/// let mut types = EntityTypes::default();
/// let tag = types.parse("B-politicalparty").unwrap();
/// assert_eq!(types.spell(tag, Scheme::Iob2).to_string(), "B-politicalparty");
/// assert!(types.parse("politicalparty").is_err());
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EntityTypes {
    names: Vec<Box<str>>,
    by_name: HashMap<Box<str>, EntityType>,
    end_letters: EndLetters,
}

impl EntityTypes {
    /// Parses a tag, remembering its type. A bare part letter (`B`) is a tag of the nameless type.
    pub fn parse(&mut self, text: &str) -> Result<Tag, TagFault> {
        let Some((part, name)) = split(text)? else {
            return Ok(Tag::Outside);
        };
        match text.as_bytes()[0] {
            b'E' | b'S' => self.end_letters.iobes = true,
            b'L' | b'U' => self.end_letters.bilou = true,
            _ => {}
        }
        Ok(Tag::In(part, self.intern(name)))
    }

    /// The handle of the type called `name`, made if it is new.
    pub fn intern(&mut self, name: &str) -> EntityType {
        if let Some(&known) = self.by_name.get(name) {
            return known;
        }
        let new = EntityType(u32::try_from(self.names.len()).expect("fewer than 2^32 types"));
        self.names.push(name.into());
        self.by_name.insert(name.into(), new);
        new
    }

    /// Adds all types of `other`. Returns the handle here of each type of `other`, in its order.
    pub fn merge(&mut self, other: &EntityTypes) -> Vec<EntityType> {
        other.names.iter().map(|name| self.intern(name)).collect()
    }

    /// The handle of the type called `name`, if it was met.
    pub fn find(&self, name: &str) -> Option<EntityType> {
        self.by_name.get(name).copied()
    }

    /// The name of a type; empty for the nameless type of bare `B` and `I` tags.
    pub fn name(&self, entity_type: EntityType) -> &str {
        &self.names[entity_type.index()]
    }

    /// The name to show a person: seqeval's `_` for the nameless type, unless one is called so.
    pub fn shown(&self, entity_type: EntityType) -> &str {
        match self.name(entity_type) {
            "" if !self.by_name.contains_key("_") => "_",
            name => name,
        }
    }

    /// All types, in order of first appearance.
    pub fn iter(&self) -> impl Iterator<Item = EntityType> + use<> {
        (0..u32::try_from(self.names.len()).expect("fewer than 2^32 types")).map(EntityType)
    }

    /// All types, by name.
    pub fn sorted(&self) -> Vec<EntityType> {
        let mut types: Vec<_> = self.iter().collect();
        types.sort_by_key(|&t| self.name(t));
        types
    }

    /// Which spelling of the last and of the only token was met.
    pub fn end_letters(&self) -> EndLetters {
        self.end_letters
    }

    /// A scheme that spells tags with the letters they were read with.
    pub fn own_spelling(&self) -> Scheme {
        let letters = self.end_letters;
        if letters.bilou && !letters.iobes { Scheme::Bilou } else { Scheme::Iobes }
    }

    /// The tag's text in a scheme.
    pub fn spell(&self, tag: Tag, scheme: Scheme) -> SpelledTag<'_> {
        match tag {
            Tag::Outside => SpelledTag { letter: 'O', name: "" },
            Tag::In(part, entity_type) => {
                SpelledTag { letter: scheme.letter(part), name: self.name(entity_type) }
            }
        }
    }
}

/// A tag as text, without allocating it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SpelledTag<'a> {
    letter: char,
    name: &'a str,
}

impl SpelledTag<'_> {
    /// Appends the text to `out`.
    pub fn push_to(&self, out: &mut Vec<u8>) {
        out.push(self.letter as u8);
        if !self.name.is_empty() {
            out.push(b'-');
            out.extend_from_slice(self.name.as_bytes());
        }
    }
}

impl fmt::Display for SpelledTag<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.name.is_empty() {
            write!(f, "{}", self.letter)
        } else {
            write!(f, "{}-{}", self.letter, self.name)
        }
    }
}

/// What no column of a file can hold.
pub(crate) const BREAKS: [char; 4] = ['\t', '\n', '\r', '\0'];

/// Whether `text` has the form of a tag.
pub fn is_tag(text: &str) -> bool {
    split(text).is_ok()
}

fn split(text: &str) -> Result<Option<(Part, &str)>, TagFault> {
    let not_a_tag = || TagFault::NotATag(quoted(text));
    let part = match text.as_bytes().first().ok_or_else(not_a_tag)? {
        b'O' if text.len() == 1 => return Ok(None),
        b'B' => Part::Begin,
        b'I' => Part::Inside,
        b'E' | b'L' => Part::End,
        b'S' | b'U' => Part::Single,
        _ => return Err(not_a_tag()),
    };
    match text[1..].strip_prefix('-') {
        Some("") => Err(TagFault::NoType(quoted(text))),
        Some(name) if name.trim_matches(' ') != name || name.contains(BREAKS) => {
            Err(TagFault::BadType(quoted(text)))
        }
        Some(name) => Ok(Some((part, name))),
        None if text.len() == 1 => Ok(Some((part, ""))),
        None => Err(not_a_tag()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_type_may_hold_hyphens_spaces_and_any_script() {
        let mut types = EntityTypes::default();
        for text in ["B-GPE-LOC", "I-ミス", "S-a b", "B", "I"] {
            let tag = types.parse(text).unwrap();
            assert_eq!(types.spell(tag, Scheme::Iobes).to_string(), text);
        }
    }

    #[test]
    fn what_is_no_tag_is_refused() {
        let mut types = EntityTypes::default();
        for text in ["", "PER", "B_PER", "b-PER", "O-PER", "X-PER", "-PER", "BPER"] {
            assert_eq!(types.parse(text), Err(TagFault::NotATag(text.to_owned())));
        }
        assert_eq!(types.parse("I-"), Err(TagFault::NoType("I-".into())));
        for text in ["B-a\tb", "B-a\n", "B- a", "B-a "] {
            assert!(matches!(types.parse(text), Err(TagFault::BadType(_))), "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn parsing_then_spelling_is_the_identity(letter in "[BIES]", name in "[^ \\pC](\\PC{0,6}[^ \\pC])?") {
            let mut types = EntityTypes::default();
            let text = format!("{letter}-{name}");
            let tag = types.parse(&text).unwrap();
            prop_assert_eq!(types.spell(tag, Scheme::Iobes).to_string(), text);
        }
    }
}
