//! Files of spaCy and of Hugging Face `datasets` (`tools/make_binary_formats.py`), read and written through the registry
//! of formats.

use std::path::PathBuf;

use melm_text::{
    Corpus, Document, Encoding, Error, Format, LabelledFile, OffsetUnit, ReadOptions, Scheme,
    Source, Structure, WriteSettings,
};
use serde::Deserialize;
use serde_json::Value;

/// A document as spaCy reads it, with offsets in code points.
#[derive(Deserialize)]
struct SpacyDocument {
    text: String,
    tokens: Vec<(usize, usize)>,
    mentions: Vec<(usize, usize, String)>,
}

fn path(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../testdata").join(name)
}

fn open(name: &str) -> Source {
    Source::open(&path(name), Encoding::Utf8).expect("the file can be opened")
}

fn documents(source: &Source) -> Vec<Document> {
    match Structure::detect(source, &ReadOptions::default()).expect("the file can be read") {
        Structure::Documents(documents) => documents.documents.clone(),
        other => panic!("{} is no text with spans", other.format().name()),
    }
}

/// Returns the spans of a document with offsets in code points.
fn spans(document: &Document) -> Vec<(usize, usize, String)> {
    let at = |byte: usize| OffsetUnit::CodePoint.measure(&document.text()[..byte]);
    let spans = document.spans().iter();
    spans.map(|s| (at(s.range.start), at(s.range.end), s.entity_type.to_string())).collect()
}

