//! Reads arbitrary bytes as each text format with spans. If they are accepted, writing the documents and reading them
//! again must give the same texts and spans.
#![no_main]

use libfuzzer_sys::fuzz_target;
use melm_text::{Document, Encoding, Format, ReadOptions, Source, WriteSettings, read_documents};

/// The formats, chosen by the first byte of the input.
const FORMATS: [&str; 5] = ["label-studio", "doccano", "prodigy", "gliner", "brat"];

fn read(source: &Source, format: Format) -> Option<Vec<Document>> {
    let options = ReadOptions { format: Some(format), ..ReadOptions::default() };
    read_documents(source, &options, true).ok().map(|(documents, _)| documents)
}

fn describe(documents: &[Document]) -> Vec<(String, Vec<melm_text::Span>)> {
    let one = |document: &Document| (document.text().to_owned(), document.spans().to_vec());
    documents.iter().map(one).collect()
}

fuzz_target!(|bytes: &[u8]| {
    let [kind, rest @ ..] = bytes else { return };
    let name = FORMATS[usize::from(*kind) % FORMATS.len()];
    let format: Format = name.parse().unwrap();
    let source = |name: &str, bytes: &[u8]| {
        Source::from_bytes(name.into(), bytes.to_vec(), Encoding::Utf8).ok()
    };
    let source = if name == "brat" {
        // A NUL separates the text from its annotations.
        let mut parts = rest.splitn(2, |&byte| byte == 0);
        let text = parts.next().and_then(|part| source("a.txt", part));
        let annotations = parts.next().and_then(|part| source("a.ann", part));
        let (Some(text), Some(annotations)) = (text, annotations) else { return };
        Source::from_parts("a", vec![text, annotations])
    } else {
        let Some(source) = source("a", rest) else { return };
        source
    };
    let Some(documents) = read(&source, format) else { return };
    // Forget the records of the file, so that the writer writes them anew.
    let fresh: Vec<Document> =
        documents.iter().map(|document| document.clone().without_original()).collect();
    let Ok(files) = format.write(&fresh, &WriteSettings::default()) else { return };
    let again: Vec<Source> = files
        .iter()
        .rev()
        .map(|file| Source::from_bytes("b".into(), file.bytes.clone(), Encoding::Utf8).unwrap())
        .collect();
    let again = if name == "brat" {
        Source::from_parts("b", again)
    } else {
        again.into_iter().next().unwrap()
    };
    let again = read(&again, format).expect("our own output can be read");
    match name {
        "brat" => assert_eq!(again[0].spans(), documents[0].spans()),
        // Tokens with line breaks become several tokens, which are joined by spaces.
        "gliner" => {
            let n_spans = |all: &[Document]| all.iter().map(|one| one.flat_spans().len()).sum::<usize>();
            assert_eq!(n_spans(&again), n_spans(&documents));
        }
        _ => assert_eq!(describe(&again), describe(&documents)),
    }
});
