//! What can change the result of a run, so that its folder is recognised and a difference has a name.

use std::collections::BTreeMap;

use melm_text::{Corpus, shown};
use serde::{Deserialize, Serialize};

use super::data_fingerprint;
use crate::files::Fingerprint;

/// The number of differences that a message names.
const MAX_NAMED: usize = 5;

/// Everything that can change the result of a run, by name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Identity {
    /// The settings by their key in a plan, the command and its version.
    settings: BTreeMap<String, String>,
    /// Hashes of the data and of the models.
    content: BTreeMap<String, String>,
}

impl Identity {
    /// Creates the identity of a run. `arithmetic` describes how the device computes. `settings` are those of the plan
    /// that can change the result.
    pub(crate) fn new(command: &str, arithmetic: &str, settings: &toml::Table) -> Self {
        let mut identity = Self::default();
        identity.add_table("", settings);
        let version = env!("CARGO_PKG_VERSION");
        for (name, value) in [("command", command), ("melm", version), ("device", arithmetic)] {
            identity.settings.insert(name.to_owned(), value.to_owned());
        }
        identity
    }

    /// Adds the settings of a section, whose name is the start of their keys.
    fn add_table(&mut self, prefix: &str, table: &toml::Table) {
        for (key, value) in table {
            let name = format!("{prefix}{key}");
            match value {
                toml::Value::Table(inner) => self.add_table(&format!("{name}."), inner),
                value => {
                    self.settings.insert(name, value.to_string());
                }
            }
        }
    }

    /// Adds data or a model by its hash. The name is part of messages.
    #[must_use]
    pub(crate) fn with_content(mut self, name: &str, sha256: String) -> Self {
        self.content.insert(name.to_owned(), sha256);
        self
    }

    /// Adds data or a model by what `add` adds to a hash.
    #[must_use]
    pub(crate) fn with_hash_of(self, name: &str, add: impl FnOnce(&mut Fingerprint)) -> Self {
        let mut fingerprint = Fingerprint::default();
        add(&mut fingerprint);
        self.with_content(name, fingerprint.finish())
    }

    /// Adds the training set, and the dev set if there is one.
    #[must_use]
    pub(crate) fn with_gold(self, train: &Corpus, dev: Option<&Corpus>) -> Self {
        let identity = self.with_content("training set", data_fingerprint(train));
        match dev {
            Some(dev) => identity.with_content("dev set", data_fingerprint(dev)),
            None => identity,
        }
    }

    /// Returns a hash of everything.
    pub(crate) fn key(&self) -> String {
        let mut fingerprint = Fingerprint::default();
        for map in [&self.settings, &self.content] {
            fingerprint.add(&(map.len() as u64).to_le_bytes());
            for (name, value) in map {
                fingerprint.add(name.as_bytes());
                fingerprint.add(value.as_bytes());
            }
        }
        fingerprint.finish()
    }

    /// Describes how this run differs from an earlier one. Returns `None` if nothing differs.
    pub(crate) fn describe_differences(&self, earlier: &Self) -> Option<String> {
        let content = differing(&earlier.content, &self.content).map(|found| match found {
            (name, None, _) => format!("it had no {}", shown(name)),
            (name, _, None) => format!("this run has no {}", shown(name)),
            (name, ..) => format!("it had another {}", shown(name)),
        });
        let settings = differing(&earlier.settings, &self.settings).map(|(name, old, new)| {
            let (name, old, new) = (shown(name), old.map(shown), new.map(shown));
            match (old, new) {
                (None, new) => format!("`{name}` is {} and was not set", new.unwrap_or_default()),
                (Some(old), None) => format!("`{name}` was {old} and is not set"),
                (Some(old), Some(new)) => format!("`{name}` was {old}, and is {new}"),
            }
        });
        let all: Vec<String> = content.chain(settings).collect();
        let n_more = all.len().saturating_sub(MAX_NAMED);
        let named = all[..all.len() - n_more].join("; ");
        match (all.len(), n_more) {
            (0, _) => None,
            (_, 0) => Some(named),
            (_, n) => Some(format!("{named}; and {n} more differences")),
        }
    }
}

/// Returns the names whose values differ, with the old and the new value.
fn differing<'a>(
    old: &'a BTreeMap<String, String>,
    new: &'a BTreeMap<String, String>,
) -> impl Iterator<Item = (&'a str, Option<&'a str>, Option<&'a str>)> {
    let added = new.keys().filter(|name| !old.contains_key(*name));
    old.keys().chain(added).filter_map(|name| {
        let (old, new) = (old.get(name), new.get(name));
        (old != new).then(|| (name.as_str(), old.map(String::as_str), new.map(String::as_str)))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn identity(settings: &str) -> Identity {
        Identity::new("train", "f32", &toml::from_str(settings).unwrap())
    }

    #[test]
    fn differences_are_named_and_change_the_key() {
        let one = identity("seed = 1\n[tagger]\nbudget = \"9 updates\"\n")
            .with_content("training set", "a".into());
        let other = identity("seed = 2\n[tagger]\nbudget = \"9 updates\"\n[pick]\nn = 1\n")
            .with_content("training set", "b".into())
            .with_content("dev set", "c".into());
        assert_eq!(other.describe_differences(&other), None);
        assert_ne!(one.key(), other.key());
        assert_eq!(
            other.describe_differences(&one).unwrap(),
            "it had another training set; it had no dev set; `seed` was 1, and is 2; `pick.n` is 1 and was not set"
        );
        assert!(one.describe_differences(&other).unwrap().contains("this run has no dev set"));
        let many: String = (0..9).map(|n| format!("a{n} = 1\n")).collect();
        let text = identity(&many).describe_differences(&identity("")).unwrap();
        assert!(text.ends_with("; and 4 more differences"), "{text}");
    }
}
