//! One stage of a run: its random streams, its folder, and whom it tells how far it is.

use std::path::{Path, PathBuf};

use crate::fit::Epoch;
use crate::run::{Key, Seed};

/// What a stage has to tell.
#[derive(Clone, Copy, Debug)]
pub enum Event<'a> {
    /// So much was done by an earlier run.
    Resumed {
        /// Done before.
        done: u64,
        /// Of so much.
        of: u64,
    },
    /// So much is done.
    Progress {
        /// Done by now.
        done: u64,
        /// Of so much.
        of: u64,
    },
    /// An epoch has ended.
    Epoch(&'a Epoch),
}

/// What the listener wants next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wish {
    /// Go on.
    GoOn,
    /// Write the state to disk and go on: time has passed since it was written last.
    Save,
    /// Write the state to disk and stop.
    Stop,
}

/// Hears the name of a stage and what it has to tell.
pub type Listener<'a> = &'a mut dyn FnMut(&'static str, Event<'_>) -> Wish;

/// A run: a seed, a folder, and somebody who listens.
pub struct Run<'a> {
    /// The seed of everything random.
    pub seed: Seed,
    /// Where stages keep what a later run goes on from, each in a folder of its own; without one nothing is kept.
    pub folder: Option<PathBuf>,
    /// Who is told.
    pub listener: Listener<'a>,
}

impl Run<'_> {
    /// Begins a stage, or goes on with it.
    pub fn stage(&mut self, name: &'static str) -> Stage<'_> {
        self.stage_as(name, name)
    }

    /// The same, drawing what the stage called `stream` would draw: they do the same work.
    pub fn stage_as(&mut self, name: &'static str, stream: &str) -> Stage<'_> {
        let folder = self.folder.as_ref().map(|folder| folder.join(name));
        let key = self.seed.stream(stream);
        Stage { name, key, folder, listener: &mut *self.listener }
    }
}

/// A stage under way. Results depend on its key and on nothing else that it holds.
pub struct Stage<'a> {
    name: &'static str,
    key: Key,
    folder: Option<PathBuf>,
    listener: Listener<'a>,
}

impl Stage<'_> {
    /// What it is called in metrics and messages.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// The stream of everything it draws.
    pub fn key(&self) -> Key {
        self.key
    }

    /// Where it keeps what a later run goes on from, if anywhere.
    pub fn folder(&self) -> Option<&Path> {
        self.folder.as_deref()
    }

    /// Tells the listener, and what it wants.
    pub fn say(&mut self, event: Event<'_>) -> Wish {
        (self.listener)(self.name, event)
    }
}
