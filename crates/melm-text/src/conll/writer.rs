//! Writes sentences as CoNLL rows.

use std::io::{self, Write};

use super::layout::Separator;
use crate::record::{Record, Row};
use crate::scheme::Scheme;
use crate::tag::{EntityTypes, Spelled, Tag};

/// Writes rows, keeping the columns of those that came from a CoNLL file.
#[derive(Debug)]
pub struct ConllWriter<W> {
    out: W,
    scheme: Option<Scheme>,
    separator: Option<Separator>,
    line: Vec<u8>,
    started: bool,
}

impl<W: Write> ConllWriter<W> {
    /// Tags are spelt in `scheme`, or with the letters of the input. `separator` goes between all columns; without it rows keep
    /// what stood between theirs, and sentences without rows get a tab.
    pub fn new(out: W, scheme: Option<Scheme>, separator: Option<Separator>) -> Self {
        Self { out, scheme, separator, line: Vec::new(), started: false }
    }

    /// Writes a sentence with `tags` in place of its own.
    pub fn write(
        &mut self,
        record: &Record<'_>,
        tags: &[Tag],
        types: &EntityTypes,
    ) -> io::Result<()> {
        self.line.clear();
        self.push_before(record);
        let separator = self.separator.unwrap_or(Separator::Tab);
        let scheme = self.scheme.unwrap_or(types.own_spelling());
        for (at, &tag) in tags.iter().enumerate() {
            let tag = types.spell(tag, scheme);
            let token = &record.tokens[at];
            let line = &mut self.line;
            match (record.rows.get(at), self.separator) {
                (None, _) => push_row((["", separator.text(), ""], false), token, tag, line),
                (Some(row), None) => push_retagged(row, tag, line),
                (Some(row), Some(separator)) => {
                    let (parts, tag_first) = row.around();
                    let parts = parts.map(|part| separator.replace_in(part));
                    let parts = [&*parts[0], &parts[1], parts[2].trim_end()];
                    push_row((parts, tag_first), token, tag, line);
                }
            }
            self.line.push(b'\n');
        }
        self.write_line()
    }

    /// Writes a sentence that came from a CoNLL file as it was.
    pub fn copy(&mut self, record: &Record<'_>) -> io::Result<()> {
        self.line.clear();
        self.push_before(record);
        for row in &record.rows {
            self.line.extend_from_slice(row.text.as_bytes());
            self.line.push(b'\n');
        }
        self.write_line()
    }

    fn write_line(&mut self) -> io::Result<()> {
        self.line.push(b'\n');
        if !self.started {
            guard_mark(&mut self.line);
            self.started = true;
        }
        self.out.write_all(&self.line)
    }

    fn push_before(&mut self, record: &Record<'_>) {
        for comment in &record.before {
            self.line.extend_from_slice(comment.as_bytes());
            self.line.push(b'\n');
            if super::is_document_start(comment) {
                self.line.push(b'\n');
            }
        }
    }

    /// Writes the comments after the last sentence.
    pub fn write_after(&mut self, after: &[String]) -> io::Result<()> {
        after.iter().try_for_each(|comment| writeln!(self.out, "{comment}"))
    }

    /// Hands the output back.
    pub fn finish(self) -> W {
        self.out
    }
}

/// A file that starts with U+FEFF would lose it to the reader, who takes it for a byte order mark.
pub(crate) fn guard_mark(start: &mut Vec<u8>) {
    const MARK: &[u8] = "\u{feff}".as_bytes();
    if start.starts_with(MARK) {
        start.splice(0..0, MARK.iter().copied());
    }
}

/// Appends `row` with another tag.
fn push_retagged(row: &Row<'_>, tag: Spelled<'_>, out: &mut Vec<u8>) {
    let text = row.text.as_bytes();
    out.extend_from_slice(&text[..row.tag.0]);
    tag.push_to(out);
    out.extend_from_slice(&text[row.tag.1..]);
}

/// Appends a row: `token` and `tag` inside the text that stood around them.
pub fn push_row(around: ([&str; 3], bool), token: &str, tag: Spelled<'_>, out: &mut Vec<u8>) {
    let ([head, middle, tail], tag_first) = around;
    out.extend_from_slice(head.as_bytes());
    if tag_first {
        tag.push_to(out);
    } else {
        out.extend_from_slice(token.as_bytes());
    }
    out.extend_from_slice(middle.as_bytes());
    if tag_first {
        out.extend_from_slice(token.as_bytes());
    } else {
        tag.push_to(out);
    }
    out.extend_from_slice(tail.as_bytes());
}
