//! Reads unlabelled text from files.

use std::fs::File;
use std::io::Read;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use flate2::read::MultiGzDecoder;

use super::options::{TextFile, TextFormat, TextOptions};
use super::{UnlabelledSentence, UnlabelledText, conll, jsonl};
use crate::bounded::read_beyond;
use crate::conll::is_document_start;
use crate::error::Error;
use crate::format::ReadOptions;
use crate::formats::{Format, Part, is_array};
use crate::problem::{Fault, LocatedFault, Problems};
use crate::source::Source;
use crate::token::Token;
use crate::tokenizer::UnspacedText;

/// The first bytes of a gzip file.
const GZIP: [u8; 2] = [0x1f, 0x8b];

/// The largest number of bytes of a line. It bounds the memory and time that one line takes.
const MAX_LINE: usize = 1 << 20;

/// Lines in scripts without spaces are left out if at most one in this number of lines has such a script. Otherwise the
/// file is refused.
const FEW_UNSPACED: usize = 10;

impl UnlabelledText {
    /// Opens a file and reads it as [`Self::read`] does.
    pub fn open(path: impl AsRef<Path>, options: &TextOptions) -> Result<Self, Error> {
        let name = path.as_ref().display().to_string();
        match File::open(path.as_ref()) {
            Ok(file) => Self::read(&name, file, options),
            Err(source) => Err(Error::Read { name, source }),
        }
    }

    /// Reads plain text, CoNLL rows or JSON lines to their end, plain or compressed with gzip. `name` is the name of the
    /// file for messages.
    ///
    /// Without [`TextOptions::format`], the format is detected from the first 2,000 lines:
    ///
    /// 1. A text that starts with a JSON object is JSON lines. Each object has a list of tokens (`tokens`) or a text
    ///    (`text`). If it has both, the tokens are used.
    /// 2. A text is CoNLL if a line is `-DOCSTART-`, or if its lines have the same number of columns, and either a column
    ///    contains tags, or the tokens are short and some lines have only a punctuation mark as their token. Tags and
    ///    other columns are ignored.
    /// 3. A JSON array or a binary file of a format with spans ([`crate::formats`]) is read without its spans.
    /// 4. All other texts are plain text, with a sentence or a paragraph on each line.
    ///
    /// Plain text and the texts of JSON lines are split into tokens and sentences by [`TextOptions::tokenizer`].
    /// Lines with a script that it cannot split are left out and counted ([`TextFile::n_unspaced`]) if they are at most
    /// one in 10.
    ///
    /// Fails if the text cannot be read, is too large, is not valid in its encoding or has no sentences. Also fails if a
    /// line cannot be read or is longer than 1 MiB, or if too many lines are in a script that the tokenizer cannot split.
    /// All problems are reported together, with their lines.
    ///
    /// ```
    /// use melm_text::{TextOptions, UnlabelledText};
    /// let bytes = "Ada sang in Oslo. It rained.\n".as_bytes();
    /// let text = UnlabelledText::read("a.txt", bytes, &TextOptions::default())?;
    /// assert_eq!(text.sentences().len(), 2);
    /// let second = &text.sentences()[1];
    /// assert_eq!(&second.text().unwrap()[second.spans()[0].clone()], "It");
    /// # Ok::<(), melm_text::Error>(())
    /// ```
    pub fn read(name: &str, from: impl Read, options: &TextOptions) -> Result<Self, Error> {
        let mut bytes = read_bounded(name, from, options)?;
        let is_gzip = bytes.starts_with(&GZIP);
        if is_gzip {
            bytes = read_bounded(name, MultiGzDecoder::new(&bytes[..]), options)?;
        }
        let source = Source::from_bytes(name.to_owned(), bytes, options.encoding)?;
        let format = match options.format {
            Some(format) => format,
            None if is_labelled(&source) => TextFormat::Spans,
            None => TextFormat::detect(source.text()),
        };
        if format != TextFormat::Spans {
            refuse_long_lines(&source)?;
        }
        let mut collected = Collected::new(&source, options);
        match format {
            TextFormat::Plain => read_lines(&mut collected),
            TextFormat::Conll => conll::read(&mut collected),
            TextFormat::Jsonl => jsonl::read(&mut collected),
            TextFormat::Spans => read_spans(&mut collected),
        }?;
        collected.finish(TextFile {
            name: name.to_owned(),
            format,
            tokenizer: None,
            is_gzip,
            n_sentences: 0,
            n_unspaced: 0,
        })
    }
}

/// Reads a stream to its end. Fails if it has more bytes than the options allow.
fn read_bounded(name: &str, from: impl Read, options: &TextOptions) -> Result<Vec<u8>, Error> {
    let (bytes, result) = read_beyond(from, options.max_bytes);
    result.map_err(|source| Error::Read { name: name.to_owned(), source })?;
    if bytes.len() as u64 > options.max_bytes {
        let limit = format!("{} of text", describe_bytes(options.max_bytes));
        return Err(Error::TooLarge { name: name.to_owned(), limit });
    }
    Ok(bytes)
}

fn refuse_long_lines(source: &Source) -> Result<(), Error> {
    let mut problems = Problems::default();
    for (at, line) in source.text().split('\n').enumerate() {
        if line.len() > MAX_LINE {
            problems.push(at + 1, 0..0, Fault::LongLine);
        }
    }
    if problems.is_empty() {
        return Ok(());
    }
    Err(Error::data(source.name(), source.text(), problems))
}

fn describe_bytes(n: u64) -> String {
    if n >= 1 << 20 { format!("{} MiB", n >> 20) } else { format!("{n} bytes") }
}

