//! A tiny model, and a client of the local hub.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use melm::Error;
use melm::hub::{Hub, HubError, Retries};
use tempfile::TempDir;

pub(crate) const NAME: &str = "tiny/xlm-r";
pub(crate) const WEIGHTS: &str = "model.safetensors";

pub(crate) fn testdata(folder: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata").join(folder)
}

/// Returns the files of a tiny model, with weights from the folder `form` of `testdata/weights`.
pub(crate) fn files(form: &str) -> BTreeMap<String, Vec<u8>> {
    let folders = [testdata("weights").join(form), testdata("pieces/unigram")];
    folders.iter().flat_map(|folder| read_folder(folder)).collect()
}

/// Returns the names and contents of the files of a folder.
pub(crate) fn read_folder(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let paths = folder.read_dir().unwrap().map(|file| file.unwrap().path());
    paths
        .map(|path| {
            (path.file_name().unwrap().to_str().unwrap().to_owned(), std::fs::read(path).unwrap())
        })
        .collect()
}

/// Returns a hub with short pauses. Its time limits are long, because the machine of the tests may be busy.
pub(crate) fn hub(cache: &TempDir, endpoint: &str) -> Hub {
    Hub {
        endpoint: Some(endpoint.to_owned()),
        retries: Retries { count: 2, first_pause: Duration::from_millis(1) },
        timeout: Duration::from_secs(30),
        ..Hub::new(cache.path().join("hub"))
    }
}

pub(crate) fn find(hub: &Hub, model: &str) -> Result<PathBuf, Error> {
    hub.resolve(model, &mut |_| {})
}

/// Returns the error of a download that must fail.
pub(crate) fn find_error(hub: &Hub) -> HubError {
    match find(hub, NAME) {
        Err(Error::Hub(error)) => error,
        other => panic!("{other:?}"),
    }
}

/// Returns the names in a folder of the model in the cache, sorted.
pub(crate) fn names_in(hub: &Hub, folder: &str) -> Vec<String> {
    let folder = hub.cache.join("models--tiny--xlm-r").join(folder);
    let mut names: Vec<String> = folder
        .read_dir()
        .map(|entries| entries.map(|e| e.unwrap().file_name().into_string().unwrap()).collect())
        .unwrap_or_default();
    names.sort();
    names
}
