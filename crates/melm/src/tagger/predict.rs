//! Tags sentences.

use melm_nn::device::Device;
use melm_nn::tagger::{TaggedBatch, TaggerTape, Tagging};
use melm_text::Tag;

use super::encode::WindowInput;
use super::{TaggerModel, Truncation};
use crate::Error;
use crate::stage::OnBatch;
use crate::training::MAX_BATCH_PIECES;

/// The tags of one sentence.
#[derive(Clone, Debug, PartialEq)]
pub struct TaggedSentence {
    /// The most probable tag sequence. The entity types are those of [`TaggerModel::tags`].
    pub tags: Vec<Tag>,
    /// The natural logarithm of the probability of `tags`.
    pub log_probability: f64,
    /// The marginal probability of every tag at every token, `[tokens, tags]`.
    pub probabilities: Vec<f32>,
    n_tags: usize,
}

impl TaggedSentence {
    /// The marginal probability of tag number `tag` at a token.
    ///
    /// # Panics
    /// If there is no such token.
    pub fn probability(&self, token: usize, tag: u32) -> f32 {
        self.probabilities[token * self.n_tags + tag as usize]
    }
}

/// A callback that receives the index of a sentence and its emissions.
type OnEmissions<'a> = &'a mut dyn FnMut(usize, &[f32], &mut TaggerTape) -> Result<(), Error>;

impl TaggerModel {
    /// Tags sentences given as tokens. Calls `on_tagged` once for each sentence with its index and its tags, in any
    /// order. Returns the number of sentences and tokens that were too long for the model.
    ///
    /// A sentence that is longer than the model is read in overlapping windows and decoded as a whole.
    pub fn tag_each<T: AsRef<str>>(
        &self,
        device: &Device,
        sentences: &[Vec<T>],
        on_tagged: &mut dyn FnMut(usize, TaggedSentence),
    ) -> Result<Truncation, Error> {
        self.tag_batches(device, sentences, on_tagged, &mut || Ok(()))
    }

    /// Like [`Self::tag_each`], but calls `on_batch` after each batch.
    pub(crate) fn tag_batches<T: AsRef<str>>(
        &self,
        device: &Device,
        sentences: &[Vec<T>],
        on_tagged: &mut dyn FnMut(usize, TaggedSentence),
        on_batch: OnBatch<'_>,
    ) -> Result<Truncation, Error> {
        let mut on_emissions = |at: usize, emissions: &[f32], tape: &mut TaggerTape| {
            on_tagged(at, self.decode(emissions, tape)?);
            Ok(())
        };
        self.for_each_emissions(device, sentences, &mut on_emissions, on_batch)
    }

    /// Like [`Self::tag_batches`], but also passes the log-probability of given tags to `on_judged`. `wanted` contains
    /// the numbers of these tags for every sentence.
    pub(crate) fn judge_each<T: AsRef<str>>(
        &self,
        device: &Device,
        sentences: &[Vec<T>],
        wanted: &[Vec<u32>],
        on_judged: &mut dyn FnMut(usize, TaggedSentence, f64),
        on_batch: OnBatch<'_>,
    ) -> Result<Truncation, Error> {
        let mut on_emissions = |at: usize, emissions: &[f32], tape: &mut TaggerTape| {
            let likely = self.model.log_probability(emissions, &wanted[at], tape)?;
            on_judged(at, self.decode(emissions, tape)?, likely);
            Ok(())
        };
        self.for_each_emissions(device, sentences, &mut on_emissions, on_batch)
    }

    fn for_each_emissions<T: AsRef<str>>(
        &self,
        device: &Device,
        sentences: &[Vec<T>],
        on_emissions: OnEmissions<'_>,
        on_batch: OnBatch<'_>,
    ) -> Result<Truncation, Error> {
        let mut truncation = Truncation::default();
        let mut windows = Vec::new();
        for (at, tokens) in sentences.iter().enumerate() {
            windows.extend(self.windows(at, tokens, |_| true, &mut truncation)?);
        }
        // Windows of similar length share a batch, so that no space is wasted and the work of attention is balanced
        // over threads.
        windows.sort_by_key(|window| (window.pieces.len(), window.sentence, window.own.start));
        let mut pending = Pending::new(sentences, self.tags.len());
        let mut buffers = Buffers {
            tape: TaggerTape::for_prediction(self.model.config()),
            batch: TaggedBatch::default(),
            emissions: Vec::new(),
        };
        let mut left = &windows[..];
        while !left.is_empty() {
            let longest = |n: usize| left[n - 1].pieces.len() * n;
            let n =
                (1..=left.len()).take_while(|n| *n == 1 || longest(*n) <= MAX_BATCH_PIECES).last();
            let (now, later) = left.split_at(n.unwrap_or(1));
            self.emit(device, now, &mut buffers)?;
            let mut rest = &buffers.emissions[..];
            for window in now {
                let (own, others) = rest.split_at(window.own.len() * self.tags.len());
                rest = others;
                if let Some(emissions) = pending.add(window, own) {
                    on_emissions(window.sentence, &emissions, &mut buffers.tape)?;
                }
            }
            left = later;
            on_batch()?;
        }
        Ok(truncation)
    }

    fn emit(
        &self,
        device: &Device,
        windows: &[WindowInput],
        buffers: &mut Buffers,
    ) -> Result<(), Error> {
        buffers.batch.clear();
        for window in windows {
            buffers.batch.push(0, &window.pieces, &window.first_pieces, &[]);
        }
        Ok(self.model.emissions(
            device,
            &buffers.batch,
            &mut buffers.tape,
            &mut buffers.emissions,
        )?)
    }

    fn decode(&self, emissions: &[f32], tape: &mut TaggerTape) -> Result<TaggedSentence, Error> {
        let mut tagging = Tagging::default();
        self.model.decode(emissions, tape, &mut tagging)?;
        Ok(TaggedSentence {
            tags: tagging.tags.iter().map(|number| self.tags.tag(*number)).collect(),
            log_probability: tagging.log_probability,
            probabilities: tagging.probabilities,
            n_tags: self.tags.len(),
        })
    }
}

struct Buffers {
    tape: TaggerTape,
    batch: TaggedBatch,
    emissions: Vec<f32>,
}

/// Collects the emissions of sentences whose windows have not all been read yet.
struct Pending {
    n_tags: usize,
    /// For each sentence, the number of tokens without emissions, and the emissions so far.
    sentences: Vec<(usize, Vec<f32>)>,
}

impl Pending {
    fn new<T>(sentences: &[Vec<T>], n_tags: usize) -> Self {
        let sentences = sentences.iter().map(|tokens| (tokens.len(), Vec::new())).collect();
        Self { n_tags, sentences }
    }

    /// Adds the emissions of the tokens that a window owns. Returns the emissions of the whole sentence if it is now
    /// complete.
    fn add(&mut self, window: &WindowInput, own: &[f32]) -> Option<Vec<f32>> {
        let (n_left, emissions) = &mut self.sentences[window.sentence];
        let n_tokens = if emissions.is_empty() { *n_left } else { emissions.len() / self.n_tags };
        emissions.resize(n_tokens * self.n_tags, 0.0);
        emissions[window.own.start * self.n_tags..window.own.end * self.n_tags]
            .copy_from_slice(own);
        *n_left -= window.own.len();
        (*n_left == 0).then(|| std::mem::take(emissions))
    }
}
