//! Leaves out sentences that are already known, and repeated sentences.

use std::hash::{DefaultHasher, Hash, Hasher};

use rustc_hash::{FxHashMap, FxHashSet};
use serde::Serialize;
use unicode_normalization_alignments::UnicodeNormalization;

use super::{UnlabelledSentence, UnlabelledText};
use crate::corpus::Corpus;
use crate::sentence::Sentence;
use crate::token::Token;

/// What known sentences are used for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum SentenceRole {
    /// Sentences of the training set.
    Gold,
    /// Sentences of the dev set.
    Dev,
    /// Sentences that must not be used at all, such as those of the test set.
    HeldOut,
    /// Sentences of another text, which are used already.
    Text,
}

/// Sentences that must not occur in a text, as 64-bit digests.
///
/// Sentences are compared without white space and invisible characters and in the Unicode normal form NFC, so that they
/// are found in text that is split into other tokens too. Upper and lower case differ.
///
/// ```
/// use melm_text::{Corpus, KnownSentences, ReadOptions, SentenceRole, Source, TextOptions, UnlabelledText};
/// let dev = Corpus::read(&Source::from_text("dev", "do O\nn't O\n! O\n"), &ReadOptions::default())?;
/// let known = KnownSentences::default().with_corpus(SentenceRole::Dev, &dev);
/// let bytes = "Ada sang.\ndon't!\nAda sang.\n".as_bytes();
/// let text = UnlabelledText::read("a.txt", bytes, &TextOptions::default())?;
/// let (text, left_out) = text.without(&known);
/// assert_eq!((text.sentences().len(), left_out.dev, left_out.repeated), (1, 1, 1));
/// # Ok::<(), melm_text::Error>(())
/// ```
#[derive(Debug, Clone, Default)]
pub struct KnownSentences {
    roles: FxHashMap<u64, SentenceRole>,
}

/// The numbers of sentences that were left out of a text, by reason.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct LeftOut {
    /// Sentences of the training set.
    pub gold: usize,
    /// Sentences of the dev set.
    pub dev: usize,
    /// Sentences of a held-out file.
    pub held_out: usize,
    /// Sentences that occur earlier in the text, or in another text.
    pub repeated: usize,
}

impl LeftOut {
    /// The number of sentences that were left out for any reason.
    pub fn total(&self) -> usize {
        self.gold + self.dev + self.held_out + self.repeated
    }

    /// The numbers of two texts together.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self {
            gold: self.gold + other.gold,
            dev: self.dev + other.dev,
            held_out: self.held_out + other.held_out,
            repeated: self.repeated + other.repeated,
        }
    }
}

impl KnownSentences {
    /// Collects the sentences of a run: those of the training set, of the dev set if there is one, and of held-out texts.
    pub fn new(gold: &Corpus, dev: Option<&Corpus>, held_out: &[UnlabelledText]) -> Self {
        let known = Self::default().with_corpus(SentenceRole::Gold, gold);
        let known =
            dev.into_iter().fold(known, |known, dev| known.with_corpus(SentenceRole::Dev, dev));
        held_out.iter().fold(known, |known, text| known.with_text(SentenceRole::HeldOut, text))
    }

    /// Adds the sentences of a labelled corpus. A sentence that was added before keeps the smaller role.
    #[must_use]
    pub fn with_corpus(self, role: SentenceRole, corpus: &Corpus) -> Self {
        self.with_tokens(role, corpus.sentences().iter().map(Sentence::tokens))
    }

    /// Adds the sentences of a text without tags. A sentence that was added before keeps the smaller role.
    #[must_use]
    pub fn with_text(self, role: SentenceRole, text: &UnlabelledText) -> Self {
        self.with_tokens(role, text.sentences().iter().map(UnlabelledSentence::tokens))
    }

    fn with_tokens<'s>(
        mut self,
        role: SentenceRole,
        sentences: impl Iterator<Item = &'s [Token]>,
    ) -> Self {
        for tokens in sentences {
            let known = self.roles.entry(digest(tokens)).or_insert(role);
            *known = role.min(*known);
        }
        self
    }
}

