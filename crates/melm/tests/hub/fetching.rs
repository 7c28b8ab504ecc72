use std::collections::BTreeMap;
use std::net::TcpListener;
use std::time::{Duration, Instant};

use melm::Error;
use melm::hub::{DownloadProgress, Hub, HubError, Token};
use melm::pieces::Tokenizer;
use melm_nn::weights::Checkpoint;

use crate::server::{COMMIT, Server};
use crate::support::{
    NAME, WEIGHTS, files, find, find_error, hub, names_in, read_folder, testdata,
};

#[test]
fn a_model_is_fetched_once_and_then_found_in_the_cache() {
    for form in ["f32", "sharded"] {
        let cache = tempfile::tempdir().unwrap();
        let mut files = files(form);
        files.insert("pytorch_model.bin".to_owned(), vec![0; 9]);
        files.insert("README.md".to_owned(), vec![0; 9]);
        let server = Server::start(NAME, files.clone());
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
        // The layout is that of Python's `huggingface_hub`.
        let commit = std::fs::read_to_string(hub.cache.join("models--tiny--xlm-r/refs/main"));
        assert_eq!(commit.unwrap(), COMMIT);
        let config = std::fs::read_link(folder.join("config.json")).unwrap();
        let blob = config.strip_prefix("../../blobs").unwrap().to_str().unwrap();
        assert_eq!(blob.len(), 40);
        assert!(names_in(&hub, "blobs").contains(&blob.to_owned()));
        for (file, content) in &files {
            let wanted = file != "README.md" && file != "pytorch_model.bin";
            assert_eq!(received.get(file), wanted.then_some(&(content.len() as u64)), "{file}");
            assert_eq!(folder.join(file).exists(), wanted, "{file}");
        }

        let n_asked = server.asked().len();
        assert_eq!(find(&hub, NAME).unwrap(), folder);
        assert_eq!(server.asked().len(), n_asked, "a cached model is not requested again");
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
        assert!(matches!(error, Error::Hub(HubError::Offline { .. })), "{endpoint}: {error}");
        assert!(error.to_string().contains("--model DIR"), "{error}");
    }
}

#[test]
fn a_model_that_the_hub_does_not_have_is_refused() {
    let cache = tempfile::tempdir().unwrap();
    let server = Server::start(NAME, files("f32"));
    let error = find(&hub(&cache, &server.endpoint), "tiny/other").unwrap_err();
    assert!(matches!(error, Error::Hub(HubError::Refused { status: 404, .. })), "{error}");
}

#[test]
fn a_model_without_safe_weights_or_tokenizer_is_refused_before_anything_is_fetched() {
    for missing in [WEIGHTS, "tokenizer.json"] {
        let cache = tempfile::tempdir().unwrap();
        let mut files = files("f32");
        files.remove(missing);
        let server = Server::start(NAME, files);
        let error = find_error(&hub(&cache, &server.endpoint));
        assert!(matches!(&error, HubError::NotOnHub { file, .. } if file == missing), "{error}");
        assert_eq!(server.asked().len(), 1);
    }
}

#[test]
fn a_model_with_only_a_vocab_txt_is_fetched() {
    let cache = tempfile::tempdir().unwrap();
    let mut files = files("f32");
    files.remove("tokenizer.json");
    files.extend(read_folder(&testdata("pieces/families/vocab_txt")));
    let server = Server::start(NAME, files);
    let hub = hub(&cache, &server.endpoint);
    let folder = find(&hub, NAME).unwrap();
    assert!(folder.join("vocab.txt").is_file() && folder.join("tokenizer_config.json").is_file());
    assert!(Tokenizer::open(&folder).unwrap().id("##ing").is_some());
    let n_asked = server.asked().len();
    assert_eq!(find(&hub, NAME).unwrap(), folder);
    assert_eq!(server.asked().len(), n_asked, "a cached model is not requested again");

    // A model that has both files is used with `tokenizer.json`.
    let cache = tempfile::tempdir().unwrap();
    let mut files = crate::support::files("f32");
    files.extend(read_folder(&testdata("pieces/families/vocab_txt")));
    let server = Server::start(NAME, files);
    let folder = find(&crate::support::hub(&cache, &server.endpoint), NAME).unwrap();
    assert!(folder.join("tokenizer.json").is_file() && !folder.join("vocab.txt").exists());
}

#[test]
fn a_model_that_cannot_be_used_is_refused_before_its_weights_are_fetched() {
    for (file, content, part) in [
        ("config.json", r#"{"model_type": "deberta-v2"}"#, "use `xlm-roberta-base`"),
        ("tokenizer.json", r#"{"model": {"type": "WordLevel", "vocab": {}}}"#, "`WordLevel`"),
    ] {
        let cache = tempfile::tempdir().unwrap();
        let mut files = files("f32");
        files.insert(file.to_owned(), content.as_bytes().to_vec());
        let server = Server::start(NAME, files);
        let error = find(&hub(&cache, &server.endpoint), NAME).unwrap_err().to_string();
        assert!(error.contains(part) && error.contains(file), "{error}");
        let asked = server.asked();
        assert!(asked.iter().all(|asked| !asked.request.ends_with(WEIGHTS)), "{asked:?}");
    }
}

#[test]
fn pickled_weights_are_refused_with_a_way_to_convert_them() {
    for file in ["pytorch_model.bin", "pytorch_model.bin.index.json"] {
        let cache = tempfile::tempdir().unwrap();
        let mut files = files("f32");
        files.remove(WEIGHTS);
        files.insert(file.to_owned(), vec![0; 9]);
        let server = Server::start(NAME, files);
        let error = find_error(&hub(&cache, &server.endpoint));
        assert!(matches!(error, HubError::PickledWeights { .. }), "{error}");
        let text = error.to_string();
        assert!(text.contains(file) && text.contains("from_pretrained(\"tiny/xlm-r\")"), "{text}");
        assert_eq!(server.asked().len(), 1);
    }
}

#[test]
fn a_missing_shard_is_named() {
    let cache = tempfile::tempdir().unwrap();
    let mut files = files("sharded");
    let shard = files.keys().find(|file| file.ends_with(".safetensors")).unwrap().clone();
    files.remove(&shard);
    let server = Server::start(NAME, files);
    let error = find_error(&hub(&cache, &server.endpoint));
    assert!(matches!(&error, HubError::NotOnHub { file, .. } if *file == shard), "{error}");
}

#[test]
fn nothing_is_requested_if_downloads_are_disabled() {
    let cache = tempfile::tempdir().unwrap();
    let server = Server::start(NAME, files("f32"));
    let hub = hub(&cache, &server.endpoint);
    let offline = Hub { offline: true, ..hub.clone() };
    let error = find_error(&offline);
    assert!(matches!(error, HubError::DownloadsDisabled { .. }), "{error}");
    assert!(server.asked().is_empty());
    let folder = find(&hub, NAME).unwrap();
    assert_eq!(find(&offline, NAME).unwrap(), folder);
}

#[test]
fn a_token_that_cannot_be_sent_is_refused() {
    assert_eq!(Token::new(" \n"), None);
    let cache = tempfile::tempdir().unwrap();
    let server = Server::start(NAME, files("f32"));
    let hub = Hub { token: Token::new("hf_a\r\nX-Evil: 1"), ..hub(&cache, &server.endpoint) };
    let error = find_error(&hub);
    assert!(matches!(error, HubError::InvalidToken), "{error}");
    assert!(server.asked().is_empty());
}
