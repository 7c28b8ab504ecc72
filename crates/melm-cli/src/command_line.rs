//! The command line, which is recorded in output folders so that a run can be repeated.

use std::ffi::OsString;
use std::path::Path;

use melm::files::write_shared;
use serde_json::{Map, Value, json};

use crate::failure::Failure;

/// The file in the folder of an experiment that records its command.
const RECORD: &str = "command.json";

/// The arguments of the program, without its name.
#[derive(Debug, Clone)]
pub(crate) struct CommandLine {
    words: Vec<String>,
}

impl CommandLine {
    /// Takes all words of the command line. The first is the name of the program.
    pub(crate) fn new(words: &[OsString]) -> Self {
        let words = words.iter().skip(1).map(|word| word.to_string_lossy().into_owned());
        Self { words: words.collect() }
    }

    /// The arguments.
    pub(crate) fn arguments(&self) -> &[String] {
        &self.words
    }

    /// Writes `command.json` into the folder of an experiment: the arguments, and what else is in `record`. Several
    /// processes may do so at the same time.
    pub(crate) fn write(
        &self,
        dir: &Path,
        command: &str,
        mut record: Map<String, Value>,
    ) -> Result<(), Failure> {
        record.insert("melm".to_owned(), env!("CARGO_PKG_VERSION").into());
        record.insert("command".to_owned(), command.into());
        record.insert("arguments".to_owned(), json!(self.words));
        let text = format!("{:#}\n", Value::Object(record));
        Ok(write_shared(&dir.join(RECORD), text.as_bytes())?)
    }
}
