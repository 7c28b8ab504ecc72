//! Scores as JSON.

use std::collections::BTreeMap;

use serde::Serialize;

use super::{Counts, Rates, Scores, Weight};

/// Scores in the form of `melm score --json`. Rates are fractions from 0 to 1.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ScoresJson {
    f1: f64,
    precision: f64,
    recall: f64,
    support: u64,
    predicted: u64,
    correct: u64,
    #[serde(rename = "macro")]
    equal: Rates,
    weighted: Rates,
    types: BTreeMap<String, TypeJson>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
struct TypeJson {
    #[serde(flatten)]
    rates: Rates,
    support: u64,
    predicted: u64,
    correct: u64,
}

impl TypeJson {
    fn new(counts: Counts) -> Self {
        let Counts { gold: support, predicted, correct } = counts;
        Self { rates: counts.rates(), support, predicted, correct }
    }
}

impl Scores {
    /// Returns the scores in the form of `melm score --json`.
    pub fn to_json(&self) -> ScoresJson {
        let micro = self.micro();
        let Rates { precision, recall, f1 } = micro.rates();
        let name = |entity_type| self.types().display_name(entity_type).to_owned();
        let by_type = self.by_type().into_iter();
        ScoresJson {
            f1,
            precision,
            recall,
            support: micro.gold,
            predicted: micro.predicted,
            correct: micro.correct,
            equal: self.mean(Weight::Equal),
            weighted: self.mean(Weight::Support),
            types: by_type.map(|(t, counts)| (name(t), TypeJson::new(counts))).collect(),
        }
    }
}
