//! The metrics of the panel's trainings. They are saved with the votes, because the folders of the trainings are
//! removed.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::settings::SelfTrainingSettings;
use super::vote::{VOTES, VoteKey, create_dir};
use crate::Error;
use crate::files::write_whole;
use crate::training::EpochMetrics;

/// Saves the metrics of one tagger in the folder of a run's stages: a line for each epoch.
pub(super) fn save_metrics(
    stages: &Path,
    key: &VoteKey,
    epochs: &[EpochMetrics],
) -> Result<(), Error> {
    let path = metrics_path(stages, key.pass, key.tagger);
    let line = |epoch| {
        let mut line = json!({ "stage": "panel", "pass": key.pass, "tagger": key.tagger });
        if let (Some(line), Value::Object(values)) = (line.as_object_mut(), json!(epoch)) {
            line.extend(values);
        }
        format!("{line}\n")
    };
    create_dir(path.parent().unwrap_or(stages))?;
    write_whole(&path, epochs.iter().map(line).collect::<String>().as_bytes())
}

/// Returns the saved metrics of all taggers, in the order of their trainings.
pub(crate) fn panel_metrics(stages: &Path, settings: &SelfTrainingSettings) -> String {
    let mut lines = String::new();
    for pass in 1..=settings.passes.get() {
        for tagger in 1..=settings.panel.get() {
            let saved = std::fs::read_to_string(metrics_path(stages, pass, tagger));
            lines += &saved.unwrap_or_default();
        }
    }
    lines
}

fn metrics_path(stages: &Path, pass: u32, tagger: usize) -> PathBuf {
    stages.join(VOTES).join(format!("pass-{pass}-tagger-{tagger}.metrics.jsonl"))
}
