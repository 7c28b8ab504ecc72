//! The report on a file together with its problems, and with how it differs from the first file.

use std::collections::BTreeMap;

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
    /// How the file differs from the first file, if it does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub difference: Option<SplitDifference>,
}

/// How a file, such as a dev set, differs from the first file, which is usually the training set.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SplitDifference {
    /// The name of the first file.
    pub first_file: String,
    /// The scheme of the first file, if no scheme fits both files.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_scheme: Option<&'static str>,
    /// The number of mentions of each entity type that the first file does not have.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub new_types: BTreeMap<String, usize>,
}

impl SplitDifference {
    /// Compares a file with the first one. Returns `None` if its scheme and its entity types are those of the first file. A
    /// file without mentions fits every file.
    pub fn new(first: &Report, file: &Report) -> Option<Self> {
        let fits = |scheme: &str, report: &Report| {
            report.scheme == scheme || report.also_valid_as.contains(&scheme)
        };
        let is_same = file.mentions.is_empty()
            || first.mentions.is_empty()
            || fits(first.scheme, file)
            || file.also_valid_as.iter().chain([&file.scheme]).any(|scheme| fits(scheme, first));
        let is_new = |(name, _): &(&String, &usize)| !first.mentions.contains_key(*name);
        let new_types: BTreeMap<_, _> =
            file.mentions.iter().filter(is_new).map(|(name, n)| (name.clone(), *n)).collect();
        (!is_same || !new_types.is_empty()).then(|| Self {
            first_file: first.file.clone(),
            first_scheme: (!is_same).then_some(first.scheme),
            new_types,
        })
    }
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
            return Self { report, problems: Vec::new(), n_problems: 0, difference: None };
        };
        let first = problems.first().iter();
        let listed = first.map(|p| FileProblem { line: p.line, problem: p.fault.to_string() });
        let problems_listed = listed.collect();
        Self { report, problems: problems_listed, n_problems: problems.len(), difference: None }
    }

    /// Compares the file with the first file of the command.
    #[must_use]
    pub fn compared_with(mut self, first: Option<&CheckedFile>) -> Self {
        self.difference = first.and_then(|first| SplitDifference::new(&first.report, &self.report));
        self
    }
}
