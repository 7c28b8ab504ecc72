//! The settings of picking and their defaults.

use std::num::NonZeroUsize;
use std::sync::Arc;

use melm_nn::device::Device;
use melm_text::{Corpus, UnlabelledText};

use super::job::PickJob;
use super::result::Picked;
use crate::Error;
use crate::augment::{Gold, TextToLabel};
use crate::models::{ModelStore, NeededModels};
use crate::plan::{Plan, PlanBuilder};
use crate::stage::{Control, Event, OwnedObserver, ignore_events};

/// The number of sentences that are picked by default.
const DEFAULT_N: NonZeroUsize = NonZeroUsize::new(50).expect("50 is not 0");

/// Picks the sentences of a text that a person should label next.
///
/// A panel of taggers is trained on the labelled sentences and tags the text. Sentences that the taggers disagree on are
/// picked, with the tags that most of them predict. By default 50 sentences are picked, with the embedded model `mini`, the
/// settings of the preset `best` and seed 1, on all cores.
///
/// ```no_run
/// use melm::text::{TextOptions, UnlabelledText};
/// use melm::{Corpus, Pick};
/// use std::path::Path;
///
/// # fn main() -> Result<(), melm::Error> {
/// let text = UnlabelledText::open(Path::new("text.txt"), &TextOptions::default())?;
/// let picked = Pick::new(Corpus::open("train.conll")?, text).dev(Corpus::open("dev.conll")?).n(20).run()?;
/// picked.write("next.conll", None)?; // and next.conll.pick.jsonl with scores and votes
/// # Ok(())
/// # }
/// ```
pub struct Pick {
    train: Corpus,
    dev: Option<Corpus>,
    text: UnlabelledText,
    held_out: Vec<UnlabelledText>,
    n: NonZeroUsize,
    plan: PlanBuilder,
    models: ModelStore,
    device: Option<Arc<Device>>,
    observer: OwnedObserver,
}

impl Pick {
    /// Prepares picking from a text with default settings. `train` are the labelled sentences.
    ///
    /// If `train` has languages ([`Corpus::from_languages`]), every sentence of the text must have one too.
    pub fn new(train: Corpus, text: UnlabelledText) -> Self {
        Self {
            train,
            dev: None,
            text,
            held_out: Vec::new(),
            n: DEFAULT_N,
            plan: PlanBuilder::default(),
            models: ModelStore::new(),
            device: None,
            observer: Box::new(ignore_events),
        }
    }

    /// Sets the dev set, which selects the best epoch of each tagger. Its sentences are not picked.
    #[must_use]
    pub fn dev(mut self, dev: Corpus) -> Self {
        self.dev = Some(dev);
        self
    }

    /// Adds sentences, such as a test set, that must not be picked.
    #[must_use]
    pub fn held_out(mut self, text: UnlabelledText) -> Self {
        self.held_out.push(text);
        self
    }

    /// Sets the number of sentences to pick; 50 by default. 0 is taken as 1.
    #[must_use]
    pub fn n(mut self, n: usize) -> Self {
        self.n = NonZeroUsize::new(n).unwrap_or(NonZeroUsize::MIN);
        self
    }

    /// Sets the seed of all random choices; 1 by default. The same seed gives the same result.
    #[must_use]
    pub fn seed(self, seed: u64) -> Self {
        self.set(&format!("seed={seed}"))
    }

    /// Sets the pretrained model of the taggers: `mini` (default), a folder, or a name on the Hugging Face hub. Names need
    /// a [`ModelStore`] with a hub: see [`Self::models`].
    #[must_use]
    pub fn model(self, model: &str) -> Self {
        self.set(&format!("model.tagger={model}"))
    }

    /// Sets one key of the plan from `key=value`. The sections `self_training`, `tagger` and `pick` matter. [`Self::run`]
    /// fails if the key or the value is invalid.
    #[must_use]
    pub fn set(mut self, edit: &str) -> Self {
        self.plan = self.plan.set(edit);
        self
    }

    /// Sets the preset and all changes to it. Earlier calls of [`Self::set`] and similar methods have no effect.
    #[must_use]
    pub fn settings(mut self, plan: PlanBuilder) -> Self {
        self.plan = plan;
        self
    }

    /// Sets the store that opens models. The default store opens only `mini` and folders.
    #[must_use]
    pub fn models(mut self, models: ModelStore) -> Self {
        self.models = models;
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

    /// Builds the plan and opens the model, but does not start. Use this to run in a folder
    /// ([`PickJob::open_folder`]) and for time estimates ([`PickJob::estimate`]).
    ///
    /// Fails if a setting is not valid, if the model cannot be opened, or if no sentence of the text is left after those of
    /// the training set, of the dev set and of held-out texts are left out.
    pub fn prepare(self) -> Result<PickJob, Error> {
        Ok(self.into_parts()?.0)
    }

    /// Picks sentences. Fails as [`Self::prepare`] does, and if the observer stops the run.
    pub fn run(self) -> Result<Picked, Error> {
        let (job, mut observer) = self.into_parts()?;
        job.run(&mut observer)
    }

    fn into_parts(self) -> Result<(PickJob, OwnedObserver), Error> {
        let needs = |_: &Plan| NeededModels { masked_lm: false, tagger: true };
        let plan = self.models.plan(&self.plan, needs)?;
        let gold = Gold { train: &self.train, dev: self.dev.as_ref() };
        let text = TextToLabel::new(&self.text, &[], gold, &self.held_out)?;
        let tagger = self.models.open(&plan.model.tagger)?;
        let device = self.device.unwrap_or_else(|| Arc::new(Device::all_cores()));
        let job =
            PickJob { plan, n: self.n, train: self.train, dev: self.dev, text, tagger, device };
        Ok((job, self.observer))
    }
}
