//! Tags: `O`, or a prefix with an entity type (`B-PER`).
//!
//! Entity types are interned in [`EntityTypes`]. A [`Tag`] is a small `Copy` value, and a corpus of
//! a million sentences needs no string for each token.

use std::collections::HashMap;
use std::fmt;

use thiserror::Error;

use crate::notes::shown;
use crate::scheme::Scheme;

/// An entity type such as `PER`: an index into the [`EntityTypes`] that made it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct EntityType(u32);

impl EntityType {
    /// The index of the type in its [`EntityTypes`]. Types are numbered in order of first appearance.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// The prefix of a tag: which part of a mention the token is. BILOU spells `End` as `L` and `Single`
/// as `U`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum TagPrefix {
    /// `B`: the first token.
    Begin,
    /// `I`: a token inside.
    Inside,
    /// `E` or `L`: the last token.
    End,
    /// `S` or `U`: the only token.
    Single,
}

/// The tag of one token.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Tag {
    /// `O`: the token is outside of all mentions.
    Outside,
    /// The token is part of a mention of this type.
    In(TagPrefix, EntityType),
}

impl Tag {
    /// The entity type, or `None` if the token is outside.
    pub fn entity_type(self) -> Option<EntityType> {
        match self {
            Tag::Outside => None,
            Tag::In(_, entity_type) => Some(entity_type),
        }
    }

    /// Translates the tag to another table of entity types. `types` is the result of [`EntityTypes::merge`], which has
    /// the new type at the index of each old type.
    #[must_use]
    pub fn with_type_from(self, types: &[EntityType]) -> Self {
        match self {
            Tag::Outside => Tag::Outside,
            Tag::In(prefix, entity_type) => Tag::In(prefix, types[entity_type.index()]),
        }
    }
}

/// The reason why a text is not a tag.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum TagFault {
    /// The text does not start with a prefix that a scheme uses.
    #[error("`{0}` is not a tag: expected `O`, or one of B I E S L U, a hyphen and an entity type")]
    NotATag(String),
    /// There is nothing after the hyphen, as in `B-`.
    #[error("`{0}` is not a tag: no entity type after the hyphen")]
    NoType(String),
    /// The entity type has a character that a CoNLL column cannot contain.
    #[error(
        "`{0}` is not a tag: its entity type contains a tab, line break or NUL, or starts or ends with a space"
    )]
    BadType(String),
    /// The entity type is longer than `MAX_TYPE` bytes.
    #[error(
        "`{shown}` is not a tag: its entity type has {n_bytes} bytes, and the limit is {MAX_TYPE}"
    )]
    LongType {
        /// The start of the tag.
        shown: String,
        /// The length of the entity type in bytes.
        n_bytes: usize,
    },
}

/// The longest name of an entity type, in bytes. Markers, tables and file cards contain the name. Without a limit, a hostile
/// file makes them huge.
pub(crate) const MAX_TYPE: usize = 1_000;

/// Which letters a file uses for the last token of a mention and for a mention of one token: `E` and `S` (IOBES), or
/// `L` and `U` (BILOU). The two pairs have the same meaning.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct EndLetters {
    /// True if the file has `E` or `S`.
    pub iobes: bool,
    /// True if the file has `L` or `U`.
    pub bilou: bool,
}

