//! A local hub that implements just enough HTTP, and fails as its test demands.

use std::collections::{BTreeMap, VecDeque};
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use sha1::Sha1;
use sha2::{Digest, Sha256};

pub(crate) const COMMIT: &str = "0123456789abcdef0123456789abcdef01234567";

/// A wrong answer.
#[derive(Clone, Debug)]
pub(crate) enum Fault {
    /// Answers with this status line and header.
    Status(&'static str, &'static str),
    /// Sends this many bytes and closes the connection.
    Truncate(usize),
    /// Sends this many bytes and then nothing, with the connection open.
    Stall(usize),
    /// Changes the last byte.
    Corrupt,
    /// Sends one byte too many.
    Lengthen,
    /// Sends the file from its start, whatever the range.
    IgnoreRange,
    /// States this header in the place of the true one.
    Header(&'static str, &'static str),
}

/// A request as the server received it.
#[derive(Clone, Debug)]
pub(crate) struct Asked {
    /// Such as `GET /tiny/xlm-r/resolve/COMMIT/config.json`.
    pub(crate) request: String,
    pub(crate) range: Option<String>,
    pub(crate) authorization: Option<String>,
}

pub(crate) struct Server {
    pub(crate) endpoint: String,
    model: Arc<Model>,
}

struct Model {
    name: String,
    files: BTreeMap<String, Vec<u8>>,
    /// The server that sends the content of large files.
    content_server: String,
    /// The answers to come for each request, such as `GET config.json`. After them, all answers are right.
    faults: Mutex<BTreeMap<String, VecDeque<Fault>>>,
    asked: Mutex<Vec<Asked>>,
}

impl Server {
    /// Serves one model on a free port until the test ends.
    pub(crate) fn start(name: &str, files: BTreeMap<String, Vec<u8>>) -> Self {
        Self::with_content_server(name, files, None)
    }

    /// Serves one model. Redirects requests for weights to `content_server` instead of to itself.
    pub(crate) fn with_content_server(
        name: &str,
        files: BTreeMap<String, Vec<u8>>,
        content_server: Option<&str>,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let endpoint = format!("http://{}", listener.local_addr().unwrap());
        let model = Arc::new(Model {
            name: name.to_owned(),
            files,
            content_server: content_server.unwrap_or(&endpoint).to_owned(),
            faults: Mutex::default(),
            asked: Mutex::default(),
        });
        let served = Arc::clone(&model);
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let model = Arc::clone(&served);
                std::thread::spawn(move || model.answer(&mut stream.unwrap()));
            }
        });
        Self { endpoint, model }
    }

    /// Makes the next answers to a request wrong. Requests are `GET info`, `HEAD FILE` and `GET FILE`.
    pub(crate) fn fail(&self, request: &str, faults: impl IntoIterator<Item = Fault>) {
        self.model.faults.lock().unwrap().insert(request.to_owned(), faults.into_iter().collect());
    }

    /// Returns the requests so far.
    pub(crate) fn asked(&self) -> Vec<Asked> {
        self.model.asked.lock().unwrap().clone()
    }

    /// Returns the requests for the content of a file.
    pub(crate) fn asked_for(&self, file: &str) -> Vec<Asked> {
        let mut asked = self.asked();
        asked.retain(|asked| asked.request.ends_with(&format!("/content/{file}")));
        asked
    }
}

impl Model {
    fn answer(&self, stream: &mut TcpStream) {
        let mut lines = BufReader::new(stream.try_clone().unwrap()).lines();
        // A client that stops may open a connection and send nothing.
        let Some(Ok(request)) = lines.next() else { return };
        let headers: Vec<String> =
            lines.map(Result::unwrap).take_while(|line| !line.is_empty()).collect();
        let header = |name: &str| {
            headers.iter().find_map(|line| {
                let (key, value) = line.split_once(": ")?;
                key.eq_ignore_ascii_case(name).then(|| value.to_owned())
            })
        };
        let (method, path) = request.split_once(' ').unwrap();
        let path = path.split(' ').next().unwrap().to_owned();
        let range = header("range");
        self.asked.lock().unwrap().push(Asked {
            request: format!("{method} {path}"),
            range: range.clone(),
            authorization: header("authorization"),
        });
        let start = range.map_or(0, |range| {
            range.strip_prefix("bytes=").unwrap().strip_suffix('-').unwrap().parse().unwrap()
        });
        if path == format!("/api/models/{}/revision/main", self.name) {
            self.send_info(stream);
            return;
        }
        let resolve = format!("/{}/resolve/{COMMIT}/", self.name);
        let file = path.strip_prefix(&resolve).or_else(|| path.strip_prefix("/content/"));
        let Some((file, content)) = file.and_then(|file| self.files.get_key_value(file)) else {
            send(stream, "404 Not Found", &[], b"");
            return;
        };
        let is_large = file.ends_with(".safetensors");
        if method == "HEAD" || (is_large && path.starts_with(&resolve)) {
            self.send_facts(stream, method, file, content);
        } else {
            self.send_content(stream, file, content, start);
        }
    }

