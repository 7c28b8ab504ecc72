//! One sentence without tags.

use std::sync::Arc;

use crate::sentence::SentenceFault;
use crate::token::Token;

/// One or more tokens without tags, and the file and line that they come from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnlabelledSentence {
    tokens: Vec<Token>,
    language: Option<Arc<str>>,
    file: Arc<str>,
    line: usize,
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
        Ok(Self { tokens, language: None, file: file.into(), line })
    }

    /// Returns the sentence with its language set to `code`.
    #[must_use]
    pub fn with_language(mut self, code: impl Into<Arc<str>>) -> Self {
        self.language = Some(code.into());
        self
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
}
