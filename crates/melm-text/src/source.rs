//! The content of a file: a text with its encoding checked, the bytes of a binary format, or several files.

use std::borrow::Cow;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::str::FromStr;

use crate::bounded::{decode_latin1, read_chunk};
use crate::error::Error;
use crate::formats::Format;
use crate::limits::Limits;
use crate::problem::{Fault, Problems};

/// The content of a file, with a name for messages.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Source {
    name: String,
    text: String,
    /// The bytes of a binary format. The text is then empty.
    binary: Vec<u8>,
    /// The files that belong together, such as the pairs of BRAT.
    parts: Vec<Source>,
    /// The number of files of a BRAT folder that are left out, because the other file of their pair is missing.
    n_unpaired: usize,
    limits: Limits,
}

/// The longest line of a file, in bytes. A JSON string is on one line, so this bounds the memory that a hostile file
/// can take before it is refused. A whole export of an annotation tool may be one line.
const MAX_LINE: usize = 256 << 20;
/// The largest binary file, in bytes. It has no lines that could be bounded. This is also the limit of its data after
/// decompression.
const MAX_BINARY: usize = 1 << 30;

/// The encoding of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Encoding {
    /// UTF-8, with or without a byte order mark.
    #[default]
    Utf8,
    /// ISO 8859-1, the encoding of the original CoNLL-2002 and CoNLL-2003 files.
    Latin1,
}

impl FromStr for Encoding {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        match name.to_lowercase().as_str() {
            "utf8" | "utf-8" => Ok(Encoding::Utf8),
            "latin1" | "latin-1" | "iso-8859-1" => Ok(Encoding::Latin1),
            _ => Err("expected utf-8 or latin1".into()),
        }
    }
}

impl Source {
    /// Reads a file. A file `NAME.ann` is read together with `NAME.txt`, and a folder with such files as all of them
    /// (BRAT). Fails if a file cannot be read, or as [`Self::read`] does.
    pub fn open(path: &Path, encoding: Encoding) -> Result<Self, Error> {
        Self::open_within(path, encoding, Limits::default())
    }

    /// Reads a file as [`Self::open`] does, with other limits.
    pub fn open_within(path: &Path, encoding: Encoding, limits: Limits) -> Result<Self, Error> {
        let pairs = find_pairs(path);
        if pairs.is_empty() {
            return Self::open_one(path, encoding, limits);
        }
        let mut parts = Vec::with_capacity(pairs.len() * 2);
        for annotations in pairs {
            parts.push(Self::open_one(&annotations.with_extension("txt"), encoding, limits)?);
            parts.push(Self::open_one(&annotations, encoding, limits)?);
        }
        let (name, n_unpaired) = (path.display().to_string(), count_unpaired(path));
        Ok(Self { name, parts, n_unpaired, limits, ..Self::default() })
    }

    fn open_one(path: &Path, encoding: Encoding, limits: Limits) -> Result<Self, Error> {
        let name = path.display().to_string();
        match File::open(path) {
            Ok(file) => {
                let len = file.metadata().map_or(0, |found| found.len());
                Self::read_sized(&name, file, encoding, limits, len)
            }
            Err(source) => Err(Error::Read { name, source }),
        }
    }

    /// Reads a stream to its end. Fails if it cannot be read, if a line is longer than 256 MiB ([`Error::LongLine`]), if a
    /// binary file is larger than 1 GiB ([`Error::LargeBinary`]), if memory runs out, or as [`Self::from_bytes`] does.
    pub fn read(name: &str, from: impl Read, encoding: Encoding) -> Result<Self, Error> {
        Self::read_within(name, from, encoding, Limits::default())
    }

    /// Reads a stream as [`Self::read`] does, with other limits.
    pub fn read_within(
        name: &str,
        from: impl Read,
        encoding: Encoding,
        limits: Limits,
    ) -> Result<Self, Error> {
        Self::read_sized(name, from, encoding, limits, 0)
    }

