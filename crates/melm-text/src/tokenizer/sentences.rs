//! Splits the tokens of a text into sentences.

use std::ops::Range;

use super::affix::is_abbreviation;
use super::tokenized::TokenizedText;

/// Splits a text into sentences: see [`super::Tokenizer::split_sentences`].
pub(super) fn split(text: &TokenizedText<'_>) -> Vec<Range<usize>> {
    let tokens: Vec<&str> = text.tokens().collect();
    let gaps: Vec<&str> = text.gaps().collect();
    let mut sentences = Vec::new();
    let mut start = 0;
    for next in 1..tokens.len() {
        if is_empty_line(gaps[next]) || ends_before(&tokens, &gaps, next) {
            sentences.push(start..next);
            start = next;
        }
    }
    if start < tokens.len() {
        sentences.push(start..tokens.len());
    }
    sentences
}

/// Returns true if a gap contains an empty line.
fn is_empty_line(gap: &str) -> bool {
    gap.bytes().filter(|&byte| byte == b'\n').count() > 1
}

/// Returns true if a sentence ends before token `next`.
fn ends_before(tokens: &[&str], gaps: &[&str], next: usize) -> bool {
    let is_wide = |mark: &str| mark.chars().all(|c| matches!(c, '。' | '！' | '？'));
    if !gaps[next].chars().any(char::is_whitespace) {
        return is_wide(tokens[next - 1]) && !is_closing(tokens[next]) && !is_wide(tokens[next]);
    }
    // Skip the quotes and brackets that close the sentence.
    let mut last = next - 1;
    while last > 0 && gaps[last].is_empty() && is_closing(tokens[last]) {
        last -= 1;
    }
    let mark = tokens[last];
    if is_wide(mark) {
        return true;
    }
    let is_mark = mark.chars().all(|c| matches!(c, '.' | '!' | '?' | '…'));
    if !is_mark || !is_opening(tokens[next]) {
        return false;
    }
    // `gaps[last]` is before the mark.
    mark != "." || last == 0 || !gaps[last].is_empty() || !needs_period(tokens[last - 1])
}

fn is_closing(token: &str) -> bool {
    matches!(token, ")" | "]" | "}" | "\"" | "'" | "''" | "”" | "’" | "»" | "«" | "“" | "」" | "』")
}

/// Returns true if a token can start a sentence.
fn is_opening(token: &str) -> bool {
    let Some(first) = token.chars().next() else { return false };
    let has_no_case = first.is_alphabetic() && !first.is_lowercase() && !first.is_uppercase();
    let is_mark = matches!(
        first,
        '(' | '[' | '"' | '\'' | '`' | '“' | '‘' | '„' | '«' | '»' | '¿' | '¡' | '「' | '『'
    );
    first.is_uppercase() || has_no_case || is_mark
}

/// Returns true if a period after `word` may belong to the word.
fn needs_period(word: &str) -> bool {
    let n_chars = word.chars().count();
    let is_letter = n_chars == 1 && word.chars().all(char::is_alphabetic);
    let is_short_number = n_chars <= 2 && word.chars().all(char::is_numeric);
    is_letter || is_short_number || is_abbreviation(word)
}