fn message(source: &Source) -> String {
    match Structure::detect(source, &ReadOptions::default()) {
        Err(Error::Data { problems, .. }) => problems.first()[0].fault.to_string(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn mentions_of_spacy_have_the_offsets_that_spacy_gives_them() {
    let source = open("spacy/usual.spacy");
    assert_eq!(Format::detect(&source).name(), "spacy");
    let json = std::fs::read_to_string(path("spacy/usual.json")).unwrap();
    let expected: Vec<SpacyDocument> = serde_json::from_str(&json).unwrap();
    let found = documents(&source);
    assert_eq!(found.len(), expected.len());
    for (document, expected) in found.iter().zip(&expected) {
        assert_eq!(document.text(), expected.text);
        assert_eq!(spans(document), expected.mentions, "{}", expected.text);
        // Our tokens are those of spaCy that are not white space.
        let chars: Vec<char> = expected.text.chars().collect();
        let visible =
            expected.tokens.iter().map(|&(start, end)| chars[start..end].iter().collect());
        let visible = visible.filter(|token: &String| !token.trim().is_empty());
        let tokens =
            document.tokens().iter().map(|token| document.text()[token.clone()].to_owned());
        assert!(tokens.eq(visible), "{}", expected.text);
    }
}

#[test]
fn a_written_doc_bin_has_the_same_texts_and_spans() {
    let own = documents(&open("spacy/usual.spacy"));
    let spacy: Format = "spacy".parse().unwrap();
    let written = spacy.write(&own, &WriteSettings::default()).unwrap();
    assert_eq!(written[0].extension, "spacy");
    let source = Source::from_bytes("a".into(), written[0].bytes.clone(), Encoding::Utf8).unwrap();
    let again = documents(&source);
    assert_eq!(again.len(), own.len());
    for (one, other) in own.iter().zip(&again) {
        assert_eq!((one.text(), spans(one)), (other.text(), spans(other)));
    }
}

#[test]
fn what_a_doc_bin_has_beyond_mentions_is_counted() {
    let source = open("spacy/more.spacy");
    let Ok(Structure::Documents(found)) = Structure::detect(&source, &ReadOptions::default())
    else {
        panic!("the file can be read");
    };
    assert_eq!(found.counts.n_unannotated, 7);
    let left_out: Vec<_> = found.counts.left_out.values().copied().collect();
    // Categories, span groups, user data, and the empty document.
    assert_eq!(left_out, [1, 1, 1, 1]);
    let sentences = documents(&open("spacy/sentences.spacy"));
    assert_eq!(sentences[0].sentences(), [0..3, 3..9, 9..12]);
}

#[test]
fn rows_of_parquet_become_sentences_with_their_tags() {
    let json = std::fs::read_to_string(path("parquet/expected.json")).unwrap();
    let expected: Vec<Value> = serde_json::from_str(&json).unwrap();
    for name in ["datasets", "groups", "uncompressed", "texts"] {
        let corpus = Corpus::open(path(&format!("parquet/{name}.parquet"))).unwrap();
        assert_eq!(corpus.scheme(), Scheme::Iob2);
        assert_eq!(corpus.sentences().len(), expected.len());
        for (sentence, expected) in corpus.sentences().iter().zip(&expected) {
            let tokens: Vec<_> = sentence.tokens().iter().map(ToString::to_string).collect();
            assert_eq!(Value::from(tokens), expected["tokens"], "{name}");
            let spell = |&tag: &_| corpus.types().spell(tag, corpus.scheme()).to_string();
            let tags: Vec<_> = sentence.tags().iter().map(spell).collect();
            assert_eq!(Value::from(tags), expected["tags"], "{name}");
        }
    }
}

#[test]
fn augmented_sentences_are_written_in_the_format_of_their_file() {
    for name in ["spacy/usual.spacy", "parquet/datasets.parquet"] {
        let file = LabelledFile::open(path(name)).unwrap();
        let corpus = file.corpus();
        let more = &corpus.sentences()[..2];
        let files = file.write_sentences(corpus.types(), more, true).unwrap();
        let source =
            Source::from_bytes("a".into(), files[0].bytes.clone(), Encoding::Utf8).unwrap();
        let both = Corpus::read(&source, &ReadOptions::default()).unwrap();
        let n = corpus.sentences().len();
        assert_eq!(both.sentences().len(), n + 2, "{name}");
        for (one, other) in corpus.sentences().iter().chain(more).zip(both.sentences()) {
            assert_eq!(one.tokens(), other.tokens(), "{name}");
            let names = |corpus: &Corpus, sentence: &melm_text::Sentence| -> Vec<_> {
                let name = |m: melm_text::Mention| {
                    (m.tokens, corpus.types().name(m.entity_type).to_owned())
                };
                sentence.mentions().map(name).collect()
            };
            assert_eq!(names(corpus, one), names(&both, other), "{name}");
        }
    }
}

#[test]
fn faults_of_binary_files_are_reported() {
    assert_eq!(
        message(&open("spacy/no_mentions.spacy")),
        "the DocBin does not store the attribute ENT_IOB"
    );
    assert_eq!(
        message(&open("parquet/no_names.parquet")),
        "the tags in `ner_tags` are ids, but the file does not contain their names"
    );
    let bytes = std::fs::read(path("spacy/usual.spacy")).unwrap();
    let source = Source::from_bytes("a".into(), bytes[..100].to_vec(), Encoding::Utf8).unwrap();
    assert_eq!(message(&source), "the compressed data of the DocBin is damaged: it ends too early");
    // A text that starts as a header of zlib does.
    let text = Source::from_bytes("a".into(), b"x^2 O\n".to_vec(), Encoding::Utf8).unwrap();
    assert_eq!(Format::detect(&text), Format::CONLL);
}

#[test]
fn tags_that_the_scheme_does_not_allow_are_refused() {
    let text =
        "{\"tokens\":[\"Ada\",\"sang\",\"Bonn\"],\"ner_tags\":[\"B-PER\",\"O\",\"B-LOC\"]}\n";
    let source = Source::from_text("a.jsonl", text);
    let file = LabelledFile::read(source, &ReadOptions::default()).unwrap();
    let parquet: Format = "parquet".parse().unwrap();
    let sentence = &file.corpus().sentences()[0];
    let document = Document::from_sentence(sentence, file.corpus().types());
    let files = parquet.write(&[document], &WriteSettings::default()).unwrap();
    let source = Source::from_bytes("a".into(), files[0].bytes.clone(), Encoding::Utf8).unwrap();
    // IOBES does not allow a mention that starts and does not end.
    let options = ReadOptions { scheme: Some(Scheme::Iobes), ..ReadOptions::default() };
    let Err(Error::Data { problems, .. }) = Structure::detect(&source, &options) else {
        panic!("the tags are not those of IOBES");
    };
    let faults: Vec<_> = problems.first().iter().map(|p| p.fault.to_string()).collect();
    assert_eq!(faults[0], "`O` cannot follow `B-PER` in IOBES");
    assert_eq!(faults[1], "the end of the row cannot follow `B-LOC` in IOBES");
}
