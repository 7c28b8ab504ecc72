//! Tests the tokenizers of each model family against Hugging Face; see `tools/make_pieces_families.py`.

use std::fs::{self, read_to_string};
use std::path::PathBuf;

use melm::entity_lm::EntityLm;
use melm::generate::{Drafter, GenerateSettings, Ranks};
use melm::markers::Markers;
use melm::pieces::{PieceKind, PieceKinds, Tokenizer};
use melm::random::Seed;
use melm::stage::Control;
use melm_nn::config::Config;
use melm_nn::device::Device;
use melm_nn::mlm::MaskedLm;
use melm_text::{Corpus, ReadOptions, Source};

use crate::golden::{check_complete, fingerprint, read_conll};
use crate::testdata;

const FAMILIES: [&str; 5] = ["bert_cased", "bert_uncased", "camembert", "modernbert", "gemma"];

fn family(name: &str) -> PathBuf {
    testdata("families").join(name)
}

fn open(name: &str) -> Tokenizer {
    Tokenizer::open(&family(name)).unwrap()
}

fn sentences() -> Vec<Vec<String>> {
    let written = read_to_string(testdata("written.txt")).unwrap();
    let written = written.lines().map(|line| line.split(' ').map(str::to_owned).collect());
    ["train.conll", "dev.conll", "test.conll", "text.conll"]
        .into_iter()
        .flat_map(read_conll)
        .chain(written)
        .collect()
}

/// Compares the hash of each sentence with the one in a file of `testdata/pieces/families`.
fn check_sentences(tokenizer: &Tokenizer, file: &str) {
    let expected = read_to_string(family(file)).unwrap();
    let (sentences, expected) = (sentences(), expected.lines().collect::<Vec<_>>());
    assert_eq!((sentences.len(), expected.len()), (1_992, 1_992));
    for (sentence, expected) in sentences.iter().zip(expected) {
        assert_eq!(fingerprint(&tokenizer.encode(sentence).unwrap()), expected, "{sentence:?}");
    }
}

#[test]
fn real_sentences_are_encoded_as_by_hugging_face() {
    for name in FAMILIES {
        check_sentences(&open(name), &format!("{name}.txt"));
    }
}

#[test]
fn unusual_unicode_is_encoded_as_by_hugging_face() {
    for name in FAMILIES {
        check_complete(&open(name), &format!("families/{name}_traps.json"));
    }
}

#[test]
fn a_vocab_txt_opens_with_the_rules_of_bert() {
    check_sentences(&open("vocab_txt"), "bert_cased.txt");
    check_complete(&open("vocab_txt"), "families/bert_cased_traps.json");
}

/// Writes the files of a tokenizer into a new folder, and opens it.
fn open_with(vocab: &str, config: Option<&str>) -> Result<Tokenizer, melm::Error> {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("vocab.txt"), vocab).unwrap();
    if let Some(config) = config {
        fs::write(dir.path().join("tokenizer_config.json"), config).unwrap();
    }
    Tokenizer::open(dir.path())
}

