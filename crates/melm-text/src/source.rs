//! The text of a file, with its encoding checked.

use std::fs;
use std::io::{self, Read};
use std::path::Path;
use std::str::FromStr;

use crate::error::Error;
use crate::problem::{Fault, Problems};

/// A text with a name for messages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Source {
    name: String,
    text: String,
}

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
    /// Reads a file. Fails if it cannot be read, or as [`Self::from_bytes`] does.
    pub fn open(path: &Path, encoding: Encoding) -> Result<Self, Error> {
        let name = path.display().to_string();
        let bytes = fs::read(path).map_err(|source| Error::Read { name: name.clone(), source })?;
        Self::from_bytes(name, bytes, encoding)
    }

    /// Reads a stream to its end. Fails if it cannot be read, or as [`Self::from_bytes`] does.
    pub fn read(name: &str, mut from: impl Read, encoding: Encoding) -> Result<Self, Error> {
        let mut bytes = Vec::new();
        from.read_to_end(&mut bytes)
            .map_err(|source: io::Error| Error::Read { name: name.to_owned(), source })?;
        Self::from_bytes(name.to_owned(), bytes, encoding)
    }

    /// Wraps a text without any check.
    pub fn from_text(name: &str, text: impl Into<String>) -> Self {
        Self { name: name.to_owned(), text: text.into() }
    }

    /// Decodes bytes. Fails with [`Error::Data`] if they are not valid in `encoding`, or contain a NUL.
    pub fn from_bytes(name: String, bytes: Vec<u8>, encoding: Encoding) -> Result<Self, Error> {
        let decoded = match encoding {
            Encoding::Utf8 => String::from_utf8(bytes).map_err(|wrong| {
                let at = wrong.utf8_error().valid_up_to();
                (wrong.into_bytes(), at)
            }),
            Encoding::Latin1 => Ok(bytes.iter().map(|&b| char::from(b)).collect()),
        };
        match decoded {
            Ok(text) => match memchr::memchr(0, text.as_bytes()) {
                Some(at) => Err(encoding_error(&name, text.as_bytes(), at)),
                None => Ok(Self { name, text }),
            },
            Err((bytes, at)) => Err(encoding_error(&name, &bytes, at)),
        }
    }

    /// The name for messages.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The text, without a byte order mark.
    pub fn text(&self) -> &str {
        self.text.strip_prefix('\u{feff}').unwrap_or(&self.text)
    }
}

/// Makes the error for bytes that are wrong at `at`. Shows the line, with wrong bytes replaced.
fn encoding_error(name: &str, bytes: &[u8], at: usize) -> Error {
    let start = memchr::memrchr(b'\n', &bytes[..at]).map_or(0, |n| n + 1);
    let end = memchr::memchr(b'\n', &bytes[at..]).map_or(bytes.len(), |n| at + n);
    let line = memchr::memchr_iter(b'\n', &bytes[..at]).count() + 1;
    let fault = if bytes.starts_with(&[0xff, 0xfe]) || bytes.starts_with(&[0xfe, 0xff]) {
        Fault::WideEncoding
    } else if bytes[at] == 0 {
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
