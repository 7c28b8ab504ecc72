//! Finds models by name: in a folder, in the local Hugging Face cache, or on the hub.
//!
//! The cache is shared with Python's libraries, so that a model is stored only once. The caller passes the path of
//! the cache and the access token, because this library reads no environment variables. (The HTTP client takes a proxy
//! from `HTTPS_PROXY` and `HTTP_PROXY`.) Every downloaded file is verified against the checksum that the hub states.

mod cache;
#[cfg(feature = "hub")]
mod checksum;
#[cfg(feature = "hub")]
mod client;
#[cfg(feature = "hub")]
mod download;
mod error;
#[cfg(feature = "hub")]
mod fetch;
mod retries;
#[cfg(feature = "hub")]
mod store;

use std::path::{Path, PathBuf};
use std::time::Duration;

pub use self::error::HubError;
pub use self::retries::Retries;
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
    /// If a server sends no byte for this time during a download, the connection is closed and the download continues
    /// with a new one.
    pub stall_timeout: Duration,
    /// How often failed requests are repeated.
    pub retries: Retries,
    /// The access token for private and gated models. By convention it is `$HF_TOKEN`, else the content of
    /// `$HF_TOKEN_PATH`, else of `$HF_HOME/token`. It is sent only to the server of the hub, never to a server that the
    /// hub redirects to.
    pub token: Option<Token>,
    /// Forbids downloads: models must be in the cache. By convention it is set by `$HF_HUB_OFFLINE`.
    pub offline: bool,
}

/// An access token of the hub. Its debug output does not show it.
#[derive(Clone, PartialEq, Eq)]
pub struct Token(String);

impl Token {
    /// Creates a token. Removes white space around it, such as the end of the line in a token file. Returns `None` if
    /// nothing is left.
    pub fn new(text: &str) -> Option<Self> {
        let text = text.trim();
        (!text.is_empty()).then(|| Self(text.to_owned()))
    }
}

impl std::fmt::Debug for Token {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str("Token(…)")
    }
}

/// The progress of one download.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DownloadProgress<'a> {
    /// The name of the file.
    pub file: &'a str,
    /// Bytes received so far, including those of an earlier attempt.
    pub n_bytes: u64,
    /// The length of the file. It is 0 as long as the hub has not stated it.
    pub n_total: u64,
    /// The reason if the download waits: it was interrupted, or another program downloads the file.
    pub problem: Option<&'a str>,
}

impl Hub {
    /// The default timeout. Even a slow network answers within a second or two.
    pub(crate) const DEFAULT_TIMEOUT: Duration = Duration::from_secs(5);
    /// The default of `stall_timeout`. Slow networks pause for seconds, but not for this long.
    pub(crate) const DEFAULT_STALL_TIMEOUT: Duration = Duration::from_secs(30);

    /// Creates a value with this cache and the public hub, without a token.
    pub fn new(cache: impl Into<PathBuf>) -> Self {
        Self {
            cache: cache.into(),
            endpoint: None,
            timeout: Self::DEFAULT_TIMEOUT,
            stall_timeout: Self::DEFAULT_STALL_TIMEOUT,
            retries: Retries::default(),
            token: None,
            offline: false,
        }
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
        Err(HubError::NotCached { name: name.to_owned(), cache: self.cache.clone() }.into())
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

    #[cfg(not(feature = "hub"))]
    #[test]
    fn a_program_without_downloads_says_so() {
        let cache = tempfile::tempdir().expect("a temporary folder");
        let found = Hub::new(cache.path()).resolve("a/b", &mut |_| {});
        assert!(matches!(found, Err(Error::Hub(HubError::NotCached { .. }))));
    }

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
