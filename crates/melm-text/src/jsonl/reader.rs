//! Reads JSON lines, one sentence at a time.

use std::borrow::Cow;
use std::fmt;
use std::ops::Range;

use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use super::names::TagNames;
use crate::problem::{Fault, LocatedFault, Problems};
use crate::record::Record;
use crate::tag::{EntityTypes, are_bare_types};
use crate::token::{DOCUMENT_START, Token};

/// The usual keys of tokens, in order of preference.
pub(crate) const TOKENS_KEYS: [&str; 3] = ["tokens", "words", "text_tokens"];
/// The usual keys of tags, in order of preference.
pub(crate) const TAGS_KEYS: [&str; 4] = ["ner_tags", "tags", "labels", "ner"];

/// The keys of a JSON lines file that hold tokens and tags.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JsonlKeys {
    /// The key of the tokens.
    pub tokens: String,
    /// The key of the tags.
    pub tags: String,
}

impl JsonlKeys {
    /// Detects the keys from the first object of `text`. A key that is given is not detected but used.
    pub(crate) fn detect(text: &str, tokens: Option<&str>, tags: Option<&str>) -> Self {
        let first = text.lines().find(|line| !line.trim_ascii().is_empty()).unwrap_or("");
        let fields = serde_json::from_str::<Fields<'_>>(first).map_or(Vec::new(), |f| f.0);
        let find = |given: Option<&str>, usual: &[&str]| {
            let found = usual.iter().find(|usual| fields.iter().any(|(key, _)| key == *usual));
            given.unwrap_or(found.unwrap_or(&usual[0])).to_owned()
        };
        Self { tokens: find(tokens, &TOKENS_KEYS), tags: find(tags, &TAGS_KEYS) }
    }
}

/// Returns true if the first object of JSON lines has a text (`text`), but no tokens and no tags.
pub fn has_text_only(text: &str) -> bool {
    let first = text.lines().find(|line| !line.trim_ascii().is_empty()).unwrap_or("");
    let fields = serde_json::from_str::<Fields<'_>>(first).map_or(Vec::new(), |f| f.0);
    let has = |key: &str| fields.iter().any(|(own, _)| own == key);
    has("text") && !TOKENS_KEYS.into_iter().chain(TAGS_KEYS).any(has)
}

/// Reads JSON lines from a text in memory. Lines with problems are reported and skipped.
#[derive(Debug)]
pub struct JsonlReader<'t> {
    text: &'t str,
    lines: std::iter::Enumerate<std::str::Split<'t, char>>,
    at: usize,
    keys: JsonlKeys,
    names: Option<TagNames>,
    uses_ids: bool,
}

impl<'t> JsonlReader<'t> {
    /// Starts at the beginning of `text`. Tag ids are looked up in `names`.
    pub fn new(text: &'t str, keys: JsonlKeys, names: Option<TagNames>) -> Self {
        Self { text, lines: text.split('\n').enumerate(), at: 0, keys, names, uses_ids: false }
    }

    /// Returns true if a line read so far had tag ids instead of tags.
    pub fn uses_ids(&self) -> bool {
        self.uses_ids
    }

    /// The number of bytes read so far.
    pub fn position(&self) -> usize {
        self.at
    }

    /// The keys of tokens and tags.
    pub fn keys(&self) -> &JsonlKeys {
        &self.keys
    }

    /// Returns the byte range of the list of tags in the line of `record`.
    pub(crate) fn tags_span(&self, record: &Record<'t>) -> Range<usize> {
        let field = record.fields.iter().find(|(key, _)| *key == self.keys.tags);
        let Some((_, raw)) = field else { return 0..0 };
        let at = raw.as_ptr().addr() - self.text.as_ptr().addr();
        let line = memchr::memrchr(b'\n', &self.text.as_bytes()[..at]).map_or(0, |n| n + 1);
        at - line..at - line + raw.len()
    }

    /// Reads the next sentence into `record`. Returns false at the end of the text. Skips lines with problems, and adds
    /// the problems to `problems`.
    pub fn read(
        &mut self,
        record: &mut Record<'t>,
        types: &mut EntityTypes,
        problems: &mut Problems,
    ) -> bool {
        record.clear();
        while let Some((n, line)) = self.lines.next() {
            self.at += line.len() + 1;
            if line.trim_ascii().is_empty() {
                continue;
            }
            record.line = n + 1;
            match self.read_line(line, record, types) {
                Ok(true) => return true,
                Ok(false) => {}
                Err(LocatedFault { span, fault }) => problems.push(n + 1, span, fault),
            }
            record.tokens.clear();
            record.tags.clear();
        }
        false
    }

    /// Reads one line. Returns false if it only marks the start of a document.
    fn read_line(
        &mut self,
        line: &'t str,
        record: &mut Record<'t>,
        types: &mut EntityTypes,
    ) -> Result<bool, LocatedFault> {
        record.fields = parse_fields(line)?;
        let (tokens, span) = find_value(&record.fields, line, &self.keys.tokens)?;
        record.tokens.extend(parse_tokens(tokens, &span, &self.keys.tokens)?);
        self.read_tags(line, record, types)?;

        if record.tokens.len() == 1 && record.tokens[0] == DOCUMENT_START {
            record.lines_before.push(line.trim_end_matches('\r'));
            return Ok(false);
        }
        for token in &record.tokens {
            Token::check(token)
                .map_err(|fault| LocatedFault { span: span.clone(), fault: fault.into() })?;
        }
        if record.tokens.len() != record.tags.len() {
            let (n_tokens, n_tags) = (record.tokens.len(), record.tags.len());
            return Err(LocatedFault { span, fault: Fault::TagCount { n_tokens, n_tags } });
        }
        if record.tokens.is_empty() {
            return Err(LocatedFault { span, fault: Fault::NoTokens });
        }
        Ok(true)
    }

