//! Reads a CoNLL text, one sentence at a time.

use std::borrow::Cow;
use std::ops::Range;

use memchr::memchr_iter;
use rustc_hash::FxHashMap;

use super::layout::{Layout, Separator, is_document_start};
use crate::problem::{Fault, Problems};
use crate::record::{Record, Row};
use crate::tag::{EntityTypes, Tag, TagFault};
use crate::token::{Token, TokenFault};

/// Reads CoNLL rows from a text in memory. Rows with problems are reported and skipped.
#[derive(Debug)]
pub struct ConllReader<'t> {
    text: &'t str,
    /// The byte where the next line starts.
    at: usize,
    /// The number of the last line read, from 1.
    line: usize,
    layout: Layout,
    /// The tags parsed so far, by their text. There is one lookup for each token, so the hasher is fast. It does not
    /// resist collisions: a file that is made to cause them is only read slowly.
    known_tags: FxHashMap<&'t str, Tag>,
    /// True if the text has a carriage return without a line feed. Only then must each row be searched for one.
    bare_cr: bool,
    lines_after: Vec<&'t str>,
}

impl<'t> ConllReader<'t> {
    /// Starts at the beginning of `text`.
    pub fn new(text: &'t str, layout: Layout) -> Self {
        let bytes = text.as_bytes();
        let bare_cr = memchr_iter(b'\r', bytes).any(|at| bytes.get(at + 1) != Some(&b'\n'));
        Self {
            text,
            at: 0,
            line: 0,
            layout,
            known_tags: FxHashMap::default(),
            bare_cr,
            lines_after: Vec::new(),
        }
    }

    /// The columns of the file.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// The number of bytes read so far.
    pub fn position(&self) -> usize {
        self.at
    }

    /// The comment lines after the last sentence. They are known only after the whole text was read.
    pub(crate) fn lines_after(&self) -> &[&'t str] {
        &self.lines_after
    }

    /// Reads the next sentence into `record`. Returns false at the end of the text. Skips rows with problems and adds
    /// the problems to `problems`. Skips a sentence if all its rows have problems.
    pub fn read(
        &mut self,
        record: &mut Record<'t>,
        types: &mut EntityTypes,
        problems: &mut Problems,
    ) -> bool {
        while self.read_rows(record, types, problems) {
            if !record.tokens.is_empty() {
                return true;
            }
        }
        false
    }

    /// Reads the rows up to the next empty line. Returns false if there are none.
    fn read_rows(
        &mut self,
        record: &mut Record<'t>,
        types: &mut EntityTypes,
        problems: &mut Problems,
    ) -> bool {
        record.clear();
        let mut started = false;
        while let Some((row, found)) = self.next_row() {
            if is_blank(row) {
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
                record.lines_before.push(row);
                continue;
            }
            if !started && row.starts_with('#') && !self.is_row(row, &found) {
                record.lines_before.push(row);
                continue;
            }
            if !started {
                record.line = self.line;
                started = true;
            }
            let n_problems = problems.len();
            self.read_row(row, &found, record, types, problems);
            record.is_incomplete |= problems.len() > n_problems;
        }
        if !started {
            self.lines_after = std::mem::take(&mut record.lines_before);
        }
        started
    }

    /// Returns the next line and its columns, found in one pass over its bytes.
    fn next_row(&mut self) -> Option<(&'t str, RowColumns)> {
        let text = self.text;
        if self.at >= text.len() {
            return None;
        }
        let bytes = &text.as_bytes()[self.at..];
        let (found, end) = find_columns(bytes, &self.layout);
        let row = &text[self.at..self.at + end];
        self.at += (end + 1).min(bytes.len());
        self.line += 1;
        Some((row.trim_end_matches('\r'), found))
    }

    /// Goes back to the start of `row`, which must be the last line read.
    fn unread(&mut self, row: &str) {
        self.at = row.as_ptr().addr() - self.text.as_ptr().addr();
        self.line -= 1;
    }

    /// Returns true if a line that starts with `#` is a row, not a comment: it has as many columns as the other rows,
    /// and a tag.
    fn is_row(&self, row: &str, found: &RowColumns) -> bool {
        if found.n_columns != self.layout.n_columns {
            return false;
        }
        let tag = &row[found.tag.clone()];
        let bare = tag.len() == 1 && tag != "O";
        crate::tag::is_tag(tag) && (!bare || self.layout.bare_tags)
    }

