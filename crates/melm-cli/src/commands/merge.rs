//! `melm merge`: joins the outputs of commands with `--shard`.

use melm::files::MAX_RUN_FILE;
use melm::shard::{Shard, ShardContent, ShardFile, ShardSet};
use melm_nn::files::read_stream;
use melm_text::{Format, Scheme, WriteSettings, find_losses};
use serde_json::{Value, json};

use crate::args::Merge;
use crate::failure::Failure;
use crate::output::{self, Output, check_output, is_stdout, is_stream_output};
use crate::terminal::{Terminal, count};

pub(crate) fn run(command: &Merge, terminal: &Terminal) -> Result<(), Failure> {
    let out = &command.output.out;
    if command.json && is_stdout(out) {
        return Err(Failure::Usage {
            message: "`--json` and the merged data cannot both go to standard output".into(),
            hint: "pass the output file with `-o FILE`",
        });
    }
    check_output(out, command.output.force)?;
    let set = ShardSet::new(open_all(command)?)?;
    match (&set.header().content, set.documents()?) {
        (ShardContent::Documents { format, scheme }, Some(documents)) => {
            let format = format.parse::<Format>().map_err(|_| unknown("format", format))?;
            let scheme = scheme.parse::<Scheme>().map_err(|_| unknown("scheme", scheme))?;
            output::report_losses(&find_losses(&documents, format), format, terminal);
            let files = format.write(&documents, &WriteSettings::new(scheme))?;
            output::write_files(out, command.output.force, &files)?;
        }
        _ => write_joined(&set, command)?,
    }
    report(&set, terminal);
    output::print_json(command.json, Some(&summary(&set)))
}

/// Writes shards of rows or drafts. A stream gets nothing unless all shards are whole.
fn write_joined(set: &ShardSet, command: &Merge) -> Result<(), Failure> {
    let mut out = Output::create(&command.output.out, command.output.force)?;
    if is_stream_output(&command.output.out) {
        let mut joined = Vec::new();
        set.write_to(&mut joined)?;
        return out.write_and_finish(joined);
    }
    let name = out.name().to_owned();
    set.write_to(&mut out).map_err(|error| Failure::from(error).with_output_name(&name))?;
    out.finish()
}

/// Opens the shards. Only one of them can be standard input.
fn open_all(command: &Merge) -> Result<Vec<ShardFile>, Failure> {
    if command.files.iter().filter(|path| is_stdout(path)).count() > 1 {
        return Err(Failure::Usage {
            message: "only one of the shards can be standard input".into(),
            hint: "pass the other shards by name",
        });
    }
    let mut shards = Vec::new();
    for path in &command.files {
        if is_stdout(path) {
            let bytes = read_stream(std::io::stdin().lock(), MAX_RUN_FILE)
                .map_err(|source| melm::Error::Read { path: path.clone(), source })?;
            shards.push(ShardFile::from_bytes("standard input", &bytes)?);
        } else {
            shards.push(ShardFile::open(path)?);
        }
    }
    Ok(shards)
}

/// The failure for shards of a program with other formats or schemes, such as one built without parquet.
fn unknown(what: &str, name: &str) -> Failure {
    Failure::Impossible {
        message: format!("the shards need the {what} `{name}`, which this program does not have"),
        hint: "use the program that made the shards".into(),
    }
}

fn report(set: &ShardSet, terminal: &Terminal) {
    let header = set.header();
    let (n_shards, input) = (header.shard().map_or(0, Shard::count), &header.input);
    terminal.info(&format!(
        "merged {} of `{}`: {}",
        count(n_shards, "shard"),
        input.name,
        count(input.n, input.unit.name())
    ));
    if set.arithmetics().len() > 1 {
        terminal.info(&format!(
            "the shards were computed with different arithmetic ({}): the last digits of \
             probabilities can differ from those of a run on one machine",
            set.arithmetics().join("; ")
        ));
    }
}

fn summary(set: &ShardSet) -> Value {
    let header = set.header();
    json!({
        "command": header.command,
        "shards": header.shard().map(Shard::count),
        "input": header.input,
        "model": header.model,
        "settings": header.settings,
        "arithmetic": set.arithmetics(),
    })
}
