//! Word vectors in the text format of MUSE and fastText: a word and its numbers on each line, with an
//! optional first line `count dimension`.
//!
//! Such files can be several gigabytes large. They are read as streams, and only the vectors of needed words are
//! checked and stored.

use std::collections::{HashMap, HashSet};
use std::io::{BufRead, BufReader, Read};
use std::ops::Range;

use crate::error::Error;
use crate::problem::{Fault, LocatedFault, Problems};

/// The maximum length of a line in bytes, enough for more than 20,000 numbers.
const LONGEST_LINE: usize = 1 << 20;
/// The size of the read buffer, in bytes.
const BUFFER: usize = 1 << 18;

/// Vectors of words, all of the same dimension.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct WordVectors {
    dimension: usize,
    rows: HashMap<Box<str>, usize>,
    values: Vec<f32>,
    /// The number of words in the file, needed or not.
    pub n_words: usize,
    /// The number of words that the first line of the file states, if there is such a line.
    pub n_promised: Option<usize>,
    /// The number of lines that were ignored because their needed word already had a vector.
    pub n_repeated: usize,
}

impl WordVectors {
    /// Makes a table from words and vectors. If a word occurs twice, its first vector is used.
    ///
    /// # Panics
    /// If a vector does not have `dimension` numbers.
    pub fn new(dimension: usize, pairs: impl IntoIterator<Item = (String, Vec<f32>)>) -> Self {
        let mut vectors = Self { dimension, ..Self::default() };
        for (word, vector) in pairs {
            assert_eq!(vector.len(), dimension, "all vectors have the same dimension");
            vectors.add(&word, &vector);
        }
        vectors
    }

    /// Reads the vectors of the `needed` words. `name` is used in messages.
    ///
    /// Fails if the stream cannot be read or is not a file of vectors. Also fails if a needed vector has the wrong
    /// length, or a component that is not a finite number.
    ///
    /// ```
    /// use melm_text::WordVectors;
    /// let text = "3 2\nlondon 0.5 1\nparis 1 0\nbonn -1 0\n";
    /// let vectors = WordVectors::read("a.vec", text.as_bytes(), &["bonn", "ghent"].into())?;
    /// assert_eq!(vectors.get("bonn"), Some(&[-1.0, 0.0][..]));
    /// assert_eq!((vectors.get("ghent"), vectors.len(), vectors.n_words), (None, 1, 3));
    /// # Ok::<(), melm_text::Error>(())
    /// ```
    pub fn read(name: &str, from: impl Read, needed: &HashSet<&str>) -> Result<Self, Error> {
        let mut lines = Lines {
            name,
            from: BufReader::with_capacity(BUFFER, from),
            number: 0,
            line: Vec::new(),
        };
        let mut vectors = Self::default();
        let mut is_line = lines.next()?;
        if let Some((n_words, dimension)) = parse_header(&lines.line) {
            if dimension == 0 {
                return Err(lines.error_at(0..lines.line.len(), Fault::NoVectors));
            }
            (vectors.n_promised, vectors.dimension) = (Some(n_words), dimension);
            is_line = lines.next()?;
        }
        while is_line {
            if !lines.line.is_empty() {
                vectors.add_line(&lines, needed)?;
            }
            is_line = lines.next()?;
        }
        if vectors.n_words == 0 {
            return Err(lines.error_at(0..0, Fault::NoVectors));
        }
        Ok(vectors)
    }

    /// Adds the vector of the current line, if its word is needed.
    fn add_line<R: Read>(
        &mut self,
        lines: &Lines<'_, R>,
        needed: &HashSet<&str>,
    ) -> Result<(), Error> {
        self.n_words += 1;
        let word = lines.line.split(|byte| is_space(*byte)).next().unwrap_or_default();
        let word = std::str::from_utf8(word).ok().filter(|word| needed.contains(word));
        // The first vector is always parsed, to check that the file contains vectors at all.
        if self.n_words > 1 && word.is_none() {
            return Ok(());
        }
        let dimension = (self.dimension > 0).then_some(self.dimension);
        let found =
            parse_line(&lines.line, dimension).map_err(|LocatedFault { span, fault }| {
                lines.error_at(span, if dimension.is_some() { fault } else { Fault::NoVectors })
            })?;
        let Some(found) = found else { return Ok(()) };
        self.dimension = found.len();
        if let Some(word) = word
            && !self.add(word, &found)
        {
            self.n_repeated += 1;
        }
        Ok(())
    }

