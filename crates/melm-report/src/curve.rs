//! Losses and scores of trainings: the lines of `metrics.jsonl`.

use std::collections::HashMap;
use std::hash::Hash;
use std::path::Path;

use melm::files::MAX_RUN_FILE;
use melm::nn::files::read_text;
use serde::{Deserialize, Serialize};

use crate::Error;

/// A line chart.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Chart {
    /// The title.
    pub title: String,
    /// What the horizontal axis counts.
    pub x: String,
    /// What the vertical axis counts.
    pub y: String,
    /// The lines.
    pub series: Vec<Series>,
}

/// A line of a chart.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Series {
    /// The name in the legend.
    pub name: String,
    /// The points, from left to right.
    pub points: Vec<Point>,
}

/// A point of a line.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Point {
    /// The horizontal value.
    pub x: f64,
    /// The vertical value.
    pub y: f64,
}

/// A line of `metrics.jsonl`.
#[derive(Clone, Debug, Deserialize)]
struct MetricsLine {
    stage: String,
    #[serde(default)]
    pass: u32,
    #[serde(default)]
    tagger: u32,
    #[serde(default)]
    fold: u32,
    step: u64,
    loss: f64,
    dev_loss: Option<f64>,
    dev_f1: Option<f64>,
}

/// Reads `metrics.jsonl` and returns a chart of the loss and, if it was measured, of F1 for each stage. Returns no
/// chart if the file does not exist.
///
/// # Errors
/// If the file cannot be read, or if a line is not valid.
pub(crate) fn read(path: &Path) -> Result<Vec<Chart>, Error> {
    let text = match read_text(path, MAX_RUN_FILE) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        read => read.map_err(|source| Error::Read { path: path.to_path_buf(), source })?,
    };
    let mut lines: Vec<MetricsLine> = Vec::new();
    for (at, json) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        let failed = |error: serde_json::Error| Error::Line {
            path: path.to_path_buf(),
            line: at + 1,
            what: error.to_string(),
        };
        lines.push(serde_json::from_str(json).map_err(failed)?);
    }
    let by_stage = group_by(&lines, |line| line.stage.as_str());
    Ok(by_stage.iter().flat_map(|(stage, own)| charts(stage, own)).collect())
}

/// Divides lines into groups with the same key, in the order of the first line of each group. The lines of a group need
/// not be neighbours.
fn group_by<'l, K: Copy + Eq + Hash, L: 'l>(
    lines: impl IntoIterator<Item = &'l L>,
    key: impl Fn(&'l L) -> K,
) -> Vec<(K, Vec<&'l L>)> {
    let mut places = HashMap::new();
    let mut groups: Vec<(K, Vec<&L>)> = Vec::new();
    for line in lines {
        let place = *places.entry(key(line)).or_insert_with(|| {
            groups.push((key(line), Vec::new()));
            groups.len() - 1
        });
        groups[place].1.push(line);
    }
    groups
}

/// The title of a stage.
fn title(stage: &str) -> &str {
    match stage {
        "finetune" => "Fine-tuning",
        "judge" => "The judge",
        "panel" => "The panel",
        "gold-check" => "Checking gold",
        "daga" => "Language model",
        "mulda" => "Encoder-decoder",
        other => other,
    }
}

/// Returns the charts of the lines of one stage.
fn charts(stage: &str, lines: &[&MetricsLine]) -> Vec<Chart> {
    let loss = series(lines, "training", |line| Some(line.loss));
    let dev_loss = series(lines, "dev", |line| line.dev_loss);
    let f1 = series(lines, "dev", |line| line.dev_f1.map(|f1| 100.0 * f1));
    let chart = |what: &str, y: &str, series: Vec<Series>| Chart {
        title: format!("{}: {what}", title(stage)),
        x: "updates".to_owned(),
        y: y.to_owned(),
        series,
    };
    let both = loss.into_iter().chain(dev_loss).collect();
    let charts = [chart("loss", "loss", both), chart("F1 on dev", "F1", f1)];
    charts.into_iter().filter(|chart| !chart.series.is_empty()).collect()
}

/// Returns a line for each training of a stage. The trainings of a panel are numbered.
fn series(
    lines: &[&MetricsLine],
    name: &str,
    value: impl Fn(&MetricsLine) -> Option<f64>,
) -> Vec<Series> {
    let trainings = group_by(lines.iter().copied(), |line| (line.pass, line.tagger, line.fold));
    let point = |line: &&MetricsLine| {
        let y = value(line).filter(|y| y.is_finite())?;
        Some(Point { x: line.step as f64, y })
    };
    let one = |(key, own): &((u32, u32, u32), Vec<&MetricsLine>)| {
        let name = match *key {
            (0, 0, 0) => name.to_owned(),
            (0, 0, fold) => format!("fold {fold}"),
            (pass, tagger, _) => format!("pass {pass}, tagger {tagger}"),
        };
        Series { name, points: own.iter().filter_map(point).collect() }
    };
    trainings.iter().map(one).filter(|series| !series.points.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_training_has_a_line() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("metrics.jsonl");
        assert!(read(&path).unwrap().is_empty());
        let lines = [
            r#"{"stage":"finetune","step":1,"loss":3.0,"dev_loss":2.5}"#,
            r#"{"stage":"panel","pass":1,"tagger":1,"step":5,"loss":1.0,"dev_f1":0.5}"#,
            r#"{"stage":"panel","pass":1,"tagger":2,"step":5,"loss":1.5}"#,
        ];
        std::fs::write(&path, lines.join("\n")).unwrap();
        let charts = read(&path).unwrap();
        let titles: Vec<_> = charts.iter().map(|chart| chart.title.as_str()).collect();
        assert_eq!(titles, ["Fine-tuning: loss", "The panel: loss", "The panel: F1 on dev"]);
        let counts: Vec<_> = charts.iter().map(|chart| chart.series.len()).collect();
        assert_eq!(counts, [2, 2, 1]);
        assert_eq!(charts[2].series[0].points, [Point { x: 5.0, y: 50.0 }]);
        // Stages that alternate have one chart each, not one for each line.
        let alternating: String = (0..10)
            .map(|at| format!("{{\"stage\":\"{}\",\"step\":{at},\"loss\":1}}\n", at % 2))
            .collect();
        std::fs::write(&path, alternating).unwrap();
        let charts = read(&path).unwrap();
        let lengths: Vec<_> = charts.iter().map(|chart| chart.series[0].points.len()).collect();
        assert_eq!(lengths, [5, 5]);
        std::fs::write(&path, "{}\n").unwrap();
        assert!(matches!(read(&path), Err(Error::Line { line: 1, .. })));
    }
}
