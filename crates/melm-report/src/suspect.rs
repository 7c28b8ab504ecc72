//! Gold sentences whose tags may be wrong: the lines of `gold.jsonl`.

use std::path::Path;

use melm::files::MAX_RUN_FILE;
use melm::gold_check::{self, CERTAIN, CheckedSentence, GoldCheckSummary};
use melm::nn::files::read_text;
use melm_text::EntityTypes;
use serde::Serialize;

use crate::Error;
use crate::segment::{Segment, TaggedTokens};
use crate::visible::visible;

/// The number of suspect sentences on the page.
const MAX_SHOWN: usize = 200;

/// The result of checking gold.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct GoldCheck {
    /// The numbers of checked, contradicted and suspect sentences.
    #[serde(flatten)]
    pub summary: GoldCheckSummary,
    /// A sentence is suspect if a gold tag is contradicted with at least this probability.
    pub certain: f64,
    /// The suspect sentences, the most certain contradiction first. At most 200.
    pub suspects: Vec<Suspect>,
}

/// A gold sentence that a tagger contradicts that was not trained on it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Suspect {
    /// Where the sentence is: `sentence 12`, or `de sentence 12`.
    pub place: String,
    /// The probability with which the tagger contradicts gold at its most certain token.
    pub contradiction: f64,
    /// The joint probability of the gold tags.
    pub probability: f64,
    /// The joint probability of the tagger's tags.
    pub found_probability: f64,
    /// The sentence with the gold tags.
    pub gold: Vec<Segment>,
    /// The sentence as the tagger reads it.
    pub found: Vec<Segment>,
}

/// Reads `gold.jsonl`. Returns `None` if the file does not exist.
///
/// # Errors
/// If the file cannot be read, or if a line is not valid.
pub(crate) fn read(
    path: &Path,
    n_folds: usize,
    types: &mut EntityTypes,
) -> Result<Option<GoldCheck>, Error> {
    let text = match read_text(path, MAX_RUN_FILE) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        read => read.map_err(|source| Error::Read { path: path.to_path_buf(), source })?,
    };
    let mut checked = Vec::new();
    let failed = |at: usize, what| Error::Line { path: path.to_path_buf(), line: at + 1, what };
    for (at, json) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        checked.push(gold_check::read_line(json).map_err(|what| failed(at, what))?);
    }
    let summary = GoldCheckSummary::new(n_folds, &checked);
    let shown = gold_check::rank(&checked).into_iter().take(MAX_SHOWN);
    let suspects = shown.map(|one| suspect(one, types)).collect::<Result<Vec<_>, _>>();
    let suspects = suspects.map_err(|what| failed(0, what))?;
    Ok(Some(GoldCheck { summary, certain: CERTAIN, suspects }))
}

fn suspect(one: &CheckedSentence, types: &mut EntityTypes) -> Result<Suspect, String> {
    let language = one.language.as_ref().map(|code| format!("{code} ")).unwrap_or_default();
    let mut read = |tags: &[String]| -> Result<_, String> {
        Ok(TaggedTokens::parse(one.tokens.clone(), tags, types)?.segments())
    };
    Ok(Suspect {
        place: visible(&format!("{language}sentence {}", one.source)),
        contradiction: one.contradiction(),
        probability: one.probability,
        found_probability: one.found_probability,
        gold: read(&one.tags)?,
        found: read(&one.found)?,
    })
}
