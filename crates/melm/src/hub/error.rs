//! The errors of finding and downloading models.

use std::path::PathBuf;

/// Explains why a model could not be found or downloaded. Each message says what to do.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum HubError {
    /// The model is not in the cache, and this program cannot download it.
    #[error(
        "the model `{name}` is not in the cache `{cache}`, and this program was built without the feature `hub`, which downloads models; pass a folder with `--model DIR`"
    )]
    NotCached {
        /// The model.
        name: String,
        /// The cache that was searched.
        cache: PathBuf,
    },
    /// The model is not in the cache, and [`Hub::offline`](super::Hub::offline) forbids downloads.
    #[error(
        "the model `{name}` is not in the cache `{cache}`, and `HF_HUB_OFFLINE` forbids downloads; unset it, or pass a folder with `--model DIR`"
    )]
    DownloadsDisabled {
        /// The model.
        name: String,
        /// The cache that was searched.
        cache: PathBuf,
    },
    /// The model is not in the cache, and the hub cannot be reached.
    #[error(
        "the model `{name}` is not in the cache `{cache}`, and the Hugging Face hub cannot be reached; pass a folder with `--model DIR`, or try again when the network works"
    )]
    Offline {
        /// The model.
        name: String,
        /// The cache that was searched.
        cache: PathBuf,
        /// The error of the network.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The hub refuses access to the model, or does not have it.
    #[error(
        "the Hugging Face hub answers with status {status} for the model `{name}`; check the name, or, if the model is private or gated, set `HF_TOKEN` or log in with `hf auth login`"
    )]
    Refused {
        /// The model.
        name: String,
        /// The HTTP status.
        status: u16,
    },
    /// The hub is overloaded or out of order, also after several attempts.
    #[error(
        "the Hugging Face hub answers with status {status} for the model `{name}`, also after {n_retries} retries; try again later"
    )]
    Unavailable {
        /// The model.
        name: String,
        /// The HTTP status.
        status: u16,
        /// The number of retries.
        n_retries: u32,
    },
    /// The token contains characters that an HTTP header cannot have.
    #[error(
        "the access token for the Hugging Face hub has spaces, control characters or letters outside ASCII; check `HF_TOKEN` and the token file"
    )]
    InvalidToken,
    /// The hub's description of the model or of one of its files cannot be used.
    #[error(
        "the Hugging Face hub sent an invalid description of the model `{name}`: {what}; check the endpoint"
    )]
    InvalidAnswer {
        /// The model.
        name: String,
        /// The problem.
        what: String,
    },
    /// The model on the hub lacks a required file.
    #[error(
        "the model `{name}` has no `{file}` on the Hugging Face hub; convert it in Python with `save_pretrained` and pass the folder with `--model DIR`"
    )]
    NotOnHub {
        /// The model.
        name: String,
        /// The file.
        file: String,
    },
    /// The weights on the hub are only in a format that can run code when it is opened.
    #[error(
        "the model `{name}` has its weights only as `{file}`, which can run code when it is opened; convert it in Python: `from transformers import AutoModelForMaskedLM as M, AutoTokenizer as T; M.from_pretrained(\"{name}\").save_pretrained(\"DIR\"); T.from_pretrained(\"{name}\").save_pretrained(\"DIR\")`; then pass `--model DIR`"
    )]
    PickledWeights {
        /// The model.
        name: String,
        /// The file.
        file: &'static str,
    },
    /// The hub states no checksum for a file.
    #[error(
        "the hub states no SHA-256 or git checksum for `{file}` of the model `{name}`, so a download cannot be verified; check the endpoint, or download the model in another way and pass the folder with `--model DIR`"
    )]
    NoChecksum {
        /// The model.
        name: String,
        /// The file.
        file: String,
    },
    /// A file is larger than a file of this kind can be.
    #[error(
        "`{file}` of the model `{name}` has {size} bytes, but at most {limit} bytes are expected; check the model"
    )]
    TooLarge {
        /// The model.
        name: String,
        /// The file.
        file: String,
        /// The size that the hub states.
        size: u64,
        /// The limit.
        limit: u64,
    },
    /// The download of a file failed.
    #[error(
        "the download of `{file}` of the model `{name}` failed; run the command again to continue it"
    )]
    Fetch {
        /// The model.
        name: String,
        /// The file.
        file: String,
        /// The error of the network or the server.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// A downloaded file does not have the checksum that the hub states, also after a second download.
    #[error(
        "`{file}` of the model `{name}` was damaged twice on its way: its checksum is {found}, expected {expected}; nothing was kept: check the network and run the command again"
    )]
    Damaged {
        /// The model.
        name: String,
        /// The file.
        file: String,
        /// The checksum of the content received.
        found: String,
        /// The checksum that the hub states.
        expected: String,
    },
}
