//! `melm score`: compares predicted tags with gold tags.

use melm_text::score::{FileInput, Rates, Reading, Weight, strict_scheme};
use melm_text::{Scores, shown};

use crate::args::Score;
use crate::failure::Failure;
use crate::input;
use crate::labelled::refuse_second_stdin;
use crate::output;
use crate::progress::Progress;
use crate::terminal::Terminal;

pub(crate) fn run(command: &Score, terminal: &Terminal) -> Result<(), Failure> {
    refuse_second_stdin([command.gold.as_path(), &command.predicted].into_iter())?;
    let options = input::read_options(&command.input, &command.gold)?;
    let predicted_options = input::read_options(&command.input, &command.predicted)?;
    let gold = input::open(&command.gold, &command.input)?;
    let predicted = input::open(&command.predicted, &command.input)?;
    let gold = FileInput { source: &gold, options: &options };
    let predicted = FileInput { source: &predicted, options: &predicted_options };
    let reading = if command.strict {
        Reading::Strict(strict_scheme(gold, predicted)?)
    } else {
        Reading::Lenient
    };
    let mut progress = Progress::for_bytes("scoring", gold.source.text().len(), terminal);
    let scores = Scores::from_files(gold, predicted, reading, |position| {
        progress.set_position(position as u64);
    })?;
    drop(progress);

    output::print(&if command.json { json(&scores) } else { table(&scores, reading) })
}

fn json(scores: &Scores) -> String {
    serde_json::to_string_pretty(&scores.to_json()).expect("plain numbers and strings") + "\n"
}

fn table(scores: &Scores, reading: Reading) -> String {
    let by_type = scores.by_type();
    let name = |entity_type| shown(scores.types().display_name(entity_type));
    let names = by_type.iter().map(|&(entity_type, _)| name(entity_type).chars().count());
    let width = names.max().unwrap_or(0).max("weighted".len());
    let head = ["precision", "recall", "f1", "support"];
    let mut text = format!("{:width$}", "");
    for title in head {
        text += &format!("  {title:>9}");
    }
    let mut row = |name: &str, r: Rates, support: u64| {
        let [p, q, f] = [r.precision, r.recall, r.f1].map(|rate| format!("{:.2}", rate * 100.0));
        text += &format!("\n{name:width$}  {p:>9}  {q:>9}  {f:>9}  {support:>9}");
    };
    for (entity_type, counts) in by_type {
        row(&name(entity_type), counts.rates(), counts.gold);
    }
    let micro = scores.micro();
    row("micro", micro.rates(), micro.gold);
    row("macro", scores.mean(Weight::Equal), micro.gold);
    row("weighted", scores.mean(Weight::Support), micro.gold);
    let how = match reading {
        Reading::Lenient => "exact mentions, counted as in conlleval and seqeval".to_owned(),
        Reading::Strict(scheme) => format!("exact mentions, strict {scheme}"),
    };
    text + &format!("\n{how}\n")
}
