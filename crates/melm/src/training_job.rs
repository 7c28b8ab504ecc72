//! Trains a tagger or a masked entity language model in an output folder.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use melm_nn::device::Device;
use melm_text::Corpus;
use serde_json::{Map, Value, json};

use crate::Error;
use crate::augment::Gold;
use crate::card::{CardState, ModelCard, model_card, write_card};
use crate::files::{read_sealed, write_whole};
use crate::linearize::LinearizedCounts;
use crate::markers::MarkerStart;
use crate::methods::tune;
use crate::models::{ModelStore, NeededModels, Pretrained, weight_files};
use crate::notes::{coverage_warnings, describe_markers, type_warnings};
use crate::plan::Plan;
use crate::random::Seed;
use crate::run_folder::{FinishedRun, Identity, RunFolder, checksums, data_record};
use crate::stage::{Observer, Run};
use crate::tagger::{TaggerModel, Truncation, transition_warning};
use crate::training::{TrainingOutcome, TrainingSettings};

/// The kind of model to train.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TrainedKind {
    /// A tagger, which `melm train` trains.
    Tagger,
    /// A masked entity language model, which `melm finetune` trains.
    MaskedLm,
}

impl TrainedKind {
    /// The name of the command that trains this kind of model. It is also written to `run.json`.
    pub(crate) fn command(self) -> &'static str {
        match self {
            Self::Tagger => "train",
            Self::MaskedLm => "finetune",
        }
    }

    /// The name of the training stage. It is equal to the name of the section in the plan.
    fn stage(self) -> &'static str {
        match self {
            Self::Tagger => "tagger",
            Self::MaskedLm => "finetune",
        }
    }

    /// The name of the pretrained model in a plan.
    pub fn model(self, plan: &Plan) -> &str {
        match self {
            Self::Tagger => &plan.model.tagger,
            Self::MaskedLm => &plan.model.masked_lm,
        }
    }

    /// The training settings in a plan.
    pub fn settings(self, plan: &Plan) -> &TrainingSettings {
        match self {
            Self::Tagger => &plan.tagger.training,
            Self::MaskedLm => &plan.finetune.training,
        }
    }

    /// The key of the training budget in a plan.
    pub fn budget_key(self) -> &'static str {
        match self {
            Self::Tagger => "tagger.budget",
            Self::MaskedLm => "finetune.budget",
        }
    }

    /// Returns the models of a plan that the training run uses.
    pub fn needed_models(self) -> NeededModels {
        NeededModels { masked_lm: self == Self::MaskedLm, tagger: self == Self::Tagger }
    }
}

/// A training run that is ready to start.
pub struct TrainingJob {
    kind: TrainedKind,
    plan: Plan,
    train: Corpus,
    dev: Option<Corpus>,
    pretrained: Pretrained,
    device: Arc<Device>,
}

/// Details of a training run, by the kind of model: the data that was left out and the rows that were initialised.
pub enum TrainingDetails {
    /// The number of sentences and tokens that were too long for the tagger.
    Tagger(Truncation),
    /// The details for a masked language model.
    MaskedLm {
        /// How the rows of the markers were initialised.
        markers: Vec<MarkerStart>,
        /// How much of the training set the model can read and mask.
        linearized: LinearizedCounts,
    },
}

impl TrainingDetails {
    /// Returns lines about what was too long for the model and how markers were initialised.
    pub fn notes(&self) -> Vec<String> {
        match self {
            Self::Tagger(truncation) => truncation.notes(),
            Self::MaskedLm { markers, linearized } => {
                describe_markers(markers).into_iter().chain(linearized.notes()).collect()
            }
        }
    }
}

/// A finished training run.
pub struct FinishedTraining {
    /// The metrics of the epochs, and the epoch that was kept.
    pub outcome: TrainingOutcome,
    /// The data that was left out and the rows that were initialised.
    pub details: TrainingDetails,
    /// The content of `run.json`.
    pub record: Map<String, Value>,
    /// Whether the card `README.md` was written.
    pub card: CardState,
}

/// A training run in an output folder.
pub struct TrainingFolder<'a> {
    job: &'a TrainingJob,
    folder: RunFolder,
    arguments: Vec<String>,
}

