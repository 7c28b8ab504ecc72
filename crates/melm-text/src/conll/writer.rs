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
    scheme: Scheme,
    separator: Separator,
    line: Vec<u8>,
}

impl<W: Write> ConllWriter<W> {
    /// Tags are spelt in `scheme`. `separator` stands between token and tag of sentences that
    /// come without rows of their own.
    pub fn new(out: W, scheme: Scheme, separator: Separator) -> Self {
        Self { out, scheme, separator, line: Vec::new() }
    }

    /// Writes a sentence with `tags` in place of its own.
    pub fn write(
        &mut self,
        record: &Record<'_>,
        tags: &[Tag],
        types: &EntityTypes,
    ) -> io::Result<()> {
        self.line.clear();
        for comment in &record.before {
            self.line.extend_from_slice(comment.as_bytes());
            self.line.push(b'\n');
            if super::is_document_start(comment) {
                self.line.push(b'\n');
            }
        }
        for (at, &tag) in tags.iter().enumerate() {
            let tag = types.spell(tag, self.scheme);
            let plain = (["", self.separator.text(), ""], false);
            let around = record.rows.get(at).map_or(plain, Row::around);
            push_row(around, &record.tokens[at], tag, &mut self.line);
            self.line.push(b'\n');
        }
        self.line.push(b'\n');
        self.out.write_all(&self.line)
    }

    /// Writes the comments after the last sentence and hands the output back.
    pub fn finish(mut self, after: &[&str]) -> io::Result<W> {
        for comment in after {
            writeln!(self.out, "{comment}")?;
        }
        self.out.flush()?;
        Ok(self.out)
    }
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