impl KnownSentences {
    /// Returns the role of a sentence, or `None` if the sentence is not known.
    pub fn role(&self, tokens: &[Token]) -> Option<SentenceRole> {
        self.roles.get(&digest(tokens)).copied()
    }
}

impl UnlabelledText {
    /// Returns the text without the sentences of `known`, and with repeated sentences only once. Returns the numbers of
    /// sentences that were left out too. A sentence with several reasons is counted for the first: gold, dev, held-out,
    /// repeated.
    pub fn without(&self, known: &KnownSentences) -> (Self, LeftOut) {
        let (kept, left_out) = self.find_new(known);
        let kept = kept.into_iter().map(|at| self.sentences()[at].clone()).collect();
        (Self { files: self.files.clone(), ..Self::new(kept) }, left_out)
    }

    /// Returns the indices of the sentences that [`Self::without`] keeps, and the numbers of those that it leaves out.
    pub fn find_new(&self, known: &KnownSentences) -> (Vec<usize>, LeftOut) {
        let mut seen = FxHashSet::default();
        let mut left_out = LeftOut::default();
        let mut kept = Vec::new();
        for (at, sentence) in self.sentences().iter().enumerate() {
            let digest = digest(sentence.tokens());
            match known.roles.get(&digest) {
                Some(SentenceRole::Gold) => left_out.gold += 1,
                Some(SentenceRole::Dev) => left_out.dev += 1,
                Some(SentenceRole::HeldOut) => left_out.held_out += 1,
                Some(SentenceRole::Text) => left_out.repeated += 1,
                None if !seen.insert(digest) => left_out.repeated += 1,
                None => kept.push(at),
            }
        }
        (kept, left_out)
    }
}

/// Returns a digest of the text of `tokens` in NFC, without white space and invisible characters. Among a million
/// sentences, the chance of one collision is below 1 in 10 million.
fn digest(tokens: &[Token]) -> u64 {
    let mut hasher = DefaultHasher::new();
    let text: String = tokens.iter().map(Token::as_str).collect();
    for (c, _) in text.chars().filter(|&c| !is_ignored(c)).nfc() {
        c.hash(&mut hasher);
    }
    hasher.finish()
}

/// Returns true for characters that a tokenizer may drop: white space, control characters, zero-width and direction
/// marks, soft hyphens and byte order marks.
fn is_ignored(c: char) -> bool {
    c.is_whitespace()
        || c.is_control()
        || matches!(c, '\u{ad}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}'
            | '\u{feff}')
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::TextOptions;

    fn sentence(tokens: &[&str]) -> UnlabelledSentence {
        let tokens = tokens.iter().map(|token| Token::new(token).unwrap()).collect();
        UnlabelledSentence::new(tokens, "a", 1).unwrap()
    }

    #[test]
    fn sentences_are_found_with_other_tokens_spaces_and_normal_forms() {
        let text =
            "Zoe\u{301} ca\u{ad}n't\u{a0}go.\nZoé can go.\nZOÉ can't go.\nNew one.\nNew  one .\n";
        let text = UnlabelledText::read("a", text.as_bytes(), &TextOptions::default()).unwrap();
        let held_out = UnlabelledText::new(vec![sentence(&["Zoé", "ca", "n't", "go", "."])]);
        let dev = UnlabelledText::new(vec![sentence(&["Zoé can", "go", "."])]);
        let known = KnownSentences::default()
            .with_text(SentenceRole::HeldOut, &held_out)
            .with_text(SentenceRole::HeldOut, &dev)
            .with_text(SentenceRole::Dev, &dev);
        let (kept, left_out) = text.without(&known);
        assert_eq!(left_out, LeftOut { gold: 0, dev: 1, held_out: 1, repeated: 1 });
        assert_eq!(left_out.total() + kept.sentences().len(), text.sentences().len());
        let firsts: Vec<_> = kept.sentences().iter().map(|s| s.tokens()[0].as_str()).collect();
        assert_eq!(firsts, ["ZOÉ", "New"]);
    }
}
