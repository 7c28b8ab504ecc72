//! Lines that tell a user how data was read and converted. Every front end shows them.

use crate::convert::ConversionReport;
use crate::convert_documents::{ConvertedDocuments, Loss};
use crate::format::Structure;
use crate::formats::Format;
use crate::spans::Documents;
use crate::unlabelled::TextFile;

/// Returns a number with its noun: `1 sentence`, `2 sentences`.
pub fn count(n: usize, noun: &str) -> String {
    if n == 1 { format!("1 {noun}") } else { format!("{n} {noun}s") }
}

/// Returns a number, the number of all, and their noun: `1 of 3 sentences`.
pub fn count_of(n: usize, of: usize, noun: &str) -> String {
    format!("{n} of {}", count(of, noun))
}

/// The number of characters of a text that a message shows.
const LONGEST_SHOWN: usize = 60;

/// Returns a text of a file as a message shows it: shortened, and with control characters and invisible characters
/// escaped.
///
/// ```
/// use melm_text::shown;
/// assert_eq!(shown("Müller's"), "Müller's");
/// assert_eq!(shown("a\u{1b}[31m\u{202e}"), r"a\u{1b}[31m\u{202e}");
/// assert_eq!(shown(&"x".repeat(100)), format!("{}…", "x".repeat(60)));
/// ```
pub fn shown(text: &str) -> String {
    match text.char_indices().nth(LONGEST_SHOWN) {
        Some((end, _)) => escaped(&text[..end]) + "…",
        None => escaped(text),
    }
}

/// Returns a text with control characters and invisible characters escaped, such as the name of a file.
///
/// ```
/// use melm_text::escaped;
/// assert_eq!(escaped("Müller.conll"), "Müller.conll");
/// assert_eq!(escaped("a\nb\u{202e}"), r"a\nb\u{202e}");
/// ```
pub fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if is_hidden(c) {
            out.extend(c.escape_debug());
        } else {
            out.push(c);
        }
    }
    out
}

/// Returns true for control characters and for characters that are invisible or change the order of a line. Combining marks
/// are not hidden, because many scripts need them.
fn is_hidden(c: char) -> bool {
    let is_invisible = matches!(
        c,
        '\u{ad}' | '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}'
    );
    is_invisible || c.is_control()
}

/// Returns a line for each part that a format cannot store.
pub fn describe_losses(losses: &[Loss], format: Format) -> Vec<String> {
    let describe = |Loss { part, n }: &Loss| {
        format!("{} cannot store {n} × {}", format.name(), part.describe_loss())
    };
    losses.iter().map(describe).collect()
}

impl Structure {
    /// Returns what a user should know about how a file was read: the tag column if several look like tags, and what was
    /// changed or left out of texts with spans.
    pub fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        if let Some(layout) = self.layout().filter(|layout| !layout.also_tags.is_empty()) {
            let others: Vec<_> = layout.also_tags.iter().map(|c| (c + 1).to_string()).collect();
            notes.push(format!(
                "using the tags in column {} (column {} looks like tags too; choose with `--tag-column`)",
                layout.tag + 1,
                others.join(", ")
            ));
        }
        notes.extend(self.documents().map(Documents::notes).unwrap_or_default());
        notes
    }
}

impl TextFile {
    /// Returns a line about the lines that were left out of a text, if there are any.
    pub fn note(&self) -> Option<String> {
        let n = count(self.n_unspaced, "line");
        (self.n_unspaced > 0).then(|| {
            format!(
                "{n} of `{}` left out: they have a script without spaces between words",
                self.name
            )
        })
    }

    /// Returns a warning about the lines of a held-out file that were not read, if there are any: the same sentences in
    /// the text are not found.
    pub fn held_out_warning(&self) -> Option<String> {
        let n = count(self.n_unspaced, "line");
        (self.n_unspaced > 0).then(|| {
            format!(
                "{n} of the held-out file `{}` ignored: they have a script without spaces between words. Their sentences are \
                 not left out of the text. Pass a file with tokens: CoNLL, or JSON lines with `tokens`",
                self.name
            )
        })
    }
}

impl ConversionReport {
    /// Returns lines about what was converted, repaired, joined and left out.
    pub fn notes(&self) -> Vec<String> {
        let (survey, to) = (&self.survey, self.format);
        let (from, scheme) = (survey.scheme.scheme, self.scheme);
        let mut notes = survey.structure.notes();
        notes.push(format!(
            "{}, {}: {} {from} to {} {scheme}",
            count(survey.n_sentences, "sentence"),
            count(survey.n_tokens, "token"),
            survey.format().name(),
            to.name(),
        ));
        notes.extend(self.repair_note());
        notes.extend(describe_merged(self.n_merged));
        let n_columns = survey.layout().map_or(0, |layout| layout.n_columns - 2);
        if to == Format::JSONL && n_columns > 0 {
            let columns = count(n_columns, "other column");
            notes.push(format!("left out {columns}: JSON lines contain only tokens and tags"));
        }
        if self.n_left_out > 0 {
            let noun = if to == Format::JSONL { "comment line" } else { "other value" };
            let n = count(self.n_left_out, noun);
            notes.push(format!("left out {n}: {} has no place for them", to.name()));
        }
        notes
    }

    fn repair_note(&self) -> Option<String> {
        let (survey, scheme) = (&self.survey, self.scheme);
        let from = survey.scheme.scheme;
        let letters = survey.types.end_letters();
        if letters.iobes && letters.bilou {
            return Some(format!(
                "wrote all tags in {scheme}: the input mixes letters of two schemes"
            ));
        }
        if survey.violations.is_empty() {
            return None;
        }
        Some(if from == scheme {
            let n = count(self.n_changed_tags, "tag");
            format!("repaired {n} that {from} does not allow")
        } else {
            let n = count(survey.violations.len(), "place");
            format!("repaired {n} with tags that {from} does not allow")
        })
    }
}

impl ConvertedDocuments {
    /// Returns lines about what was converted to the format `to`, joined and left out.
    pub fn notes(&self, to: Format) -> Vec<String> {
        let survey = &self.survey;
        let mut notes = survey.structure.notes();
        notes.push(format!(
            "{}, {}, {}: {} to {}",
            count(self.n_documents, "text"),
            count(survey.n_sentences, "sentence"),
            count(survey.n_tokens, "token"),
            survey.format().name(),
            to.name(),
        ));
        notes.extend(describe_merged(self.n_merged));
        notes.extend(describe_losses(&self.losses, to));
        notes
    }
}

fn describe_merged(n: usize) -> Option<String> {
    let mentions = count(n, "mention");
    (n > 0).then(|| {
        format!(
            "merged {mentions} with the one before: IO cannot separate adjacent mentions of a type"
        )
    })
}
