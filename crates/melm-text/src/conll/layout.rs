//! The layout of a CoNLL file: the separator, and the columns of token and tag.

use std::str::FromStr;

use crate::tag::{are_bare_types, is_tag};
use crate::token::DOCUMENT_START;

/// The separator between columns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Separator {
    /// One tab. Tokens may contain spaces.
    Tab,
    /// Any run of spaces and tabs.
    Space,
}

impl FromStr for Separator {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        match name {
            "tab" => Ok(Separator::Tab),
            "space" => Ok(Separator::Space),
            _ => Err("expected tab or space".into()),
        }
    }
}

/// The layout of a CoNLL file. Columns count from 0 here, and from 1 in options and messages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Layout {
    /// The separator between columns.
    pub separator: Separator,
    /// The number of columns of a row.
    pub n_columns: usize,
    /// The column of the token.
    pub token: usize,
    /// The column of the tag.
    pub tag: usize,
    /// Other columns that also look like tags. Commands report them, so that the user notices a wrong choice.
    pub also_tags: Vec<usize>,
    /// True if there are tags without a type, such as `B`.
    pub bare_tags: bool,
    /// True if the tags are entity types without a prefix, such as `PER`. They are read as tags of IO.
    pub bare_types: bool,
}

/// The number of rows from which the layout is detected.
const SAMPLE: usize = 2_000;

/// A column holds tags if more than this share of the sampled rows have a tag in it.
const MOST: f64 = 0.5;

impl Layout {
    /// Detects the layout from the first rows of a file. A file without rows has two columns.
    pub(crate) fn detect(text: &str) -> Self {
        let rows: Vec<&str> = sample(text);
        let with_tab = rows.iter().filter(|row| row.contains('\t')).count();
        let separator = if with_tab * 2 > rows.len() { Separator::Tab } else { Separator::Space };
        let split: Vec<Vec<&str>> = rows.iter().map(|row| separator.split(row)).collect();
        let n_columns = most_frequent(split.iter().map(Vec::len)).unwrap_or(2);
        let regular: Vec<_> = split.into_iter().filter(|row| row.len() == n_columns).collect();

        let numbered = n_columns > 2 && is_numbered(&regular);
        let token = usize::from(numbered);
        let tags_in = |column: usize| regular.iter().filter(|row| is_tag(row[column])).count();
        let looks_like_tags =
            |&column: &usize| tags_in(column) as f64 > MOST * regular.len() as f64;
        // Use the last column with tags, as in every CoNLL shared task. In files with token numbers use the first one,
        // because the second tag column of GermEval contains only nested mentions.
        let mut candidates: Vec<usize> =
            (token + 1..n_columns).rev().filter(looks_like_tags).collect();
        if numbered {
            candidates.reverse();
        }
        let tag = candidates.first().copied().unwrap_or(n_columns.saturating_sub(1));
        candidates.retain(|&column| column != tag);
        let bare_tags = regular
            .iter()
            .any(|row| matches!(row.get(tag), Some(&("B" | "I" | "E" | "S" | "L" | "U"))));
        let bare_types = are_bare_types(&regular.iter().filter_map(|row| row.get(tag).copied()));
        Self { separator, n_columns, token, tag, also_tags: candidates, bare_tags, bare_types }
    }
}

impl Separator {
    /// The text that is written between columns.
    pub fn text(self) -> &'static str {
        match self {
            Separator::Tab => "\t",
            Separator::Space => " ",
        }
    }

    /// Splits a row into its columns.
    pub fn split(self, row: &str) -> Vec<&str> {
        match self {
            Separator::Tab => row.split('\t').collect(),
            Separator::Space => row.split([' ', '\t']).filter(|c| !c.is_empty()).collect(),
        }
    }
}

/// Returns the first rows of a text. Lines that start with `#` may be comments, so they are used only if there are no
/// other lines.
fn sample(text: &str) -> Vec<&str> {
    let lines = || {
        let lines = text.lines().map(|line| line.trim_end_matches([' ', '\r']));
        lines.filter(|line| !line.trim_ascii().is_empty() && !is_document_start(line))
    };
    let rows: Vec<_> = lines().filter(|line| !line.starts_with('#')).take(SAMPLE).collect();
    if rows.is_empty() {
        lines().filter(|line| ends_in_tag(line)).take(SAMPLE).collect()
    } else {
        rows
    }
}

