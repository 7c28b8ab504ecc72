//! The metrics of the panel's trainings. They are saved with the votes, because the folders of the trainings are
//! removed.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::settings::SelfTrainingSettings;
use super::vote::{VOTES, VoteKey};
use crate::Error;
use crate::files::{create_folder, read_sealed, write_sealed};
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
    create_folder(path.parent().unwrap_or(stages))?;
    write_sealed(&path, &epochs.iter().map(line).collect::<String>())
}

/// Returns the saved metrics of all taggers, in the order of their trainings.
pub(crate) fn panel_metrics(
    stages: &Path,
    settings: &SelfTrainingSettings,
) -> Result<String, Error> {
    let mut lines = String::new();
    for pass in 1..=settings.passes.get() {
        for tagger in 1..=settings.panel.get() {
            lines += &read_sealed(&metrics_path(stages, pass, tagger))?.unwrap_or_default();
        }
    }
    Ok(lines)
}

fn metrics_path(stages: &Path, pass: u32, tagger: usize) -> PathBuf {
    stages.join(VOTES).join(format!("pass-{pass}-tagger-{tagger}.metrics.jsonl"))
}
