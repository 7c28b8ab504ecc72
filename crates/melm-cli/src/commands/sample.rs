//! `melm sample`: draws a small random training set. The same seed draws the same sentences.

use std::fmt::Write as _;

use melm::random::Seed;
use melm::sample::draw;
use melm_text::jsonl::format_names;
use melm_text::{CopiedSentences, Survey, copy_sentences};

use crate::args::Sample;
use crate::failure::Failure;
use crate::input;
use crate::output::{self, check_files, check_output, is_stdout, refuse_other_ending, with_suffix};
use crate::terminal::{Terminal, count};

pub(crate) fn run(command: &Sample, terminal: &Terminal) -> Result<(), Failure> {
    let (out, force) = (&command.output.out, command.output.force);
    let is_file = !is_stdout(out);
    let options = input::read_options(&command.input, &command.file)?;
    check_output(out, force)?;
    if is_file {
        check_output(&with_suffix(out, ".ids"), force)?;
    }
    let source = input::open(&command.file, &command.input)?;
    let survey = Survey::read(&source, &options, |_, _, _| {})?;
    survey.require_sound(&source, false)?;
    refuse_other_ending(out, survey.format())?;
    check_files(out, force, survey.format())?;

    let drawn = draw(survey.n_sentences, command.size as usize, Seed(command.seed));
    let copied = copy_sentences(&source, &survey.structure, &drawn)?;
    output::write_files(out, force, &copied.files)?;
    if is_file {
        let list = list_sentences(command, source.name(), &copied);
        output::write(&with_suffix(out, ".ids"), force, &list)?;
    }
    if let (true, true, Some(names)) = (is_file, copied.uses_tag_ids, &options.names) {
        output::write(&with_suffix(out, ".names"), force, &format_names(names))?;
    }
    let total = count(survey.n_sentences, "sentence");
    input::report_structure(&survey.structure, terminal);
    terminal.info(&format!("drew {} of {total}, seed {}", drawn.len(), command.seed));
    if drawn.len() < command.size as usize {
        let n = command.size;
        terminal.warn(&format!("the file has fewer than {n} sentences; drew all of them"));
    }
    Ok(())
}

/// Returns the text of the file `OUT.ids`: the number of each sentence, and its id if it has one.
fn list_sentences(command: &Sample, file: &str, copied: &CopiedSentences) -> String {
    let mut text = format!(
        "# sentences of `{file}` drawn by melm sample --size {} --seed {}: number, then id if any\n",
        command.size, command.seed
    );
    for (index, id) in &copied.sentences {
        let id = id.as_ref().map(|id| format!("\t{id}")).unwrap_or_default();
        writeln!(text, "{}{id}", index + 1).expect("writing to memory does not fail");
    }
    text
}
