//! `melm tag`: writes a file with predicted tags.

use std::io::Write as _;

use melm::Tagger;
use melm::tagger::{TaggedSentence, Truncation};
use melm_text::conll::ConllWriter;
use melm_text::jsonl::JsonlWriter;
use melm_text::{
    EntityTypes, Format, Problems, Reader, Record, Source, Survey, Writer, add_missing_tags,
};

use crate::args::Tag;
use crate::commands::train::describe_truncation;
use crate::failure::Failure;
use crate::input;
use crate::machine;
use crate::output::{Output, refuse_existing};
use crate::progress::Progress;
use crate::terminal::{Terminal, count};

/// Sentences tagged and written at a time.
const CHUNK: usize = 512;

pub(crate) fn run(command: &Tag, terminal: &Terminal) -> Result<(), Failure> {
    refuse_existing(&command.output.out, command.output.force)?;
    let options = input::read_options(&command.input, &command.file)?;
    let given = input::open(&command.file, &command.input)?;
    let added = add_missing_tags(&given, &options);
    let source = added.as_ref().unwrap_or(&given);
    let survey = Survey::read(source, &options, |_, _, _| {})?;
    // The tags are replaced, so they do not have to be valid.
    survey.require_sound(source, true)?;
    let (device, machine) = machine::device(&command.device_options)?;
    let tagger = Tagger::open(&command.model)?.with_device(device);
    let place = match (&added, survey.format()) {
        (None, Format::Conll) => "replacing its tags",
        (None, Format::Jsonl) => "replacing its tags by name",
        (Some(_), Format::Conll) => "adding a last column",
        (Some(_), Format::Jsonl) => "adding the tags",
    };
    let n = count(survey.n_sentences, "sentence");
    terminal.info(&format!("tagging {n} of `{}`, {place}; {machine}", source.name()));
    if added.is_none() {
        input::report_tag_column(survey.layout(), terminal);
    }
    let out = Output::create(&command.output.out, command.output.force)?;
    let mut progress = Progress::for_bytes("tagging", source.text().len(), terminal);
    let job = Job { command, source, survey: &survey, tagger: &tagger };
    let truncation = job.run(out, &mut progress)?;
    drop(progress);
    for line in describe_truncation(truncation) {
        terminal.info(&line);
    }
    Ok(())
}

struct Job<'a> {
    command: &'a Tag,
    source: &'a Source,
    survey: &'a Survey,
    tagger: &'a Tagger,
}

impl Job<'_> {
    fn run(&self, mut out: Output, progress: &mut Progress) -> Result<Truncation, Failure> {
        let name = out.name().to_owned();
        let failed = |error| Output::failed(&name, error);
        let mut reader = Reader::with_structure(self.source, &self.survey.structure);
        let mut writer = self.writer(&reader);
        let mut all = Truncation::default();
        let mut types = EntityTypes::default();
        loop {
            let records = read(&mut reader, &mut types);
            if records.is_empty() {
                break;
            }
            let sentences: Vec<_> = records.iter().map(|record| record.tokens.clone()).collect();
            let (tagged, truncation) = self.tagger.tag_tokens(&sentences)?;
            all.n_windowed += truncation.n_windowed;
            all.n_cut_tokens += truncation.n_cut_tokens;
            for (record, tagged) in records.iter().zip(&tagged) {
                let bytes = self.sentence(record, tagged, &mut writer);
                bytes.and_then(|bytes| out.write_all(&bytes)).map_err(failed)?;
            }
            progress.set_position(reader.position());
        }
        writer.write_lines_after(&self.survey.lines_after).map_err(failed)?;
        out.write_all(writer.out()).map_err(failed)?;
        out.finish()?;
        Ok(all)
    }

    fn writer(&self, reader: &Reader<'_>) -> Writer<Vec<u8>> {
        let scheme = Some(self.tagger.model().tags().scheme());
        match reader {
            Reader::Conll(_) => Writer::Conll(ConllWriter::new(Vec::new(), scheme)),
            Reader::Jsonl(reader) => {
                Writer::Jsonl(JsonlWriter::new(Vec::new(), scheme, &reader.keys().tags, None))
            }
        }
    }

    /// The text of a sentence with the predicted tags.
    fn sentence(
        &self,
        record: &Record<'_>,
        tagged: &TaggedSentence,
        writer: &mut Writer<Vec<u8>>,
    ) -> std::io::Result<Vec<u8>> {
        let set = self.tagger.model().tags();
        writer.write(record, &tagged.tags, set.types())?;
        let bytes = std::mem::take(writer.out());
        if !self.command.probabilities {
            return Ok(bytes);
        }
        let numbers = tagged.tags.iter().map(|tag| set.number(*tag).unwrap_or_default());
        let probabilities: Vec<_> = numbers
            .enumerate()
            .map(|(token, tag)| format!("{:.4}", tagged.probability(token, tag)))
            .collect();
        Ok(with_probabilities(bytes, &probabilities, self.survey))
    }
}

/// Adds a last column to the last rows of a sentence, or a last key to its object.
fn with_probabilities(bytes: Vec<u8>, probabilities: &[String], survey: &Survey) -> Vec<u8> {
    let text = String::from_utf8(bytes).expect("the writer writes UTF-8");
    let Some(layout) = survey.layout() else {
        // Strip one brace only: the last value may end with braces of its own.
        let open = text.trim_end().strip_suffix('}').unwrap_or_default();
        let list = probabilities.join(",");
        return format!("{open},\"ner_probabilities\":[{list}]}}\n").into_bytes();
    };
    let between = layout.separator.text();
    let lines: Vec<_> = text.trim_end_matches('\n').split('\n').collect();
    let n_before = lines.len() - probabilities.len();
    let before = lines[..n_before].iter().map(|line| format!("{line}\n"));
    let rows = lines[n_before..].iter().zip(probabilities);
    let rows = rows.map(|(row, p)| format!("{}{between}{p}\n", row.trim_end_matches(' ')));
    before.chain(rows).chain(["\n".to_owned()]).collect::<String>().into_bytes()
}

/// Reads the next sentences, at most [`CHUNK`].
fn read<'t>(reader: &mut Reader<'t>, types: &mut EntityTypes) -> Vec<Record<'t>> {
    let mut records = Vec::new();
    let mut record = Record::default();
    while records.len() < CHUNK && reader.read(&mut record, types, &mut Problems::default()) {
        records.push(std::mem::take(&mut record));
    }
    records
}
