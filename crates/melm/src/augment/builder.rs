//! The settings of a run and their defaults.

use std::sync::Arc;

use melm_nn::device::Device;
use melm_text::{Corpus, UnlabelledText};

use super::algorithm::Gold;
use super::job::{AugmentJob, JobData};
use super::result::Augmented;
use super::silver::Silver;
use super::text::TextToLabel;
use crate::Error;
use crate::codemix::MentionVectors;
use crate::methods::Method;
use crate::models::ModelStore;
use crate::names::{NameList, Names};
use crate::plan::{Plan, PlanBuilder};
use crate::stage::{Control, Event, OwnedObserver, ignore_events};

/// Augments a corpus.
///
/// Only the training corpus is required. By default the embedded model `mini` generates and judges the drafts, with the
/// settings of the preset `best`, seed 1, on all cores. A run prints nothing; [`Self::on_event`] shows its progress.
///
/// ```no_run
/// use melm::stage::{Control, Event};
/// use melm::{Augment, Corpus, Method};
///
/// # fn main() -> Result<(), melm::Error> {
/// let augmented = Augment::new(Corpus::open("train.conll")?)
///     .dev(Corpus::open("dev.conll")?)
///     .method(Method::Melm)
///     .set("finetune.budget=20 epochs") // any key of the plan
///     .on_event(|stage, event| {
///         if let Event::Progress { done, of } = event {
///             println!("{stage}: {done} of {of}");
///         }
///         Control::Continue
///     })
///     .run()?;
/// println!("{} of {} drafts kept", augmented.summary().kept, augmented.summary().drafts);
/// # Ok(())
/// # }
/// ```
pub struct Augment {
    train: Corpus,
    dev: Option<Corpus>,
    text: Option<UnlabelledText>,
    silver: Vec<Silver>,
    held_out: Vec<UnlabelledText>,
    names: Vec<NameList>,
    plan: PlanChoice,
    models: ModelStore,
    vectors: Option<MentionVectors>,
    device: Option<Arc<Device>>,
    observer: OwnedObserver,
}

/// A complete plan, or a preset with changes. The values of a preset depend on the sizes of the models.
enum PlanChoice {
    Complete(Box<Plan>),
    Changes(PlanBuilder),
}

impl Augment {
    /// Creates a run with default settings. The corpus needs at least one mention.
    pub fn new(train: Corpus) -> Self {
        Self {
            train,
            dev: None,
            text: None,
            silver: Vec::new(),
            held_out: Vec::new(),
            names: Vec::new(),
            plan: PlanChoice::Changes(PlanBuilder::default()),
            models: ModelStore::new(),
            vectors: None,
            device: None,
            observer: Box::new(ignore_events),
        }
    }

    /// Sets the dev set, which selects the best epoch of each training run. Without a dev set, the last epoch is
    /// kept.
    #[must_use]
    pub fn dev(mut self, dev: Corpus) -> Self {
        self.dev = Some(dev);
        self
    }

    /// Adds unlabelled text. A panel of taggers labels its sentences, and those that the panel agrees on are added to
    /// the augmented set. Sentences that repeat a sentence of the training set, of the dev set, of a held-out text
    /// ([`Self::held_out`]) or of the text itself are left out.
    ///
    /// If the training set has languages ([`Corpus::from_languages`]), every sentence of the text must have one too. It
    /// may be a language without gold: the panel then labels a language that it was not trained on.
    #[must_use]
    pub fn unlabelled(mut self, text: UnlabelledText) -> Self {
        self.text = Some(UnlabelledText::join(self.text.into_iter().chain([text])));
        self
    }

    /// Adds sentences that somebody else labelled. The panel that labels unlabelled text also decides which of these are
    /// kept, with which of their mentions: see the section `silver` of the plan. Known and repeated sentences are left out,
    /// as for unlabelled text.
    #[must_use]
    pub fn silver(mut self, silver: Silver) -> Self {
        self.silver.push(silver);
        self
    }

    /// Adds sentences, such as a test set, that must not be in the augmented set. They are left out of the unlabelled
    /// text. Drafts are not compared with them.
    #[must_use]
    pub fn held_out(mut self, text: UnlabelledText) -> Self {
        self.held_out.push(text);
        self
    }

    /// Adds a list of names. The methods [`Method::MelmBoth`] and [`Method::LabelWise`] draw a share of the new mentions
    /// (`names.share` of the plan) from the lists of their entity type. [`Self::run`] fails if the method is another one,
    /// or if the training set does not have the entity type of the list.
    #[must_use]
    pub fn names(mut self, list: NameList) -> Self {
        self.names.push(list);
        self
    }

