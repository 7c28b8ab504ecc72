//! Errors of a hub. A server on this machine stands for it.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;

use serde_json::json;

use super::{TRAIN, tiny_folder};
use crate::support::melm;

/// The commit and the checksums that the server states. No content has them.
const HASH: &str = "0000000000000000000000000000000000000000";
/// The variables that say where a command finds models, with a proxy that it could use instead of the server.
const VARIABLES: [&str; 10] = [
    "HF_ENDPOINT",
    "HF_HUB_CACHE",
    "HF_HUB_OFFLINE",
    "HF_TOKEN",
    "HF_TOKEN_PATH",
    "TRANSFORMERS_OFFLINE",
    "HTTP_PROXY",
    "http_proxy",
    "ALL_PROXY",
    "all_proxy",
];

/// Starts a server that answers each request, such as `HEAD /a/b/resolve/COMMIT/config.json`, by a function. Returns its
/// address.
fn serve(answer: impl Fn(&str) -> String + Send + 'static) -> String {
    let server = TcpListener::bind("127.0.0.1:0").unwrap();
    let endpoint = format!("http://{}", server.local_addr().unwrap());
    // The thread ends with the process of the tests.
    std::thread::spawn(move || {
        for stream in server.incoming() {
            let mut stream = stream.unwrap();
            let mut lines = BufReader::new(stream.try_clone().unwrap()).lines();
            let Some(Ok(request)) = lines.next() else { continue };
            while lines.next().is_some_and(|line| line.is_ok_and(|line| !line.is_empty())) {}
            // The client may have closed the connection.
            let _ = stream.write_all(answer(&request).as_bytes());
        }
    });
    endpoint
}

