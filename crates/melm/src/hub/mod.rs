//! Models by name: a folder, else the local Hugging Face cache, else the hub.
//!
//! The cache is the one that Python's libraries use and fill, so that a model is on the disk once. Where it lies is
//! for the caller to say: nothing below the command line reads the environment.

mod cache;
#[cfg(feature = "hub")]
mod fetch;

use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::Error;

/// Where models are kept and fetched from.
#[derive(Clone, Debug)]
pub struct Hub {
    /// The cache, by custom `$HF_HUB_CACHE`, else `$HF_HOME/hub`, else `~/.cache/huggingface/hub`.
    pub cache: PathBuf,
    /// Another address of the hub, by custom `$HF_ENDPOINT`.
    pub endpoint: Option<String>,
    /// How long the hub may take to answer at all; after it we are offline.
    pub timeout: Duration,
}

/// A file is on its way: `n_bytes` of `n_total` are here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DownloadProgress<'a> {
    /// The file's name.
    pub file: &'a str,
    /// Bytes received so far, including those of an earlier attempt.
    pub n_bytes: u64,
    /// Its length.
    pub n_total: u64,
}

impl Hub {
    /// A slow network answers in a second or two; one that is not there must not keep us waiting.
    pub const DEFAULT_TIMEOUT: Duration = Duration::from_secs(5);

    /// A cache in front of the usual hub.
    pub fn new(cache: impl Into<PathBuf>) -> Self {
        Self { cache: cache.into(), endpoint: None, timeout: Self::DEFAULT_TIMEOUT }
    }

    /// The folder of a model given as a folder or by name, fetched if need be, with an event for every block received.
    pub fn resolve(
        &self,
        model: &str,
        on_event: &mut dyn FnMut(DownloadProgress<'_>),
    ) -> Result<PathBuf, Error> {
        match self.find_local(model) {
            Some(folder) => Ok(folder),
            None if is_name(model) => self.fetch(model, on_event),
            None => Err(Error::NotAModel { name: model.to_owned() }),
        }
    }

    /// The folder of a model that is here already, given as a folder or by name.
    pub fn find_local(&self, model: &str) -> Option<PathBuf> {
        if Path::new(model).is_dir() {
            return Some(PathBuf::from(model));
        }
        is_name(model).then(|| cache::find(&self.cache, model)).flatten()
    }

    #[cfg(not(feature = "hub"))]
    fn fetch(&self, name: &str, _: &mut dyn FnMut(DownloadProgress<'_>)) -> Result<PathBuf, Error> {
        Err(Error::NotCached { name: name.to_owned(), cache: self.cache.clone() })
    }
}

/// `name` or `owner/name`, in the characters the hub allows: a mistyped path is not looked for in the network.
fn is_name(model: &str) -> bool {
    let parts: Vec<&str> = model.split('/').collect();
    let is_part = |part: &&str| {
        part.starts_with(|c: char| c.is_ascii_alphanumeric())
            && part.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c))
            && !part.contains("..")
    };
    parts.len() <= 2 && parts.iter().all(is_part)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_not_names() {
        for name in ["xlm-roberta-base", "FacebookAI/xlm-roberta-base", "a/b_c.d-1"] {
            assert!(is_name(name), "{name}");
        }
        let paths = [
            "",
            ".",
            "..",
            "/",
            "/models/x",
            "./x",
            "../x",
            "~/x",
            "a/b/c",
            "a\\b",
            "a//b",
            "a/",
            "a/..",
            "C:x",
            "ä",
            "a b",
        ];
        for path in paths {
            assert!(!is_name(path), "{path}");
        }
    }
}
