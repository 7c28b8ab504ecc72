//! A run in a folder. An interrupted run can be resumed, and a finished run is recognised.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};

use super::algorithm::metrics_of_judges;
use super::job::AugmentJob;
use super::result::{Augmented, DRAFTS, GOLD, augmented_names};
use crate::Error;
use crate::card::{CardState, data_card, write_card};
use crate::files::{folder_size, read_sealed, refuse_links, write_whole};
use crate::gold_check::fold_metrics;
use crate::methods::Method;
use crate::methods::{NO_PRETRAINING, PretrainedSeq2Seq};
use crate::models::Pretrained;
use crate::random::Seed;
use crate::run_folder::{FinishedRun, FolderLock, RunFolder, checksums, data_record};
use crate::self_training::{VOTES, copy_votes, panel_metrics};
use crate::shard::Shard;
use crate::stage::{Observer, Run};

/// The subfolder of trained models and finished rounds. It is not removed, so that a later run with more rounds can
/// reuse them.
const STAGES: &str = ".stages";
/// The file with the metrics of all trainings.
const METRICS: &str = "metrics.jsonl";
/// The subfolder of the fine-tuned model.
const MODEL: &str = "model";
/// The stages that train a model, in the order in which their metrics are listed.
const TRAINING_STAGES: [&str; 4] = ["finetune", "daga", "mulda", "judge"];

/// A run in an output folder.
pub struct AugmentFolder<'a> {
    job: &'a AugmentJob,
    folder: RunFolder,
    keep_model: bool,
    arguments: Vec<String>,
    /// The folders of other shards.
    voters: Vec<PathBuf>,
}

/// The state of the votes after the taggers of a shard have voted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Voting {
    /// All taggers of all passes have voted.
    Complete,
    /// These taggers of other shards have not voted in this pass.
    Waiting {
        /// The pass.
        pass: u32,
        /// The numbers of the taggers, from 1.
        taggers: Vec<usize>,
    },
}

/// The outcome of a run in a folder.
pub struct AugmentOutcome {
    /// The drafts and the augmented corpus.
    pub augmented: Augmented,
    /// The paths of the augmented corpora, one for each language.
    pub paths: Vec<PathBuf>,
    /// The content of `run.json`.
    pub record: Map<String, Value>,
    /// Whether the card `README.md` was written.
    pub card: CardState,
    /// The folder of trained models and finished rounds, which a run with more rounds reuses.
    pub stages: PathBuf,
    /// The size of this folder in bytes.
    pub stages_bytes: u64,
}

impl AugmentJob {
    /// Opens an output folder. With `force`, the run replaces the content of the folder. Without `force`, the folder
    /// must be new, empty, or the folder of this run. Nothing is changed on disk before [`AugmentFolder::run`]. With
    /// `keep_model`, the run also writes the fine-tuned model.
    pub fn open_folder(
        &self,
        dir: &Path,
        force: bool,
        keep_model: bool,
    ) -> Result<AugmentFolder<'_>, Error> {
        let folder = RunFolder::open(dir, self.identity()?, force)?;
        let (arguments, voters) = (Vec::new(), Vec::new());
        Ok(AugmentFolder { job: self, folder, keep_model, arguments, voters })
    }

    /// Returns the name of the encoder-decoder, or [`NO_PRETRAINING`] for a new one. `None` if the method has no
    /// encoder-decoder.
    pub fn seq2seq_name(&self) -> Option<String> {
        let is_mulda = self.plan.method == Method::Mulda;
        let new = || NO_PRETRAINING.to_owned();
        is_mulda.then(|| self.seq2seq.as_ref().map_or_else(new, PretrainedSeq2Seq::name))
    }
}

