//! Tables of scores with the intervals of differences.

use maud::{Markup, html};

use super::grouped;
use crate::experiment::{Difference, Score, ScoreRow, ScoreTable};

pub(super) fn section(tables: &[ScoreTable]) -> Markup {
    html! {
        @if !tables.is_empty() {
            section #scores aria-labelledby="h-scores" {
                h2 #h-scores { "Scores" }
                @for one in tables { (table(one)) }
            }
        }
    }
}

fn table(table: &ScoreTable) -> Markup {
    let has_variants = table.rows.iter().any(|row| !row.variant.is_empty());
    let scale = Scale::new(&table.rows);
    html! {
        h3 { (table.title) }
        div.scroll {
            table {
                caption.hidden { (table.title) }
                thead {
                    tr {
                        th.n scope="col" { "gold" }
                        th scope="col" { "system" }
                        @if has_variants { th scope="col" { "variant" } }
                        @for name in &table.columns { th.n scope="col" dir="auto" { (name) } }
                        th.n scope="col" { "to gold" }
                        th scope="col" { span.hidden { "interval" } }
                        th scope="col" { "verdict" }
                    }
                }
                tbody { @for row in &table.rows { (score_row(row, has_variants, scale)) } }
            }
        }
        p.small { (table.caption) }
    }
}

fn score_row(row: &ScoreRow, has_variants: bool, scale: Scale) -> Markup {
    html! {
        tr {
            td.n { @match row.size { Some(size) => (grouped(size)), None => "all" } }
            th scope="row" { (row.system) }
            @if has_variants { td dir="auto" { (row.variant) } }
            @for score in &row.f1 { td.n { (score.as_ref().map_or("–".to_owned(), spread)) } }
            @match &row.to_gold {
                Some(difference) => {
                    td.n { (interval(difference)) }
                    td.interval { (scale.bar(difference)) }
                    td.(class(difference)) { (difference.verdict) }
                }
                None => { td.n {} td {} td {} }
            }
        }
    }
}

fn class(difference: &Difference) -> &'static str {
    match difference.verdict.as_str() {
        "better" => "better",
        "worse" => "worse",
        _ => "same",
    }
}

fn spread(score: &Score) -> String {
    match score.sd {
        Some(sd) => format!("{:.1} ± {sd:.1}", score.mean),
        None => format!("{:.1}", score.mean),
    }
}

fn interval(difference: &Difference) -> String {
    match (difference.low, difference.high) {
        (Some(low), Some(high)) => format!("{:+.1} [{low:+.1}, {high:+.1}]", difference.mean),
        _ => format!("{:+.1}", difference.mean),
    }
}

/// The horizontal scale of the intervals of a table. It contains zero.
#[derive(Clone, Copy)]
struct Scale {
    low: f64,
    high: f64,
}

/// The width of an interval's drawing.
const WIDTH: f64 = 120.0;

impl Scale {
    fn new(rows: &[ScoreRow]) -> Self {
        let ends = rows
            .iter()
            .filter_map(|row| row.to_gold.as_ref())
            .flat_map(|one| [Some(one.mean), one.low, one.high].into_iter().flatten());
        let (low, high) =
            ends.fold((0.0_f64, 0.0_f64), |(low, high), end| (low.min(end), high.max(end)));
        let margin = ((high - low) * 0.05).max(0.1);
        Self { low: low - margin, high: high + margin }
    }

    fn x(self, value: f64) -> f64 {
        WIDTH * (value - self.low) / (self.high - self.low)
    }

    fn bar(self, difference: &Difference) -> Markup {
        let (low, high) = (difference.low, difference.high);
        let at = |value: f64| format!("{:.1}", self.x(value));
        html! {
            svg.interval.(class(difference)) viewBox=(format!("0 0 {WIDTH} 14")) aria-hidden="true" {
                line.zero x1=(at(0.0)) x2=(at(0.0)) y1="0" y2="14" {}
                @if let (Some(low), Some(high)) = (low, high) {
                    line x1=(at(low)) x2=(at(high)) y1="7" y2="7" {}
                }
                circle cx=(at(difference.mean)) cy="7" r="3.5" {}
            }
        }
    }
}
