//! Converts between all formats by way of documents, and counts what the output format cannot store.

use crate::error::Error;
use crate::format::ReadOptions;
use crate::formats::{Format, Part, WriteSettings, WrittenFile};
use crate::jsonl::{TAGS_KEYS, TOKENS_KEYS};
use crate::mention::count_merged_by_io;
use crate::record::Record;
use crate::scheme::Scheme;
use crate::source::Source;
use crate::spans::{Document, Metadata, document_tokenizer};
use crate::survey::Survey;
use crate::tag::EntityTypes;

/// The result of [`convert_documents`].
#[derive(Debug, Clone)]
pub struct ConvertedDocuments {
    /// The counts and the scheme of the input.
    pub survey: Survey,
    /// The scheme of the output, if it has tags.
    pub scheme: Scheme,
    /// The number of documents.
    pub n_documents: usize,
    /// The number of mentions that were joined with the mention before, because the scheme IO cannot separate them.
    pub n_merged: usize,
    /// What the output format cannot store.
    pub losses: Vec<Loss>,
    /// The output.
    pub files: Vec<WrittenFile>,
}

/// Something that a format cannot store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Loss {
    /// How often it occurs.
    pub n: usize,
    /// What it is.
    pub part: Part,
}

/// Converts a file to the format `to`. Tags are written in `scheme`, or else in the scheme of the input. If `repair` is
/// true, tags that their scheme does not allow are read leniently.
///
/// Fails if the file has problems, or if the output format cannot write a document.
///
/// ```
/// use melm_text::{Format, ReadOptions, Source, convert_documents};
/// let source = Source::from_text("a.conll", "Ada B-PER\nsang O\n");
/// let to: Format = "doccano".parse().unwrap();
/// let converted = convert_documents(&source, &ReadOptions::default(), to, None, false)?;
/// assert_eq!(converted.files[0].bytes, b"{\"text\":\"Ada sang\",\"label\":[[0,3,\"PER\"]]}\n");
/// # Ok::<(), melm_text::Error>(())
/// ```
pub fn convert_documents(
    source: &Source,
    options: &ReadOptions,
    to: Format,
    scheme: Option<Scheme>,
    repair: bool,
) -> Result<ConvertedDocuments, Error> {
    let (documents, survey) = read_documents(source, options, repair)?;
    let scheme = scheme.unwrap_or(survey.scheme.scheme);
    let mut losses = find_losses(&documents, to);
    let n_columns = survey.layout().map_or(0, |layout| layout.n_columns.saturating_sub(2));
    losses.extend((n_columns > 0).then_some(Loss { n: n_columns, part: Part::Columns }));
    let n_merged = if scheme == Scheme::Io && to.has_tags() { count_merged(&documents) } else { 0 };
    let files = to.write(&documents, &WriteSettings::new(scheme))?;
    let n_documents = documents.len();
    Ok(ConvertedDocuments { survey, scheme, n_documents, n_merged, losses, files })
}

/// Reads the documents of a file of any format. Each sentence of a file without texts becomes a document, whose tokens
/// are separated by one space. If `repair` is true, tags that their scheme does not allow are read leniently.
///
/// Fails if the file has problems.
pub fn read_documents(
    source: &Source,
    options: &ReadOptions,
    repair: bool,
) -> Result<(Vec<Document>, Survey), Error> {
    let mut documents = Vec::new();
    let survey = Survey::read(source, options, |record, types, _| {
        if record.gaps.is_empty() {
            documents.push(to_document(record, types));
        }
    })?;
    survey.require_sound(source, repair)?;
    if let Some(own) = survey.structure.documents() {
        documents.clone_from(&own.documents);
    }
    Ok((documents, survey))
}

/// Counts the mentions that IO joins with the mention before.
fn count_merged(documents: &[Document]) -> usize {
    let mut types = EntityTypes::default();
    let mut n = 0;
    for document in documents {
        for sentence in document.sentences() {
            let tags = document.sentence_tags(sentence, Scheme::Iob2, &mut types);
            n += count_merged_by_io(&tags);
        }
    }
    n
}

/// Makes a document from a sentence of a file without texts.
fn to_document(record: &Record<'_>, types: &EntityTypes) -> Document {
    let tokens: Vec<&str> = record.tokens.iter().map(AsRef::as_ref).collect();
    let is_other =
        |key: &str| key != "id" && !TOKENS_KEYS.contains(&key) && !TAGS_KEYS.contains(&key);
    let others = record.fields.iter().filter(|(key, _)| is_other(key));
    let metadata = others.map(|(key, raw)| Metadata { key: (**key).into(), json: (*raw).into() });
    Document::from_tokens(&tokens, &[], &record.tags, types)
        .with_id(record.id())
        .with_metadata(metadata.collect())
}

/// Counts what `to` cannot store of `documents`.
pub fn find_losses(documents: &[Document], to: Format) -> Vec<Loss> {
    let count = |is_lost: &dyn Fn(&Document) -> bool| {
        documents.iter().filter(|document| is_lost(document)).count()
    };
    let mut losses = Vec::new();
    let mut add = |part: Part, n: usize| {
        if n > 0 && !to.holds(part) {
            losses.push(Loss { n, part });
        }
    };
    add(Part::Text, count(&has_spacing));
    let tokenizer = document_tokenizer();
    if to.holds(Part::Tokens) && !to.holds(Part::Sentences) {
        add(Part::Sentences, count(&|document| !document.has_found_sentences(&tokenizer)));
    }
    if !to.holds(Part::Tokens) {
        let differs = |document: &Document| {
            let spans = document.spans().to_vec();
            let again = Document::new(document.text(), spans, &tokenizer);
            (again.tokens(), again.sentences()) != (document.tokens(), document.sentences())
        };
        add(Part::Tokens, count(&differs));
    }
    add(Part::Documents, count(&|document| document.sentences().len() > 1));
    let n_boundaries = documents.len().saturating_sub(1);
    add(Part::Boundaries, if to.holds(Part::Documents) { n_boundaries } else { 0 });
    add(Part::Ids, count(&|document| document.id().is_some()));
    add(Part::Metadata, documents.iter().map(|document| document.metadata().len()).sum());
    let n_overlapping = |document: &Document| document.spans().len() - document.flat_spans().len();
    add(Part::Overlaps, documents.iter().map(n_overlapping).sum());
    losses
}

/// Returns true if the tokens of a text are not all separated by one space.
fn has_spacing(document: &Document) -> bool {
    let tokens = document.tokens();
    let gaps = tokens.windows(2).map(|pair| &document.text()[pair[0].end..pair[1].start]);
    let is_whole = tokens.first().is_some_and(|first| first.start == 0)
        && tokens.last().is_some_and(|last| last.end == document.text().len());
    !is_whole || gaps.into_iter().any(|gap| gap != " ")
}
