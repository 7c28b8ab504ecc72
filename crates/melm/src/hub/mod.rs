//! Finds models by name: in a folder, in the local Hugging Face cache, or on the hub.
//!
//! The cache is shared with Python's libraries, so that a model is on the disk only once. The caller passes its path: only
//! the front ends read the environment.

mod cache;
#[cfg(feature = "hub")]
mod fetch;

use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::Error;

/// The cache of models, and the hub they are downloaded from.
#[derive(Clone, Debug)]
pub struct Hub {
    /// The folder of the cache. By convention `$HF_HUB_CACHE`, else `$HF_HOME/hub`, else `~/.cache/huggingface/hub`.
    pub cache: PathBuf,
    /// Another address of the hub. By convention `$HF_ENDPOINT`.
    pub endpoint: Option<String>,
    /// The time after which a hub that has not answered counts as offline.
    pub timeout: Duration,
}

/// The progress of one download.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DownloadProgress<'a> {
    /// The name of the file.
    pub file: &'a str,
    /// Bytes received so far, including those of an earlier attempt.
    pub n_bytes: u64,
    /// The length of the file.
    pub n_total: u64,
}

impl Hub {
    /// The default timeout: a slow network answers within a second or two.
    pub(crate) const DEFAULT_TIMEOUT: Duration = Duration::from_secs(5);

    /// Uses a cache and the public hub.
    pub fn new(cache: impl Into<PathBuf>) -> Self {
        Self { cache: cache.into(), endpoint: None, timeout: Self::DEFAULT_TIMEOUT }
    }

    /// Returns the folder of a model given as a folder or by name. Downloads it if it is not in the cache, calling
    /// `on_progress` for every block received.
    pub fn resolve(
        &self,
        model: &str,
        on_progress: &mut dyn FnMut(DownloadProgress<'_>),
    ) -> Result<PathBuf, Error> {
        match self.find_local(model) {
            Some(folder) => Ok(folder),
            None if is_name(model) => self.fetch(model, on_progress),
            None => Err(Error::NotAModel { name: model.to_owned() }),
        }
    }

    /// Returns the folder of a model, given as a folder or by name, if it is on this machine.
    pub(crate) fn find_local(&self, model: &str) -> Option<PathBuf> {
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

/// Returns true for `name` or `owner/name` in the characters that the hub allows. Anything else is a mistyped path and is
/// not requested from the hub.
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
    fn model_names_are_told_from_paths() {
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
