//! `melm score`: predicted tags against the right ones.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::Path;

use melm_text::score::{Rates, Reading, Weight};
use melm_text::{
    EntityTypes, Error, Problems, ReadOptions, Reader, Record, Scheme, Scores, Source, Survey,
};
use serde::Serialize;

use crate::args::Score;
use crate::failure::Failure;
use crate::input;
use crate::output::Output;
use crate::progress::Progress;
use crate::terminal::Terminal;

pub(crate) fn run(command: &Score, terminal: &Terminal) -> Result<(), Failure> {
    if command.gold == command.predicted && command.gold == Path::new("-") {
        return Err(Failure::Usage {
            message: "only one of the two files can be standard input".into(),
            hint: "name the other file",
        });
    }
    let options = input::options(&command.reading)?;
    let gold = input::open(&command.gold, &command.reading)?;
    let predicted = input::open(&command.predicted, &command.reading)?;
    let reading = if command.strict {
        Reading::Strict(strict_scheme(&gold, &predicted, &options)?)
    } else {
        Reading::Lenient
    };
    let (scores, types) = score(&gold, &predicted, &options, reading, terminal)?;

    let mut out = Output::create("-".as_ref(), false)?;
    let text = if command.json { json(&scores, &types) } else { table(&scores, &types, reading) };
    out.write_all(text.as_bytes()).map_err(|error| Output::failed("standard output", error))?;
    out.finish()
}

/// Strict scoring needs a scheme; both files must be spelt with its letters.
fn strict_scheme(
    gold: &Source,
    predicted: &Source,
    options: &ReadOptions,
) -> Result<Scheme, Failure> {
    let survey = Survey::read(gold, options, |_, _, _| {})?;
    survey.require_sound(gold, true)?;
    let scheme = survey.scheme.scheme;
    for source in [gold, predicted] {
        let mut foreign = None;
        Survey::read(source, options, |record, types, _| {
            if foreign.is_some() {
                return;
            }
            let at = record
                .tags
                .iter()
                .position(|tag| matches!(tag, melm_text::Tag::In(part, _) if !scheme.has(*part)));
            foreign =
                at.map(|at| (types.spell(record.tags[at], scheme).to_string(), record.line_of(at)));
        })?;
        if let Some((tag, line)) = foreign {
            return Err(Failure::Mismatch {
                message: format!("`{tag}` in {}:{line} is no tag of {scheme}", source.name()),
                hint: "name the scheme of both files with `--scheme`, or convert one of them",
            });
        }
    }
    Ok(scheme)
}

fn score(
    gold: &Source,
    predicted: &Source,
    options: &ReadOptions,
    reading: Reading,
    terminal: &Terminal,
) -> Result<(Scores, EntityTypes), Failure> {
    let mut progress = Progress::new("scoring", gold.text().len(), terminal);
    let mut scores = Scores::new(reading);
    let mut types = EntityTypes::default();
    let mut readers = [Reader::new(gold, options)?, Reader::new(predicted, options)?];
    let mut problems = [Problems::default(), Problems::default()];
    let mut records = [Record::default(), Record::default()];
    let mut mismatch = None;
    loop {
        let [g, p] = [0, 1].map(|f| readers[f].read(&mut records[f], &mut types, &mut problems[f]));
        if !g && !p {
            break;
        }
        if mismatch.is_none() {
            mismatch = differ([gold, predicted], &records, [g, p]);
        }
        if mismatch.is_none() {
            scores.add(&records[0].tags, &records[1].tags);
        }
        progress.at(readers[0].position());
    }
    for (source, problems) in [gold, predicted].into_iter().zip(problems) {
        if !problems.is_empty() {
            return Err(Error::data(source.name(), source.text(), problems).into());
        }
    }
    match mismatch {
        Some(message) => Err(Failure::Mismatch {
            message,
            hint: "predictions must keep the sentences and tokens of the gold file, in its order",
        }),
        None => Ok((scores, types)),
    }
}

/// What differs between two sentences that should be the same.
fn differ(sources: [&Source; 2], records: &[Record<'_>; 2], read: [bool; 2]) -> Option<String> {
    let [g, p] = sources.map(Source::name);
    let [gold, predicted] = records;
    match read {
        [true, false] => return Some(format!("{g}:{} has no counterpart in {p}", gold.line)),
        [false, true] => return Some(format!("{p}:{} has no counterpart in {g}", predicted.line)),
        _ => {}
    }
    let n = gold.tokens.len().min(predicted.tokens.len());
    let at = (0..n).find(|&at| gold.tokens[at] != predicted.tokens[at]).unwrap_or(n);
    let show = |record: &Record<'_>| {
        record.tokens.get(at).map_or("the end of the sentence".into(), |token| format!("`{token}`"))
    };
    (gold.tokens != predicted.tokens).then(|| {
        format!(
            "{g}:{} has {} where {p}:{} has {}",
            gold.line_of(at),
            show(gold),
            predicted.line_of(at),
            show(predicted)
        )
    })
}

#[derive(Serialize)]
struct Json {
    f1: f64,
    precision: f64,
    recall: f64,
    support: u64,
    predicted: u64,
    correct: u64,
    #[serde(rename = "macro")]
    equal: Rates,
    weighted: Rates,
    types: BTreeMap<String, TypeJson>,
}

#[derive(Serialize)]
struct TypeJson {
    #[serde(flatten)]
    rates: Rates,
    support: u64,
    predicted: u64,
    correct: u64,
}

fn json(scores: &Scores, types: &EntityTypes) -> String {
    let micro = scores.micro();
    let Rates { precision, recall, f1 } = micro.rates();
    let by_type = scores.by_type(types).into_iter().map(|(entity_type, c)| {
        let json = TypeJson {
            rates: c.rates(),
            support: c.gold,
            predicted: c.predicted,
            correct: c.correct,
        };
        (types.shown(entity_type).to_owned(), json)
    });
    let json = Json {
        f1,
        precision,
        recall,
        support: micro.gold,
        predicted: micro.predicted,
        correct: micro.correct,
        equal: scores.mean(Weight::Equal),
        weighted: scores.mean(Weight::Support),
        types: by_type.collect(),
    };
    serde_json::to_string_pretty(&json).expect("plain numbers and strings") + "\n"
}

fn table(scores: &Scores, types: &EntityTypes, reading: Reading) -> String {
    let by_type = scores.by_type(types);
    let names = by_type.iter().map(|&(t, _)| types.shown(t).chars().count());
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
        row(types.shown(entity_type), counts.rates(), counts.gold);
    }
    let micro = scores.micro();
    row("micro", micro.rates(), micro.gold);
    row("macro", scores.mean(Weight::Equal), micro.gold);
    row("weighted", scores.mean(Weight::Support), micro.gold);
    let how = match reading {
        Reading::Lenient => "exact mentions, read as conlleval and seqeval do".to_owned(),
        Reading::Strict(scheme) => format!("exact mentions, strictly {scheme}"),
    };
    text + &format!("\n{how}\n")
}