    /// Adds a vector. Returns false if the word has one already.
    fn add(&mut self, word: &str, vector: &[f32]) -> bool {
        if self.rows.contains_key(word) {
            return false;
        }
        self.rows.insert(word.into(), self.rows.len());
        self.values.extend_from_slice(vector);
        true
    }

    /// The vector of a word, or `None` if it has none. Case matters.
    pub fn get(&self, word: &str) -> Option<&[f32]> {
        let row = *self.rows.get(word)?;
        self.values.get(row * self.dimension..(row + 1) * self.dimension)
    }

    /// The number of words with a vector.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Returns true if no word has a vector.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// The number of components of each vector.
    pub fn dimension(&self) -> usize {
        self.dimension
    }
}

fn is_space(byte: u8) -> bool {
    byte == b' ' || byte == b'\t'
}

/// Parses a first line with exactly two numbers: the count of words and the dimension.
fn parse_header(line: &[u8]) -> Option<(usize, usize)> {
    let text = std::str::from_utf8(line).ok()?;
    let mut numbers = text.split([' ', '\t']).filter(|part| !part.is_empty());
    let pair = (numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?);
    numbers.next().is_none().then_some(pair)
}

/// Parses the numbers of a line. If `dimension` is known, fails if the line has another number of components. Returns
/// `None` if the word contains a space, because no needed word does.
fn parse_line(line: &[u8], dimension: Option<usize>) -> Result<Option<Vec<f32>>, LocatedFault> {
    let mut at = 0;
    let mut fields = Vec::new();
    for field in line.split(|byte| is_space(*byte)) {
        if !field.is_empty() {
            fields.push(at..at + field.len());
        }
        at += field.len() + 1;
    }
    let number = |span: &Range<usize>| {
        let text = std::str::from_utf8(&line[span.clone()]).ok()?;
        text.parse::<f32>().ok().filter(|number| number.is_finite())
    };
    let numbers = fields.get(1..).unwrap_or_default();
    let expected = dimension.unwrap_or(numbers.len());
    if numbers.len() > expected {
        let extra = &numbers[..numbers.len() - expected];
        if extra.iter().any(|span| number(span).is_none()) {
            return Ok(None);
        }
    }
    if numbers.len() != expected || expected == 0 {
        let fault = Fault::VectorLength { found: numbers.len(), expected };
        return Err(LocatedFault { span: 0..line.len(), fault });
    }
    let not_finite =
        |span: &Range<usize>| LocatedFault { span: span.clone(), fault: Fault::VectorNumber };
    let parsed = numbers.iter().map(|span| number(span).ok_or_else(|| not_finite(span)));
    parsed.collect::<Result<_, _>>().map(Some)
}

/// The lines of a stream. Fails on a line that is too long.
struct Lines<'n, R> {
    name: &'n str,
    from: BufReader<R>,
    number: usize,
    line: Vec<u8>,
}

