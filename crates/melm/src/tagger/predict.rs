//! Tags sentences.

use melm_nn::device::Device;
use melm_nn::tagger::{Decoder, Tagging};
use melm_text::Tag;

use super::{ReadOn, TaggerModel, Truncation};
use crate::Error;
use crate::stage::OnBatch;

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

impl TaggerModel {
    /// Tags sentences given as tokens. Calls `on_tagged` once for each sentence with its index and its tags, in any
    /// order. Returns the number of sentences and tokens that were too long for the model.
    ///
    /// A sentence that is longer than the model is read in overlapping windows and decoded as a whole.
    /// [`Self::find_tags`] is faster if probabilities are not needed.
    pub fn tag_each<'a, T: AsRef<str> + Sync>(
        &self,
        on: impl Into<ReadOn<'a>>,
        sentences: &[Vec<T>],
        on_tagged: &mut dyn FnMut(usize, TaggedSentence),
    ) -> Result<Truncation, Error> {
        self.tag_batches(on.into(), sentences, on_tagged, &mut || Ok(()))
    }

    /// Like [`Self::tag_each`], but finds only the most probable tags, not their probabilities.
    pub fn find_tags<'a, T: AsRef<str> + Sync>(
        &self,
        on: impl Into<ReadOn<'a>>,
        sentences: &[Vec<T>],
        on_tagged: &mut dyn FnMut(usize, Vec<Tag>),
    ) -> Result<Truncation, Error> {
        self.find_tags_in_batches(on.into(), sentences, on_tagged, &mut || Ok(()))
    }

    /// Like [`Self::tag_each`], but calls `on_batch` from time to time.
    pub(crate) fn tag_batches<T: AsRef<str> + Sync>(
        &self,
        on: ReadOn<'_>,
        sentences: &[Vec<T>],
        on_tagged: &mut dyn FnMut(usize, TaggedSentence),
        on_batch: OnBatch<'_>,
    ) -> Result<Truncation, Error> {
        let read = |_, emissions: &[f32], decoder: &mut _| self.decode(emissions, decoder);
        self.read_each(on, sentences, &read, on_tagged, on_batch)
    }

    /// Like [`Self::find_tags`], but calls `on_batch` from time to time.
    pub(super) fn find_tags_in_batches<T: AsRef<str> + Sync>(
        &self,
        on: ReadOn<'_>,
        sentences: &[Vec<T>],
        on_tagged: &mut dyn FnMut(usize, Vec<Tag>),
        on_batch: OnBatch<'_>,
    ) -> Result<Truncation, Error> {
        let read = |_, emissions: &[f32], decoder: &mut Decoder| {
            let mut numbers = Vec::new();
            decoder.best_tags(emissions, &mut numbers)?;
            Ok(numbers.iter().map(|number| self.tags.tag(*number)).collect())
        };
        self.read_each(on, sentences, &read, on_tagged, on_batch)
    }

    /// Like [`Self::tag_batches`], but also passes the log-probability of given tags to `on_judged`. `wanted` contains
    /// the numbers of these tags for every sentence.
    pub(crate) fn judge_each<T: AsRef<str> + Sync>(
        &self,
        device: &Device,
        sentences: &[Vec<T>],
        wanted: &[Vec<u32>],
        on_judged: &mut dyn FnMut(usize, TaggedSentence, f64),
        on_batch: OnBatch<'_>,
    ) -> Result<Truncation, Error> {
        let read = |at: usize, emissions: &[f32], decoder: &mut Decoder| {
            let likely = decoder.log_probability(emissions, &wanted[at])?;
            Ok((self.decode(emissions, decoder)?, likely))
        };
        let on_read = &mut |at, (tagged, likely)| on_judged(at, tagged, likely);
        self.read_each(device.into(), sentences, &read, on_read, on_batch)
    }

    fn decode(&self, emissions: &[f32], decoder: &mut Decoder) -> Result<TaggedSentence, Error> {
        let mut tagging = Tagging::default();
        decoder.decode(emissions, &mut tagging)?;
        Ok(TaggedSentence {
            tags: tagging.tags.iter().map(|number| self.tags.tag(*number)).collect(),
            log_probability: tagging.log_probability,
            probabilities: tagging.probabilities,
            n_tags: self.tags.len(),
        })
    }
}
