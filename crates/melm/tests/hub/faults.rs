//! Downloads from a server that stalls, truncates, corrupts, redirects and refuses.

use std::time::{Duration, Instant};

use melm::hub::{Hub, HubError, Retries, Token};
use melm_nn::weights::Checkpoint;

use crate::server::{Fault, Server};
use crate::support::{NAME, WEIGHTS, files, find, find_error, hub, names_in};

/// Checks that every file in the snapshot is the one on the server.
fn assert_complete(hub: &Hub) {
    let folder = find(hub, NAME).unwrap();
    Checkpoint::open(&folder).unwrap();
    for (file, content) in files("f32") {
        assert_eq!(std::fs::read(folder.join(&file)).unwrap(), content, "{file}");
    }
    let blobs = names_in(hub, "blobs");
    assert!(blobs.iter().all(|name| !name.ends_with(".incomplete")), "{blobs:?}");
}

#[test]
fn a_download_continues_after_lost_connections() {
    let cache = tempfile::tempdir().unwrap();
    let server = Server::start(NAME, files("f32"));
    // More failures than retries, but each attempt makes progress.
    server.fail(WEIGHTS_CONTENT, [1000, 1000, 0, 1000, 1000].map(Fault::Truncate));
    let hub = hub(&cache, &server.endpoint);
    let mut problems = Vec::new();
    let folder = hub.resolve(NAME, &mut |event| {
        problems.extend(event.problem.map(str::to_owned));
    });
    folder.unwrap();
    let ranges: Vec<_> = server.asked_for(WEIGHTS).into_iter().map(|asked| asked.range).collect();
    let starts = [None, Some(1000), Some(2000), Some(2000), Some(3000), Some(4000)];
    assert_eq!(ranges, starts.map(|start| start.map(|start| format!("bytes={start}-"))));
    assert_eq!(problems[0], "the connection ends after 1000 of 7788 bytes");
    assert_eq!(problems.len(), 5);
    assert_complete(&hub);
}

const WEIGHTS_CONTENT: &str = "GET model.safetensors";

#[test]
fn a_download_that_stalls_is_continued() {
    let cache = tempfile::tempdir().unwrap();
    let server = Server::start(NAME, files("f32"));
    server.fail(WEIGHTS_CONTENT, [Fault::Stall(500), Fault::Stall(0)]);
    server.fail("GET config.json", [Fault::Stall(3)]);
    let stall_timeout = Duration::from_millis(500);
    let retries = Retries { count: 9, first_pause: Duration::from_millis(1) };
    let hub = Hub { stall_timeout, retries, ..hub(&cache, &server.endpoint) };
    let start = Instant::now();
    assert_complete(&hub);
    // The server keeps each of the three connections open for 20 s.
    assert!(start.elapsed() < Duration::from_secs(15), "{:?}", start.elapsed());
    assert!(server.asked_for(WEIGHTS).len() >= 3);
}

#[test]
fn a_download_that_always_fails_is_continued_by_the_next_run() {
    let cache = tempfile::tempdir().unwrap();
    let server = Server::start(NAME, files("f32"));
    server.fail(WEIGHTS_CONTENT, [700, 0, 0].map(Fault::Truncate));
    let hub = hub(&cache, &server.endpoint);
    let error = find_error(&hub);
    assert!(matches!(&error, HubError::Fetch { file, .. } if file == WEIGHTS), "{error}");
    assert!(error.to_string().contains("run the command again"), "{error}");
    let blobs = names_in(&hub, "blobs");
    assert_eq!(blobs.iter().filter(|name| name.ends_with(".incomplete")).count(), 1, "{blobs:?}");
    assert_complete(&hub);
    let last = server.asked_for(WEIGHTS).pop().unwrap();
    assert_eq!(last.range.as_deref(), Some("bytes=700-"));
}