impl TrainingJob {
    /// Creates a training run and opens the pretrained model of the plan. Fails if a masked language model is to be
    /// trained and the pretrained one has no masked-LM head.
    pub fn new(
        kind: TrainedKind,
        train: Corpus,
        dev: Option<Corpus>,
        plan: Plan,
        models: &ModelStore,
        device: impl Into<Arc<Device>>,
    ) -> Result<Self, Error> {
        let pretrained = models.open(kind.model(&plan))?;
        if kind == TrainedKind::MaskedLm {
            pretrained.checkpoint().require_masked_lm_head()?;
        }
        Ok(Self { kind, plan, train, dev, pretrained, device: device.into() })
    }

    /// The plan.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// The training corpus.
    pub fn train(&self) -> &Corpus {
        &self.train
    }

    /// The dev set, which selects the best epoch.
    pub fn dev(&self) -> Option<&Corpus> {
        self.dev.as_ref()
    }

    /// Returns a line for each reason why the training will probably not give what the user wants: entity types that look
    /// like several tags, a model that does not know the script or the language of the data, and so many entity types that
    /// a tagger is slow.
    pub fn warnings(&self) -> Vec<String> {
        let mut warnings = type_warnings(&self.train);
        warnings.extend(coverage_warnings(&self.pretrained, "the training set", &self.train));
        if self.kind == TrainedKind::Tagger {
            warnings.extend(transition_warning(&self.train, self.plan.tagger.head));
        }
        warnings
    }

    /// Everything that can change the result. The content of the pretrained model is included, but not its name.
    pub(crate) fn identity(&self) -> Result<Identity, Error> {
        let mut plan = self.plan.clone();
        plan.model.masked_lm.clear();
        plan.model.tagger.clear();
        let settings = toml::Table::try_from(&plan).expect("a plan is a table");
        let identity = Identity::new(self.kind.command(), self.device.arithmetic(), &settings);
        let identity = identity.with_content("pretrained model", self.pretrained.fingerprint()?);
        Ok(identity.with_gold(&self.train, self.dev.as_ref()))
    }

    /// Opens an output folder. With `force`, the training run replaces the content of the folder. Nothing is changed
    /// on disk before [`TrainingFolder::run`].
    ///
    /// # Errors
    /// Without `force`, if the folder contains another run or other files.
    pub fn open_folder(&self, dir: &Path, force: bool) -> Result<TrainingFolder<'_>, Error> {
        let folder = RunFolder::open(dir, self.identity()?, force)?;
        Ok(TrainingFolder { job: self, folder, arguments: Vec::new() })
    }

    /// Trains, and saves the model.
    fn train_into(
        &self,
        dir: &Path,
        run: &mut Run<'_>,
    ) -> Result<(TrainingOutcome, TrainingDetails), Error> {
        let (plan, device) = (&self.plan, &*self.device);
        match self.kind {
            TrainedKind::Tagger => {
                let (stage, dev) = (&mut run.stage(self.kind.stage()), self.dev.as_ref());
                let (model, train) = (&self.pretrained, &self.train);
                let trained = TaggerModel::train(model, train, dev, &plan.tagger, device, stage)?;
                trained.tagger.save(dir)?;
                Ok((trained.outcome, TrainingDetails::Tagger(trained.truncation)))
            }
            TrainedKind::MaskedLm => {
                let gold = Gold { train: &self.train, dev: self.dev.as_ref() };
                let tuned = tune(gold, plan, &self.pretrained, device, run)?;
                tuned.lm.save(dir)?;
                let outcome =
                    tuned.outcome.ok_or(Error::NothingToFinetune { method: plan.method.name() })?;
                let linearized = tuned.linearized.counts(&self.train, 0);
                let details = TrainingDetails::MaskedLm { markers: tuned.markers, linearized };
                Ok((outcome, details))
            }
        }
    }

    /// Returns the card of the trained model.
    fn describe(
        &self,
        outcome: &TrainingOutcome,
        details: &TrainingDetails,
        arguments: &[String],
    ) -> String {
        let (kind, plan) = (self.kind, &self.plan);
        let (train, dev) = (&self.train, self.dev.as_ref());
        model_card(&ModelCard { kind, plan, train, dev, outcome, details, arguments })
    }

    fn record(
        &self,
        outcome: &TrainingOutcome,
        details: &TrainingDetails,
        seconds: f64,
    ) -> Map<String, Value> {
        let mut record = Map::new();
        let mut put = |key: &str, value: Value| record.insert(key.to_owned(), value);
        put("melm", env!("CARGO_PKG_VERSION").into());
        put("command", self.kind.command().into());
        put("seed", self.plan.seed.into());
        put("train", data_record(&self.train));
        put("dev", self.dev.as_ref().map_or(Value::Null, data_record));
        put("model", self.kind.model(&self.plan).into());
        put("device", self.device.to_string().into());
        put("updates", outcome.n_steps.into());
        put("epochs", outcome.epochs.len().into());
        put("best", json!(outcome.best));
        match details {
            TrainingDetails::Tagger(truncation) => {
                put("windowed_sentences", truncation.n_windowed.into());
                put("left_out_sentences", truncation.n_left_out.into());
                put("cut_tokens", truncation.n_cut_tokens.into());
            }
            TrainingDetails::MaskedLm { linearized, .. } => {
                put("windowed_sentences", linearized.n_windowed.into());
                put("left_out_mentions", linearized.n_left_out.into());
            }
        }
        put("seconds", json!((seconds * 10.0).round() / 10.0));
        record
    }
}

