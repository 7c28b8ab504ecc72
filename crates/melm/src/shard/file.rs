//! The output of one shard: a header, and the content.

use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use melm_nn::files::{open_regular, read_bytes_from};

use super::error::ShardError;
use super::header::{ShardHeader, VERSION};
use crate::Error;
use crate::files::{MAX_RUN_FILE, sha256};

/// The largest header in bytes. Arguments of a command have at most two megabytes on Linux.
const MAX_HEADER: u64 = 1 << 22;

/// The output of one shard. The content of a file is read when it is needed.
#[derive(Debug)]
pub struct ShardFile {
    pub(super) name: String,
    pub(super) header: ShardHeader,
    content: Place,
}

/// Where the content is.
#[derive(Debug)]
enum Place {
    File { path: PathBuf, start: u64 },
    Memory(Vec<u8>),
}

impl ShardFile {
    /// Opens a regular file and reads its header.
    pub fn open(path: &Path) -> Result<Self, Error> {
        let failed = |source| Error::Read { path: path.to_path_buf(), source };
        let name = path.display().to_string();
        let mut file = BufReader::new(open_regular(path).map_err(failed)?);
        let mut line = Vec::new();
        file.by_ref().take(MAX_HEADER).read_until(b'\n', &mut line).map_err(failed)?;
        let header = parse_header(&name, &line)?;
        let content = Place::File { path: path.to_path_buf(), start: line.len() as u64 };
        Ok(Self { name, header, content })
    }

    /// Takes the bytes of a shard. `name` is for messages.
    pub fn from_bytes(name: &str, bytes: &[u8]) -> Result<Self, Error> {
        let end = bytes.iter().position(|byte| *byte == b'\n').map_or(bytes.len(), |at| at + 1);
        let (line, content) = bytes.split_at(end);
        let header = parse_header(name, line)?;
        Ok(Self { name: name.to_owned(), header, content: Place::Memory(content.to_vec()) })
    }

    /// Returns the bytes of a shard with this content.
    pub fn to_bytes(mut header: ShardHeader, content: &[u8]) -> Vec<u8> {
        header.content_sha256 = sha256(content);
        let line = serde_json::to_string(&header).expect("a header has only JSON values");
        [line.as_bytes(), b"\n", content].concat()
    }

    /// The header.
    pub fn header(&self) -> &ShardHeader {
        &self.header
    }

    /// Returns the content. Fails if it has more than [`MAX_RUN_FILE`] bytes, or does not fit its checksum.
    pub fn content(&self) -> Result<Vec<u8>, Error> {
        let content = match &self.content {
            Place::Memory(content) => content.clone(),
            Place::File { path, start } => read_bytes_from(path, *start, MAX_RUN_FILE)
                .map_err(|source| Error::Read { path: path.clone(), source })?,
        };
        if sha256(&content) == self.header.content_sha256 {
            return Ok(content);
        }
        let command = self.header.command_for(self.header.shard);
        Err(ShardError::Damaged { name: self.name.clone(), command }.into())
    }
}

fn parse_header(name: &str, line: &[u8]) -> Result<ShardHeader, ShardError> {
    let wrong = |what: String| ShardError::NotAShard { name: name.to_owned(), what };
    if !line.ends_with(b"\n") || !line.starts_with(b"{\"melm_shard\":") {
        return Err(wrong("its first line is not the header of a shard".into()));
    }
    let header: ShardHeader =
        serde_json::from_slice(line).map_err(|error| wrong(format!("its header: {error}")))?;
    if header.melm_shard != VERSION {
        let what = format!(
            "its header has version {}, and this program reads version {VERSION}",
            header.melm_shard
        );
        return Err(wrong(what));
    }
    match header.shard() {
        Some(_) => Ok(header),
        None => Err(wrong(format!("its header says shard {} of {}", header.shard, header.of))),
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Shard, ShardContent, ShardInput, ShardUnit};
    use super::*;

    #[test]
    fn a_header_with_too_many_shards_is_refused() {
        let input =
            ShardInput { name: "a".into(), sha256: String::new(), n: 9, unit: ShardUnit::Sentence };
        let shard = Shard::new(1, 3).unwrap();
        let header = ShardHeader::new("tag", shard, input, String::new(), "", ShardContent::Rows);
        let bytes = ShardFile::to_bytes(header, b"a\n");
        assert!(ShardFile::from_bytes("a", &bytes).is_ok());
        // A list of all missing shards would not fit into memory.
        let text = String::from_utf8(bytes).unwrap();
        let hostile = text.replace("\"of\":3", "\"of\":18446744073709551615");
        let error = ShardFile::from_bytes("a", hostile.as_bytes()).unwrap_err().to_string();
        assert!(error.contains("says shard 1 of 18446744073709551615"), "{error}");
    }

    #[test]
    fn no_shards_are_refused() {
        let merged = super::super::ShardSet::new(Vec::new());
        assert!(matches!(merged, Err(crate::Error::Shard(ShardError::Empty))));
    }
}
