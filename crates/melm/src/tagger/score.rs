//! Scores a tagger on a labelled corpus.

use melm_nn::device::Device;
use melm_text::score::Reading;
use melm_text::{Corpus, EntityTypes, Scores, Tag};

use super::{TaggerModel, Truncation};
use crate::Error;
use crate::stage::OnBatch;

/// The scores of a tagger on a corpus.
#[derive(Clone, Debug)]
pub struct TaggerScores {
    /// The counts of mentions, as conlleval and seqeval count them. The entity types are those of the tagger,
    /// followed by those that only the corpus has.
    pub scores: Scores,
    /// The number of sentences and tokens of the corpus that were too long for the model.
    pub truncation: Truncation,
}

impl TaggerModel {
    /// Tags a corpus and scores the result against its tags.
    pub fn score(&self, device: &Device, corpus: &Corpus) -> Result<TaggerScores, Error> {
        EvaluationSet::new(corpus, self.tags().types()).score(self, device, &mut || Ok(()))
    }
}

/// Labelled sentences on which a tagger is scored. Their tags use the entity types of the tagger.
pub(super) struct EvaluationSet {
    types: EntityTypes,
    sentences: Vec<Vec<String>>,
    tags: Vec<Vec<Tag>>,
}

impl EvaluationSet {
    pub(super) fn new(corpus: &Corpus, types: &EntityTypes) -> Self {
        let mut types = types.clone();
        let translation = types.merge(corpus.types());
        let translate = |tag: &Tag| tag.with_type_from(&translation);
        let sentences = corpus.sentences().iter();
        Self {
            sentences: sentences
                .clone()
                .map(|s| s.tokens().iter().map(ToString::to_string).collect())
                .collect(),
            tags: sentences.map(|s| s.tags().iter().map(translate).collect()).collect(),
            types,
        }
    }

    pub(super) fn score(
        &self,
        tagger: &TaggerModel,
        device: &Device,
        on_batch: OnBatch<'_>,
    ) -> Result<TaggerScores, Error> {
        let mut scores = Scores::new(Reading::Lenient, self.types.clone());
        let mut on_tagged = |at: usize, tags: Vec<Tag>| scores.add(&self.tags[at], &tags);
        let truncation = tagger.find_tags_in_batches(
            device.into(),
            &self.sentences,
            &mut on_tagged,
            on_batch,
        )?;
        Ok(TaggerScores { scores, truncation })
    }
}