impl AugmentFolder<'_> {
    /// Sets the arguments of the command `melm`, so that a person can repeat the run. They are recorded in `run.json` and
    /// in the card. Programs that call the library leave them out.
    #[must_use]
    pub fn with_arguments(mut self, arguments: &[String]) -> Self {
        self.arguments = arguments.to_vec();
        self
    }

    /// Sets folders whose votes are copied when the run begins: those of the shards of this run. Folders of runs with
    /// other data, models or settings are ignored.
    #[must_use]
    pub fn with_votes_from(mut self, folders: Vec<PathBuf>) -> Self {
        self.voters = folders;
        self
    }

    /// Returns the run in this folder if it is finished, has as many rounds as the plan, and all its result files
    /// exist. Missing result files are made again from the stages.
    ///
    /// # Errors
    /// If the finished run has more rounds than the plan, or if a result file that would be overwritten was changed
    /// after the run wrote it.
    pub fn finished(&self) -> Result<Option<FinishedRun>, Error> {
        let Some(finished) = self.folder.finished()? else { return Ok(None) };
        let FinishedRun { record, changed, missing } = &finished;
        let n_rounds = u64::from(self.job.plan.generate.rounds.get());
        let n_done = record["rounds"].as_u64().unwrap_or(0);
        let is_whole = missing.is_none() && self.has_results()?;
        if n_done == n_rounds && !self.keep_model && is_whole {
            self.folder.tidy();
            return Ok(Some(finished));
        }
        let dir = self.folder.dir();
        if n_done > n_rounds {
            let found = format!("a run of more rounds, {n_done}");
            return Err(Error::Occupied { dir: dir.to_path_buf(), found });
        }
        match changed {
            Some(name) => Err(Error::ResultChanged { path: dir.join(name) }),
            None => Ok(None),
        }
    }

    /// Starts the run or resumes it, and writes all results. `seconds` returns the seconds since the start of the
    /// program, which are recorded in `run.json`.
    pub fn run(
        &self,
        observer: Observer<'_>,
        seconds: &dyn Fn() -> f64,
    ) -> Result<AugmentOutcome, Error> {
        let dir = self.folder.dir();
        let (stages, _lock) = self.begin()?;
        let seed = Seed(self.job.plan.seed);
        let mut run = Run { seed, folder: Some(stages.clone()), observer };
        let augmented = self.job.run_stages(&mut run)?;
        if self.keep_model {
            self.job.save_model(&dir.join(MODEL), &mut run)?;
        }
        let paths = augmented.write_into(dir)?;
        let metrics = self.collect_metrics(&stages)?;
        write_whole(&dir.join(METRICS), metrics.as_bytes())?;
        let card = write_card(dir, &self.describe(&augmented, &paths))?;
        let mut record = self.job.record(&augmented, seconds());
        if !self.arguments.is_empty() {
            record.insert("arguments".to_owned(), json!(self.arguments));
        }
        let others = [DRAFTS, METRICS].into_iter().chain(augmented.checked_gold().map(|_| GOLD));
        let others = others.map(|name| dir.join(name));
        let results: Vec<_> = paths.iter().cloned().chain(others).collect();
        record.insert("files".to_owned(), json!(checksums(&results)?));
        self.folder.finish(record.clone())?;
        let stages_bytes = folder_size(&stages);
        Ok(AugmentOutcome { augmented, paths, record, card, stages, stages_bytes })
    }

    /// Trains the taggers of one shard and saves their votes in this folder. Writes no results. A run in another folder uses
    /// the votes if [`Self::with_votes_from`] names this folder.
    pub fn vote(&self, shard: Shard, observer: Observer<'_>) -> Result<Voting, Error> {
        let (stages, _lock) = self.begin()?;
        let mut run = Run { seed: Seed(self.job.plan.seed), folder: Some(stages), observer };
        match self.job.run_voting(shard, &mut run) {
            Ok(()) => Ok(Voting::Complete),
            Err(Error::VotesMissing { pass, taggers }) => Ok(Voting::Waiting { pass, taggers }),
            Err(error) => Err(error),
        }
    }

    /// Creates and locks the folder, removes the state of another run and copies votes of other folders. Returns the
    /// folder of the stages, and the lock.
    fn begin(&self) -> Result<(PathBuf, FolderLock), Error> {
        let stages = self.folder.dir().join(STAGES);
        let lock = self.folder.begin(std::slice::from_ref(&stages))?;
        if self.keep_model {
            refuse_links(&self.folder.dir().join(MODEL))?;
        }
        // The key of a vote does not include model and seed, so only folders of this run are used.
        let voters = self.voters.iter().filter(|dir| self.folder.is_also_in(dir));
        let others: Vec<PathBuf> = voters.map(|dir| dir.join(STAGES).join(VOTES)).collect();
        copy_votes(&others, &stages.join(VOTES))?;
        Ok((stages, lock))
    }

    /// Returns the card of the run. `paths` are the files of the augmented corpus.
    fn describe(&self, augmented: &Augmented, paths: &[PathBuf]) -> String {
        let names = paths.iter().filter_map(|path| path.file_name());
        let names: Vec<_> = names.map(|name| name.to_string_lossy().into_owned()).collect();
        data_card(augmented, &names, &self.arguments)
    }

    /// Returns the metrics of all trainings, in the order of the stages.
    fn collect_metrics(&self, stages: &Path) -> Result<String, Error> {
        let mut lines = String::new();
        for stage in TRAINING_STAGES {
            let own = read_sealed(&stages.join(stage).join("metrics.jsonl"))?;
            lines += &own.unwrap_or_default();
        }
        lines += &metrics_of_judges(stages, self.job.plan.filter.judges.get())?;
        if self.job.text.is_some() {
            lines += &panel_metrics(stages, &self.job.plan.self_training)?;
        }
        Ok(lines + &fold_metrics(stages, self.job.plan.gold_check)?)
    }

    /// Returns true if the result files still exist.
    fn has_results(&self) -> Result<bool, Error> {
        let texts = self.job.output_gold().append_sentences(&[], self.job.plan.union)?;
        let names = texts.iter().flat_map(augmented_names).chain([DRAFTS.to_owned()]);
        Ok(names.into_iter().all(|name| self.folder.dir().join(name).exists()))
    }
}

