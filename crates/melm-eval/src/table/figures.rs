//! Figures of a table: F1 over sizes, and F1 over a parameter in the names of variants.

use std::collections::BTreeSet;

use super::rows::{ALL_SIZES, MEAN, Row, Rows};
use super::write::{budgets, title};
use crate::figure::{Figure, Series};

/// Returns the figures of a table, each with the end of its file name.
///
/// One figure shows F1 over sizes, with one line for each method. If the name of every variant consists of parameters
/// with values, such as `eta 0.3, mu 0.5` or `R 3`, a second figure shows F1 over the last parameter, with one line for
/// each value of the first.
pub fn figures(rows: &Rows) -> Vec<(String, Figure)> {
    let mut all = Vec::new();
    for budget in budgets(rows) {
        let of_sizes = rows.rows.iter().filter(|row| row.size != ALL_SIZES);
        let own: Vec<_> = of_sizes.filter(|row| row.budget.to_string() == budget).collect();
        let name =
            |what: &str| format!("{}-{what}-{}", rows.split.name(), budget.replace(' ', "-"));
        let figures = [("sizes", Some(over_sizes(&own))), ("variants", over_axes(&own))];
        for (what, figure) in figures {
            let Some(mut figure) = figure.filter(|figure| figure.places.len() > 1) else {
                continue;
            };
            figure.title = format!("{}, {budget}", title(rows.table));
            figure.y = format!("{} F1", rows.split.name());
            all.push((name(what), figure));
        }
    }
    all
}

/// Returns a figure of F1 over sizes, with one line for each method and variant.
fn over_sizes(rows: &[&Row]) -> Figure {
    let mut figure = Figure { x: "gold sentences".to_owned(), ..Figure::default() };
    let variants: BTreeSet<_> = rows.iter().map(|row| &row.variant).collect();
    for row in rows {
        let method = row.method.to_string();
        let several = variants.len() > 1;
        let name = if several { format!("{method} {}", row.variant) } else { method };
        add_point(&mut figure, row, row.size.to_string(), name);
    }
    sort_points(&mut figure);
    figure
}

/// Returns a figure of F1 over the last parameter in the names of variants. Returns `None` if the name of a variant
/// does not consist of parameters with values.
fn over_axes(rows: &[&Row]) -> Option<Figure> {
    let all: Vec<_> = rows.iter().map(|row| axes(row)).collect::<Option<_>>()?;
    let x = all.first()?.last()?.0.to_owned();
    let mut figure = Figure { x, ..Figure::default() };
    let has_methods = rows.iter().any(|row| row.method != rows[0].method);
    let has_sizes = rows.iter().any(|row| row.size != rows[0].size);
    for (row, axes) in rows.iter().zip(&all) {
        let (last, first) = axes.split_last()?;
        let mut name: Vec<_> =
            first.iter().map(|(name, value)| format!("{name} {value}")).collect();
        if has_methods || name.is_empty() {
            name.push(row.method.to_string());
        }
        name.extend(has_sizes.then(|| row.size.to_string()));
        add_point(&mut figure, row, last.1.to_owned(), name.join(", "));
    }
    sort_points(&mut figure);
    Some(figure)
}

/// Splits the name of a row's variant, such as `eta 0.3, mu 0.5`, into parameters and values.
fn axes(row: &Row) -> Option<Vec<(&str, &str)>> {
    row.variant.split(", ").map(|part| part.split_once(' ')).collect()
}

/// Adds the mean of a row as a point of the line called `name`.
fn add_point(figure: &mut Figure, row: &Row, place: String, name: String) {
    let Some(mean) = row.f1.get(MEAN) else { return };
    let (places, series) = (&mut figure.places, &mut figure.series);
    let at = places.iter().position(|known| *known == place).unwrap_or_else(|| {
        places.push(place);
        places.len() - 1
    });
    let line = series.iter().position(|known| known.name == name).unwrap_or_else(|| {
        series.push(Series { name, points: Vec::new() });
        series.len() - 1
    });
    series[line].points.push((at, mean.mean, mean.sd));
}

fn sort_points(figure: &mut Figure) {
    for line in &mut figure.series {
        line.points.sort_by_key(|(at, ..)| *at);
    }
}