impl<R: Read> Lines<'_, R> {
    /// Reads the next line, and removes whitespace at its end. Returns false at the end of the stream.
    fn next(&mut self) -> Result<bool, Error> {
        self.line.clear();
        let mut limited = (&mut self.from).take(LONGEST_LINE as u64);
        let n = limited
            .read_until(b'\n', &mut self.line)
            .map_err(|source| Error::Read { name: self.name.to_owned(), source })?;
        if n == 0 {
            return Ok(false);
        }
        self.number += 1;
        if n == LONGEST_LINE && self.line.last() != Some(&b'\n') {
            self.line.truncate(80);
            return Err(self.error_at(0..80, Fault::NoVectors));
        }
        if self.number == 1 && self.line.starts_with(b"\xef\xbb\xbf") {
            self.line.drain(..3);
        }
        let end =
            self.line.iter().rposition(|byte| !byte.is_ascii_whitespace()).map_or(0, |at| at + 1);
        self.line.truncate(end);
        Ok(true)
    }

    /// Makes an error for a span of the current line.
    fn error_at(&self, span: Range<usize>, fault: Fault) -> Error {
        let head =
            String::from_utf8_lossy(&self.line[..span.start.min(self.line.len())]).into_owned();
        let text = String::from_utf8_lossy(&self.line).into_owned();
        let (line, start) = (self.number.max(1), head.len());
        let mut problems = Problems::default();
        problems.push(line, start..start + span.len(), fault);
        Error::data(self.name, &("\n".repeat(line - 1) + &text), problems)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn read(text: &[u8], words: &[&str]) -> Result<WordVectors, String> {
        let needed = words.iter().copied().collect();
        WordVectors::read("a.vec", text, &needed).map_err(|error| match error {
            Error::Data { problems, .. } => {
                let first = &problems.first()[0];
                format!("{}: {}", first.line, first.fault)
            }
            other => other.to_string(),
        })
    }

    #[test]
    fn files_of_muse_fasttext_and_glove_are_read() {
        for text in [
            "2 3\nbonn 1 -2.5 3e-1\noslo 0 0 1\n",
            "2 3\r\nbonn 1 -2.5 3e-1 \r\noslo 0 0 1 \r\n",
            "\u{feff}bonn 1 -2.5 3e-1\noslo 0 0 1",
            "2 3\nbonn\t1\t-2.5\t3e-1\nbonn 7 7 7\nne w 0 0 1\n",
        ] {
            let vectors = read(text.as_bytes(), &["bonn", "ghent", "ne"]).unwrap();
            assert_eq!(vectors.get("bonn"), Some(&[1.0, -2.5, 0.3][..]), "{text}");
            assert_eq!((vectors.len(), vectors.dimension()), (1, 3));
        }
        let vectors = read(b"9 2\nbonn 1 2\nbonn 3 4\n", &["bonn"]).unwrap();
        assert_eq!((vectors.n_repeated, vectors.n_words, vectors.n_promised), (1, 2, Some(9)));
    }

    #[test]
    fn errors_have_their_line() {
        for (text, expected) in [
            (&b""[..], "1: the file contains no word vectors"),
            (b"2 3\n", "1: the file contains no word vectors"),
            (b"some plain text\n", "1: the file contains no word vectors"),
            (b"\x1f\x8b\x08\x00\xff\xff", "1: the file contains no word vectors"),
            (b"2 0\nbonn\n", "1: the file contains no word vectors"),
            (b"2 3\noslo 1 2\n", "2: expected 3 numbers, found 2"),
            (b"2 3\noslo 1 2 3\nbonn 1 2\n", "3: expected 3 numbers, found 2"),
            (b"2 3\noslo 1 2 3\nbonn 1 2 3 4\n", "3: expected 3 numbers, found 4"),
            (b"2 3\noslo 1 2 3\nbonn 1 x 3\n", "3: not a finite number"),
            (b"2 3\noslo 1 2 3\nbonn 1 nan 3\n", "3: not a finite number"),
            (b"2 3\noslo 1 2 3\nbonn 1 1e39 3\n", "3: not a finite number"),
        ] {
            assert_eq!(
                read(text, &["bonn"]).unwrap_err(),
                expected,
                "{}",
                String::from_utf8_lossy(text)
            );
        }
        let long = vec![b'1'; LONGEST_LINE + 10];
        assert!(read(&long, &[]).is_err());
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = read(&bytes, &["a", ""]);
        }

        #[test]
        fn numbers_are_those_that_python_would_read(rows in prop::collection::vec(prop::collection::vec(-9.0f32..9.0, 4), 1..20)) {
            let mut text = format!("{} 4\n", rows.len());
            for (at, row) in rows.iter().enumerate() {
                let numbers: Vec<_> = row.iter().map(ToString::to_string).collect();
                text += &format!("w{at} {}\n", numbers.join(" "));
            }
            let vectors = read(text.as_bytes(), &["w0", "w3"]).unwrap();
            prop_assert_eq!(vectors.get("w0"), Some(&rows[0][..]));
            prop_assert_eq!(vectors.get("w3"), rows.get(3).map(|row| &row[..]));
            prop_assert_eq!(vectors.n_words, rows.len());
        }
    }
}