    fn read_tags(
        &mut self,
        line: &'t str,
        record: &mut Record<'t>,
        types: &mut EntityTypes,
    ) -> Result<(), LocatedFault> {
        let (tags, span) = find_value(&record.fields, line, &self.keys.tags)?;
        let located = |fault: Fault| LocatedFault { span: span.clone(), fault };
        let parse = |text: &str, is_bare: bool, types: &mut EntityTypes| {
            let tag = if is_bare { types.parse_bare(text) } else { types.parse(text) };
            tag.map_err(|fault| located(fault.into()))
        };
        if let Ok(texts) = serde_json::from_str::<Vec<Text<'t>>>(tags) {
            let is_bare = are_bare_types(&texts.iter().map(|text| &*text.0));
            for text in texts {
                record.tags.push(parse(&text.0, is_bare, types)?);
            }
            return Ok(());
        }
        let ids: Vec<i64> = serde_json::from_str(tags).map_err(|_| {
            let key = self.keys.tags.clone();
            located(Fault::WrongType { key, expected: "strings or ids" })
        })?;
        self.uses_ids = true;
        let names = self.names.as_deref().unwrap_or_default();
        let is_bare = are_bare_types(&names.iter().map(String::as_str));
        for id in ids {
            let name = usize::try_from(id).ok().and_then(|id| names.get(id));
            let name =
                name.ok_or_else(|| located(Fault::UnknownTagId { id, n_names: names.len() }))?;
            record.tags.push(parse(name, is_bare, types)?);
        }
        Ok(())
    }
}

/// The keys of a JSON object in their order, with their values as written in the file.
pub(crate) type JsonFields<'t> = Vec<(Cow<'t, str>, &'t str)>;

/// Parses a line that contains one JSON object.
pub(crate) fn parse_fields(line: &str) -> Result<JsonFields<'_>, LocatedFault> {
    let fields: Result<Fields<'_>, _> = serde_json::from_str(line);
    fields.map(|fields| fields.0).map_err(|error| {
        let at = line.floor_char_boundary(error.column().saturating_sub(1).min(line.len()));
        let span = at..line.len().min(at + 1);
        LocatedFault { span, fault: Fault::NotJson(without_position(&error)) }
    })
}

/// Parses the raw value of the key of the tokens, which must be a list of strings. `span` is its byte range in the line.
pub(crate) fn parse_tokens<'t>(
    raw: &'t str,
    span: &Range<usize>,
    key: &str,
) -> Result<Vec<Cow<'t, str>>, LocatedFault> {
    let tokens: Result<Vec<Text<'t>>, _> = serde_json::from_str(raw);
    let tokens = tokens.map_err(|_| {
        let fault = Fault::WrongType { key: key.to_owned(), expected: "strings" };
        LocatedFault { span: span.clone(), fault }
    })?;
    Ok(tokens.into_iter().map(|token| token.0).collect())
}

/// Returns the raw value of a key and its byte range in the line. Fails if the key is missing or occurs twice.
pub(crate) fn find_value<'t>(
    fields: &JsonFields<'t>,
    line: &'t str,
    key: &str,
) -> Result<(&'t str, Range<usize>), LocatedFault> {
    let whole_line = |fault: Fault| LocatedFault { span: 0..line.len(), fault };
    let mut with_key = fields.iter().filter(|(k, _)| k == key);
    match (with_key.next(), with_key.next()) {
        (Some((_, raw)), None) => {
            let start = raw.as_ptr().addr() - line.as_ptr().addr();
            Ok((raw, start..start + raw.len()))
        }
        (None, _) => Err(whole_line(Fault::NoKey(key.to_owned()))),
        _ => Err(whole_line(Fault::DuplicateKey(key.to_owned()))),
    }
}

/// Returns the message of `error` without line and column, which are reported separately.
fn without_position(error: &serde_json::Error) -> String {
    let text = error.to_string();
    text.split(" at line ").next().unwrap_or(&text).to_owned()
}

/// A JSON string that is copied only if it contains escapes.
#[derive(Deserialize)]
struct Text<'t>(#[serde(borrow)] Cow<'t, str>);

/// Deserializes a JSON object as [`JsonFields`].
struct Fields<'t>(JsonFields<'t>);

impl<'de> Deserialize<'de> for Fields<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Ordered;
        impl<'de> Visitor<'de> for Ordered {
            type Value = Fields<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut fields = Vec::new();
                while let Some((key, value)) = map.next_entry::<Text<'de>, &'de RawValue>()? {
                    fields.push((key.0, value.get()));
                }
                Ok(Fields(fields))
            }
        }
        deserializer.deserialize_map(Ordered)
    }
}
