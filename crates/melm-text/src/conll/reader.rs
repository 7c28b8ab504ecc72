//! Reads a CoNLL text sentence by sentence.

use std::borrow::Cow;
use std::collections::HashMap;

use memchr::memchr;

use super::layout::{Layout, Separator, is_document_start};
use crate::problem::{Fault, Problems};
use crate::record::{Record, Row};
use crate::tag::{EntityTypes, Tag, TagFault};
use crate::token::Token;

/// A reader over a text in memory. Problems are collected, the rest is read on.
#[derive(Debug)]
pub struct ConllReader<'t> {
    text: &'t str,
    at: usize,
    line: usize,
    layout: Layout,
    known: HashMap<&'t str, Tag>,
    after: Vec<&'t str>,
}

impl<'t> ConllReader<'t> {
    /// Starts at the beginning of `text`.
    pub fn new(text: &'t str, layout: Layout) -> Self {
        Self { text, at: 0, line: 0, layout, known: HashMap::new(), after: Vec::new() }
    }

    /// Bytes read so far.
    pub fn position(&self) -> usize {
        self.at
    }

    /// Comment lines that stand after the last sentence; complete once the text is read.
    pub fn after(&self) -> &[&'t str] {
        &self.after
    }

    /// Reads the next sentence into `record`; false at the end. A row with a problem is left out.
    pub fn read(
        &mut self,
        record: &mut Record<'t>,
        types: &mut EntityTypes,
        problems: &mut Problems,
    ) -> bool {
        record.clear();
        let mut started = false;
        while let Some(row) = self.next_line() {
            if row.trim_ascii().is_empty() {
                if started {
                    break;
                }
                continue;
            }
            if is_document_start(row) {
                if started {
                    self.unread(row);
                    break;
                }
                record.before.push(row);
                continue;
            }
            if !started && row.starts_with('#') && !self.is_row(row) {
                record.before.push(row);
                continue;
            }
            if !started {
                record.line = self.line;
                started = true;
            }
            self.read_row(row, record, types, problems);
        }
        if !started {
            self.after = std::mem::take(&mut record.before);
        }
        started
    }

    fn next_line(&mut self) -> Option<&'t str> {
        if self.at >= self.text.len() {
            return None;
        }
        let rest = &self.text[self.at..];
        let end = memchr(b'\n', rest.as_bytes()).unwrap_or(rest.len());
        self.at += (end + 1).min(rest.len());
        self.line += 1;
        let row = &rest[..end];
        Some(row.strip_suffix('\r').unwrap_or(row))
    }

    fn unread(&mut self, row: &str) {
        let start = row.as_ptr().addr() - self.text.as_ptr().addr();
        self.at = start;
        self.line -= 1;
    }

    /// Whether a line that starts like a comment is a row after all: its columns and tag say so.
    fn is_row(&self, row: &str) -> bool {
        let found = find(row, &self.layout);
        let (start, end) = found.tag;
        found.n_columns == self.layout.n_columns && crate::tag::is_tag(&row[start..end])
    }

    fn read_row(
        &mut self,
        text: &'t str,
        record: &mut Record<'t>,
        types: &mut EntityTypes,
        problems: &mut Problems,
    ) {
        let found = find(text, &self.layout);
        let expected = self.layout.n_columns;
        if found.n_columns != expected {
            let fault = Fault::Ragged { found: found.n_columns, expected };
            problems.push(self.line, 0..text.len(), fault);
            return;
        }
        let (token, tag) = (found.token, found.tag);
        let token_text = &text[token.0..token.1];
        let tag_text = &text[tag.0..tag.1];
        let parsed = self.parse(tag_text, types);
        let checked = Token::check(token_text);
        match (checked, parsed) {
            (Ok(()), Ok(parsed)) => {
                record.tokens.push(Cow::Borrowed(token_text));
                record.tags.push(parsed);
                record.rows.push(Row { line: self.line, text, token, tag });
            }
            (checked, parsed) => {
                if let Err(fault) = checked {
                    problems.push(self.line, token.0..token.1, fault);
                }
                if let Err(fault) = parsed {
                    problems.push(self.line, tag.0..tag.1, fault);
                }
            }
        }
    }

    fn parse(&mut self, text: &'t str, types: &mut EntityTypes) -> Result<Tag, TagFault> {
        if text == "O" {
            return Ok(Tag::Outside);
        }
        if let Some(&tag) = self.known.get(text) {
            return Ok(tag);
        }
        let tag = types.parse(text)?;
        self.known.insert(text, tag);
        Ok(tag)
    }
}

struct Found {
    n_columns: usize,
    token: (usize, usize),
    tag: (usize, usize),
}

/// Counts the columns of a row and finds the two that matter.
fn find(row: &str, layout: &Layout) -> Found {
    let bytes = row.trim_end_matches(' ').as_bytes();
    let mut found = Found { n_columns: 0, token: (0, 0), tag: (0, 0) };
    let mut keep = |start: usize, end: usize| {
        if found.n_columns == layout.token {
            found.token = (start, end);
        }
        if found.n_columns == layout.tag {
            found.tag = (start, end);
        }
        found.n_columns += 1;
    };
    let mut start = 0;
    for (at, &byte) in bytes.iter().enumerate() {
        let ends = match layout.separator {
            Separator::Tab => byte == b'\t',
            Separator::Space => byte == b' ' || byte == b'\t',
        };
        if ends {
            if layout.separator == Separator::Tab || at > start {
                keep(start, at);
            }
            start = at + 1;
        }
    }
    if layout.separator == Separator::Tab || bytes.len() > start {
        keep(start, bytes.len());
    }
    found
}
