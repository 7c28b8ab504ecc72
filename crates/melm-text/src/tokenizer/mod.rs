//! Splits text into tokens and sentences. Nothing is lost: tokens are byte ranges of the text.
//!
//! # The rule
//!
//! 1. The units are grapheme clusters, so combining marks and emoji sequences are never cut.
//! 2. White space, control characters and zero-width spaces separate tokens. Other invisible characters (soft hyphens,
//!    direction marks, byte order marks) belong to a token only between two letters or digits.
//! 3. Letters and digits in a row are one token. A mark between them joins or splits them as the [`TokenizerChoice`] of
//!    the mark says. All other punctuation marks and symbols are tokens of their own.
//! 4. Web and mail addresses are one token, without the punctuation after them.
//! 5. A token that is frequent in the training corpus is kept whole, even if a choice would split it:
//!    [`TokenizerRules`].
//! 6. Scripts without spaces between words are refused ([`UnspacedText`]), except if the tokens of the training corpus
//!    in this script are single characters.

mod affix;
mod choice;
mod chunk;
mod evidence;
mod rules;
mod script;
mod sentences;
mod tokenized;
mod unit;

pub use choice::{ChoiceEvidence, TokenizerChoice};
pub use rules::TokenizerRules;
pub use script::{UnspacedScript, UnspacedText};
pub use tokenized::TokenizedText;

use std::ops::Range;

use chunk::Chunk;
use unit::{Class, Unit, units};
pub(crate) use unit::{is_gap, is_separator};

/// Splits text into tokens as its rules say, and tokens into sentences.
///
/// ```
/// use melm_text::Tokenizer;
/// let tokenizer = Tokenizer::default();
/// let text = tokenizer.tokenize("J. Smith (U.S.) won 3.5 %,  😀!").unwrap();
/// let tokens: Vec<_> = text.tokens().collect();
/// assert_eq!(tokens, ["J.", "Smith", "(", "U.S.", ")", "won", "3.5", "%", ",", "😀", "!"]);
/// assert_eq!(text.spans()[1], 3..8);
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tokenizer {
    rules: TokenizerRules,
}

impl Tokenizer {
    /// Makes a tokenizer that follows `rules`.
    pub fn new(rules: TokenizerRules) -> Self {
        Self { rules }
    }

    /// The rules.
    pub fn rules(&self) -> &TokenizerRules {
        &self.rules
    }

    /// Splits `text` into tokens. Each token can be a [`crate::Token`]. Fails if the text contains a script without
    /// spaces between words that the rules do not split into characters.
    pub fn tokenize<'t>(&self, text: &'t str) -> Result<TokenizedText<'t>, UnspacedText> {
        let units = units(text);
        for unit in &units {
            if let Class::Unspaced(script) = unit.class
                && !self.rules.splits_characters(script)
            {
                return Err(UnspacedText { script, at: unit.start });
            }
        }
        Ok(TokenizedText::new(text, tokenize_units(&self.rules, text, &units)))
    }

    /// Splits a text into sentences: ranges of tokens that together contain all tokens.
    ///
    /// A sentence ends after `.`, `!`, `?`, `…` or a run of them, and the quotes and brackets that close directly after
    /// it, if white space follows and then a token that starts with a capital letter, an opening mark, or a letter of a
    /// script without capital letters. `。`, `！` and `？` need no white space. A line break followed by an empty line ends
    /// a sentence too.
    ///
    /// A period that is part of its token (`U.S.`, `Mr.`) does not end a sentence. Nor does a period after a single
    /// letter, a known abbreviation, or a number of one or two digits. So a sentence that ends in such a word stays
    /// joined with the next one.
    pub fn split_sentences(&self, text: &TokenizedText<'_>) -> Vec<Range<usize>> {
        sentences::split(text)
    }
}

/// Returns the byte ranges of the tokens.
fn tokenize_units(rules: &TokenizerRules, text: &str, units: &[Unit]) -> Vec<Range<usize>> {
    let mut spans = Vec::new();
    let last = units.iter().rposition(|unit| unit.class != Class::Gap);
    let mut start = 0;
    for chunk in units.split(|unit| unit.class == Class::Gap) {
        let is_last = last.is_some_and(|last| last < start + chunk.len());
        Chunk { text, units: chunk, rules, is_last }.split(&mut spans);
        start += chunk.len() + 1;
    }
    spans
}

#[cfg(test)]
mod tests;
