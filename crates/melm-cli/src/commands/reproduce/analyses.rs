//! The analyses that are no table of scores: predictions side by side (Table 3), unique valid entities (Figure 4).

use std::collections::BTreeMap;

use melm::augment::Method;
use melm::files::write_shared;
use melm::random::Seed;
use melm::stage::{Control, Event, Run};
use melm::tagger::Tagger;
use melm::training::Budget;
use melm_eval::statistics::Mean;
use melm_eval::{Cell, Entities, Figure, MODELS, Prediction, Series};
use melm_text::Corpus;

use super::{Workshop, grids};
use crate::args::Reproduce;
use crate::failure::Failure;
use crate::interrupt::{self, Deferred};
use crate::listener::Listener;
use crate::models;
use crate::output::{self, Output};
use crate::terminal::Terminal;

/// Sentences shown.
const N_SHOWN: usize = 5;
/// How long the oracle learns from all of a language's gold.
const ORACLE: &str = "3 epochs";

/// Lets a listener of one run hear cells.
fn hear_with(listener: &mut Listener) -> impl FnMut(&Cell, &'static str, Event<'_>) -> Control {
    |_: &Cell, stage: &'static str, event: Event<'_>| {
        let wish = listener.hear(stage, event);
        if interrupt::is_requested() { Control::Stop } else { wish }
    }
}

fn list(cells: &[Cell]) -> Result<(), Failure> {
    output::print(&cells.iter().map(|cell| format!("{cell}\n")).collect::<String>())
}

fn folder(command: &Reproduce) -> Result<(), Failure> {
    std::fs::create_dir_all(&command.out)
        .map_err(|source| Output::failed(&command.out.display().to_string(), source))
}

pub(super) fn predictions(command: &Reproduce, terminal: &Terminal) -> Result<(), Failure> {
    let (name, grid) = grids::open(command)?;
    let mut cells = grids::cells(command, &grid)?;
    cells.truncate(1);
    if command.dry_run {
        return list(&cells);
    }
    let data = grids::data(command, &name, &grid, &cells, terminal)?;
    let workshop = Workshop::new((&command.comparing, &name), &grid, data, terminal)?;
    let bench = workshop.bench(None);
    let Cell { language, size, draw, .. } = &cells[0];
    terminal.say(&format!("fine-tuning on {size} sentences of {language}, draw {draw}"));
    folder(command)?;
    let _deferred = Deferred::begin();
    let (device, _) = models::device(&command.comparing.machine)?;
    let mut listener = Listener::new(u64::MAX, terminal);
    let found = bench.predictions((&cells[0], N_SHOWN), &device, &mut hear_with(&mut listener))?;
    drop(listener);
    let title = format!("### The likeliest five: {size} sentences of {language}, draw {draw}");
    let text = side_by_side(&title, &found.0, &found.1);
    write_shared(&command.out.join("table-predictions.md"), text.as_bytes())?;
    output::print(&text)
}

/// A table a sentence: each entity token with the words of each model.
fn side_by_side(head: &str, shown: &Corpus, predictions: &[Prediction]) -> String {
    let title = |method: Method| match method {
        Method::MlmEntity => "MLM",
        Method::MelmPlain => "MELM w/o linearize",
        _ => "MELM",
    };
    let mut text = format!("{head}\n\n");
    for (at, sentence) in shown.sentences().iter().enumerate() {
        let words: Vec<_> = sentence.tokens().iter().map(ToString::to_string).collect();
        text += &format!(
            "{}\n\n| token | tag | {} |\n| --- | --- | --- | --- | --- |\n",
            words.join(" "),
            MODELS.map(title).join(" | ")
        );
        for one in predictions.iter().filter(|one| one.sentence == at) {
            let tag = shown.types().spell(sentence.tags()[one.token], shown.scheme());
            let models: Vec<_> = one.words.iter().map(|words| words.join(", ")).collect();
            text += &format!("| {} | {tag} | {} |\n", words[one.token], models.join(" | "));
        }
        text += "\n";
    }
    text + "Every entity token that is one piece is masked alone; nothing is kept from the candidates.\n"
}

