//! A local hub that implements just enough HTTP for a client that requests ranges.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

pub(crate) const COMMIT: &str = "0123456789abcdef0123456789abcdef01234567";

pub(crate) struct Server {
    pub(crate) endpoint: String,
    /// The paths that were requested, in order.
    pub(crate) asked: Arc<Mutex<Vec<String>>>,
}

struct Model {
    name: String,
    files: BTreeMap<String, Vec<u8>>,
    /// The name of a file of which only half is sent.
    cut: Option<String>,
}

impl Server {
    /// Serves one model on a free port until the test ends.
    pub(crate) fn start(name: &str, files: BTreeMap<String, Vec<u8>>, cut: Option<&str>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let endpoint = format!("http://{}", listener.local_addr().unwrap());
        let asked = Arc::new(Mutex::new(Vec::new()));
        let model = Arc::new(Model { name: name.to_owned(), files, cut: cut.map(str::to_owned) });
        let log = Arc::clone(&asked);
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let (model, log) = (Arc::clone(&model), Arc::clone(&log));
                std::thread::spawn(move || answer(stream.unwrap(), &model, &log));
            }
        });
        Self { endpoint, asked }
    }
}

fn answer(mut stream: TcpStream, model: &Model, log: &Mutex<Vec<String>>) {
    let mut lines = BufReader::new(stream.try_clone().unwrap()).lines();
    let request = lines.next().unwrap().unwrap();
    let path = request.split(' ').nth(1).unwrap().to_owned();
    let headers: Vec<String> =
        lines.map(Result::unwrap).take_while(|line| !line.is_empty()).collect();
    let range = headers.iter().find_map(|line| {
        let range = line.to_ascii_lowercase().strip_prefix("range: bytes=")?.to_owned();
        let (start, end) = range.split_once('-')?;
        Some((start.parse::<usize>().unwrap(), end.parse::<usize>().ok()))
    });
    log.lock().unwrap().push(path.clone());

    if path == format!("/api/models/{}/revision/main", model.name) {
        let siblings: Vec<_> =
            model.files.keys().map(|file| serde_json::json!({"rfilename": file})).collect();
        let body = serde_json::json!({"sha": COMMIT, "siblings": siblings}).to_string();
        send(&mut stream, "200 OK", &[], body.as_bytes());
        return;
    }
    let file = path.strip_prefix(&format!("/{}/resolve/{COMMIT}/", model.name));
    let Some((file, content)) = file.and_then(|file| model.files.get_key_value(file)) else {
        send(&mut stream, "404 Not Found", &[], b"");
        return;
    };
    let (start, end) = range.unwrap_or((0, None));
    let last = end.unwrap_or(content.len() - 1);
    let headers = [
        format!("Content-Range: bytes {start}-{last}/{}", content.len()),
        format!("ETag: \"etag-{file}\""),
        format!("x-repo-commit: {COMMIT}"),
    ];
    let mut body = &content[start..=last];
    if model.cut.as_deref() == Some(file) && end.is_none() {
        body = &body[..body.len() / 2];
    }
    send(&mut stream, "206 Partial Content", &headers, body);
}

fn send(stream: &mut TcpStream, status: &str, headers: &[String], body: &[u8]) {
    let mut head =
        format!("HTTP/1.1 {status}\r\nContent-Length: {}\r\nConnection: close\r\n", body.len());
    for header in headers {
        head.push_str(header);
        head.push_str("\r\n");
    }
    head.push_str("\r\n");
    stream.write_all(head.as_bytes()).unwrap();
    stream.write_all(body).unwrap();
}
