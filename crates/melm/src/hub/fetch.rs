//! Downloads a model from the hub into the cache.

use std::path::PathBuf;
use std::sync::mpsc;

use hf_hub::api::sync::{Api, ApiBuilder, ApiError, ApiRepo};
use hf_hub::api::{Progress, RepoInfo};
use hf_hub::{Cache, Repo, RepoType};

use super::cache::{self, INDEX, NEEDED, OPTIONAL, WEIGHTS};
use super::{DownloadProgress, Hub};
use crate::Error;

impl Hub {
    pub(super) fn fetch(
        &self,
        name: &str,
        on_progress: &mut dyn FnMut(DownloadProgress<'_>),
    ) -> Result<PathBuf, Error> {
        let cache = Cache::new(self.cache.clone());
        let mut builder = ApiBuilder::from_cache(cache.clone()).with_progress(false);
        if let Some(endpoint) = &self.endpoint {
            builder = builder.with_endpoint(endpoint.clone());
        }
        let api = builder.build().map_err(|error| self.offline(name, error))?;
        let info = self.request_info(&api, name)?;
        let files = files_to_fetch(name, &info)?;

        // All files come from one commit, so that a change on the hub cannot mix two versions of the model.
        let pinned = Repo::with_revision(name.to_owned(), RepoType::Model, info.sha.clone());
        let repo = api.repo(pinned);
        for file in files {
            fetch_file(&repo, name, &file, on_progress)?;
        }
        let main = cache.repo(Repo::model(name.to_owned()));
        let folder = main.pointer_path(&info.sha);
        // The reference is written last, because it marks the model as complete in the cache.
        main.create_ref(&info.sha)
            .map_err(|source| Error::Write { path: folder.clone(), source })?;
        Ok(folder)
    }

    /// Asks the hub which files a model has. The request runs in its own thread, because it could block for minutes
    /// without a network.
    fn request_info(&self, api: &Api, name: &str) -> Result<RepoInfo, Error> {
        let repo = api.model(name.to_owned());
        let (sender, answer) = mpsc::channel();
        std::thread::spawn(move || sender.send(repo.info()));
        let info = match answer.recv_timeout(self.timeout) {
            Ok(Ok(info)) => info,
            Ok(Err(error)) => return Err(self.request_error(name, error)),
            Err(_) => {
                let silence = format!("no answer in {} s", self.timeout.as_secs_f32());
                return Err(self.offline(name, silence));
            }
        };
        let is_commit = !info.sha.is_empty() && info.sha.chars().all(|c| c.is_ascii_alphanumeric());
        if is_commit { Ok(info) } else { Err(Error::HubAnswer { name: name.to_owned() }) }
    }

    fn request_error(&self, name: &str, error: ApiError) -> Error {
        let name_owned = name.to_owned();
        match error {
            ApiError::RequestError(request) => match *request {
                ureq::Error::StatusCode(status) => Error::Refused { name: name_owned, status },
                ureq::Error::Json(_) => Error::HubAnswer { name: name_owned },
                other => self.offline(name, other),
            },
            other => self.offline(name, other),
        }
    }

    fn offline(
        &self,
        name: &str,
        source: impl Into<Box<dyn std::error::Error + Send + Sync>>,
    ) -> Error {
        Error::Offline { name: name.to_owned(), cache: self.cache.clone(), source: source.into() }
    }
}

/// Lists the files to download. The weights come last, because they take the longest: an error in another file is
/// then noticed early.
///
/// Fails if a needed file is not on the hub.
fn files_to_fetch(name: &str, info: &RepoInfo) -> Result<Vec<String>, Error> {
    let on_hub: Vec<&str> = info.siblings.iter().map(|file| file.rfilename.as_str()).collect();
    let missing = |file| Error::NotOnHub { name: name.to_owned(), file };
    if let Some(file) = NEEDED.into_iter().find(|file| !on_hub.contains(file)) {
        return Err(missing(file));
    }
    let mut files = NEEDED.to_vec();
    files.extend(OPTIONAL.into_iter().filter(|file| on_hub.contains(file)));
    if on_hub.contains(&WEIGHTS) {
        files.push(WEIGHTS);
    } else if on_hub.contains(&INDEX) {
        files.push(INDEX);
        let shards = on_hub
            .iter()
            .filter(|file| file.starts_with("model-") && file.ends_with(".safetensors"));
        files.extend(shards.filter_map(|file| cache::plain_file_name(file)));
    } else {
        return Err(missing(WEIGHTS));
    }
    Ok(files.into_iter().map(str::to_owned).collect())
}

fn fetch_file(
    repo: &ApiRepo,
    name: &str,
    file: &str,
    on_progress: &mut dyn FnMut(DownloadProgress<'_>),
) -> Result<(), Error> {
    let mut progress = ProgressAdapter { file, n_bytes: 0, n_total: 0, on_progress };
    let path = repo.download_with_progress(file, &mut progress).map_err(|source| Error::Fetch {
        name: name.to_owned(),
        file: file.to_owned(),
        source: source.into(),
    })?;
    let expected = progress.n_total;
    let found = std::fs::metadata(&path)
        .map_err(|source| Error::Read { path: path.clone(), source })?
        .len();
    // For a text file, the hub may state the length after compression. Weights are not compressed, so their length is
    // checked.
    if found == expected || !file.ends_with(".safetensors") {
        return Ok(());
    }
    let blob = std::fs::canonicalize(&path).unwrap_or_else(|_| path.clone());
    for path in [path, blob] {
        // If the cache does not use links, both paths are the same and the second removal fails.
        let _ = std::fs::remove_file(path);
    }
    Err(Error::FetchedLength { name: name.to_owned(), file: file.to_owned(), found, expected })
}

/// Converts the progress calls of hf-hub into [`DownloadProgress`] values.
struct ProgressAdapter<'a> {
    file: &'a str,
    n_bytes: u64,
    n_total: u64,
    on_progress: &'a mut dyn FnMut(DownloadProgress<'_>),
}

impl ProgressAdapter<'_> {
    fn send(&mut self) {
        (self.on_progress)(DownloadProgress {
            file: self.file,
            n_bytes: self.n_bytes,
            n_total: self.n_total,
        });
    }
}

impl Progress for &mut ProgressAdapter<'_> {
    fn init(&mut self, size: usize, _: &str) {
        // hf-hub calls this again for each attempt, and then reports the bytes of earlier attempts again.
        (self.n_bytes, self.n_total) = (0, size as u64);
    }

    fn update(&mut self, size: usize) {
        self.n_bytes += size as u64;
        self.send();
    }

    fn finish(&mut self) {
        self.send();
    }
}
