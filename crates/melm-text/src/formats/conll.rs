//! CoNLL rows: one token with its tag on each line. The reader and the writer that keep all columns are in
//! [`crate::conll`].

use super::{FileFormat, Part, WriteSettings, WrittenFile};
use crate::conll::{ConllWriter, Layout};
use crate::error::Error;
use crate::format::{ReadOptions, Structure, choose_columns};
use crate::problem::Problems;
use crate::record::Record;
use crate::source::Source;
use crate::spans::{Document, for_each_sentence};

/// The format `conll`.
#[derive(Debug)]
pub(super) struct Conll;

impl FileFormat for Conll {
    fn name(&self) -> &'static str {
        "conll"
    }

    fn extensions(&self) -> &'static [&'static str] {
        &["conll", "iob", "bio", "iob2", "tsv"]
    }

    fn holds(&self) -> &'static [Part] {
        &[Part::Tokens, Part::Sentences, Part::Ids]
    }

    /// Never detected: it reads what no other format recognises.
    fn detect(&self, _: &Source) -> bool {
        false
    }

    fn read(&self, source: &Source, options: &ReadOptions) -> Result<Structure, Error> {
        let text = source.text();
        let layout = choose_columns(Layout::detect(text), options);
        layout.map(Structure::Conll).map_err(|fault| {
            let mut problems = Problems::default();
            problems.push(1, 0..0, fault);
            Error::data(source.name(), text, problems)
        })
    }

    fn write(
        &self,
        documents: &[Document],
        settings: &WriteSettings,
    ) -> Result<Vec<WrittenFile>, Error> {
        let mut writer = ConllWriter::new(Vec::new(), Some(settings.scheme));
        let write = |record: &Record<'_>, types: &_| writer.write(record, &record.tags, types);
        for_each_sentence(documents, settings.scheme, write)
            .map_err(|source| Error::Write { source })?;
        Ok(vec![WrittenFile { extension: "conll", bytes: writer.finish() }])
    }
}
