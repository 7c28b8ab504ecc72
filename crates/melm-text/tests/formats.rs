//! Reads the fixtures of each format, writes every format, and reads it again.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::path::{Path, PathBuf};

use melm_text::{
    Corpus, Document, Encoding, Error, Format, LabelledFile, OffsetUnit, OverlapRule, Part,
    ReadOptions, Source, Token, WriteSettings, WrittenFile, convert_documents, read_documents,
};
use proptest::prelude::*;
use serde_json::Value;

/// The texts of the fixtures with their spans, as `tools/make_format_fixtures.py` has them.
const TEXTS: [(&str, &[(&str, &str)]); 6] = [
    (
        "Angela Merkel visited 👩‍👧 in Paris 😀. Then she left for Bonn.",
        &[("Angela Merkel", "PER"), ("Paris", "LOC"), ("Bonn", "LOC")],
    ),
    (
        "Zoe\u{308} lives in Ko\u{308}ln, near Du\u{308}ren.",
        &[("Zoe\u{308}", "PER"), ("Ko\u{308}ln", "LOC"), ("Du\u{308}ren", "LOC")],
    ),
    ("דנה גרה בתל אביב.", &[("דנה", "PER"), ("תל אביב", "LOC")]),
    ("Oslo\r\nReykjavík:  Björk sang.", &[("Oslo", "LOC"), ("Reykjavík", "LOC"), ("Björk", "PER")]),
    ("The Bank of England is old.", &[("Bank of England", "ORG"), ("England", "LOC")]),
    ("Nobody was there.", &[]),
];

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/formats").join(name)
}

fn open(name: &str) -> Source {
    Source::open(&fixture(name), Encoding::Utf8).unwrap()
}

fn read(source: &Source) -> Vec<Document> {
    read_documents(source, &ReadOptions::default(), false).unwrap().0
}

/// The text of a document, and the text and the type of each span.
fn describe(document: &Document) -> (String, Vec<(String, String)>) {
    let text = document.text();
    let span = |span: &melm_text::Span| {
        (text[span.range.clone()].to_owned(), span.entity_type.to_string())
    };
    (text.to_owned(), document.spans().iter().map(span).collect())
}

fn expected(n: usize) -> Vec<(String, Vec<(String, String)>)> {
    let owned = |(surface, kind): &(&str, &str)| ((*surface).to_owned(), (*kind).to_owned());
    let texts = TEXTS.iter().take(n);
    texts.map(|(text, spans)| ((*text).to_owned(), spans.iter().map(owned).collect())).collect()
}

/// The source that a written file becomes when it is read from disk.
fn source_of(files: &[WrittenFile]) -> Source {
    let folder = tempfile::tempdir().unwrap();
    for file in files {
        std::fs::write(folder.path().join(format!("a.{}", file.extension)), &file.bytes).unwrap();
    }
    let path = folder.path().join(format!("a.{}", files[0].extension));
    Source::open(&path, Encoding::Utf8).unwrap()
}

#[test]
fn each_fixture_is_detected_and_has_the_spans_of_the_script() {
    for (name, format) in [
        ("label-studio.json", "label-studio"),
        ("label-studio-min.json", "label-studio"),
        ("doccano.jsonl", "doccano"),
        ("doccano-relations.jsonl", "doccano"),
        ("prodigy.jsonl", "prodigy"),
    ] {
        let source = open(name);
        assert_eq!(Format::detect(&source).name(), format, "{name}");
        let found: Vec<_> = read(&source).iter().map(describe).collect();
        assert_eq!(found, expected(6), "{name}");
    }
}

#[test]
fn brat_is_read_from_a_pair_or_a_folder() {
    let found: Vec<_> = read(&open("brat")).iter().map(describe).collect();
    let mut wanted = expected(5);
    for (text, _) in &mut wanted {
        text.push('\n');
    }
    // A span of two parts becomes one.
    wanted[0].1.insert(1, ("Merkel visited".into(), "EVENT".into()));
    assert_eq!(found, wanted);
    let one = read(&open("brat/letter-2.ann"));
    assert_eq!(describe(&one[0]), wanted[1]);
    assert_eq!(one[0].id(), Some("letter-2"));
}

#[test]
fn gliner_counts_the_last_token_in() {
    let documents = read(&open("gliner.json"));
    let (text, spans) = describe(&documents[2]);
    assert_eq!(text, "דנה גרה ב תל אביב .");
    assert_eq!(spans[1], ("תל אביב".to_owned(), "location".to_owned()));
    assert_eq!(documents[3].spans().len(), 0);
    assert_eq!(documents[0].tokens().len(), 8);
}

