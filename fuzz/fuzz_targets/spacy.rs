//! Reads arbitrary bytes as a `DocBin` of spaCy. If they are accepted, writing the documents and reading them again must
//! give the same texts and mentions.
#![no_main]

use libfuzzer_sys::fuzz_target;
use melm_text::spacy::{DocBinWriter, SpacyDoc, read_doc_bin};

type Mentions = Vec<(std::ops::Range<usize>, String)>;

/// Returns the bytes and types of the mentions of a document.
fn mentions(document: &SpacyDoc) -> Mentions {
    let bytes = |tokens: &std::ops::Range<usize>| {
        document.tokens[tokens.start].start..document.tokens[tokens.end - 1].end
    };
    document.mentions.iter().map(|m| (bytes(&m.tokens), m.entity_type.to_string())).collect()
}

fuzz_target!(|bytes: &[u8]| {
    let Ok(bin) = read_doc_bin(bytes) else { return };
    let mut writer = DocBinWriter::default();
    for document in &bin.documents {
        writer.add(document);
    }
    let again = read_doc_bin(&writer.finish()).expect("our own output can be read");
    assert_eq!(again.documents.len(), bin.documents.len());
    for (one, other) in bin.documents.iter().zip(&again.documents) {
        assert_eq!(one.text, other.text);
        assert_eq!(mentions(one), mentions(other));
    }
});
