//! Linearization (section 2.1): markers before and after every entity token; in a corpus of several languages also a marker
//! of the token's language before them (section 2.5).
//!
//! The alignment is carried as data: for each token where its pieces are, for each entity token also its mention.
//! Sentences longer than the model become several [`windows`](crate::windows), in which no mention is ever cut.
//! Without markers (the paper's ablation "`MELM` w/o linearize") everything else is the same.

use std::collections::BTreeMap;
use std::ops::Range;

use melm_text::{Corpus, Sentence, Tag};

use crate::Error;
use crate::markers::Markers;
use crate::pieces::{Encoded, Tokenizer};
use crate::random::StreamKey;
use crate::windows::{Window, windows};

/// `<s>` and `</s>`.
const AROUND: usize = 2;

/// A sentence with its markers, or one window of a long one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Linearized {
    /// The sentence's position in the corpus.
    pub sentence: usize,
    /// Which window of the sentence this is, from 0.
    pub window: usize,
    /// Piece ids, with markers, `<s>` and `</s>`.
    pub pieces: Vec<u32>,
    /// The sentence's tokens that are in the window.
    pub tokens: Range<usize>,
    /// Where the pieces of each of them are, without its markers.
    pub places: Vec<Range<usize>>,
    /// The entity tokens that are this window's own, in order; others are context.
    pub entities: Vec<EntityToken>,
}

/// A token of a mention.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EntityToken {
    /// Its position in the sentence.
    pub token: usize,
    /// Which of the sentence's mentions it is in.
    pub mention: usize,
    /// Where its pieces are.
    pub place: Range<usize>,
}

/// All windows with mentions of a corpus, and what was not linearized.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LinearizedCorpus {
    /// In the order of the sentences. None is without an entity token.
    pub windows: Vec<Linearized>,
    /// Sentences without any mention, which have no window.
    pub n_without_mentions: usize,
    /// Sentences cut into several windows.
    pub n_windowed: usize,
    /// Mentions that do not fit the model, or stand beside a token that does not: no window shows them as mentions.
    pub n_left_out: usize,
}

impl Linearized {
    /// This window's own stream below `key`.
    pub(crate) fn stream(&self, key: StreamKey) -> StreamKey {
        key.at(self.sentence as u64).at(self.window as u64)
    }
}

/// Linearizes every sentence that has mentions, for a model that reads at most `limit` pieces.
///
/// Without `markers` none are placed.
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
    let limit = limit.saturating_sub(AROUND);
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
    /// The markers of the languages, if there are several.
    languages: Vec<u32>,
    /// The most pieces between `<s>` and `</s>`.
    limit: usize,
}

/// A sentence that has been encoded, and for each token the mention it is shown as part of.
struct Prepared<'a> {
    sentence: &'a Sentence,
    encoded: Encoded,
    mention_of: Vec<Option<usize>>,
}

impl Linearizer<'_> {
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
        let (mention_of, n_left_out) = self.mark(sentence, &mut sizes);
        all.n_left_out += n_left_out;
        let may_cut = |at: usize| mention_of[at].is_none() || mention_of[at] != mention_of[at - 1];
        let Some(windows) = windows(&sizes, self.limit, may_cut) else {
            let mut shown: Vec<_> = mention_of.iter().flatten().collect();
            shown.dedup();
            all.n_left_out += shown.len();
            return Ok(());
        };
        all.n_windowed += usize::from(windows.len() > 1);
        let prepared = Prepared { sentence, encoded, mention_of };
        for (index, window) in windows.into_iter().enumerate() {
            let linearized = self.window(&prepared, window, number, index);
            if !linearized.entities.is_empty() {
                all.windows.push(linearized);
            }
        }
        Ok(())
    }

    /// For each token its mention, unless that alone is too long, and how many are; markers are added to the sizes.
    fn mark(&self, sentence: &Sentence, sizes: &mut [usize]) -> (Vec<Option<usize>>, usize) {
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

    fn window(
        &self,
        prepared: &Prepared<'_>,
        window: Window,
        sentence: usize,
        number: usize,
    ) -> Linearized {
        let Window { tokens, own } = window;
        let Prepared { encoded, mention_of, .. } = prepared;
        let mut pieces = vec![encoded.pieces[0]];
        let (mut places, mut entities) = (Vec::with_capacity(tokens.len()), Vec::new());
        for token in tokens.clone() {
            let marker = mention_of[token].and_then(|_| {
                self.markers.as_ref().map(|markers| markers[&prepared.sentence.tags()[token]])
            });
            let language = prepared.sentence.token_language(token).filter(|_| marker.is_some());
            pieces.extend(language.and_then(|language| self.languages.get(language.index())));
            pieces.extend(marker);
            let start = pieces.len();
            let range = encoded.tokens[token].clone();
            pieces.extend(&encoded.pieces[range.start as usize..range.end as usize]);
            let place = start..pieces.len();
            pieces.extend(marker);
            if let Some(mention) = mention_of[token]
                && own.contains(&token)
            {
                entities.push(EntityToken { token, mention, place: place.clone() });
            }
            places.push(place);
        }
        pieces.extend(encoded.pieces.last());
        Linearized { sentence, window: number, pieces, tokens, places, entities }
    }
}
