//! Reads unlabelled text, and the files whose sentences are left out of it.

use std::io;
use std::path::Path;

use melm::Corpus;
use melm_text::{TextFile, TextOptions, Tokenizer, TokenizerRules, UnlabelledText};

use crate::args::{InputFile, InputOptions, TextInput};
use crate::failure::Failure;
use crate::output::is_stdout;
use crate::terminal::{Terminal, count};

/// Reads the files of `--unlabelled`. Plain text is split into tokens like those of `train`. Fails if only one of the
/// text and `train` has languages.
pub(crate) fn read(
    text: &TextInput,
    train: &Corpus,
    input: &InputOptions,
    terminal: &Terminal,
) -> Result<Option<UnlabelledText>, Failure> {
    check_languages(&text.unlabelled, train)?;
    let mut texts = Vec::new();
    for InputFile { language, path } in &text.unlabelled {
        let rules = match language {
            Some(code) => TokenizerRules::for_language(train, code),
            None => TokenizerRules::from_corpus(train),
        };
        let options = TextOptions {
            format: text.text_format,
            encoding: input.encoding,
            token_column: text.text_column,
            tokens_key: input.tokens_key.clone(),
            text_key: text.text_key.clone(),
            ..TextOptions::with_tokenizer(Tokenizer::new(rules))
        };
        let own = open(path, &options)?;
        for file in own.files() {
            report(file, terminal);
        }
        texts.push(match language {
            Some(code) => own.with_language(code),
            None => own,
        });
    }
    Ok((!texts.is_empty()).then(|| UnlabelledText::join(texts)))
}

/// Reads the files of `--held-out`. Their format is detected, and the other options for input files apply.
pub(crate) fn read_held_out(
    text: &TextInput,
    train: &Corpus,
    input: &InputOptions,
) -> Result<Vec<UnlabelledText>, Failure> {
    let options = TextOptions {
        encoding: input.encoding,
        token_column: input.token_column,
        tokens_key: input.tokens_key.clone(),
        ..TextOptions::with_tokenizer(Tokenizer::new(TokenizerRules::from_corpus(train)))
    };
    text.held_out.iter().map(|path| open(path, &options)).collect()
}

fn open(path: &Path, options: &TextOptions) -> Result<UnlabelledText, Failure> {
    let text = if is_stdout(path) {
        UnlabelledText::read("standard input", io::stdin().lock(), options)
    } else {
        UnlabelledText::open(path, options)
    };
    Ok(text?)
}

/// Reports the lines of a file that were left out. With `--verbose`, also reports how the file was read.
fn report(file: &TextFile, terminal: &Terminal) {
    let name = &file.name;
    if terminal.is_verbose() {
        let n = count(file.n_sentences, "sentence");
        let gzip = if file.is_gzip { " in gzip" } else { "" };
        terminal.print(&format!("`{name}`: {n}, read as {}{gzip}", file.format));
        if let Some(rules) = &file.tokenizer {
            terminal.print(&format!("`{name}`: tokens as in TRAIN: {rules}"));
        }
    }
    if file.n_unspaced > 0 {
        let n = count(file.n_unspaced, "line");
        terminal.info(&format!(
            "{n} of `{name}` left out: they have a script without spaces between words"
        ));
    }
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
