//! Algorithm 1 of the paper: linearize, fine-tune, generate round by round, judge, keep.

use std::ops::Range;
use std::path::{Path, PathBuf};

use melm_nn::device::Device;
use melm_text::{Corpus, Sentence};

use super::rounds::Rounds;
use super::summary::DraftSummary;
use crate::Error;
use crate::codemix::MentionVectors;
use crate::draft::{Draft, Novelty, Verdict, reject_repeats, reject_unlikely};
use crate::files::read_sealed;
use crate::generate::WithoutMentions;
use crate::judge::Judge;
use crate::methods::RejectedCounts;
use crate::methods::{Augmenter, Method, Prepared, UsedNames, prepare};
use crate::methods::{MuldaModel, PretrainedSeq2Seq};
use crate::models::Pretrained;
use crate::names::Names;
use crate::plan::Plan;
use crate::stage::{Run, Stage, observe_part};
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
    /// Lists of names, for methods that replace mentions.
    pub names: Option<&'a Names>,
    /// A judge that was already trained on the same gold. If `None`, a judge is trained.
    pub judge: Option<&'a TaggerModel>,
}

impl<'a> Backbones<'a> {
    /// Returns the names that a plan uses.
    pub(crate) fn used_names(self, plan: &Plan) -> Option<UsedNames<'a>> {
        self.names.map(|names| UsedNames { names, share: plan.names.share })
    }

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
    /// The number of names that were harvested from unlabelled text.
    pub n_harvested: usize,
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
        let trained = train_judges(gold, plan, backbones, device, run)?;
        let own = trained.iter().map(|trained| &trained.tagger);
        let taggers: Vec<&TaggerModel> = backbones.judge.into_iter().chain(own).collect();
        for round in rounds.n_done() + 1..=n_rounds {
            // Section 2.3: mask the entities and let the model fill them.
            let mut drafts = make_round(&mut *method, round, gold.train, plan, run)?;
            rounds.mark_repeats(&mut drafts);
            check_mentions(&mut drafts, plan);
            judge_drafts(
                &mut drafts,
                &taggers,
                gold.train,
                plan,
                device,
                &mut run.stage("filter"),
            )?;
            rounds.add(drafts, &method.dropped())?;
        }
        rounds.result.prepared = Some(prepared);
        if let Some(trained) = trained.into_iter().next() {
            rounds.result.judge_truncation = trained.truncation;
            rounds.result.judge = Some(trained.outcome);
        }
    } else if let Some(folder) = &run.folder {
        // An earlier process trained the judge. Its record belongs to the result.
        rounds.result.judge = read_outcome(&folder.join("judge"))?;
    }
    Ok(rounds.result)
}

/// Trains the judges on gold. Does nothing if the plan has no filter. The first judge is the same tagger that `melm train`
/// trains on this data; it is not trained if it is given. The others use random numbers of their own.
pub(super) fn train_judges(
    gold: Gold<'_>,
    plan: &Plan,
    backbones: Backbones<'_>,
    device: &Device,
    run: &mut Run<'_>,
) -> Result<Vec<TrainedTagger>, Error> {
    let n_judges = if plan.has_judge() { plan.filter.judges.get() } else { 0 };
    let first = if backbones.judge.is_some() { 2 } else { 1 };
    let n_trained = (n_judges + 1).saturating_sub(first) as u64;
    let mut trained = Vec::new();
    for number in first..=n_judges {
        let pretrained = backbones.tagger.expect("a plan with a filter has a tagger's model");
        let (folder, stream) = match number {
            1 => (run.folder.clone(), "tagger".to_owned()),
            _ => (judge_folder(run.folder.as_deref(), number), format!("judge {number}")),
        };
        let mut observer = observe_part(&mut *run.observer, trained.len() as u64, n_trained);
        let mut own = Run { seed: run.seed, folder, observer: &mut observer };
        let stage = &mut own.stage_as("judge", &stream);
        let (train, dev, settings) = (gold.train, gold.dev, &plan.tagger);
        trained.push(TaggerModel::train(pretrained, train, dev, settings, device, stage)?);
    }
    Ok(trained)
}

/// The folder of the saved state of a judge other than the first.
fn judge_folder(stages: Option<&Path>, number: usize) -> Option<PathBuf> {
    stages.map(|stages| stages.join("judges").join(number.to_string()))
}

/// Returns the metrics of the trainings of all judges but the first, from the folder of the stages.
pub(super) fn metrics_of_judges(stages: &Path, n_judges: usize) -> Result<String, Error> {
    let folders = (2..=n_judges).filter_map(|number| judge_folder(Some(stages), number));
    let read = |folder: PathBuf| read_sealed(&folder.join("judge/metrics.jsonl"));
    folders.map(|folder| Ok(read(folder)?.unwrap_or_default())).collect()
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

/// Rejects new drafts whose replaced mentions do not fit, before the judge sees them.
pub(super) fn check_mentions(drafts: &mut [Draft], plan: &Plan) {
    if plan.generate.avoid_repeats {
        reject_repeats(drafts);
    }
    if plan.generate.has_scores() {
        reject_unlikely(drafts, plan.generate.score_margin);
    }
}

/// Judges the new drafts. If the plan has no filter, keeps all of them.
pub(super) fn judge_drafts(
    drafts: &mut [Draft],
    taggers: &[&TaggerModel],
    train: &Corpus,
    plan: &Plan,
    device: &Device,
    stage: &mut Stage<'_>,
) -> Result<(), Error> {
    if plan.has_judge() && !taggers.is_empty() {
        let judge = Judge::from_taggers(taggers.to_vec(), plan.filter, train.types());
        return judge.assess(drafts, device, stage);
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
        check_mentions(&mut drafts, plan);
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
        draft.votes = None;
        let found = novelty.record(draft);
        // The tokens are the same as before, so a draft that was rejected for them stays rejected.
        let is_rejected = matches!(draft.verdict, Verdict::RepeatsToken | Verdict::UnlikelyMention);
        if !(is_rejected && found == Verdict::New) {
            draft.verdict = found;
        }
    }
    judge.assess(drafts, device, stage)
}
