//! The rows of a table, as numbers.

use std::collections::{BTreeMap, BTreeSet};

use melm::methods::Method;
use melm::training::Budget;

use super::{Observation, Split, Table};
use crate::grid::BASE;
use crate::statistics::Mean;
use crate::{PaperScores, System, TextChoice};

/// The name of the column of means.
pub(crate) const MEAN: &str = "mean";

/// The systems with which systems further down in a table are compared, in addition to gold: the simplest method, and
/// the method of the paper.
const REFERENCES: [System; 2] = [System::Method(Method::LabelWise), System::Method(Method::Melm)];

impl Table {
    /// Returns the systems with which systems further down are compared, in addition to gold.
    fn references(self) -> &'static [System] {
        if self == Self::AddEntity { &[System::AddEntity] } else { &REFERENCES }
    }

    /// Returns the name of the variant that the paper chose, with which the other variants are compared.
    fn reference_variant(self) -> Option<&'static str> {
        match self {
            Self::Masking => Some("eta 0.7, mu 0.5"),
            Self::Rounds => Some("R 3"),
            Self::Mono
            | Self::Cross
            | Self::Multi
            | Self::AddEntity
            | Self::Costs
            | Self::CostsMulti => None,
        }
    }
}

/// All rows of a table.
pub struct Rows {
    /// The table.
    pub table: Table,
    /// The set that taggers were scored on.
    pub split: Split,
    /// The names of the columns, without the mean.
    pub columns: Vec<String>,
    /// The names of the variants that occur, `base` first.
    pub variants: Vec<String>,
    /// The variant with which the others are compared: the choice of the paper if it occurs, otherwise the first one.
    /// `None` if there is only one variant.
    pub reference: Option<String>,
    /// The rows, sorted by budget, size, variant and method.
    pub rows: Vec<Row>,
}

/// A system at one size, budget and variant.
pub struct Row {
    /// The number of gold sentences.
    pub size: usize,
    /// The system.
    pub method: System,
    /// The unlabelled text.
    pub text: TextChoice,
    /// The budget of the taggers.
    pub budget: Budget,
    /// The name of the settings.
    pub variant: String,
    /// The mean F1 over draws and seeds by column, and the mean over all columns.
    pub f1: BTreeMap<String, Mean>,
    /// The paired difference from gold, over draws, by column and over all columns.
    pub to_gold: BTreeMap<String, Mean>,
    /// The paired differences from other systems over all columns, for systems that come after them in the table: from
    /// label-wise and MELM, or from `add-entity` in its table.
    pub to_methods: BTreeMap<&'static str, Mean>,
    /// The paired difference from the same system without text, for a row with text.
    pub to_drafts: Option<Mean>,
    /// The paired difference from gold with the same text, for a row with drafts and text.
    pub to_text: Option<Mean>,
    /// The paired difference from the same system with the settings of [`Rows::reference`], over all columns.
    pub to_first: Option<Mean>,
    /// The paper's F1 by column.
    pub paper: BTreeMap<String, f64>,
    /// True if the judge kept no draft in any run of the row.
    pub kept_none: bool,
    /// True if the method fine-tuned a pretrained encoder-decoder. Only `mulda` does.
    pub is_pretrained: bool,
}

impl Row {
    /// The method and, if there is any, the unlabelled text. Says so if no draft was kept.
    pub fn title(&self) -> String {
        let mut title = self.method.title(self.is_pretrained).to_owned();
        if !self.text.is_none() {
            title += &format!(" + text {}", self.text);
        }
        if self.kept_none {
            title += " (no draft kept)";
        }
        title
    }

    fn is_of(&self, one: &Observation<'_>) -> bool {
        let is_size = self.size == ALL_SIZES || self.size == one.size;
        is_size
            && (self.method, self.budget) == (one.method, one.budget)
            && (&self.text, self.variant.as_str()) == (one.text, one.variant)
    }
}

/// The key that replaces the size if the paper gives values by variant, without a size.
const ANY_SIZE: &str = "any";

/// The size of rows over all sizes. These rows come last.
pub(crate) const ALL_SIZES: usize = usize::MAX;

/// The size, system, budget and variant of a row.
#[derive(Clone, PartialEq)]
struct RowKey {
    size: usize,
    method: System,
    text: TextChoice,
    budget: Budget,
    variant: String,
}

/// F1 by column, draw and seed.
type Scores = BTreeMap<(String, u64, u64), f64>;

/// The scores of all rows.
type RowScores = Vec<(RowKey, Scores)>;

