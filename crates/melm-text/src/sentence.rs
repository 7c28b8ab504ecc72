//! An owned sentence: tokens, a tag for each, and the comments and columns of its file.

use std::ops::Range;

use thiserror::Error;

use crate::language::Language;
use crate::mention::{Mention, mentions, repair, write_tags};
use crate::record::{Record, Row, RowFrame};
use crate::scheme::Scheme;
use crate::tag::Tag;
use crate::token::{Token, TokenFault};

/// One or more tokens with a tag for each.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sentence {
    tokens: Vec<Token>,
    tags: Vec<Tag>,
    lines_before: Vec<Box<str>>,
    frames: Vec<Frame>,
    /// The text before each token; empty if the sentence does not come from a text.
    gaps: Vec<Box<str>>,
    language: Option<Language>,
    /// The language of each token; empty if the language of the sentence is not known. The tokens of a mention may come
    /// from another language than the sentence.
    token_languages: Vec<Language>,
}

/// The text of a CoNLL row around its token and its tag: separators and all other columns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Frame {
    before: Box<str>,
    between: Box<str>,
    after: Box<str>,
    tag_first: bool,
}

/// One replacement of [`Sentence::splice`]: some tokens are replaced by tokens of another sentence.
#[derive(Debug, Clone)]
pub struct Splice<'s> {
    /// The tokens that are replaced.
    pub replaced: Range<usize>,
    /// The sentence that the new tokens come from.
    pub donor: &'s Sentence,
    /// The tokens of the donor that are taken.
    pub tokens: Range<usize>,
}

/// The reason why tokens and tags are not a sentence.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum SentenceFault {
    /// The numbers of tokens and tags differ.
    #[error("{n_tokens} tokens but {n_tags} tags")]
    Uneven {
        /// The number of tokens.
        n_tokens: usize,
        /// The number of tags.
        n_tags: usize,
    },
    /// There are no tokens.
    #[error("the sentence has no tokens")]
    Empty,
    /// A text cannot be a token.
    #[error(transparent)]
    Token(#[from] TokenFault),
}