pub(super) fn entities(command: &Reproduce, terminal: &Terminal) -> Result<(), Failure> {
    let (name, grid) = grids::open(command)?;
    let mut cells = grids::cells(command, &grid)?;
    // Budgets are of taggers, which there are none of here.
    cells.dedup_by(|a, b| Cell { budget: b.budget, ..a.clone() } == *b);
    if command.dry_run {
        return list(&cells);
    }
    let data = grids::data(command, &name, &grid, &cells, terminal)?;
    let workshop = Workshop::new((&command.comparing, &name), &grid, data, terminal)?;
    let bench = workshop.bench(None);
    terminal.say(&workshop.described(&cells));
    folder(command)?;
    let _deferred = Deferred::begin();
    let (device, _) = models::device(&command.comparing.machine)?;
    let mut listener = Listener::new(u64::MAX, terminal);
    let mut counts: Vec<(Cell, Entities)> = Vec::new();
    let mut languages: Vec<_> = cells.iter().map(|cell| cell.language.clone()).collect();
    languages.sort();
    languages.dedup();
    for language in languages {
        let mut hear = |stage: &'static str, event: Event<'_>| listener.hear(stage, event);
        let mut run = Run { seed: Seed(1), folder: None, observer: &mut hear };
        let mut settings = bench.plan_of(&cells[0]).tagger;
        settings.training.budget = ORACLE.parse::<Budget>().expect("it is a budget");
        terminal.say(&format!("training the oracle on all of {language} for {ORACLE}"));
        let (gold, dev) = bench.whole(&language)?;
        let stage = &mut run.stage("oracle");
        let oracle = Tagger::train(bench.tagger, &gold, dev.as_ref(), &settings, &device, stage)?;
        let own: Vec<_> = cells.iter().filter(|cell| cell.language == language).cloned().collect();
        let hear = &mut hear_with(&mut listener);
        counts.extend(bench.entities(&own, (&oracle.tagger, &device), hear)?);
    }
    drop(listener);
    let (text, figure) = counted(&counts);
    write_shared(&command.out.join("table-entities.md"), text.as_bytes())?;
    write_shared(&command.out.join("table-entities.svg"), figure.svg().as_bytes())?;
    output::print(&text)
}

/// The counts by size and method, means over languages and draws.
fn counted(counts: &[(Cell, Entities)]) -> (String, Figure) {
    let mut rows: Vec<((usize, String), Vec<Entities>)> = Vec::new();
    let has_variants = counts.iter().any(|(cell, _)| cell.variant != counts[0].0.variant);
    for (cell, entities) in counts {
        let variant = if has_variants { format!(", {}", cell.variant) } else { String::new() };
        let place = (cell.size, format!("{}{variant}", cell.method));
        match rows.iter_mut().find(|(known, _)| *known == place) {
            Some((_, all)) => all.push(*entities),
            None => rows.push((place, vec![*entities])),
        }
    }
    rows.sort_by_key(|((size, _), _)| *size);
    let mut text = "### Unique entities of the training set\n\n| gold | method | unique | valid | valid and not in gold |\n\
                    | --- | --- | --- | --- | --- |\n".to_owned();
    let (mut places, mut series): (Vec<String>, BTreeMap<String, Series>) = Default::default();
    for ((size, method), all) in rows {
        let mean = |of: &dyn Fn(&Entities) -> usize| {
            let values: Vec<_> = all.iter().map(|one| of(one) as f64).collect();
            Mean::of(&values).expect("a row has an entry")
        };
        let (unique, valid) = (mean(&|one| one.unique), mean(&|one| one.valid));
        let new = mean(&|one| one.valid_new);
        text += &format!(
            "| {size} | {method} | {:.0} | {:.0} | {:.0} |\n",
            unique.mean, valid.mean, new.mean
        );
        let place = size.to_string();
        let at = places.iter().position(|known| *known == place).unwrap_or_else(|| {
            places.push(place);
            places.len() - 1
        });
        let line =
            series.entry(method.clone()).or_insert(Series { name: method, points: Vec::new() });
        line.points.push((at, valid.mean, valid.sd));
    }
    let figure = Figure {
        title: "Unique valid entities".to_owned(),
        x: "gold sentences".to_owned(),
        y: "entities".to_owned(),
        places,
        series: series.into_values().collect(),
    };
    text += "\nMeans over languages, draws and seeds. Valid: an oracle, a tagger trained on all gold of the language, finds \
             the mention with the same label.\n";
    (text, figure)
}