    /// Reads a stream that has at least `len` bytes, as its file says. A large binary file is refused before it is read.
    fn read_sized(
        name: &str,
        mut from: impl Read,
        encoding: Encoding,
        limits: Limits,
        len: u64,
    ) -> Result<Self, Error> {
        let [max_line, max_binary] = [MAX_LINE, MAX_BINARY].map(|n| limits.scale_size(n));
        let mut bytes = Vec::new();
        let mut line_start = 0;
        loop {
            let start = bytes.len();
            let n = read_chunk(&mut from, &mut bytes);
            let n = n.map_err(|source: io::Error| Error::Read { name: name.to_owned(), source })?;
            if n == 0 {
                break;
            }
            let n_known = usize::try_from(len).unwrap_or(usize::MAX).max(bytes.len());
            if n_known > max_binary && Format::is_known_binary(&bytes) {
                let (name, limit_mib) = (name.to_owned(), max_binary >> 20);
                return Err(Error::LargeBinary { name, limit_mib });
            }
            // A NUL is in no text. The rest of such a file, which may be gigabytes, is not read.
            if let Some(at) = memchr::memchr(0, &bytes[start..])
                && !Format::is_known_binary(&bytes)
            {
                bytes.truncate(end_of_line(&bytes, start + at));
                return Self::from_bytes(name.to_owned(), bytes, encoding);
            }
            if let Some(at) = memchr::memrchr(b'\n', &bytes[start..]) {
                line_start = start + at + 1;
            }
            if bytes.len() - line_start > max_line && !Format::is_known_binary(&bytes) {
                let (name, limit_mib) = (name.to_owned(), max_line >> 20);
                return Err(Error::LongLine { name, limit_mib });
            }
        }
        Ok(Self { limits, ..Self::from_bytes(name.to_owned(), bytes, encoding)? })
    }

    /// The limits that the file was read with. They apply to its content too.
    pub fn limits(&self) -> Limits {
        self.limits
    }

    /// Wraps a text without any check.
    pub fn from_text(name: &str, text: impl Into<String>) -> Self {
        Self { name: name.to_owned(), text: text.into(), ..Self::default() }
    }

    /// Joins the texts and annotations of several documents: for each document, the source of the text and then that of
    /// the annotations.
    pub fn from_parts(name: &str, parts: Vec<Source>) -> Self {
        Self { name: name.to_owned(), parts, ..Self::default() }
    }

    /// Decodes bytes. A binary file of a registered format is kept as it is ([`Self::binary`]). Fails with
    /// [`Error::Data`] if other bytes are not valid in `encoding`, or contain a NUL. Fails if memory runs out.
    pub fn from_bytes(name: String, bytes: Vec<u8>, encoding: Encoding) -> Result<Self, Error> {
        if Format::is_known_binary(&bytes) {
            return Ok(Self { name, binary: bytes, ..Self::default() });
        }
        let decoded = match encoding {
            Encoding::Utf8 => String::from_utf8(bytes).map_err(|wrong| {
                let at = wrong.utf8_error().valid_up_to();
                (wrong.into_bytes(), at)
            }),
            Encoding::Latin1 => match decode_latin1(&bytes) {
                Ok(text) => Ok(text),
                Err(source) => return Err(Error::Read { name, source }),
            },
        };
        match decoded {
            Ok(text) => match memchr::memchr(0, text.as_bytes()) {
                Some(at) => Err(encoding_error(&name, text.as_bytes(), at)),
                None => Ok(Self { name, text, ..Self::default() }),
            },
            Err((bytes, at)) => Err(encoding_error(&name, &bytes, at)),
        }
    }

    /// The name for messages.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The text, without a byte order mark. Empty for a binary file and for several files.
    pub fn text(&self) -> &str {
        self.text.strip_prefix('\u{feff}').unwrap_or(&self.text)
    }

    /// The bytes of a binary file; empty for text.
    pub fn binary(&self) -> &[u8] {
        &self.binary
    }

    /// The files that belong together: see [`Self::from_parts`]. Empty for a single file.
    pub fn parts(&self) -> &[Source] {
        &self.parts
    }

    /// The number of files of a BRAT folder that are left out, because the other file of their pair is missing.
    pub(crate) fn n_unpaired(&self) -> usize {
        self.n_unpaired
    }

