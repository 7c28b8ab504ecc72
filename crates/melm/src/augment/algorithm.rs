//! Algorithm 1 of the paper: linearize, fine-tune, generate round by round, judge, keep.

use std::ops::Range;

use melm_nn::device::Device;
use melm_text::{Corpus, Sentence};

use super::rounds::Rounds;
use super::summary::DraftSummary;
use crate::Error;
use crate::codemix::MentionVectors;
use crate::draft::{Draft, Novelty, Verdict};
use crate::generate::WithoutMentions;
use crate::judge::Judge;
use crate::methods::RejectedCounts;
use crate::methods::{Augmenter, Method, Prepared, prepare};
use crate::methods::{MuldaModel, PretrainedSeq2Seq};
use crate::models::Pretrained;
use crate::plan::Plan;
use crate::stage::{Run, Stage};
use crate::tagger::{TaggerModel, TrainedTagger, Truncation};
use crate::training::{TrainingOutcome, read_outcome};

/// The labelled sentences of a run. A test set is never part of it.
#[derive(Clone, Copy)]
pub struct Gold<'a> {
    /// The training sentences. Drafts are made from them.
    pub train: &'a Corpus,
    /// The dev set, which selects the best epoch of each training run.
    pub dev: Option<&'a Corpus>,
}

/// The pretrained models and word vectors that a plan needs.
#[derive(Clone, Copy, Default)]
pub struct Backbones<'a> {
    /// The masked language model. `MulDA` uses the tokenizer of this model if `seq2seq` is `None`.
    pub masked_lm: Option<&'a Pretrained>,
    /// The encoder-decoder of `MulDA`.
    pub seq2seq: Option<&'a PretrainedSeq2Seq>,
    /// The pretrained model that is trained to be the judge. Not needed if the filter is off.
    pub tagger: Option<&'a Pretrained>,
    /// Word vectors, for methods that compare mentions by similarity.
    pub vectors: Option<&'a MentionVectors>,
    /// A judge that was already trained on the same gold. If `None`, a judge is trained.
    pub judge: Option<&'a TaggerModel>,
}

impl<'a> Backbones<'a> {
    /// Returns the model for `MulDA`: the pretrained encoder-decoder if there is one, otherwise a new model.
    pub(crate) fn mulda(self) -> MuldaModel<'a> {
        let new = || {
            self.masked_lm.expect("a plan without an encoder-decoder has a masked language model")
        };
        self.seq2seq.map_or_else(|| MuldaModel::New(new()), MuldaModel::Pretrained)
    }
}

/// The drafts of a run with their verdicts.
#[derive(Default)]
pub struct Drafts {
    /// Every draft of every round, in order.
    pub drafts: Vec<Draft>,
    /// The text of `drafts.jsonl`, which has one line for each of these drafts.
    pub lines: String,
    /// The number of sentences that a method wrote but that did not become drafts, by reason.
    pub dropped: RejectedCounts,
    /// The training record of the judge, if a judge was trained in this run or by an earlier process in its folder.
    pub judge: Option<TrainingOutcome>,
    /// The number of sentences and tokens that were too long for the judge in training.
    pub judge_truncation: Truncation,
    /// The report on the preparation of the method; `None` if all rounds were read from disk.
    pub prepared: Option<Prepared>,
}

impl Drafts {
    /// Returns the sentences of the kept drafts.
    pub fn kept(&self) -> impl Iterator<Item = &Sentence> {
        self.drafts.iter().filter(|draft| draft.verdict.is_kept()).map(|draft| &draft.sentence)
    }

    /// Counts the drafts by verdict.
    pub fn summary(&self, gold: &Corpus) -> DraftSummary {
        DraftSummary::new(&self.drafts, &self.dropped, gold)
    }
}

