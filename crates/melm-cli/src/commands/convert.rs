//! `melm convert`: converts a file to another format or tag scheme.

use std::path::{Path, PathBuf};

use melm_text::jsonl::format_names;
use melm_text::{Conversion, ConversionReport, Converter, Format, Structure, convert_documents};

use crate::args::Convert;
use crate::failure::Failure;
use crate::input;
use crate::output::{
    self, Output, check_files, check_output, choose_format, is_stdout, is_stream_output,
    with_suffix,
};
use crate::progress::Progress;
use crate::terminal::Terminal;

pub(crate) fn run(command: &Convert, terminal: &Terminal) -> Result<(), Failure> {
    let (out, force) = (&command.output.out, command.output.force);
    let names_path = command.tag_ids.then(|| names_path(out)).transpose()?;
    check_output(out, force)?;
    names_path.iter().try_for_each(|path| check_output(path, force))?;
    let options = input::read_options(&command.input, &command.file)?;
    let source = input::open(&command.file, &command.input)?;
    let input = Structure::detect(&source, &options)?.format();
    let format = choose_format(command.to, out, input)?;
    refuse_unused_options(command, input, format)?;
    check_files(out, force, format)?;
    if ![input, format].iter().all(|&one| is_row_format(one)) {
        let converted =
            convert_documents(&source, &options, format, command.to_scheme, command.repair)?;
        output::write_files(out, force, &converted.files)?;
        terminal.info_all(converted.notes(format));
        return Ok(());
    }
    let conversion = Conversion {
        format: Some(format),
        scheme: command.to_scheme,
        repair: command.repair,
        separator: command.separator,
        tag_ids: command.tag_ids,
    };
    let converter = Converter::new(&source, &options, conversion)?;
    let report = write_rows(&converter, out, force, source.text().len(), terminal)?;
    if let (Some(path), Some(names)) = (names_path, converter.names()) {
        output::write(&path, force, &format_names(names))?;
    }
    terminal.info_all(report.notes());
    Ok(())
}

/// Writes the converted sentences one by one. `n_bytes` is the length of the input.
fn write_rows(
    converter: &Converter<'_>,
    out: &Path,
    force: bool,
    n_bytes: usize,
    terminal: &Terminal,
) -> Result<ConversionReport, Failure> {
    if is_stream_output(out) {
        converter.check()?;
    }
    let mut file = Output::create(out, force)?;
    let mut progress = Progress::for_bytes("converting", n_bytes, terminal);
    let name = file.name().to_owned();
    let report = converter
        .write(&mut file, |position| progress.set_position(position as u64))
        .map_err(|error| Failure::from(error).with_output_name(&name))?;
    drop(progress);
    file.finish()?;
    Ok(report)
}

/// Returns true for the formats whose sentences are converted one by one, with their columns and keys.
fn is_row_format(format: Format) -> bool {
    format == Format::CONLL || format == Format::JSONL
}

/// Fails if an option has no effect for the formats of input and output.
fn refuse_unused_options(command: &Convert, input: Format, format: Format) -> Result<(), Failure> {
    let unused = if command.tag_ids && format != Format::JSONL {
        Some("`--tag-ids` needs JSON lines as output")
    } else if command.separator.is_some() && format != Format::CONLL {
        Some("`--separator` needs CoNLL as output")
    } else if (command.tag_ids || command.separator.is_some()) && !is_row_format(input) {
        Some("`--tag-ids` and `--separator` need CoNLL or JSON lines as input")
    } else if command.to_scheme.is_some() && !format.has_tags() {
        Some("`--to-scheme` needs an output format with tags")
    } else {
        None
    };
    match unused {
        Some(message) => Err(Failure::Usage {
            message: message.into(),
            hint: "leave it out, or set the output format with `--to`",
        }),
        None => Ok(()),
    }
}

fn names_path(out: &Path) -> Result<PathBuf, Failure> {
    if is_stdout(out) {
        return Err(Failure::Usage {
            message: "`--tag-ids` needs an output file, to write the names of the ids next to it"
                .into(),
            hint: "pass the output file with `-o FILE`",
        });
    }
    Ok(with_suffix(out, ".names"))
}
