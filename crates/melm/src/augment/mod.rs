//! The whole method, in reading order (Algorithm 1): prepare, generate round by round, judge, keep.

mod funnel;
mod method;
mod record;
mod restore;
mod sources;

pub use funnel::Funnel;
pub use method::{Augmenter, Melm, Method, Prepared, Tuned, prepare, tune};
pub use record::{DraftRecord, ReplacedRecord, Verdict, read_lines, to_lines};
pub use sources::Sources;

use std::path::{Path, PathBuf};

use melm_nn::device::Device;
use melm_text::{Corpus, Sentence};

use crate::Error;
use crate::baselines::{MuldaModel, PretrainedSeq2Seq};
use crate::codemix::MentionVectors;
use crate::draft::{Draft, Novelty};
use crate::files::{sha256, write_whole};
use crate::filter::{FilterMode, Judge};
use crate::free_generation::RejectedCounts;
use crate::generate::WithoutMentions;
use crate::model::Pretrained;
use crate::plan::Plan;
use crate::stage::{Control, Event, Run, Stage};
use crate::tagger::{Tagger, Truncation};
use crate::training::TrainingOutcome;

/// A draft and its line.
pub type Judged = (DraftRecord, Draft);

/// What is augmented: the test set cannot get in here.
#[derive(Clone, Copy)]
pub struct Gold<'a> {
    /// The sentences to learn from and to make drafts of.
    pub train: &'a Corpus,
    /// The sentences that choose the best epochs.
    pub dev: Option<&'a Corpus>,
}

/// The pretrained models of a plan, and vectors.
#[derive(Clone, Copy, Default)]
pub struct Backbones<'a> {
    /// Of the masked language model; not needed by methods that have none. A `MulDA` without a pretrained model takes its
    /// pieces.
    pub masked_lm: Option<&'a Pretrained>,
    /// Of `MulDA`'s encoder-decoder, if there is one.
    pub seq2seq: Option<&'a PretrainedSeq2Seq>,
    /// Of the judge; not needed without a filter.
    pub tagger: Option<&'a Pretrained>,
    /// Vectors of words, for methods that compare mentions by them.
    pub vectors: Option<&'a MentionVectors>,
    /// A judge that was trained on the same gold already; without one it is trained.
    pub judge: Option<&'a Tagger>,
}

impl<'a> Backbones<'a> {
    /// What `MulDA` starts from.
    fn mulda(self) -> MuldaModel<'a> {
        let new =
            || self.masked_lm.expect("a plan without an encoder-decoder has a model's pieces");
        self.seq2seq.map_or_else(|| MuldaModel::New(new()), MuldaModel::Pretrained)
    }
}

/// What a run brought forth.
pub struct Augmented {
    /// Every draft of every round with its verdict, in order.
    pub records: Vec<DraftRecord>,
    /// The same as text: the lines of `drafts.jsonl`.
    pub lines: String,
    /// What was written and is no draft.
    pub dropped: RejectedCounts,
    /// The kept ones, as sentences of the corpus.
    pub kept: Vec<Sentence>,
    /// How the training of the judge went, if it was needed.
    pub judge: Option<TrainingOutcome>,
    /// What the judge could not learn from in one piece.
    pub judge_cuts: Truncation,
    /// How the method was prepared, if it was needed.
    pub prepared: Option<Prepared>,
}

/// Makes drafts of gold sentences and keeps those whose labels hold. Rounds that the run's folder holds are not made
/// again.
pub fn augment(
    gold: Gold<'_>,
    plan: &Plan,
    (backbones, device): (Backbones<'_>, &Device),
    run: &mut Run<'_>,
) -> Result<Augmented, Error> {
    let rounds = Rounds { folder: run.folder.as_ref().map(|folder| folder.join("rounds")) };
    let n_rounds = plan.generate.rounds.get();
    let mut novelty = Novelty::of(gold.train);
    let (mut crew, mut all, mut lines) = (None, Vec::new(), String::new());
    let mut dropped = RejectedCounts::default();
    for round in 1..=n_rounds {
        if let Some((made, text)) = rounds.read(round, gold.train)? {
            lines.push_str(&text);
            for (_, draft) in &made {
                novelty.look(draft);
            }
            all.extend(made);
            dropped.add(&rounds.read_dropped(round)?);
            continue;
        }
        let crew = match &mut crew {
            Some(crew) => crew,
            None => crew.insert(Crew::assemble(gold, plan, (backbones, device), run)?),
        };
        let drafts = round_of(&mut *crew.augmenter, round, (gold.train, plan), run)?;
        let made = crew.judge(drafts, &mut novelty, (gold.train, plan), (device, run))?;
        let own = crew.augmenter.dropped();
        lines.push_str(&rounds.write(round, &made, &own)?);
        dropped.add(&own);
        all.extend(made);
    }
    let kept = all.iter().filter(|(record, _)| record.verdict.is_kept());
    let kept = kept.map(|(_, draft)| draft.sentence.clone()).collect();
    let records = all.into_iter().map(|(record, _)| record).collect();
    let judge_cuts = crew.as_ref().map_or(Truncation::default(), |crew| crew.cuts);
    let (judge, prepared) = crew.map_or((None, None), |crew| (crew.fitted, Some(crew.prepared)));
    Ok(Augmented { records, lines, dropped, kept, judge, judge_cuts, prepared })
}

/// Who makes drafts and who judges them.
struct Crew<'a> {
    augmenter: Box<dyn Augmenter + 'a>,
    prepared: Prepared,
    given: Option<&'a Tagger>,
    tagger: Option<Tagger>,
    fitted: Option<TrainingOutcome>,
    cuts: Truncation,
}

