//! Copies some sentences of a file.

use std::io::{self, Write};

use crate::conll::ConllWriter;
use crate::format::{Format, Reader, Structure, Writer};
use crate::jsonl::JsonlWriter;
use crate::problem::Problems;
use crate::record::Record;
use crate::source::Source;
use crate::tag::EntityTypes;

/// The sentences that [`copy_sentences`] has copied.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CopiedSentences {
    /// The index of each sentence in its file, and its id if it has one.
    pub sentences: Vec<(usize, Option<String>)>,
    /// True if the tags are ids. The copy then needs the names of the ids too.
    pub uses_tag_ids: bool,
}

/// Copies the sentences with these indices, byte for byte, with their comments. The lines that mark the start of a
/// document are left out, because a copy does not contain whole documents.
///
/// `indices` must be in ascending order. Indices beyond the end of the file are ignored. Fails if `out` fails.
pub fn copy_sentences(
    source: &Source,
    structure: &Structure,
    indices: &[usize],
    out: impl Write,
) -> io::Result<CopiedSentences> {
    let mut reader = Reader::with_structure(source, structure);
    let mut writer = match reader.format() {
        Format::Conll => Writer::Conll(ConllWriter::new(out, None)),
        Format::Jsonl => Writer::Jsonl(JsonlWriter::new(out, None, "", None)),
    };
    let mut record = Record::default();
    let mut types = EntityTypes::default();
    let mut copied = CopiedSentences::default();
    let mut indices = indices.iter().copied().peekable();
    let mut index = 0;
    while reader.read(&mut record, &mut types, &mut Problems::default()) {
        if indices.next_if_eq(&index).is_some() {
            record.lines_before.retain(|line| line.starts_with('#'));
            writer.copy(&record)?;
            copied.sentences.push((index, record.id().map(str::to_owned)));
        }
        index += 1;
    }
    copied.uses_tag_ids = matches!(&reader, Reader::Jsonl(reader) if reader.uses_ids());
    Ok(copied)
}
