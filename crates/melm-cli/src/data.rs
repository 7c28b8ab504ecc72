//! Labelled files that a model learns from: read whole and checked before any long work.

use std::path::Path;

use melm::files::{Fingerprint, sha256};
use melm_text::{Corpus, LabelledFile, ReadOptions};
use serde_json::{Value, json};

use crate::args::Reading;
use crate::failure::Failure;
use crate::input;
use crate::terminal::{Terminal, count};

/// A file that was read.
pub(crate) struct Data {
    pub(crate) file: LabelledFile,
    options: ReadOptions,
}

impl Data {
    /// Reads a file; one without any mention has nothing to teach.
    pub(crate) fn read(
        path: &Path,
        reading: &Reading,
        terminal: &Terminal,
    ) -> Result<Self, Failure> {
        let options = input::options(reading, path)?;
        let source = input::open(path, reading)?;
        let file = LabelledFile::read(source, &options)?;
        let mut sentences = file.corpus().sentences().iter();
        if sentences.all(|sentence| sentence.mentions().next().is_none()) {
            return Err(melm::Error::NoMentions { name: file.source().name().to_owned() }.into());
        }
        input::say_columns(file.structure().layout(), terminal);
        Ok(Self { file, options })
    }

    /// The sentences of the file.
    pub(crate) fn corpus(&self) -> &Corpus {
        self.file.corpus()
    }

    /// `100 sentences of file`.
    pub(crate) fn described(&self) -> String {
        let n = count(self.corpus().sentences().len(), "sentence");
        format!("{n} of `{}`", self.file.source().name())
    }

    /// Adds everything that decides what was read: another column of the same file is other data.
    pub(crate) fn add_to(&self, fingerprint: &mut Fingerprint) {
        fingerprint.add(self.file.source().text().as_bytes());
        fingerprint.add(format!("{:?}", self.options).as_bytes());
    }

    /// What the record of a run says of it.
    pub(crate) fn record(&self) -> Value {
        json!({
            "file": self.file.source().name(),
            "sha256": sha256(self.file.source().text().as_bytes()),
            "sentences": self.corpus().sentences().len(),
        })
    }
}
