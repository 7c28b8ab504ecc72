//! Span scores: precision, recall and F1 over exact mentions.
//!
//! The default reads tags leniently, as conlleval and seqeval do; [`Reading::Strict`] reads them
//! as seqeval's strict mode does, where a mention that is malformed in its scheme does not count.

mod files;
mod strict;

pub use files::{File, strict_scheme};

use crate::mention::{Mention, mentions};
use crate::scheme::Scheme;
use crate::tag::{EntityType, EntityTypes, Tag};

/// How mentions are read off tags.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reading {
    /// As conlleval and seqeval's default: whatever the tags, they mean something.
    Lenient,
    /// As seqeval's strict mode: only what is well formed in the scheme counts.
    Strict(Scheme),
}

impl Reading {
    /// Reads the mentions of a sentence into `out`.
    fn read(self, tags: &[Tag], out: &mut Vec<Mention>) {
        out.clear();
        match self {
            Reading::Lenient | Reading::Strict(Scheme::Io) => out.extend(mentions(tags)),
            Reading::Strict(scheme) => strict::mentions(tags, scheme, out),
        }
    }
}

/// How many mentions there were, were predicted, and were predicted exactly.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    /// Mentions in the gold tags: the support.
    pub gold: u64,
    /// Mentions in the predicted tags.
    pub predicted: u64,
    /// Mentions in both.
    pub correct: u64,
}

/// Precision, recall and F1, as fractions; 0 where there is nothing to divide by.
#[derive(Debug, Clone, Copy, PartialEq, Default, serde::Serialize)]
pub struct Rates {
    /// Correct of the predicted.
    pub precision: f64,
    /// Correct of the gold.
    pub recall: f64,
    /// Their harmonic mean.
    pub f1: f64,
}

impl Counts {
    /// The rates of these counts.
    pub fn rates(self) -> Rates {
        let ratio =
            |part: u64, whole: u64| if whole == 0 { 0.0 } else { part as f64 / whole as f64 };
        let (precision, recall) =
            (ratio(self.correct, self.predicted), ratio(self.correct, self.gold));
        let sum = precision + recall;
        let f1 = if sum == 0.0 { 0.0 } else { 2.0 * precision * recall / sum };
        Rates { precision, recall, f1 }
    }
}

/// Scores of many sentences, by entity type.
///
/// ```
/// use melm_text::{EntityTypes, Scores, score::Reading};
/// let mut types = EntityTypes::default();
/// let gold = ["B-PER", "I-PER", "O"].map(|t| types.parse(t).unwrap());
/// let predicted = ["B-PER", "O", "O"].map(|t| types.parse(t).unwrap());
/// let mut scores = Scores::new(Reading::Lenient);
/// scores.add(&gold, &predicted);
/// assert_eq!(scores.micro().rates().f1, 0.0); // half a mention is no mention
/// ```
#[derive(Debug, Clone)]
pub struct Scores {
    reading: Reading,
    by_type: Vec<Counts>,
    gold: Vec<Mention>,
    predicted: Vec<Mention>,
}

impl Scores {
    /// Nothing counted yet.
    pub fn new(reading: Reading) -> Self {
        Self { reading, by_type: Vec::new(), gold: Vec::new(), predicted: Vec::new() }
    }

    /// Counts one sentence. Both tag sequences use the same [`EntityTypes`] and are equally long.
    pub fn add(&mut self, gold: &[Tag], predicted: &[Tag]) {
        debug_assert_eq!(gold.len(), predicted.len());
        self.reading.read(gold, &mut self.gold);
        self.reading.read(predicted, &mut self.predicted);
        // Both lists are ordered by start and no two mentions of one list share a start.
        let mut rest = self.predicted.as_slice();
        for mention in &self.gold {
            let start = mention.tokens.start;
            rest = &rest[rest.partition_point(|p| p.tokens.start < start)..];
            let counts = slot(&mut self.by_type, mention.entity_type);
            counts.gold += 1;
            counts.correct += u64::from(rest.first() == Some(mention));
        }
        for mention in &self.predicted {
            slot(&mut self.by_type, mention.entity_type).predicted += 1;
        }
    }

    /// The counts of every type that occurs in gold or prediction, by name.
    pub fn by_type(&self, types: &EntityTypes) -> Vec<(EntityType, Counts)> {
        types
            .sorted()
            .into_iter()
            .filter_map(|t| Some((t, *self.by_type.get(t.index())?)))
            .filter(|(_, counts)| counts.gold + counts.predicted > 0)
            .collect()
    }

    /// All types together.
    pub fn micro(&self) -> Counts {
        self.by_type.iter().fold(Counts::default(), |sum, c| Counts {
            gold: sum.gold + c.gold,
            predicted: sum.predicted + c.predicted,
            correct: sum.correct + c.correct,
        })
    }

    /// The mean over types; `weight` by support, or every type the same.
    pub fn mean(&self, weight: Weight) -> Rates {
        let mut sum = Rates::default();
        let mut total = 0.0;
        for counts in self.by_type.iter().filter(|c| c.gold + c.predicted > 0) {
            let rates = counts.rates();
            let weight = match weight {
                Weight::Equal => 1.0,
                Weight::Support => counts.gold as f64,
            };
            sum.precision += weight * rates.precision;
            sum.recall += weight * rates.recall;
            sum.f1 += weight * rates.f1;
            total += weight;
        }
        if total == 0.0 {
            return Rates::default();
        }
        Rates { precision: sum.precision / total, recall: sum.recall / total, f1: sum.f1 / total }
    }
}

/// How types are weighed in a mean.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Weight {
    /// Macro: every type counts the same.
    Equal,
    /// Weighted: by its gold mentions.
    Support,
}

fn slot(by_type: &mut Vec<Counts>, entity_type: EntityType) -> &mut Counts {
    if by_type.len() <= entity_type.index() {
        by_type.resize(entity_type.index() + 1, Counts::default());
    }
    &mut by_type[entity_type.index()]
}
