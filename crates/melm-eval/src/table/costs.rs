//! Dev scores, time and parameters of the paper's method (Tables 6 to 8).

use std::collections::{BTreeMap, BTreeSet};

use melm::methods::Method;

use super::Table;
use crate::statistics::Mean;
use crate::{F1, LedgerLine, PaperScores, System};

/// The columns of the paper's values that are not scores: minutes of fine-tuning, and millions of parameters.
const MINUTES: &str = "minutes";
const PARAMETERS: &str = "parameters";

impl Table {
    /// Returns the method whose costs a table shows, or `None` if it shows no costs. The paper's multilingual method is
    /// `melm-codemix`.
    pub(super) fn cost_method(self) -> Option<Method> {
        match self {
            Self::Costs => Some(Method::Melm),
            Self::CostsMulti => Some(Method::MelmCodemix),
            Self::Mono
            | Self::Cross
            | Self::Multi
            | Self::AddEntity
            | Self::Masking
            | Self::Rounds => None,
        }
    }
}

/// Returns a Markdown table of the costs of the paper's method by size: dev F1 by language with its interval, seconds of
/// making drafts and of training, parameters. The paper's values are in brackets. Returns `None` if `table` shows no
/// costs, or if no line is of the table's method.
pub fn costs(table: Table, lines: &[LedgerLine], paper: &PaperScores) -> Option<String> {
    let method = table.cost_method()?;
    let is_own = |line: &&LedgerLine| {
        let is_joined = line.cell.is_multilingual();
        line.cell.method == System::Method(method) && is_joined == (table == Table::CostsMulti)
    };
    let mut by_row: BTreeMap<(String, usize), Vec<&LedgerLine>> = BTreeMap::new();
    for line in lines.iter().filter(is_own) {
        let budget = line.cell.budget.to_string();
        by_row.entry((budget, line.cell.size)).or_default().push(line);
    }
    let own = by_row.values().flatten();
    let languages: BTreeSet<&str> = own.map(|line| line.cell.language.as_str()).collect();
    if languages.is_empty() {
        return None;
    }
    let mut head = vec!["budget", "gold"];
    head.extend(&languages);
    head.extend(["drafts, s", "tagger, s", "parameters", "device"]);
    let mut text = format!("### Costs of {}\n\n| {} |\n", method.name(), head.join(" | "));
    text += &format!("|{}\n", " --- |".repeat(head.len()));
    let empty = BTreeMap::new();
    for ((budget, size), own) in &by_row {
        let paper = paper.get(&size.to_string()).and_then(|methods| methods.get(method.name()));
        let cells = cost_cells(own, &languages, paper.unwrap_or(&empty));
        text += &format!("| {budget} | {size} | {} |\n", cells.join(" | "));
    }
    Some(text + "\n" + &caption(table))
}

/// Returns the cells of a row after budget and size.
fn cost_cells(
    lines: &[&LedgerLine],
    languages: &BTreeSet<&str>,
    paper: &BTreeMap<String, f64>,
) -> Vec<String> {
    let mean = |values: Vec<f64>| Mean::from_values(&values);
    let mut cells = Vec::new();
    for language in languages {
        let own = lines.iter().filter(|line| line.cell.language == **language);
        let f1 = mean(draw_scores(own.copied()));
        let published = paper.get(*language).map(|f1| format!(" ({f1:.2})"));
        cells.push(
            f1.map_or("–".to_owned(), |mean| mean.with_interval(1))
                + &published.unwrap_or_default(),
        );
    }
    let seconds = |of: fn(&LedgerLine) -> f64| {
        let mean = mean(lines.iter().map(|line| of(line)).collect());
        format!("{:.1}", mean.map_or(0.0, |mean| mean.mean))
    };
    let minutes = paper.get(MINUTES).map(|minutes| format!(" ({minutes:.0} min)"));
    cells.push(seconds(|line| line.seconds.drafts) + &minutes.unwrap_or_default());
    cells.push(seconds(|line| line.seconds.train));
    let millions = paper.get(PARAMETERS).map(|millions| format!(" ({millions:.0} M)"));
    let own = format!("{:.0} M", lines[0].n_parameters as f64 / 1e6);
    cells.push(own + &millions.unwrap_or_default());
    let devices: BTreeSet<_> = lines.iter().map(|line| line.device.as_str()).collect();
    cells.push(devices.into_iter().collect::<Vec<_>>().join(", "));
    cells
}

/// Returns the dev F1 of each draw, its seeds averaged.
fn draw_scores<'l>(lines: impl Iterator<Item = &'l LedgerLine>) -> Vec<f64> {
    let mut draws: BTreeMap<u64, Vec<f64>> = BTreeMap::new();
    for line in lines {
        draws.entry(line.cell.draw).or_default().extend(line.dev.as_ref().map(F1::percent));
    }
    draws.values().filter_map(|f1s| Some(Mean::from_values(f1s)?.mean)).collect()
}

fn caption(table: Table) -> String {
    let cross = match table {
        Table::Costs => {
            " The taggers of the cross-lingual table are the English ones, so Table 7 of the paper is the column en."
        }
        _ => "",
    };
    format!(
        "Dev F1 in percent: mean over draws, and its 95 % interval (Student's t). Drafts: fine-tuning, generating \
         and judging, without the training of the judge. In brackets the paper's values, which are of XLM-R on a V100; its \
         time is that of fine-tuning alone.{cross}\n"
    )
}
