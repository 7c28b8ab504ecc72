//! Reads unlabelled text.

use std::path::Path;

use melm::Corpus;
use melm_text::{LabelledFile, UnlabelledText, add_missing_tags};

use crate::args::{InputFile, InputOptions};
use crate::failure::Failure;
use crate::input;

/// Reads the files of `--unlabelled`. Fails if only one of the text and `train` has languages.
pub(crate) fn read(
    inputs: &[InputFile],
    train: &Corpus,
    options: &InputOptions,
) -> Result<Option<UnlabelledText>, Failure> {
    check_languages(inputs, train)?;
    let mut texts = Vec::new();
    for InputFile { language, path } in inputs {
        let text = read_file(path, options)?;
        texts.push(match language {
            Some(code) => text.with_language(code),
            None => text,
        });
    }
    Ok((!texts.is_empty()).then(|| UnlabelledText::join(texts)))
}

/// Reads one file.
fn read_file(path: &Path, options: &InputOptions) -> Result<UnlabelledText, Failure> {
    let read_options = input::read_options(options, path)?;
    let source = input::open(path, options)?;
    let source = add_missing_tags(&source, &read_options).unwrap_or(source);
    let file = LabelledFile::read(source, &read_options)?;
    Ok(UnlabelledText::from_corpus(&file.into_corpus()))
}

/// Fails if only one of the text and `train` has languages.
fn check_languages(inputs: &[InputFile], train: &Corpus) -> Result<(), Failure> {
    for InputFile { language, path } in inputs {
        match (language, train.languages().is_empty()) {
            (Some(code), true) => {
                return Err(Failure::Usage {
                    message: format!("the text has the language `{code}`, but TRAIN has none"),
                    hint: "name TRAIN's language too: `en=FILE`",
                });
            }
            (None, false) => {
                return Err(Failure::Usage {
                    message: format!("the text `{}` has no language", path.display()),
                    hint: "TRAIN has languages, so name the language of the text too: `--unlabelled en=FILE`",
                });
            }
            _ => {}
        }
    }
    Ok(())
}
