//! Reads labelled files: one file, or one for each language.

use std::path::Path;

use melm::Corpus;
use melm::notes::dev_warnings;
use melm_text::LabelledFile;

use crate::args::{InputFile, InputOptions};
use crate::failure::Failure;
use crate::input;
use crate::output::is_stdout;
use crate::terminal::{Terminal, count};

/// Reads one file. Fails if it contains no mention, because a model cannot learn from it.
pub(crate) fn read_file(
    path: &Path,
    options: &InputOptions,
    terminal: &Terminal,
) -> Result<Corpus, Failure> {
    let read_options = input::read_options(options, path)?;
    let file = LabelledFile::read(input::open(path, options)?, &read_options)?;
    let mut sentences = file.corpus().sentences().iter();
    if sentences.all(|sentence| sentence.mentions().next().is_none()) {
        return Err(melm::Error::NoMentions { name: file.source().name().to_owned() }.into());
    }
    input::report_structure(file.structure(), terminal);
    Ok(file.into_corpus())
}

/// Reads the files as one corpus. If there are several files, fails if one has no language, or if two have the same
/// language.
pub(crate) fn read(
    inputs: &[InputFile],
    options: &InputOptions,
    terminal: &Terminal,
) -> Result<Corpus, Failure> {
    check(inputs)?;
    let mut corpora = Vec::new();
    for input in inputs {
        let corpus = read_file(&input.path, options, terminal)?;
        let Some(language) = &input.language else { return Ok(corpus) };
        corpora.push((language.as_str(), corpus));
    }
    Ok(Corpus::from_languages(corpora.iter().map(|(language, corpus)| (*language, corpus))))
}

/// Reads the dev set, if there is one. Fails if it has a language that the training set does not have.
pub(crate) fn read_dev(
    train: &Corpus,
    inputs: &[InputFile],
    options: &InputOptions,
    terminal: &Terminal,
) -> Result<Option<Corpus>, Failure> {
    for InputFile { language, path } in inputs {
        let is_known = match language {
            Some(code) => train.languages().iter().any(|part| *part.code == **code),
            None => train.languages().is_empty(),
        };
        if is_known {
            continue;
        }
        return Err(match language {
            Some(code) => Failure::Usage {
                message: format!("the dev set has the language `{code}`, but TRAIN does not"),
                hint: "use the same languages for TRAIN and `--dev`",
            },
            None => Failure::Usage {
                message: format!("`{}` has no language", path.display()),
                hint: "TRAIN has languages, so name the language of the dev set too: `--dev en=FILE`",
            },
        });
    }
    if inputs.is_empty() {
        return Ok(None);
    }
    let dev = read(inputs, options, terminal)?;
    warn_about_dev(train, &dev, terminal);
    Ok(Some(dev))
}

/// Warns if the scores on a dev set mislead.
pub(crate) fn warn_about_dev(train: &Corpus, dev: &Corpus, terminal: &Terminal) {
    terminal.warn_all(dev_warnings(train, dev));
}

/// Describes a corpus: ``100 sentences of `file` ``, for each file.
pub(crate) fn describe(corpus: &Corpus) -> String {
    let one = |at: usize, n_sentences: usize| {
        let name = corpus.files().get(at).map_or("memory", |file| file.source().name());
        format!("{} of `{name}`", count(n_sentences, "sentence"))
    };
    if corpus.languages().is_empty() {
        return one(0, corpus.sentences().len());
    }
    let parts = corpus.languages().iter().enumerate();
    let parts =
        parts.map(|(at, part)| format!("{} ({})", one(at, part.sentences.len()), part.code));
    parts.collect::<Vec<_>>().join(", ")
}

/// Fails if two files have the same language, or if standard input is named twice.
fn check(inputs: &[InputFile]) -> Result<(), Failure> {
    let is_named = |input: &InputFile| input.language.is_some();
    if inputs.len() > 1 && !inputs.iter().all(is_named) {
        let is_number = |input: &InputFile| input.path.to_string_lossy().parse::<u64>().is_ok();
        let hint = if inputs.iter().any(|input| is_number(input) && !input.path.exists()) {
            "write `en=a.conll de=b.conll`; a number is read as a file unless it follows `=`: `--check-gold=4`"
        } else {
            "write `en=a.conll de=b.conll`"
        };
        let message = "several files need a language each".into();
        return Err(Failure::Usage { message, hint });
    }
    for (at, input) in inputs.iter().enumerate() {
        let before = &inputs[..at];
        if let Some(code) = &input.language
            && before.iter().any(|other| other.language == input.language)
        {
            return Err(Failure::Usage {
                message: format!("the language `{code}` is given twice"),
                hint: "pass one file for each language",
            });
        }
    }
    refuse_second_stdin(inputs.iter().map(|input| input.path.as_path()))
}

/// Fails if two of the input files are standard input.
pub(crate) fn refuse_second_stdin<'a>(
    mut paths: impl Iterator<Item = &'a Path>,
) -> Result<(), Failure> {
    let is_stdin = |path: &'a Path| is_stdout(path);
    if paths.by_ref().any(is_stdin) && paths.any(is_stdin) {
        return Err(Failure::Usage {
            message: "only one of the files can be standard input".into(),
            hint: "pass the other files by name",
        });
    }
    Ok(())
}
