//! Which tags may follow each other, for decoders of models that run in other libraries.

use melm_cli::host::ErrorReport;
use melm_text::{EntityTypes, Scheme, Tag};
use pyo3::prelude::*;

use crate::error::to_exception;

/// Returns a square of bools for the tags with these names and the edge of a sentence, which comes last. The row is a tag,
/// the column the tag after it.
#[pyfunction]
pub(crate) fn allowed_transitions(names: Vec<String>, scheme: &str) -> PyResult<Vec<Vec<bool>>> {
    let wrong = |message: String| to_exception(ErrorReport::config(message));
    let scheme: Scheme = scheme.parse().map_err(|_| wrong(format!("`{scheme}` is no scheme")))?;
    let mut types = EntityTypes::default();
    let mut tags = Vec::with_capacity(names.len() + 1);
    for name in &names {
        tags.push(types.parse(name).map_err(|fault| wrong(fault.to_string()))?);
    }
    tags.push(Tag::Outside);
    let row = |before: &Tag| tags.iter().map(|tag| scheme.allows(*before, *tag)).collect();
    Ok(tags.iter().map(row).collect())
}