#[test]
fn old_exports_of_label_studio_are_refused_and_read_with_their_unit() {
    let source = open("label-studio-utf16.json");
    let error = read_documents(&source, &ReadOptions::default(), false).unwrap_err();
    let Error::Data { problems, .. } = error else { panic!("{error}") };
    let fault = &problems.first()[0].fault;
    assert!(fault.to_string().contains("but the file says `Paris`"), "{fault}");
    assert_eq!(fault.cure(), "pass `--offsets utf16`");
    let options = ReadOptions { offset_unit: Some(OffsetUnit::Utf16), ..ReadOptions::default() };
    let (documents, _) = read_documents(&source, &options, false).unwrap();
    assert_eq!(documents.iter().map(describe).collect::<Vec<_>>(), expected(2));
    // Written again, the offsets are code points.
    let files = Format::detect(&source).write(&documents, &WriteSettings::default()).unwrap();
    assert_eq!(read(&source_of(&files)).iter().map(describe).collect::<Vec<_>>(), expected(2));
}

#[test]
fn what_is_left_out_is_counted() {
    let notes = |name: &str| {
        let (_, survey) = read_documents(&open(name), &ReadOptions::default(), false).unwrap();
        survey.structure.documents().unwrap().notes().join("\n")
    };
    let found = notes("label-studio.json");
    for part in [
        "1 × a span cuts a token",
        "1 × a span overlaps a longer one",
        "1 × left out: annotations of tasks that have several",
        "1 × left out: cancelled annotations",
        "1 × left out: results without labels",
        "1 × left out: tasks without an annotation",
    ] {
        assert!(found.contains(part), "{part}: {found}");
    }
    assert!(!found.contains("warning"), "the text of the spans was compared");
    let found = notes("doccano-relations.jsonl");
    assert!(found.contains("1 × left out: relations"), "{found}");
    assert!(
        found.contains("warning: 1 × a text with characters outside the basic plane"),
        "{found}"
    );
    let found = notes("prodigy.jsonl");
    assert!(found.contains("1 × left out: rejected examples"), "{found}");
    let found = notes("brat");
    assert!(found.contains("1 × left out: relations and events"), "{found}");
    assert!(found.contains("2 × left out: attributes, normalizations and notes"), "{found}");
    assert!(found.contains("1 × left out: gaps inside of spans"), "{found}");
}

#[test]
fn annotations_are_chosen_or_merged_and_overlaps_refused() {
    let source = open("label-studio.json");
    let n_spans = |annotations: &str| {
        let annotations = annotations.parse().unwrap();
        let options = ReadOptions { annotations, ..ReadOptions::default() };
        read_documents(&source, &options, false).unwrap().0[0].spans().len()
    };
    assert_eq!(["first", "last", "merge"].map(n_spans), [3, 1, 3]);
    let options = ReadOptions { overlaps: OverlapRule::Refuse, ..ReadOptions::default() };
    let error = read_documents(&source, &options, false).unwrap_err();
    let Error::Data { problems, .. } = error else { panic!("{error}") };
    let found = problems.first()[0].fault.to_string();
    assert_eq!(found, "`England` overlaps `Bank of England`");
}

fn number(value: &Value) -> usize {
    usize::try_from(value.as_u64().unwrap()).unwrap()
}

/// Returns the characters between two offsets.
fn characters(text: &str, start: &Value, end: &Value) -> String {
    text.chars().skip(number(start)).take(number(end) - number(start)).collect()
}

/// The text and the type of each span of a written task of Label Studio.
fn label_studio_spans(task: &Value, text: &str) -> Vec<(String, String)> {
    assert_eq!(task["data"]["text"], text);
    let results = task["annotations"][0]["result"].as_array().unwrap().iter();
    let found = results.map(|result| {
        let value = &result["value"];
        let surface = characters(text, &value["start"], &value["end"]);
        assert_eq!(value["text"], surface);
        (surface, value["labels"][0].as_str().unwrap().to_owned())
    });
    found.collect()
}

/// The text and the type of each span of a written record of Doccano.
fn doccano_spans(record: &Value, text: &str) -> Vec<(String, String)> {
    let units: Vec<u16> = text.encode_utf16().collect();
    let found = record["label"].as_array().unwrap().iter().map(|label| {
        let range = number(&label[0])..number(&label[1]);
        (String::from_utf16(&units[range]).unwrap(), label[2].as_str().unwrap().into())
    });
    found.collect()
}

/// The text and the type of each span of a written example of Prodigy. Compares the tokens too.
fn prodigy_spans(example: &Value, text: &str) -> Vec<(String, String)> {
    for token in example["tokens"].as_array().unwrap() {
        assert_eq!(token["text"], characters(text, &token["start"], &token["end"]));
    }
    let found = example["spans"].as_array().unwrap().iter().map(|span| {
        let surface = characters(text, &span["start"], &span["end"]);
        (surface, span["label"].as_str().unwrap().into())
    });
    found.collect()
}

