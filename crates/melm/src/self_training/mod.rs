//! Self-training: a panel of taggers labels unlabelled sentences, and the sentences that the panel agrees on are added
//! to the training set.
//!
//! The taggers of a panel differ only in their random seeds. Where they agree, their labels are mostly right; where
//! they disagree, at least one is wrong. A second pass trains a new panel on the sentences that the first one kept.

mod agreement;
mod metrics;
mod panel;
mod select;
mod settings;
mod summary;
mod vote;

pub use agreement::ProposedMention;
pub(crate) use metrics::panel_metrics;
pub(crate) use panel::tagger_settings;
pub use settings::{Agreement, Choice, PanelData, SelfTrainingSettings};
pub use summary::TextSummary;
pub use vote::{NoVotes, TaggerVotes, Vote, VoteKey, VoteStore};

use melm_nn::device::Device;
use melm_text::{Corpus, Sentence};

use crate::Error;
use crate::augment::Gold;
use crate::draft::Verdict;
use crate::models::Pretrained;
use crate::plan::Plan;
use crate::stage::Run;
use agreement::{Decision, decide};
use panel::Panel;
use select::select;
use vote::VoteFolder;

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
}

/// Labels the sentences of a text and decides which are kept. `tagger` is the pretrained model that the taggers of the
/// panel are trained from.
///
/// Votes that `store` has are not computed again. Without a store, the votes are saved in the folder of the run, if it
/// has one, so that an interrupted run resumes after the last tagger that voted.
pub fn label_text(
    data: SelfTrainingData<'_>,
    plan: &Plan,
    tagger: &Pretrained,
    device: &Device,
    run: &mut Run<'_>,
    store: Option<&mut dyn VoteStore>,
) -> Result<LabelledText, Error> {
    let settings = &plan.self_training;
    let dir = run.folder.as_ref().map(|folder| folder.join("votes"));
    let types = data.gold.train.types();
    let mut folder = dir.map(|dir| VoteFolder { dir, types });
    let mut nothing = NoVotes;
    let store: &mut dyn VoteStore = match (store, &mut folder) {
        (Some(store), _) => store,
        (None, Some(folder)) => folder,
        (None, None) => &mut nothing,
    };
    let mut panel = Panel::new(data, plan, tagger, device, store)?;
    let mut labelled = LabelledText::default();
    for pass in 1..=settings.passes.get() {
        let train = training_set(data, settings, &labelled);
        let votes = panel.vote(pass, &train, run)?;
        let mut candidates = panel.candidates(pass, &votes);
        let max_kept = settings.max_kept(pass, data.gold.train.sentences().len());
        let key = run.seed.stream("self-training").at(u64::from(pass));
        select(&mut candidates, settings, max_kept, types, key);
        labelled.passes.push(TextSummary::new(&candidates, types));
        labelled.candidates = candidates;
    }
    Ok(labelled)
}

/// The training set of the next panel: gold, the drafts if the plan says so, and the sentences kept so far.
fn training_set(
    data: SelfTrainingData<'_>,
    settings: &SelfTrainingSettings,
    labelled: &LabelledText,
) -> Corpus {
    let drafts = match settings.learns_from {
        PanelData::Gold => &[],
        PanelData::GoldAndDrafts => data.drafts,
    };
    data.gold.train.with_more(drafts.iter().chain(labelled.kept()).cloned())
}
