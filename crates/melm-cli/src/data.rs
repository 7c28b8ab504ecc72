//! Labelled files that a model learns from: read whole and checked before any long work.

use std::path::Path;

use melm::files::{Fingerprint, sha256};
use melm_text::{Corpus, ReadOptions, Reader, Source};
use serde_json::{Value, json};

use crate::args::Reading;
use crate::failure::Failure;
use crate::input;
use crate::terminal::{Terminal, count};

/// A file that was read.
pub(crate) struct Data {
    pub(crate) source: Source,
    pub(crate) options: ReadOptions,
    pub(crate) corpus: Corpus,
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
        let corpus = Corpus::read(&source, &options)?;
        if corpus.sentences().iter().all(|sentence| sentence.mentions().next().is_none()) {
            return Err(melm::Error::NoMentions { name: source.name().to_owned() }.into());
        }
        if let Reader::Conll(_, layout) = Reader::new(&source, &options)? {
            input::say_columns(Some(&layout), terminal);
        }
        Ok(Self { source, options, corpus })
    }

    /// `100 sentences of file`.
    pub(crate) fn described(&self) -> String {
        let n = count(self.corpus.sentences().len(), "sentence");
        format!("{n} of `{}`", self.source.name())
    }

    /// Adds everything that decides what was read: another column of the same file is other data.
    pub(crate) fn add_to(&self, fingerprint: &mut Fingerprint) {
        fingerprint.add(self.source.text().as_bytes());
        fingerprint.add(format!("{:?}", self.options).as_bytes());
    }

    /// What the record of a run says of it.
    pub(crate) fn record(&self) -> Value {
        json!({
            "file": self.source.name(),
            "sha256": sha256(self.source.text().as_bytes()),
            "sentences": self.corpus.sentences().len(),
        })
    }
}
