//! Downloads one file: resumes, retries and verifies it.

use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::PathBuf;

use ureq::Body;
use ureq::http::Response;

use super::checksum::{Checksum, Hasher};
use super::client::{Client, Request, RequestError, text_of};
use super::store::Snapshot;
use super::{DownloadProgress, Hub, HubError};
use crate::Error;

/// The number of bytes that are read, hashed and written together.
const BLOCK: usize = 1 << 16;
/// The largest size of weights. The largest models of the supported families have less than a tenth of it.
const MAX_WEIGHTS: u64 = 64 << 30;
/// The largest size of any other file. Tokenizers have up to 40 MB.
const MAX_OTHER: u64 = 256 << 20;

/// Downloads the files of one snapshot of one model.
pub(super) struct Downloader<'a> {
    pub(super) hub: &'a Hub,
    pub(super) client: &'a Client,
    pub(super) name: &'a str,
    pub(super) commit: &'a str,
    pub(super) snapshot: &'a Snapshot,
}

/// What the hub states about a file.
struct FileFacts {
    checksum: Checksum,
    size: u64,
}

/// Explains why an attempt to receive the rest of a file failed.
enum AttemptError {
    Request(RequestError),
    Disk(Error),
}

impl From<RequestError> for AttemptError {
    fn from(error: RequestError) -> Self {
        Self::Request(error)
    }
}