impl Rows {
    pub(super) fn new(
        table: Table,
        split: Split,
        observations: &[Observation<'_>],
        paper: &PaperScores,
    ) -> Self {
        let columns: BTreeSet<_> = observations.iter().map(|one| one.column.clone()).collect();
        let names: BTreeSet<_> = observations.iter().map(|one| one.variant.to_owned()).collect();
        let mut variants: Vec<String> = names.into_iter().collect();
        variants.sort_by_key(|name| name != BASE);
        let mut all = group(observations);
        add_all_sizes(&mut all);
        all.sort_by_cached_key(|(key, _)| {
            let variant = variants.iter().position(|name| *name == key.variant);
            (key.budget.to_string(), key.size, variant, key.text.clone(), key.method.rank())
        });
        let chosen = variants.iter().find(|name| table.reference_variant() == Some(name));
        let reference = chosen.or(variants.first()).filter(|_| variants.len() > 1).cloned();
        let first = reference.as_deref();
        let rows = all.iter().map(|(key, scores)| key.row(table, scores, &all, first, paper));
        let mut rows: Vec<Row> = rows.collect();
        for row in &mut rows {
            let mut own = observations.iter().filter(|one| row.is_of(one));
            row.kept_none = own.all(|one| one.kept_none);
            let mut own = observations.iter().filter(|one| row.is_of(one));
            row.is_pretrained = own.all(|one| one.is_pretrained);
            // If title and name differ, the system differs from the one in the paper, so the paper has no value for it.
            if row.method.title(row.is_pretrained) != row.method.name() {
                row.paper.clear();
            }
        }
        let columns = columns.into_iter().collect();
        Self { table, split, columns, variants, reference, rows }
    }

    /// The names of the systems with which at least one row is compared.
    pub(crate) fn references(&self) -> impl Iterator<Item = &'static str> {
        let is_used = |name: &&str| self.rows.iter().any(|row| row.to_methods.contains_key(name));
        self.table.references().iter().map(|system| system.name()).filter(is_used)
    }
}

/// Groups scores by row, in the order in which rows first occur.
fn group(observations: &[Observation<'_>]) -> RowScores {
    let mut all = RowScores::new();
    for one in observations {
        let (size, method, budget) = (one.size, one.method, one.budget);
        let (text, variant) = (one.text.clone(), one.variant.to_owned());
        let key = RowKey { size, method, text, budget, variant };
        let at = all.iter().position(|(known, _)| *known == key).unwrap_or_else(|| {
            all.push((key, Scores::new()));
            all.len() - 1
        });
        all[at].1.insert((one.column.clone(), one.draw, one.seed), one.f1);
    }
    all
}

impl RowKey {
    /// Computes the row from its scores and those of the rows it is compared with. `first` is the first variant.
    fn row(
        &self,
        table: Table,
        scores: &Scores,
        all: &RowScores,
        first: Option<&str>,
        paper: &PaperScores,
    ) -> Row {
        let find = |other: Self| {
            let found = all.iter().find(|(known, _)| *known == other && *known != *self);
            found.map(|(_, scores)| scores)
        };
        let none = TextChoice::default;
        let gold = find(Self { method: System::GOLD, text: none(), ..self.clone() });
        let drafts = find(Self { text: none(), ..self.clone() });
        let text = find(Self { method: System::GOLD, ..self.clone() });
        let drafts = drafts.filter(|_| self.method != System::GOLD);
        let text = text.filter(|_| !self.text.is_none());
        let mean = |other: &Scores| differences(table, scores, other).remove(MEAN);
        let to_method = |other: &System| {
            let is_later = self.method.rank() > other.rank();
            let against = find(Self { method: *other, ..self.clone() }).filter(|_| is_later)?;
            Some((other.name(), differences(table, scores, against).remove(MEAN)?))
        };
        let first = first.filter(|first| *first != self.variant);
        let first =
            first.and_then(|first| find(Self { variant: first.to_owned(), ..self.clone() }));
        Row {
            size: self.size,
            method: self.method,
            text: self.text.clone(),
            budget: self.budget,
            variant: self.variant.clone(),
            to_drafts: drafts.and_then(mean),
            to_text: text.and_then(mean),
            f1: means(scores),
            to_gold: gold.map(|gold| differences(table, scores, gold)).unwrap_or_default(),
            to_methods: table.references().iter().filter_map(to_method).collect(),
            to_first: first.and_then(mean),
            paper: self.paper_scores(paper).cloned().unwrap_or_default(),
            kept_none: false,
            is_pretrained: false,
        }
    }

    /// Returns the paper's values for the row.
    fn paper_scores<'p>(&self, paper: &'p PaperScores) -> Option<&'p BTreeMap<String, f64>> {
        if !self.text.is_none() {
            return None;
        }
        let of_size =
            paper.get(&self.size.to_string()).and_then(|sizes| sizes.get(self.method.name()));
        // The paper does not say which size was used for its variants.
        of_size.or_else(|| paper.get(ANY_SIZE).and_then(|variants| variants.get(&self.variant)))
    }
}

