//! Linearization (section 2.1): adds a marker of the tag before and after every entity token. If the corpus has
//! several languages, a marker of the token's language precedes these (section 2.5).
//!
//! A linearized sentence stores the range of pieces of each token, and the mention of each entity token. A sentence
//! that is too long for the model becomes several overlapping windows, which never split a mention. The paper's
//! ablation "`MELM` w/o linearize" uses the same windows without markers.

use std::collections::BTreeMap;
use std::ops::Range;

use melm_text::{Corpus, Sentence, Tag, count_of};

use crate::Error;
use crate::markers::Markers;
use crate::pieces::{Encoded, Tokenizer};
use crate::random::StreamKey;
use crate::windows::{Window, windows};

/// The special pieces of a window: `<s>` and `</s>`.
const N_SPECIAL: usize = 2;

/// A sentence with its markers, or one window of a long sentence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Linearized {
    /// The index of the sentence in the corpus.
    pub sentence: usize,
    /// The index of this window among the windows of the sentence.
    pub window: usize,
    /// Piece ids, including markers, `<s>` and `</s>`.
    pub pieces: Vec<u32>,
    /// The range of the sentence's tokens that the window contains.
    pub tokens: Range<usize>,
    /// For each of these tokens, the range of its pieces in the window, without markers.
    pub piece_ranges: Vec<Range<usize>>,
    /// The entity tokens that may be masked in this window, in order. Other entity tokens are context here and belong
    /// to another window.
    pub entities: Vec<EntityToken>,
}

/// A token of a mention.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EntityToken {
    /// The index of the token in the sentence.
    pub token: usize,
    /// The index of the token's mention in the sentence.
    pub mention: usize,
    /// The range of the token's pieces in the window, without markers.
    pub piece_range: Range<usize>,
}

/// A linearized corpus, with the number of sentences and mentions that were split or left out.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LinearizedCorpus {
    /// The windows in the order of the sentences. Each has at least one entity token.
    pub windows: Vec<Linearized>,
    /// The number of sentences without a mention. They have no window.
    pub n_without_mentions: usize,
    /// The number of sentences that were split into several windows.
    pub n_windowed: usize,
    /// The number of mentions that are in no window, because the mention or a token of its sentence is too long for
    /// the model.
    pub n_left_out: usize,
}

/// How much of a corpus a masked language model can read and mask.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LinearizedCounts {
    /// The number of all sentences.
    pub n_sentences: usize,
    /// The number of sentences that are longer than the model and are therefore read in several windows.
    pub n_windowed: usize,
    /// The number of all mentions.
    pub n_mentions: usize,
    /// The number of mentions that are too long for the model and are therefore not replaced.
    pub n_left_out: usize,
    /// The number of entity tokens in the windows.
    pub n_entity_tokens: usize,
    /// The number of entity tokens that are never masked, because the model has no pieces for them.
    pub n_unmaskable: usize,
}

impl LinearizedCounts {
    /// Returns a line for each count of something that was split or is not replaced.
    pub fn notes(&self) -> Vec<String> {
        let lines = [
            (
                count_of(self.n_windowed, self.n_sentences, "sentence"),
                self.n_windowed,
                "longer than the model's input: split into overlapping windows",
            ),
            (
                count_of(self.n_left_out, self.n_mentions, "mention"),
                self.n_left_out,
                "too long for the model: not replaced",
            ),
            (
                count_of(self.n_unmaskable, self.n_entity_tokens, "entity token"),
                self.n_unmaskable,
                "unknown to the model: not replaced",
            ),
        ];
        let lines = lines.into_iter().filter(|(_, n, _)| *n > 0);
        lines.map(|(how_many, _, what)| format!("{how_many} {what}")).collect()
    }
}

impl LinearizedCorpus {
    /// Counts what was split or left out of `corpus`. `n_unmaskable` is the number of entity tokens that the model has no
    /// pieces for.
    pub fn counts(&self, corpus: &Corpus, n_unmaskable: usize) -> LinearizedCounts {
        let mentions = |sentence: &Sentence| sentence.mentions().count();
        LinearizedCounts {
            n_sentences: corpus.sentences().len(),
            n_windowed: self.n_windowed,
            n_mentions: corpus.sentences().iter().map(mentions).sum(),
            n_left_out: self.n_left_out,
            n_entity_tokens: self.windows.iter().map(|window| window.entities.len()).sum(),
            n_unmaskable,
        }
    }
}

impl Linearized {
    /// Returns the key of this window's random stream, below `key`.
    pub(crate) fn stream(&self, key: StreamKey) -> StreamKey {
        key.at(self.sentence as u64).at(self.window as u64)
    }
}