/// Checks the offsets of a written file with code of its own: `char`s and UTF-16 units of the standard library.
fn check_offsets(format: &str, bytes: &[u8]) {
    let text = std::str::from_utf8(bytes).unwrap();
    let objects: Vec<Value> = match format {
        "label-studio" => serde_json::from_str(text).unwrap(),
        _ => text.lines().map(|line| serde_json::from_str(line).unwrap()).collect(),
    };
    for (object, (text, spans)) in objects.iter().zip(expected(6)) {
        let found = match format {
            "label-studio" => label_studio_spans(object, &text),
            "doccano" => doccano_spans(object, &text),
            _ => prodigy_spans(object, &text),
        };
        assert_eq!(found, spans, "{format}");
    }
}

#[test]
fn written_offsets_select_the_spans_in_the_unit_of_the_tool() {
    let source = open("label-studio-min.json");
    for name in ["label-studio", "doccano", "prodigy"] {
        let to: Format = name.parse().unwrap();
        let documents = read(&open("doccano.jsonl"));
        let from = if name == "doccano" { &source } else { &open("doccano.jsonl") };
        let converted = convert_documents(from, &ReadOptions::default(), to, None, false).unwrap();
        check_offsets(name, &converted.files[0].bytes);
        let again: Vec<_> = read(&source_of(&converted.files)).iter().map(describe).collect();
        assert_eq!(again, documents.iter().map(describe).collect::<Vec<_>>(), "{name}");
    }
}

#[test]
fn the_same_format_is_copied_without_a_loss() {
    for name in ["doccano.jsonl", "doccano-relations.jsonl", "label-studio-min.json", "gliner.json"]
    {
        let source = open(name);
        let to = Format::detect(&source);
        let converted =
            convert_documents(&source, &ReadOptions::default(), to, None, false).unwrap();
        assert_eq!(converted.losses, [], "{name}");
        let values = |text: &str| -> Vec<Value> {
            let all = serde_json::Deserializer::from_str(text).into_iter();
            all.map(Result::unwrap).collect()
        };
        let written = String::from_utf8(converted.files[0].bytes.clone()).unwrap();
        assert_eq!(values(&written), values(source.text()), "{name}");
    }
}

#[test]
fn sentences_that_are_found_differently_are_kept_or_counted() {
    let text = "Ada B-PER\nsang O\n. O\nIt O\nrained O\n. O\n\nBob B-PER\nslept O\n. O\n";
    let source = Source::from_text("a.conll", text);
    let corpus = Corpus::read(&source, &ReadOptions::default()).unwrap();
    let tokens = |corpus: &Corpus| -> Vec<Vec<Token>> {
        corpus.sentences().iter().map(|sentence| sentence.tokens().to_vec()).collect()
    };
    for to in Format::all() {
        let converted =
            convert_documents(&source, &ReadOptions::default(), to, None, false).unwrap();
        let again = Corpus::read(&source_of(&converted.files), &ReadOptions::default()).unwrap();
        let losses: Vec<_> = converted.losses.iter().map(|loss| (loss.n, loss.part)).collect();
        let is_counted =
            losses.contains(&(1, Part::Tokens)) || losses.contains(&(1, Part::Sentences));
        assert_eq!(tokens(&again) != tokens(&corpus), is_counted, "{}: {losses:?}", to.name());
        let finds = ["brat", "doccano", "label-studio", "prodigy"].contains(&to.name());
        assert_eq!(is_counted, finds, "{}", to.name());
    }
}

#[test]
fn spans_survive_every_pair_of_formats() {
    let start = open("label-studio-min.json");
    // The longest of overlapping spans, because some formats store only tags.
    let wanted: Vec<String> = read(&start).iter().flat_map(flat).collect();
    for from in Format::all() {
        let source = convert_to(&start, from);
        for to in Format::all() {
            let again = read(&convert_to(&source, to));
            let found: Vec<String> = again.iter().flat_map(flat).collect();
            assert_eq!(found, wanted, "{from:?} to {to:?}");
        }
    }
}

fn convert_to(source: &Source, to: Format) -> Source {
    let options = ReadOptions::default();
    source_of(&convert_documents(source, &options, to, None, false).unwrap().files)
}

/// The spans of a document that do not overlap, without their spacing.
fn flat(document: &Document) -> Vec<String> {
    let text = document.text();
    let span = |span: &melm_text::Span| {
        let words: Vec<_> = text[span.range.clone()].split_whitespace().collect();
        format!("{} {}", span.entity_type, words.join(" "))
    };
    document.flat_spans().map(span).collect()
}