#[test]
fn a_vocab_txt_without_settings_is_cased_if_it_has_upper_case() {
    let cased = "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nBonn\nbonn\n##er\n";
    let ids = |tokenizer: &Tokenizer, token| tokenizer.encode(&[token]).unwrap().pieces[1];
    let tokenizer = open_with(cased, None).unwrap();
    assert_eq!((ids(&tokenizer, "Bonn"), ids(&tokenizer, "bonn")), (5, 6));
    assert!(!tokenizer.is_uncased());
    let tokenizer = open_with(&cased.replace("Bonn", "x"), None).unwrap();
    assert_eq!((ids(&tokenizer, "Bonn"), ids(&tokenizer, "bonn")), (6, 6));
    assert!(tokenizer.is_uncased());
    // `strip_accents` follows `do_lower_case`, unless it is set.
    let lower = open_with(cased, Some(r#"{"do_lower_case": true}"#)).unwrap();
    assert_eq!(ids(&lower, "Bönn"), 6);
    let accents =
        open_with(cased, Some(r#"{"do_lower_case": true, "strip_accents": false}"#)).unwrap();
    assert_eq!(ids(&accents, "Bönn"), 1);
}

#[test]
fn a_vocab_txt_may_list_a_piece_twice() {
    let tokenizer = open_with("[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\nb\na\n", None).unwrap();
    assert_eq!(tokenizer.encode(&["a", "b"]).unwrap().pieces, [2, 7, 6, 3]);
    assert_eq!(tokenizer.n_pieces(), 8);
    assert_eq!(PieceKinds::new(&tokenizer).kind(5), PieceKind::Unfit);
}

#[test]
fn a_vocab_txt_of_another_family_is_refused() {
    let error = open_with("<s>\n</s>\n", None).err().unwrap();
    assert!(error.to_string().contains("`[PAD]`"), "{error}");
    let vocab = "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\n";
    let class = r#"{"tokenizer_class": "BertJapaneseTokenizer"}"#;
    let error = open_with(vocab, Some(class)).err().unwrap();
    assert!(error.to_string().contains("`BertJapaneseTokenizer`"), "{error}");
    assert!(error.to_string().contains("vocab.txt"), "{error}");
}

#[test]
fn a_folder_saved_from_vocab_txt_opens_with_the_same_rules_and_its_markers() {
    let dir = tempfile::tempdir().unwrap();
    let mut tokenizer = open("vocab_txt");
    let markers = tokenizer.add_markers(&["<B-PER>"]).unwrap();
    tokenizer.save(dir.path()).unwrap();
    let mut again = Tokenizer::open(dir.path()).unwrap();
    assert_eq!(again.add_markers(&["<B-PER>"]).unwrap(), markers);
    check_sentences(&again, "bert_cased.txt");
}

#[test]
fn special_pieces_are_found_by_the_names_of_the_family() {
    for (name, expected) in [
        ("bert_cased", ["[CLS]", "[SEP]", "[PAD]", "[UNK]", "[MASK]"]),
        ("modernbert", ["[CLS]", "[SEP]", "[PAD]", "[UNK]", "[MASK]"]),
        ("camembert", ["<s>", "</s>", "<pad>", "<unk>", "<mask>"]),
        ("gemma", ["<bos>", "<eos>", "<pad>", "<unk>", "<mask>"]),
    ] {
        let tokenizer = open(name);
        let found = tokenizer.specials();
        let found = [found.bos, found.eos, found.pad, found.unk, found.mask];
        assert_eq!(found.map(|id| tokenizer.piece(id)), expected, "{name}");
    }
}

#[test]
fn the_text_of_special_pieces_is_never_a_special_piece() {
    for name in FAMILIES {
        let mut tokenizer = open(name);
        let marker = tokenizer.add_markers(&["<B-PER>"]).unwrap()[0];
        let specials = tokenizer.specials();
        let placed = [specials.bos, specials.eos, specials.pad, specials.mask, marker];
        for text in ["[MASK]", "[CLS]", "<mask>", "<s>", "<bos>", "<B-PER>", "x[SEP]y"] {
            let encoded = tokenizer.encode(&[text]).unwrap();
            let inside = &encoded.pieces[1..encoded.pieces.len() - 1];
            assert!(inside.iter().all(|id| !placed.contains(id)), "{name}: {text}: {inside:?}");
        }
        assert!(!tokenizer.is_word_initial(marker), "{name}");
    }
}

/// The kind of a piece of a vocabulary.
fn kind(tokenizer: &Tokenizer, piece: &str) -> PieceKind {
    let id = tokenizer.id(piece).unwrap_or_else(|| panic!("the vocabulary has {piece}"));
    PieceKinds::new(tokenizer).kind(id)
}

#[test]
fn kinds_follow_the_convention_of_each_family() {
    let bert = open_with(
        "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nBonn\n##er\n##s\n,\n##,\n[unused1]\n##\n中\n##中\n###\nU.S\n",
        None,
    )
    .unwrap();
    for (piece, expected) in [
        ("Bonn", PieceKind::Initial),
        ("##er", PieceKind::Inner),
        (",", PieceKind::Initial),
        ("中", PieceKind::Initial),
        ("##,", PieceKind::Unfit),
        ("##中", PieceKind::Unfit),
        ("##", PieceKind::Unfit),
        ("###", PieceKind::Unfit),
        ("U.S", PieceKind::Unfit),
        ("[unused1]", PieceKind::Unfit),
        ("[MASK]", PieceKind::Unfit),
    ] {
        assert_eq!(kind(&bert, piece), expected, "{piece}");
    }
    let camembert = open("camembert");
    assert_eq!(kind(&camembert, "<s>NOTUSED"), PieceKind::Unfit);
    assert_eq!(kind(&camembert, "▁the"), PieceKind::Initial);
    let gemma = open("gemma");
    assert_eq!(kind(&gemma, "<0xE2>"), PieceKind::Partial);
    assert_eq!(kind(&gemma, "▁the"), PieceKind::Initial);
    assert_eq!(kind(&open("modernbert"), "Ġthe"), PieceKind::Initial);
}

#[test]
fn pieces_spell_their_token() {
    for name in FAMILIES {
        let tokenizer = open(name);
        let unk = tokenizer.specials().unk;
        let mut n_spelled = 0;
        for token in sentences().into_iter().take(300).flatten() {
            let encoded = tokenizer.encode(&[&token]).unwrap();
            let pieces = &encoded.pieces[1..encoded.pieces.len() - 1];
            assert!(tokenizer.is_word_initial(pieces[0]) || pieces[0] == unk, "{name}: {token}");
            if pieces.contains(&unk) {
                continue;
            }
            n_spelled += 1;
            let spelled = tokenizer.decode(pieces);
            if name == "bert_uncased" {
                // Accents are removed too, so that only ASCII is compared.
                assert!(!token.is_ascii() || spelled == token.to_lowercase(), "{token}: {spelled}");
            } else {
                assert_eq!(spelled, token, "{name}");
            }
        }
        assert!(n_spelled > 5_000, "{name}: {n_spelled}");
    }
}

/// Returns old and new tokens of drafts by a model with random parameters.
fn replacements(name: &str, corpus: &str, whole_words: bool) -> (Tokenizer, Vec<(String, String)>) {
    let gold =
        Corpus::read(&Source::from_text("a.conll", corpus), &ReadOptions::default()).unwrap();
    let mut tokenizer = open(name);
    let markers = Markers::from_corpora(&[&gold], &mut tokenizer).unwrap();
    let vocab_size = tokenizer.n_pieces();
    let config =
        Config { vocab_size, hidden_size: 8, n_layers: 1, n_heads: 2, ..Config::default() };
    let model = MaskedLm::random(&config, 1).unwrap();
    let lm = EntityLm::from_parts(model, tokenizer.clone(), Some(markers));
    let linearized = lm.linearize(&gold).unwrap();
    let ranks = Ranks::try_from((1, 200)).unwrap();
    let settings = GenerateSettings { ranks, whole_words, ..GenerateSettings::default() };
    let mut drafter = Drafter::new(lm, settings);
    let (device, key) = (Device::cpu(1), Seed(1).stream("generate"));
    let mut pairs = Vec::new();
    for round in 1..=40 {
        let mut on_progress = |_, _| Control::Continue;
        let made = drafter.round(&device, &gold, &linearized, key, round, &mut on_progress);
        for draft in made.unwrap().drafts {
            let old = gold.sentences()[draft.source.unwrap()].tokens();
            let both = old.iter().zip(draft.sentence.tokens());
            pairs.extend(both.map(|(old, new)| (old.to_string(), new.to_string())));
        }
    }
    pairs.retain(|(old, new)| old != new);
    (tokenizer, pairs)
}

const MENTIONS: &str =
    "O'Neill B-PER\n\nParty B-ORG\n\nPARTY B-ORG\n\nparty B-ORG\n\nMinister-President B-PER\n";

#[test]
fn drafts_of_a_word_piece_model_have_the_words_of_their_source() {
    let (tokenizer, pairs) = replacements("bert_cased", MENTIONS, false);
    let n_words = |token: &str| {
        let encoded = tokenizer.encode(&[token]).unwrap();
        encoded.pieces.iter().filter(|id| tokenizer.is_word_initial(**id)).count()
    };
    assert!(pairs.len() > 50, "{pairs:?}");
    for (old, new) in pairs {
        assert_eq!(n_words(&new), n_words(&old), "{new} for {old}");
        assert!(!new.contains("##") && !new.contains("[unused"), "{new}");
    }
}

#[test]
fn drafts_of_an_uncased_model_have_the_casing_of_their_source() {
    for whole_words in [false, true] {
        let (_, pairs) = replacements("bert_uncased", MENTIONS, whole_words);
        assert!(pairs.len() > 50, "{pairs:?}");
        for (old, new) in pairs {
            let expected = match old.as_str() {
                "PARTY" => new.to_uppercase(),
                "party" => new.to_lowercase(),
                _ => {
                    let mut letters = new.chars();
                    let first = letters.next().unwrap();
                    first.to_uppercase().chain(letters).collect()
                }
            };
            assert_eq!(new, expected, "for {old}");
        }
    }
}
