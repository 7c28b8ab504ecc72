//! A tagger examined: its tags beside those of a labelled corpus.

use melm_nn::device::Device;
use melm_text::score::Reading;
use melm_text::{Corpus, EntityTypes, Scores, Tag};

use super::{Cuts, Tagger};
use crate::Error;

/// What an examination brought.
#[derive(Clone, Debug)]
pub struct Scored {
    /// Counts of mentions, as conlleval and seqeval count them.
    pub scores: Scores,
    /// What had to be cut to read the corpus.
    pub cuts: Cuts,
}

impl Tagger {
    /// Tags a corpus and scores it.
    pub fn score(&self, device: &Device, corpus: &Corpus) -> Result<Scored, Error> {
        Exam::new(corpus, self.tags().types()).score(self, device)
    }
}

/// Sentences to be examined on, their tags in the tagger's types.
pub(super) struct Exam {
    types: EntityTypes,
    sentences: Vec<Vec<String>>,
    tags: Vec<Vec<Tag>>,
}

impl Exam {
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

    pub(super) fn score(&self, tagger: &Tagger, device: &Device) -> Result<Scored, Error> {
        let mut scores = Scores::new(Reading::Lenient, self.types.clone());
        let cuts = tagger.tag_each(device, &self.sentences, &mut |at, tagged| {
            scores.add(&self.tags[at], &tagged.tags);
        })?;
        Ok(Scored { scores, cuts })
    }
}
