//! Precision, recall and F1 over exact mentions.
//!
//! [`score()`] compares two corpora, [`Scores::from_files`] two files, and [`Scores::add`] counts
//! one sentence at a time.
//!
//! Mentions are read leniently by default, as conlleval and seqeval do. [`Reading::Strict`] reads mentions as the
//! strict mode of seqeval does: a mention that is malformed in its scheme does not count.

mod corpora;
mod files;
mod json;
mod strict;

pub use corpora::score;
pub use files::{FileInput, strict_scheme};
pub use json::ScoresJson;

use crate::mention::{Mention, mentions};
use crate::scheme::Scheme;
use crate::tag::{EntityType, EntityTypes, Tag};

/// How mentions are read from tags.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reading {
    /// As in conlleval and the default mode of seqeval: every tag sequence can be read.
    Lenient,
    /// As in the strict mode of seqeval: only mentions that are well formed in the scheme count.
    Strict(Scheme),
}

impl Reading {
    /// Replaces `out` by the mentions of a sentence.
    fn read(self, tags: &[Tag], out: &mut Vec<Mention>) {
        out.clear();
        match self {
            Reading::Lenient | Reading::Strict(Scheme::Io) => out.extend(mentions(tags)),
            Reading::Strict(scheme) => strict::push_mentions(tags, scheme, out),
        }
    }
}

/// Numbers of mentions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    /// Mentions in the gold tags: the support.
    pub gold: u64,
    /// Mentions in the predicted tags.
    pub predicted: u64,
    /// Mentions in both, with the same tokens and type.
    pub correct: u64,
}

/// Precision, recall and F1, as fractions. A ratio with a denominator of 0 is 0.
#[derive(Debug, Clone, Copy, PartialEq, Default, serde::Serialize)]
pub struct Rates {
    /// Correct mentions as a fraction of the predicted ones.
    pub precision: f64,
    /// Correct mentions as a fraction of the gold ones.
    pub recall: f64,
    /// The harmonic mean of precision and recall.
    pub f1: f64,
}

impl Counts {
    /// Precision, recall and F1.
    pub fn rates(self) -> Rates {
        let ratio =
            |part: u64, whole: u64| if whole == 0 { 0.0 } else { part as f64 / whole as f64 };
        let (precision, recall) =
            (ratio(self.correct, self.predicted), ratio(self.correct, self.gold));
        let sum = precision + recall;
        let f1 = if sum == 0.0 { 0.0 } else { 2.0 * precision * recall / sum };
        Rates { precision, recall, f1 }
    }

    /// Precision, from 0 to 1.
    pub fn precision(self) -> f64 {
        self.rates().precision
    }

    /// Recall, from 0 to 1.
    pub fn recall(self) -> f64 {
        self.rates().recall
    }

    /// F1, from 0 to 1.
    pub fn f1(self) -> f64 {
        self.rates().f1
    }
}

/// The scores of many sentences, for each entity type.
///
/// ```
/// use melm_text::{EntityTypes, Scores, score::Reading};
/// let mut types = EntityTypes::default();
/// let gold = ["B-PER", "I-PER", "O"].map(|t| types.parse(t).unwrap());
/// let predicted = ["B-PER", "O", "O"].map(|t| types.parse(t).unwrap());
/// let mut scores = Scores::new(Reading::Lenient, types);
/// scores.add(&gold, &predicted);
/// assert_eq!(scores.micro().f1(), 0.0); // a mention counts only if all its tokens are right
/// ```
#[derive(Debug, Clone)]
pub struct Scores {
    reading: Reading,
    types: EntityTypes,
    /// The counts of each type, by the index of the type. Types without mentions may be missing at the end.
    by_type: Vec<Counts>,
    /// Buffers of [`Self::add`], stored here so that the memory is reused.
    gold: Vec<Mention>,
    predicted: Vec<Mention>,
}

impl Scores {
    /// Creates scores with all counts 0. The tags passed to [`Self::add`] must use `types`.
    pub fn new(reading: Reading, types: EntityTypes) -> Self {
        Self { reading, types, by_type: Vec::new(), gold: Vec::new(), predicted: Vec::new() }
    }

    /// Counts the mentions of one sentence. Both tag sequences must have the same length.
    pub fn add(&mut self, gold: &[Tag], predicted: &[Tag]) {
        debug_assert_eq!(gold.len(), predicted.len());
        self.reading.read(gold, &mut self.gold);
        self.reading.read(predicted, &mut self.predicted);
        // Both lists are ordered by start, and no two mentions of a list have the same start.
        let mut rest = self.predicted.as_slice();
        for mention in &self.gold {
            let start = mention.tokens.start;
            rest = &rest[rest.partition_point(|p| p.tokens.start < start)..];
            let counts = counts_of(&mut self.by_type, mention.entity_type);
            counts.gold += 1;
            counts.correct += u64::from(rest.first() == Some(mention));
        }
        for mention in &self.predicted {
            counts_of(&mut self.by_type, mention.entity_type).predicted += 1;
        }
    }

    /// The entity types of gold and predicted tags.
    pub fn types(&self) -> &EntityTypes {
        &self.types
    }

    /// The counts of each type with a gold or predicted mention, ordered by the name of the type.
    pub fn by_type(&self) -> Vec<(EntityType, Counts)> {
        self.types
            .sorted_by_name()
            .into_iter()
            .filter_map(|t| Some((t, *self.by_type.get(t.index())?)))
            .filter(|(_, counts)| counts.gold + counts.predicted > 0)
            .collect()
    }

    /// The counts of all types together, for the micro average.
    pub fn micro(&self) -> Counts {
        self.by_type.iter().fold(Counts::default(), |sum, c| Counts {
            gold: sum.gold + c.gold,
            predicted: sum.predicted + c.predicted,
            correct: sum.correct + c.correct,
        })
    }

    /// Returns the mean over the types that have a gold or predicted mention.
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

/// The weight of a type in a mean.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Weight {
    /// The same weight for every type (macro average).
    Equal,
    /// The number of gold mentions of the type (weighted average).
    Support,
}

fn counts_of(by_type: &mut Vec<Counts>, entity_type: EntityType) -> &mut Counts {
    if by_type.len() <= entity_type.index() {
        by_type.resize(entity_type.index() + 1, Counts::default());
    }
    &mut by_type[entity_type.index()]
}
