//! Reads the files of `--silver`.

use melm::augment::Silver;
use melm_text::LabelledFile;

use crate::args;
use crate::args::SilverInput;
use crate::failure::Failure;
use crate::input;
use crate::terminal::Terminal;

/// Reads the files. The options for the format of input files do not apply: the format of each file is detected.
pub(super) fn read(command: &args::Augment, terminal: &Terminal) -> Result<Vec<Silver>, Failure> {
    let mut all: Vec<Silver> = Vec::new();
    for (at, SilverInput { name, path }) in command.silver.iter().enumerate() {
        if command.silver[..at].iter().any(|other| other.name == *name) {
            return Err(Failure::Usage {
                message: format!("two files of `--silver` have the name `{name}`"),
                hint: "name them: `--silver llm=a.jsonl --silver gliner=b.jsonl`",
            });
        }
        let options = input::read_options(&command.input, path)?;
        let options = melm_text::ReadOptions {
            format: None,
            scheme: None,
            token_column: None,
            tag_column: None,
            ..options
        };
        let file = LabelledFile::read(input::open(path, &command.input)?, &options)?;
        input::report_structure(file.structure(), terminal);
        let silver = Silver::new(name, file.into_corpus());
        all.push(if command.silver_drop_types { silver.dropping_other_types() } else { silver });
    }
    Ok(all)
}