/// Reads plain text.
fn read_lines(collected: &mut Collected<'_>) -> Result<(), Error> {
    for (at, line) in collected.source.text().split('\n').enumerate() {
        let line = line.strip_suffix('\r').unwrap_or(line);
        match memchr::memchr(b'\r', line.as_bytes()) {
            Some(bare) => collected.problems.push(at + 1, bare..bare + 1, Fault::CarriageReturn),
            None if is_document_start(line) => {}
            None => collected.add_text(at + 1, line, 0..0)?,
        }
    }
    Ok(())
}

/// Returns true for a file with spans that is neither plain text nor JSON lines.
fn is_labelled(source: &Source) -> bool {
    let is_candidate = is_array(source.text()) || !source.binary().is_empty();
    is_candidate && Format::detect(source) != Format::JSONL
}

/// Reads the texts of a file with spans, or the tokens if it has no texts.
fn read_spans(collected: &mut Collected<'_>) -> Result<(), Error> {
    let source = collected.source;
    let format = Format::detect(source);
    let options = ReadOptions { keeps_unlabelled: true, ..ReadOptions::default() };
    let structure = format.read(source, &options)?;
    for document in structure.documents().map_or(&[][..], |all| &all.documents) {
        let line = document.line();
        if !format.holds(Part::Tokens) {
            collected.add_text(line, document.text(), 0..0)?;
            continue;
        }
        for sentence in document.sentences() {
            let tokens: Result<_, _> = document.sentence_tokens(sentence).map(Token::new).collect();
            collected.add_tokens(line, tokens.expect("the tokens of a document are tokens"))?;
        }
    }
    Ok(())
}

/// The sentences and problems of a file, while it is read.
pub(super) struct Collected<'s> {
    pub(super) source: &'s Source,
    pub(super) options: &'s TextOptions,
    pub(super) problems: Problems,
    file: Arc<str>,
    sentences: Vec<UnlabelledSentence>,
    n_tokens: usize,
    /// The number of lines with text that were split.
    n_texts: usize,
    /// Lines with a script that the tokenizer cannot split.
    unspaced: Problems,
}

impl<'s> Collected<'s> {
    fn new(source: &'s Source, options: &'s TextOptions) -> Self {
        Self {
            source,
            options,
            problems: Problems::default(),
            file: source.name().into(),
            sentences: Vec::new(),
            n_tokens: 0,
            n_texts: 0,
            unspaced: Problems::default(),
        }
    }

    /// Adds a sentence that is already split. Fails if there are too many tokens in the file. A sentence without tokens
    /// is not added.
    pub(super) fn add_tokens(&mut self, line: usize, tokens: Vec<Token>) -> Result<(), Error> {
        self.count_tokens(tokens.len())?;
        let sentence = UnlabelledSentence::new(tokens, Arc::clone(&self.file), line);
        self.sentences.extend(sentence);
        Ok(())
    }

    /// Splits a text into sentences and adds them. `span` is the part of the line that problems are reported at; if it
    /// is empty, `text` is the line. Fails if there are too many tokens in the file.
    pub(super) fn add_text(
        &mut self,
        line: usize,
        text: &str,
        span: Range<usize>,
    ) -> Result<(), Error> {
        if text.trim_ascii().is_empty() {
            return Ok(());
        }
        self.n_texts += 1;
        let options = self.options;
        let found = match options.tokenizer.tokenize(text) {
            Ok(found) => found,
            Err(UnspacedText { script, at }) => {
                let end = text[at..].chars().next().map_or(at, |c| at + c.len_utf8());
                let span = if span.is_empty() { at..end } else { span };
                self.unspaced.push(line, span, Fault::UnspacedScript { script });
                return Ok(());
            }
        };
        self.count_tokens(found.spans().len())?;
        let shared: Arc<str> = text.into();
        for range in options.tokenizer.split_sentences(&found) {
            let spans = found.spans()[range].to_vec();
            let tokens = spans.iter().map(|span| Token::new(&text[span.clone()]));
            let tokens: Result<_, _> = tokens.collect();
            let tokens = tokens.expect("each token of the tokenizer can be a token");
            let sentence = UnlabelledSentence::new(tokens, Arc::clone(&self.file), line)
                .expect("a sentence of the tokenizer has tokens");
            self.sentences.push(sentence.with_text(Arc::clone(&shared), spans));
        }
        Ok(())
    }

    /// Adds a problem of a line.
    pub(super) fn add_fault(&mut self, line: usize, found: LocatedFault) {
        self.problems.push(line, found.span, found.fault);
    }

    fn count_tokens(&mut self, n: usize) -> Result<(), Error> {
        self.n_tokens += n;
        let max_tokens = self.options.max_tokens;
        if self.n_tokens > max_tokens {
            let limit = format!("{max_tokens} tokens");
            return Err(Error::TooLarge { name: self.source.name().to_owned(), limit });
        }
        Ok(())
    }

    /// Returns the text, or all problems.
    fn finish(mut self, mut file: TextFile) -> Result<UnlabelledText, Error> {
        file.n_sentences = self.sentences.len();
        let rules = self.options.tokenizer.rules();
        file.tokenizer = (self.n_texts > 0).then(|| rules.to_string());
        file.n_unspaced = self.unspaced.len();
        if file.n_unspaced * FEW_UNSPACED > self.n_texts {
            self.problems.append(&self.unspaced);
        }
        if self.sentences.is_empty() && self.problems.is_empty() {
            self.problems.push(1, 0..0, Fault::NoText);
        }
        if !self.problems.is_empty() {
            return Err(Error::data(self.source.name(), self.source.text(), self.problems));
        }
        Ok(UnlabelledText { files: vec![file], ..UnlabelledText::new(self.sentences) })
    }
}