impl<'a> Crew<'a> {
    /// Prepares the method, and trains the judge on gold only.
    fn assemble(
        gold: Gold<'a>,
        plan: &'a Plan,
        (backbones, device): (Backbones<'a>, &'a Device),
        run: &mut Run<'_>,
    ) -> Result<Self, Error> {
        let (augmenter, prepared) = prepare(gold, plan, (backbones, device), run)?;
        let given = backbones.judge.filter(|_| plan.has_judge());
        let (tagger, fitted, cuts) = (None, None, Truncation::default());
        let mut crew = Self { augmenter, prepared, given, tagger, fitted, cuts };
        if plan.has_judge() && given.is_none() {
            let pretrained = backbones.tagger.expect("a plan with a filter has a tagger's model");
            // The tagger that `melm train` makes of the same data.
            let stage = &mut run.stage_as("judge", "tagger");
            let settings = &plan.tagger;
            let trained = Tagger::train(pretrained, gold.train, gold.dev, settings, device, stage)?;
            crew.cuts = trained.truncation;
            (crew.tagger, crew.fitted) = (Some(trained.tagger), Some(trained.outcome));
        }
        Ok(crew)
    }

    /// Gives every draft its verdict.
    fn judge(
        &self,
        drafts: Vec<Draft>,
        novelty: &mut Novelty<'_>,
        (train, plan): (&Corpus, &Plan),
        (device, run): (&Device, &mut Run<'_>),
    ) -> Result<Vec<Judged>, Error> {
        let mut made = recorded(drafts, novelty, (train, plan.seed));
        let judge = self
            .given
            .or(self.tagger.as_ref())
            .map(|tagger| Judge::new(tagger, plan.filter, train.types()));
        let mut stage = run.stage("filter");
        judge_new(&mut made, judge.as_ref(), (plan.filter.mode, device), &mut stage)?;
        Ok(made)
    }
}

/// The drafts of all rounds, which nobody has judged yet.
pub fn generate(
    augmenter: &mut dyn Augmenter,
    (train, plan): (&Corpus, &Plan),
    run: &mut Run<'_>,
) -> Result<Vec<DraftRecord>, Error> {
    let mut novelty = Novelty::of(train);
    let mut records = Vec::new();
    for round in 1..=plan.generate.rounds.get() {
        let drafts = round_of(augmenter, round, (train, plan), run)?;
        let made = recorded(drafts, &mut novelty, (train, plan.seed));
        records.extend(made.into_iter().map(|(record, _)| record));
    }
    Ok(records)
}

/// The drafts of a round, in the order of their sources; with copies of sentences without a mention if the plan wants
/// them.
fn round_of(
    augmenter: &mut dyn Augmenter,
    round: u32,
    (train, plan): (&Corpus, &Plan),
    run: &mut Run<'_>,
) -> Result<Vec<Draft>, Error> {
    let mut drafts = augmenter.round(round, &mut run.stage("generate"))?;
    if plan.generate.without_mentions == WithoutMentions::Copied && plan.method != Method::Gold {
        let all = train.sentences().iter().enumerate();
        let without = all.filter(|(_, sentence)| sentence.mentions().next().is_none());
        drafts.extend(
            without.map(|(source, sentence)| {
                Draft::new(sentence.clone(), (source, round), Vec::new())
            }),
        );
        drafts.sort_by_key(|draft| draft.source);
    }
    Ok(drafts)
}

/// Drafts with their lines: which are new, and which repeat something seen before.
fn recorded(
    drafts: Vec<Draft>,
    novelty: &mut Novelty<'_>,
    (train, seed): (&Corpus, u64),
) -> Vec<Judged> {
    let record = |draft: Draft| {
        let verdict = verdict_before_judging(&draft, novelty);
        (DraftRecord::new(&draft, train, seed, verdict), draft)
    };
    drafts.into_iter().map(record).collect()
}

/// Forgets what an earlier judge said and judges anew. What repeats a sentence is found anew too: the drafts may come
/// from several files.
pub fn judge_again(
    train: &Corpus,
    drafts: &mut [Judged],
    judge: &Judge<'_>,
    (mode, device, stage): (FilterMode, &Device, &mut Stage<'_>),
) -> Result<(), Error> {
    let mut novelty = Novelty::of(train);
    for (record, draft) in &mut *drafts {
        record.reopen(verdict_before_judging(draft, &mut novelty));
    }
    judge_new(drafts, Some(judge), (mode, device), stage)
}

/// Whether a draft is new, a copy, or repeats something seen before.
fn verdict_before_judging(draft: &Draft, novelty: &mut Novelty<'_>) -> Verdict {
    if draft.sentence.mentions().next().is_none() {
        return Verdict::Copied;
    }
    novelty.look(draft).map_or(Verdict::New, Verdict::from)
}

/// Drafts judged at a time.
const CHUNK: usize = 256;

/// Judges the drafts that nobody has judged yet; without a judge they are kept.
pub fn judge_new(
    drafts: &mut [Judged],
    judge: Option<&Judge<'_>>,
    (mode, device): (FilterMode, &Device),
    stage: &mut Stage<'_>,
) -> Result<(), Error> {
    let mut new: Vec<_> =
        drafts.iter_mut().filter(|(record, _)| record.verdict == Verdict::New).collect();
    let Some(judge) = judge else {
        for (record, _) in new {
            record.verdict = Verdict::Kept;
        }
        return Ok(());
    };
    let (mut done, of) = (0, new.len() as u64);
    for chunk in new.chunks_mut(CHUNK) {
        let drafts: Vec<_> = chunk.iter().map(|(_, draft)| draft).collect();
        let (opinions, _) = judge.read(device, &drafts)?;
        for ((record, _), opinion) in chunk.iter_mut().zip(opinions) {
            record.judge(opinion, mode);
        }
        done += chunk.len() as u64;
        if stage.report(Event::Progress { done, of }) == Control::Stop {
            return Err(Error::Interrupted);
        }
    }
    Ok(())
}

/// The rounds of a run that are on disk, each whole.
struct Rounds {
    folder: Option<PathBuf>,
}

/// The file of a round.
fn path_of(folder: &Path, round: u32) -> PathBuf {
    folder.join(format!("round-{round}.jsonl"))
}

/// What a round wrote that is no draft, counted.
fn dropped_of(folder: &Path, round: u32) -> PathBuf {
    folder.join(format!("round-{round}.dropped.toml"))
}

/// The fingerprint of a round that is whole.
fn seal_of(folder: &Path, round: u32) -> PathBuf {
    folder.join(format!("round-{round}.sha256"))
}

impl Rounds {
    /// A round's drafts and its text, which is not written anew: numbers would not be the same to the last digit.
    fn read(&self, round: u32, train: &Corpus) -> Result<Option<(Vec<Judged>, String)>, Error> {
        let Some(folder) = &self.folder else { return Ok(None) };
        let path = path_of(folder, round);
        let (text, expected) =
            (std::fs::read(&path), std::fs::read_to_string(seal_of(folder, round)));
        // A round that is not what was written is made again.
        let Some(text) = text.ok().filter(|text| expected.is_ok_and(|hash| hash == sha256(text)))
        else {
            return Ok(None);
        };
        let text = String::from_utf8_lossy(&text).into_owned();
        Ok(Some((read_lines(&path, &text, train)?, text)))
    }

    /// What a round wrote that is no draft; there is no file if it wrote nothing else.
    fn read_dropped(&self, round: u32) -> Result<RejectedCounts, Error> {
        let Some(folder) = &self.folder else { return Ok(RejectedCounts::default()) };
        let path = dropped_of(folder, round);
        match std::fs::read_to_string(&path) {
            Ok(text) => toml::from_str(&text).map_err(|_| melm_nn::Error::State { path }.into()),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                Ok(RejectedCounts::default())
            }
            Err(source) => Err(Error::Read { path, source }),
        }
    }

    fn write(
        &self,
        round: u32,
        made: &[Judged],
        dropped: &RejectedCounts,
    ) -> Result<String, Error> {
        let text = to_lines(made.iter().map(|(record, _)| record));
        if let Some(folder) = &self.folder {
            std::fs::create_dir_all(folder)
                .map_err(|source| Error::Write { path: folder.clone(), source })?;
            write_whole(&path_of(folder, round), text.as_bytes())?;
            if !dropped.is_empty() {
                let counts = toml::to_string(dropped).expect("counts are a table");
                write_whole(&dropped_of(folder, round), counts.as_bytes())?;
            }
            write_whole(&seal_of(folder, round), sha256(text.as_bytes()).as_bytes())?;
        }
        Ok(text)
    }
}
