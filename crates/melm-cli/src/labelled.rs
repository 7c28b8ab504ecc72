//! Reads labelled files, one or one for each language, before any long work.

use std::path::Path;

use melm::Corpus;
use melm_text::LabelledFile;

use crate::args::{Input, Reading};
use crate::failure::Failure;
use crate::input;
use crate::output::is_stdout;
use crate::terminal::{Terminal, count};

/// Reads one file. A file without any mention is an error: there is nothing to learn from it.
pub(crate) fn read_file(
    path: &Path,
    reading: &Reading,
    terminal: &Terminal,
) -> Result<Corpus, Failure> {
    let options = input::options(reading, path)?;
    let file = LabelledFile::read(input::open(path, reading)?, &options)?;
    let mut sentences = file.corpus().sentences().iter();
    if sentences.all(|sentence| sentence.mentions().next().is_none()) {
        return Err(melm::Error::NoMentions { name: file.source().name().to_owned() }.into());
    }
    input::say_columns(file.structure().layout(), terminal);
    Ok(file.into_corpus())
}

/// Reads the files as one corpus. Several files need their languages, each another.
pub(crate) fn read(
    inputs: &[Input],
    reading: &Reading,
    terminal: &Terminal,
) -> Result<Corpus, Failure> {
    check(inputs)?;
    let mut corpora = Vec::new();
    for input in inputs {
        let corpus = read_file(&input.path, reading, terminal)?;
        let Some(language) = &input.language else { return Ok(corpus) };
        corpora.push((language.as_str(), corpus));
    }
    Ok(Corpus::from_languages(corpora.iter().map(|(language, corpus)| (*language, corpus))))
}

/// Reads a dev set, if there is one. Its languages must be those of the training set.
pub(crate) fn read_dev(
    train: &Corpus,
    inputs: &[Input],
    reading: &Reading,
    terminal: &Terminal,
) -> Result<Option<Corpus>, Failure> {
    for Input { language, path } in inputs {
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
                hint: "give both the same languages",
            },
            None => Failure::Usage {
                message: format!("the language of `{}` is not named", path.display()),
                hint: "TRAIN has languages: name the dev set's too, as `--dev en=FILE`",
            },
        });
    }
    if inputs.is_empty() { Ok(None) } else { read(inputs, reading, terminal).map(Some) }
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

fn check(inputs: &[Input]) -> Result<(), Failure> {
    let is_named = |input: &Input| input.language.is_some();
    if inputs.len() > 1 && !inputs.iter().all(is_named) {
        return Err(Failure::Usage {
            message: "several files need the names of their languages".into(),
            hint: "write `en=a.conll de=b.conll`",
        });
    }
    for (at, input) in inputs.iter().enumerate() {
        let before = &inputs[..at];
        if let Some(code) = &input.language
            && before.iter().any(|other| other.language == input.language)
        {
            return Err(Failure::Usage {
                message: format!("the language `{code}` is given twice"),
                hint: "give each language one file",
            });
        }
        if is_stdout(&input.path) && before.iter().any(|other| is_stdout(&other.path)) {
            return Err(Failure::Usage {
                message: "only one of the files can be standard input".into(),
                hint: "name the others",
            });
        }
    }
    Ok(())
}
