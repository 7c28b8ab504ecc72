//! A text with spans, its tokens and its sentences.

use std::ops::Range;

use super::overlap::choose_longest;
use super::tokens::{Segmentation, find_sentences, find_tokens, join_at_spans};
use crate::mention::{Mention, mentions, write_tags};
use crate::scheme::Scheme;
use crate::sentence::Sentence;
use crate::tag::{EntityTypes, Tag};
use crate::tokenizer::Tokenizer;

/// An entity in a text: its bytes and its entity type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Span {
    /// The bytes of the text. Both ends are character boundaries.
    pub range: Range<usize>,
    /// The entity type.
    pub entity_type: Box<str>,
}

/// A value of a record that is neither text nor span, such as a source or a date.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Metadata {
    /// The key.
    pub key: Box<str>,
    /// The value as JSON.
    pub json: Box<str>,
}

/// A text with spans. The text is split into tokens and sentences, and nothing of it is lost.
///
/// Spans that do not overlap are whole numbers of tokens of one sentence. Spans may overlap; the tags then contain only
/// the longest ones ([`Self::flat_spans`]).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Document {
    pub(super) text: Box<str>,
    pub(super) spans: Vec<Span>,
    /// The indices of the spans that do not overlap, in order.
    pub(super) flat: Vec<usize>,
    pub(super) tokens: Vec<Range<usize>>,
    pub(super) sentences: Vec<Range<usize>>,
    pub(super) id: Option<Box<str>>,
    pub(super) metadata: Vec<Metadata>,
    pub(super) original: Option<Original>,
    pub(super) line: usize,
    pub(super) end: usize,
}

/// A record as its file spells it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Original {
    /// The name of the format.
    pub(super) format: &'static str,
    pub(super) text: Box<str>,
    /// False if the document was changed after it was read.
    pub(super) is_current: bool,
}

impl Document {
    /// Makes a document from a text and its spans, which are ranges of bytes. Finds tokens and sentences with
    /// `tokenizer`, which must not refuse the text.
    ///
    /// # Panics
    /// If a span is not inside the text, or an end of it is not a character boundary.
    pub fn new(text: impl Into<Box<str>>, spans: Vec<Span>, tokenizer: &Tokenizer) -> Self {
        let mut document = Self { text: text.into(), spans, ..Self::default() };
        document.choose_flat();
        document.segment(tokenizer, None, None);
        document
    }

    /// Makes a document from a sentence whose tags use `types`.
    ///
    /// The text before each token is that of the original text if the sentence has one, and one space otherwise. A new
    /// first token of a mention follows the text that was before the mention. The text before the first token of the
    /// sentence is left out.
    pub fn from_sentence(sentence: &Sentence, types: &EntityTypes) -> Self {
        let tokens: Vec<&str> = sentence.tokens().iter().map(AsRef::as_ref).collect();
        let gaps: Vec<&str> = sentence.gaps().iter().map(AsRef::as_ref).collect();
        Self::from_tokens(&tokens, &gaps, sentence.tags(), types)
    }

    /// Makes a document of one sentence from tokens and their tags. `gaps` are the texts before the tokens; a missing one
    /// is a space. The first gap is left out.
    pub fn from_tokens(tokens: &[&str], gaps: &[&str], tags: &[Tag], types: &EntityTypes) -> Self {
        let mut text = String::new();
        let mut ranges = Vec::with_capacity(tokens.len());
        for (at, token) in tokens.iter().enumerate() {
            if at > 0 {
                text.push_str(gaps.get(at).copied().unwrap_or(" "));
            }
            let start = text.len();
            text.push_str(token);
            ranges.push(start..text.len());
        }
        let spans = mentions(tags).map(|Mention { entity_type, tokens }| Span {
            range: ranges[tokens.start].start..ranges[tokens.end - 1].end,
            entity_type: types.name(entity_type).into(),
        });
        let spans: Vec<_> = spans.collect();
        Self {
            text: text.into(),
            flat: (0..spans.len()).collect(),
            spans,
            sentences: std::iter::once(0..ranges.len()).collect(),
            tokens: ranges,
            ..Self::default()
        }
    }

    /// Returns the document with an id.
    #[must_use]
    pub fn with_id(mut self, id: Option<&str>) -> Self {
        self.id = id.map(Into::into);
        self
    }

    /// Returns the document with other values of its record.
    #[must_use]
    pub fn with_metadata(mut self, metadata: Vec<Metadata>) -> Self {
        self.metadata = metadata;
        self
    }