    /// Sets the seed of all random choices; 1 by default. The same seed gives the same result.
    #[must_use]
    pub fn seed(self, seed: u64) -> Self {
        self.set(&format!("seed={seed}"))
    }

    /// Sets the method that makes drafts; [`Method::MelmBoth`] by default.
    #[must_use]
    pub fn method(self, method: Method) -> Self {
        self.set(&format!("method={}", method.name()))
    }

    /// Sets the number of rounds; 3 by default. A round makes one draft of each sentence, two with
    /// [`Method::MelmBoth`].
    #[must_use]
    pub fn rounds(self, rounds: u32) -> Self {
        self.set(&format!("generate.rounds={rounds}"))
    }

    /// Sets the pretrained model of both the generator and the judge: `mini` (default), a folder, or a name on the
    /// Hugging Face hub. Names need a [`ModelStore`] with a hub: see [`Self::models`].
    #[must_use]
    pub fn model(self, model: &str) -> Self {
        let set = |key| format!("{key}={model}");
        self.set(&set("model.masked_lm")).set(&set("model.tagger"))
    }

    /// Sets one key of the plan from `key=value`; keys of sections are written `section.key`. [`Plan`] documents the
    /// keys. [`Self::run`] fails if the key or the value is invalid.
    #[must_use]
    pub fn set(mut self, edit: &str) -> Self {
        let builder = match self.plan {
            PlanChoice::Changes(builder) => builder,
            PlanChoice::Complete(plan) => {
                PlanBuilder::default().merge_toml("the plan", &plan.to_toml())
            }
        };
        self.plan = PlanChoice::Changes(builder.set(edit));
        self
    }

    /// Sets the whole plan. Later calls of [`Self::set`] and similar methods change this plan.
    #[must_use]
    pub fn plan(mut self, plan: Plan) -> Self {
        self.plan = PlanChoice::Complete(Box::new(plan));
        self
    }

    /// Sets the store that opens models. The default store opens only `mini` and folders.
    #[must_use]
    pub fn models(mut self, models: ModelStore) -> Self {
        self.models = models;
        self
    }

    /// Sets the word vectors, for methods that compare mentions by similarity.
    #[must_use]
    pub fn vectors(mut self, vectors: MentionVectors) -> Self {
        self.vectors = Some(vectors);
        self
    }

    /// Sets the device. By default the CPU with all cores is used.
    #[must_use]
    pub fn device(mut self, device: impl Into<Arc<Device>>) -> Self {
        self.device = Some(device.into());
        self
    }

    /// Sets the observer, which receives the name of each stage and its events, and can stop the run.
    #[must_use]
    pub fn on_event(
        mut self,
        observer: impl FnMut(&'static str, Event<'_>) -> Control + Send + 'static,
    ) -> Self {
        self.observer = Box::new(observer);
        self
    }

    /// Builds the plan and opens the models, but does not start the run. Use this for runs in a folder
    /// ([`AugmentJob::open_folder`]) and for time estimates ([`AugmentJob::estimate`]).
    pub fn prepare(self) -> Result<AugmentJob, Error> {
        Ok(self.into_parts()?.0)
    }

    /// Makes drafts, judges them, and returns the augmented corpus.
    pub fn run(self) -> Result<Augmented, Error> {
        let (job, mut observer) = self.into_parts()?;
        job.run(&mut observer)
    }

    fn into_parts(self) -> Result<(AugmentJob, OwnedObserver), Error> {
        let plan = match self.plan {
            PlanChoice::Complete(plan) => *plan,
            PlanChoice::Changes(builder) => {
                let has_text = self.text.is_some() || !self.silver.is_empty();
                let needs = |plan: &Plan| AugmentJob::needed_models(plan, has_text);
                self.models.plan(&builder, needs)?
            }
        };
        let device = self.device.unwrap_or_else(|| Arc::new(Device::all_cores()));
        let gold = Gold { train: &self.train, dev: self.dev.as_ref() };
        let text = match self.text {
            None if self.silver.is_empty() => None,
            text => {
                let text = text.unwrap_or_default();
                Some(TextToLabel::new(&text, &self.silver, gold, &self.held_out)?)
            }
        };
        let names = (!self.names.is_empty()).then(|| Names::new(&self.names, &self.train));
        let (names, vectors) = (names.transpose()?, self.vectors);
        let data = JobData { train: self.train, dev: self.dev, text, names, vectors };
        let job = AugmentJob::new(data, plan, &self.models, device)?;
        Ok((job, self.observer))
    }
}
