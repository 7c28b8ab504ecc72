//! Opens what the user named.

use std::io;
use std::path::Path;

use melm_text::conll::Layout;
use melm_text::jsonl::{find_names_beside, parse_names};
use melm_text::{Encoding, ReadOptions, Source};

use crate::args::Reading;
use crate::failure::Failure;
use crate::terminal::Terminal;

/// Reads a file, or standard input for `-`.
pub(crate) fn open(path: &Path, reading: &Reading) -> Result<Source, Failure> {
    open_as(path, reading.encoding)
}

/// Reads a file in an encoding, or standard input for `-`.
pub(crate) fn open_as(path: &Path, encoding: Encoding) -> Result<Source, Failure> {
    let source = if path == Path::new("-") {
        Source::read("standard input", io::stdin().lock(), encoding)
    } else {
        Source::open(path, encoding)
    };
    Ok(source?)
}

/// What the options say about the input at `path`; names of tag ids are looked for beside it.
pub(crate) fn options(reading: &Reading, path: &Path) -> Result<ReadOptions, Failure> {
    let key = reading.tags_key.as_deref().unwrap_or("ner_tags");
    let names = match &reading.names {
        None if path == Path::new("-") => None,
        None => find_names_beside(path, key),
        Some(given) => {
            let text = std::fs::read_to_string(given).unwrap_or_else(|_| given.clone());
            let names = parse_names(&text, key).ok_or_else(|| Failure::Usage {
                message: format!("`--names {given}` is neither a list of tags nor a file of them"),
                hint: "write the tags in the order of their ids: `--names O,B-PER,I-PER`",
            })?;
            Some(names)
        }
    };
    Ok(ReadOptions {
        format: reading.format,
        scheme: reading.scheme,
        token_column: reading.token_column,
        tag_column: reading.tag_column,
        tokens_key: reading.tokens_key.clone(),
        tags_key: reading.tags_key.clone(),
        names,
    })
}

/// Says which of several columns of tags was taken: the wrong one would go unnoticed.
pub(crate) fn say_columns(layout: Option<&Layout>, terminal: &Terminal) {
    if let Some(layout) = layout
        && !layout.also_tags.is_empty()
    {
        let others: Vec<_> = layout.also_tags.iter().map(|c| (c + 1).to_string()).collect();
        terminal.say(&format!(
            "tags taken from column {} (column {} looks like tags too: `--tag-column`)",
            layout.tag + 1,
            others.join(", ")
        ));
    }
}
