//! Tests vectors from files and from a model.

use std::path::Path;

use melm::Error;
use melm::codemix::MentionVectors;
use melm::models::Pretrained;
use melm_nn::config::Config;
use melm_nn::mlm::MaskedLm;
use melm_nn::params::TABLE;
use melm_text::{Corpus, Language};

use crate::support::{CODES, corpus, files, read, table};

#[test]
fn vectors_are_read_from_plain_and_gzip_files() {
    let dir = tempfile::tempdir().unwrap();
    let corpus = corpus();
    let mut last = (0, 0);
    let vectors =
        MentionVectors::read(&corpus, &files(dir.path()), &mut |done, of| last = (done, of));
    let vectors = vectors.unwrap();
    assert!(last.0 <= last.1);
    for (at, code) in CODES.iter().enumerate() {
        let table = table(code);
        let language = Language::from_index(at);
        let sentences = corpus.sentences().iter().filter(|s| s.language() == Some(language));
        for sentence in sentences {
            for token in sentence.mentions().flat_map(|m| &sentence.tokens()[m.tokens]) {
                let expected = table.get(&token.as_str().to_lowercase()).map(|v| &v[..]);
                assert_eq!(vectors.get(code, token.as_str()), expected);
            }
        }
        assert_eq!(vectors.get(code, "so"), None);
    }
}

#[test]
fn invalid_or_mismatched_files_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let parts = [read("in O\nBonn B-LOC\n"), read("in O\nBath B-LOC\n")];
    let corpus = Corpus::from_languages(["de", "en"].into_iter().zip(&parts));
    let write = |name: &str, text: &[u8]| {
        std::fs::write(dir.path().join(name), text).unwrap();
        dir.path().join(name)
    };
    let good = write("de.vec", b"1 2\nbonn 1 2\n");
    let read = |en: Vec<(String, std::path::PathBuf)>| {
        let files: Vec<_> = std::iter::once(("de".to_owned(), good.clone())).chain(en).collect();
        MentionVectors::read(&corpus, &files, &mut |_, _| {}).map(drop).unwrap_err()
    };
    let en = |text: &[u8]| read(vec![("en".to_owned(), write("en.vec", text))]);
    assert!(matches!(read(Vec::new()), Error::NoVectorsOf { language } if language == "en"));
    assert!(matches!(
        en(b"1 3\nbath 1 2 3\n"),
        Error::VectorDimensions { found: 3, expected: 2, .. }
    ));
    assert!(
        matches!(en(b"1 2\noslo 1 2\n"), Error::ForeignVectors { language, .. } if language == "en")
    );
    assert!(matches!(en(b"1 2\noslo 1 2\nbath 1\n"), Error::Text(melm_text::Error::Data { .. })));
    // The first is a truncated gzip file. The second is not gzip, but has the first bytes of a gzip file.
    for bytes in [&b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03\x4b"[..], b"\x1f\x8bxxxxxxxxxxxxxxx"]
    {
        assert!(matches!(en(bytes), Error::Read { .. }));
    }
    let nowhere = vec![("en".to_owned(), dir.path().join("nowhere"))];
    assert!(matches!(read(nowhere), Error::Read { .. }));
}

#[test]
fn piece_vectors_are_means_of_the_models_embeddings() {
    let dir = tempfile::tempdir().unwrap();
    let pieces = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/pieces/unigram");
    let tokenizer = melm::pieces::Tokenizer::open(&pieces).unwrap();
    tokenizer.save(dir.path()).unwrap();
    let config = Config {
        vocab_size: tokenizer.n_pieces(),
        hidden_size: 8,
        n_layers: 1,
        n_heads: 2,
        intermediate_size: 8,
        ..Config::default()
    };
    let model = MaskedLm::random(&config, 1).unwrap();
    model.save(dir.path()).unwrap();
    let pretrained = Pretrained::open(dir.path()).unwrap();
    let parts = [read("in O\nParty B-ORG\n"), read("in O\nPartij B-ORG\n")];
    let corpus = Corpus::from_languages(["en", "nl"].into_iter().zip(&parts));
    let vectors = MentionVectors::from_piece_embeddings(&corpus, &pretrained).unwrap();
    let table = model.parameters().get(TABLE).unwrap();
    for (at, word) in ["Party", "Partij"].into_iter().enumerate() {
        let encoded = tokenizer.encode(&[word]).unwrap();
        let own = &encoded.pieces[1..encoded.pieces.len() - 1];
        assert!(own.len() > 1);
        let found = vectors.get(["en", "nl"][at], word).unwrap();
        for (column, found) in found.iter().enumerate() {
            let sum: f32 = own.iter().map(|piece| table[*piece as usize * 8 + column]).sum();
            assert!((sum / own.len() as f32 - found).abs() < 1e-6);
        }
    }
}
