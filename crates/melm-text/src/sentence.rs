//! A sentence of its own: tokens, one tag each, and whatever else its file said of it.

use std::ops::Range;

use thiserror::Error;

use crate::language::Language;
use crate::mention::{Mention, mentions, write_tags};
use crate::record::{Record, Row};
use crate::scheme::Scheme;
use crate::tag::Tag;
use crate::token::{Token, TokenFault};

/// Tokens with one tag each, at least one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sentence {
    tokens: Vec<Token>,
    tags: Vec<Tag>,
    before: Vec<Box<str>>,
    frames: Vec<Frame>,
    language: Option<Language>,
    /// The language of each token, if the sentence's is known: a mention may come from another.
    token_languages: Vec<Language>,
}

/// The other columns of a row: the text before, between and after token and tag.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Frame {
    parts: [Box<str>; 3],
    tag_first: bool,
}

/// Why tokens and tags do not make a sentence.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum SentenceFault {
    /// Not one tag for each token.
    #[error("{n_tokens} tokens and {n_tags} tags")]
    Uneven {
        /// Tokens given.
        n_tokens: usize,
        /// Tags given.
        n_tags: usize,
    },
    /// No token at all.
    #[error("a sentence needs a token")]
    Empty,
    /// A text that is no token.
    #[error(transparent)]
    Token(#[from] TokenFault),
}

impl Sentence {
    /// Makes a sentence of tokens and their tags.
    pub fn new(tokens: Vec<Token>, tags: Vec<Tag>) -> Result<Self, SentenceFault> {
        if tokens.len() != tags.len() {
            return Err(SentenceFault::Uneven { n_tokens: tokens.len(), n_tags: tags.len() });
        }
        if tokens.is_empty() {
            return Err(SentenceFault::Empty);
        }
        Ok(Self {
            tokens,
            tags,
            before: Vec::new(),
            frames: Vec::new(),
            language: None,
            token_languages: Vec::new(),
        })
    }

    /// The sentence with some tokens replaced: tags, comments and the other columns stay.
    ///
    /// ```
    /// use melm_text::{EntityTypes, Sentence, Tag, Token};
    /// let mut types = EntityTypes::default();
    /// let tags = vec![Tag::Outside, types.parse("B-LOC").unwrap()];
    /// let tokens = ["near", "Bonn"].map(|t| Token::new(t).unwrap()).to_vec();
    /// let sentence = Sentence::new(tokens, tags).unwrap();
    /// let other = sentence.with_tokens([(1, Token::new("Ghent").unwrap())]);
    /// assert_eq!(other.tokens()[1].as_str(), "Ghent");
    /// assert_eq!(other.tags(), sentence.tags());
    /// ```
    ///
    /// # Panics
    /// If the sentence has no token at one of the positions.
    #[must_use]
    pub fn with_tokens(&self, replaced: impl IntoIterator<Item = (usize, Token)>) -> Self {
        let mut sentence = self.clone();
        for (at, token) in replaced {
            sentence.tokens[at] = token;
        }
        sentence
    }

    /// The sentence, and each of its tokens, in a language of its corpus.
    #[must_use]
    pub fn in_language(mut self, language: Language) -> Self {
        self.language = Some(language);
        self.token_languages = vec![language; self.tokens.len()];
        self
    }

    /// The sentence with its tags written anew.
    ///
    /// # Panics
    /// If a mention is not inside the sentence.
    #[must_use]
    pub fn with_mentions(
        mut self,
        mentions: impl IntoIterator<Item = Mention>,
        scheme: Scheme,
    ) -> Self {
        write_tags(mentions, scheme, &mut self.tags);
        self
    }

    /// The sentence without the columns of its file.
    #[must_use]
    pub fn without_columns(mut self) -> Self {
        self.frames.clear();
        self
    }

    /// The sentence with other comments before it.
    #[must_use]
    pub fn with_comments(mut self, before: Vec<Box<str>>) -> Self {
        self.before = before;
        self
    }