impl TrainingFolder<'_> {
    /// Sets the arguments of the command `melm`, so that a person can repeat the run. They are recorded in `run.json` and
    /// in the card. Programs that call the library leave them out.
    #[must_use]
    pub fn with_arguments(mut self, arguments: &[String]) -> Self {
        self.arguments = arguments.to_vec();
        self
    }

    /// Returns the training run if it is finished in the folder.
    ///
    /// # Errors
    /// If the record of the run names a file that is not in its folder, or one that is missing.
    pub fn finished(&self) -> Result<Option<FinishedRun>, Error> {
        self.folder.tidy();
        let finished = self.folder.finished()?;
        match finished.as_ref().and_then(|run| run.missing.as_ref()) {
            Some(name) => Err(Error::ResultMissing { path: self.folder.dir().join(name) }),
            None => Ok(finished),
        }
    }

    /// Starts or resumes the training run in the folder, and writes all results. `seconds` returns the seconds since
    /// the start of the program, which are recorded in `run.json`.
    pub fn run(
        &self,
        observer: Observer<'_>,
        seconds: &dyn Fn() -> f64,
    ) -> Result<FinishedTraining, Error> {
        let (job, dir) = (self.job, self.folder.dir());
        let _lock = self.folder.begin(&[])?;
        let seed = Seed(job.plan.seed);
        let mut run = Run { seed, folder: Some(self.folder.work()), observer };
        let (outcome, details) = job.train_into(dir, &mut run)?;
        let metrics = self.folder.work().join(job.kind.stage()).join("metrics.jsonl");
        let metrics = read_sealed(&metrics)?.unwrap_or_default();
        write_whole(&dir.join("metrics.jsonl"), metrics.as_bytes())?;
        write_whole(&dir.join("plan.toml"), job.plan.to_toml().as_bytes())?;
        let card = write_card(dir, &job.describe(&outcome, &details, &self.arguments))?;
        let mut record = job.record(&outcome, &details, seconds());
        if !self.arguments.is_empty() {
            record.insert("arguments".to_owned(), json!(self.arguments));
        }
        record.insert("files".to_owned(), json!(checksums(&result_files(dir)?)?));
        self.folder.finish(record.clone())?;
        Ok(FinishedTraining { outcome, details, record, card })
    }
}

/// Returns the files of a trained model: its weights, its configuration and its tokenizer. The card may be changed.
fn result_files(dir: &Path) -> Result<Vec<PathBuf>, Error> {
    let mut files = weight_files(dir)?;
    let others = [
        "config.json",
        "metrics.jsonl",
        "plan.toml",
        "tagger.json",
        "tokenizer.json",
        "tokenizer_config.json",
    ];
    files.extend(others.map(|name| dir.join(name)).into_iter().filter(|path| path.exists()));
    Ok(files)
}
