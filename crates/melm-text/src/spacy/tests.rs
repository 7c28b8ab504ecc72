//! Tests against files that spaCy wrote (`tools/make_binary_formats.py`), and with damaged files.

use std::io::Write;
use std::path::PathBuf;

use flate2::Compression;
use flate2::write::ZlibEncoder;
use proptest::prelude::*;
use serde::Deserialize;

use super::msgpack::Packer;
use super::*;

/// A document as spaCy reads it, with offsets in code points.
#[derive(Deserialize)]
struct Expected {
    text: String,
    tokens: Vec<(usize, usize)>,
    mentions: Vec<(usize, usize, String)>,
    has_spaces: bool,
    n_missing: usize,
    sentences: Option<Vec<(usize, usize)>>,
}

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../testdata/spacy")
}

fn read_file(name: &str) -> Vec<u8> {
    std::fs::read(folder().join(name)).unwrap()
}

fn compress(data: &[u8]) -> Vec<u8> {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(data).unwrap();
    encoder.finish().unwrap()
}

/// Makes offsets in code points from a range of bytes.
fn in_code_points(text: &str, bytes: &Range<usize>) -> (usize, usize) {
    let at = |byte: usize| text[..byte].chars().count();
    (at(bytes.start), at(bytes.end))
}

fn assert_is_as_spacy_reads_it(document: &SpacyDoc, expected: &Expected) {
    assert_eq!(document.text, expected.text);
    let tokens: Vec<_> =
        document.tokens.iter().map(|token| in_code_points(&document.text, token)).collect();
    assert_eq!(tokens, expected.tokens, "{}", expected.text);
    let mentions = document.mentions.iter().map(|mention| {
        let (start, end) = (mention.tokens.start, mention.tokens.end - 1);
        let (start, end) = in_code_points(
            &document.text,
            &(document.tokens[start].start..document.tokens[end].end),
        );
        (start, end, mention.entity_type.to_string())
    });
    assert_eq!(mentions.collect::<Vec<_>>(), expected.mentions, "{}", expected.text);
    assert_eq!(document.has_spaces, expected.has_spaces, "{}", expected.text);
    let to_pair = |sentence: &Range<usize>| (sentence.start, sentence.end);
    let sentences = document.sentences.as_ref().map(|all| all.iter().map(to_pair).collect());
    assert_eq!(sentences, expected.sentences, "{}", expected.text);
}

#[test]
fn files_are_read_as_spacy_reads_them() {
    for name in ["usual", "order", "more", "sentences"] {
        let bin = read_doc_bin(&read_file(&format!("{name}.spacy"))).unwrap();
        let expected = read_file(&format!("{name}.json"));
        let expected: Vec<Expected> = serde_json::from_slice(&expected).unwrap();
        assert_eq!(bin.documents.len(), expected.len());
        for (document, expected) in bin.documents.iter().zip(&expected) {
            assert_is_as_spacy_reads_it(document, expected);
        }
        assert_eq!(
            bin.n_missing,
            expected.iter().map(|document| document.n_missing).sum::<usize>()
        );
    }
}

#[test]
fn what_is_not_read_is_counted() {
    let bin = read_doc_bin(&read_file("more.spacy")).unwrap();
    assert_eq!((bin.n_span_groups, bin.n_user_data, bin.n_categories), (1, 1, 1));
    let order = read_doc_bin(&read_file("order.spacy")).unwrap();
    // The lemmas are empty.
    assert_eq!(order.other_attributes, [0; 0]);
    assert_eq!((order.n_span_groups, order.n_user_data, order.n_categories), (0, 0, 0));
    let sentences = read_doc_bin(&read_file("sentences.spacy")).unwrap();
    assert_eq!(sentences.other_attributes, [hash::string_id("LEMMA")]);
}

#[test]
fn written_files_are_read_back() {
    for name in ["usual", "more", "sentences"] {
        let documents = read_doc_bin(&read_file(&format!("{name}.spacy"))).unwrap().documents;
        let mut writer = DocBinWriter::default();
        for document in &documents {
            writer.add(document);
        }
        assert_eq!(read_doc_bin(&writer.finish()).unwrap().documents, documents, "{name}");
    }
}

