//! Plain text without labels: recognised, and read as documents.

use super::builder::document_tokenizer;
use super::document::Document;
use crate::conll::Layout;
use crate::source::Source;
use crate::tag::is_tag;
use crate::unlabelled::TextFormat;

/// What a text that is no JSON looks like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TextKind {
    /// CoNLL rows: one token on each line.
    Rows,
    /// Plain text: sentences or paragraphs on lines.
    Prose,
    /// Either: the lines have the same number of words, and nothing else says which it is.
    Unclear,
}

impl TextKind {
    /// Decides whether a text is CoNLL rows or prose. A text with one word on each line counts as rows.
    pub fn detect(text: &str) -> Self {
        if TextFormat::detect(text) != TextFormat::Plain || text.contains('\t') {
            return Self::Rows;
        }
        let lines = text.lines().map(str::trim_ascii).filter(|line| !line.is_empty());
        let rows: Vec<&str> = lines.filter(|line| !line.starts_with('#')).take(2_000).collect();
        let last = |row: &&str| row.rsplit(' ').next().unwrap_or_default().to_owned();
        let is_tagged = |row: &&str| {
            let last = last(row);
            last == "O" || last.contains('-') && is_tag(&last)
        };
        let layout = Layout::detect(text);
        let has_tags = rows.iter().any(is_tagged)
            && rows.iter().filter(|row| is_tagged(row)).count() * 2 >= rows.len();
        if layout.n_columns == 1 || has_tags || rows.is_empty() {
            return Self::Rows;
        }
        let is_regular = |row: &&str| layout.separator.split(row).len() == layout.n_columns;
        if rows.len() > 1 && rows.iter().all(is_regular) { Self::Unclear } else { Self::Prose }
    }
}

/// Reads plain text: one document for each line that is not blank. Line ends and blank lines are not part of a document.
pub fn read_plain(source: &Source) -> Vec<Document> {
    let tokenizer = document_tokenizer();
    let lines = source.text().split('\n').enumerate();
    let documents = lines.filter_map(|(at, line)| {
        let line = line.strip_suffix('\r').unwrap_or(line);
        let mut document = Document::new(line, Vec::new(), &tokenizer);
        document.line = at + 1;
        (!document.tokens.is_empty()).then_some(document)
    });
    documents.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prose_is_told_from_rows() {
        for (text, kind) in [
            ("Angela visited Paris today\n", TextKind::Prose),
            ("Ada sang. It rained.\nBob left.\n", TextKind::Prose),
            ("Ada sang\nIt rained\n", TextKind::Unclear),
            ("Ada\nsang\n", TextKind::Rows),
            ("Ada B-PER\n", TextKind::Rows),
            ("Ada\tNE\nsang\tV\n", TextKind::Rows),
            ("Ada O\nsang O\n", TextKind::Rows),
            ("Bonn NE\nist VA\nalt ADJ\n. $.\n", TextKind::Rows),
            ("", TextKind::Rows),
        ] {
            assert_eq!(TextKind::detect(text), kind, "{text}");
        }
    }

    #[test]
    fn each_line_is_a_document() {
        let source = Source::from_text("a", "Ada sang.\r\n\n  It 😀 rained. So?\n\u{200b}\n");
        let documents = read_plain(&source);
        let found: Vec<_> = documents.iter().map(|one| (one.line(), one.text())).collect();
        assert_eq!(found, [(1, "Ada sang."), (3, "  It 😀 rained. So?")]);
        assert_eq!(documents[1].sentences().len(), 2);
    }
}
