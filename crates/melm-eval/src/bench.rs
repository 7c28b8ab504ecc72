//! Everything that the cells of a grid have in common.

use std::collections::BTreeMap;
use std::num::NonZeroU64;
use std::path::Path;

use super::key::{Arithmetic, key};
use super::{Cell, Grid, Languages, Line, System};
use melm::augment::Method;
use melm::codemix::MentionVectors;
use melm::model::Pretrained;
use melm::plan::Plan;

/// Everything that cells have in common.
pub struct Bench<'a> {
    /// The grid.
    pub grid: &'a Grid,
    /// How often a training of so many updates is evaluated.
    pub evaluations: NonZeroU64,
    /// The data; languages without a test set are not scored on it.
    pub languages: &'a Languages,
    /// The plan of each variant. Method and seed are the cell's.
    pub plans: &'a BTreeMap<String, Plan>,
    /// The masked language model, if any method needs it.
    pub masked_lm: Option<&'a Pretrained>,
    /// Vectors of the words of all mentions, if any method compares by them.
    pub vectors: Option<&'a MentionVectors>,
    /// The tagger's encoder.
    pub tagger: &'a Pretrained,
    /// What decides results beside data and plan.
    pub arithmetic: Arithmetic,
    /// Where every tagger is kept, if anywhere.
    pub keep_taggers: Option<&'a Path>,
    /// The time in seconds since any moment.
    pub clock: &'a (dyn Fn() -> f64 + Sync),
}

impl Bench<'_> {
    /// The plan of a cell.
    pub fn plan_of(&self, cell: &Cell) -> Plan {
        let mut plan = self.plans[&cell.variant].clone();
        plan.seed = cell.seed;
        plan.method = match cell.method {
            System::Method(method) => method,
            _ => Method::Gold,
        };
        plan
    }

    /// Stands for everything that can change the result of a cell.
    pub fn key(&self, cell: &Cell) -> String {
        let plan = (&self.plans[&cell.variant], self.evaluations.get());
        key(cell, plan, self.languages, &self.arithmetic)
    }

    /// Whether lines have a cell's settings, data and test sets, be it under other coordinates.
    pub fn is_known(&self, cell: &Cell, lines: &[Line]) -> bool {
        let (key, tests) = (self.key(cell), self.tests_of(cell).collect::<Vec<_>>());
        lines.iter().any(|line| line.has(&key, &tests))
    }

    /// The languages that a cell is scored on: those whose test sets were handed in.
    pub(crate) fn tests_of<'c>(&'c self, cell: &'c Cell) -> impl Iterator<Item = &'c str> {
        let has_test = |name: &&str| self.languages.get(*name).is_some_and(|l| l.test.is_some());
        self.grid.tests_of(cell).filter(has_test)
    }

    pub(crate) fn fingerprints(&self, cell: &Cell) -> BTreeMap<String, Vec<String>> {
        let mut all: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for name in cell.languages() {
            let language = &self.languages[name];
            let both = std::iter::once(&language.train).chain(&language.dev);
            all.insert(name.to_owned(), both.map(|split| split.fingerprint.clone()).collect());
        }
        for name in self.tests_of(cell) {
            let test = self.languages[name].test.as_ref().map(|test| test.fingerprint.clone());
            all.entry(name.to_owned()).or_default().extend(test);
        }
        all
    }

    pub(crate) fn now(&self) -> f64 {
        (self.clock)()
    }
}