impl Sentence {
    /// Makes a sentence from tokens and their tags. Fails if there are no tokens, or if the numbers of tokens and tags
    /// differ.
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
            lines_before: Vec::new(),
            frames: Vec::new(),
            gaps: Vec::new(),
            language: None,
            token_languages: Vec::new(),
        })
    }

    /// Returns the sentence with some tokens replaced. Tags, comments and other columns stay.
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

    /// Returns the sentence with `language` set for it and for each of its tokens.
    #[must_use]
    pub fn with_language(mut self, language: Language) -> Self {
        self.language = Some(language);
        self.token_languages = vec![language; self.tokens.len()];
        self
    }

    /// Returns the sentence with `mentions` in place of its own. The tags are written in `scheme`.
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

    /// Rewrites the tags in `scheme`, for the same mentions.
    pub(crate) fn rewrite_tags(&mut self, scheme: Scheme) {
        repair(&mut self.tags, scheme);
    }

    /// Returns the sentence without any columns beyond token and tag.
    #[must_use]
    pub fn without_columns(mut self) -> Self {
        self.frames.clear();
        self
    }

    /// Returns the sentence with `comments` as the lines before it.
    #[must_use]
    pub fn with_comments(mut self, comments: Vec<Box<str>>) -> Self {
        self.lines_before = comments;
        self
    }

    /// Returns the sentence with some spans of tokens replaced by spans of other sentences. The new tokens keep their
    /// columns. Comments stay. The tags of the result are those of `mentions` in `scheme`.
    ///
    /// `splices` must be in order and must not overlap. A span from a sentence of another language or without columns gets
    /// the columns of the tokens it replaces, because files of other languages may have other columns. In a sentence of a text, the first
    /// new token follows the text that was before the span. The others keep their own spacing, or get one space.
    ///
    /// # Panics
    /// If a span is not inside its sentence, or a mention is not inside the result.
    #[must_use]
    pub fn splice<'s>(
        &self,
        splices: impl IntoIterator<Item = Splice<'s>>,
        mentions: impl IntoIterator<Item = Mention>,
        scheme: Scheme,
    ) -> Self {
        let mut result = Self {
            tokens: Vec::new(),
            tags: Vec::new(),
            lines_before: self.lines_before.clone(),
            frames: Vec::new(),
            gaps: Vec::new(),
            language: self.language,
            token_languages: Vec::new(),
        };
        let mut at = 0;
        for splice in splices {
            let end = splice.replaced.end;
            result.extend_from(self, at..splice.replaced.start);
            result.extend_with_splice(self, splice);
            at = end;
        }
        result.extend_from(self, at..self.tokens.len());
        if result.frames.len() != result.tokens.len() {
            result.frames.clear();
        }
        if self.gaps.is_empty() {
            result.gaps.clear();
        }
        result.tags = vec![Tag::Outside; result.tokens.len()];
        write_tags(mentions, scheme, &mut result.tags);
        result
    }

    /// Adds the new tokens of a splice in the sentence `source`.
    fn extend_with_splice(&mut self, source: &Self, splice: Splice<'_>) {
        let Splice { replaced, donor, tokens } = splice;
        // A donor without columns, such as a name of a list, gets those of the tokens it replaces too.
        let is_foreign = donor.language != source.language || donor.frames.is_empty();
        let last = replaced.end.saturating_sub(1);
        let own = (0..tokens.len()).map(|n| (replaced.start + n).min(last));
        let own = own.filter_map(|n| source.frames.get(n).filter(|_| is_foreign));
        self.frames.extend(own.cloned());
        let (n_frames, n_gaps) = (self.frames.len(), self.gaps.len());
        self.extend_from(donor, tokens.clone());
        self.gaps.resize(n_gaps + tokens.len(), " ".into());
        let own_gap = source.gaps.get(replaced.start);
        if let (Some(own), Some(first)) = (own_gap, self.gaps.get_mut(n_gaps)) {
            first.clone_from(own);
        }
        if is_foreign {
            self.frames.truncate(n_frames);
        }
    }

    fn extend_from(&mut self, other: &Self, span: Range<usize>) {
        self.tokens.extend_from_slice(&other.tokens[span.clone()]);
        let languages = other.token_languages.get(span.clone()).unwrap_or_default();
        self.token_languages.extend_from_slice(languages);
        self.gaps.extend_from_slice(other.gaps.get(span.clone()).unwrap_or_default());
        self.frames.extend_from_slice(other.frames.get(span).unwrap_or_default());
    }

    /// Returns the sentence without the lines before it.
    #[must_use]
    pub(crate) fn without_comments(mut self) -> Self {
        self.lines_before.clear();
        self
    }

    /// Returns the sentence with the columns of `frame`, filled with `_`, for each token. A sentence that already has
    /// columns is not changed.
    #[must_use]
    pub(crate) fn with_empty_columns(mut self, frame: &Frame) -> Self {
        if self.frames.is_empty() {
            self.frames = vec![frame.emptied(); self.tokens.len()];
        }
        self
    }

    /// Copies a sentence from a reader, with its columns and comments. Fails if the tokens and tags of `record` are not
    /// a sentence. This does not happen if a reader filled `record`.
    pub(crate) fn from_record(record: &Record<'_>) -> Result<Self, SentenceFault> {
        let tokens: Result<_, _> = record.tokens.iter().map(|t| Token::new(t)).collect();
        let mut sentence = Self::new(tokens?, record.tags.clone())?;
        sentence.lines_before = record.lines_before.iter().map(|&line| line.into()).collect();
        sentence.frames = record.rows.iter().map(Frame::from_row).collect();
        sentence.gaps.clone_from(&record.gaps);
        Ok(sentence)
    }

    /// The tokens.
    pub fn tokens(&self) -> &[Token] {
        &self.tokens
    }

    /// The tag of each token.
    pub fn tags(&self) -> &[Tag] {
        &self.tags
    }

    /// The language, if the corpus has languages.
    pub fn language(&self) -> Option<Language> {
        self.language
    }

    /// The language of a token, if the corpus has languages. It differs from that of the sentence
    /// if the token belongs to a mention from another language.
    pub fn token_language(&self, token: usize) -> Option<Language> {
        self.token_languages.get(token).copied()
    }

    /// The mentions, in order.
    pub fn mentions(&self) -> impl Iterator<Item = Mention> {
        mentions(&self.tags)
    }

    /// The comment and `-DOCSTART-` lines before the sentence.
    pub fn lines_before(&self) -> &[Box<str>] {
        &self.lines_before
    }

    /// The text before each token, since the token before it. Empty unless the sentence comes from a text with spans.
    pub fn gaps(&self) -> &[Box<str>] {
        &self.gaps
    }

    /// The other columns of each token. Empty unless the sentence comes from a CoNLL file.
    pub(crate) fn frames(&self) -> &[Frame] {
        &self.frames
    }
}

impl Frame {
    fn from_row(row: &Row<'_>) -> Self {
        let RowFrame { before, between, after, tag_first } = row.frame();
        Self { before: before.into(), between: between.into(), after: after.into(), tag_first }
    }

    /// Returns a frame with the same columns, each filled with `_`.
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
        Self {
            before: emptied(&self.before),
            between: emptied(&self.between),
            after: emptied(&self.after),
            tag_first: self.tag_first,
        }
    }

    pub(crate) fn row(&self) -> RowFrame<'_> {
        RowFrame {
            before: &self.before,
            between: &self.between,
            after: &self.after,
            tag_first: self.tag_first,
        }
    }
}