    /// The sentence with stretches of tokens replaced by stretches of other sentences, columns and all; its comments
    /// stay. `replaced` is in order and without overlap; the mentions of the result are `mentions`.
    ///
    /// The columns of another language's file need not be those of this one: such a stretch stands in the columns of
    /// what it replaces.
    ///
    /// # Panics
    /// If a stretch is not inside its sentence, or a mention not inside the result.
    #[must_use]
    pub fn spliced<'s>(
        &self,
        replaced: impl IntoIterator<Item = (Range<usize>, (&'s Sentence, Range<usize>))>,
        mentions: impl IntoIterator<Item = Mention>,
        scheme: Scheme,
    ) -> Self {
        let mut result = Self {
            tokens: Vec::new(),
            tags: Vec::new(),
            before: self.before.clone(),
            frames: Vec::new(),
            language: self.language,
            token_languages: Vec::new(),
        };
        let mut at = 0;
        for (gone, (donor, given)) in replaced {
            result.extend_from(self, at..gone.start);
            let is_foreign = donor.language != self.language;
            let own = (0..given.len()).map(|n| (gone.start + n).min(gone.end.saturating_sub(1)));
            let own = own.filter_map(|n| self.frames.get(n).filter(|_| is_foreign));
            result.frames.extend(own.cloned());
            let n_frames = result.frames.len();
            result.extend_from(donor, given);
            if is_foreign {
                result.frames.truncate(n_frames);
            }
            at = gone.end;
        }
        result.extend_from(self, at..self.tokens.len());
        if result.frames.len() != result.tokens.len() {
            result.frames.clear();
        }
        result.tags = vec![Tag::Outside; result.tokens.len()];
        write_tags(mentions, scheme, &mut result.tags);
        result
    }

    fn extend_from(&mut self, other: &Self, stretch: Range<usize>) {
        self.tokens.extend_from_slice(&other.tokens[stretch.clone()]);
        let languages = other.token_languages.get(stretch.clone()).unwrap_or_default();
        self.token_languages.extend_from_slice(languages);
        self.frames.extend_from_slice(other.frames.get(stretch).unwrap_or_default());
    }

    /// The sentence without the comments before it.
    #[must_use]
    pub fn without_comments(mut self) -> Self {
        self.before.clear();
        self
    }

    /// The sentence, if it came from no column file, with the columns of `frame` around each token, all empty: `_`.
    #[must_use]
    pub fn framed_as(mut self, frame: &Frame) -> Self {
        if self.frames.is_empty() {
            self.frames = vec![frame.emptied(); self.tokens.len()];
        }
        self
    }

    /// Takes over what a reader found, columns and comments included.
    pub fn from_record(record: &Record<'_>) -> Result<Self, SentenceFault> {
        let tokens: Result<_, _> = record.tokens.iter().map(|t| Token::new(t)).collect();
        let mut sentence = Self::new(tokens?, record.tags.clone())?;
        sentence.before = record.before.iter().map(|&line| line.into()).collect();
        sentence.frames = record.rows.iter().map(Frame::of).collect();
        Ok(sentence)
    }

    /// Its tokens.
    pub fn tokens(&self) -> &[Token] {
        &self.tokens
    }

    /// Their tags.
    pub fn tags(&self) -> &[Tag] {
        &self.tags
    }

    /// The language of its corpus that it is in, if it has several.
    pub fn language(&self) -> Option<Language> {
        self.language
    }

    /// The language of one of its tokens: not the sentence's if its mention was taken from another.
    pub fn language_of(&self, token: usize) -> Option<Language> {
        self.token_languages.get(token).copied()
    }

    /// Its mentions, in order.
    pub fn mentions(&self) -> impl Iterator<Item = Mention> {
        mentions(&self.tags)
    }

    /// Comment and `-DOCSTART-` lines before it.
    pub fn before(&self) -> &[Box<str>] {
        &self.before
    }

    /// The columns around each token, if it came from a column file.
    pub fn frames(&self) -> &[Frame] {
        &self.frames
    }
}

impl Frame {
    fn of(row: &Row<'_>) -> Self {
        let (parts, tag_first) = row.around();
        Self { parts: parts.map(Into::into), tag_first }
    }

    /// The same columns with `_` in each.
    fn emptied(&self) -> Self {
        let emptied = |part: &str| -> Box<str> {
            let mut text = String::new();
            for c in part.chars() {
                if c.is_whitespace() {
                    text.push(c);
                } else if !text.ends_with('_') {
                    text.push('_');
                }
            }
            text.into()
        };
        Self { parts: self.parts.each_ref().map(|part| emptied(part)), tag_first: self.tag_first }
    }

    pub(crate) fn around(&self) -> ([&str; 3], bool) {
        let [head, middle, tail] = &self.parts;
        ([head, middle, tail], self.tag_first)
    }
}