/// Returns the messages of a command that cannot open the model `a/b` of the hub.
fn messages(endpoint: &str, variables: &[(&str, &str)]) -> String {
    let folder = tiny_folder();
    let mut command = melm(folder.path(), &TRAIN.replace("--model model", "--model a/b"));
    for name in VARIABLES {
        command.env_remove(name);
    }
    command.env("HF_ENDPOINT", endpoint).env("HF_HOME", folder.path().join("hub"));
    let output = command.envs(variables.iter().copied()).output().unwrap();
    let messages = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{messages}");
    // Long messages are wrapped.
    messages.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Asserts that a command says `expected` when the server answers in this way.
#[track_caller]
fn assert_refused(expected: &str, answer: impl Fn(&str) -> String + Send + 'static) {
    let found = messages(&serve(answer), &[]);
    assert!(found.contains(expected), "no `{expected}` in: {found}");
}

/// Returns an answer with a status, headers and a body.
fn response(status: &str, headers: &[&str], body: &str) -> String {
    let mut lines = vec![format!("HTTP/1.1 {status}"), "Connection: close".to_owned()];
    lines.extend(headers.iter().map(|&header| header.to_owned()));
    if !headers.iter().any(|header| header.starts_with("Content-Length:")) {
        lines.push(format!("Content-Length: {}", body.len()));
    }
    format!("{}\r\n\r\n{body}", lines.join("\r\n"))
}

/// Returns the description of a model with these files.
fn info(files: &[&str]) -> String {
    let siblings: Vec<_> = files.iter().map(|file| json!({ "rfilename": file })).collect();
    response("200 OK", &[], &json!({ "sha": HASH, "siblings": siblings }).to_string())
}

/// Describes a model that has all its files, and answers requests for its first file, `config.json`, by a function.
fn with_config(answer: impl Fn(&str) -> String) -> impl Fn(&str) -> String {
    move |request| {
        if request.contains("/api/models/") {
            return info(&["config.json", "tokenizer.json", "model.safetensors"]);
        }
        answer(request)
    }
}

/// Covers `melm::hub::error::PickledWeights`.
#[test]
fn a_model_with_only_pickled_weights_is_refused() {
    assert_refused("has its weights only as `pytorch_model.bin`", |_| info(&["pytorch_model.bin"]));
}

/// Covers `melm::hub::client::Redirect` and `melm::hub::error::Offline`.
#[test]
fn a_hub_that_cannot_be_reached_is_named() {
    let offline = "the model `a/b` is not in the cache";
    let redirect = |_: &str| response("302 Found", &["Location: ftp://example.org/a"], "");
    let found = messages(&serve(redirect), &[]);
    let reason = "the server redirects to `ftp://example.org/a`, which is refused";
    assert!(found.contains(offline) && found.contains(reason), "{found}");
    // Nothing listens at the port of a server that has ended.
    let closed = TcpListener::bind("127.0.0.1:0").unwrap();
    let endpoint = format!("http://{}", closed.local_addr().unwrap());
    drop(closed);
    let found = messages(&endpoint, &[]);
    let cure = "the Hugging Face hub cannot be reached; pass a folder with `--model DIR`";
    assert!(found.contains(offline) && found.contains(cure), "{found}");
}

/// Covers `melm::hub::error::DownloadsDisabled` and `melm::hub::error::InvalidToken`.
#[test]
fn nothing_is_requested_without_permission_or_with_an_invalid_token() {
    let endpoint = serve(|request| panic!("{request}"));
    let found = messages(&endpoint, &[("HF_HUB_OFFLINE", "1")]);
    assert!(found.contains("`HF_HUB_OFFLINE` forbids downloads; unset it"), "{found}");
    let found = messages(&endpoint, &[("HF_TOKEN", "hf_a b")]);
    let expected = "the access token for the Hugging Face hub has spaces, control characters";
    assert!(found.contains(expected) && !found.contains("hf_a"), "{found}");
}

/// Covers `melm::hub::error::Refused`.
#[test]
fn a_model_that_the_hub_refuses_is_named() {
    let expected = "the Hugging Face hub answers with status 401 for the model `a/b`; check the";
    assert_refused(expected, |_| response("401 Unauthorized", &[], ""));
}

/// Covers `melm::hub::error::InvalidAnswer` and `melm::hub::error::NotOnHub`.
#[test]
fn descriptions_that_cannot_be_used_are_refused() {
    let invalid = "the Hugging Face hub sent an invalid description of the model `a/b`: ";
    assert_refused(&format!("{invalid}missing field"), |_| response("200 OK", &[], "{}"));
    assert_refused(&format!("{invalid}the size of `config.json` is missing"), {
        let etag = format!("ETag: \"{HASH}\"");
        // An answer without `Content-Length` has no size.
        with_config(move |_| format!("HTTP/1.1 200 OK\r\n{etag}\r\nConnection: close\r\n\r\n"))
    });
    let missing = "the model `a/b` has no `tokenizer.json` on the Hugging Face hub";
    assert_refused(missing, |_| info(&["config.json", "model.safetensors"]));
}

/// Covers `melm::hub::error::NoChecksum`, `melm::hub::error::TooLarge`, `melm::hub::error::Fetch` and
/// `melm::hub::error::Damaged`.
#[test]
fn files_that_cannot_be_verified_are_refused() {
    let head = |size: usize| {
        let (etag, size) = (format!("ETag: \"{HASH}\""), format!("Content-Length: {size}"));
        response("200 OK", &[&etag, &size], "")
    };
    assert_refused(
        "the hub states no SHA-256 or git checksum for `config.json` of the model `a/b`",
        with_config(|_| response("200 OK", &["Content-Length: 2"], "")),
    );
    assert_refused(
        "`config.json` of the model `a/b` has 999999999 bytes, but at most 268435456 bytes are expected",
        with_config(move |_| head(999_999_999)),
    );
    let is_head = |request: &str| request.starts_with("HEAD");
    assert_refused(
        "the download of `config.json` of the model `a/b` failed; run the command again to continue it",
        with_config(
            move |request| {
                if is_head(request) { head(2) } else { response("404 Not Found", &[], "") }
            },
        ),
    );
    let damaged =
        format!("its checksum is 9e26dfeeb6e641a33dae4961196235bdb965b21b, expected {HASH}");
    assert_refused(
        &format!("`config.json` of the model `a/b` was damaged twice on its way: {damaged}"),
        with_config(
            move |request| {
                if is_head(request) { head(2) } else { response("200 OK", &[], "{}") }
            },
        ),
    );
}