    /// All bytes of the content, for checksums and sizes: the text without a byte order mark, the bytes of a binary file,
    /// or the files one after the other.
    pub fn content(&self) -> Cow<'_, [u8]> {
        if !self.parts.is_empty() {
            let parts: Vec<_> = self.parts.iter().map(Self::content).collect();
            return Cow::Owned(parts.concat());
        }
        let is_binary = !self.binary.is_empty();
        Cow::Borrowed(if is_binary { &self.binary } else { self.text().as_bytes() })
    }
}

/// Returns the end of the line that has a NUL at `at`, or the position after the NUL if the line has no end.
fn end_of_line(bytes: &[u8], at: usize) -> usize {
    memchr::memchr(b'\n', &bytes[at..]).map_or(at + 1, |n| at + n)
}

/// Returns the files `NAME.ann` that `path` stands for: `path` itself if it has this ending and `NAME.txt` exists, or all
/// such files of a folder, ordered by name.
fn find_pairs(path: &Path) -> Vec<PathBuf> {
    let is_pair = |path: &PathBuf| {
        path.extension().is_some_and(|extension| extension == "ann")
            && path.with_extension("txt").is_file()
    };
    let mut pairs: Vec<PathBuf> = match fs::read_dir(path) {
        Ok(entries) => {
            entries.filter_map(|entry| Some(entry.ok()?.path())).filter(is_pair).collect()
        }
        Err(_) => Some(path.to_owned()).filter(is_pair).into_iter().collect(),
    };
    pairs.sort();
    pairs
}

/// Returns the number of files `NAME.txt` and `NAME.ann` of a folder whose partner is missing.
fn count_unpaired(folder: &Path) -> usize {
    let is_unpaired = |path: &PathBuf| {
        let partner = match path.extension().and_then(|extension| extension.to_str()) {
            Some("txt") => "ann",
            Some("ann") => "txt",
            _ => return false,
        };
        path.is_file() && !path.with_extension(partner).is_file()
    };
    let entries = fs::read_dir(folder).into_iter().flatten();
    entries.filter_map(|entry| Some(entry.ok()?.path())).filter(is_unpaired).count()
}

/// Returns true if bytes that are not UTF-8 are probably no text in any 8-bit encoding: they contain a NUL, or more than
/// one in 50 of the first bytes is a control character.
fn looks_binary(bytes: &[u8]) -> bool {
    const SAMPLE: usize = 1 << 16;
    const FEW: usize = 50;
    let sample = &bytes[..bytes.len().min(SAMPLE)];
    let is_control =
        |byte: &&u8| **byte < b' ' && !matches!(byte, b'\t' | b'\n' | b'\r' | 0x0b | 0x0c);
    sample.contains(&0) || sample.iter().filter(is_control).count() * FEW > sample.len()
}

/// Makes the error for bytes that are wrong at `at`. Shows the line, with wrong bytes replaced.
fn encoding_error(name: &str, bytes: &[u8], at: usize) -> Error {
    let start = memchr::memrchr(b'\n', &bytes[..at]).map_or(0, |n| n + 1);
    let end = memchr::memchr(b'\n', &bytes[at..]).map_or(bytes.len(), |n| at + n);
    let line = memchr::memchr_iter(b'\n', &bytes[..at]).count() + 1;
    let fault = if bytes.starts_with(&[0xff, 0xfe]) || bytes.starts_with(&[0xfe, 0xff]) {
        Fault::WideEncoding
    } else if looks_binary(bytes) {
        Fault::Binary
    } else {
        Fault::NotUtf8 { byte: bytes[at] }
    };
    let head = String::from_utf8_lossy(&bytes[start..at]).into_owned();
    let shown = head.clone() + &String::from_utf8_lossy(&bytes[at..end]);
    let width = shown[head.len()..].chars().next().map_or(0, char::len_utf8);
    let mut problems = Problems::default();
    problems.push(line, head.len()..head.len() + width, fault);
    let above = "\n".repeat(line - 1);
    Error::data(name, &(above + &shown), problems)
}
