use std::collections::BTreeMap;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use melm::Error;
use melm::hub::{DownloadProgress, Hub};
use melm::pieces::Tokenizer;
use melm_nn::weights::Checkpoint;
use tempfile::TempDir;

use crate::server::{COMMIT, Server};

const NAME: &str = "tiny/xlm-r";

/// Returns the files of a tiny model, with weights from the folder `form` of `testdata/weights`.
fn files(form: &str) -> BTreeMap<String, Vec<u8>> {
    let testdata = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata");
    let folders = [testdata.join("weights").join(form), testdata.join("pieces/unigram")];
    let paths = folders
        .iter()
        .flat_map(|folder| folder.read_dir().unwrap())
        .map(|file| file.unwrap().path());
    paths
        .map(|path| {
            (path.file_name().unwrap().to_str().unwrap().to_owned(), std::fs::read(path).unwrap())
        })
        .collect()
}

fn hub(cache: &TempDir, endpoint: &str) -> Hub {
    Hub { endpoint: Some(endpoint.to_owned()), ..Hub::new(cache.path().join("hub")) }
}

fn find(hub: &Hub, model: &str) -> Result<PathBuf, Error> {
    hub.resolve(model, &mut |_| {})
}

#[test]
fn a_model_is_fetched_once_and_then_found_in_the_cache() {
    for form in ["f32", "sharded"] {
        let cache = tempfile::tempdir().unwrap();
        let mut files = files(form);
        files.insert("pytorch_model.bin".to_owned(), vec![0; 9]);
        files.insert("README.md".to_owned(), vec![0; 9]);
        let server = Server::start(NAME, files.clone(), None);
        let hub = hub(&cache, &server.endpoint);
        let mut received: BTreeMap<String, u64> = BTreeMap::new();
        let folder = hub.resolve(NAME, &mut |event: DownloadProgress<'_>| {
            assert!(event.n_bytes <= event.n_total);
            received.insert(event.file.to_owned(), event.n_bytes);
        });
        let folder = folder.unwrap();
        assert_eq!(folder, hub.cache.join("models--tiny--xlm-r/snapshots").join(COMMIT));
        Checkpoint::open(&folder).unwrap();
        Tokenizer::open(&folder).unwrap();
        for (file, content) in &files {
            let wanted = file != "README.md" && file != "pytorch_model.bin";
            assert_eq!(received.get(file), wanted.then_some(&(content.len() as u64)), "{file}");
            assert_eq!(folder.join(file).exists(), wanted, "{file}");
        }

        let n_asked = server.asked.lock().unwrap().len();
        assert_eq!(find(&hub, NAME).unwrap(), folder);
        assert_eq!(
            server.asked.lock().unwrap().len(),
            n_asked,
            "a cached model is not requested again"
        );
        let offline = Hub { endpoint: Some("http://127.0.0.1:1".to_owned()), ..hub };
        assert_eq!(find(&offline, NAME).unwrap(), folder);
    }
}

#[test]
fn a_folder_is_used_as_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let hub = hub(&folder, "http://127.0.0.1:1");
    assert_eq!(find(&hub, folder.path().to_str().unwrap()).unwrap(), folder.path());
    let error = find(&hub, "./no/such/folder").unwrap_err();
    assert!(matches!(error, Error::NotAModel { .. }), "{error}");
}

#[test]
fn a_missing_network_is_reported_quickly() {
    let cache = tempfile::tempdir().unwrap();
    // The first address refuses connections, the second does not exist, the third accepts connections and never
    // answers.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let endpoints = [
        "http://127.0.0.1:1".to_owned(),
        "http://no-such-host.invalid".to_owned(),
        format!("http://{}", silent.local_addr().unwrap()),
    ];
    for endpoint in endpoints {
        let hub = Hub { timeout: Duration::from_millis(300), ..hub(&cache, &endpoint) };
        let start = Instant::now();
        let error = find(&hub, "xlm-roberta-base").unwrap_err();
        assert!(start.elapsed() < Duration::from_secs(2), "{endpoint}: {:?}", start.elapsed());
        assert!(matches!(error, Error::Offline { .. }), "{endpoint}: {error}");
        assert!(error.to_string().contains("--model DIR"), "{error}");
    }
}

#[test]
fn a_model_that_the_hub_does_not_have_is_refused() {
    let cache = tempfile::tempdir().unwrap();
    let server = Server::start(NAME, files("f32"), None);
    let error = find(&hub(&cache, &server.endpoint), "tiny/other").unwrap_err();
    assert!(matches!(error, Error::Refused { status: 404, .. }), "{error}");
}

#[test]
fn a_model_without_safe_weights_or_tokenizer_is_refused_before_anything_is_fetched() {
    for missing in ["model.safetensors", "tokenizer.json"] {
        let cache = tempfile::tempdir().unwrap();
        let mut files = files("f32");
        files.remove(missing);
        files.insert("pytorch_model.bin".to_owned(), vec![0; 9]);
        let server = Server::start(NAME, files, None);
        let error = find(&hub(&cache, &server.endpoint), NAME).unwrap_err();
        assert!(matches!(error, Error::NotOnHub { file, .. } if file == missing), "{error}");
        assert_eq!(server.asked.lock().unwrap().len(), 1);
    }
}

#[test]
fn truncated_weights_are_not_kept() {
    let cache = tempfile::tempdir().unwrap();
    let server = Server::start(NAME, files("f32"), Some("model.safetensors"));
    let error = find(&hub(&cache, &server.endpoint), NAME).unwrap_err();
    assert!(matches!(error, Error::FetchedLength { found: 3894, expected: 7788, .. }), "{error}");

    let whole = Server::start(NAME, files("f32"), None);
    let folder = find(&hub(&cache, &whole.endpoint), NAME).unwrap();
    Checkpoint::open(&folder).unwrap();
}
