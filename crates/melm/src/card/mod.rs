//! Cards: the file `README.md` of an output folder, in the form that the Hugging Face hub expects.
//!
//! A card starts with YAML between lines of three hyphens. It has no date, no machine and no time, so that the same run
//! gives the same bytes if its command is the same. The licence is left to the user.

mod data;
mod model;

pub(crate) use data::data_card;
pub(crate) use model::{ModelCard, model_card};

use std::path::Path;

use melm_nn::files::{MAX_CONFIG_BYTES, read_text};
use melm_text::{Corpus, escaped};

use crate::Error;
use crate::files::{sha256, write_whole};
use crate::shell::melm_command;

/// The name of the card in an output folder.
const CARD: &str = "README.md";
/// The start of the last line of a card. The SHA-256 of the text before it follows.
const SEAL: &str =
    "<!-- Written by melm. A run replaces this file only if nobody has changed it. sha256: ";

/// What happened to the card of a folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CardState {
    /// The card was written.
    Written,
    /// The folder has a `README.md` that somebody wrote or changed. It is kept.
    Kept,
}

/// Writes a card into a folder, unless the folder has a `README.md` that somebody else wrote or changed.
pub(crate) fn write_card(dir: &Path, text: &str) -> Result<CardState, Error> {
    let path = dir.join(CARD);
    match read_text(&path, MAX_CONFIG_BYTES) {
        Ok(old) if !is_unchanged(&old) => return Ok(CardState::Kept),
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Ok(CardState::Kept),
        _ => {}
    }
    let sealed = format!("{text}\n{SEAL}{} -->\n", sha256(text.as_bytes()));
    write_whole(&path, sealed.as_bytes())?;
    Ok(CardState::Written)
}

/// Returns true if a card is as `melm` wrote it.
fn is_unchanged(card: &str) -> bool {
    let parts = card
        .rsplit_once(SEAL)
        .and_then(|(text, seal)| Some((text.strip_suffix('\n')?, seal.strip_suffix(" -->\n")?)));
    parts.is_some_and(|(text, seal)| sha256(text.as_bytes()) == seal)
}

/// Collects the lines of a card.
#[derive(Debug, Default)]
struct Card(String);

impl Card {
    /// Adds a line.
    fn line(&mut self, line: &str) {
        self.0.push_str(line);
        self.0.push('\n');
    }

    /// Adds a heading and the empty lines around it.
    fn heading(&mut self, heading: &str) {
        self.line("");
        self.line(heading);
        self.line("");
    }

    /// Adds a key of the YAML header with a list of values, unless the list is empty.
    fn yaml_list<'a>(&mut self, key: &str, values: impl IntoIterator<Item = &'a str>) {
        let mut values = values.into_iter().peekable();
        if values.peek().is_some() {
            self.line(&format!("{key}:"));
        }
        for value in values {
            // A string of JSON is also a string of YAML.
            self.line(&format!("- {}", serde_json::Value::from(value)));
        }
    }

    /// Adds a row of a table.
    fn row(&mut self, cells: &[&str]) {
        let cells: Vec<_> = cells.iter().map(|cell| escape(cell)).collect();
        self.line(&format!("| {} |", cells.join(" | ")));
    }

    /// Adds the head of a table.
    fn table(&mut self, columns: &[&str]) {
        self.row(columns);
        self.line(&format!("|{}", " --- |".repeat(columns.len())));
    }

    /// Adds the part that says how to make the content of the folder again. `arguments` are those of the command `melm`. They
    /// are empty if a program called the library.
    fn repetition(&mut self, arguments: &[String], seed: u64) {
        self.heading("## How to make it again");
        if arguments.is_empty() {
            self.line("There is no command: a program called melm as a library. `run.json` lists the data and the models.");
        } else {
            self.line("```console");
            self.line(&format!("$ {}", escaped(&melm_command(arguments))));
            self.line("```");
            self.line("");
            self.line("Choose another folder with `-o`. In the folder of a finished run, the command does nothing.");
            // Also the file of a language, such as `en=-`.
            if arguments.iter().any(|argument| argument == "-" || argument.ends_with("=-")) {
                self.line("The file `-` is standard input: pass the same data to it.");
            }
        }
        self.line("");
        self.line(&format!("The seed is {seed}. `plan.toml` has all settings."));
    }
}

/// Escapes a text for a cell of a table.
fn escape(text: &str) -> String {
    text.replace('|', "\\|").replace(['\n', '\r'], " ")
}

/// Returns the language codes of a corpus; empty if they are not known.
fn languages(corpus: &Corpus) -> Vec<&str> {
    corpus.languages().iter().map(|part| &*part.code).collect()
}

/// Counts the mentions of each entity type, ordered by name.
fn count_mentions(corpus: &Corpus) -> Vec<(&str, usize)> {
    let types = corpus.types();
    let mut counts = vec![0; types.iter().count()];
    for mention in corpus.sentences().iter().flat_map(melm_text::Sentence::mentions) {
        counts[mention.entity_type.index()] += 1;
    }
    let sorted = types.sorted_by_name().into_iter();
    sorted.map(|one| (types.display_name(one), counts[one.index()])).collect()
}

/// Counts the tokens of a corpus.
fn count_tokens(corpus: &Corpus) -> usize {
    corpus.sentences().iter().map(|sentence| sentence.tokens().len()).sum()
}

#[cfg(test)]
mod tests;
