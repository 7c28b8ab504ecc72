//! A stage of a run: its random stream, the folder of its saved state, and the observer it reports to.

use std::path::{Path, PathBuf};

use crate::Error;
use crate::random::{Seed, StreamKey};
use crate::training::EpochMetrics;

/// A report of a stage to the observer of its run.
#[derive(Clone, Copy, Debug)]
pub enum Event<'a> {
    /// The stage continues from its saved state.
    Resumed {
        /// The number of steps that earlier runs have done.
        done: u64,
        /// The number of all steps of the stage.
        of: u64,
    },
    /// Some steps of the stage are done.
    Progress {
        /// The number of steps done so far.
        done: u64,
        /// The number of all steps of the stage.
        of: u64,
    },
    /// A training epoch has ended.
    Epoch(&'a EpochMetrics),
    /// A batch within a step is done. The observer can stop the stage here; [`Control::Save`] has no effect.
    Batch,
}

/// The return value of an observer, which decides what the stage does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Control {
    /// Continue.
    Continue,
    /// Save the state to disk, then continue. A front end returns this from time to time.
    Save,
    /// Save the state to disk and stop with [`Error::Interrupted`].
    Stop,
}

impl Control {
    /// Fails with [`Error::Interrupted`] for [`Control::Stop`]. Meant for work that has no state to save.
    pub(crate) fn or_interrupted(self) -> Result<(), Error> {
        match self {
            Self::Continue | Self::Save => Ok(()),
            Self::Stop => Err(Error::Interrupted),
        }
    }
}

/// A callback that receives the number of steps done and their total. Its return value decides how the work
/// continues.
pub type OnProgress<'a> = &'a mut dyn FnMut(u64, u64) -> Control;

/// A callback that receives the name of a stage and an event. Its return value decides how the stage continues.
pub type Observer<'a> = &'a mut dyn FnMut(&'static str, Event<'_>) -> Control;

/// A callback for each batch within a step of a stage. It fails with [`Error::Interrupted`] to stop the stage.
pub(crate) type OnBatch<'a> = &'a mut dyn FnMut() -> Result<(), Error>;

/// An observer that is passed by value.
pub type OwnedObserver = Box<dyn FnMut(&'static str, Event<'_>) -> Control + Send>;

/// An observer that ignores every event and never stops a stage.
pub fn ignore_events(_stage: &'static str, _event: Event<'_>) -> Control {
    Control::Continue
}

/// Returns an observer for one of `n_all` equal parts of a stage, which are run one after the other. It counts the steps
/// of the parts before it (`n_before`) as done, so that `observer` sees one long stage.
pub(crate) fn observe_part(
    observer: Observer<'_>,
    n_before: u64,
    n_all: u64,
) -> impl FnMut(&'static str, Event<'_>) -> Control {
    let scale = move |done: u64, of: u64| (n_before * of + done, n_all * of);
    move |stage: &'static str, event: Event<'_>| match event {
        Event::Progress { done, of } => {
            let (done, of) = scale(done, of);
            observer(stage, Event::Progress { done, of })
        }
        Event::Resumed { done, of } => {
            let (done, of) = scale(done, of);
            observer(stage, Event::Resumed { done, of })
        }
        Event::Epoch(_) | Event::Batch => observer(stage, event),
    }
}

/// A run: the seed of its random streams, the folder of its saved state, and its observer.
pub struct Run<'a> {
    /// The seed of all random streams.
    pub seed: Seed,
    /// Each stage saves its state in a subfolder of this folder. Without a folder nothing is saved.
    pub folder: Option<PathBuf>,
    /// Receives the events of all stages.
    pub observer: Observer<'a>,
}

impl Run<'_> {
    /// Starts a stage, or continues it from its saved state.
    pub fn stage(&mut self, name: &'static str) -> Stage<'_> {
        self.stage_as(name, name)
    }

    /// Starts a stage that uses the random stream of the stage called `stream`, because both do the same work.
    pub(crate) fn stage_as(&mut self, name: &'static str, stream: &str) -> Stage<'_> {
        let folder = self.folder.as_ref().map(|folder| folder.join(name));
        let key = self.seed.stream(stream);
        Stage { name, key, folder, observer: &mut *self.observer }
    }
}

/// A stage in progress. Its results depend on its key and on no other field.
pub struct Stage<'a> {
    name: &'static str,
    key: StreamKey,
    folder: Option<PathBuf>,
    observer: Observer<'a>,
}

impl Stage<'_> {
    /// The name of the stage in metrics and messages.
    pub(crate) fn name(&self) -> &'static str {
        self.name
    }

    /// The key of the stage's random stream.
    pub(crate) fn key(&self) -> StreamKey {
        self.key
    }

    /// The folder of the stage's saved state, if the run saves state.
    pub(crate) fn folder(&self) -> Option<&Path> {
        self.folder.as_deref()
    }

    /// Reports an event to the observer and returns the observer's answer.
    pub(crate) fn report(&mut self, event: Event<'_>) -> Control {
        (self.observer)(self.name, event)
    }

    /// Reports that a batch within a step is done. Fails with [`Error::Interrupted`] if the observer stops the stage.
    pub(crate) fn batch(&mut self) -> Result<(), Error> {
        self.report(Event::Batch).or_interrupted()
    }

    /// Reports that `done` of `of` steps are done. Fails with [`Error::Interrupted`] if the observer stops the stage.
    /// Meant for stages that have no state to save.
    pub(crate) fn progress(&mut self, done: u64, of: u64) -> Result<(), Error> {
        self.report(Event::Progress { done, of }).or_interrupted()
    }
}