#[test]
fn a_server_that_ignores_the_range_sends_the_file_again() {
    let cache = tempfile::tempdir().unwrap();
    let server = Server::start(NAME, files("f32"));
    server.fail(WEIGHTS_CONTENT, [Fault::Truncate(700), Fault::IgnoreRange]);
    assert_complete(&hub(&cache, &server.endpoint));

    let cache = tempfile::tempdir().unwrap();
    server.fail(WEIGHTS_CONTENT, [Fault::Truncate(700), Fault::Status("416 No", "")]);
    assert_complete(&hub(&cache, &server.endpoint));
}

#[test]
fn a_damaged_file_is_downloaded_once_more_and_never_kept() {
    // Small files have git's checksum, weights have SHA-256.
    for file in ["config.json", "tokenizer.json", WEIGHTS] {
        let cache = tempfile::tempdir().unwrap();
        let server = Server::start(NAME, files("f32"));
        let hub = hub(&cache, &server.endpoint);
        let request = format!("GET {file}");
        server.fail(&request, [Fault::Corrupt, Fault::Corrupt]);
        let error = find_error(&hub);
        assert!(matches!(&error, HubError::Damaged { file: f, .. } if f == file), "{error}");
        assert!(names_in(&hub, "refs").is_empty());
        let snapshot = names_in(&hub, &format!("snapshots/{}", crate::server::COMMIT));
        assert!(!snapshot.contains(&file.to_owned()), "{snapshot:?}");

        server.fail(&request, [Fault::Corrupt]);
        assert_complete(&hub);
    }
}

#[test]
fn a_part_from_another_version_is_replaced() {
    let cache = tempfile::tempdir().unwrap();
    let server = Server::start(NAME, files("f32"));
    let hub = hub(&cache, &server.endpoint);
    server.fail(WEIGHTS_CONTENT, [700, 0, 0].map(Fault::Truncate));
    find_error(&hub);
    let blobs = hub.cache.join("models--tiny--xlm-r/blobs");
    let part = names_in(&hub, "blobs").into_iter().find(|name| name.ends_with(".incomplete"));
    for wrong in [vec![7; 700], vec![7; 7788], vec![7; 9000]] {
        std::fs::write(blobs.join(part.as_ref().unwrap()), wrong).unwrap();
        assert_complete(&hub);
        std::fs::remove_dir_all(&hub.cache).unwrap();
        std::fs::create_dir_all(&blobs).unwrap();
    }
}

#[test]
fn a_file_that_is_longer_than_stated_is_refused() {
    let cache = tempfile::tempdir().unwrap();
    let server = Server::start(NAME, files("f32"));
    server.fail(WEIGHTS_CONTENT, [Fault::Lengthen]);
    let error = find_error(&hub(&cache, &server.endpoint));
    assert!(matches!(error, HubError::Fetch { .. }), "{error}");

    server.fail("HEAD model.safetensors", [Fault::Header("X-Linked-Size", "99999999999999")]);
    let n_asked = server.asked_for(WEIGHTS).len();
    let error = find_error(&hub(&cache, &server.endpoint));
    assert!(matches!(error, HubError::TooLarge { size: 99_999_999_999_999, .. }), "{error}");
    assert_eq!(server.asked_for(WEIGHTS).len(), n_asked);
}

#[test]
fn a_file_without_a_checksum_is_refused() {
    for (request, header) in
        [("HEAD model.safetensors", "X-Linked-Etag"), ("HEAD config.json", "ETag")]
    {
        let cache = tempfile::tempdir().unwrap();
        let server = Server::start(NAME, files("f32"));
        server.fail(request, [Fault::Header(header, "\"../../../evil\"")]);
        let error = find_error(&hub(&cache, &server.endpoint));
        assert!(matches!(error, HubError::NoChecksum { .. }), "{error}");
    }
}

