use std::io::Write;

use flate2::Compression;
use flate2::write::GzEncoder;
use proptest::prelude::*;

use super::*;
use crate::{Encoding, Error, Fault, ReadOptions, Source, Token};

fn read(bytes: impl AsRef<[u8]>) -> Result<UnlabelledText, Error> {
    UnlabelledText::read("a", bytes.as_ref(), &TextOptions::default())
}

/// Returns line and tokens of each sentence.
fn sentences(text: &UnlabelledText) -> Vec<(usize, String)> {
    let spell = |sentence: &UnlabelledSentence| {
        let tokens: Vec<_> = sentence.tokens().iter().map(Token::as_str).collect();
        (sentence.line(), tokens.join(" "))
    };
    text.sentences().iter().map(spell).collect()
}

fn faults(result: Result<UnlabelledText, Error>) -> Vec<(usize, Fault)> {
    match result.unwrap_err() {
        Error::Data { problems, .. } => {
            problems.first().iter().map(|p| (p.line, p.fault.clone())).collect()
        }
        other => panic!("{other}"),
    }
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn corpus(name: &str, text: &str) -> Corpus {
    let source = Source::from_text(name, text);
    LabelledFile::read(source, &ReadOptions::default()).unwrap().into_corpus()
}

fn describe(text: &UnlabelledText) -> Vec<(&str, usize, Option<&str>, &str)> {
    let sentences = text.sentences().iter();
    sentences.map(|s| (s.file(), s.line(), s.language(), s.tokens()[0].as_str())).collect()
}

#[test]
fn a_corpus_becomes_a_text_with_the_files_lines_and_languages_of_its_sentences() {
    let en = corpus("en.conll", "# id 1\nin O\nBonn B-LOC\n\n\nAda B-PER\n");
    let de = corpus("de.jsonl", "\n{\"tokens\":[\"Rom\"],\"tags\":[\"B-LOC\"]}\n");
    let both = Corpus::from_languages([("en", &en), ("de", &de)]);
    assert_eq!(
        describe(&UnlabelledText::from_corpus(&both)),
        [
            ("en.conll", 2, Some("en"), "in"),
            ("en.conll", 6, Some("en"), "Ada"),
            ("de.jsonl", 2, Some("de"), "Rom"),
        ]
    );
    let without_files = en.with_sentences(en.sentences().iter().cloned());
    assert_eq!(
        describe(&UnlabelledText::from_corpus(&without_files)),
        [("memory", 1, None, "in"), ("memory", 2, None, "Ada")]
    );
}

#[test]
fn joined_texts_keep_their_order_and_clones_are_not_changed() {
    let text = UnlabelledText::from_corpus(&corpus("a", "Ada O\n"));
    let joined = UnlabelledText::join([text.clone().with_language("nl"), text.clone()]);
    assert_eq!(describe(&joined), [("a", 1, Some("nl"), "Ada"), ("a", 1, None, "Ada")]);
    assert_eq!(text.sentences()[0].language(), None);
}

#[test]
fn plain_text_is_split_into_sentences_with_their_lines_and_spans() {
    let text = "Ada sang. It rained.\r\n\r\n  \n-DOCSTART-\n\u{c}No!\n";
    let options = TextOptions { format: Some(TextFormat::Plain), ..TextOptions::default() };
    let text = UnlabelledText::read("a", text.as_bytes(), &options).unwrap();
    let expected = [(1, "Ada sang ."), (1, "It rained ."), (5, "No !")];
    assert_eq!(sentences(&text), expected.map(|(line, text)| (line, text.to_owned())));
    for sentence in text.sentences() {
        for (token, span) in sentence.tokens().iter().zip(sentence.spans()) {
            assert_eq!(&sentence.text().unwrap()[span.clone()], token.as_str());
        }
    }
    assert_eq!(text.files()[0].format, TextFormat::Plain);
    assert_eq!(text.files()[0].n_sentences, 3);
}

#[test]
fn rows_are_read_with_and_without_tags() {
    let expected = vec![(2, "Ada sang .".to_owned()), (7, "# 1".to_owned())];
    for text in [
        "# id 1\nAda B-PER\nsang O\n. O\n\n\n# O\n1 O\n",
        "# id 1\nAda\tNNP\nsang\tV\n.\t.\n\n\n#\t#\n1\tN\n",
        "# id of it\nAda\r\nsang\r\n.\r\n\r\n\r\n#\r\n1",
        // The tags are not valid, but nobody needs them.
        "# id 1\nAda x\nsang I-\n. O\n\n\n# O\n1 O\n",
    ] {
        let options = TextOptions { format: Some(TextFormat::Conll), ..TextOptions::default() };
        let read = UnlabelledText::read("a", text.as_bytes(), &options).unwrap();
        assert_eq!(sentences(&read), expected, "{text}");
        assert!(read.sentences().iter().all(|sentence| sentence.text().is_none()));
    }
    let format = Some(TextFormat::Conll);
    let options = TextOptions { format, token_column: Some(2), ..TextOptions::default() };
    let text = UnlabelledText::read("a", "B-PER Ada\nO sang\n".as_bytes(), &options).unwrap();
    assert_eq!(sentences(&text), [(1, "Ada sang".to_owned())]);
}

#[test]
fn json_lines_are_read_with_tokens_or_text() {
    let text = "{\"tokens\": [\"Ada\", \"sang\"], \"text\": \"x\"}\n\n{\"id\": 1, \"text\": \"It\\nrained. \\u00c9 \\\"No\\\"\"}\n{\"tokens\": [\"-DOCSTART-\"]}\n";
    let expected = [(1, "Ada sang"), (3, "It rained ."), (3, "É \" No \"")];
    let text = read(text).unwrap();
    assert_eq!(sentences(&text), expected.map(|(line, text)| (line, text.to_owned())));
    let keys = TextOptions { text_key: Some("body".into()), ..TextOptions::default() };
    let text = UnlabelledText::read("a", "{\"body\": \"Ada\"}".as_bytes(), &keys).unwrap();
    assert_eq!(text.sentences().len(), 1);
}

#[test]
fn files_with_spans_are_read_without_their_spans() {
    let task = r#"[{"data": {"text": "Ada sang. It rained."}, "annotations": [{"result": []}]}]"#;
    let text = read(task).unwrap();
    assert_eq!(sentences(&text), [(1, "Ada sang .".to_owned()), (1, "It rained .".to_owned())]);
    assert_eq!(text.files()[0].format, TextFormat::Spans);
    let tokens = "[{\"tokenized_text\": [\"Ada\", \"sang.\"], \"ner\": [[0, 0, \"person\"]]}]";
    assert_eq!(sentences(&read(tokens).unwrap()), [(1, "Ada sang.".to_owned())]);
}

#[test]
fn gzip_is_detected_and_bounded() {
    let plain = "Ada sang.\n".repeat(1_000);
    let text = read(gzip(plain.as_bytes())).unwrap();
    assert!(text.files()[0].is_gzip);
    assert_eq!(text.sentences(), read(&plain).unwrap().sentences());
    // A file may consist of several members.
    let members = [gzip(b"Ada sang.\n"), gzip(b"It rained.\n")].concat();
    assert_eq!(read(members).unwrap().sentences().len(), 2);

    let options = TextOptions { max_bytes: 1 << 20, ..TextOptions::default() };
    let bomb = gzip(&vec![b' '; 64 << 20]);
    let error = UnlabelledText::read("a.gz", &bomb[..], &options).unwrap_err();
    assert_eq!(error.to_string(), "`a.gz` contains more than 1 MiB of text");
    assert!(error.cure().is_some());
    let options = TextOptions { max_tokens: 10, ..TextOptions::default() };
    let error = UnlabelledText::read("a.gz", plain.as_bytes(), &options).unwrap_err();
    assert_eq!(error.to_string(), "`a.gz` contains more than 10 tokens");

    let mut broken = gzip(plain.as_bytes());
    broken.truncate(broken.len() / 2);
    assert!(matches!(read(&broken), Err(Error::Read { .. })));
    assert!(matches!(read([0x1f, 0x8b, 1, 2, 3]), Err(Error::Read { .. })));
}

#[test]
fn all_problems_are_reported_with_their_lines() {
    assert_eq!(faults(read("")), [(1, Fault::NoText)]);
    assert_eq!(faults(read(" \n\u{200b}\n")), [(1, Fault::NoText)]);
    assert_eq!(faults(read(b"Ada\nK\xf6ln\n")), [(2, Fault::NotUtf8 { byte: 0xf6 })]);
    assert_eq!(faults(read(b"Ada\n\0\n")), [(2, Fault::Binary)]);
    assert_eq!(faults(read("Ada sang.\rIt rained.\n")), [(1, Fault::CarriageReturn)]);
    let lines = "{\"tokens\": []}\n{\"tokens\": [\"a\", 1]}\n{\"text\": 1}\n{\"x\": 1}\n{\n{\"tokens\": [\"a\\tb\"]}\n{\"text\": \"a\", \"text\": \"b\"}\n";
    let found: Vec<_> = faults(read(lines)).into_iter().map(|(line, _)| line).collect();
    assert_eq!(found, [1, 2, 3, 4, 5, 6, 7]);
    assert_eq!(faults(read(format!("a\n{}\n", "b ".repeat(1 << 20)))), [(2, Fault::LongLine)]);
    assert_eq!(faults(read("[{\"text\": \"a\"}]")), [(1, Fault::JsonArray)]);
    let rows = "Ada O\n".repeat(30) + "sang\n";
    let separator = crate::conll::Separator::Space;
    let fault = Fault::ColumnCount { found: 1, expected: 2, separator };
    assert_eq!(faults(read(rows)), [(31, fault)]);
    let options = TextOptions { token_column: Some(3), ..TextOptions::default() };
    let result = UnlabelledText::read("a", "Ada O\nsang O\n".as_bytes(), &options);
    assert_eq!(faults(result), [(1, Fault::NoSuchColumn { column: 3, n_columns: 2 })]);
    let latin = TextOptions { encoding: Encoding::Latin1, ..TextOptions::default() };
    let text = UnlabelledText::read("a", &b"K\xf6ln\n"[..], &latin).unwrap();
    assert_eq!(sentences(&text), [(1, "Köln".to_owned())]);
}

#[test]
fn lines_in_scripts_without_spaces_are_counted_or_refused() {
    let script = crate::UnspacedScript::Thai;
    let found = faults(read("Ada sang.\nภาษาไทย\n"));
    assert_eq!(found, [(2, Fault::UnspacedScript { script })]);
    assert!(found[0].1.to_string().contains("Thai") && found[0].1.cure().contains("`tokens`"));
    let text = read("Ada sang.\n".repeat(10) + "in ภาษา\n").unwrap();
    assert_eq!((text.sentences().len(), text.files()[0].n_unspaced), (10, 1));
    assert_eq!(read("{\"tokens\": [\"ภาษา\", \"ไทย\"]}").unwrap().sentences().len(), 1);
}

#[test]
fn open_names_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.txt");
    let error = UnlabelledText::open(&path, &TextOptions::default()).unwrap_err();
    assert!(error.to_string().contains("a.txt"));
    std::fs::write(&path, "Ada sang.\n").unwrap();
    let text = UnlabelledText::open(&path, &TextOptions::default()).unwrap();
    assert!(text.sentences()[0].file().ends_with("a.txt"));
}

proptest! {
    #[test]
    fn any_bytes_are_read_or_refused(
        bytes in proptest::collection::vec(any::<u8>(), 0..200),
        format in prop_oneof![Just(None), Just(Some(TextFormat::Plain)), Just(Some(TextFormat::Conll)), Just(Some(TextFormat::Jsonl))],
    ) {
        let options = TextOptions { format, ..TextOptions::default() };
        if let Ok(text) = UnlabelledText::read("a", &bytes[..], &options) {
            prop_assert!(!text.sentences().is_empty());
            prop_assert!(text.sentences().iter().all(|sentence| !sentence.tokens().is_empty()));
        }
    }
}