/// Adds rows over all sizes, if there are several sizes.
///
/// A draw contains all smaller draws with the same number, so the sizes of a draw are averaged like its seeds. Draws
/// without scores for all sizes are left out, because F1 differs more between sizes than between methods.
fn add_all_sizes(places: &mut RowScores) {
    let mut all: Vec<(RowKey, BTreeMap<usize, Scores>)> = Vec::new();
    for (key, scores) in places.iter() {
        let place = RowKey { size: ALL_SIZES, ..key.clone() };
        let at = all.iter().position(|(known, _)| *known == place).unwrap_or_else(|| {
            all.push((place, BTreeMap::new()));
            all.len() - 1
        });
        all[at].1.insert(key.size, scores.clone());
    }
    let sizes_of = |budget: &Budget| -> BTreeSet<usize> {
        let own = places.iter().filter(|(key, _)| key.budget == *budget);
        own.map(|(key, _)| key.size).collect()
    };
    let mut whole = Vec::new();
    for (place, by_size) in all {
        let sizes = sizes_of(&place.budget);
        let scores_of = |size: &usize| by_size.get(size).into_iter().flatten();
        let has_all = |key: &(String, u64, u64)| {
            sizes.iter().all(|size| scores_of(size).any(|(other, _)| other == key))
        };
        let n_sizes = sizes.len() as u64;
        let mut moved = Scores::new();
        for (rank, size) in (0..).zip(&sizes) {
            for (key @ (column, draw, seed), f1) in scores_of(size) {
                if has_all(key) {
                    moved.insert((column.clone(), *draw, seed * n_sizes + rank), *f1);
                }
            }
        }
        if n_sizes > 1 && !moved.is_empty() {
            whole.push((place, moved));
        }
    }
    places.extend(whole);
}

/// Returns the mean of each column over draws and seeds, and the mean over all columns. The standard deviation of the
/// mean over all columns is computed only from the draws and seeds that have scores in every column.
fn means(scores: &Scores) -> BTreeMap<String, Mean> {
    let mut columns: BTreeMap<&String, Vec<f64>> = BTreeMap::new();
    let mut runs: BTreeMap<(u64, u64), Vec<f64>> = BTreeMap::new();
    for ((column, draw, seed), f1) in scores {
        columns.entry(column).or_default().push(*f1);
        runs.entry((*draw, *seed)).or_default().push(*f1);
    }
    let whole = runs.into_values().filter(|f1s| f1s.len() == columns.len());
    let over_columns: Vec<_> = whole.map(|f1s| average(&f1s)).collect();
    let own =
        columns.iter().filter_map(|(name, f1s)| Some(((*name).clone(), Mean::from_values(f1s)?)));
    let mut means: BTreeMap<_, _> = own.collect();
    if let Some(spread) = Mean::from_values(&over_columns) {
        let mean = average(&means.values().map(|mean| mean.mean).collect::<Vec<_>>());
        means.insert(MEAN.to_owned(), Mean { mean, ..spread });
    }
    means
}

/// Returns the paired differences by column and over all columns.
///
/// Scores with the same column, draw and seed are paired. The seeds of a draw are averaged first, because they have the
/// same gold sentences.
fn differences(table: Table, one: &Scores, other: &Scores) -> BTreeMap<String, Mean> {
    let mut pairs: BTreeMap<(&String, u64), Vec<f64>> = BTreeMap::new();
    for (place, f1) in one {
        if let Some(against) = other.get(place) {
            pairs.entry((&place.0, place.1)).or_default().push(f1 - against);
        }
    }
    let mut columns: BTreeMap<&String, Vec<f64>> = BTreeMap::new();
    let mut draws: BTreeMap<u64, Vec<f64>> = BTreeMap::new();
    for ((column, draw), seeds) in &pairs {
        columns.entry(column).or_default().push(average(seeds));
        draws.entry(*draw).or_default().push(average(seeds));
    }
    let all: Vec<f64> = if table.shares_taggers_between_columns() {
        draws.into_values().map(|f1s| average(&f1s)).collect()
    } else {
        draws.into_values().flatten().collect()
    };
    let own =
        columns.iter().filter_map(|(name, f1s)| Some(((*name).clone(), Mean::from_values(f1s)?)));
    let mut result: BTreeMap<_, _> = own.collect();
    if let Some(mean) = Mean::from_values(&all) {
        result.insert(MEAN.to_owned(), mean);
    }
    result
}

fn average(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}
