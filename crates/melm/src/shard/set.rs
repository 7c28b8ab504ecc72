//! All shards of one output: checks that they are complete and fit together, and joins them.

use std::io::Write;

use melm_text::Document;

use super::drafts::join_drafts;
use super::error::ShardError;
use super::file::ShardFile;
use super::header::{ShardContent, ShardHeader};
use crate::Error;

/// The shards of one output, in the order of the input. None is missing.
#[derive(Debug)]
pub struct ShardSet {
    shards: Vec<ShardFile>,
}

impl ShardSet {
    /// Orders shards by their numbers.
    ///
    /// # Errors
    /// If there are none, if two are the same shard, if two differ in input, model, settings or version, or if one is
    /// missing.
    pub fn new(mut shards: Vec<ShardFile>) -> Result<Self, Error> {
        let first = shards.first().ok_or(ShardError::Empty)?;
        for other in &shards[1..] {
            if let Some(what) = first.header.find_difference(&other.header) {
                let (first, second) = (first.name.clone(), other.name.clone());
                return Err(ShardError::Different { first, second, what }.into());
            }
        }
        let count = first.header.of;
        shards.sort_by_key(|shard| shard.header.shard);
        for pair in shards.windows(2) {
            let number = pair[0].header.shard;
            if number == pair[1].header.shard {
                let (first, second) = (pair[0].name.clone(), pair[1].name.clone());
                return Err(ShardError::Doubled { first, second, number, count }.into());
            }
        }
        let is_missing = |number: &usize| {
            shards.binary_search_by_key(number, |shard| shard.header.shard).is_err()
        };
        let numbers: Vec<usize> = (1..=count).filter(is_missing).collect();
        match numbers.first() {
            None => Ok(Self { shards }),
            Some(missing) => {
                let command = shards[0].header.command_for(*missing);
                Err(ShardError::Missing { numbers, count, command }.into())
            }
        }
    }

    /// The header of the first shard. The headers differ only in the number of the shard and in its content.
    pub fn header(&self) -> &ShardHeader {
        &self.shards[0].header
    }

    /// Returns the arithmetics of the shards. If there are several, the last digits of probabilities can differ from
    /// those of a run on one machine.
    pub fn arithmetics(&self) -> Vec<&str> {
        let mut all: Vec<_> =
            self.shards.iter().map(|shard| shard.header.arithmetic.as_str()).collect();
        all.sort_unstable();
        all.dedup();
        all
    }

    /// Writes the joined rows or drafts, or documents as lines of JSON. Only one shard is in memory at a time, except
    /// for drafts.
    ///
    /// # Errors
    /// If a shard is damaged, or if writing fails.
    pub fn write_to(&self, mut out: impl Write) -> Result<(), Error> {
        let write_error = |source| Error::Text(melm_text::Error::Write { source });
        if self.header().content == ShardContent::Drafts {
            let joined = join_drafts(&self.texts()?)?;
            return out.write_all(joined.as_bytes()).map_err(write_error);
        }
        for shard in &self.shards {
            out.write_all(&shard.content()?).map_err(write_error)?;
        }
        Ok(())
    }

    /// Returns the joined documents, or `None` if the shards contain rows or drafts.
    ///
    /// # Errors
    /// If a shard is damaged.
    pub fn documents(&self) -> Result<Option<Vec<Document>>, Error> {
        if !matches!(self.header().content, ShardContent::Documents { .. }) {
            return Ok(None);
        }
        let mut documents = Vec::new();
        for shard in self.texts()? {
            for (at, line) in shard.text.lines().enumerate() {
                let document = Document::from_stored_line(line);
                documents.push(document.map_err(|what| shard.wrong_line(at, what))?);
            }
        }
        Ok(Some(documents))
    }

    /// Returns the contents of all shards as text.
    fn texts(&self) -> Result<Vec<ShardText>, Error> {
        let text = |shard: &ShardFile| {
            let name = shard.name.clone();
            match String::from_utf8(shard.content()?) {
                Ok(text) => Ok(ShardText { name, text }),
                Err(error) => {
                    let what = error.to_string();
                    Err(ShardError::Content { name, line: 1, what }.into())
                }
            }
        };
        self.shards.iter().map(text).collect()
    }
}

/// The content of a shard that consists of lines.
pub(super) struct ShardText {
    /// The name of the file.
    pub(super) name: String,
    pub(super) text: String,
}

impl ShardText {
    /// The error for the line with index `at`.
    pub(super) fn wrong_line(&self, at: usize, what: String) -> ShardError {
        ShardError::Content { name: self.name.clone(), line: at + 1, what }
    }
}
