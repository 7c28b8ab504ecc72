//! Reads arbitrary bytes as two shards, separated by a NUL byte, and joins them.
#![no_main]

use libfuzzer_sys::fuzz_target;
use melm::files::sha256;
use melm::shard::{ShardFile, ShardSet};
use melm_fuzz::parts;

/// The beginning of the entry of the digest.
const SEAL: &str = "\"content_sha256\":\"";

/// Writes the right digest into the header of a shard, so that the digest does not hide the reader.
fn seal(bytes: &[u8]) -> Vec<u8> {
    let end = bytes.iter().position(|byte| *byte == b'\n').map_or(bytes.len(), |at| at + 1);
    let (header, content) = bytes.split_at(end);
    let Ok(header) = std::str::from_utf8(header) else { return bytes.to_vec() };
    let Some((before, after)) = header.split_once(SEAL) else { return bytes.to_vec() };
    let Some((_, after)) = after.split_once('"') else { return bytes.to_vec() };
    [
        before.as_bytes(),
        SEAL.as_bytes(),
        sha256(content).as_bytes(),
        b"\"",
        after.as_bytes(),
        content,
    ]
    .concat()
}

fuzz_target!(|bytes: &[u8]| {
    let all: Vec<ShardFile> = parts::<2>(bytes)
        .into_iter()
        .flatten()
        .filter_map(|part| ShardFile::from_bytes("fuzz", &seal(part)).ok())
        .collect();
    if let Ok(set) = ShardSet::new(all) {
        let _ = set.write_to(&mut Vec::new());
        let _ = set.documents();
        let _ = set.arithmetics();
    }
});