    fn next_fault(&self, request: &str) -> Option<Fault> {
        self.faults.lock().unwrap().get_mut(request)?.pop_front()
    }

    fn send_info(&self, stream: &mut TcpStream) {
        if let Some(Fault::Status(status, header)) = self.next_fault("GET info") {
            return send(stream, status, &[header.to_owned()], b"");
        }
        let siblings: Vec<_> =
            self.files.keys().map(|file| serde_json::json!({"rfilename": file})).collect();
        let body = serde_json::json!({"sha": COMMIT, "siblings": siblings}).to_string();
        send(stream, "200 OK", &[], body.as_bytes());
    }

    /// Sends the headers of a file: for a large file with a redirect, as the public hub does.
    fn send_facts(&self, stream: &mut TcpStream, method: &str, file: &str, content: &[u8]) {
        let is_large = file.ends_with(".safetensors");
        let mut facts = if is_large {
            vec![
                format!("X-Linked-Etag: \"{:x}\"", Sha256::digest(content)),
                format!("X-Linked-Size: {}", content.len()),
                format!("Location: {}/content/{file}", self.content_server),
                "Content-Length: 0".to_owned(),
            ]
        } else {
            vec![
                format!("ETag: W/\"{}\"", git_hash(content)),
                format!("Content-Length: {}", content.len()),
            ]
        };
        // A fault of `GET` is for the request that follows the redirect.
        let fault = (method == "HEAD").then(|| self.next_fault(&format!("HEAD {file}")));
        match fault.flatten() {
            Some(Fault::Status(status, header)) => {
                return send(stream, status, &[header.to_owned()], b"");
            }
            Some(Fault::Header(name, value)) => {
                facts.retain(|line| !line.starts_with(&format!("{name}:")));
                facts.push(format!("{name}: {value}"));
            }
            _ => {}
        }
        let status = if is_large { "302 Found" } else { "200 OK" };
        send_head(stream, status, &facts);
    }

    fn send_content(&self, stream: &mut TcpStream, file: &str, content: &[u8], start: usize) {
        let fault = self.next_fault(&format!("GET {file}"));
        let start = if matches!(fault, Some(Fault::IgnoreRange)) { 0 } else { start };
        let mut body = content[start..].to_vec();
        let mut length = body.len();
        let last = content.len() - 1;
        match fault {
            Some(Fault::Status(status, header)) => {
                return send(stream, status, &[header.to_owned()], b"");
            }
            Some(Fault::Truncate(n_bytes) | Fault::Stall(n_bytes)) => body.truncate(n_bytes),
            Some(Fault::Corrupt) => *body.last_mut().unwrap() ^= 1,
            Some(Fault::Lengthen) => {
                body.push(b'x');
                length += 1;
            }
            _ => {}
        }
        let mut headers = vec![format!("Content-Length: {length}")];
        let status = if start == 0 { "200 OK" } else { "206 Partial Content" };
        if start > 0 {
            headers.push(format!("Content-Range: bytes {start}-{last}/{}", content.len()));
        }
        send_head(stream, status, &headers);
        let _ = stream.write_all(&body);
        if matches!(fault, Some(Fault::Stall(_))) {
            std::thread::sleep(Duration::from_secs(20));
        }
    }
}

/// Returns what `git hash-object` prints.
fn git_hash(content: &[u8]) -> String {
    let mut hasher = Sha1::new();
    hasher.update(format!("blob {}\0", content.len()));
    hasher.update(content);
    format!("{:x}", hasher.finalize())
}

fn send(stream: &mut TcpStream, status: &str, headers: &[String], body: &[u8]) {
    let length = format!("Content-Length: {}", body.len());
    send_head(stream, status, &[headers, &[length]].concat());
    let _ = stream.write_all(body);
}

fn send_head(stream: &mut TcpStream, status: &str, headers: &[String]) {
    let mut head = format!("HTTP/1.1 {status}\r\nConnection: close\r\n");
    for header in headers.iter().filter(|header| !header.is_empty()) {
        head.push_str(header);
        head.push_str("\r\n");
    }
    head.push_str("\r\n");
    // The client may have closed the connection.
    let _ = stream.write_all(head.as_bytes());
}
