//! Picking that is ready to start: data, plan, opened model and device.

use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::Arc;

use melm_nn::device::Device;
use melm_text::{Corpus, LeftOut, UnlabelledText};

use super::result::Picked;
use super::{PickData, panel_plan, pick_sentences};
use crate::Error;
use crate::augment::{Estimate, Gold, PanelWork, TextToLabel};
use crate::models::Pretrained;
use crate::plan::Plan;
use crate::random::Seed;
use crate::run_folder::{Identity, RunFolder};
use crate::stage::{Observer, Run};

/// Picking that is ready to start: its plan is checked and its model is open. [`super::Pick::prepare`] creates it.
pub struct PickJob {
    pub(super) plan: Plan,
    pub(super) n: NonZeroUsize,
    pub(super) train: Corpus,
    pub(super) dev: Option<Corpus>,
    pub(super) text: TextToLabel,
    pub(super) tagger: Pretrained,
    pub(super) device: Arc<Device>,
}

/// The folder of the state of an unfinished run.
pub struct PickFolder<'a> {
    job: &'a PickJob,
    folder: RunFolder,
}

impl PickJob {
    /// The plan.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// The labelled sentences.
    pub fn train(&self) -> &Corpus {
        &self.train
    }

    /// The dev set, which selects the best epochs.
    pub fn dev(&self) -> Option<&Corpus> {
        self.dev.as_ref()
    }

    /// The text, without the sentences that were left out.
    pub fn text(&self) -> &UnlabelledText {
        &self.text.text
    }

    /// The numbers of sentences that were left out of the text, because they are known or repeat another.
    pub fn left_out(&self) -> LeftOut {
        self.text.left_out
    }

    /// The pretrained model of the taggers.
    pub fn tagger(&self) -> &Pretrained {
        &self.tagger
    }

    /// Runs in memory: an interrupted run cannot resume.
    pub fn run(&self, observer: Observer<'_>) -> Result<Picked, Error> {
        self.run_with(&mut Run { seed: Seed(self.plan.seed), folder: None, observer })
    }

    /// Opens the folder of the state of this run, so that an interrupted run resumes. With `force`, the run starts from the
    /// beginning. Nothing is changed on disk before [`PickFolder::run`].
    ///
    /// # Errors
    /// Without `force`, if the folder contains another run or other files.
    pub fn open_folder(&self, dir: &Path, force: bool) -> Result<PickFolder<'_>, Error> {
        let folder = RunFolder::open(dir, self.identity()?, force)?;
        Ok(PickFolder { job: self, folder })
    }

    /// Estimates time and memory. `seconds` is a clock: it returns the seconds since some fixed moment.
    pub fn estimate(&self, seconds: &dyn Fn() -> f64) -> Estimate {
        let (train, dev) = (&self.train, self.dev.as_ref());
        let gold = Gold { train, dev };
        let plan = panel_plan(&self.plan);
        let work = PanelWork { plan: &plan, gold, text: &self.text, n_drafts: 0.0 };
        work.estimate(&self.tagger, &self.device, seconds)
    }

    fn run_with(&self, run: &mut Run<'_>) -> Result<Picked, Error> {
        let gold = Gold { train: &self.text.gold, dev: self.dev.as_ref() };
        let data = PickData { gold, text: &self.text.sentences, n: self.n };
        let picked = pick_sentences(data, &self.plan, &self.tagger, &self.device, run, None)?;
        Ok(Picked::new(picked, self.text.gold.clone(), self.text.text.clone(), self.text.left_out))
    }

    /// Everything that the votes of the panel depend on. Which of the sentences are picked does not matter: votes are the
    /// same for any number and any settings of the section `pick`.
    fn identity(&self) -> Result<Identity, Error> {
        let mut plan = toml::Table::try_from(panel_plan(&self.plan)).expect("a plan is a table");
        plan.retain(|key, _| ["seed", "self_training", "tagger"].contains(&key));
        let identity = Identity::new("pick", self.device.arithmetic(), &plan)
            .with_content("pretrained model", self.tagger.fingerprint()?)
            .with_gold(&self.train, self.dev.as_ref());
        Ok(identity.with_hash_of("unlabelled text", |hash| self.text.add_to(hash)))
    }
}

impl PickFolder<'_> {
    /// Picks sentences. Continues after the last tagger whose votes are saved.
    pub fn run(&self, observer: Observer<'_>) -> Result<Picked, Error> {
        let _lock = self.folder.begin(&[])?;
        let folder = Some(self.folder.work());
        self.job.run_with(&mut Run { seed: Seed(self.job.plan.seed), folder, observer })
    }

    /// Removes the folder. Call this when the result is saved.
    pub fn remove(self) -> Result<(), Error> {
        let dir = self.folder.dir();
        match std::fs::remove_dir_all(dir) {
            Err(source) if source.kind() != std::io::ErrorKind::NotFound => {
                Err(Error::Write { path: dir.to_path_buf(), source })
            }
            _ => Ok(()),
        }
    }
}
