//! Reports on runs: reads the folder of `melm augment`, `melm trial` or `melm reproduce`, and makes one page from it.
//!
//! [`Report::read`] reads a folder. The fields of [`Report`] are the numbers, which `melm report --json` prints.
//! [`Report::html`] returns the page: one HTML file without references to other files, at most [`MAX_BYTES`] long.
//! The page shows the numbers of the same value, so both always agree.
//!
//! ```no_run
//! let report = melm_report::Report::read("more")?;
//! std::fs::write("report.html", report.html())?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! | module | content |
//! | --- | --- |
//! | `folder` | finds out what kind of folder it is, and reads its files |
//! | `gold`, `candidate`, `segment` | gold sentences; drafts and labelled sentences; their differences to the source |
//! | `numbers` | counts: the funnel, mentions by type, the choices of the filters |
//! | `suspect` | gold sentences that may be wrong |
//! | `curve`, `chart` | losses and scores of trainings; line charts as SVG |
//! | `experiment` | tables of a trial or an experiment |
//! | `page` | the HTML page |

mod augmented;
mod candidate;
mod chart;
mod command;
mod curve;
mod error;
mod experiment;
mod folder;
mod gold;
mod numbers;
mod page;
mod segment;
mod suspect;
mod visible;

pub use candidate::{Candidate, Objection, Origin};
pub use curve::{Chart, Point, Series};
pub use error::Error;
pub use experiment::{Difference, Score, ScoreRow, ScoreTable};
pub use numbers::{Choices, Funnel, FunnelStep, Highlights, StepKind, TypeCounts};
pub use segment::Segment;
pub use suspect::{GoldCheck, Suspect};

use std::path::Path;

use serde::Serialize;

/// The page has at most this many bytes.
pub const MAX_BYTES: usize = 2_000_000;

/// The page shows at most this many drafts and labelled sentences. Above, it shows a sample.
pub const MAX_CANDIDATES: usize = 10_000;

/// The command that made a folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// `melm augment`
    Augment,
    /// `melm trial`
    Trial,
    /// `melm reproduce`
    Reproduce,
}

impl Kind {
    /// The name of the command.
    pub fn name(self) -> &'static str {
        match self {
            Self::Augment => "augment",
            Self::Trial => "trial",
            Self::Reproduce => "reproduce",
        }
    }
}

/// A name and a value, for example the method of a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Fact {
    /// The name.
    pub name: String,
    /// The value.
    pub value: String,
}

/// Everything that the page shows. Serialised, it is the output of `melm report --json`.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// The command that made the folder.
    pub kind: Kind,
    /// The folder, as it was passed.
    pub folder: String,
    /// The version of the program that made the folder.
    pub melm: String,
    /// Identifies the run. The browser stores decisions under this key.
    pub key: String,
    /// What was done: data, method, models, device, time.
    pub facts: Vec<Fact>,
    /// The conclusion in one or two sentences.
    pub verdict: String,
    /// The command that repeats the run, as one line for a shell.
    pub command: String,
    /// True if the command is the recorded one. False if it was put together from the files of the folder.
    pub is_recorded_command: bool,
    /// What the page cannot show, and why.
    pub notes: Vec<String>,
    /// How many candidates are left after each step, for drafts and for unlabelled text.
    pub funnels: Vec<Funnel>,
    /// Mentions by entity type, before and after.
    pub mentions: Vec<TypeCounts>,
    /// The numbers of shown drafts and labelled sentences, by the values of the page's filters.
    pub shown: Choices,
    /// The ids of the candidates that are listed first.
    pub highlights: Highlights,
    /// Gold sentences whose tags may be wrong; `None` if gold was not checked.
    pub gold_check: Option<GoldCheck>,
    /// Losses and scores of all trainings.
    pub charts: Vec<Chart>,
    /// The tables of an experiment.
    pub tables: Vec<ScoreTable>,
    /// The drafts and labelled sentences that the page shows.
    #[serde(skip)]
    pub candidates: Vec<Candidate>,
    /// The names of the entity types. Segments refer to them by index.
    #[serde(skip)]
    pub types: Vec<String>,
}

impl Report {
    /// Reads a folder that `melm augment`, `melm trial` or `melm reproduce` has written.
    ///
    /// # Errors
    /// If the folder was made by another command, is not finished, or has a file that cannot be read.
    pub fn read(dir: impl AsRef<Path>) -> Result<Self, Error> {
        folder::read(dir.as_ref())
    }

    /// Returns the page. If the page with all candidates has more than [`MAX_BYTES`], it contains fewer of them and
    /// says so.
    pub fn html(&self) -> String {
        page::html(self)
    }

    /// Returns the numbers as JSON, for programs.
    pub fn json(&self) -> serde_json::Value {
        serde_json::to_value(self).expect("a report has only JSON values")
    }
}
