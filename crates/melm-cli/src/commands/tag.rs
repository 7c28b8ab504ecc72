//! `melm tag`: writes a file with predicted tags.

use melm::Tagger;
use melm::stage::Control;
use melm::tagger::FileToTag;
use melm_text::Format;

use crate::args::Tag;
use crate::commands::train::describe_truncation;
use crate::failure::Failure;
use crate::input;
use crate::machine;
use crate::output::{Output, refuse_existing};
use crate::progress::Progress;
use crate::terminal::{Terminal, count};

pub(crate) fn run(command: &Tag, terminal: &Terminal) -> Result<(), Failure> {
    refuse_existing(&command.output.out, command.output.force)?;
    let options = input::read_options(&command.input, &command.file)?;
    let file = FileToTag::new(input::open(&command.file, &command.input)?, &options)?;
    let (device, device_name) = machine::device(&command.device_options)?;
    let tagger = Tagger::open(&command.model)?.with_device(device);
    let (source, survey) = (file.source(), file.survey());
    let change = match (file.has_tags(), survey.format() == Format::CONLL) {
        (true, true) => "replacing its tags",
        (true, false) => "replacing its tags by tag names",
        (false, true) => "adding the tags as a last column",
        (false, false) => "adding the tags",
    };
    let n = count(survey.n_sentences, "sentence");
    terminal.info(&format!("tagging {n} of `{}`, {change}; {device_name}", source.name()));
    if file.has_tags() {
        input::report_tag_column(survey.layout(), terminal);
    }
    let mut out = Output::create(&command.output.out, command.output.force)?;
    let mut progress = Progress::for_bytes("tagging", source.text().len(), terminal);
    let name = out.name().to_owned();
    let truncation = tagger
        .tag_file(&file, command.probabilities, &mut out, &mut |done, _| {
            progress.set_position(done);
            Control::Continue
        })
        .map_err(|error| Failure::from(error).with_output_name(&name))?;
    drop(progress);
    out.finish()?;
    for line in describe_truncation(truncation) {
        terminal.info(&line);
    }
    Ok(())
}
