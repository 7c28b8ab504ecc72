//! The checksums by which the hub names the content of files.

use sha1::Sha1;
use sha2::{Digest, Sha256};

/// A checksum that the hub states in the `ETag` of a file. It is also the name of the file in the folder `blobs`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Checksum {
    /// The SHA-256 hash of the content. Large files have it.
    Sha256(String),
    /// The hash of the content as a git object. Small files have it.
    GitBlob(String),
}

impl Checksum {
    /// Reads the value of a header `ETag` or `X-Linked-Etag`. Returns `None` if the value is no hash.
    pub(super) fn from_etag(etag: &str) -> Option<Self> {
        let etag = etag.trim();
        let hash = etag.strip_prefix("W/").unwrap_or(etag).trim_matches('"');
        // The hash becomes a file name, so nothing but hexadecimal digits is accepted.
        if !hash.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f')) {
            return None;
        }
        match hash.len() {
            64 => Some(Self::Sha256(hash.to_owned())),
            40 => Some(Self::GitBlob(hash.to_owned())),
            _ => None,
        }
    }

    /// Returns the hash in hexadecimal.
    pub(super) fn as_str(&self) -> &str {
        match self {
            Self::Sha256(hash) | Self::GitBlob(hash) => hash,
        }
    }

    /// Starts to compute the checksum of a file with `size` bytes.
    pub(super) fn hasher(&self, size: u64) -> Hasher {
        match self {
            Self::Sha256(_) => Hasher::Sha256(Sha256::new()),
            Self::GitBlob(_) => {
                Hasher::GitBlob(Sha1::new_with_prefix(format!("blob {size}\0").as_bytes()))
            }
        }
    }
}

/// Computes a [`Checksum`].
#[derive(Clone)]
pub(super) enum Hasher {
    Sha256(Sha256),
    GitBlob(Sha1),
}

impl Hasher {
    /// Adds bytes of the content.
    pub(super) fn update(&mut self, bytes: &[u8]) {
        match self {
            Self::Sha256(hasher) => hasher.update(bytes),
            Self::GitBlob(hasher) => hasher.update(bytes),
        }
    }

    /// Returns the hash in hexadecimal.
    pub(super) fn finish(self) -> String {
        let hexadecimal = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        match self {
            Self::Sha256(hasher) => hexadecimal(&hasher.finalize()),
            Self::GitBlob(hasher) => hexadecimal(&hasher.finalize()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The hashes are those of `printf 'hello\n' | git hash-object --stdin` and `printf 'hello\n' | sha256sum`.
    #[test]
    fn hashes_agree_with_git_and_sha256sum() {
        let etags = [
            "\"ce013625030ba8dba906f756967f9e9ca394464a\"",
            "W/\"5891b5b522d5df086d0ff0b110fbd9d21bb4fc7163af34d08286a2e846f6be03\"",
        ];
        for etag in etags {
            let checksum = Checksum::from_etag(etag).unwrap();
            let mut hasher = checksum.hasher(6);
            hasher.update(b"hel");
            hasher.update(b"lo\n");
            assert_eq!(hasher.finish(), checksum.as_str());
        }
    }

    #[test]
    fn an_etag_that_is_no_hash_is_refused() {
        let path = format!("\"../{}\"", "a".repeat(61));
        let upper = "A".repeat(64);
        for etag in ["", "\"\"", "\"etag\"", "\"0123\"", path.as_str(), upper.as_str()] {
            assert_eq!(Checksum::from_etag(etag), None, "{etag}");
        }
    }
}
