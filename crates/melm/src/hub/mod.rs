//! Finds models by name: in a folder, in the local Hugging Face cache, or on the hub.
//!
//! The cache is shared with Python's libraries, so that a model is stored only once. The caller passes the path of
//! the cache, because this library reads no environment variables.

mod cache;
#[cfg(feature = "hub")]
mod fetch;

use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::Error;

/// The cache of models, and the hub they are downloaded from.
#[derive(Clone, Debug)]
pub struct Hub {
    /// The folder of the cache. By convention it is `$HF_HUB_CACHE`, else `$HF_HOME/hub`, else
    /// `~/.cache/huggingface/hub`.
    pub cache: PathBuf,
    /// The address of the hub if it is not the public one. By convention it is `$HF_ENDPOINT`.
    pub endpoint: Option<String>,
    /// If the hub has not answered after this time, it counts as offline.
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
    /// The default timeout. Even a slow network answers within a second or two.
    pub(crate) const DEFAULT_TIMEOUT: Duration = Duration::from_secs(5);

    /// Creates a value with this cache and the public hub.
    pub fn new(cache: impl Into<PathBuf>) -> Self {
        Self { cache: cache.into(), endpoint: None, timeout: Self::DEFAULT_TIMEOUT }
    }

    /// Returns the folder of a model that is given as a folder or by name. Downloads the model if it is not in the
    /// cache, and calls `on_progress` for every block received.
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

    /// Returns the folder of a model that is given as a folder or by name. Returns `None` if the model is not on this
    /// machine.
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

/// Returns true if `model` has the form `name` or `owner/name` with characters that the hub allows. Anything else is
/// a mistyped path and is not requested from the hub.
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
