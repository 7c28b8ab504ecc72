//! Tokens: the words of a corpus, as the file spells them.

use std::fmt;

use thiserror::Error;

/// A word of the corpus: any text that is not blank and contains no tab, line break or NUL.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Token(Box<str>);

/// The reason why a text cannot be a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum TokenFault {
    /// The text is empty, or contains only ASCII spaces.
    #[error("the token is empty")]
    Empty,
    /// The text contains a character that a CoNLL column cannot contain.
    #[error("the token contains a tab, a line break or a NUL")]
    Break,
    /// The text is `-DOCSTART-`, which marks the start of a document in the CoNLL shared tasks.
    #[error("`-DOCSTART-` marks the start of a document and cannot be a token")]
    DocumentStart,
}

/// The text in the token column of a line that marks the start of a document.
pub(crate) const DOCUMENT_START: &str = "-DOCSTART-";

impl Token {
    /// Makes a token from a text. Fails if the text cannot be a token.
    ///
    /// ```
    /// use melm_text::Token;
    /// assert_eq!(Token::new("Köln").unwrap().as_str(), "Köln");
    /// assert!(Token::new(" ").is_err());
    /// ```
    pub fn new(text: &str) -> Result<Self, TokenFault> {
        Self::check(text)?;
        Ok(Self(text.into()))
    }

    /// Makes the same checks as [`Self::new`], without copying the text.
    pub(crate) fn check(text: &str) -> Result<(), TokenFault> {
        let mut blank = true;
        for byte in text.bytes() {
            match byte {
                b'\t' | b'\n' | b'\r' | 0 => return Err(TokenFault::Break),
                b' ' => {}
                _ => blank = false,
            }
        }
        if blank {
            Err(TokenFault::Empty)
        } else if text == DOCUMENT_START {
            Err(TokenFault::DocumentStart)
        } else {
            Ok(())
        }
    }

    /// The text of the token.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl AsRef<str> for Token {
    fn as_ref(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn empty_and_blank_tokens_are_refused() {
        assert_eq!(Token::new(""), Err(TokenFault::Empty));
        assert_eq!(Token::new("   "), Err(TokenFault::Empty));
    }

    #[test]
    fn breaks_are_refused() {
        for text in ["a\tb", "a\n", "\r", "a\0"] {
            assert_eq!(Token::new(text), Err(TokenFault::Break));
        }
    }

    #[test]
    fn invisible_but_real_characters_are_tokens() {
        for text in ["\u{a0}", "\u{200b}", "\u{2028}", "New York"] {
            assert_eq!(Token::new(text).unwrap().as_str(), text);
        }
    }

    proptest! {
        #[test]
        fn a_token_is_exactly_what_it_was_made_from(text in any::<String>()) {
            match Token::new(&text) {
                Ok(token) => prop_assert_eq!(token.as_str(), text),
                Err(TokenFault::Empty) => prop_assert!(text.bytes().all(|b| b == b' ')),
                Err(TokenFault::DocumentStart) => prop_assert_eq!(text, DOCUMENT_START),
                Err(TokenFault::Break) => prop_assert!(text.contains(['\t', '\n', '\r', '\0'])),
            }
        }
    }
}
