//! The report on a folder of `melm augment`.

use std::collections::HashSet;
use std::path::Path;

use melm::gold_check::GoldCheckSummary;
use melm::nn::files::{MAX_CONFIG_BYTES, read_text};
use melm_text::EntityTypes;
use serde_json::Value;

use crate::candidate::{self, Candidate, Origin};
use crate::command::{CommandLine, rebuild_augment};
use crate::gold::GoldSentences;
use crate::numbers::{self, Choices, Highlights};
use crate::visible::visible;
use crate::{Error, Fact, Kind, MAX_CANDIDATES, Report, curve, suspect};

/// Reads the folder. `run` is the content of `run.json`.
pub(crate) fn read(dir: &Path, run: &Value) -> Result<Report, Error> {
    let mut types = EntityTypes::default();
    let mut notes = Vec::new();
    let mut gold = read_gold(dir, run, &mut types, &mut notes);
    let drafts = dir.join("drafts.jsonl");
    let candidates = candidate::read(&drafts, &mut gold, &mut types)?;
    let n_folds = serde_json::from_value::<GoldCheckSummary>(run["gold_check"].clone());
    let n_folds = n_folds.map_or(0, |summary| summary.folds);
    let gold_check = suspect::read(&dir.join("gold.jsonl"), n_folds, &mut types)?;
    let charts = curve::read(&dir.join("metrics.jsonl"))?;
    let names: Vec<String> = types.iter().map(|t| visible(types.name(t))).collect();
    let folder = dir.display().to_string();
    let command = CommandLine::new(run, || rebuild_augment(run, &folder));
    let (mentions, funnels) =
        (numbers::count_types(&names, &gold, &candidates), numbers::funnels(&candidates, run));
    let (verdict, total) = (verdict(&candidates, &gold), candidates.len());
    let highlights = Highlights::new(&candidates);
    let candidates = numbers::sample(candidates, MAX_CANDIDATES, &highlights);
    Ok(Report {
        kind: Kind::Augment,
        folder: visible(&folder),
        melm: text(&run["melm"]),
        key: text(&run["key"]),
        facts: facts(run),
        verdict,
        command: command.text,
        is_recorded_command: command.is_recorded,
        notes,
        funnels,
        mentions,
        shown: Choices::new(&candidates, &names, total),
        highlights,
        gold_check,
        charts,
        tables: Vec::new(),
        candidates,
        types: names,
    })
}

/// Reads the gold sentences. If they are not known, adds the reason to `notes` and returns none.
fn read_gold(
    dir: &Path,
    run: &Value,
    types: &mut EntityTypes,
    notes: &mut Vec<String>,
) -> GoldSentences {
    let plan = read_text(&dir.join("plan.toml"), MAX_CONFIG_BYTES).unwrap_or_default();
    let has_union = !plan.lines().any(|line| line.trim() == "union = false");
    GoldSentences::read(dir, run, has_union, types).unwrap_or_else(|reason| {
        notes.push(format!(
            "The gold sentences are not known: {reason}. Differences are shown as far as the drafts record them, and the \
             counts of gold mentions have only the sources of drafts."
        ));
        GoldSentences::default()
    })
}

/// A JSON string, or the text of another JSON value. Empty for null.
pub(crate) fn text(value: &Value) -> String {
    match value {
        Value::String(text) => visible(text),
        Value::Null => String::new(),
        other => other.to_string(),
    }
}

/// Says how many candidates were kept, and what to do if none was.
fn verdict(candidates: &[Candidate], gold: &GoldSentences) -> String {
    let part = |is_text: bool, nouns: [&str; 2]| -> Option<String> {
        let own: Vec<_> =
            candidates.iter().filter(|one| (one.origin == Origin::Text) == is_text).collect();
        let kept: Vec<_> = own.iter().copied().filter(|one| one.verdict.is_kept()).collect();
        let n_new = count_new(&kept, gold);
        let [one, many] = nouns;
        let noun = if own.len() == 1 { one } else { many };
        (!own.is_empty()).then(|| {
            format!(
                "{} of {} {noun} were kept. They have {n_new} distinct mentions that gold does not have.",
                kept.len(),
                own.len()
            )
        })
    };
    let parts = [
        part(false, ["draft", "drafts"]),
        part(true, ["sentence of unlabelled text", "sentences of unlabelled text"]),
    ];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    if parts.is_empty() {
        return "The run made no drafts.".to_owned();
    }
    let advice = if candidates.iter().any(|one| one.verdict.is_kept()) {
        "Look at the least probable sentences below, and measure the gain with `melm trial`."
    } else {
        "Nothing was kept: train the judge longer, or keep all drafts with `--set filter.mode=off`."
    };
    format!("{} {advice}", parts.join(" "))
}

/// Counts the distinct mentions of candidates that gold does not have.
fn count_new(candidates: &[&Candidate], gold: &GoldSentences) -> usize {
    let mentions = candidates.iter().flat_map(|one| &one.mentions);
    let new = mentions.filter(|(entity_type, tokens)| !gold.has_mention(*entity_type, tokens));
    new.collect::<HashSet<_>>().len()
}

/// What was done: data, method, models, device, time.
fn facts(run: &Value) -> Vec<Fact> {
    let mut facts = Vec::new();
    let mut add = |name: &str, value: String| {
        if !value.is_empty() {
            facts.push(Fact { name: name.to_owned(), value });
        }
    };
    add("Training set", files(&run["train"]));
    add("Dev set", files(&run["dev"]));
    let unlabelled = run["text"]["files"].as_array().into_iter().flatten();
    add("Unlabelled text", unlabelled.map(file).collect::<Vec<_>>().join(", "));
    add("Method", text(&run["method"]));
    add("Rounds", text(&run["rounds"]));
    add("Seed", text(&run["seed"]));
    add("Language model", text(&run["masked_lm"]));
    add("Tagger", text(&run["tagger"]));
    if let Some(f1) = run["judge"]["value"].as_f64() {
        let epoch = text(&run["judge"]["epoch"]);
        add("Judge", format!("F1 {:.1} on dev, best after epoch {epoch}", 100.0 * f1));
    }
    add("Device", text(&run["device"]));
    if let Some(seconds) = run["seconds"].as_f64() {
        add("Time", duration(seconds));
    }
    add("Version", format!("melm {}", text(&run["melm"])));
    facts
}

fn files(value: &Value) -> String {
    match value {
        Value::Array(parts) => parts.iter().map(file).collect::<Vec<_>>().join(", "),
        Value::Null => String::new(),
        one => file(one),
    }
}

fn file(value: &Value) -> String {
    let language = value["language"].as_str().map(|code| format!("{code}: ")).unwrap_or_default();
    let name = value["file"].as_str().unwrap_or("memory");
    visible(&format!("{language}{name} ({} sentences)", text(&value["sentences"])))
}

/// Seconds as minutes or hours.
fn duration(seconds: f64) -> String {
    let whole = seconds.round();
    if whole < 60.0 {
        format!("{whole} s")
    } else if whole < 3600.0 {
        format!("{} min {} s", (whole / 60.0).floor(), whole % 60.0)
    } else {
        format!("{} h {} min", (whole / 3600.0).floor(), (whole % 3600.0 / 60.0).floor())
    }
}
