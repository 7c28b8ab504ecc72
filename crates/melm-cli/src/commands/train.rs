//! `melm train`: a tagger from labelled sentences.

use std::io::Write as _;
use std::path::Path;
use std::time::Instant;

use melm::files::{Fingerprint, write_whole};
use melm::folder::{Found, RunFolder};
use melm::model::Pretrained;
use melm::plan::Plan;
use melm::run::Seed;
use melm::stage::{Event, Run};
use melm::tagger::{Tagger, Trained};
use serde_json::{Map, Value, json};
use toml::Value as Toml;

use crate::args::Train;
use crate::data::Data;
use crate::failure::Failure;
use crate::interrupt::Deferred;
use crate::listener::Listener;
use crate::models;
use crate::output::Output;
use crate::progress::duration;
use crate::settings::{self, Flag, Needs};
use crate::terminal::{Terminal, count};

pub(crate) fn run(command: &Train, terminal: &Terminal) -> Result<(), Failure> {
    let started = Instant::now();
    let needs = |_: &Plan| Needs { masked_lm: false, tagger: true };
    let plan = settings::plan(&command.planning, &flags(command), needs, terminal)?;
    let read = |path: &Path| Data::read(path, &command.reading, terminal);
    let train = read(&command.file)?;
    let dev = command.dev.as_deref().map(read).transpose()?;
    let pretrained = models::open(&plan.model.tagger, terminal)?;
    let (cpu, device) = models::device(&command.planning.machine)?;
    let key = key(&plan, (&train, dev.as_ref()), (&pretrained, cpu.isa().name()))?;
    let folder = RunFolder::open(&command.out, &key, command.force)?;
    if folder.found == Found::Done {
        terminal.say(&format!("`{}` is done already", command.out.display()));
        return Ok(());
    }
    say_plan(&plan, (&train, dev.as_ref()), &device, terminal);
    folder.begin()?;

    let deferred = Deferred::begin();
    let mut listener = Listener::new(command.planning.save_every, terminal);
    let mut hear = |stage: &'static str, event: Event<'_>| listener.hear(stage, event);
    let mut run = Run { seed: Seed(plan.seed), folder: folder.work(), listener: &mut hear };
    let corpora = (&train.corpus, dev.as_ref().map(|dev| &dev.corpus));
    let trained =
        Tagger::train(&pretrained, corpora, (&plan.tagger, &cpu), &mut run.stage("tagger"))?;
    drop(listener);
    trained.tagger.save(folder.dir())?;
    let metrics = std::fs::read(folder.work().join("tagger/metrics.jsonl")).unwrap_or_default();
    write_whole(&folder.dir().join("metrics.jsonl"), &metrics)?;
    write_whole(&folder.dir().join("plan.toml"), plan.to_toml().as_bytes())?;
    let record = record(&plan, (&train, dev.as_ref()), &trained, (&device, started));
    folder.finish(record.clone())?;
    drop(deferred);
    say_result(command, &trained, &record, terminal)
}

fn flags(command: &Train) -> Vec<Flag> {
    let budget = |option: String, text: String| Flag {
        option,
        key: "tagger.budget",
        value: Toml::String(text),
    };
    let epochs = command.epochs.map(|n| budget(format!("--epochs {n}"), format!("{n} epochs")));
    let updates = command.updates.map(|n| budget(format!("--updates {n}"), format!("{n} updates")));
    epochs.into_iter().chain(updates).collect()
}

/// Stands for everything that can change the result.
fn key(
    plan: &Plan,
    (train, dev): (&Data, Option<&Data>),
    (pretrained, isa): (&Pretrained, &str),
) -> Result<String, Failure> {
    let mut plan = plan.clone();
    // Where a model lies does not matter, what it is does.
    plan.model.masked_lm.clear();
    plan.model.tagger.clear();
    let mut fingerprint = Fingerprint::default();
    let dev = dev.map_or("", |dev| dev.source.text());
    let model = pretrained.fingerprint()?;
    let parts = ["train", env!("CARGO_PKG_VERSION"), isa, &model, &plan.to_toml()];
    for part in parts.into_iter().chain([train.source.text(), dev]) {
        fingerprint.add(part.as_bytes());
    }
    Ok(fingerprint.finish())
}

fn say_plan(plan: &Plan, (train, dev): (&Data, Option<&Data>), device: &str, terminal: &Terminal) {
    let dev = dev.map_or("no dev set: the last epoch is kept".to_owned(), |dev| {
        format!("the best epoch by {}", dev.described())
    });
    terminal.say(&format!(
        "training {} on {} for {}, {dev}; {device}",
        plan.model.tagger,
        train.described(),
        plan.tagger.fit.budget,
    ));
}

fn record(
    plan: &Plan,
    (train, dev): (&Data, Option<&Data>),
    trained: &Trained,
    (device, started): (&str, Instant),
) -> Map<String, Value> {
    let mut record = Map::new();
    let mut put = |key: &str, value: Value| record.insert(key.to_owned(), value);
    put("melm", env!("CARGO_PKG_VERSION").into());
    put("command", "train".into());
    put("seed", plan.seed.into());
    put("train", train.record());
    put("dev", dev.map_or(Value::Null, Data::record));
    put("model", plan.model.tagger.as_str().into());
    put("device", device.into());
    put("updates", trained.fitted.n_steps.into());
    put("epochs", trained.fitted.epochs.len().into());
    put("best", json!(trained.fitted.best));
    put("windowed_sentences", trained.cuts.n_windowed.into());
    put("left_out_sentences", trained.cuts.n_left_out.into());
    put("cut_tokens", trained.cuts.n_cut_tokens.into());
    put("seconds", json!((started.elapsed().as_secs_f64() * 10.0).round() / 10.0));
    record
}

fn say_result(
    command: &Train,
    trained: &Trained,
    record: &Map<String, Value>,
    terminal: &Terminal,
) -> Result<(), Failure> {
    for line in cuts(trained.cuts) {
        terminal.say(&line);
    }
    let seconds = record["seconds"].as_f64().unwrap_or_default();
    let best = match trained.fitted.best {
        Some(best) => format!("dev F1 {:.2} in epoch {}", best.value * 100.0, best.epoch),
        None => "last epoch kept".to_owned(),
    };
    terminal.say(&format!(
        "wrote `{}`: {best}, {} in {}",
        command.out.display(),
        count(usize::try_from(trained.fitted.n_steps).unwrap_or(usize::MAX), "update"),
        duration(seconds),
    ));
    if !command.json {
        return Ok(());
    }
    let mut out = Output::create("-".as_ref(), false)?;
    serde_json::to_writer_pretty(&mut out, record)
        .map_err(std::io::Error::from)
        .and_then(|()| out.write_all(b"\n"))
        .map_err(|error| Output::failed("standard output", error))?;
    out.finish()
}

/// What did not fit the model, in words.
pub(crate) fn cuts(cuts: melm::tagger::Cuts) -> Vec<String> {
    let lines = [
        (cuts.n_windowed, "sentence", "read in overlapping windows: longer than the model"),
        (cuts.n_left_out, "sentence", "left out: a mention is longer than the model"),
        (cuts.n_cut_tokens, "token", "read in part: more pieces than a quarter of the model"),
    ];
    let said = lines.into_iter().filter(|(n, ..)| *n > 0);
    said.map(|(n, noun, what)| format!("{} {what}", count(n, noun))).collect()
}
