//! Writes sentences as CoNLL rows.

use std::io::{self, Write};

use super::layout::Separator;
use crate::record::{Record, Row, RowFrame};
use crate::scheme::Scheme;
use crate::tag::{EntityTypes, SpelledTag, Tag};

/// Writes CoNLL rows. Sentences from a CoNLL file keep their other columns.
#[derive(Debug)]
pub struct ConllWriter<W> {
    out: W,
    scheme: Option<Scheme>,
    separator: Option<Separator>,
    /// The separator of the input rows, which is replaced by `separator`.
    from: Separator,
    line: Vec<u8>,
    started: bool,
}

impl<W: Write> ConllWriter<W> {
    /// Writes to `out`. Tags are spelt with the letters of `scheme`. If `scheme` is `None`, tags are spelt as in the
    /// input.
    pub fn new(out: W, scheme: Option<Scheme>) -> Self {
        let from = Separator::Space;
        Self { out, scheme, separator: None, from, line: Vec::new(), started: false }
    }

    /// Separates columns by `to` instead of `from`, the separator of the input. Without this call,
    /// rows keep their separators, and sentences without rows get a tab.
    #[must_use]
    pub fn with_separator(mut self, to: Separator, from: Option<Separator>) -> Self {
        self.separator = Some(to);
        self.from = from.unwrap_or(to);
        self
    }

    /// Returns true if the writer replaces separators.
    pub fn replaces_separators(&self) -> bool {
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
        self.push_lines_before(record);
        let separator = self.separator.unwrap_or(Separator::Tab);
        let scheme = self.scheme.unwrap_or(types.input_spelling());
        for (at, &tag) in tags.iter().enumerate() {
            let tag = types.spell(tag, scheme);
            let line = &mut self.line;
            match (record.rows.get(at), self.separator) {
                (None, _) => {
                    let frame = RowFrame::separated_by(separator.text());
                    push_row(frame, &record.tokens[at], tag, line);
                }
                (Some(row), None) => push_retagged(row, tag, line),
                (Some(row), Some(to)) => {
                    let start = line.len();
                    push_retagged(row, tag, line);
                    replace_separators(line, start, self.from, to);
                }
            }
            self.line.push(b'\n');
        }
        self.write_sentence()
    }

    /// Writes a sentence from a CoNLL file without any change.
    pub fn copy(&mut self, record: &Record<'_>) -> io::Result<()> {
        self.line.clear();
        self.push_lines_before(record);
        for row in &record.rows {
            self.line.extend_from_slice(row.text.as_bytes());
            self.line.push(b'\n');
        }
        self.write_sentence()
    }

    /// Adds an empty line after the sentence, and writes the sentence.
    fn write_sentence(&mut self) -> io::Result<()> {
        self.line.push(b'\n');
        if !self.started {
            escape_byte_order_mark(&mut self.line);
            self.started = true;
        }
        self.out.write_all(&self.line)
    }

    /// Appends the lines before a sentence: comments and `-DOCSTART-` lines, and the id if the sentence comes from JSON
    /// lines.
    fn push_lines_before(&mut self, record: &Record<'_>) {
        if record.rows.is_empty()
            && let Some(id) = record.id()
        {
            self.line.extend_from_slice(format!("# id {id}\n").as_bytes());
        }
        for comment in &record.lines_before {
            // In JSON lines, an object marks the start of a document.
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
    pub fn write_lines_after(&mut self, after: &[String]) -> io::Result<()> {
        after.iter().try_for_each(|comment| writeln!(self.out, "{comment}"))
    }

    /// The output.
    pub fn out(&mut self) -> &mut W {
        &mut self.out
    }

    /// Returns the output without flushing it.
    pub fn finish(self) -> W {
        self.out
    }
}

/// Replaces the separators of the row that starts at `start` of `line`.
fn replace_separators(line: &mut Vec<u8>, start: usize, from: Separator, to: Separator) {
    let row = String::from_utf8_lossy(&line[start..]).into_owned();
    let columns = from.split(row.trim_end_matches(' '));
    line.truncate(start);
    line.extend_from_slice(columns.join(to.text()).as_bytes());
}

/// Doubles a U+FEFF at the start of a file, because readers remove the first one as a byte order mark.
pub(crate) fn escape_byte_order_mark(start: &mut Vec<u8>) {
    const MARK: &[u8] = "\u{feff}".as_bytes();
    if start.starts_with(MARK) {
        start.splice(0..0, MARK.iter().copied());
    }
}

/// Appends `row` with another tag.
fn push_retagged(row: &Row<'_>, tag: SpelledTag<'_>, out: &mut Vec<u8>) {
    let text = row.text.as_bytes();
    out.extend_from_slice(&text[..row.tag.start]);
    tag.push_to(out);
    out.extend_from_slice(&text[row.tag.end..]);
}

/// Appends a row: the separators and other columns of `frame`, with `token` and `tag` in their places.
pub(crate) fn push_row(frame: RowFrame<'_>, token: &str, tag: SpelledTag<'_>, out: &mut Vec<u8>) {
    out.extend_from_slice(frame.before.as_bytes());
    if frame.tag_first {
        tag.push_to(out);
    } else {
        out.extend_from_slice(token.as_bytes());
    }
    out.extend_from_slice(frame.between.as_bytes());
    if frame.tag_first {
        out.extend_from_slice(token.as_bytes());
    } else {
        tag.push_to(out);
    }
    out.extend_from_slice(frame.after.as_bytes());
}
