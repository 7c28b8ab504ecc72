//! Unique valid entities (Figure 4): the distinct mentions of a training set that an oracle, a tagger trained on all
//! gold, also predicts.

mod ledger;
mod table;

pub use ledger::{EntityLedger, EntityLine, entity_ledger_name};
pub use table::EntityTable;

use std::collections::BTreeSet;

use melm::files::sha256;
use melm::tagger::TaggerModel;
use melm_nn::device::Device;
use melm_text::Corpus;
use serde::{Deserialize, Serialize};

use crate::group::{CellGroup, OnEvent};
use crate::oracle::{ORACLE_BUDGET, predicted_mentions, token_texts};
use crate::{Cell, Error, ExperimentRunner};

/// Counts of the distinct mentions of a training set. Two mentions are distinct if their words or their entity types
/// differ.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entities {
    /// The number of distinct mentions.
    pub unique: usize,
    /// The number of distinct mentions that the oracle also predicts, with the same entity type, in at least one
    /// sentence.
    pub valid: usize,
    /// The number of valid mentions that do not occur in gold.
    pub valid_new: usize,
}

impl Entities {
    /// Counts the mentions of a training set that was made from `gold`. Fails if the oracle cannot tag a sentence.
    pub fn count(
        train: &Corpus,
        gold: &Corpus,
        oracle: &TaggerModel,
        device: &Device,
    ) -> Result<Self, Error> {
        let texts: Vec<Vec<&str>> = train.sentences().iter().map(token_texts).collect();
        let found = predicted_mentions(oracle, device, &texts)?;
        let mut valid = BTreeSet::new();
        for ((sentence, text), found) in train.sentences().iter().zip(&texts).zip(&found) {
            let own = sentence.mentions();
            let own = own.map(|m| (m.tokens, train.types().name(m.entity_type)));
            for (tokens, name) in own.filter(|mention| found.contains(mention)) {
                valid.insert((name, text[tokens].to_vec()));
            }
        }
        let (all, gold) = (unique_mentions(train), unique_mentions(gold));
        let is_new = |(name, words): &&(&str, Vec<&str>)| !gold.contains(&(*name, words.clone()));
        Ok(Self {
            unique: all.len(),
            valid: valid.len(),
            valid_new: valid.iter().filter(is_new).count(),
        })
    }
}

/// Returns the distinct mentions of a corpus, each as the name of its type and its words.
fn unique_mentions(corpus: &Corpus) -> BTreeSet<(&str, Vec<&str>)> {
    let mut all = BTreeSet::new();
    for sentence in corpus.sentences() {
        for mention in sentence.mentions() {
            let words = sentence.tokens()[mention.tokens].iter().map(AsRef::as_ref).collect();
            all.insert((corpus.types().name(mention.entity_type), words));
        }
    }
    all
}

impl ExperimentRunner {
    /// Counts the unique valid entities in the training sets of the cells that are not in the ledger. Adds a line for each.
    ///
    /// Trains an oracle for each language. Cells that differ only in the budget of the tagger have the same training set:
    /// pass them once ([`without_budgets`]).
    pub fn count_entities(
        &self,
        cells: &[Cell],
        ledger: &mut EntityLedger,
        device: &Device,
        on_event: OnEvent<'_>,
    ) -> Result<(), Error> {
        let missing: Vec<Cell> =
            cells.iter().filter(|cell| !ledger.has(&self.entity_key(cell))).cloned().collect();
        let languages: BTreeSet<&str> = missing.iter().map(|cell| cell.language.as_str()).collect();
        for language in languages {
            let own = missing.iter().filter(|cell| cell.language == language);
            let own: Vec<Cell> = own.cloned().collect();
            let oracle = self.train_oracle(&own[0], device, on_event)?;
            for group in own.chunk_by(Cell::shares_gold_with) {
                let mut shared = CellGroup::new(self, &group[0], device)?;
                for cell in group {
                    let started = self.now();
                    let (train, gold) = shared.training_set(cell, on_event)?;
                    ledger.add(EntityLine {
                        key: self.entity_key(cell),
                        cell: cell.clone(),
                        entities: Entities::count(train, gold, &oracle, device)?,
                        n_train: train.sentences().len(),
                        seconds: ((self.now() - started) * 100.0).round() / 100.0,
                        model: self.models.tagger.name().to_owned(),
                        device: self.fingerprints.arithmetic.clone(),
                    })?;
                }
            }
        }
        Ok(())
    }

    /// Returns the key of the counts of a cell: the digest of everything that affects them.
    pub fn entity_key(&self, cell: &Cell) -> String {
        sha256(format!("entities, oracle {ORACLE_BUDGET}, {}", self.key(cell)).as_bytes())
    }
}

/// Removes cells that differ from the cell before only in the budget of the tagger, which does not change the training
/// set.
pub fn without_budgets(cells: &[Cell]) -> Vec<Cell> {
    let mut cells = cells.to_vec();
    cells.dedup_by(|a, b| Cell { budget: b.budget, ..a.clone() } == *b);
    cells
}