#[test]
fn new_sentences_are_written_in_the_format_of_the_file_with_new_offsets() {
    for name in
        ["label-studio.json", "doccano-relations.jsonl", "prodigy.jsonl", "gliner.json", "brat"]
    {
        let corpus = LabelledFile::read(open(name), &ReadOptions::default()).unwrap().into_corpus();
        let n = corpus.sentences().len();
        let first = &corpus.sentences()[0];
        let draft = first.with_tokens([(0, Token::new("Łucja😀").unwrap())]);
        let texts = corpus.append_sentences(&[draft], true).unwrap();
        let again = source_of(&texts[0].files);
        let documents = read(&again);
        let last = documents.last().unwrap();
        let (text, spans) = describe(last);
        let is_brat = name == "brat";
        assert!(text.contains("Łucja😀 Merkel visited 👩‍👧 in Paris 😀"), "{name}: {text}");
        // In BRAT, the longer span `Merkel visited` overlaps the name. It occurs in gold and in the draft.
        let (surface, n_wanted) =
            if is_brat { ("Merkel visited", 2) } else { ("Łucja😀 Merkel", 1) };
        let n_found = spans.iter().filter(|span| span.0 == surface).count();
        assert_eq!(n_found, n_wanted, "{name}: {spans:?}");
        let n_again = Corpus::read(&again, &ReadOptions::default()).unwrap().sentences().len();
        assert!(is_brat || n_again == n + 1, "{name}: {n_again}");
        assert_eq!(texts[0].format, Format::detect(&open(name)));
    }
    // New tasks fit the labelling configuration of the project.
    let corpus = LabelledFile::open(fixture("label-studio.json")).unwrap().into_corpus();
    let texts = corpus.append_sentences(&corpus.sentences()[..1], false).unwrap();
    let tasks: Value = serde_json::from_slice(&texts[0].files[0].bytes).unwrap();
    assert_eq!(tasks[0]["annotations"][0]["result"][0]["type"], "labels");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]
    /// Damages a fixture. It is refused, or read; and what is read can be written and read again.
    #[test]
    fn damaged_files_are_refused_or_read(
        which in 0usize..6,
        damage in prop::collection::vec((0usize..6000, 0usize..4, any::<u8>()), 1..6),
    ) {
        let names = ["label-studio.json", "label-studio-min.json", "doccano.jsonl", "doccano-relations.jsonl", "prodigy.jsonl", "gliner.json"];
        let format = Format::detect(&open(names[which]));
        let mut bytes = std::fs::read(fixture(names[which])).unwrap();
        for (at, kind, byte) in damage {
            let at = at % bytes.len();
            match kind {
                0 => bytes[at] = byte % 128,
                1 => drop(bytes.remove(at)),
                2 => bytes.insert(at, b"0123456789\"[]{},:"[usize::from(byte) % 17]),
                _ => bytes.truncate(at.max(40)),
            }
        }
        let options = ReadOptions { format: Some(format), ..ReadOptions::default() };
        let Ok(source) = Source::from_bytes("a".into(), bytes, Encoding::Utf8) else { return Ok(()) };
        let Ok((documents, _)) = read_documents(&source, &options, true) else { return Ok(()) };
        let fresh: Vec<_> = documents.iter().map(|one| one.clone().without_original()).collect();
        let files = format.write(&fresh, &WriteSettings::default()).unwrap();
        let again = Source::from_bytes("b".into(), files[0].bytes.clone(), Encoding::Utf8).unwrap();
        let (again, _) = read_documents(&again, &options, true).unwrap();
        if format.name() != "gliner" {
            let all = |documents: &[Document]| documents.iter().map(describe).collect::<Vec<_>>();
            prop_assert_eq!(all(&again), all(&documents));
        }
    }
}

#[test]
fn a_string_of_a_gigabyte_is_refused_early() {
    /// A JSON string that does not end before a gigabyte, and the number of bytes that were read of it.
    struct Endless(u64);
    impl std::io::Read for Endless {
        fn read(&mut self, out: &mut [u8]) -> std::io::Result<usize> {
            let n = out.len().min(usize::try_from((1 << 30) - self.0).unwrap());
            out[..n].fill(b'a');
            if self.0 == 0 {
                out[..9].copy_from_slice(b"{\"text\":\"");
            }
            self.0 += n as u64;
            Ok(n)
        }
    }
    let mut from = Endless(0);
    let error = Source::read("a.jsonl", &mut from, Encoding::Utf8).unwrap_err();
    assert_eq!(error.to_string(), "`a.jsonl` has a line of more than 256 MiB");
    assert!(from.0 <= 258 << 20, "{} bytes were read", from.0);
}
