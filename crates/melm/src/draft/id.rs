//! Stable ids of the lines of `drafts.jsonl`.

use std::collections::HashMap;

use serde::Deserialize;

use super::origin::Origin;
use crate::files::Fingerprint;

/// The number of hexadecimal digits of an id. Among 10,000 candidates, two different ones have the same id with a
/// probability of about 2e-7.
const DIGITS: usize = 12;

/// The id of a line of `drafts.jsonl`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CandidateId {
    /// The id. It depends on the source, the round, the seed, the tokens and the tags of the line, and not on its
    /// verdict. If several lines agree in all of them, `-2`, `-3` and so on is appended to the later ones.
    pub id: String,
    /// True if the line is a sentence of unlabelled text, false if it is a draft.
    pub is_text: bool,
}

/// The keys of a line that its id is made from.
#[derive(Deserialize)]
struct IdentifyingKeys {
    #[serde(default)]
    origin: Origin,
    #[serde(default)]
    source: Option<u64>,
    #[serde(default)]
    file: String,
    #[serde(default)]
    line: u64,
    #[serde(default)]
    first_token: u64,
    #[serde(default)]
    language: Option<String>,
    #[serde(default)]
    round: u64,
    #[serde(default)]
    pass: u64,
    #[serde(default)]
    seed: u64,
    tokens: Vec<String>,
    tags: Vec<String>,
}

/// Makes the ids of lines that are passed in the order of their file.
#[derive(Debug, Default)]
pub struct CandidateIds {
    seen: HashMap<String, usize>,
}

impl CandidateIds {
    /// Returns the id of the next line. Fails with the reason if the line is not a line of `drafts.jsonl`.
    pub fn next_id(&mut self, json: &str) -> Result<CandidateId, String> {
        let keys: IdentifyingKeys = serde_json::from_str(json).map_err(|e| e.to_string())?;
        let hash = keys.hash();
        let count = self.seen.entry(hash.clone()).or_default();
        *count += 1;
        let id = if *count == 1 { hash } else { format!("{hash}-{count}") };
        Ok(CandidateId { id, is_text: keys.origin != Origin::Draft })
    }
}

impl IdentifyingKeys {
    fn hash(&self) -> String {
        let mut fingerprint = Fingerprint::default();
        let origin: &[u8] = if self.origin == Origin::Draft { b"draft" } else { b"text" };
        fingerprint.add(origin);
        // A draft without a source is not confused with a draft of a sentence: numbers count from 1.
        let source = self.source.unwrap_or(0);
        let numbers = [source, self.line, self.first_token, self.round, self.pass, self.seed];
        for number in numbers {
            fingerprint.add(&number.to_le_bytes());
        }
        fingerprint.add(self.file.as_bytes());
        fingerprint.add(self.language.as_deref().unwrap_or_default().as_bytes());
        for text in self.tokens.iter().chain(&self.tags) {
            fingerprint.add(text.as_bytes());
        }
        fingerprint.finish()[..DIGITS].to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINE: &str = r#"{"source":3,"round":1,"seed":1,"verdict":"new","tokens":["a","b"],"tags":["O","O"],"replaced":[]}"#;

    #[test]
    fn an_id_does_not_depend_on_the_verdict_and_repeats_are_numbered() {
        let mut ids = CandidateIds::default();
        let mut next = |json: &str| ids.next_id(json).unwrap().id;
        let first = next(LINE);
        assert_eq!(first.len(), DIGITS);
        assert_eq!(next(&LINE.replace("new", "kept")), format!("{first}-2"));
        for (from, to) in [
            ("\"source\":3", "\"source\":4"),
            ("\"source\":3", "\"source\":null"),
            ("\"round\":1", "\"round\":2"),
            ("\"seed\":1", "\"seed\":2"),
            ("[\"a\",\"b\"]", "[\"ab\",\"\"]"),
            ("\"verdict\"", "\"language\":\"de\",\"verdict\""),
        ] {
            let other = next(&LINE.replace(from, to));
            assert!(!other.starts_with(&first), "{from} {to}");
        }
    }

    #[test]
    fn text_has_other_ids_than_drafts_and_broken_lines_are_refused() {
        let mut ids = CandidateIds::default();
        let text =
            r#"{"origin":"text","file":"a","line":3,"pass":1,"tokens":["a","b"],"tags":["O","O"]}"#;
        let [draft, text] = [LINE, text].map(|line| ids.next_id(line).unwrap());
        assert!(!draft.is_text && text.is_text && draft.id != text.id);
        assert!(ids.next_id("{}").is_err());
    }
}