/// Makes drafts of gold sentences and keeps the drafts whose tags the judge predicts. Rounds that are complete in the
/// folder of the run are read from there instead of being made again.
pub fn augment(
    gold: Gold<'_>,
    plan: &Plan,
    backbones: Backbones<'_>,
    device: &Device,
    run: &mut Run<'_>,
) -> Result<Drafts, Error> {
    let n_rounds = plan.generate.rounds.get();
    let mut rounds = Rounds::resume(gold.train, n_rounds, run.folder.as_deref())?;
    if rounds.n_done() < n_rounds {
        // Sections 2.1 and 2.2: linearize the sentences and fine-tune the masked language model on them.
        let (mut method, prepared) = prepare(gold, plan, backbones, device, run)?;
        // Section 2.4: the judge is trained on gold only.
        let trained = train_judge(gold, plan, backbones, device, run)?;
        let tagger = backbones.judge.or(trained.as_ref().map(|trained| &trained.tagger));
        for round in rounds.n_done() + 1..=n_rounds {
            // Section 2.3: mask the entities and let the model fill them.
            let mut drafts = make_round(&mut *method, round, gold.train, plan, run)?;
            rounds.mark_repeats(&mut drafts);
            judge_drafts(&mut drafts, tagger, gold.train, plan, device, &mut run.stage("filter"))?;
            rounds.add(drafts, &method.dropped())?;
        }
        rounds.result.prepared = Some(prepared);
        if let Some(trained) = trained {
            rounds.result.judge_truncation = trained.truncation;
            rounds.result.judge = Some(trained.outcome);
        }
    } else if let Some(folder) = &run.folder {
        // An earlier process trained the judge. Its record belongs to the result.
        rounds.result.judge = read_outcome(&folder.join("judge"))?;
    }
    Ok(rounds.result)
}

/// Trains the judge on gold. Does nothing if the plan has no filter or if a judge is given. The judge is the same
/// tagger that `melm train` trains on this data.
fn train_judge(
    gold: Gold<'_>,
    plan: &Plan,
    backbones: Backbones<'_>,
    device: &Device,
    run: &mut Run<'_>,
) -> Result<Option<TrainedTagger>, Error> {
    if !plan.has_judge() || backbones.judge.is_some() {
        return Ok(None);
    }
    let pretrained = backbones.tagger.expect("a plan with a filter has a tagger's model");
    let stage = &mut run.stage_as("judge", "tagger");
    TaggerModel::train(pretrained, gold.train, gold.dev, &plan.tagger, device, stage).map(Some)
}

/// Makes the drafts of one round, in the order of their sources. Adds copies of the sentences without a mention if
/// the plan asks for copies.
fn make_round(
    method: &mut dyn Augmenter,
    round: u32,
    train: &Corpus,
    plan: &Plan,
    run: &mut Run<'_>,
) -> Result<Vec<Draft>, Error> {
    let mut drafts = method.round(round, &mut run.stage("generate"))?;
    if plan.generate.without_mentions == WithoutMentions::Copied && plan.method != Method::Gold {
        let sentences = train.sentences().iter().enumerate();
        let without = sentences.filter(|(_, sentence)| sentence.mentions().next().is_none());
        drafts.extend(
            without
                .map(|(source, sentence)| Draft::new(sentence.clone(), source, round, Vec::new())),
        );
        drafts.sort_by_key(|draft| draft.source);
    }
    for draft in &mut drafts {
        draft.seed = plan.seed;
    }
    Ok(drafts)
}

/// Judges the new drafts. If the plan has no filter, keeps all of them.
fn judge_drafts(
    drafts: &mut [Draft],
    tagger: Option<&TaggerModel>,
    train: &Corpus,
    plan: &Plan,
    device: &Device,
    stage: &mut Stage<'_>,
) -> Result<(), Error> {
    if let Some(tagger) = tagger.filter(|_| plan.has_judge()) {
        return Judge::new(tagger, plan.filter, train.types()).assess(drafts, device, stage);
    }
    for draft in drafts.iter_mut().filter(|draft| draft.verdict == Verdict::New) {
        draft.verdict = Verdict::Kept;
    }
    Ok(())
}

/// Generates the drafts of all rounds without judging them. Drafts whose source is not one of `sentences` are left out.
pub fn generate(
    method: &mut dyn Augmenter,
    train: &Corpus,
    sentences: &Range<usize>,
    plan: &Plan,
    run: &mut Run<'_>,
) -> Result<Vec<Draft>, Error> {
    let mut novelty = Novelty::new(train);
    let mut all = Vec::new();
    for round in 1..=plan.generate.rounds.get() {
        let mut drafts = make_round(method, round, train, plan, run)?;
        drafts.retain(|draft| draft.source.is_none_or(|source| sentences.contains(&source)));
        novelty.mark(&mut drafts);
        all.extend(drafts);
    }
    Ok(all)
}

/// Judges drafts again and ignores their earlier verdicts. Also searches for repetitions again, because the drafts
/// may come from several files.
pub fn judge_again(
    drafts: &mut [Draft],
    judge: &Judge<'_>,
    train: &Corpus,
    device: &Device,
    stage: &mut Stage<'_>,
) -> Result<(), Error> {
    let mut novelty = Novelty::new(train);
    for draft in &mut *drafts {
        draft.probability = None;
        draft.disagreements.clear();
        draft.verdict = novelty.record(draft);
    }
    judge.assess(drafts, device, stage)
}
