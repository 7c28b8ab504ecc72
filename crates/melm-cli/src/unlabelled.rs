//! Reads unlabelled text, and the files whose sentences are left out of it.

use std::io;
use std::path::Path;

use melm::Corpus;
use melm_text::{TextFile, TextOptions, Tokenizer, TokenizerRules, UnlabelledText};

use crate::args::{InputFile, InputOptions, TextInput};
use crate::failure::Failure;
use crate::machine;
use crate::output::is_stdout;
use crate::terminal::{Terminal, count};

/// Reads the files of `--unlabelled`. Plain text is split into tokens like those of `train`.
pub(crate) fn read(
    text: &TextInput,
    train: &Corpus,
    input: &InputOptions,
    terminal: &Terminal,
) -> Result<Option<UnlabelledText>, Failure> {
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
            terminal.info_all(file.note());
        }
        texts.push(match language {
            Some(code) => own.with_language(code),
            None => own,
        });
    }
    Ok((!texts.is_empty()).then(|| UnlabelledText::join(texts)))
}

/// Fails if there are held-out files and nothing that they could be left out of. `options` names the options for text.
pub(crate) fn check_held_out(
    text: &TextInput,
    has_text: bool,
    options: &str,
) -> Result<(), Failure> {
    if has_text || text.held_out.is_empty() {
        return Ok(());
    }
    Err(Failure::Usage {
        message: format!("`--held-out` needs a text to leave sentences out of: {options}"),
        hint: "leave `--held-out` out, or pass a text",
    })
}

/// Reads the files of `--held-out`. Their format is detected, and the other options for input files apply. Warns of lines
/// that cannot be split: the same sentences in the text are not found.
pub(crate) fn read_held_out(
    text: &TextInput,
    train: &Corpus,
    input: &InputOptions,
    terminal: &Terminal,
) -> Result<Vec<UnlabelledText>, Failure> {
    let options = TextOptions {
        encoding: input.encoding,
        token_column: input.token_column,
        tokens_key: input.tokens_key.clone(),
        text_key: text.text_key.clone(),
        ..TextOptions::with_tokenizer(Tokenizer::new(TokenizerRules::from_corpus(train)))
    };
    let texts = text.held_out.iter().map(|path| open(path, &options));
    let texts = texts.collect::<Result<Vec<_>, _>>()?;
    for file in texts.iter().flat_map(UnlabelledText::files) {
        report(file, terminal);
        terminal.warn_all(file.held_out_warning());
    }
    Ok(texts)
}

fn open(path: &Path, options: &TextOptions) -> Result<UnlabelledText, Failure> {
    let options = &options.clone().within(machine::limits()?);
    let text = if is_stdout(path) {
        UnlabelledText::read("standard input", io::stdin().lock(), options)
    } else {
        UnlabelledText::open(path, options)
    };
    Ok(text?)
}

/// With `--verbose`, reports how a file was read.
fn report(file: &TextFile, terminal: &Terminal) {
    if !terminal.is_verbose() {
        return;
    }
    let (name, n) = (&file.name, count(file.n_sentences, "sentence"));
    let gzip = if file.is_gzip { " in gzip" } else { "" };
    terminal.print(&format!("`{name}`: {n}, read as {}{gzip}", file.format));
    if let Some(rules) = &file.tokenizer {
        terminal.print(&format!("`{name}`: tokens as in TRAIN: {rules}"));
    }
}