    /// Returns the document without the record of its file, so that writers write it anew.
    #[must_use]
    pub fn without_original(mut self) -> Self {
        self.original = None;
        self
    }

    /// Returns the document with the mentions of `tags` in place of its spans. `tags` has the tags of each sentence.
    ///
    /// # Panics
    /// If the number of sentences or of tags in a sentence differs.
    #[must_use]
    pub fn with_tags(&self, tags: &[Vec<Tag>], types: &EntityTypes) -> Self {
        assert_eq!(tags.len(), self.sentences.len(), "tags for each sentence");
        let mut spans = Vec::new();
        for (sentence, tags) in self.sentences.iter().zip(tags) {
            assert_eq!(tags.len(), sentence.len(), "a tag for each token");
            let tokens = &self.tokens[sentence.clone()];
            spans.extend(mentions(tags).map(|mention| Span {
                range: tokens[mention.tokens.start].start..tokens[mention.tokens.end - 1].end,
                entity_type: types.name(mention.entity_type).into(),
            }));
        }
        let flat = (0..spans.len()).collect();
        Self { spans, flat, original: self.changed_original(), ..self.clone() }
    }

    /// Returns one sentence as a document of its own, with the id and the metadata of the document. A document of one
    /// sentence is returned whole.
    #[must_use]
    pub fn sentence(&self, index: usize) -> Self {
        if self.sentences.len() == 1 {
            return self.clone();
        }
        let sentence = self.sentences[index].clone();
        let tokens = &self.tokens[sentence];
        let bytes = tokens.first().map_or(0, |token| token.start)
            ..tokens.last().map_or(0, |token| token.end);
        let shift = |range: &Range<usize>| range.start - bytes.start..range.end - bytes.start;
        let is_inside =
            |span: &&Span| bytes.start <= span.range.start && span.range.end <= bytes.end;
        let spans = self.spans.iter().filter(is_inside);
        let spans = spans.map(|span| Span { range: shift(&span.range), ..span.clone() });
        let mut document = Self {
            text: self.text[bytes.clone()].into(),
            spans: spans.collect(),
            tokens: tokens.iter().map(shift).collect(),
            sentences: std::iter::once(0..tokens.len()).collect(),
            original: self.changed_original(),
            flat: Vec::new(),
            ..self.clone()
        };
        document.choose_flat();
        document
    }

    /// Chooses the spans that do not overlap. Returns how many were left out.
    pub(super) fn choose_flat(&mut self) -> usize {
        self.spans.sort_by_key(|span| (span.range.start, std::cmp::Reverse(span.range.end)));
        let ranges: Vec<_> = self.spans.iter().map(|span| span.range.clone()).collect();
        let chosen = choose_longest(&ranges);
        self.flat = chosen.kept;
        chosen.left_out.len()
    }

    /// Finds tokens and sentences. Returns the number of tokens that a span cuts. Given sentences need given tokens.
    pub(super) fn segment(
        &mut self,
        tokenizer: &Tokenizer,
        tokens: Option<Vec<Range<usize>>>,
        sentences: Option<Vec<Range<usize>>>,
    ) -> usize {
        let spans: Vec<_> = self.flat_spans().map(|span| span.range.clone()).collect();
        let starts = tokens.as_ref().zip(sentences).map(|(tokens, sentences)| {
            let start = |sentence: Range<usize>| Some(tokens.get(sentence.start)?.start);
            sentences.into_iter().filter_map(start).collect::<Vec<_>>()
        });
        let Segmentation { tokens, n_cut } = find_tokens(&self.text, &spans, tokenizer, tokens);
        self.sentences = match starts {
            None => find_sentences(&self.text, &tokens, &spans, tokenizer),
            Some(starts) => join_at_spans(split_at(&tokens, &starts), &tokens, &spans),
        };
        self.tokens = tokens;
        n_cut
    }

    /// Returns true if `tokenizer` finds the sentences of the document from its tokens.
    pub(crate) fn has_found_sentences(&self, tokenizer: &Tokenizer) -> bool {
        let spans: Vec<_> = self.flat_spans().map(|span| span.range.clone()).collect();
        find_sentences(&self.text, &self.tokens, &spans, tokenizer) == self.sentences
    }

    /// The number of spans that the tags contain.
    pub(super) fn n_mentions(&self) -> usize {
        let mentions = self.sentences.iter().flat_map(|sentence| self.sentence_mentions(sentence));
        mentions.filter(|(tokens, _)| !tokens.is_empty()).count()
    }

    /// The text.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// All spans, ordered by their start, longer ones first. They may overlap.
    pub fn spans(&self) -> &[Span] {
        &self.spans
    }

