//! Figures of a table: over sizes, and over variants whose names are axes.

use super::rows::{ALL_SIZES, MEAN, Row, Rows};
use super::write::{budgets, title};
use crate::figure::{Figure, Series};

/// The figures of a table, each with what its file is called.
///
/// Over sizes, one line a method; and where all variants are called like `eta 0.3, mu 0.5` or `R 3`, over the last
/// of these axes, one line for each value of the first.
pub fn figures(rows: &Rows) -> Vec<(String, Figure)> {
    let mut all = Vec::new();
    for budget in budgets(rows) {
        let of: Vec<_> = rows.rows.iter().filter(|row| row.budget.to_string() == budget).collect();
        let name =
            |what: &str| format!("{}-{what}-{}", rows.split.name(), budget.replace(' ', "-"));
        let heading = format!("{}, {budget}", title(rows.table));
        let y = format!("{} F1", rows.split.name());
        all.extend(over_sizes(&of).map(|(places, series)| {
            let (title, x) = (heading.clone(), "gold sentences".to_owned());
            (name("sizes"), Figure { title, x, y: y.clone(), places, series })
        }));
        all.extend(over_axes(&of).map(|(x, places, series)| {
            let (title, y) = (heading.clone(), y.clone());
            (name("variants"), Figure { title, x, y, places, series })
        }));
    }
    all
}

type Lines = (Vec<String>, Vec<Series>);

fn over_sizes(rows: &[&Row]) -> Option<Lines> {
    let rows = rows.iter().filter(|row| row.size != ALL_SIZES);
    let place = |row: &Row| (row.size.to_string(), format!("{} {}", row.method, row.variant));
    let (places, mut series) = lines(rows.map(|row| (place(row), *row)));
    let variants: std::collections::BTreeSet<_> = series
        .iter()
        .filter_map(|one| one.name.split_once(' ').map(|(_, v)| v.to_owned()))
        .collect();
    if variants.len() == 1 {
        for one in &mut series {
            one.name = one.name.split(' ').next().unwrap_or_default().to_owned();
        }
    }
    (places.len() > 1).then_some((places, series))
}

fn over_axes(rows: &[&Row]) -> Option<(String, Vec<String>, Vec<Series>)> {
    let axes = |row: &Row| -> Option<Vec<(String, String)>> {
        let parts = row.variant.split(", ").map(|part| part.split_once(' '));
        parts.map(|part| part.map(|(name, value)| (name.to_owned(), value.to_owned()))).collect()
    };
    let rows: Vec<_> = rows.iter().filter(|row| row.size != ALL_SIZES).collect();
    let all: Vec<_> = rows.iter().map(|row| axes(row)).collect::<Option<_>>()?;
    let x = all.first()?.last()?.0.clone();
    let several = |of: &dyn Fn(&Row) -> String| {
        rows.iter().map(|row| of(row)).collect::<std::collections::BTreeSet<_>>().len() > 1
    };
    let (methods, sizes) =
        (several(&|row| row.method.to_string()), several(&|row| row.size.to_string()));
    let points = rows.iter().zip(&all).map(|(row, axes)| {
        let (last, first) = axes.split_last().expect("a variant has an axis");
        let mut name: Vec<_> =
            first.iter().map(|(name, value)| format!("{name} {value}")).collect();
        if methods || name.is_empty() {
            name.push(row.method.to_string());
        }
        name.extend(sizes.then(|| row.size.to_string()));
        ((last.1.clone(), name.join(", ")), **row)
    });
    let (places, series) = lines(points);
    (places.len() > 1).then_some((x, places, series))
}

/// Rows as points of lines: each with its place and the name of its line.
fn lines<'r>(rows: impl Iterator<Item = ((String, String), &'r Row)>) -> Lines {
    let (mut places, mut series): (Vec<String>, Vec<Series>) = Default::default();
    for ((place, name), row) in rows {
        let Some(mean) = row.f1.get(MEAN) else { continue };
        let at = places.iter().position(|known| *known == place).unwrap_or_else(|| {
            places.push(place);
            places.len() - 1
        });
        let of = series.iter().position(|known| known.name == name).unwrap_or_else(|| {
            series.push(Series { name, points: Vec::new() });
            series.len() - 1
        });
        series[of].points.push((at, mean.mean, mean.sd));
    }
    for one in &mut series {
        one.points.sort_by_key(|(at, ..)| *at);
    }
    (places, series)
}
