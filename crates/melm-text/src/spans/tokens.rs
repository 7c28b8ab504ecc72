//! Finds the tokens and sentences of a text such that every span is a whole number of tokens of one sentence.

use std::ops::Range;

use crate::token::Token;
use crate::tokenizer::{TokenizedText, Tokenizer, is_gap};

/// Tokens as byte ranges of a text.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Segmentation {
    pub(crate) tokens: Vec<Range<usize>>,
    /// The number of tokens that a span cuts. Each is split.
    pub(crate) n_cut: usize,
}

/// Finds the tokens of `text` with `tokenizer`, or takes the `given` ones.
///
/// A token that a span cuts is split there. Given tokens that are blank or contain a line break or a tab lose these
/// characters. `spans` are in order, do not overlap, and start and end with a visible character.
pub(crate) fn find_tokens(
    text: &str,
    spans: &[Range<usize>],
    tokenizer: &Tokenizer,
    given: Option<Vec<Range<usize>>>,
) -> Segmentation {
    let tokens = match given {
        Some(given) => given.into_iter().flat_map(|token| split_at_breaks(text, token)).collect(),
        None => {
            tokenizer.tokenize(text).map_or_else(|_| Vec::new(), |found| found.spans().to_vec())
        }
    };
    let (tokens, n_cut) = split_at_spans(tokens, spans);
    let mut tokens = cover_edges(text, tokens, spans);
    tokens.retain(|token| Token::check(&text[token.clone()]).is_ok());
    Segmentation { tokens, n_cut }
}

/// Splits the tokens into sentences by the rule of the tokenizer. Sentences that a span joins become one.
pub(crate) fn find_sentences(
    text: &str,
    tokens: &[Range<usize>],
    spans: &[Range<usize>],
    tokenizer: &Tokenizer,
) -> Vec<Range<usize>> {
    let found = TokenizedText::new(text, tokens.to_vec());
    join_at_spans(tokenizer.split_sentences(&found), tokens, spans)
}

/// Joins the sentences that a span crosses.
pub(crate) fn join_at_spans(
    sentences: Vec<Range<usize>>,
    tokens: &[Range<usize>],
    spans: &[Range<usize>],
) -> Vec<Range<usize>> {
    let mut joined: Vec<Range<usize>> = Vec::with_capacity(sentences.len());
    let mut at = 0;
    for sentence in sentences {
        let start = tokens[sentence.start].start;
        while spans.get(at).is_some_and(|span| span.end <= start) {
            at += 1;
        }
        let is_inside = spans.get(at).is_some_and(|span| span.start < start);
        match joined.last_mut() {
            Some(last) if is_inside => last.end = sentence.end,
            _ => joined.push(sentence),
        }
    }
    joined
}

/// Returns the parts of a given token that can be tokens.
fn split_at_breaks(text: &str, token: Range<usize>) -> Vec<Range<usize>> {
    if Token::check(&text[token.clone()]).is_ok() {
        return vec![token];
    }
    let start = token.start;
    let mut parts = Vec::new();
    let mut from = None;
    for (at, c) in text[token.clone()].char_indices() {
        match (is_gap(c), from) {
            (true, Some(first)) => {
                parts.push(first..start + at);
                from = None;
            }
            (false, None) => from = Some(start + at),
            _ => {}
        }
    }
    parts.extend(from.map(|first| first..token.end));
    parts.retain(|part| Token::check(&text[part.clone()]).is_ok());
    parts
}

/// Splits tokens at the edges of spans. Returns the tokens, and the number of tokens that were split.
fn split_at_spans(tokens: Vec<Range<usize>>, spans: &[Range<usize>]) -> (Vec<Range<usize>>, usize) {
    let mut edges = spans.iter().flat_map(|span| [span.start, span.end]).peekable();
    let mut split = Vec::with_capacity(tokens.len());
    let mut n_cut = 0;
    for token in tokens {
        let mut start = token.start;
        while edges.next_if(|&edge| edge <= token.start).is_some() {}
        while let Some(edge) = edges.next_if(|&edge| edge < token.end) {
            if edge > start {
                split.push(start..edge);
                start = edge;
            }
        }
        n_cut += usize::from(start > token.start);
        split.push(start..token.end);
    }
    (split, n_cut)
}

/// Adds a token where a span starts or ends outside of all tokens. This happens only for combining marks after a space.
fn cover_edges(text: &str, tokens: Vec<Range<usize>>, spans: &[Range<usize>]) -> Vec<Range<usize>> {
    let mut added = Vec::new();
    for span in spans {
        let first = tokens.partition_point(|token| token.end <= span.start);
        let after = tokens.partition_point(|token| token.start < span.end);
        let inside = &tokens[first..after.max(first)];
        let start = inside.first().map_or(span.end, |token| token.start);
        let end = inside.last().map_or(span.start, |token| token.end);
        if start > span.start {
            let free = &text[span.start..start];
            let length = free.find(is_gap).unwrap_or(free.len());
            added.push(span.start..span.start + length);
        }
        let end = added.last().map_or(end, |one: &Range<usize>| end.max(one.end));
        if end < span.end {
            let free = &text[end..span.end];
            let gap = free.char_indices().rev().find(|&(_, c)| is_gap(c));
            let from = gap.map_or(end, |(at, c)| end + at + c.len_utf8());
            added.push(from..span.end);
        }
    }
    if added.is_empty() {
        return tokens;
    }
    let mut all: Vec<_> = tokens.into_iter().chain(added).collect();
    all.sort_by_key(|token| token.start);
    all
}
