//! Files without tags: adds a column or a key in which every tag is `O`.

use serde_json::value::RawValue;

use crate::conll::{Layout, Separator};
use crate::format::ReadOptions;
use crate::formats::Format;
use crate::jsonl::{TAGS_KEYS, TOKENS_KEYS};
use crate::source::Source;
use crate::tag::is_tag;

/// The number of rows that are examined for tags.
const SAMPLE: usize = 2_000;

/// Adds `O` tags to a text without tags: as a last column, or under the key `ner_tags`. Returns `None`
/// if the text has tags.
///
/// Tags are added at the end of a line, so that problems are still reported at the right column.
///
/// ```
/// use melm_text::{ReadOptions, Source, add_missing_tags};
/// let source = Source::from_text("a", "Bonn NE\nist VA\n");
/// let tagged = add_missing_tags(&source, &ReadOptions::default()).unwrap();
/// assert_eq!(tagged.text(), "Bonn NE O\nist VA O\n");
/// assert!(add_missing_tags(&tagged, &ReadOptions::default()).is_none());
/// ```
pub fn add_missing_tags(source: &Source, options: &ReadOptions) -> Option<Source> {
    let text = source.text();
    let format = options.format.unwrap_or_else(|| Format::detect(source));
    let tagged = if format == Format::CONLL {
        add_column(text, options)?
    } else if format == Format::JSONL {
        add_key(text, options)?
    } else {
        return None;
    };
    Some(Source::from_text(source.name(), tagged))
}

/// Adds a last column of `O`, unless the text has a column of tags.
fn add_column(text: &str, options: &ReadOptions) -> Option<String> {
    let layout = Layout::detect(text);
    if options.tag_column.is_some() || layout.n_columns > 1 && holds_tags(text, &layout) {
        return None;
    }
    // A token may contain a space but not a tab, so only a tab separates a single column safely.
    let between = if layout.n_columns == 1 { Separator::Tab } else { layout.separator };
    let mut out = String::with_capacity(text.len() + text.len() / 4);
    let mut is_first = true;
    for line in text.split_inclusive('\n') {
        let row = line.trim_end_matches(['\n', '\r']);
        let is_comment = is_first && row.starts_with('#') && !is_row(row, &layout);
        let is_blank = row.trim_ascii().is_empty();
        is_first = is_blank || is_comment && is_first;
        out.push_str(row);
        if !is_blank && !is_comment && !row.starts_with(crate::token::DOCUMENT_START) {
            out.push_str(between.text());
            out.push('O');
        }
        out.push_str(&line[row.len()..]);
    }
    Some(out)
}

/// Returns true if most of the first rows have a tag in the tag column.
fn holds_tags(text: &str, layout: &Layout) -> bool {
    let rows = text.lines().filter(|row| is_row(row, layout));
    let (mut n, mut n_tags) = (0_usize, 0_usize);
    for row in rows.take(SAMPLE) {
        let columns = layout.separator.split(row.trim_end_matches([' ', '\r']));
        n += 1;
        n_tags += usize::from(columns.get(layout.tag).is_some_and(|column| is_tag(column)));
    }
    n_tags * 2 > n || layout.bare_types
}

/// Returns true if `row` is not blank and has as many columns as the file.
fn is_row(row: &str, layout: &Layout) -> bool {
    !row.trim_ascii().is_empty()
        && layout.separator.split(row.trim_end_matches([' ', '\r'])).len() == layout.n_columns
}

/// Adds a key to each object without tags. Its value has an `O` for each token.
fn add_key(text: &str, options: &ReadOptions) -> Option<String> {
    type Object<'t> = std::collections::BTreeMap<String, &'t RawValue>;
    let wanted = options.tags_key.as_deref();
    let mut out = String::with_capacity(text.len() + text.len() / 4);
    let mut n_added = 0;
    for line in text.split_inclusive('\n') {
        let object: Option<Object<'_>> = serde_json::from_str(line).ok();
        let tokens = object.as_ref().and_then(|object| {
            let has = |key: &&str| object.contains_key(*key);
            let is_tagged = wanted.map_or_else(|| TAGS_KEYS.iter().any(has), |key| has(&key));
            let key = options.tokens_key.as_deref();
            let tokens = key.or(TOKENS_KEYS.iter().copied().find(|key| has(key)))?;
            let tokens: Vec<&RawValue> = serde_json::from_str(object.get(tokens)?.get()).ok()?;
            (!is_tagged).then_some(tokens.len())
        });
        match (tokens, line.rfind('}')) {
            (Some(n), Some(end)) => {
                let tags = vec!["\"O\""; n].join(", ");
                let key = wanted.unwrap_or(TAGS_KEYS[0]);
                out.push_str(line[..end].trim_end());
                out.push_str(&format!(", \"{key}\": [{tags}]}}"));
                out.push_str(&line[end + 1..]);
                n_added += 1;
            }
            _ => out.push_str(line),
        }
    }
    (n_added > 0).then_some(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::corpus::Corpus;

    fn tagged(text: &str) -> Option<String> {
        let source = Source::from_text("a", text);
        let tagged = add_missing_tags(&source, &ReadOptions::default())?;
        let corpus = Corpus::read(&tagged, &ReadOptions::default()).unwrap();
        assert!(corpus.sentences().iter().all(|s| s.mentions().next().is_none()));
        Some(tagged.text().to_owned())
    }

    #[test]
    fn a_column_or_a_key_is_added_if_there_is_none() {
        assert_eq!(tagged("Bonn\nist\n\nJa\r\n").unwrap(), "Bonn\tO\nist\tO\n\nJa\tO\r\n");
        assert_eq!(tagged("Bonn\tNE\nist\tVA").unwrap(), "Bonn\tNE\tO\nist\tVA\tO");
        assert_eq!(
            tagged("# id 1 of many\nBonn _\n#1 _\n").unwrap(),
            "# id 1 of many\nBonn _ O\n#1 _ O\n"
        );
        assert_eq!(
            tagged("-DOCSTART- -X-\n\nBonn NE\nO NE\n").unwrap(),
            "-DOCSTART- -X-\n\nBonn NE O\nO NE O\n"
        );
        assert_eq!(
            tagged("{\"id\": 7, \"tokens\": [\"Bonn\", \"ist\"]}\n").unwrap(),
            "{\"id\": 7, \"tokens\": [\"Bonn\", \"ist\"], \"ner_tags\": [\"O\", \"O\"]}\n"
        );
    }

    #[test]
    fn texts_with_tags_are_left_alone() {
        for text in [
            "Bonn B-LOC\nist O\n",
            "Bonn B-LOC 0.9\nist O 0.8\n",
            "{\"tokens\": [\"a\"], \"ner_tags\": [\"B-X\"]}\n",
            "{\"tokens\": [\"a\"], \"ner_tags\": [3]}\n",
        ] {
            assert_eq!(tagged(text), None, "{text}");
        }
    }
}
