//! One sentence as its file spells it, borrowed from the text. Readers fill a record, and writers write it.
//!
//! A pass over a file reuses one `Record` for all sentences and copies nothing. To own sentences,
//! read a [`crate::Corpus`].

use std::borrow::Cow;
use std::ops::Range;

use crate::tag::Tag;

/// A sentence with everything that the file contains about the sentence.
#[derive(Debug, Clone, Default)]
pub struct Record<'t> {
    /// The line of the first token, from 1.
    pub line: usize,
    /// The comment and `-DOCSTART-` lines before the sentence.
    pub lines_before: Vec<&'t str>,
    /// The tokens.
    pub tokens: Vec<Cow<'t, str>>,
    /// The tag of each token.
    pub tags: Vec<Tag>,
    /// CoNLL: the row of each token, with all its columns. Empty for JSON lines.
    pub rows: Vec<Row<'t>>,
    /// JSON lines: every key of the object, with its value as spelt in the file. Empty for CoNLL.
    pub fields: Vec<(Cow<'t, str>, &'t str)>,
    /// Text with spans: the text before each token, since the token before it. Empty for other formats.
    pub gaps: Vec<Box<str>>,
    /// Text with spans: the id of the document.
    pub document_id: Option<Box<str>>,
    /// BRAT: the name of the file with the text, without its folder. `line` is a line of this file.
    pub file: Option<Box<str>>,
    /// True if a row of the sentence has a problem and is left out.
    pub is_incomplete: bool,
}

impl Record<'_> {
    pub(crate) fn clear(&mut self) {
        self.lines_before.clear();
        self.tokens.clear();
        self.tags.clear();
        self.rows.clear();
        self.fields.clear();
        self.gaps.clear();
        self.document_id = None;
        self.file = None;
        self.is_incomplete = false;
    }

    /// The line of a token, from 1: that of its row, or that of the JSON object.
    pub fn line_of(&self, token: usize) -> usize {
        self.rows.get(token).or(self.rows.last()).map_or(self.line, |row| row.line)
    }

    /// The id of the sentence, from a comment (`# id …`, `# sent_id = …`) or the JSON key `id`, or the id of its document.
    pub fn id(&self) -> Option<&str> {
        // Of several comments, the last one belongs to this sentence.
        let from_comment = self.lines_before.iter().rev().find_map(|line| {
            let rest = line.strip_prefix('#')?.trim_start();
            let rest = rest.strip_prefix("sent_").unwrap_or(rest).strip_prefix("id")?;
            let id = rest.trim_start_matches([' ', '\t', '=', ':']);
            let separated = id.len() < rest.len();
            id.split([' ', '\t']).next().filter(|id| separated && !id.is_empty())
        });
        let from_field = || {
            let (_, raw) = self.fields.iter().find(|(key, _)| key == "id")?;
            Some(raw.trim_matches('"')).filter(|&id| id != "null")
        };
        from_comment.or_else(from_field).or(self.document_id.as_deref())
    }
}

/// A row of a CoNLL file, and the positions of token and tag in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row<'t> {
    /// The line in the file, from 1.
    pub line: usize,
    /// The whole row, without its line end.
    pub text: &'t str,
    /// The bytes of `text` that are the token.
    pub token: Range<usize>,
    /// The bytes of `text` that are the tag.
    pub tag: Range<usize>,
}

impl<'t> Row<'t> {
    /// Returns the text around token and tag.
    pub(crate) fn frame(&self) -> RowFrame<'t> {
        let tag_first = self.tag.start < self.token.start;
        let (first, second) =
            if tag_first { (&self.tag, &self.token) } else { (&self.token, &self.tag) };
        RowFrame {
            before: &self.text[..first.start],
            between: &self.text[first.end..second.start],
            after: &self.text[second.end..],
            tag_first,
        }
    }
}

/// A row without its token and its tag: separators and all other columns.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RowFrame<'t> {
    pub(crate) before: &'t str,
    pub(crate) between: &'t str,
    pub(crate) after: &'t str,
    pub(crate) tag_first: bool,
}

impl<'t> RowFrame<'t> {
    /// The frame of a row that contains only `token TAB tag`.
    pub(crate) const TOKEN_TAB_TAG: RowFrame<'static> = RowFrame::separated_by("\t");

    /// The frame of a row that contains only the token, `separator` and the tag.
    pub(crate) const fn separated_by(separator: &'t str) -> Self {
        Self { before: "", between: separator, after: "", tag_first: false }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_id_is_read_from_the_last_comment_that_has_one() {
        let id = |before: &[&'static str]| {
            let record = Record { lines_before: before.to_vec(), ..Record::default() };
            record.id().map(str::to_owned)
        };
        assert_eq!(id(&["# id 5239d808\tdomain=en"]), Some("5239d808".to_owned()));
        assert_eq!(id(&["# sent_id = s7"]), Some("s7".to_owned()));
        assert_eq!(id(&["# id 1", "# id 2"]), Some("2".to_owned()));
        assert_eq!(id(&["# idea of mine", "# identifier 12"]), None);
    }
}
