//! One sentence as it stands in its file, borrowed from it: what readers yield and writers take.
//!
//! A million sentences pass through one reused `Record`; [`crate::Corpus`] is for those who want
//! to own them.

use std::borrow::Cow;

use crate::tag::Tag;

/// A sentence with all that its file says of it.
#[derive(Debug, Clone, Default)]
pub struct Record<'t> {
    /// Line of its first token, from 1.
    pub line: usize,
    /// Comment and `-DOCSTART-` lines that stand before it.
    pub before: Vec<&'t str>,
    /// Its tokens.
    pub tokens: Vec<Cow<'t, str>>,
    /// Their tags.
    pub tags: Vec<Tag>,
    /// Column formats: the rows, one a token, with all their columns.
    pub rows: Vec<Row<'t>>,
    /// JSON lines: every key with its value as it was written.
    pub fields: Vec<(Cow<'t, str>, &'t str)>,
}

impl<'t> Record<'t> {
    pub(crate) fn clear(&mut self) {
        self.before.clear();
        self.tokens.clear();
        self.tags.clear();
        self.rows.clear();
        self.fields.clear();
    }

    /// The line of a token: its row's, or that of the whole JSON object.
    pub fn line_of(&self, token: usize) -> usize {
        self.rows.get(token).or(self.rows.last()).map_or(self.line, |row| row.line)
    }

    /// The sentence's own id: `# id …`, `# sent_id = …`, or a JSON `id`.
    pub fn id(&self) -> Option<&'t str> {
        // The comment nearest to the sentence speaks of it.
        let from_comment = self.before.iter().rev().find_map(|line| {
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
        from_comment.or_else(from_field)
    }
}

/// A row of a column file: its text, and where in it the token and the tag stand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Row<'t> {
    /// Line in the file, from 1.
    pub line: usize,
    /// The whole row, without its line end.
    pub text: &'t str,
    /// Start and end of the token.
    pub token: (usize, usize),
    /// Start and end of the tag.
    pub tag: (usize, usize),
}

impl<'t> Row<'t> {
    /// The text around token and tag: before the first, between, after the second; and whether
    /// the tag comes first.
    pub fn around(&self) -> ([&'t str; 3], bool) {
        let tag_first = self.tag.0 < self.token.0;
        let (first, second) =
            if tag_first { (self.tag, self.token) } else { (self.token, self.tag) };
        ([&self.text[..first.0], &self.text[first.1..second.0], &self.text[second.1..]], tag_first)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_what_its_comment_calls_so() {
        let id =
            |before: &[&'static str]| Record { before: before.to_vec(), ..Record::default() }.id();
        assert_eq!(id(&["# id 5239d808\tdomain=en"]), Some("5239d808"));
        assert_eq!(id(&["# sent_id = s7"]), Some("s7"));
        assert_eq!(id(&["# id 1", "# id 2"]), Some("2"));
        assert_eq!(id(&["# idea of mine", "# identifier 12"]), None);
    }
}
