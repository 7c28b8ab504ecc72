//! Reads the tokens of CoNLL rows. Tags and other columns are ignored.

use super::read::Collected;
use crate::conll::{Layout, is_document_start};
use crate::error::Error;
use crate::problem::{Fault, LocatedFault};
use crate::token::Token;

/// Reads all rows of the file.
pub(super) fn read(collected: &mut Collected<'_>) -> Result<(), Error> {
    let text = collected.source.text();
    let mut layout = Layout::detect(text);
    if let Some(column) = collected.options.token_column {
        let n_columns = layout.n_columns;
        if !(1..=n_columns).contains(&column) {
            let fault = Fault::NoSuchColumn { column, n_columns };
            collected.problems.push(1, 0..0, fault);
            return Ok(());
        }
        layout.token = column - 1;
    }
    let mut tokens = Vec::new();
    let (mut start, mut is_first) = (1, true);
    for (at, line) in text.split('\n').enumerate() {
        let row = line.strip_suffix('\r').unwrap_or(line);
        let is_comment =
            is_first && row.starts_with('#') && columns(row, &layout) != layout.n_columns;
        if is_comment {
            continue;
        }
        is_first = row.trim_ascii().is_empty() || is_document_start(row);
        if is_first {
            collected.add_tokens(start, std::mem::take(&mut tokens))?;
            continue;
        }
        if tokens.is_empty() {
            start = at + 1;
        }
        match read_row(row, &layout) {
            Ok(token) => tokens.push(token),
            Err(fault) => collected.add_fault(at + 1, fault),
        }
    }
    collected.add_tokens(start, tokens)
}

fn columns(row: &str, layout: &Layout) -> usize {
    layout.separator.split(row.trim_end_matches(' ')).len()
}

/// Returns the token of a row.
fn read_row(row: &str, layout: &Layout) -> Result<Token, LocatedFault> {
    let whole = 0..row.len();
    if let Some(at) = memchr::memchr(b'\r', row.as_bytes()) {
        return Err(LocatedFault { span: at..at + 1, fault: Fault::CarriageReturn });
    }
    let columns = layout.separator.split(row.trim_end_matches(' '));
    if columns.len() != layout.n_columns {
        let fault = Fault::ColumnCount {
            found: columns.len(),
            expected: layout.n_columns,
            separator: layout.separator,
        };
        return Err(LocatedFault { span: whole, fault });
    }
    Token::new(columns[layout.token])
        .map_err(|fault| LocatedFault { span: whole, fault: fault.into() })
}
