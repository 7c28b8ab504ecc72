//! Plain text without labels: recognised, and read as documents.

use super::builder::document_tokenizer;
use super::document::Document;
use crate::conll::Separator;
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
    /// Either of the two.
    Unclear(TextDoubt),
}

/// The reason why a text may be CoNLL rows or prose.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum TextDoubt {
    /// The lines have the same number of words, and nothing else says what they are.
    #[error("its lines have the same number of words")]
    SameNumberOfWords,
    /// Most lines have one word, the others have more.
    #[error("most of its lines have one word, but the others have more")]
    ManyLinesOfOneWord,
    /// Most lines have tabs, and a column has spaces in most lines.
    #[error("its lines have tabs, and a column between them contains spaces")]
    SpacesInColumn,
}

/// The number of lines that are examined.
const SAMPLE: usize = 2_000;

/// The largest mean number of characters of a token. Lines without spaces that are longer are text in a script without
/// spaces. (The detection of unlabelled text has the same limit.)
const MAX_MEAN: usize = 15;

impl TextKind {
    /// Decides whether a text is CoNLL rows or prose from its first 2,000 lines that are neither empty nor comments.
    ///
    /// A text is rows if half of its lines end in a tag, if nine in ten lines have one word, or if most lines have tabs and
    /// no column has spaces in most lines. A few tabs or a few lines of one word do not make rows.
    pub fn detect(text: &str) -> Self {
        if TextFormat::detect(text) != TextFormat::Plain {
            return Self::Rows;
        }
        let lines = text.lines().map(str::trim_ascii).filter(|line| !line.is_empty());
        let rows: Vec<&str> = lines.filter(|line| !line.starts_with('#')).take(SAMPLE).collect();
        let n_tagged = rows.iter().filter(|row| ends_in_tag(row)).count();
        if n_tagged * 2 >= rows.len() {
            return Self::Rows;
        }
        let tabbed: Vec<&str> = rows.iter().copied().filter(|row| row.contains('\t')).collect();
        if tabbed.len() * 2 > rows.len() { from_columns(&tabbed) } else { from_words(&rows) }
    }
}

/// Returns true if the last word of a line is `O` or a tag such as `B-PER`. A single letter such as `I` is a tag too, but
/// it is also a word, so it is not counted.
fn ends_in_tag(row: &str) -> bool {
    let last = row.rsplit([' ', '\t']).next().unwrap_or_default();
    last == "O" || last.contains('-') && is_tag(last)
}

/// Decides about lines with tabs.
fn from_columns(rows: &[&str]) -> TextKind {
    let mut n_spaced: Vec<usize> = Vec::new();
    for row in rows {
        for (column, cell) in row.split('\t').enumerate() {
            n_spaced.resize(n_spaced.len().max(column + 1), 0);
            n_spaced[column] += usize::from(cell.trim_ascii().contains(' '));
        }
    }
    if n_spaced.into_iter().any(|n| n * 2 > rows.len()) {
        return TextKind::Unclear(TextDoubt::SpacesInColumn);
    }
    TextKind::Rows
}

/// Decides about lines without tabs, or with few.
fn from_words(rows: &[&str]) -> TextKind {
    let n_words = |row: &&str| Separator::Space.split(row).len();
    let single: Vec<&str> = rows.iter().copied().filter(|row| n_words(row) == 1).collect();
    if single.len() * 10 >= rows.len() * 9 {
        return if are_sentences(&single) { TextKind::Prose } else { TextKind::Rows };
    }
    if single.len() * 2 > rows.len() {
        return TextKind::Unclear(TextDoubt::ManyLinesOfOneWord);
    }
    let is_regular =
        rows.len() > 1 && rows.windows(2).all(|two| n_words(&two[0]) == n_words(&two[1]));
    if is_regular { TextKind::Unclear(TextDoubt::SameNumberOfWords) } else { TextKind::Prose }
}

/// Returns true if lines without spaces are sentences of a script that has no spaces.
fn are_sentences(rows: &[&str]) -> bool {
    let n_chars: usize = rows.iter().map(|row| row.chars().count()).sum();
    let is_ended = |row: &&&str| {
        let rest = row.strip_suffix(['。', '！', '？', '｡']);
        rest.is_some_and(|rest| !rest.is_empty())
    };
    n_chars > MAX_MEAN * rows.len() || rows.iter().filter(is_ended).count() * 2 > rows.len()
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
        let one_long = "Ada\n".repeat(9) + "3 000\n";
        for (text, kind) in [
            ("Angela visited Paris today\n", TextKind::Prose),
            ("Ada sang. It rained.\nBob left.\n", TextKind::Prose),
            ("Ada sang\nIt rained\n", TextKind::Unclear(TextDoubt::SameNumberOfWords)),
            ("Hello.\nAngela Merkel lives in Berlin.\n", TextKind::Prose),
            (
                "Hello.\nThanks.\nAda sang a song.\n",
                TextKind::Unclear(TextDoubt::ManyLinesOfOneWord),
            ),
            (&one_long, TextKind::Rows),
            ("1\tAda sang.\n2\tIt rained today.\n", TextKind::Unclear(TextDoubt::SpacesInColumn)),
            (
                "Ada sang\ta song.\nIt rained\tthe whole day.\n",
                TextKind::Unclear(TextDoubt::SpacesInColumn),
            ),
            ("Ada sang a\tsong.\nIt rained.\nBob left for Rome.\n", TextKind::Prose),
            ("\tAda sang a song.\n\tIt rained.\n", TextKind::Prose),
            ("1\tAda\tNE\n2\tsang a\tV\n3\tsong\tNN\n", TextKind::Rows),
            ("New York\tB-LOC\nHong Kong\tB-LOC\n", TextKind::Rows),
            ("Ada\tB-PER\nsang O\nthere O\n", TextKind::Rows),
            ("安妮住在北京。\n今天下雨了。\n", TextKind::Prose),
            ("安\n妮\n住\n在\n", TextKind::Rows),
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