/// Linearizes every sentence that has a mention, for a model that reads at most `limit` pieces.
///
/// If `markers` is `None`, no markers are added.
///
/// # Errors
/// If a tag or a language of the corpus has no marker, or a token cannot be segmented.
///
/// ```
/// use melm::{linearize::linearize, markers::Markers, pieces::Tokenizer};
/// use melm_text::{Corpus, ReadOptions, Source};
/// let source = Source::from_text("a.conll", "the O\nParty B-ORG\n");
/// let corpus = Corpus::read(&source, &ReadOptions::default())?;
/// let mut tokenizer = Tokenizer::open("../../testdata/pieces/unigram".as_ref())?;
/// let markers = Markers::from_corpora(&[&corpus], &mut tokenizer)?;
/// let linearized = linearize(&corpus, &tokenizer, Some(&markers), 512)?;
/// let pieces: Vec<_> = linearized.windows[0].pieces.iter().map(|id| tokenizer.piece(*id)).collect();
/// assert_eq!(pieces.join(" "), "<s> ▁the <B-ORG> ▁Part y <B-ORG> </s>");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn linearize(
    corpus: &Corpus,
    tokenizer: &Tokenizer,
    markers: Option<&Markers>,
    limit: usize,
) -> Result<LinearizedCorpus, Error> {
    let languages = markers.map(|markers| markers.by_language(corpus)).transpose()?;
    let languages = languages.unwrap_or_default();
    let markers = markers.map(|markers| markers.by_tag(corpus)).transpose()?;
    let limit = limit.saturating_sub(N_SPECIAL);
    let linearizer = Linearizer { tokenizer, markers, languages, limit };
    let mut all = LinearizedCorpus::default();
    for (number, sentence) in corpus.sentences().iter().enumerate() {
        linearizer.add(number, sentence, &mut all)?;
    }
    Ok(all)
}

struct Linearizer<'a> {
    tokenizer: &'a Tokenizer,
    markers: Option<BTreeMap<Tag, u32>>,
    /// The marker of each language of the corpus; empty if languages are not marked.
    languages: Vec<u32>,
    /// The maximum number of pieces between `<s>` and `</s>`.
    limit: usize,
}

/// An encoded sentence.
struct EncodedSentence<'a> {
    sentence: &'a Sentence,
    encoded: Encoded,
    /// For each token, the index of its mention. `None` outside mentions and in mentions that are too long.
    mention_of: Vec<Option<usize>>,
}

impl Linearizer<'_> {
    /// Adds the windows of a sentence to `all`.
    fn add(
        &self,
        number: usize,
        sentence: &Sentence,
        all: &mut LinearizedCorpus,
    ) -> Result<(), Error> {
        let n_mentions = sentence.mentions().count();
        if n_mentions == 0 {
            all.n_without_mentions += 1;
            return Ok(());
        }
        let encoded = self.tokenizer.encode(sentence.tokens())?;
        let mut sizes: Vec<usize> = encoded.tokens.iter().map(ExactSizeIterator::len).collect();
        let (mention_of, n_left_out) = self.assign_mentions(sentence, &mut sizes);
        all.n_left_out += n_left_out;
        let may_cut = |at: usize| mention_of[at].is_none() || mention_of[at] != mention_of[at - 1];
        let Some(windows) = windows(&sizes, self.limit, may_cut) else {
            let mut shown: Vec<_> = mention_of.iter().flatten().collect();
            shown.dedup();
            all.n_left_out += shown.len();
            return Ok(());
        };
        all.n_windowed += usize::from(windows.len() > 1);
        let sentence = EncodedSentence { sentence, encoded, mention_of };
        for (index, window) in windows.into_iter().enumerate() {
            let linearized = self.linearize_window(&sentence, window, number, index);
            if !linearized.entities.is_empty() {
                all.windows.push(linearized);
            }
        }
        Ok(())
    }

    /// Returns the index of each token's mention, and the number of mentions that were left out because they are
    /// longer than the model. Adds the number of markers to the sizes of entity tokens.
    fn assign_mentions(
        &self,
        sentence: &Sentence,
        sizes: &mut [usize],
    ) -> (Vec<Option<usize>>, usize) {
        let n_languages = usize::from(!self.languages.is_empty());
        let n_markers = if self.markers.is_some() { 2 + n_languages } else { 0 };
        let mut mention_of = vec![None; sizes.len()];
        let mut n_left_out = 0;
        for (number, mention) in sentence.mentions().enumerate() {
            let sizes = &mut sizes[mention.tokens.clone()];
            if sizes.iter().sum::<usize>() + n_markers * sizes.len() > self.limit {
                n_left_out += 1;
                continue;
            }
            mention_of[mention.tokens].fill(Some(number));
            for size in sizes {
                *size += n_markers;
            }
        }
        (mention_of, n_left_out)
    }

    /// Writes the pieces and markers of one window.
    fn linearize_window(
        &self,
        sentence: &EncodedSentence<'_>,
        window: Window,
        sentence_number: usize,
        window_number: usize,
    ) -> Linearized {
        let Window { tokens, own } = window;
        let EncodedSentence { sentence, encoded, mention_of } = sentence;
        let mut pieces = vec![encoded.pieces[0]];
        let (mut piece_ranges, mut entities) = (Vec::with_capacity(tokens.len()), Vec::new());
        for token in tokens.clone() {
            let marker = mention_of[token].and_then(|_| {
                self.markers.as_ref().map(|markers| markers[&sentence.tags()[token]])
            });
            let language = sentence.token_language(token).filter(|_| marker.is_some());
            pieces.extend(language.and_then(|language| self.languages.get(language.index())));
            pieces.extend(marker);
            let start = pieces.len();
            let range = encoded.tokens[token].clone();
            pieces.extend(&encoded.pieces[range.start as usize..range.end as usize]);
            let range = start..pieces.len();
            pieces.extend(marker);
            if let Some(mention) = mention_of[token]
                && own.contains(&token)
            {
                entities.push(EntityToken { token, mention, piece_range: range.clone() });
            }
            piece_ranges.push(range);
        }
        pieces.extend(encoded.pieces.last());
        Linearized {
            sentence: sentence_number,
            window: window_number,
            pieces,
            tokens,
            piece_ranges,
            entities,
        }
    }
}