#[test]
fn gaps_other_than_a_space_become_tokens() {
    let text = "  New \t York, ".to_owned();
    let mention = SpacyMention { tokens: 0..2, entity_type: "GPE".into() };
    let tokens = vec![2..5, 8..12, 12..13];
    let mentions = vec![mention];
    let document = SpacyDoc { text, tokens, mentions, has_spaces: true, sentences: None };
    let mut writer = DocBinWriter::default();
    writer.add(&document);
    let read = read_doc_bin(&writer.finish()).unwrap().documents.remove(0);
    assert_eq!(read.text, document.text);
    let tokens: Vec<_> = read.tokens.iter().map(|token| &read.text[token.clone()]).collect();
    assert_eq!(tokens, ["  ", "New", "\t ", "York", ","]);
    assert_eq!(read.mentions[0].tokens, 1..4);
}

#[test]
fn damaged_files_are_refused() {
    let bytes = read_file("usual.spacy");
    for n in 0..bytes.len() {
        read_doc_bin(&bytes[..n]).unwrap_err();
    }
    let fault = |bytes: &[u8]| read_doc_bin(bytes).unwrap_err().to_string();
    assert_eq!(
        fault(b"PK\x03\x04 a zip file"),
        "the file is not a spaCy DocBin: it is not compressed by zlib"
    );
    assert_eq!(
        fault(&[&bytes[..], b"more"].concat()),
        "the compressed data of the DocBin is damaged: other bytes follow its end"
    );
    assert_eq!(fault(&compress(b"text")), "the file is not a spaCy DocBin: expected a map");
    assert_eq!(
        fault(&read_file("no_mentions.spacy")),
        "the DocBin does not store the attribute ENT_IOB"
    );
}

/// Makes a file from its parts. The strings are `Ada` and `PER`.
fn pack(attributes: &[u64], cells: &[u64], n_spaces: usize, lengths: &[i32]) -> Vec<u8> {
    let mut packer = Packer::default();
    packer.small_map(5);
    packer.text("attrs");
    packer.array(attributes.len());
    for &attribute in attributes {
        packer.unsigned(attribute);
    }
    packer.text("tokens");
    packer.bytes(&cells.iter().flat_map(|cell| cell.to_le_bytes()).collect::<Vec<_>>());
    packer.text("spaces");
    packer.bytes(&vec![1; n_spaces]);
    packer.text("lengths");
    packer.bytes(&lengths.iter().flat_map(|length| length.to_le_bytes()).collect::<Vec<_>>());
    packer.text("strings");
    packer.array(2);
    packer.text("Ada");
    packer.text("PER");
    compress(&packer.finish())
}

#[test]
fn parts_that_do_not_fit_together_are_refused() {
    let (ada, per) = (hash::string_id("Ada"), hash::string_id("PER"));
    let all = [ORTH, ENT_IOB, ENT_TYPE];
    let good = pack(&all, &[ada, iob::BEGIN, per], 1, &[1]);
    assert_eq!(read_doc_bin(&good).unwrap().documents[0].mentions[0].tokens, 0..1);
    let fault = |bytes: Vec<u8>| read_doc_bin(&bytes).unwrap_err().to_string();
    let mismatch = |why: &str| format!("the parts of the DocBin do not fit together: {why}");
    assert_eq!(
        fault(pack(&all, &[ada, iob::BEGIN], 1, &[1])),
        mismatch("16 bytes of tokens are not rows of 3 numbers")
    );
    assert_eq!(
        fault(pack(&all, &[ada, iob::BEGIN, per], 2, &[1])),
        mismatch("1 tokens but 2 spaces")
    );
    for (lengths, why) in [
        (&[i32::MAX][..], "document 1 has 2147483647 tokens, but 1 are left"),
        (&[1, -1], "document 2 has -1 tokens, but 0 are left"),
        (&[], "1 tokens belong to no document"),
    ] {
        assert_eq!(fault(pack(&all, &[ada, iob::BEGIN, per], 1, lengths)), mismatch(why));
    }
    assert_eq!(
        fault(pack(&all, &[77_777, iob::OUTSIDE, 0], 1, &[1])),
        "document 1, token 1: the DocBin has no string with the id 77777"
    );
    assert_eq!(
        fault(pack(&all, &[ada, iob::INSIDE, per], 1, &[1])),
        "document 1, token 1: a mention continues that has not started"
    );
    assert_eq!(
        fault(pack(&all, &[ada, 9, per], 1, &[1])),
        "document 1, token 1: ENT_IOB is 9, expected 0 to 3"
    );
    assert_eq!(fault(pack(&[], &[], 0, &[])), "the DocBin does not store the attribute ORTH");
}