    /// The spans that the tags contain, in order. They do not overlap: of overlapping spans, the longest is kept, then
    /// the earliest, then the first.
    pub fn flat_spans(&self) -> impl ExactSizeIterator<Item = &Span> {
        self.flat.iter().map(|&at| &self.spans[at])
    }

    /// The bytes of each token, in order.
    pub fn tokens(&self) -> &[Range<usize>] {
        &self.tokens
    }

    /// The tokens of each sentence. Together they are all tokens.
    pub fn sentences(&self) -> &[Range<usize>] {
        &self.sentences
    }

    /// The id, if the record has one.
    pub fn id(&self) -> Option<&str> {
        self.id.as_deref()
    }

    /// The other values of the record.
    pub fn metadata(&self) -> &[Metadata] {
        &self.metadata
    }

    /// The line of the file where the record starts, from 1.
    pub fn line(&self) -> usize {
        self.line
    }

    /// Returns the record as its file spells it, if it was read from a file of the format called `format` and was not
    /// changed. A writer copies it, so that nothing is lost.
    pub fn original(&self, format: &str) -> Option<&str> {
        let is_current = self.original.as_ref().is_some_and(|original| original.is_current);
        self.record(format).filter(|_| is_current)
    }

    /// Returns the record as its file spells it, if it was read from a file of the format called `format`, even if the
    /// document was changed. A writer takes names from it.
    pub fn record(&self, format: &str) -> Option<&str> {
        let own = self.original.as_ref().filter(|original| original.format == format);
        own.map(|original| &*original.text)
    }

    /// The record, for a document that is changed.
    fn changed_original(&self) -> Option<Original> {
        self.original.clone().map(|original| Original { is_current: false, ..original })
    }

    /// Returns the tokens of a sentence.
    pub fn sentence_tokens(&self, sentence: &Range<usize>) -> impl ExactSizeIterator<Item = &str> {
        self.tokens[sentence.clone()].iter().map(|token| &self.text[token.clone()])
    }

    /// Returns the text before each token of a sentence, since the token before it.
    pub fn sentence_gaps(&self, sentence: &Range<usize>) -> Vec<&str> {
        let gap = |at: usize| {
            let before = if at == 0 { 0 } else { self.tokens[at - 1].end };
            &self.text[before..self.tokens[at].start]
        };
        sentence.clone().map(gap).collect()
    }

    /// Returns the spans of a sentence that its tags contain, as ranges of its tokens.
    pub fn sentence_mentions(
        &self,
        sentence: &Range<usize>,
    ) -> impl Iterator<Item = (Range<usize>, &str)> {
        let tokens = &self.tokens[sentence.clone()];
        let bytes = tokens.first().map_or(0, |token| token.start)
            ..tokens.last().map_or(0, |token| token.end);
        // The spans are in order and do not overlap.
        let first = self.flat.partition_point(|&at| self.spans[at].range.start < bytes.start);
        let inside = self.flat[first..].iter().map(|&at| &self.spans[at]);
        let inside = inside.take_while(move |span| span.range.end <= bytes.end);
        inside.map(move |span| {
            let start = tokens.partition_point(|token| token.end <= span.range.start);
            let end = tokens.partition_point(|token| token.start < span.range.end);
            (start..end, &*span.entity_type)
        })
    }

    /// Returns the tags of a sentence in `scheme`. Adds new entity types to `types`.
    pub fn sentence_tags(
        &self,
        sentence: &Range<usize>,
        scheme: Scheme,
        types: &mut EntityTypes,
    ) -> Vec<Tag> {
        let mut tags = vec![Tag::Outside; sentence.len()];
        let found = self.sentence_mentions(sentence).filter(|(tokens, _)| !tokens.is_empty());
        let found = found.map(|(tokens, name)| Mention { entity_type: types.intern(name), tokens });
        let found: Vec<_> = found.collect();
        write_tags(found, scheme, &mut tags);
        tags
    }
}

/// Returns the ranges of tokens that start at the bytes `starts`, which are in order. The first one starts at token 0.
fn split_at(tokens: &[Range<usize>], starts: &[usize]) -> Vec<Range<usize>> {
    let first = |byte: &usize| tokens.partition_point(|token| token.start < *byte);
    let mut edges: Vec<usize> = starts.iter().skip(1).map(first).collect();
    edges.insert(0, 0);
    edges.push(tokens.len());
    edges.dedup();
    edges.windows(2).map(|pair| pair[0]..pair[1]).collect()
}