/// A table of entity types, which also parses tags and writes them as text.
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
    /// Parses a tag, and adds its type if it is new. A prefix alone (`B`) is parsed as a tag of the type with an empty
    /// name.
    pub fn parse(&mut self, text: &str) -> Result<Tag, TagFault> {
        let Some((prefix, name)) = split(text)? else {
            return Ok(Tag::Outside);
        };
        match text.as_bytes()[0] {
            b'E' | b'S' => self.end_letters.iobes = true,
            b'L' | b'U' => self.end_letters.bilou = true,
            _ => {}
        }
        Ok(Tag::In(prefix, self.intern(name)))
    }

    /// Parses a tag, or an entity type without a prefix (`PER`), which is read as a tag of IO.
    pub(crate) fn parse_bare(&mut self, text: &str) -> Result<Tag, TagFault> {
        match self.parse(text) {
            Err(TagFault::NotATag(_)) if is_bare_type(text) && text.len() <= MAX_TYPE => {
                Ok(Tag::In(TagPrefix::Inside, self.intern(text)))
            }
            parsed => parsed,
        }
    }

    /// Returns the type called `name`, and adds it if it is new.
    pub fn intern(&mut self, name: &str) -> EntityType {
        if let Some(&known) = self.by_name.get(name) {
            return known;
        }
        let new = EntityType(u32::try_from(self.names.len()).expect("fewer than 2^32 types"));
        self.names.push(name.into());
        self.by_name.insert(name.into(), new);
        new
    }

    /// Adds all types of `other`. Returns, for each type of `other`, the type of the same name in
    /// this table.
    pub fn merge(&mut self, other: &EntityTypes) -> Vec<EntityType> {
        other.names.iter().map(|name| self.intern(name)).collect()
    }

    /// Returns the type called `name`, or `None` if the table does not have it.
    pub fn find(&self, name: &str) -> Option<EntityType> {
        self.by_name.get(name).copied()
    }

    /// The name of a type. The name is empty for tags without a type, such as `B`.
    pub fn name(&self, entity_type: EntityType) -> &str {
        &self.names[entity_type.index()]
    }

    /// The name of a type in reports. As in seqeval, an empty name becomes `_`, unless another type is called `_`.
    pub fn display_name(&self, entity_type: EntityType) -> &str {
        match self.name(entity_type) {
            "" if !self.by_name.contains_key("_") => "_",
            name => name,
        }
    }

    /// All types, in order of first appearance.
    pub fn iter(&self) -> impl Iterator<Item = EntityType> + use<> {
        (0..u32::try_from(self.names.len()).expect("fewer than 2^32 types")).map(EntityType)
    }

    /// All types, ordered by name.
    pub fn sorted_by_name(&self) -> Vec<EntityType> {
        let mut types: Vec<_> = self.iter().collect();
        types.sort_by_key(|&t| self.name(t));
        types
    }

    /// The letters parsed so far for the last token of a mention and for mentions of one token.
    pub fn end_letters(&self) -> EndLetters {
        self.end_letters
    }

    /// Returns a scheme that spells tags with the letters they were parsed from.
    pub fn input_spelling(&self) -> Scheme {
        let letters = self.end_letters;
        if letters.bilou && !letters.iobes { Scheme::Bilou } else { Scheme::Iobes }
    }

    /// Spells a tag with the letters of `scheme`.
    pub fn spell(&self, tag: Tag, scheme: Scheme) -> SpelledTag<'_> {
        match tag {
            Tag::Outside => SpelledTag { letter: Some('O'), name: "" },
            Tag::In(prefix, entity_type) => {
                let letter = Some(scheme.letter(prefix));
                SpelledTag { letter, name: self.name(entity_type) }
            }
        }
    }
}

/// A tag that can be printed. It borrows the name of its type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SpelledTag<'a> {
    /// `None` if only the entity type is written.
    letter: Option<char>,
    name: &'a str,
}

impl SpelledTag<'_> {
    /// Returns the tag without its prefix: the entity type alone.
    pub(crate) fn without_prefix(self) -> Self {
        if self.name.is_empty() { self } else { Self { letter: None, ..self } }
    }

    /// Appends the text to `out`.
    pub(crate) fn push_to(&self, out: &mut Vec<u8>) {
        if let Some(letter) = self.letter {
            out.push(letter as u8);
            if !self.name.is_empty() {
                out.push(b'-');
            }
        }
        out.extend_from_slice(self.name.as_bytes());
    }
}

impl fmt::Display for SpelledTag<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.letter {
            None => f.write_str(self.name),
            Some(letter) if self.name.is_empty() => write!(f, "{letter}"),
            Some(letter) => write!(f, "{letter}-{}", self.name),
        }
    }
}

/// Characters that a column cannot contain.
pub(crate) const BREAKS: [char; 4] = ['\t', '\n', '\r', '\0'];

/// Returns true if `text` has the form of a tag.
pub(crate) fn is_tag(text: &str) -> bool {
    split(text).is_ok()
}

