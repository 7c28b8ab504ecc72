//! `melm sample`: a low-resource training set, drawn so that it can be drawn again.

use std::io::Write;
use std::path::{Path, PathBuf};

use melm::run::Seed;
use melm::sample::draw;
use melm_text::conll::ConllWriter;
use melm_text::jsonl::JsonlWriter;
use melm_text::{
    DOCUMENT_START, EntityTypes, Format, Problems, ReadOptions, Reader, Record, Source, Survey,
    Writer,
};

use crate::args::Sample;
use crate::failure::Failure;
use crate::input;
use crate::output::{Output, require_free};
use crate::terminal::Terminal;

pub(crate) fn run(command: &Sample, terminal: &Terminal) -> Result<(), Failure> {
    let (out, force) = (&command.output.out, command.output.force);
    let ids = ids_beside(out);
    require_free(out, force)?;
    ids.iter().try_for_each(|ids| require_free(ids, force))?;
    let options = input::options(&command.reading)?;
    let source = input::open(&command.file, &command.reading)?;
    let survey = Survey::read(&source, &options, |_, _, _| {})?;
    survey.require_sound(&source, false)?;

    let drawn = draw(survey.n_sentences, command.size as usize, Seed(command.seed));
    let numbers = write(&source, &options, &drawn, Output::create(out, force)?)?;
    if let Some(ids) = &ids {
        let mut out = Output::create(ids, force)?;
        let head = format!(
            "# sentences of `{}` drawn by melm sample --size {} --seed {}: number, then id if any\n",
            source.name(),
            command.size,
            command.seed
        );
        let name = out.name().to_owned();
        out.write_all((head + &numbers).as_bytes()).map_err(|e| Output::failed(&name, e))?;
        out.finish()?;
    }
    terminal.say(&format!(
        "drew {} of {} sentences, seed {}",
        drawn.len(),
        survey.n_sentences,
        command.seed
    ));
    if drawn.len() < command.size as usize {
        terminal.say(&format!("warning: {} were asked for, that is all there are", command.size));
    }
    Ok(())
}

fn ids_beside(out: &Path) -> Option<PathBuf> {
    (out != Path::new("-")).then(|| {
        let mut name = out.as_os_str().to_owned();
        name.push(".ids");
        name.into()
    })
}

/// Writes the drawn sentences as they are and returns their numbers, one a line.
fn write(
    source: &Source,
    options: &ReadOptions,
    drawn: &[usize],
    out: Output,
) -> Result<String, Failure> {
    let name = out.name().to_owned();
    let failed = |error| Output::failed(&name, error);
    let mut reader = Reader::new(source, options)?;
    let mut record = Record::default();
    let mut types = EntityTypes::default();
    let mut numbers = String::new();
    let mut writer = match reader.format() {
        Format::Conll => Writer::Conll(ConllWriter::new(out, None, None)),
        Format::Jsonl => Writer::Jsonl(JsonlWriter::new(out, None, "", None)),
    };
    let mut drawn = drawn.iter().copied().peekable();
    let mut at = 0;
    while reader.read(&mut record, &mut types, &mut Problems::default()) {
        if drawn.next_if_eq(&at).is_some() {
            // A document boundary says nothing once its document is taken apart.
            record.before.retain(|line| !line.starts_with(DOCUMENT_START));
            writer.copy(&record).map_err(failed)?;
            let id = record.id().map(|id| format!("\t{id}")).unwrap_or_default();
            numbers += &format!("{}{id}\n", at + 1);
        }
        at += 1;
    }
    writer.finish().finish()?;
    Ok(numbers)
}
