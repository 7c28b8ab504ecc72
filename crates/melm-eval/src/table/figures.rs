//! Figures of a table: F1 over sizes, the gain over gold by size, and F1 over a parameter in the names of variants.

use std::collections::BTreeSet;

use super::rows::{ALL_SIZES, MEAN, Row, Rows};
use super::write::{budgets, title};
use crate::figure::{Figure, Series};

/// Returns the figures of a table, each with the end of its file name.
///
/// One figure shows F1 over sizes, with one line for each method, and another the difference from gold with its 95 %
/// interval. If the name of every variant consists of parameters
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
    all.extend(["updates", "epochs"].into_iter().filter_map(|unit| gains(rows, unit)));
    all
}

/// Returns a figure of the difference from gold over sizes, for all budgets in this unit. Returns `None` if there are fewer
/// than two sizes, or if a size has several budgets.
fn gains(rows: &Rows, unit: &str) -> Option<(String, Figure)> {
    let is_own = |row: &&Row| row.size != ALL_SIZES && row.budget.to_string().ends_with(unit);
    let own: Vec<_> = rows.rows.iter().filter(is_own).collect();
    let budgets: BTreeSet<_> = own.iter().map(|row| (row.size, row.budget.to_string())).collect();
    let sizes: BTreeSet<_> = own.iter().map(|row| row.size).collect();
    if budgets.len() > sizes.len() {
        return None;
    }
    let mut figure = Figure {
        title: format!("{}, difference from gold", title(rows.table)),
        x: "gold sentences".to_owned(),
        y: format!("points of {} F1", rows.split.name()),
        ..Figure::default()
    };
    for row in &own {
        if let Some(gain) = row.to_gold.get(MEAN) {
            add_point(
                &mut figure,
                row.size.to_string(),
                series_name(&own, row),
                gain.mean,
                gain.margin(),
            );
        }
    }
    sort_points(&mut figure);
    let name = format!("{}-gains-{unit}", rows.split.name());
    (figure.places.len() > 1).then_some((name, figure))
}

/// Returns the name of a row's line: its method, with the variant if there are several.
fn series_name(rows: &[&Row], row: &Row) -> String {
    let several = rows.iter().any(|other| other.variant != row.variant);
    let method = row.title();
    if several { format!("{method} {}", row.variant) } else { method }
}

/// Returns a figure of F1 over sizes, with one line for each method and variant.
fn over_sizes(rows: &[&Row]) -> Figure {
    let mut figure = Figure { x: "gold sentences".to_owned(), ..Figure::default() };
    for row in rows {
        add_mean(&mut figure, row, row.size.to_string(), series_name(rows, row));
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
        add_mean(&mut figure, row, last.1.to_owned(), name.join(", "));
    }
    sort_points(&mut figure);
    Some(figure)
}

/// Splits the name of a row's variant, such as `eta 0.3, mu 0.5`, into parameters and values.
fn axes(row: &Row) -> Option<Vec<(&str, &str)>> {
    row.variant.split(", ").map(|part| part.split_once(' ')).collect()
}

/// Adds the mean of a row, with its standard deviation, as a point of the line called `name`.
fn add_mean(figure: &mut Figure, row: &Row, place: String, name: String) {
    if let Some(mean) = row.f1.get(MEAN) {
        add_point(figure, place, name, mean.mean, mean.sd);
    }
}

/// Adds a point with an error bar of twice the length of `bar` to the line called `name`.
fn add_point(figure: &mut Figure, place: String, name: String, value: f64, bar: Option<f64>) {
    let (places, series) = (&mut figure.places, &mut figure.series);
    let at = places.iter().position(|known| *known == place).unwrap_or_else(|| {
        places.push(place);
        places.len() - 1
    });
    let line = series.iter().position(|known| known.name == name).unwrap_or_else(|| {
        series.push(Series { name, points: Vec::new() });
        series.len() - 1
    });
    series[line].points.push((at, value, bar));
}

fn sort_points(figure: &mut Figure) {
    for line in &mut figure.series {
        line.points.sort_by_key(|(at, ..)| *at);
    }
}
