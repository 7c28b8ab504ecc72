//! An ensemble of taggers: every mention is decided by majority. The control for a panel that labels text.

use std::collections::BTreeMap;

use melm::tagger::TaggerModel;
use melm_nn::device::Device;
use melm_text::{Corpus, EntityType, Mention, mentions, score};

use crate::Error;
use crate::ledger::F1;

/// The votes of several taggers for the mentions of one corpus.
pub(crate) struct Ensemble<'c> {
    gold: &'c Corpus,
    n_taggers: usize,
    /// For every sentence, the number of votes of each mention.
    votes: Vec<BTreeMap<(usize, usize, EntityType), usize>>,
}

impl<'c> Ensemble<'c> {
    /// Creates an ensemble without taggers.
    pub(crate) fn new(gold: &'c Corpus) -> Self {
        Self { gold, n_taggers: 0, votes: vec![BTreeMap::new(); gold.sentences().len()] }
    }

    /// Adds the votes of a tagger. Mentions of types that the corpus does not have are wrong in any case; they are
    /// left out.
    pub(crate) fn add(&mut self, tagger: &TaggerModel, device: &Device) -> Result<(), Error> {
        let sentences: Vec<Vec<&str>> = self
            .gold
            .sentences()
            .iter()
            .map(|sentence| sentence.tokens().iter().map(AsRef::as_ref).collect())
            .collect();
        let (gold, votes) = (self.gold, &mut self.votes);
        tagger.tag_each(device, &sentences, &mut |at, tagged| {
            for Mention { entity_type, tokens } in mentions(&tagged.tags) {
                let name = tagger.tags().types().name(entity_type);
                if let Some(own) = gold.types().find(name) {
                    *votes[at].entry((tokens.start, tokens.end, own)).or_default() += 1;
                }
            }
        })?;
        self.n_taggers += 1;
        Ok(())
    }

    /// Scores the mentions that more than half of the taggers predict. Two of them never overlap, because each tagger
    /// predicts at most one of two overlapping mentions.
    pub(crate) fn score(&self) -> F1 {
        let sentences = self.gold.sentences().iter().zip(&self.votes).map(|(sentence, votes)| {
            let accepted = votes.iter().filter(|(_, n)| **n * 2 > self.n_taggers);
            let mentions = accepted
                .map(|((start, end, entity_type), _)| Mention {
                    entity_type: *entity_type,
                    tokens: *start..*end,
                })
                .collect::<Vec<_>>();
            sentence.clone().with_mentions(mentions, self.gold.scheme())
        });
        let predicted = self.gold.with_sentences(sentences.collect::<Vec<_>>());
        F1::from_scores(&score(self.gold, &predicted).expect("both have the same tokens"))
    }
}