#[test]
fn a_zlib_bomb_is_refused() {
    // 1 GiB of zeros in 1 MiB.
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::best());
    for _ in 0..1024 {
        encoder.write_all(&vec![0; 1 << 20]).unwrap();
    }
    let bomb = encoder.finish().unwrap();
    let fault = read_doc_bin(&bomb).unwrap_err();
    let limit = format!("{} MiB of data in {} bytes", (bomb.len() * 200) >> 20, bomb.len());
    assert_eq!(fault, DocBinFault::TooLarge { limit });
}

#[test]
fn one_long_string_for_many_tokens_is_refused() {
    let word = "x".repeat(1 << 20);
    let cells = [hash::string_id(&word), iob::OUTSIDE, 0].map(u64::to_le_bytes).concat();
    let mut packer = Packer::default();
    packer.small_map(5);
    packer.text("attrs");
    packer.array(3);
    for attribute in [ORTH, ENT_IOB, ENT_TYPE] {
        packer.unsigned(attribute);
    }
    packer.text("tokens");
    packer.bytes(&cells.repeat(1000));
    packer.text("spaces");
    packer.bytes(&[0; 1000]);
    packer.text("lengths");
    packer.bytes(&1000_i32.to_le_bytes());
    packer.text("strings");
    packer.array(1);
    packer.text(&word);
    let fault = read_doc_bin(&compress(&packer.finish())).unwrap_err();
    assert_eq!(fault, DocBinFault::TooLarge { limit: "256 MiB of text".into() });
}

proptest! {
    #[test]
    fn any_text_is_read_back(text in ".{1,40}", cuts in prop::collection::vec(0_usize..40, 0..8)) {
        // Tokens are the parts between cuts that are not blank.
        let mut cuts: Vec<usize> = cuts.iter().map(|&cut| text.floor_char_boundary(cut)).collect();
        cuts.extend([0, text.len()]);
        cuts.sort_unstable();
        let parts = cuts.windows(2).map(|cut| cut[0]..cut[1]);
        let tokens: Vec<_> = parts.filter(|part| !text[part.clone()].trim().is_empty()).collect();
        let n = tokens.len();
        let mentions = (0..n.saturating_sub(1)).step_by(3).map(|at| SpacyMention {
            tokens: at..at + 2,
            entity_type: ["PER", "ORG"][at % 2].into(),
        });
        let mentions = mentions.collect();
        let document = SpacyDoc { text, tokens, mentions, has_spaces: true, sentences: None };
        let mut writer = DocBinWriter::default();
        writer.add(&document);
        let read = read_doc_bin(&writer.finish()).unwrap().documents.remove(0);
        prop_assert_eq!(&read.text, &document.text);
        let spans = |document: &SpacyDoc| -> Vec<_> {
            let bytes = |m: &SpacyMention| {
                document.tokens[m.tokens.start].start..document.tokens[m.tokens.end - 1].end
            };
            document.mentions.iter().map(|m| (bytes(m), m.entity_type.clone())).collect()
        };
        prop_assert_eq!(spans(&read), spans(&document));
    }

    #[test]
    fn changed_files_never_panic(at in 0_usize..2000, byte: u8) {
        let mut encoder = ZlibEncoder::new(Vec::new(), Compression::fast());
        let mut data = Vec::new();
        std::io::Read::read_to_end(
            &mut flate2::read::ZlibDecoder::new(&read_file("more.spacy")[..]), &mut data).unwrap();
        let n = data.len();
        data[at % n] = byte;
        encoder.write_all(&data).unwrap();
        let _ = read_doc_bin(&encoder.finish().unwrap());
    }
}
