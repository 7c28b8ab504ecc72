//! spaCy's `DocBin`, the format of `.spacy` files. Its codec is in [`crate::spacy`].

use super::{FileFormat, Format, Part, WriteSettings, WrittenFile};
use crate::error::Error;
use crate::format::{ReadOptions, Structure};
use crate::problem::Fault;
use crate::source::Source;
use crate::spacy::{DocBin, DocBinWriter, SpacyDoc, SpacyMention, read_doc_bin_within};
use crate::spans::{
    Document, DocumentsBuilder, OffsetUnit, Place, RawDocument, RawSpan, document_tokenizer,
};
use crate::tokenizer::Tokenizer;

/// The format `spacy`.
#[derive(Debug)]
pub(super) struct Spacy;

impl FileFormat for Spacy {
    fn name(&self) -> &'static str {
        "spacy"
    }

    fn extensions(&self) -> &'static [&'static str] {
        &["spacy"]
    }

    fn holds(&self) -> &'static [Part] {
        &[Part::Text, Part::Tokens, Part::Sentences, Part::Documents, Part::Boundaries]
    }

    /// Returns true for the header of zlib. The header of one level of compression is the text `x^`, so that bytes that
    /// start as a text does are not taken for zlib.
    fn is_binary(&self, bytes: &[u8]) -> bool {
        let [0x78, flags, ..] = *bytes else { return false };
        let is_header = (0x7800 + u16::from(flags)).is_multiple_of(31);
        let head = &bytes[..bytes.len().min(64)];
        let is_text = match std::str::from_utf8(head) {
            Ok(text) => !text.contains(|c: char| c.is_control() && !c.is_ascii_whitespace()),
            // The last character may be cut.
            Err(error) => error.error_len().is_none() && error.valid_up_to() > 32,
        };
        is_header && !is_text
    }

    fn detect(&self, source: &Source) -> bool {
        self.is_binary(source.binary())
    }

    fn read(&self, source: &Source, options: &ReadOptions) -> Result<Structure, Error> {
        // The offsets of a span are made from tokens, so that no other unit can be right.
        let options = ReadOptions { offset_unit: None, ..options.clone() };
        let mut builder = DocumentsBuilder::new(source, Format(&Spacy), OffsetUnit::Byte, &options);
        match read_doc_bin_within(&source.content(), source.limits()) {
            Ok(bin) => add_documents(&mut builder, bin),
            Err(fault) => {
                let (message, cure) = (fault.to_string(), fault.cure());
                builder.report(Place { line: 1, span: 0..0 }, Fault::Record { message, cure });
            }
        }
        builder.finish()
    }

    fn write(&self, documents: &[Document], _: &WriteSettings) -> Result<Vec<WrittenFile>, Error> {
        let mut writer = DocBinWriter::default();
        let tokenizer = document_tokenizer();
        for document in documents {
            writer.add(&to_spacy(document, &tokenizer));
        }
        Ok(vec![WrittenFile { extension: "spacy", bytes: writer.finish() }])
    }
}

/// Adds the documents of a file, and counts what is not read.
fn add_documents(builder: &mut DocumentsBuilder<'_>, bin: DocBin) {
    let counts = &mut builder.counts;
    counts.n_unannotated += bin.n_missing;
    counts.leave_out("documents with span groups; their groups are not read", bin.n_span_groups);
    counts.leave_out("documents with user data; the data is not read", bin.n_user_data);
    counts.leave_out("documents with categories; the categories are not read", bin.n_categories);
    counts.leave_out("attributes of tokens, such as lemmas", bin.other_attributes.len());
    for (at, document) in bin.documents.into_iter().enumerate() {
        let place = Place { line: at + 1, span: 0..0 };
        let to_span = |mention: &SpacyMention| {
            let tokens = &document.tokens[mention.tokens.clone()];
            RawSpan {
                start: tokens.first().map_or(0, |token| token.start),
                end: tokens.last().map_or(0, |token| token.end),
                entity_type: mention.entity_type.to_string(),
                surface: None,
                place: place.clone(),
            }
        };
        builder.add(RawDocument {
            spans: document.mentions.iter().map(to_span).collect(),
            tokens: Some(document.tokens),
            sentences: document.sentences,
            text: document.text,
            place,
            ..RawDocument::default()
        });
    }
}

/// Returns a document as spaCy stores it. Spans that overlap a longer one are left out. It has sentences only if a reader
/// would find other ones.
fn to_spacy(document: &Document, tokenizer: &Tokenizer) -> SpacyDoc {
    let tokens = document.tokens();
    let mentions = document.flat_spans().map(|span| {
        let start = tokens.partition_point(|token| token.end <= span.range.start);
        let end = tokens.partition_point(|token| token.start < span.range.end);
        SpacyMention { tokens: start..end, entity_type: (*span.entity_type).into() }
    });
    SpacyDoc {
        text: document.text().to_owned(),
        mentions: mentions.collect(),
        tokens: tokens.to_vec(),
        sentences: (!document.has_found_sentences(tokenizer))
            .then(|| document.sentences().to_vec()),
        has_spaces: true,
    }
}
