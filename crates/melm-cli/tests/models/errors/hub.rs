//! Errors of a hub. A server on this machine stands for it.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;

use serde_json::json;

use super::{TRAIN, tiny_folder};
use crate::support::melm;

/// Answers every request with one response, and returns the messages of a command that opens the model `a/b`.
fn messages(response: String) -> String {
    let server = TcpListener::bind("127.0.0.1:0").unwrap();
    let endpoint = format!("http://{}", server.local_addr().unwrap());
    // The thread ends with the process of the tests.
    std::thread::spawn(move || {
        for stream in server.incoming() {
            let mut stream = stream.unwrap();
            let mut lines = BufReader::new(stream.try_clone().unwrap()).lines();
            while lines.next().is_some_and(|line| line.is_ok_and(|line| !line.is_empty())) {}
            let _ = stream.write_all(response.as_bytes());
        }
    });
    let folder = tiny_folder();
    let command = TRAIN.replace("--model model", "--model a/b");
    let output = melm(folder.path(), &command)
        .env("HF_ENDPOINT", endpoint)
        .env("HF_HOME", folder.path().join("hub"))
        .env_remove("HF_HUB_OFFLINE")
        .env_remove("HF_HUB_CACHE")
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1));
    String::from_utf8(output.stderr).unwrap()
}

/// Covers `melm::hub::error::PickledWeights`.
#[test]
fn a_model_with_only_pickled_weights_is_refused() {
    let file = json!({ "rfilename": "pytorch_model.bin", "size": 9, "blobId": "0" });
    let info = json!({ "sha": "0".repeat(40), "siblings": [file] }).to_string();
    let found = messages(format!(
        "HTTP/1.1 200 OK\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{info}",
        info.len()
    ));
    assert!(found.contains("has its weights only as `pytorch_model.bin`"), "{found}");
}

/// Covers `melm::hub::client::Redirect`.
#[test]
fn a_redirect_to_another_protocol_is_refused() {
    let found = messages(
        "HTTP/1.1 302 Found\r\nLocation: ftp://example.org/a\r\nContent-Length: 0\r\nConnection: close\r\n\r\n".to_owned(),
    );
    assert!(
        found.contains("the server redirects to `ftp://example.org/a`, which is refused"),
        "{found}"
    );
}
