//! Finds out which command made a folder.

use std::path::Path;

use melm::nn::files::{MAX_CONFIG_BYTES, read_text};
use melm_text::shown;
use serde_json::Value;

use crate::{Error, Report, augmented, experiment};

/// The subfolder of a run that is not finished.
const UNFINISHED: &str = ".unfinished";

/// Reads the report of a folder.
pub(crate) fn read(dir: &Path) -> Result<Report, Error> {
    let failed = |source| Error::Read { path: dir.to_path_buf(), source };
    std::fs::read_dir(dir).map_err(failed)?;
    if let Some(record) = read_json(&dir.join("run.json"))? {
        return match record["command"].as_str() {
            Some("augment") => augmented::read(dir, &record),
            command => Err(Error::OtherCommand {
                dir: dir.to_path_buf(),
                command: shown(command.unwrap_or("?")),
            }),
        };
    }
    if dir.join(UNFINISHED).exists() {
        return Err(Error::Unfinished { dir: dir.to_path_buf() });
    }
    let command = read_json(&dir.join("command.json"))?.unwrap_or(Value::Null);
    experiment::read(dir, &command)
}

/// Reads a JSON file. Returns `None` if it does not exist.
fn read_json(path: &Path) -> Result<Option<Value>, Error> {
    let text = match read_text(path, MAX_CONFIG_BYTES) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        read => read.map_err(|source| Error::Read { path: path.to_path_buf(), source })?,
    };
    let failed = |error: serde_json::Error| Error::Line {
        path: path.to_path_buf(),
        line: error.line(),
        what: error.to_string(),
    };
    serde_json::from_str(&text).map(Some).map_err(failed)
}
