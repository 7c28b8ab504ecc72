//! Unique valid entities (Figure 4): the distinct mentions of a training set that an oracle, a tagger trained on all
//! gold, also predicts.

use std::collections::{BTreeMap, BTreeSet};

use melm::augment::Gold;
use melm::random::Seed;
use melm::stage::{Event, Run};
use melm::tagger::TaggerModel;
use melm::training::Budget;
use melm_nn::device::Device;
use melm_text::{Corpus, mentions};
use serde::Serialize;

use crate::data::concatenate;
use crate::group::{CellGroup, OnEvent};
use crate::statistics::Mean;
use crate::{Cell, Dataset, Error, ExperimentRunner, Figure, Series};

/// The budget of the oracle. The oracle learns from all gold of a language.
pub const ORACLE_BUDGET: &str = "3 epochs";

/// Counts of the distinct mentions of a training set. Two mentions are distinct if their words or their entity types
/// differ.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
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
        let texts: Vec<Vec<&str>> = train
            .sentences()
            .iter()
            .map(|sentence| sentence.tokens().iter().map(AsRef::as_ref).collect())
            .collect();
        let mut valid = BTreeSet::new();
        oracle.tag_each(device, &texts, &mut |at, tagged| {
            let found: Vec<_> = mentions(&tagged.tags)
                .map(|m| (m.tokens, oracle.tags().types().name(m.entity_type)))
                .collect();
            let own = train.sentences()[at].mentions();
            let own = own.map(|m| (m.tokens, train.types().name(m.entity_type)));
            for (tokens, name) in own.filter(|mention| found.contains(mention)) {
                valid.insert((name, texts[at][tokens].to_vec()));
            }
        })?;
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
    /// Counts the unique valid entities in the training sets of cells.
    ///
    /// Trains an oracle for each language, on all of its gold for [`ORACLE_BUDGET`], with the settings of the first cell's
    /// tagger. Cells that differ only in the budget of the tagger are counted once.
    ///
    /// # Panics
    /// If there is no cell.
    pub fn entities(
        &self,
        cells: &[Cell],
        device: &Device,
        on_event: OnEvent<'_>,
    ) -> Result<EntityTable, Error> {
        let cells = without_budgets(cells);
        let mut settings = self.plans.cell(&cells[0]).tagger;
        settings.training.budget = ORACLE_BUDGET.parse::<Budget>().expect("it is a budget");
        let languages: BTreeSet<&str> = cells.iter().map(|cell| cell.language.as_str()).collect();
        let mut counts = Vec::new();
        for language in languages {
            let own: Vec<Cell> =
                cells.iter().filter(|cell| cell.language == language).cloned().collect();
            let (train, dev) = self.all_gold(&own[0])?;
            let mut observer =
                |stage: &'static str, event: Event<'_>| on_event(&own[0], stage, event);
            let mut run = Run { seed: Seed(1), folder: None, observer: &mut observer };
            let gold = Gold { train: &train, dev: dev.as_ref() };
            let (encoder, stage) = (&self.models.tagger, &mut run.stage("oracle"));
            let oracle =
                TaggerModel::train(encoder, gold.train, gold.dev, &settings, device, stage)?;
            for group in own.chunk_by(Cell::shares_gold_with) {
                let mut shared = CellGroup::new(self, &group[0], device)?;
                for cell in group {
                    let (train, gold) = shared.training_set(cell, on_event)?;
                    let entities = Entities::count(train, gold, &oracle.tagger, device)?;
                    counts.push((cell.clone(), entities));
                }
            }
        }
        Ok(EntityTable { counts })
    }

    /// Returns all train and dev sentences of the languages of a cell.
    fn all_gold(&self, cell: &Cell) -> Result<(Corpus, Option<Corpus>), Error> {
        let languages: Vec<_> = cell.languages().map(|name| &self.languages[name]).collect();
        let copy = |dataset: &Dataset| dataset.corpus().clone();
        let train: Vec<_> = languages.iter().map(|one| copy(&one.train)).collect();
        let dev: Vec<_> = languages.iter().filter_map(|one| one.dev.as_ref().map(copy)).collect();
        let dev = (!dev.is_empty()).then(|| concatenate(&dev)).transpose()?;
        Ok((concatenate(&train)?, dev))
    }
}

/// Removes cells that differ from the cell before only in the budget of the tagger, which does not change the training
/// set.
pub fn without_budgets(cells: &[Cell]) -> Vec<Cell> {
    let mut cells = cells.to_vec();
    cells.dedup_by(|a, b| Cell { budget: b.budget, ..a.clone() } == *b);
    cells
}

/// The unique valid entities of several cells.
pub struct EntityTable {
    counts: Vec<(Cell, Entities)>,
}

/// The counts of the cells of one size and method.
struct EntityRow {
    size: usize,
    method: String,
    counts: Vec<Entities>,
}

impl EntityRow {
    fn mean(&self, count: fn(&Entities) -> usize) -> Mean {
        let values: Vec<_> = self.counts.iter().map(|one| count(one) as f64).collect();
        Mean::from_values(&values).expect("a row has an entry")
    }
}

impl EntityTable {
    /// Groups the counts by size and method, and by variant if there are several.
    fn rows(&self) -> Vec<EntityRow> {
        let variants: BTreeSet<_> = self.counts.iter().map(|(cell, _)| &cell.variant).collect();
        let mut rows: Vec<EntityRow> = Vec::new();
        for (cell, entities) in &self.counts {
            let mut method = cell.method.to_string();
            if variants.len() > 1 {
                method += &format!(", {}", cell.variant);
            }
            match rows.iter_mut().find(|row| row.size == cell.size && row.method == method) {
                Some(row) => row.counts.push(*entities),
                None => rows.push(EntityRow { size: cell.size, method, counts: vec![*entities] }),
            }
        }
        rows.sort_by_key(|row| row.size);
        rows
    }

    /// The table as Markdown: means over languages, draws and seeds.
    pub fn markdown(&self) -> String {
        let mut text = "### Unique entities of the training set\n\n| gold | method | unique | valid | valid and not in gold |\n\
                        | --- | --- | --- | --- | --- |\n".to_owned();
        for row in self.rows() {
            text += &format!(
                "| {} | {} | {:.0} | {:.0} | {:.0} |\n",
                row.size,
                row.method,
                row.mean(|one| one.unique).mean,
                row.mean(|one| one.valid).mean,
                row.mean(|one| one.valid_new).mean
            );
        }
        text + "\nMeans over languages, draws and seeds. Valid: an oracle, a tagger trained on all gold of the language, finds \
                the mention with the same label.\n"
    }

    /// Returns a figure of the number of valid entities over sizes, with one line for each method.
    pub fn figure(&self) -> Figure {
        let (mut places, mut series): (Vec<String>, BTreeMap<String, Series>) = Default::default();
        for row in self.rows() {
            let valid = row.mean(|one| one.valid);
            let place = row.size.to_string();
            let at = places.iter().position(|known| *known == place).unwrap_or_else(|| {
                places.push(place);
                places.len() - 1
            });
            let name = row.method.clone();
            let line = series.entry(row.method).or_insert(Series { name, points: Vec::new() });
            line.points.push((at, valid.mean, valid.sd));
        }
        Figure {
            title: "Unique valid entities".to_owned(),
            x: "gold sentences".to_owned(),
            y: "entities".to_owned(),
            places,
            series: series.into_values().collect(),
        }
    }
}
