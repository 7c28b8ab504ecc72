//! Detects the format of unlabelled text.

use super::options::TextFormat;
use crate::conll::{Layout, is_document_start};
use crate::formats::is_json;
use crate::tag::is_tag;

/// The number of lines that are examined.
const SAMPLE: usize = 2_000;
/// At most one in this number of lines may differ from the others in a CoNLL file.
const FEW: usize = 20;
/// The largest mean number of characters of tokens. The words of all languages are shorter; lines of text are longer.
const MAX_MEAN: usize = 15;

impl TextFormat {
    /// Detects the format from the first 2,000 lines that are neither empty nor comments.
    ///
    /// 1. A text that starts with a JSON object is JSON lines. So is one that starts with an array of objects, which the
    ///    reader refuses.
    /// 2. A text is CoNLL if a line marks the start of a document (`-DOCSTART-`), or if at most one in 20 lines has
    ///    another number of columns than the others, and
    ///    - there are two or more lines, and one column is `O` or a tag such as `B-PER` in more than half of them, or
    ///    - the column of the token has 15 or fewer characters in the mean, and is only a punctuation mark in at least
    ///      one line, but in fewer than half of them.
    /// 3. All other texts are plain text.
    pub(crate) fn detect(text: &str) -> Self {
        if is_json(text) {
            return Self::Jsonl;
        }
        let lines = text.lines().map(str::trim_end).filter(|line| !line.trim_ascii().is_empty());
        if lines.clone().take(SAMPLE).any(is_document_start) {
            return Self::Conll;
        }
        let rows: Vec<&str> = lines.filter(|line| !line.starts_with('#')).take(SAMPLE).collect();
        if !rows.is_empty() && is_conll(text, &rows) { Self::Conll } else { Self::Plain }
    }
}

fn is_conll(text: &str, rows: &[&str]) -> bool {
    let layout = Layout::detect(text);
    let split: Vec<_> = rows.iter().map(|row| layout.separator.split(row)).collect();
    let regular = || split.iter().filter(|columns| columns.len() == layout.n_columns);
    if (rows.len() - regular().count()) * FEW > rows.len() {
        return false;
    }
    // A single letter such as `I` is a tag too, but it is also a word, so it is not counted.
    let is_tag = |tag: &str| tag == "O" || tag.contains('-') && is_tag(tag);
    let n_tags = regular().filter(|columns| is_tag(columns[layout.tag])).count();
    if layout.n_columns > 1 && rows.len() > 1 && n_tags * 2 > rows.len() {
        return true;
    }
    let tokens = || regular().map(|columns| columns[layout.token]);
    let n_chars: usize = tokens().map(|token| token.chars().count()).sum();
    let is_mark = |token: &&str| token.chars().all(|c| !c.is_alphanumeric() && !c.is_whitespace());
    let n_marks = tokens().filter(is_mark).count();
    n_chars <= MAX_MEAN * rows.len() && n_marks > 0 && n_marks * 2 < rows.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_are_detected() {
        use TextFormat::{Conll, Jsonl, Plain};
        let bullets = "- Rome\n".repeat(20);
        let names = "Ada Lovelace\n".repeat(20);
        let chinese = "我在北京，他是中国人，我们都在这里生活和工作。\n".repeat(20) + "。\n";
        for (text, format) in [
            ("{\"text\": \"Ada sang.\"}\n", Jsonl),
            ("\n {}\n", Jsonl),
            ("Ada B-PER\nsang O\n", Conll),
            ("Ada\nsang\n.\n\nIt\nrained\n.\n", Conll),
            ("# id 1\nAda\nsang\n.\n", Conll),
            ("-DOCSTART-\n\nAda\nsang\n", Conll),
            ("Bonn NE\nist VA\nalt ADJ\n. $.\n", Conll),
            (&bullets, Plain),
            (&names, Plain),
            ("Ada\tNNP\tB-PER\nsang\tV\tO\n.\t.\tO\n", Conll),
            ("Ada sang.\nIt rained.\n", Plain),
            ("Ada sang in Rome.\n\nIt rained.\n", Plain),
            ("Paris\nRome\nOslo\n", Plain),
            ("# A title\n\nText under it, on a long line.\n", Plain),
            ("{Ada} sang\n", Plain),
            ("Ada B-PER\n", Plain),
            ("Who am I\nSo do I\n", Plain),
            (&chinese, Plain),
            ("", Plain),
        ] {
            assert_eq!(TextFormat::detect(text), format, "{text}");
        }
    }
}
