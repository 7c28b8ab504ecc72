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
    /// Splits rows whose columns get another separator.
    from: Separator,
    line: Vec<u8>,
    started: bool,
}

impl<W: Write> ConllWriter<W> {
    /// Tags are spelt in `scheme`, or with the letters of the input.
    pub fn new(out: W, scheme: Option<Scheme>) -> Self {
        let from = Separator::Space;
        Self { out, scheme, separator: None, from, line: Vec::new(), started: false }
    }

    /// Writes `to` between columns, where `from` stands in rows that come from a file. Otherwise
    /// rows keep what stood between theirs, and sentences without rows get a tab.
    #[must_use]
    pub fn separated(mut self, to: Separator, from: Option<Separator>) -> Self {
        self.separator = Some(to);
        self.from = from.unwrap_or(to);
        self
    }

    /// Whether columns get another separator than they had.
    pub fn is_separated(&self) -> bool {
        self.separator.is_some()
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
            let line = &mut self.line;
            match (record.rows.get(at), self.separator) {
                (None, _) => {
                    push_row((["", separator.text(), ""], false), &record.tokens[at], tag, line);
                }
                (Some(row), None) => push_retagged(row, tag, line),
                (Some(row), Some(to)) => {
                    let start = line.len();
                    push_retagged(row, tag, line);
                    respace(line, start, self.from, to);
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
        if record.rows.is_empty()
            && let Some(id) = record.id()
        {
            self.line.extend_from_slice(format!("# id {id}\n").as_bytes());
        }
        for comment in &record.before {
            // A document mark of JSON lines is an object.
            let document = comment.starts_with('{');
            let text = if document { "-DOCSTART-\tO" } else { comment };
            self.line.extend_from_slice(text.as_bytes());
            self.line.push(b'\n');
            if document || super::is_document_start(comment) {
                self.line.push(b'\n');
            }
        }
    }

    /// Writes the comments after the last sentence.
    pub fn write_after(&mut self, after: &[String]) -> io::Result<()> {
        after.iter().try_for_each(|comment| writeln!(self.out, "{comment}"))
    }

    /// What it writes to.
    pub fn out(&mut self) -> &mut W {
        &mut self.out
    }

    /// Hands the output back.
    pub fn finish(self) -> W {
        self.out
    }
}

/// Puts `to` between the columns of the row that starts at `start`.
fn respace(line: &mut Vec<u8>, start: usize, from: Separator, to: Separator) {
    let row = String::from_utf8_lossy(&line[start..]).into_owned();
    let columns = from.split(row.trim_end_matches(' '));
    line.truncate(start);
    line.extend_from_slice(columns.join(to.text()).as_bytes());
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
