//! The report on a file together with its problems.

use serde::Serialize;

use super::Report;
use crate::error::Error;

/// The contents of a file and what is wrong in it: one file of `melm check --json`.
#[derive(Debug, Clone, Serialize)]
pub struct CheckedFile {
    /// The contents.
    #[serde(flatten)]
    pub report: Report,
    /// The first problems, by line.
    pub problems: Vec<FileProblem>,
    /// The number of all problems.
    pub n_problems: usize,
}

/// A problem of a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FileProblem {
    /// The line, from 1.
    pub line: usize,
    /// What is wrong.
    pub problem: String,
}

impl CheckedFile {
    /// Joins the report on a file with the error that lists its problems, if it has any.
    pub fn new(report: Report, found: Option<&Error>) -> Self {
        let Some(Error::Data { problems, .. }) = found else {
            return Self { report, problems: Vec::new(), n_problems: 0 };
        };
        let first = problems.first().iter();
        let listed = first.map(|p| FileProblem { line: p.line, problem: p.fault.to_string() });
        Self { report, problems: listed.collect(), n_problems: problems.len() }
    }
}
