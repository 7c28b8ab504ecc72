//! Dev scores, time and parameters of one method (Tables 6 to 8).

use std::collections::{BTreeMap, BTreeSet};

use melm::methods::Method;

use crate::statistics::Mean;
use crate::{LedgerLine, PaperScores, System};

/// Returns a Markdown table of the costs of MELM by size: dev F1 by language, seconds of making drafts and of training,
/// parameters. Returns `None` if the lines have no cell of MELM.
pub fn costs(lines: &[LedgerLine], paper: &PaperScores) -> Option<String> {
    let melm = System::Method(Method::Melm);
    let lines: Vec<_> = lines.iter().filter(|line| line.cell.method == melm).collect();
    if lines.is_empty() {
        return None;
    }
    let languages: BTreeSet<_> = lines.iter().map(|line| &line.cell.language).collect();
    let mut by_row: BTreeMap<(String, usize), Vec<&LedgerLine>> = BTreeMap::new();
    for line in lines {
        let budget = line.cell.budget.to_string();
        by_row.entry((budget, line.cell.size)).or_default().push(line);
    }
    let names: Vec<_> = languages.iter().map(|name| name.as_str()).collect();
    let mut text = format!(
        "### Costs of melm\n\n| budget | gold | {} | drafts, s | tagger, s | parameters | device |\n|{}\n",
        names.join(" | "),
        " --- |".repeat(names.len() + 6)
    );
    for ((budget, size), of) in by_row {
        let mean = |values: Vec<f64>| Mean::from_values(&values).map(|mean| mean.mean);
        let scores = languages.iter().map(|language| {
            let own = of.iter().filter(|line| line.cell.language == **language);
            let f1 = mean(own.filter_map(|line| Some(line.dev.as_ref()?.percent())).collect());
            let f1 = f1.map_or_else(|| "–".to_owned(), |f1| format!("{f1:.1}"));
            let paper = paper.get(&size.to_string()).and_then(|of| of.get("melm")?.get(*language));
            f1 + &paper.map(|paper| format!(" ({paper:.2})")).unwrap_or_default()
        });
        let scores: Vec<_> = scores.collect();
        let drafts = mean(of.iter().map(|line| line.seconds.drafts).collect()).unwrap_or_default();
        let train = mean(of.iter().map(|line| line.seconds.train).collect()).unwrap_or_default();
        let millions = of[0].n_parameters as f64 / 1e6;
        let devices: BTreeSet<_> = of.iter().map(|line| line.device.as_str()).collect();
        let devices = devices.into_iter().collect::<Vec<_>>().join(", ");
        text += &format!(
            "| {budget} | {size} | {} | {drafts:.1} | {train:.1} | {millions:.0} M | {devices} |\n",
            scores.join(" | ")
        );
    }
    text += "\nDev F1 in percent, mean over draws and seeds (in brackets the paper's, of XLM-R). Drafts: fine-tuning, \
             generating and judging, without the judge's training.\n";
    Some(text)
}
