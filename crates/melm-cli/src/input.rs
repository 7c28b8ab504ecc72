//! Opens input files as the options say.

use std::io;
use std::path::Path;

use melm_nn::files::{MAX_CONFIG_BYTES, read_text_or_pipe};
use melm_text::jsonl::{find_names_beside, parse_names};
use melm_text::{Encoding, ReadOptions, Source, Structure};

use crate::args::InputOptions;
use crate::failure::Failure;
use crate::machine;
use crate::terminal::Terminal;

/// Reads a file, or standard input for `-`.
pub(crate) fn open(path: &Path, options: &InputOptions) -> Result<Source, Failure> {
    open_as(path, options.encoding)
}

/// Reads a file in the given encoding, or standard input for `-`.
pub(crate) fn open_as(path: &Path, encoding: Encoding) -> Result<Source, Failure> {
    let limits = machine::limits()?;
    let source = if path == Path::new("-") {
        Source::read_within("standard input", io::stdin().lock(), encoding, limits)
    } else {
        Source::open_within(path, encoding, limits)
    };
    Ok(source?)
}

/// Converts the options for the input at `path`. Without `--names`, the names of tag ids are looked up next to the file.
pub(crate) fn read_options(options: &InputOptions, path: &Path) -> Result<ReadOptions, Failure> {
    let key = options.tags_key.as_deref().unwrap_or("ner_tags");
    let names = match &options.names {
        None if path == Path::new("-") => None,
        None => find_names_beside(path, key),
        Some(given) => {
            let text = match read_text_or_pipe(Path::new(given), MAX_CONFIG_BYTES) {
                Ok(text) => text,
                // A list of names. It can be longer than a file name.
                Err(error) if is_no_path(&error) => given.clone(),
                Err(source) => {
                    return Err(melm::Error::Read { path: given.into(), source }.into());
                }
            };
            let names = parse_names(&text, key).ok_or_else(|| Failure::Usage {
                message: format!(
                    "`--names {given}` is neither a list of tags nor a file with tags"
                ),
                hint: "write the tags in the order of their ids: `--names O,B-PER,I-PER`",
            })?;
            Some(names)
        }
    };
    Ok(ReadOptions {
        format: options.format,
        scheme: options.scheme,
        token_column: options.token_column,
        tag_column: options.tag_column,
        tokens_key: options.tokens_key.clone(),
        tags_key: options.tags_key.clone(),
        names,
        offset_unit: options.offsets,
        overlaps: options.overlaps,
        annotations: options.annotations,
        keeps_unlabelled: false,
    })
}

/// Returns true if the error says that there is no file with this name.
fn is_no_path(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::InvalidFilename)
}

/// Reports what a user should know about how a file was read: the tag column if several look like tags, and what was
/// changed or left out of texts with spans.
pub(crate) fn report_structure(structure: &Structure, terminal: &Terminal) {
    terminal.info_all(structure.notes());
}
