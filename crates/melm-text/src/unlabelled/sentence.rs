//! One sentence without tags.

use std::ops::Range;
use std::sync::Arc;

use crate::sentence::{Sentence, SentenceFault};
use crate::tag::Tag;
use crate::token::Token;

/// One or more tokens without tags, and the file and line that they come from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnlabelledSentence {
    tokens: Vec<Token>,
    language: Option<Arc<str>>,
    file: Arc<str>,
    line: usize,
    /// The text that the tokenizer split: a line of plain text, or a JSON string.
    text: Option<Arc<str>>,
    /// The byte range of each token in `text`. Empty if there is no text.
    spans: Vec<Range<usize>>,
}

impl UnlabelledSentence {
    /// Makes a sentence whose first token is on line `line`, from 1, of `file`. Fails if there are no tokens.
    pub fn new(
        tokens: Vec<Token>,
        file: impl Into<Arc<str>>,
        line: usize,
    ) -> Result<Self, SentenceFault> {
        if tokens.is_empty() {
            return Err(SentenceFault::Empty);
        }
        Ok(Self { tokens, language: None, file: file.into(), line, text: None, spans: Vec::new() })
    }

    /// Returns the sentence with its language set to `code`.
    #[must_use]
    pub fn with_language(mut self, code: impl Into<Arc<str>>) -> Self {
        self.language = Some(code.into());
        self
    }

    /// Returns the sentence with the text that its tokens were found in, and their byte ranges in it.
    pub(super) fn with_text(mut self, text: Arc<str>, spans: Vec<Range<usize>>) -> Self {
        self.text = Some(text);
        self.spans = spans;
        self
    }

    /// Returns a sentence with the same tokens, in which all tags are `O`. Its language is not set.
    pub fn to_sentence(&self) -> Sentence {
        let tags = vec![Tag::Outside; self.tokens.len()];
        Sentence::new(self.tokens.clone(), tags).expect("an unlabelled sentence has tokens")
    }

    /// The tokens.
    pub fn tokens(&self) -> &[Token] {
        &self.tokens
    }

    /// The language code, if it is known.
    pub fn language(&self) -> Option<&str> {
        self.language.as_deref()
    }

    /// The name of the file.
    pub fn file(&self) -> &str {
        &self.file
    }

    /// The line of the first token in the file, from 1.
    pub fn line(&self) -> usize {
        self.line
    }

    /// The original text, if the tokens were found by the tokenizer: a whole line of plain text, or the string of a JSON
    /// object. It may contain other sentences too.
    pub fn text(&self) -> Option<&str> {
        self.text.as_deref()
    }

    /// The byte range of each token in [`Self::text`]. Empty if there is no text.
    pub fn spans(&self) -> &[Range<usize>] {
        &self.spans
    }
}
