//! Scores, checks, conversions and reports.

use std::path::PathBuf;

use melm_cli::host::{self, ErrorReport};
use melm_text::check::{CheckedFile, Report, SeenSentences};
use melm_text::score::{Reading, strict_scheme};
use melm_text::{Conversion, Converter, Format, Scheme, Scores, Structure, convert_documents};
use pyo3::prelude::*;
use serde_json::json;

use crate::error::to_exception;
use crate::source::Source;

/// Compares predicted tags with gold tags. Returns the JSON of `melm score --json`.
#[pyfunction]
pub(crate) fn score(
    py: Python<'_>,
    gold: &Source,
    predicted: &Source,
    strict: bool,
) -> PyResult<String> {
    let (gold, predicted) = (gold.as_input(), predicted.as_input());
    py.detach(|| {
        let reading = if strict {
            Reading::Strict(strict_scheme(gold, predicted)?)
        } else {
            Reading::Lenient
        };
        Ok(json!(Scores::from_files(gold, predicted, reading, |_| {})?.to_json()).to_string())
    })
    .map_err(|error: melm_text::Error| to_exception(error))
}

/// Counts the contents of data and lists problems. Returns the JSON of `melm check --json`.
#[pyfunction]
pub(crate) fn check(py: Python<'_>, sources: Vec<Py<Source>>) -> PyResult<String> {
    py.detach(|| {
        let mut seen = SeenSentences::default();
        let mut files = Vec::new();
        for source in &sources {
            let Source { source, options } = source.get();
            let (report, survey) = Report::read(source, options, &mut seen, |_| {})?;
            let found = survey.require_sound(source, false).err();
            let file = CheckedFile::new(report, found.as_ref()).compared_with(files.first());
            files.push(file);
        }
        let problems: usize = files.iter().map(|file| file.n_problems).sum();
        Ok(json!({ "files": files, "problems": problems }).to_string())
    })
    .map_err(|error: melm_text::Error| to_exception(error))
}

/// A converted file: the endings and contents of its files, and lines about what was changed or left out.
pub(crate) type Converted = (Vec<(String, Vec<u8>)>, Vec<String>);

/// Converts data to the format `to`, or to the one with the ending of `path`, or to that of the input. Tags are written in
/// `scheme`.
#[pyfunction]
pub(crate) fn convert(
    py: Python<'_>,
    source: &Source,
    path: Option<PathBuf>,
    to: Option<&str>,
    scheme: Option<&str>,
    repair: bool,
) -> PyResult<Converted> {
    let parse =
        |name: &str| name.parse::<Scheme>().map_err(|e| wrong("scheme", name, &e.to_string()));
    let scheme = scheme.map(parse).transpose()?;
    let format = to.map(parse_format).transpose()?;
    py.detach(|| {
        let input = Structure::detect(&source.source, &source.options)?.format();
        let to = host::choose_format(format, path.as_deref(), input)?;
        convert_source(source, to, scheme, repair)
    })
    .map_err(to_exception)
}

/// Parses the name of a format.
pub(crate) fn parse_format(to: &str) -> PyResult<Format> {
    to.parse().map_err(|error: String| wrong("to", to, &error))
}

fn wrong(argument: &str, value: &str, error: &str) -> PyErr {
    to_exception(ErrorReport::config(format!("`{argument}={value}`: {error}")))
}

fn convert_source(
    source: &Source,
    to: Format,
    scheme: Option<Scheme>,
    repair: bool,
) -> Result<Converted, ErrorReport> {
    let Source { source, options } = source;
    let input = Structure::detect(source, options)?.format();
    let is_row_format = |format: Format| format == Format::CONLL || format == Format::JSONL;
    if is_row_format(input) && is_row_format(to) {
        let conversion = Conversion { format: Some(to), scheme, repair, ..Conversion::default() };
        let mut content = Vec::new();
        let report = Converter::new(source, options, conversion)?.write(&mut content, |_| {})?;
        return Ok((vec![(to.extensions()[0].to_owned(), content)], report.notes()));
    }
    let converted = convert_documents(source, options, to, scheme, repair)?;
    let notes = converted.notes(to);
    let files = converted.files.into_iter().map(|file| (file.extension.to_owned(), file.bytes));
    Ok((files.collect(), notes))
}

/// Returns the HTML page about the folder of a run.
#[pyfunction]
pub(crate) fn report_html(py: Python<'_>, folder: PathBuf) -> PyResult<String> {
    let read = || Ok(melm_report::Report::read(folder)?.html());
    py.detach(read).map_err(|error: melm_report::Error| to_exception(error))
}
