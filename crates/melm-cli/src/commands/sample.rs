//! `melm sample`: a low-resource training set, drawn so that it can be drawn again.

use std::io::Write;
use std::path::Path;

use melm::random::Seed;
use melm::sample::draw;
use melm_text::conll::ConllWriter;
use melm_text::jsonl::JsonlWriter;
use melm_text::{EntityTypes, Format, Problems, Reader, Record, Source, Structure, Survey, Writer};

use crate::args::Sample;
use crate::failure::Failure;
use crate::input;
use crate::output::{Output, beside, is_stdout, require_free};
use crate::terminal::{Terminal, count};

pub(crate) fn run(command: &Sample, terminal: &Terminal) -> Result<(), Failure> {
    let (out, force) = (&command.output.out, command.output.force);
    let to_file = !is_stdout(out);
    let options = input::options(&command.reading, &command.file)?;
    require_free(out, force)?;
    if to_file {
        require_free(&beside(out, ".ids"), force)?;
    }
    let source = input::open(&command.file, &command.reading)?;
    let survey = Survey::read(&source, &options, |_, _, _| {})?;
    survey.require_sound(&source, false)?;

    let drawn = draw(survey.n_sentences, command.size as usize, Seed(command.seed));
    let (numbers, uses_ids) =
        write(&source, &survey.structure, &drawn, Output::create(out, force)?)?;
    if to_file {
        let head = format!(
            "# sentences of `{}` drawn by melm sample --size {} --seed {}: number, then id if any\n",
            source.name(),
            command.size,
            command.seed
        );
        write_beside(&beside(out, ".ids"), force, &(head + &numbers))?;
    }
    if let (true, true, Some(names)) = (to_file, uses_ids, &options.names) {
        write_beside(&beside(out, ".names"), force, &(names.join("\n") + "\n"))?;
    }
    let all = count(survey.n_sentences, "sentence");
    input::say_columns(survey.layout(), terminal);
    terminal.say(&format!("drew {} of {all}, seed {}", drawn.len(), command.seed));
    if drawn.len() < command.size as usize {
        terminal.say(&format!("warning: {} were asked for, that is all there are", command.size));
    }
    Ok(())
}

fn write_beside(path: &Path, force: bool, text: &str) -> Result<(), Failure> {
    let mut out = Output::create(path, force)?;
    let name = out.name().to_owned();
    out.write_all(text.as_bytes()).map_err(|e| Output::failed(&name, e))?;
    out.finish()
}

/// Writes the drawn sentences as they are. Returns their numbers, one a line, and whether their
/// tags are ids.
fn write(
    source: &Source,
    structure: &Structure,
    drawn: &[usize],
    out: Output,
) -> Result<(String, bool), Failure> {
    let name = out.name().to_owned();
    let failed = |error| Output::failed(&name, error);
    let mut reader = Reader::with_structure(source, structure);
    let mut record = Record::default();
    let mut types = EntityTypes::default();
    let mut numbers = String::new();
    let mut writer = match reader.format() {
        Format::Conll => Writer::Conll(ConllWriter::new(out, None)),
        Format::Jsonl => Writer::Jsonl(JsonlWriter::new(out, None, "", None)),
    };
    let mut drawn = drawn.iter().copied().peekable();
    let mut at = 0;
    while reader.read(&mut record, &mut types, &mut Problems::default()) {
        if drawn.next_if_eq(&at).is_some() {
            // A document boundary says nothing once its document is taken apart.
            record.lines_before.retain(|line| line.starts_with('#'));
            writer.copy(&record).map_err(failed)?;
            let id = record.id().map(|id| format!("\t{id}")).unwrap_or_default();
            numbers += &format!("{}{id}\n", at + 1);
        }
        at += 1;
    }
    writer.finish().finish()?;
    let uses_ids = matches!(&reader, Reader::Jsonl(reader) if reader.uses_ids());
    Ok((numbers, uses_ids))
}