/// Returns true if `text` can be an entity type without a prefix, such as `PER` or `political_party`. A text that looks
/// like a misspelt tag (`B_PER`, `b-PER`) cannot.
pub(crate) fn is_bare_type(text: &str) -> bool {
    let mut chars = text.chars();
    let (first, second) = (chars.next(), chars.next());
    let has_prefix = first.is_some_and(|c| "BIESLUObieslu".contains(c))
        && second.is_some_and(|c| matches!(c, '-' | '_'));
    let is_name = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | '/' | '&');
    first.is_some_and(char::is_alphabetic)
        && second.is_some()
        && !has_prefix
        && text.chars().all(is_name)
}

/// Returns true if `tags` are entity types without prefixes: some are `O`, and all others are bare types.
pub(crate) fn are_bare_types<'t>(tags: &(impl Iterator<Item = &'t str> + Clone)) -> bool {
    let others = || tags.clone().filter(|&tag| tag != "O");
    others().next().is_some()
        && tags.clone().any(|tag| tag == "O")
        && others().all(|tag| !is_tag(tag) && is_bare_type(tag))
}

/// Fails if `name` cannot be the entity type of a tag.
pub(crate) fn check_type(name: &str) -> Result<(), TagFault> {
    split(&format!("B-{name}")).map(|_| ()).map_err(|fault| match fault {
        long @ TagFault::LongType { .. } => long,
        _ => TagFault::BadType(shown(name)),
    })
}

/// Splits a tag into prefix and type; `None` for `O`.
fn split(text: &str) -> Result<Option<(TagPrefix, &str)>, TagFault> {
    let not_a_tag = || TagFault::NotATag(shown(text));
    let prefix = match text.as_bytes().first().ok_or_else(not_a_tag)? {
        b'O' if text.len() == 1 => return Ok(None),
        b'B' => TagPrefix::Begin,
        b'I' => TagPrefix::Inside,
        b'E' | b'L' => TagPrefix::End,
        b'S' | b'U' => TagPrefix::Single,
        _ => return Err(not_a_tag()),
    };
    match text[1..].strip_prefix('-') {
        Some("") => Err(TagFault::NoType(shown(text))),
        Some(name) if name.trim_matches(' ') != name || name.contains(BREAKS) => {
            Err(TagFault::BadType(shown(text)))
        }
        Some(name) if name.len() > MAX_TYPE => {
            Err(TagFault::LongType { shown: shown(text), n_bytes: name.len() })
        }
        Some(name) => Ok(Some((prefix, name))),
        None if text.len() == 1 => Ok(Some((prefix, ""))),
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
    fn texts_that_are_not_tags_are_refused() {
        let mut types = EntityTypes::default();
        for text in ["", "PER", "B_PER", "b-PER", "O-PER", "X-PER", "-PER", "BPER"] {
            assert_eq!(types.parse(text), Err(TagFault::NotATag(text.to_owned())));
        }
        assert_eq!(types.parse("I-"), Err(TagFault::NoType("I-".into())));
        let long = "X".repeat(MAX_TYPE);
        assert!(types.parse(&format!("B-{long}")).is_ok());
        let fault = types.parse(&format!("B-{long}X")).unwrap_err().to_string();
        assert!(fault.contains("has 1001 bytes, and the limit is 1000"), "{fault}");
        assert!(types.parse_bare(&format!("{long}X")).is_err());
        for text in ["B-a\tb", "B-a\n", "B- a", "B-a "] {
            assert!(matches!(types.parse(text), Err(TagFault::BadType(_))), "{text:?}");
        }
    }

    #[test]
    fn types_without_prefixes_are_tags_of_io() {
        let mut types = EntityTypes::default();
        let tag = types.parse_bare("political_party").unwrap();
        assert_eq!(types.spell(tag, Scheme::Io).to_string(), "I-political_party");
        assert_eq!(types.spell(tag, Scheme::Io).without_prefix().to_string(), "political_party");
        for text in ["B_PER", "b-PER", "7", "-X-", "", "a b", "$"] {
            assert!(types.parse_bare(text).is_err(), "{text}");
        }
        assert!(are_bare_types(&["O", "PER", "O"].into_iter()));
        for tags in [&["O", "O"][..], &["PER"], &["O", "PER", "B-LOC"], &["O", "I"]] {
            assert!(!are_bare_types(&tags.iter().copied()), "{tags:?}");
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
