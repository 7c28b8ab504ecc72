//! Tagging sentences.

use melm_nn::device::Device;
use melm_nn::tagger::{TaggedBatch, TaggerTape, Tagging};
use melm_text::Tag;

use super::encode::View;
use super::{Cuts, Tagger};
use crate::Error;
use crate::fit::MOST_PIECES;

/// A sentence's tags.
#[derive(Clone, Debug, PartialEq)]
pub struct Tagged {
    /// The likeliest sequence, in the types of [`Tagger::tags`].
    pub tags: Vec<Tag>,
    /// The logarithm of its probability.
    pub log_probability: f64,
    /// The probability of every tag of the set at every token, `[tokens, tags]`.
    pub probabilities: Vec<f32>,
    n_tags: usize,
}

impl Tagged {
    /// The probability of the tag numbered `tag` at a token.
    pub fn probability(&self, token: usize, tag: u32) -> f32 {
        self.probabilities[token * self.n_tags + tag as usize]
    }
}

/// Hears the number of a sentence and its emissions.
type HearEmissions<'a> = &'a mut dyn FnMut(usize, &[f32], &mut TaggerTape) -> Result<(), Error>;

impl Tagger {
    /// Tags sentences given as tokens and hands each over with its number, in any order; says what had to be cut.
    ///
    /// A sentence longer than the model is read in overlapping windows and decoded as a whole.
    pub fn tag_each<T: AsRef<str>>(
        &self,
        device: &Device,
        sentences: &[Vec<T>],
        each: &mut dyn FnMut(usize, Tagged),
    ) -> Result<Cuts, Error> {
        self.emissions_of_each(device, sentences, &mut |at, emissions, tape| {
            each(at, self.decode(emissions, tape)?);
            Ok(())
        })
    }

    /// As [`Self::tag_each`], and how likely the tagger finds other tags: the logarithm of their probability, given
    /// with each sentence.
    pub fn judge_each<T: AsRef<str>>(
        &self,
        device: &Device,
        (sentences, wanted): (&[Vec<T>], &[Vec<u32>]),
        each: &mut dyn FnMut(usize, Tagged, f64),
    ) -> Result<Cuts, Error> {
        self.emissions_of_each(device, sentences, &mut |at, emissions, tape| {
            let likely = self.model.log_probability(emissions, &wanted[at], tape)?;
            each(at, self.decode(emissions, tape)?, likely);
            Ok(())
        })
    }

    fn emissions_of_each<T: AsRef<str>>(
        &self,
        device: &Device,
        sentences: &[Vec<T>],
        each: HearEmissions<'_>,
    ) -> Result<Cuts, Error> {
        let mut cuts = Cuts::default();
        let mut views = Vec::new();
        for (at, tokens) in sentences.iter().enumerate() {
            views.extend(self.views((at, tokens), |_| true, &mut cuts)?);
        }
        // Sentences of one length side by side: a batch is full, and its attention balanced.
        views.sort_by_key(|view| (view.pieces.len(), view.sentence, view.own.start));
        let mut pending = Pending::new(sentences, self.tags.len());
        let mut work = Work {
            tape: TaggerTape::for_prediction(self.model.config()),
            batch: TaggedBatch::default(),
            emissions: Vec::new(),
        };
        let mut left = &views[..];
        while !left.is_empty() {
            let longest = |n: usize| left[n - 1].pieces.len() * n;
            let n = (1..=left.len()).take_while(|n| *n == 1 || longest(*n) <= MOST_PIECES).last();
            let (now, later) = left.split_at(n.unwrap_or(1));
            self.emit(device, now, &mut work)?;
            let mut rest = &work.emissions[..];
            for view in now {
                let (own, others) = rest.split_at(view.own.len() * self.tags.len());
                rest = others;
                if let Some(emissions) = pending.add(view, own) {
                    each(view.sentence, &emissions, &mut work.tape)?;
                }
            }
            left = later;
        }
        Ok(cuts)
    }

    fn emit(&self, device: &Device, views: &[View], work: &mut Work) -> Result<(), Error> {
        work.batch.clear();
        for view in views {
            work.batch.push(0, &view.pieces, &view.first_pieces, &[]);
        }
        Ok(self.model.emissions(device, &work.batch, &mut work.tape, &mut work.emissions)?)
    }

    fn decode(&self, emissions: &[f32], tape: &mut TaggerTape) -> Result<Tagged, Error> {
        let mut tagging = Tagging::default();
        self.model.decode(emissions, tape, &mut tagging)?;
        Ok(Tagged {
            tags: tagging.tags.iter().map(|number| self.tags.tag(*number)).collect(),
            log_probability: tagging.log_probability,
            probabilities: tagging.probabilities,
            n_tags: self.tags.len(),
        })
    }
}

struct Work {
    tape: TaggerTape,
    batch: TaggedBatch,
    emissions: Vec<f32>,
}

/// Sentences of which some windows are still to come.
struct Pending {
    n_tags: usize,
    /// Tokens still to come, and the emissions so far.
    sentences: Vec<(usize, Vec<f32>)>,
}

impl Pending {
    fn new<T>(sentences: &[Vec<T>], n_tags: usize) -> Self {
        let sentences = sentences.iter().map(|tokens| (tokens.len(), Vec::new())).collect();
        Self { n_tags, sentences }
    }

    /// Takes the emissions of a window's own tokens; all of the sentence's if these were the last.
    fn add(&mut self, view: &View, own: &[f32]) -> Option<Vec<f32>> {
        let (n_left, emissions) = &mut self.sentences[view.sentence];
        let n_tokens = if emissions.is_empty() { *n_left } else { emissions.len() / self.n_tags };
        emissions.resize(n_tokens * self.n_tags, 0.0);
        emissions[view.own.start * self.n_tags..view.own.end * self.n_tags].copy_from_slice(own);
        *n_left -= view.own.len();
        (*n_left == 0).then(|| std::mem::take(emissions))
    }
}
