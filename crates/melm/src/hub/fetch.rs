//! Downloads a model from the hub into the cache.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use hf_hub::Cache;
use hf_hub::api::RepoInfo;
use hf_hub::api::sync::ApiBuilder;
use melm_nn::config::Config;
use melm_nn::files::{MAX_CONFIG_BYTES, read_text};

use super::cache::{self, CONFIG, INDEX, OPTIONAL, TOKENIZERS, WEIGHTS};
use super::client::{Client, RequestError};
use super::download::Downloader;
use super::store::Snapshot;
use super::{DownloadProgress, Hub, HubError};
use crate::Error;
use crate::pieces::Tokenizer;

/// Weights in the format of Python's `pickle`, which can run code when it is opened.
const PICKLED: [&str; 2] = ["pytorch_model.bin", "pytorch_model.bin.index.json"];
/// The longest description of a model. A model with thousands of files has less than 1 MiB.
const MAX_DESCRIPTION: u64 = 16 << 20;

impl Hub {
    pub(super) fn fetch(
        &self,
        name: &str,
        on_progress: &mut dyn FnMut(DownloadProgress<'_>),
    ) -> Result<PathBuf, Error> {
        if self.offline {
            let (name, cache) = (name.to_owned(), self.cache.clone());
            return Err(HubError::DownloadsDisabled { name, cache }.into());
        }
        let client = Client::new(self, &self.address(name)?)?;
        let info = self.request_info(&client, name)?;
        let files = files_to_fetch(name, &info)?;
        let snapshot = Snapshot::create(&self.cache, name, &info.sha)?;
        // All files come from one commit, so that a change on the hub cannot mix two versions of the model.
        let downloader =
            Downloader { hub: self, client: &client, name, commit: &info.sha, snapshot: &snapshot };
        for file in files.small {
            downloader.fetch(file, on_progress)?;
        }
        check_small_files(snapshot.folder())?;
        downloader.fetch(files.weights, on_progress)?;
        if files.weights == INDEX {
            for shard in shards(name, &info, &snapshot.folder().join(INDEX))? {
                downloader.fetch(&shard, on_progress)?;
            }
        }
        // The reference is written last, because it marks the model as complete in the cache.
        snapshot.finish()?;
        Ok(snapshot.folder().to_path_buf())
    }

    /// Returns the address of the hub. The crate `hf-hub` knows the address of the public one.
    fn address(&self, name: &str) -> Result<String, HubError> {
        if let Some(endpoint) = &self.endpoint {
            return Ok(endpoint.clone());
        }
        let api = ApiBuilder::from_cache(Cache::new(self.cache.clone())).with_token(None).build();
        let url = api.map_err(|error| self.unreachable(name, error))?.model("m".into()).url("f");
        Ok(url.trim_end_matches("/m/resolve/main/f").to_owned())
    }

    /// Asks the hub for the commit and the files of a model. Retries if the hub is overloaded. Without a network, fails
    /// at once, because a user who works offline should not wait.
    fn request_info(&self, client: &Client, name: &str) -> Result<RepoInfo, Error> {
        let url = format!("{}/api/models/{name}/revision/main", client.endpoint);
        let mut retry = 0;
        let text = loop {
            let error = match client.get_text(&url, MAX_DESCRIPTION, self.timeout) {
                Ok(text) => break text,
                Err(error) => error,
            };
            let RequestError::Status { status, .. } = error else {
                return Err(self.unreachable(name, error).into());
            };
            let name = name.to_owned();
            if !error.is_transient() {
                return Err(HubError::Refused { name, status }.into());
            }
            let Some(pause) = self.retries.pause(retry, error.retry_after()) else {
                return Err(HubError::Unavailable { name, status, n_retries: retry }.into());
            };
            std::thread::sleep(pause);
            retry += 1;
        };
        let invalid = |what: String| HubError::InvalidAnswer { name: name.to_owned(), what };
        let info: RepoInfo =
            serde_json::from_str(&text).map_err(|error| invalid(error.to_string()))?;
        let is_commit = !info.sha.is_empty() && info.sha.bytes().all(|b| b.is_ascii_alphanumeric());
        if is_commit { Ok(info) } else { Err(invalid("the commit is no hash".to_owned()).into()) }
    }

    fn unreachable(
        &self,
        name: &str,
        source: impl Into<Box<dyn std::error::Error + Send + Sync>>,
    ) -> HubError {
        let (name, cache) = (name.to_owned(), self.cache.clone());
        HubError::Offline { name, cache, source: source.into() }
    }
}

/// The files of a model that are downloaded.
struct FilesToFetch {
    /// The configuration and the files of the tokenizer.
    small: Vec<&'static str>,
    /// The weights, or the index that names their shards.
    weights: &'static str,
}

/// Lists the files to download, without shards. Fails if a needed file is not on the hub.
fn files_to_fetch(name: &str, info: &RepoInfo) -> Result<FilesToFetch, HubError> {
    let on_hub = |file: &&'static str| info.siblings.iter().any(|other| other.rfilename == *file);
    let not_on_hub =
        |file: &str| HubError::NotOnHub { name: name.to_owned(), file: file.to_owned() };
    let weights = [WEIGHTS, INDEX].into_iter().find(on_hub);
    if weights.is_none()
        && let Some(file) = PICKLED.into_iter().find(on_hub)
    {
        return Err(HubError::PickledWeights { name: name.to_owned(), file });
    }
    if !on_hub(&CONFIG) {
        return Err(not_on_hub(CONFIG));
    }
    let tokenizer = TOKENIZERS.into_iter().find(on_hub);
    let tokenizer = tokenizer.ok_or_else(|| not_on_hub(TOKENIZERS[0]))?;
    let weights = weights.ok_or_else(|| not_on_hub(WEIGHTS))?;
    let mut small = vec![CONFIG, tokenizer];
    small.extend(OPTIONAL.into_iter().filter(on_hub));
    Ok(FilesToFetch { small, weights })
}

/// Fails if the configuration or the tokenizer of a downloaded model cannot be used. The weights, which can take hours,
/// are not downloaded then.
fn check_small_files(folder: &Path) -> Result<(), Error> {
    let config = folder.join(CONFIG);
    let text = read_text(&config, MAX_CONFIG_BYTES)
        .map_err(|source| Error::Read { path: config.clone(), source })?;
    Config::parse(&config, &text)?;
    Tokenizer::open(folder).map(drop)
}

/// Returns the files that the index of the weights names. Fails if one of them is not on the hub.
fn shards(name: &str, info: &RepoInfo, index: &Path) -> Result<BTreeSet<String>, HubError> {
    let Some(shards) = cache::read_index(index) else {
        let what = format!("`{INDEX}` cannot be read, or names a file outside its folder");
        return Err(HubError::InvalidAnswer { name: name.to_owned(), what });
    };
    let on_hub = |file: &String| info.siblings.iter().any(|other| other.rfilename == *file);
    if let Some(file) = shards.iter().find(|file| !on_hub(file)) {
        return Err(HubError::NotOnHub { name: name.to_owned(), file: file.clone() });
    }
    Ok(shards)
}
