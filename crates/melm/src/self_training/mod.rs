//! Self-training: a panel of taggers labels unlabelled sentences, and the sentences that the panel agrees on are added
//! to the training set.
//!
//! The taggers of a panel differ only in their random seeds. Where they agree, their labels are mostly right; where
//! they disagree, at least one is wrong. A second pass trains a new panel on the sentences that the first one kept.

mod agreement;
mod folds;
mod metrics;
mod panel;
mod select;
mod settings;
mod silver;
mod summary;
mod vote;

pub use agreement::ProposedMention;
pub(crate) use metrics::panel_metrics;
pub(crate) use panel::tagger_settings;
pub(crate) use settings::n_needed;
pub use settings::{Agreement, Choice, PanelData, SelfTrainingSettings};
pub use silver::{GivenTags, SilverRule, SilverSettings};
pub use summary::TextSummary;
pub use vote::{TaggerVotes, Vote, VoteKey, VoteStore, parse_votes};
pub(crate) use vote::{VOTES, copy_votes};

use std::ops::Range;

use melm_nn::device::Device;
use melm_text::{Corpus, EntityTypes, Sentence};

use crate::Error;
use crate::augment::Gold;
use crate::draft::Verdict;
use crate::models::Pretrained;
use crate::plan::Plan;
use crate::shard::Shard;
use crate::stage::Run;
use agreement::{Decision, decide};
use panel::Panel;
use select::select;
use silver::decide_given;
use vote::{NoVotes, VoteFolder};

/// A sentence of unlabelled text with the label that the panel gave it.
#[derive(Clone, Debug, PartialEq)]
pub struct TextCandidate {
    /// The sentence with the tags that the panel chose. For a sentence that is too long, all tags are `O`.
    pub sentence: Sentence,
    /// The index of the sentence in the text.
    pub number: usize,
    /// The pass that labelled it, from 1.
    pub pass: u32,
    /// The first token of the sentence in the text. It is 0 unless only a part of the sentence was kept.
    pub first_token: usize,
    /// The number of taggers that predict exactly these tags for the whole sentence.
    pub votes: usize,
    /// The number of taggers in the panel.
    pub n_taggers: usize,
    /// The probability that each tagger gives to its own tags.
    pub probabilities: Vec<f64>,
    /// Every mention that any tagger predicts, with its votes.
    pub proposed: Vec<ProposedMention>,
    /// The decision about the sentence.
    pub verdict: Verdict,
}

/// The labelled sentences of a text.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LabelledText {
    /// Every sentence of the text, in order, as the last pass labelled it.
    pub candidates: Vec<TextCandidate>,
    /// The counts of each pass.
    pub passes: Vec<TextSummary>,
}

impl LabelledText {
    /// Returns the sentences that were kept.
    pub fn kept(&self) -> impl Iterator<Item = &Sentence> {
        let kept = self.candidates.iter().filter(|candidate| candidate.verdict.is_kept());
        kept.map(|candidate| &candidate.sentence)
    }

    /// Counts a part of the sentences, as the last pass labelled them.
    pub(crate) fn summary(&self, sentences: Range<usize>, types: &EntityTypes) -> TextSummary {
        TextSummary::new(&self.candidates[sentences], types)
    }
}

/// The data of self-training.
#[derive(Clone, Copy)]
pub struct SelfTrainingData<'a> {
    /// The labelled sentences.
    pub gold: Gold<'a>,
    /// The kept drafts.
    pub drafts: &'a [Sentence],
    /// The unlabelled sentences. Their tags are ignored.
    pub text: &'a [Sentence],
    /// The tags that somebody else gave to the first sentences of the text. The other sentences have none.
    pub given: &'a [GivenTags],
    /// If set, only this share of the taggers is trained in the folder of the run. The votes of the others must be
    /// copied there.
    pub shard: Option<Shard>,
}

