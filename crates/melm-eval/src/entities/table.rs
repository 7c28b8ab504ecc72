//! The table and the figure of counted entities.

use std::collections::{BTreeMap, BTreeSet};

use melm::methods::Method;

use super::{Entities, EntityLine};
use crate::statistics::Mean;
use crate::{Figure, Series, System};

/// The unique valid entities of several training sets.
pub struct EntityTable {
    rows: Vec<EntityRow>,
}

/// The counts of the cells of one size, method and variant.
struct EntityRow {
    size: usize,
    method: System,
    variant: String,
    /// The counts of each draw of a language, one for each seed.
    counts: BTreeMap<(String, u64), Vec<Entities>>,
}

/// One of the counts.
type Count = fn(&Entities) -> usize;

impl EntityRow {
    /// Returns the count of each draw of a language, its seeds averaged.
    fn values(&self, count: Count) -> BTreeMap<&(String, u64), f64> {
        let mean = |seeds: &[Entities]| {
            seeds.iter().map(|one| count(one) as f64).sum::<f64>() / seeds.len() as f64
        };
        self.counts.iter().map(|(unit, seeds)| (unit, mean(seeds))).collect()
    }

    fn mean(&self, count: Count) -> Mean {
        let values: Vec<f64> = self.values(count).into_values().collect();
        Mean::from_values(&values).expect("a row has an entry")
    }

    /// Returns the paired difference of a count from another row.
    fn difference(&self, other: &Self, count: Count) -> Option<Mean> {
        let others = other.values(count);
        let pairs = self.values(count).into_iter();
        let pairs = pairs.filter_map(|(unit, value)| Some(value - others.get(unit)?));
        Mean::from_values(&pairs.collect::<Vec<_>>())
    }
}

impl EntityTable {
    /// Groups the counts by size, method and variant.
    pub fn new(lines: &[EntityLine]) -> Self {
        let mut rows: Vec<EntityRow> = Vec::new();
        for EntityLine { cell, entities, .. } in lines {
            let is_own = |row: &EntityRow| {
                (row.size, row.method) == (cell.size, cell.method) && row.variant == cell.variant
            };
            let at = rows.iter().position(is_own).unwrap_or_else(|| {
                let (size, method, variant) = (cell.size, cell.method, cell.variant.clone());
                rows.push(EntityRow { size, method, variant, counts: BTreeMap::new() });
                rows.len() - 1
            });
            let unit = (cell.language.clone(), cell.draw);
            rows[at].counts.entry(unit).or_default().push(*entities);
        }
        rows.sort_by_cached_key(|row| (row.size, row.variant.clone(), row.method.rank()));
        Self { rows }
    }

    /// Returns the name of a row, with its variant if there are several.
    fn name(&self, row: &EntityRow) -> String {
        let variants: BTreeSet<_> = self.rows.iter().map(|row| &row.variant).collect();
        let method = row.method.to_string();
        if variants.len() > 1 { format!("{method}, {}", row.variant) } else { method }
    }

    /// Returns the row of MELM with the same size and variant.
    fn melm(&self, row: &EntityRow) -> Option<&EntityRow> {
        let melm = System::Method(Method::Melm);
        let is_it = |other: &&EntityRow| {
            (other.size, other.method) == (row.size, melm) && other.variant == row.variant
        };
        self.rows.iter().find(is_it).filter(|_| row.method != melm)
    }

    /// Returns the table as Markdown: means with their intervals, and the difference of the valid entities from MELM.
    pub fn markdown(&self) -> String {
        let mut text = "### Unique entities of the training set\n\n| gold | method | unique | valid | to melm | valid and \
                        not in gold |\n| --- | --- | --- | --- | --- | --- |\n"
            .to_owned();
        for row in &self.rows {
            let difference = self.melm(row).and_then(|melm| row.difference(melm, |one| one.valid));
            text += &format!(
                "| {} | {} | {} | {} | {} | {} |\n",
                row.size,
                self.name(row),
                row.mean(|one| one.unique).with_interval(0),
                row.mean(|one| one.valid).with_interval(0),
                difference.map_or_else(String::new, |mean| mean.difference_with_interval(0)),
                row.mean(|one| one.valid_new).with_interval(0),
            );
        }
        let units: BTreeSet<usize> = self.rows.iter().map(|row| row.counts.len()).collect();
        let units: Vec<_> = units.iter().map(ToString::to_string).collect();
        text + &format!(
            "\nMeans with their 95 % interval (Student's t); the unit is a draw of a language, its seeds averaged; {} of \
             them a row. Differences are paired. Valid: an oracle, a tagger trained on all gold of the language, finds the \
             mention with the same label. The paper shows these numbers only as a picture.\n",
            units.join(" or ")
        )
    }

    /// Returns a figure of the number of valid entities over sizes, with one line for each method.
    pub fn figure(&self) -> Figure {
        let (mut places, mut series): (Vec<String>, Vec<Series>) = Default::default();
        for row in &self.rows {
            let (valid, place, name) =
                (row.mean(|one| one.valid), row.size.to_string(), self.name(row));
            let at = places.iter().position(|known| *known == place).unwrap_or_else(|| {
                places.push(place);
                places.len() - 1
            });
            let line = series.iter().position(|known| known.name == name).unwrap_or_else(|| {
                series.push(Series { name, points: Vec::new() });
                series.len() - 1
            });
            series[line].points.push((at, valid.mean, valid.margin()));
        }
        Figure {
            title: "Unique valid entities".to_owned(),
            x: "gold sentences".to_owned(),
            y: "entities".to_owned(),
            places,
            series,
        }
    }
}
