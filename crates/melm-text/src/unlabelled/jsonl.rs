//! Reads tokens or texts from JSON lines. Other keys are ignored.

use std::ops::Range;

use super::read::Collected;
use crate::error::Error;
use crate::formats::{find_array_problem, is_array};
use crate::jsonl::{TOKENS_KEYS, find_value, parse_fields, parse_tokens};
use crate::problem::{Fault, LocatedFault};
use crate::token::{DOCUMENT_START, Token};

/// The usual key of the text.
const TEXT_KEY: &str = "text";

/// The contents of one object.
enum Content {
    Tokens(Vec<Token>),
    Text {
        text: String,
        span: Range<usize>,
    },
    /// The object only marks the start of a document.
    DocumentStart,
}

/// Reads all lines of the file.
pub(super) fn read(collected: &mut Collected<'_>) -> Result<(), Error> {
    let text = collected.source.text();
    if is_array(text) {
        collected.problems.append(&find_array_problem(text));
        return Ok(());
    }
    for (at, line) in text.split('\n').enumerate() {
        if line.trim_ascii().is_empty() {
            continue;
        }
        match read_object(line, collected) {
            Ok(Content::Tokens(tokens)) => collected.add_tokens(at + 1, tokens)?,
            Ok(Content::Text { text, span }) => collected.add_text(at + 1, &text, span)?,
            Ok(Content::DocumentStart) => {}
            Err(fault) => collected.add_fault(at + 1, fault),
        }
    }
    Ok(())
}

fn read_object(line: &str, collected: &Collected<'_>) -> Result<Content, LocatedFault> {
    let options = collected.options;
    let fields = parse_fields(line)?;
    let has = |key: &str| fields.iter().any(|(own, _)| own == key);
    let tokens_key = match &options.tokens_key {
        Some(key) => key.as_str(),
        None => TOKENS_KEYS.into_iter().find(|key| has(key)).unwrap_or(TOKENS_KEYS[0]),
    };
    let text_key = options.text_key.as_deref().unwrap_or(TEXT_KEY);
    if has(tokens_key) {
        let (raw, span) = find_value(&fields, line, tokens_key)?;
        let tokens = parse_tokens(raw, &span, tokens_key)?;
        let located = |fault: Fault| LocatedFault { span: span.clone(), fault };
        return match tokens.as_slice() {
            [] => Err(located(Fault::NoTokens)),
            [only] if only == DOCUMENT_START => Ok(Content::DocumentStart),
            tokens => {
                let tokens: Result<_, _> = tokens.iter().map(|token| Token::new(token)).collect();
                tokens.map(Content::Tokens).map_err(|fault| located(fault.into()))
            }
        };
    }
    if !has(text_key) {
        let (tokens, text) = (tokens_key.to_owned(), text_key.to_owned());
        return Err(LocatedFault { span: 0..line.len(), fault: Fault::NoTextKey { tokens, text } });
    }
    let (raw, span) = find_value(&fields, line, text_key)?;
    match serde_json::from_str::<String>(raw) {
        Ok(text) => Ok(Content::Text { text, span }),
        Err(_) => Err(LocatedFault { span, fault: Fault::NotAString(text_key.to_owned()) }),
    }
}