#[test]
fn the_token_is_not_sent_to_the_server_of_a_redirect() {
    let cache = tempfile::tempdir().unwrap();
    let content = Server::start("content/only", files("f32"));
    let server = Server::with_content_server(NAME, files("f32"), Some(&content.endpoint));
    let token = Token::new(" hf_secret\n");
    assert!(!format!("{token:?}").contains("secret"));
    let hub = Hub { token, ..hub(&cache, &server.endpoint) };
    assert_complete(&hub);
    let expected = Some("Bearer hf_secret".to_owned());
    assert!(server.asked().iter().all(|asked| asked.authorization == expected));
    let asked = content.asked();
    assert_eq!(asked.len(), 1);
    assert_eq!(asked[0].authorization, None, "{asked:?}");
}

#[test]
fn an_overloaded_hub_is_asked_again() {
    let busy = [Fault::Status("429 Busy", "Retry-After: 0"), Fault::Status("503 No", "")];
    for request in ["GET info", "HEAD config.json", "GET config.json", WEIGHTS_CONTENT] {
        let cache = tempfile::tempdir().unwrap();
        let server = Server::start(NAME, files("f32"));
        server.fail(request, busy.clone());
        let hub = hub(&cache, &server.endpoint);
        assert_complete(&hub);

        let cache = tempfile::tempdir().unwrap();
        server.fail(request, vec![Fault::Status("503 No", ""); 3]);
        let n_before = server.asked().len();
        let hub = Hub { cache: cache.path().join("hub"), ..hub };
        let error = find_error(&hub);
        if request == "GET info" {
            assert!(matches!(error, HubError::Unavailable { status: 503, n_retries: 2, .. }));
            assert_eq!(server.asked().len(), n_before + 3);
        } else {
            assert!(matches!(error, HubError::Fetch { .. }), "{error}");
        }
    }
}

#[test]
fn the_pause_that_the_hub_demands_is_made() {
    let cache = tempfile::tempdir().unwrap();
    let server = Server::start(NAME, files("f32"));
    server.fail("GET info", [Fault::Status("429 Busy", "Retry-After: 1")]);
    let start = Instant::now();
    assert_complete(&hub(&cache, &server.endpoint));
    assert!(start.elapsed() >= Duration::from_secs(1));
}

#[test]
fn a_refusal_is_final() {
    for (request, status) in
        [("GET info", 401), ("GET info", 403), ("GET info", 404), ("HEAD model.safetensors", 403)]
    {
        let cache = tempfile::tempdir().unwrap();
        let server = Server::start(NAME, files("f32"));
        let line = match status {
            401 => "401 Unauthorized",
            403 => "403 Forbidden",
            _ => "404 Not Found",
        };
        server.fail(request, [Fault::Status(line, "")]);
        let error = find_error(&hub(&cache, &server.endpoint));
        assert!(matches!(error, HubError::Refused { status: s, .. } if s == status), "{error}");
        assert!(error.to_string().contains("HF_TOKEN"), "{error}");
    }
}

#[test]
fn endless_redirects_end() {
    let cache = tempfile::tempdir().unwrap();
    let server = Server::start(NAME, files("f32"));
    let to_itself =
        "Location: /tiny/xlm-r/resolve/0123456789abcdef0123456789abcdef01234567/config.json";
    server.fail("HEAD config.json", vec![Fault::Status("307 Elsewhere", to_itself); 100]);
    let error = find_error(&hub(&cache, &server.endpoint));
    assert!(matches!(error, HubError::Fetch { .. }), "{error}");
    assert!(server.asked().len() < 10);
}

#[test]
fn two_downloads_at_the_same_time_share_the_work() {
    let cache = tempfile::tempdir().unwrap();
    let server = Server::start(NAME, files("f32"));
    let hub = Hub {
        retries: Retries { count: 0, ..Retries::default() },
        ..hub(&cache, &server.endpoint)
    };
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| find(&hub, NAME).unwrap());
        }
    });
    assert_complete(&hub);
    assert_eq!(server.asked_for(WEIGHTS).len(), 1);
}