impl Downloader<'_> {
    /// Downloads a file unless its content is in the cache, and places it in the snapshot.
    pub(super) fn fetch(
        &self,
        file: &str,
        on_progress: &mut dyn FnMut(DownloadProgress<'_>),
    ) -> Result<(), Error> {
        let url = format!("{}/{}/resolve/{}/{file}", self.client.endpoint, self.name, self.commit);
        let facts = self.request_facts(file, &url, on_progress)?;
        let lock = self.snapshot.lock(&facts.checksum, || {
            let problem = Some("another program downloads this file");
            on_progress(DownloadProgress { file, n_bytes: 0, n_total: facts.size, problem });
        })?;
        let blob = self.snapshot.blob(&facts.checksum);
        // Another program may have downloaded the content while this one waited for the lock.
        if !fs::metadata(&blob).is_ok_and(|found| found.len() == facts.size) {
            let path = self.snapshot.incomplete_blob(&facts.checksum);
            let mut partial = PartialFile::open(path, &facts)?;
            self.receive(file, &url, &mut partial, on_progress)?;
            partial.finish(&blob)?;
        }
        // The lock is held until the file has its name, because two threads of a program would use the same temporary
        // name.
        let linked = self.snapshot.link(file, &facts.checksum);
        drop(lock);
        linked
    }

    /// Asks the hub for the checksum and the size of a file, and checks both.
    fn request_facts(
        &self,
        file: &str,
        url: &str,
        on_progress: &mut dyn FnMut(DownloadProgress<'_>),
    ) -> Result<FileFacts, Error> {
        let (name, owned_file) = (self.name.to_owned(), file.to_owned());
        let mut on_problem = |problem: &str| {
            let problem = Some(problem);
            on_progress(DownloadProgress { file, n_bytes: 0, n_total: 0, problem });
        };
        let response =
            self.request_headers(url, &mut on_problem).map_err(|error| self.failed(file, error))?;
        let etag = text_of(&response, "x-linked-etag").or_else(|| text_of(&response, "etag"));
        let Some(checksum) = etag.and_then(Checksum::from_etag) else {
            return Err(HubError::NoChecksum { name, file: owned_file }.into());
        };
        let size =
            text_of(&response, "x-linked-size").or_else(|| text_of(&response, "content-length"));
        let Some(size) = size.and_then(|size| size.parse().ok()) else {
            let what = format!("the size of `{file}` is missing");
            return Err(HubError::InvalidAnswer { name, what }.into());
        };
        let limit = if file.ends_with(".safetensors") { MAX_WEIGHTS } else { MAX_OTHER };
        if size > limit {
            return Err(HubError::TooLarge { name, file: owned_file, size, limit }.into());
        }
        Ok(FileFacts { checksum, size })
    }

    fn request_headers(
        &self,
        url: &str,
        on_problem: &mut dyn FnMut(&str),
    ) -> Result<Response<Body>, RequestError> {
        let mut retry = 0;
        loop {
            let timeout = Some(self.hub.stall_timeout);
            let error = match self.client.send(url, Request::Headers, timeout) {
                Err(error) if error.is_transient() => error,
                answer => return answer,
            };
            let Some(pause) = self.hub.retries.pause(retry, error.retry_after()) else {
                return Err(error);
            };
            on_problem(&error.to_string());
            std::thread::sleep(pause);
            retry += 1;
        }
    }

    /// Receives a file and verifies it. Continues after failures that can pass. Downloads a damaged file once more.
    fn receive(
        &self,
        file: &str,
        url: &str,
        partial: &mut PartialFile,
        on_progress: &mut dyn FnMut(DownloadProgress<'_>),
    ) -> Result<(), Error> {
        let (mut retry, mut most_bytes, mut was_damaged) = (0, partial.n_bytes, false);
        loop {
            let error = match self.receive_rest(file, url, partial, on_progress) {
                Ok(()) => match partial.verify()? {
                    None => return Ok(()),
                    Some(found) if was_damaged => return Err(self.damaged(file, partial, found)),
                    Some(_) => {
                        was_damaged = true;
                        on_progress(partial.progress(file, Some("the content was damaged")));
                        continue;
                    }
                },
                Err(AttemptError::Disk(error)) => return Err(error),
                Err(AttemptError::Request(error)) => error,
            };
            if partial.n_bytes > most_bytes {
                (retry, most_bytes) = (0, partial.n_bytes);
            }
            let pause = self.hub.retries.pause(retry, error.retry_after());
            let Some(pause) = pause.filter(|_| error.is_transient()) else {
                return Err(self.failed(file, error));
            };
            on_progress(partial.progress(file, Some(&error.to_string())));
            std::thread::sleep(pause);
            retry += 1;
        }
    }

    /// Makes one request for the bytes that are missing, and receives them.
    fn receive_rest(
        &self,
        file: &str,
        url: &str,
        partial: &mut PartialFile,
        on_progress: &mut dyn FnMut(DownloadProgress<'_>),
    ) -> Result<(), AttemptError> {
        on_progress(partial.progress(file, None));
        if partial.n_bytes == partial.size {
            return Ok(());
        }
        let request = Request::Content { start: partial.n_bytes };
        let mut response = match self.client.send(url, request, None) {
            // The server cannot continue the file from here.
            Err(RequestError::Status { status: 416, .. }) if partial.n_bytes > 0 => {
                partial.restart().map_err(AttemptError::Disk)?;
                self.client.send(url, Request::Content { start: 0 }, None)?
            }
            answer => answer?,
        };
        if !continues_at(&response, partial.n_bytes) {
            partial.restart().map_err(AttemptError::Disk)?;
        }
        let mut body = response.body_mut().as_reader();
        let mut block = vec![0; BLOCK];
        while partial.n_bytes < partial.size {
            let n_read = match body.read(&mut block) {
                Ok(0) => return Err(partial.truncated().into()),
                Ok(n_read) => n_read,
                Err(error) => return Err(self.read_error(error, partial).into()),
            };
            if n_read as u64 > partial.size - partial.n_bytes {
                return Err(RequestError::TooLong(partial.size).into());
            }
            partial.write(&block[..n_read]).map_err(AttemptError::Disk)?;
            on_progress(partial.progress(file, None));
        }
        Ok(())
    }

    fn read_error(&self, error: io::Error, partial: &PartialFile) -> RequestError {
        match ureq::Error::from(error) {
            ureq::Error::Timeout(_) => RequestError::Stalled(self.hub.stall_timeout),
            ureq::Error::Io(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                partial.truncated()
            }
            other => RequestError::Http(other),
        }
    }

    fn failed(&self, file: &str, error: RequestError) -> Error {
        let (name, file) = (self.name.to_owned(), file.to_owned());
        match error {
            RequestError::Status { status: status @ (401 | 403), .. } => {
                HubError::Refused { name, status }.into()
            }
            other => HubError::Fetch { name, file, source: other.into() }.into(),
        }
    }

    fn damaged(&self, file: &str, partial: &PartialFile, found: String) -> Error {
        let (name, file) = (self.name.to_owned(), file.to_owned());
        let expected = partial.checksum.as_str().to_owned();
        HubError::Damaged { name, file, found, expected }.into()
    }
}

/// Returns true if the answer starts at byte `start` of the file.
fn continues_at(response: &Response<Body>, start: u64) -> bool {
    if response.status() != 206 {
        return start == 0;
    }
    let range = text_of(response, "content-range").and_then(|range| range.strip_prefix("bytes "));
    range
        .and_then(|range| range.split_once('-'))
        .is_some_and(|(first, _)| first.parse() == Ok(start))
}

/// A file that is not yet complete. It stays on disk if the download fails, so that a later run can continue it.
struct PartialFile {
    path: PathBuf,
    file: File,
    checksum: Checksum,
    size: u64,
    n_bytes: u64,
    hasher: Hasher,
}

impl PartialFile {
    /// Opens the file, and hashes what an earlier run has received.
    fn open(path: PathBuf, facts: &FileFacts) -> Result<Self, Error> {
        let opened = File::options().create(true).read(true).append(true).open(&path);
        let file = opened.map_err(|source| Error::Write { path: path.clone(), source })?;
        let (checksum, size) = (facts.checksum.clone(), facts.size);
        let hasher = checksum.hasher(size);
        let mut partial = Self { path, file, checksum, size, n_bytes: 0, hasher };
        partial.hash_content()?;
        if partial.n_bytes > size {
            partial.restart()?;
        }
        Ok(partial)
    }

    fn hash_content(&mut self) -> Result<(), Error> {
        let failed = |source| Error::Read { path: self.path.clone(), source };
        self.file.seek(SeekFrom::Start(0)).map_err(failed)?;
        let mut block = vec![0; BLOCK];
        loop {
            match self.file.read(&mut block).map_err(failed)? {
                0 => return Ok(()),
                n_read => {
                    self.hasher.update(&block[..n_read]);
                    self.n_bytes += n_read as u64;
                }
            }
        }
    }

    fn write(&mut self, block: &[u8]) -> Result<(), Error> {
        let written = self.file.write_all(block);
        written.map_err(|source| Error::Write { path: self.path.clone(), source })?;
        self.hasher.update(block);
        self.n_bytes += block.len() as u64;
        Ok(())
    }

    /// Removes the content. The file is in append mode, so the next block is written at its start.
    fn restart(&mut self) -> Result<(), Error> {
        let emptied = self.file.set_len(0);
        emptied.map_err(|source| Error::Write { path: self.path.clone(), source })?;
        (self.n_bytes, self.hasher) = (0, self.checksum.hasher(self.size));
        Ok(())
    }

    /// Compares the checksum of the complete file. If it is wrong, removes the content and returns the wrong checksum.
    fn verify(&mut self) -> Result<Option<String>, Error> {
        let found = self.hasher.clone().finish();
        if found == self.checksum.as_str() {
            return Ok(None);
        }
        self.restart()?;
        Ok(Some(found))
    }

    /// Gives the complete file its final name.
    fn finish(self, path: &std::path::Path) -> Result<(), Error> {
        let placed = self.file.sync_all().and_then(|()| {
            // Windows does not rename an open file.
            drop(self.file);
            fs::rename(&self.path, path)
        });
        placed.map_err(|source| Error::Write { path: path.to_path_buf(), source })
    }

    fn progress<'a>(&self, file: &'a str, problem: Option<&'a str>) -> DownloadProgress<'a> {
        DownloadProgress { file, n_bytes: self.n_bytes, n_total: self.size, problem }
    }

    fn truncated(&self) -> RequestError {
        RequestError::Truncated { found: self.n_bytes, expected: self.size }
    }
}
