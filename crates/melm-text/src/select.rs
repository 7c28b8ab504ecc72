//! Copies some sentences of a file.

use crate::conll::ConllWriter;
use crate::error::Error;
use crate::format::{Reader, Structure, Writer};
use crate::formats::{WriteSettings, WrittenFile};
use crate::jsonl::JsonlWriter;
use crate::problem::Problems;
use crate::record::Record;
use crate::source::Source;
use crate::spans::{Document, Documents};
use crate::tag::EntityTypes;

/// The sentences that [`copy_sentences`] has copied.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CopiedSentences {
    /// The index of each sentence in its file, and its id if it has one.
    pub sentences: Vec<(usize, Option<String>)>,
    /// True if the tags are ids. The copy then needs the names of the ids too.
    pub uses_tag_ids: bool,
    /// The copy: one file, or several for formats that need them.
    pub files: Vec<WrittenFile>,
}

/// Copies the sentences with these indices, byte for byte, with their comments. The lines that mark the start of a
/// document are left out, because a copy does not contain whole documents. A sentence of a text with several sentences
/// becomes a text of its own.
///
/// `indices` must be in ascending order. Indices beyond the end of the file are ignored. Fails if the format cannot write
/// a document.
pub fn copy_sentences(
    source: &Source,
    structure: &Structure,
    indices: &[usize],
) -> Result<CopiedSentences, Error> {
    let mut reader = Reader::with_structure(source, structure);
    let mut writer = match &reader {
        Reader::Conll(_) => Writer::Conll(ConllWriter::new(Vec::new(), None)),
        Reader::Jsonl(_) => Writer::Jsonl(JsonlWriter::new(Vec::new(), None, "", None)),
        Reader::Documents(reader) => return copy_documents(reader.documents(), indices),
    };
    let mut record = Record::default();
    let mut types = EntityTypes::default();
    let mut copied = CopiedSentences::default();
    let mut indices = indices.iter().copied().peekable();
    let mut index = 0;
    while reader.read(&mut record, &mut types, &mut Problems::default()) {
        if indices.next_if_eq(&index).is_some() {
            record.lines_before.retain(|line| line.starts_with('#'));
            writer.copy(&record).map_err(|source| Error::Write { source })?;
            copied.sentences.push((index, record.id().map(str::to_owned)));
        }
        index += 1;
    }
    copied.uses_tag_ids = matches!(&reader, Reader::Jsonl(reader) if reader.uses_ids());
    let extension = structure.format().extensions()[0];
    copied.files = vec![WrittenFile { extension, bytes: writer.finish() }];
    Ok(copied)
}

fn copy_documents(all: &Documents, indices: &[usize]) -> Result<CopiedSentences, Error> {
    let mut copied = CopiedSentences::default();
    let mut chosen: Vec<Document> = Vec::new();
    let mut indices = indices.iter().copied().peekable();
    let mut index = 0;
    for document in &all.documents {
        for sentence in 0..document.sentences().len() {
            if indices.next_if_eq(&index).is_some() {
                chosen.push(document.sentence(sentence));
                copied.sentences.push((index, document.id().map(str::to_owned)));
            }
            index += 1;
        }
    }
    let settings = WriteSettings::new(all.scheme);
    copied.files = all.format.write(&chosen, &settings)?;
    Ok(copied)
}