impl AugmentJob {
    /// The content of `run.json`.
    fn record(&self, augmented: &Augmented, seconds: f64) -> Map<String, Value> {
        let mut record = Map::new();
        let mut put = |key: &str, value: Value| record.insert(key.to_owned(), value);
        put("melm", env!("CARGO_PKG_VERSION").into());
        put("command", "augment".into());
        put("method", self.plan.method.name().into());
        put("rounds", self.plan.generate.rounds.get().into());
        put("seed", self.plan.seed.into());
        put("train", data_record(&self.train));
        put("dev", self.dev.as_ref().map_or(Value::Null, data_record));
        put("masked_lm", json!(self.masked_lm.as_ref().map(Pretrained::name)));
        put("tagger", json!(self.tagger.as_ref().map(Pretrained::name)));
        if let Some(name) = self.seq2seq_name() {
            put("seq2seq", name.into());
        }
        put("device", self.device.to_string().into());
        put("drafts", json!(augmented.summary()));
        if let (Some(text), Some(outcome)) = (&self.text, augmented.text()) {
            let mut entry = text.record(outcome);
            let by_language = augmented.kept_text_by_language();
            if !by_language.is_empty() {
                let counts: BTreeMap<_, _> = by_language.into_iter().collect();
                entry["kept_by_language"] = json!(counts);
            }
            put("text", entry);
        }
        if let Some(names) = &self.names {
            put("names", json!(names.counts()));
        }
        let details = augmented.details();
        if details.n_harvested > 0 {
            put("harvested_names", details.n_harvested.into());
        }
        if let Some(counts) = details.prepared.as_ref().and_then(|p| p.codemix.as_ref()) {
            put("codemix", json!(counts));
        }
        put("judge", json!(details.judge.as_ref().and_then(|judge| judge.best)));
        if let Some(summary) = augmented.gold_check() {
            put("gold_check", json!(summary));
        }
        put("seconds", json!((seconds * 10.0).round() / 10.0));
        record
    }
}