    /// Adds a row to `record`, or its problems to `problems`.
    fn read_row(
        &mut self,
        text: &'t str,
        found: &RowColumns,
        record: &mut Record<'t>,
        types: &mut EntityTypes,
        problems: &mut Problems,
    ) {
        if self.bare_cr
            && let Some(at) = memchr::memchr(b'\r', text.as_bytes())
        {
            problems.push(self.line, at..at + 1, Fault::CarriageReturn);
            return;
        }
        let expected = self.layout.n_columns;
        if found.n_columns != expected {
            let separator = self.layout.separator;
            let fault = Fault::ColumnCount { found: found.n_columns, expected, separator };
            problems.push(self.line, 0..text.len(), fault);
            return;
        }
        let (token, tag) = (found.token.clone(), found.tag.clone());
        let token_text = &text[token.clone()];
        let parsed = self.parse_tag(&text[tag.clone()], types);
        match (check_token(token_text), parsed) {
            (Ok(()), Ok(parsed)) => {
                record.tokens.push(Cow::Borrowed(token_text));
                record.tags.push(parsed);
                record.rows.push(Row { line: self.line, text, token, tag });
            }
            (checked, parsed) => {
                if let Err(fault) = checked {
                    problems.push(self.line, token, fault);
                }
                if let Err(fault) = parsed {
                    problems.push(self.line, tag, fault);
                }
            }
        }
    }

    /// Parses a tag, or returns the cached result if the same text was parsed before.
    fn parse_tag(&mut self, text: &'t str, types: &mut EntityTypes) -> Result<Tag, TagFault> {
        if text == "O" {
            return Ok(Tag::Outside);
        }
        if let Some(&tag) = self.known_tags.get(text) {
            return Ok(tag);
        }
        let tag = if self.layout.bare_types { types.parse_bare(text) } else { types.parse(text) }?;
        self.known_tags.insert(text, tag);
        Ok(tag)
    }
}

/// Same as [`Token::check`], but faster. A column contains no tab or line break, so for most tokens the first byte is
/// enough to see that they are valid.
fn check_token(token: &str) -> Result<(), TokenFault> {
    match token.as_bytes().first() {
        Some(&byte) if byte != b' ' && byte != b'-' => Ok(()),
        _ => Token::check(token),
    }
}

/// The number of columns of a row, and the byte ranges of token and tag.
struct RowColumns {
    n_columns: usize,
    token: Range<usize>,
    tag: Range<usize>,
}

fn is_blank(row: &str) -> bool {
    row.as_bytes().first().is_none_or(|&first| first <= b' ') && row.trim_ascii().is_empty()
}

/// Splits the first line of `bytes` into columns. Returns their number, the byte ranges of token and tag, and the
/// position where the line ends.
fn find_columns(bytes: &[u8], layout: &Layout) -> (RowColumns, usize) {
    let tabs_only = layout.separator == Separator::Tab;
    let mut found = RowColumns { n_columns: 0, token: 0..0, tag: 0..0 };
    let mut keep = |start: usize, end: usize| {
        if found.n_columns == layout.token {
            found.token = start..end;
        }
        if found.n_columns == layout.tag {
            found.tag = start..end;
        }
        found.n_columns += 1;
    };
    let mut start = 0;
    let mut end = next_separator(bytes, 0);
    while let Some(&byte) = bytes.get(end)
        && byte != b'\n'
    {
        if byte == b'\t' || byte == b' ' && !tabs_only {
            if tabs_only || end > start {
                keep(start, end);
            }
            start = end + 1;
        }
        end = next_separator(bytes, end + 1);
    }
    let mut last = end;
    while last > start && matches!(bytes[last - 1], b' ' | b'\r') {
        last -= 1;
    }
    if tabs_only && end > 0 || last > start {
        keep(start, last);
    }
    (found, end)
}

/// Returns the position of the next byte that is a space or a control character, from `at` on.
///
/// Compares eight bytes at a time. A loop over single bytes would mispredict a branch for each token, because tokens
/// are short and vary in length.
fn next_separator(bytes: &[u8], mut at: usize) -> usize {
    const ONES: u64 = 0x0101_0101_0101_0101;
    while let Some(word) = bytes.get(at..).and_then(|rest| rest.first_chunk::<8>()) {
        let word = u64::from_le_bytes(*word);
        // Set the high bit of each byte below 0x21. A borrow of the subtraction may also set wrong bits, but only in
        // bytes after the first such byte. Only the first one is used.
        let low = word.wrapping_sub(ONES * 0x21) & !word & (ONES * 0x80);
        if low != 0 {
            return at + low.trailing_zeros() as usize / 8;
        }
        at += 8;
    }
    while at < bytes.len() && bytes[at] > b' ' {
        at += 1;
    }
    at
}