/// Labels the sentences of a text and decides which are kept. `tagger` is the pretrained model that the taggers of the
/// panel are trained from.
///
/// Votes that `store` has are not computed again. Without a store, the votes are saved in the folder of the run, if it
/// has one, so that an interrupted run resumes after the last tagger that voted. Fails with [`Error::VotesMissing`] if
/// votes of taggers that belong to other shards are missing.
pub fn label_text(
    data: SelfTrainingData<'_>,
    plan: &Plan,
    tagger: &Pretrained,
    device: &Device,
    run: &mut Run<'_>,
    store: Option<&mut dyn VoteStore>,
) -> Result<LabelledText, Error> {
    let settings = &plan.self_training;
    let dir = run.folder.as_ref().map(|folder| folder.join(VOTES));
    let types = data.gold.train.types();
    let mut folder = dir.map(|dir| VoteFolder { dir, types, shard: data.shard });
    let mut no_store = NoVotes;
    let store: &mut dyn VoteStore = match (store, &mut folder) {
        (Some(store), _) => store,
        (None, Some(folder)) => folder,
        (None, None) => &mut no_store,
    };
    let mut panel = Panel::new(data, plan, tagger, device, store)?;
    let mut labelled = panel.given_labels();
    for pass in 1..=settings.passes.get() {
        let ballots = panel.vote(pass, &labelled, run)?;
        let mut candidates = panel.candidates(pass, &ballots);
        let max_kept = settings.max_kept(pass, data.gold.train.sentences().len());
        let key = run.seed.stream("self-training").at(u64::from(pass));
        select(&mut candidates, settings, max_kept, types, key);
        labelled.passes.push(TextSummary::new(&candidates, types));
        labelled.candidates = candidates;
    }
    Ok(labelled)
}

/// Returns the training set of a tagger of the next panel: gold, the drafts if the plan says so, and the sentences kept
/// so far, except for those whose number `is_held_out`.
fn training_set(
    data: SelfTrainingData<'_>,
    settings: &SelfTrainingSettings,
    labelled: &LabelledText,
    is_held_out: &dyn Fn(usize) -> bool,
) -> Corpus {
    let drafts = match settings.learns_from {
        PanelData::Gold => &[],
        PanelData::GoldAndDrafts => data.drafts,
    };
    let kept = labelled.candidates.iter().filter(|one| one.verdict.is_kept());
    let kept = kept.filter(|one| !is_held_out(one.number)).map(|one| &one.sentence);
    data.gold.train.with_more(drafts.iter().chain(kept).cloned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::{ModelClass, ModelClasses, Preset};
    use melm_text::{ReadOptions, Source};

    #[test]
    fn a_training_set_leaves_out_the_part_that_the_tagger_votes_on() {
        let read =
            |text: &str| Corpus::read(&Source::from_text("a", text), &ReadOptions::default());
        let gold = read("gold B-X\n").unwrap();
        let drafts = read("draft B-X\n").unwrap();
        let text = read("t0 B-X\n\nt1 B-X\n\nt2 B-X\n\nt3 B-X\n").unwrap();
        let candidate = |(number, sentence): (usize, &Sentence)| TextCandidate {
            sentence: sentence.clone(),
            number,
            pass: 1,
            first_token: 0,
            votes: 1,
            n_taggers: 1,
            probabilities: vec![1.0],
            proposed: Vec::new(),
            verdict: if number == 2 { Verdict::Disagrees } else { Verdict::Kept },
        };
        let candidates = text.sentences().iter().enumerate().map(candidate).collect();
        let labelled = LabelledText { candidates, passes: Vec::new() };
        let gold = Gold { train: &gold, dev: None };
        let data = SelfTrainingData {
            gold,
            drafts: drafts.sentences(),
            text: text.sentences(),
            given: &[],
            shard: None,
        };
        let mut settings = Preset::Best.plan(ModelClasses::both(ModelClass::MINI)).self_training;
        let words = |settings: &SelfTrainingSettings, is_held_out: &dyn Fn(usize) -> bool| {
            let train = training_set(data, settings, &labelled, is_held_out);
            let words: Vec<_> =
                train.sentences().iter().map(|one| one.tokens()[0].to_string()).collect();
            words.join(" ")
        };
        assert_eq!(words(&settings, &|_| false), "gold draft t0 t1 t3");
        assert_eq!(words(&settings, &|number| number % 2 == 1), "gold draft t0");
        settings.learns_from = PanelData::Gold;
        assert_eq!(words(&settings, &|number| number % 2 == 0), "gold t1 t3");
    }
}
