//! Picks the sentences of a text that a person should label next.
//!
//! A panel of taggers is trained on the labelled sentences and votes on the text, as in self-training. The sentences that
//! the panel disagrees on most are picked (query by committee: Seung et al. 1992, Dagan and Engelson 1995), so that no two
//! of them are near-duplicates. Each gets the tags that most taggers predict, to be corrected by a person.

mod batch;
mod builder;
mod job;
mod result;
mod score;
mod settings;
mod similarity;

pub use builder::Pick;
pub use job::{PickFolder, PickJob};
pub use result::Picked;
pub use settings::{PickScore, PickSettings};

use std::num::NonZeroUsize;

use melm_nn::device::Device;
use melm_text::{Corpus, Sentence};
use serde::Serialize;

use crate::Error;
use crate::augment::Gold;
use crate::draft::Verdict;
use crate::models::Pretrained;
use crate::plan::Plan;
use crate::self_training::{
    Agreement, ProposedMention, SelfTrainingData, TextCandidate, VoteStore, label_text,
};
use crate::stage::Run;
use batch::choose;
use score::{Scores, majority};
use similarity::SentenceVectors;

/// A sentence that was picked.
#[derive(Clone, Debug, PartialEq)]
pub struct PickedSentence {
    /// The sentence with the suggested tags: the mentions that more than half of the taggers predict.
    pub sentence: Sentence,
    /// The index of the sentence in the text.
    pub number: usize,
    /// The score, 0 or more.
    pub score: f64,
    /// The similarity, from 0 to 1, to the most similar sentence that was picked before it.
    pub similarity: f64,
    /// The number of taggers in the panel.
    pub n_taggers: usize,
    /// The probability that each tagger gives to its own tags.
    pub probabilities: Vec<f64>,
    /// Every mention that any tagger predicts, with its votes.
    pub proposed: Vec<ProposedMention>,
}

/// The number of sentences of a text by what became of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct PickSummary {
    /// All sentences that the panel voted on or that are too long, without those that were left out before.
    pub sentences: usize,
    /// Sentences that are longer than the model.
    pub too_long: usize,
    /// Sentences on which the taggers disagree.
    pub disputed: usize,
    /// Sentences that were not picked because a picked one is almost the same.
    pub near_duplicates: usize,
    /// Picked sentences.
    pub picked: usize,
}

/// The picked sentences of a text, the most useful one first.
#[derive(Clone, Debug, PartialEq)]
pub struct PickedSentences {
    /// The sentences.
    pub sentences: Vec<PickedSentence>,
    /// The number of sentences of the text.
    pub summary: PickSummary,
}

/// The data of picking.
#[derive(Clone, Copy)]
pub struct PickData<'a> {
    /// The labelled sentences, on which the panel is trained.
    pub gold: Gold<'a>,
    /// The sentences to pick from. Their tags are ignored.
    pub text: &'a [Sentence],
    /// The number of sentences to pick.
    pub n: NonZeroUsize,
}

/// Trains a panel with the settings of the section `self_training`, lets it vote on a text once, and picks sentences.
/// `tagger` is the pretrained model that the taggers are trained from.
///
/// Picks fewer than `n` sentences if the text has fewer. Votes that `store` has are not computed again. Without a store,
/// the votes are saved in the folder of the run, if it has one.
pub fn pick_sentences(
    data: PickData<'_>,
    plan: &Plan,
    tagger: &Pretrained,
    device: &Device,
    run: &mut Run<'_>,
    store: Option<&mut dyn VoteStore>,
) -> Result<PickedSentences, Error> {
    let panel_data =
        SelfTrainingData { gold: data.gold, drafts: &[], text: data.text, given: &[], shard: None };
    let labelled = label_text(panel_data, &panel_plan(plan), tagger, device, run, store)?;
    let mut voted = labelled.candidates;
    let n_all = voted.len();
    voted.retain(|candidate| candidate.verdict != Verdict::TooLong);
    let key = run.seed.stream("pick");
    let scores: Vec<Scores> =
        voted.iter().map(|candidate| Scores::new(candidate, &plan.pick, key)).collect();
    let vectors = SentenceVectors::new(voted.iter().map(|one| one.sentence.tokens()));
    let diversity = plan.pick.diversity.value();
    let batch = choose(&scores, &vectors, data.n.get(), diversity, &mut run.stage("pick"))?;
    let picked = batch.chosen.iter().map(|one| {
        let scores = scores[one.at];
        suggest(&voted[one.at], scores.score, one.similarity, data.gold.train)
    });
    let sentences: Vec<PickedSentence> = picked.collect();
    let summary = PickSummary {
        sentences: n_all,
        too_long: n_all - voted.len(),
        disputed: voted.iter().filter(|candidate| is_disputed(candidate)).count(),
        near_duplicates: batch.n_near_duplicates,
        picked: sentences.len(),
    };
    Ok(PickedSentences { sentences, summary })
}

/// Returns the plan of the panel: one pass, whose votes are on whole sentences.
pub(crate) fn panel_plan(plan: &Plan) -> Plan {
    let mut plan = plan.clone();
    plan.self_training.passes = std::num::NonZeroU32::MIN;
    plan.self_training.agreement = Agreement::Mention;
    plan
}

/// Returns true if the taggers predict different tags.
fn is_disputed(candidate: &TextCandidate) -> bool {
    candidate.proposed.iter().any(|one| one.votes < candidate.n_taggers)
}

/// Returns a picked sentence with the suggested tags, in the scheme of `gold`.
fn suggest(
    candidate: &TextCandidate,
    score: f64,
    similarity: f64,
    gold: &Corpus,
) -> PickedSentence {
    let mentions = majority(&candidate.proposed, candidate.n_taggers);
    PickedSentence {
        sentence: candidate.sentence.clone().with_mentions(mentions, gold.scheme()),
        number: candidate.number,
        score,
        similarity,
        n_taggers: candidate.n_taggers,
        probabilities: candidate.probabilities.clone(),
        proposed: candidate.proposed.clone(),
    }
}
