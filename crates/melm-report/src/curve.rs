//! Losses and scores of trainings: the lines of `metrics.jsonl`.

use std::path::Path;

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
    let text = match std::fs::read_to_string(path) {
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
    let mut stages: Vec<&str> = lines.iter().map(|line| line.stage.as_str()).collect();
    stages.dedup();
    Ok(stages.iter().flat_map(|stage| charts(stage, &lines)).collect())
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

/// Returns the charts of one stage.
fn charts(stage: &str, lines: &[MetricsLine]) -> Vec<Chart> {
    let own: Vec<&MetricsLine> = lines.iter().filter(|line| line.stage == stage).collect();
    let loss = series(&own, "training", |line| Some(line.loss));
    let dev_loss = series(&own, "dev", |line| line.dev_loss);
    let f1 = series(&own, "dev", |line| line.dev_f1.map(|f1| 100.0 * f1));
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
    let mut all: Vec<((u32, u32, u32), Series)> = Vec::new();
    for line in lines {
        let Some(y) = value(line).filter(|y| y.is_finite()) else { continue };
        let key = (line.pass, line.tagger, line.fold);
        let at = all.iter().position(|(known, _)| *known == key).unwrap_or_else(|| {
            let name = match key {
                (0, 0, 0) => name.to_owned(),
                (0, 0, fold) => format!("fold {fold}"),
                (pass, tagger, _) => format!("pass {pass}, tagger {tagger}"),
            };
            all.push((key, Series { name, points: Vec::new() }));
            all.len() - 1
        });
        all[at].1.points.push(Point { x: line.step as f64, y });
    }
    all.into_iter().map(|(_, series)| series).collect()
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
        std::fs::write(&path, "{}\n").unwrap();
        assert!(matches!(read(&path), Err(Error::Line { line: 1, .. })));
    }
}
