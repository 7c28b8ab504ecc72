//! The first line of the output of a shard: which shard it is, and what it was made from.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::Shard;
use crate::shell::quote;

/// The version of the form of shard files.
pub(super) const VERSION: u32 = 1;

/// The thing that an input is divided by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ShardUnit {
    /// Sentences.
    Sentence,
    /// Texts, each with one or more sentences.
    Text,
}

impl ShardUnit {
    /// The name of one of them.
    pub fn name(self) -> &'static str {
        match self {
            Self::Sentence => "sentence",
            Self::Text => "text",
        }
    }
}

/// The content of a shard, and how contents are joined.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ShardContent {
    /// A part of the output file. The contents are joined one after the other.
    Rows,
    /// Documents, one JSON object on each line. The joined documents are written in an output format.
    Documents {
        /// The name of the output format.
        format: String,
        /// The scheme of the tags, if the output format has tags.
        scheme: String,
    },
    /// Drafts, as `melm generate` writes them. The joined drafts are ordered by round, and marked as repetitions of
    /// drafts in other shards.
    Drafts,
}

/// The input of all shards.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShardInput {
    /// The name of the input, for messages.
    pub name: String,
    /// A hash of the input.
    pub sha256: String,
    /// The number of its sentences or texts.
    pub n: usize,
    /// Whether `n` counts sentences or texts.
    pub unit: ShardUnit,
}

/// Says which shard a file contains, and what it was made from.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ShardHeader {
    /// The version of the form of the file.
    pub(super) melm_shard: u32,
    /// The version of the program.
    pub(super) melm: String,
    /// The command that made the shard.
    pub command: String,
    pub(super) shard: usize,
    pub(super) of: usize,
    /// The input.
    pub input: ShardInput,
    /// A hash of the model.
    pub model: String,
    /// The settings that change the output.
    pub settings: BTreeMap<String, Value>,
    /// The instruction set or GPU precision, which can change the last digits of a probability.
    pub arithmetic: String,
    /// The arguments of the program, which say how to make the other shards. May be empty.
    pub arguments: Vec<String>,
    /// The content.
    pub content: ShardContent,
    /// The SHA-256 hash of the content.
    pub(super) content_sha256: String,
}

impl ShardHeader {
    /// Creates the header of a shard without settings and arguments. `model` and `arithmetic` are as in the fields.
    pub fn new(
        command: &str,
        shard: Shard,
        input: ShardInput,
        model: String,
        arithmetic: &str,
        content: ShardContent,
    ) -> Self {
        Self {
            melm_shard: VERSION,
            melm: env!("CARGO_PKG_VERSION").to_owned(),
            command: command.to_owned(),
            shard: shard.number(),
            of: shard.count(),
            input,
            model,
            settings: BTreeMap::new(),
            arithmetic: arithmetic.to_owned(),
            arguments: Vec::new(),
            content,
            content_sha256: String::new(),
        }
    }

    /// Sets a setting that changes the output.
    #[must_use]
    pub fn with_setting(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.settings.insert(name.to_owned(), value.into());
        self
    }

    /// Sets the arguments of the program.
    #[must_use]
    pub fn with_arguments(mut self, arguments: &[String]) -> Self {
        self.arguments = arguments.to_vec();
        self
    }

    /// Returns the shard. Returns `None` if the numbers of the header are impossible.
    pub fn shard(&self) -> Option<Shard> {
        Shard::new(self.shard, self.of)
    }

    /// Returns the command that makes shard `number` of the same input.
    pub(super) fn command_for(&self, number: usize) -> String {
        let shard = format!("{number}/{}", self.of);
        let mut words = vec!["melm".to_owned()];
        let mut is_value = false;
        for word in &self.arguments {
            words.push(match word.as_str() {
                _ if is_value => shard.clone(),
                word if word.starts_with("--shard=") => format!("--shard={shard}"),
                word => quote(word),
            });
            is_value = !is_value && word == "--shard";
        }
        if self.arguments.is_empty() {
            words.extend([self.command.clone(), "…".to_owned(), "--shard".to_owned(), shard]);
        }
        words.join(" ")
    }

    /// Returns what differs between this header and that of another shard of the same output, if anything.
    pub(super) fn find_difference(&self, other: &Self) -> Option<String> {
        let is_different = [
            ("command", self.command != other.command),
            ("version of melm", self.melm != other.melm),
            ("number of shards", self.of != other.of),
            ("input", self.input.sha256 != other.input.sha256 || self.input.n != other.input.n),
            ("model", self.model != other.model),
            ("output format", self.content != other.content),
        ];
        if let Some((name, _)) = is_different.iter().find(|(_, is_different)| *is_different) {
            return Some((*name).to_owned());
        }
        let names = self.settings.keys().chain(other.settings.keys());
        let mut names = names.filter(|name| self.settings.get(*name) != other.settings.get(*name));
        names.next().map(|name| format!("setting `{name}`"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_of_another_shard_is_the_same_with_another_number() {
        let input =
            ShardInput { name: "a".into(), sha256: String::new(), n: 9, unit: ShardUnit::Sentence };
        let shard = Shard::new(1, 3).unwrap();
        let header = ShardHeader::new("tag", shard, input, String::new(), "", ShardContent::Rows);
        let command = |arguments: &[&str]| {
            let arguments: Vec<String> = arguments.iter().map(ToString::to_string).collect();
            header.clone().with_arguments(&arguments).command_for(2)
        };
        assert_eq!(
            command(&["tag", "t", "my file", "--shard", "1/3", "-o", "x"]),
            "melm tag t 'my file' --shard 2/3 -o x"
        );
        assert_eq!(command(&["tag", "it's", "--shard=1/3"]), r"melm tag 'it'\''s' --shard=2/3");
        assert_eq!(command(&[]), "melm tag … --shard 2/3");
    }
}