/// Returns true if the last column of a line is a tag. A line that starts with `#` may then be a row, not a comment.
fn ends_in_tag(line: &str) -> bool {
    let last = line.rsplit('\t').next().filter(|_| line.contains('\t'));
    is_tag(last.or(line.rsplit(' ').next()).unwrap_or(""))
}

/// Returns true if a row marks the start of a document, whatever its other columns are. In a tab-separated file, a
/// token may itself start with `-DOCSTART-` and a space. Such a row is an ordinary row.
pub(crate) fn is_document_start(row: &str) -> bool {
    row.strip_prefix(DOCUMENT_START).is_some_and(|rest| {
        rest.is_empty() || rest.starts_with('\t') || rest.starts_with(' ') && !rest.contains('\t')
    })
}

/// Returns true if the first column numbers the tokens, as in GermEval and CoNLL-U files: it contains numbers, and most
/// of them are 1 or one more than the number in the row before.
fn is_numbered(rows: &[Vec<&str>]) -> bool {
    let numbers: Vec<Option<u64>> = rows.iter().map(|row| row[0].parse().ok()).collect();
    let counts_on = numbers
        .iter()
        .enumerate()
        .filter(|&(at, number)| {
            match (number, at.checked_sub(1).and_then(|before| numbers[before])) {
                (Some(1), _) => true,
                (Some(number), Some(before)) => number.checked_sub(1) == Some(before),
                _ => false,
            }
        })
        .count();
    let has_numbers = numbers.iter().flatten().count() * 10 >= rows.len() * 9;
    !rows.is_empty() && has_numbers && counts_on * 2 >= rows.len()
}

/// Returns the most frequent value.
fn most_frequent(values: impl Iterator<Item = usize>) -> Option<usize> {
    let mut counts = std::collections::BTreeMap::<usize, usize>::new();
    for value in values {
        *counts.entry(value).or_default() += 1;
    }
    // If two values are equally frequent, take the smaller one: broken rows more often have too many columns than too
    // few.
    counts.into_iter().rev().max_by_key(|&(_, n)| n).map(|(value, _)| value)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn columns(text: &str) -> (Separator, usize, usize, usize) {
        let layout = Layout::detect(text);
        (layout.separator, layout.n_columns, layout.token, layout.tag)
    }

    #[test]
    fn the_layouts_of_the_shared_tasks_are_detected() {
        let conll2003 = "-DOCSTART- -X- -X- O\n\nEU NNP B-NP B-ORG\nrejects VBZ B-VP O\n";
        assert_eq!(columns(conll2003), (Separator::Space, 4, 0, 3));
        assert_eq!(Layout::detect(conll2003).also_tags, [2]);
        assert_eq!(columns("De Art O\nkat N B-PER\n"), (Separator::Space, 3, 0, 2));
        assert_eq!(columns("EU\tB-ORG\nsays\tO\n"), (Separator::Tab, 2, 0, 1));
        let germeval = "# source\n1\tDer\tO\tO\n2\tBonner\tB-LOC\tO\n\n1\tJa\tO\tO\n";
        assert_eq!(columns(germeval), (Separator::Tab, 4, 1, 2));
        let slip = "1\tDer\tO\tO\n2\tFC\tB-ORG\tO\n2\tBonn\tI-ORG\tB-LOC\n\n1\tJa\tO\tO\n";
        assert_eq!(columns(slip), (Separator::Tab, 4, 1, 2));
        assert_eq!(columns("1 a O\n18446744073709551615 b O\n2 c O\n").2, 0);
        let multiconer = "# id 1 domain=en\nBonn _ _ B-LOC\nis _ _ O\n";
        assert_eq!(columns(multiconer), (Separator::Space, 4, 0, 3));
    }

    #[test]
    fn the_tag_column_need_not_be_the_last() {
        assert_eq!(columns("Bonn B-LOC 0.9\nis O 0.8\n"), (Separator::Space, 3, 0, 1));
    }

    #[test]
    fn a_wrong_tag_in_the_last_column_does_not_move_it() {
        let text = "EU NNP B-NP ORG\nsays VBZ B-VP O\nso RB B-NP O\n";
        assert_eq!(columns(text).3, 3);
    }

    #[test]
    fn an_empty_file_has_two_columns() {
        assert_eq!(columns(""), (Separator::Space, 2, 0, 1));
    }
}
