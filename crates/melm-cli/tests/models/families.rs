//! Models of other families than XLM-R, models without a masked-LM head, and families that are not supported.

use std::fs;
use std::path::{Path, PathBuf};

use melm::pieces::Tokenizer;
use melm_nn::config::{Config, ModelType, Rotary};
use melm_nn::mlm::MaskedLm;
use melm_nn::tagger::{HeadKind, Tagger, TaggerSettings};
use melm_nn::weights::{Checkpoint, Tensor, save};
use serde_json::Value;

use crate::augment::{augment_into, prepared};
use crate::drafts::{self, assert_tags_unchanged, content, sentences};
use crate::support::{self, done, run};

const TRAIN: &str =
    "train train.conll --dev train.conll -o tagger --model model --config fast.toml";

/// Sentences with accents and with upper case.
const WITH_ACCENTS: &str = "\
Jürgen B-PER\nMüller-Lüdenscheid I-PER\nwohnt O\nin O\nZÜRICH B-LOC\n. O\n\n\
José B-PER\nMaría I-PER\nvisitó O\nMálaga B-LOC\ny O\nLeón B-LOC\n. O\n\n";

/// The tokenizers of the families with a masked-LM head, in `testdata/pieces`. Each was trained through the rules of its
/// family. `vocab_txt` is that of an old BERT model without `tokenizer.json`. mmBERT is a ModernBERT with the pieces of
/// Gemma.
const TOKENIZERS: [(ModelType, &str); 9] = [
    (ModelType::Bert, "families/bert_cased"),
    (ModelType::Bert, "families/bert_uncased"),
    (ModelType::Bert, "families/vocab_txt"),
    (ModelType::DistilBert, "families/bert_cased"),
    (ModelType::DistilBert, "families/bert_uncased"),
    (ModelType::Camembert, "families/camembert"),
    (ModelType::Roberta, "byte_level"),
    (ModelType::ModernBert, "families/modernbert"),
    (ModelType::ModernBert, "families/gemma"),
];

fn pieces(tokenizer: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/pieces").join(tokenizer)
}

/// Returns the configuration of the tiny model for another family, with the vocabulary of a tokenizer.
fn config_of(folder: &Path, model_type: ModelType, tokenizer: &str) -> Config {
    let config = Checkpoint::open(&folder.join("model")).unwrap().config().clone();
    let tokenizer = Tokenizer::open(&pieces(tokenizer)).unwrap();
    let is_modern = model_type == ModelType::ModernBert;
    let has_types = !is_modern && model_type != ModelType::DistilBert;
    let type_vocab_size = if has_types { 2 } else { 0 };
    let (vocab_size, pad_id) = (tokenizer.n_pieces(), tokenizer.specials().pad);
    // Only the second layer of a ModernBERT has a window, which is shorter than the sentences.
    let n_layers = if is_modern { 2 } else { config.n_layers };
    let rotary = Rotary { local_attention: 4, ..Rotary::default() };
    Config { model_type, type_vocab_size, vocab_size, pad_id, n_layers, rotary, ..config }
}

/// Replaces the files of the tiny model's tokenizer.
fn copy_tokenizer(folder: &Path, tokenizer: &str) {
    let model = folder.join("model");
    fs::remove_dir_all(&model).unwrap();
    fs::create_dir(&model).unwrap();
    for file in fs::read_dir(pieces(tokenizer)).unwrap() {
        let path = file.unwrap().path();
        fs::copy(&path, model.join(path.file_name().unwrap())).unwrap();
    }
}

/// Returns a folder with a corpus and a tiny model of a family.
fn folder_of(family: ModelType, tokenizer: &str) -> tempfile::TempDir {
    let folder = prepared();
    let path = folder.path();
    let config = config_of(path, family, tokenizer);
    copy_tokenizer(path, tokenizer);
    MaskedLm::random(&config, 1).unwrap().save(&path.join("model")).unwrap();
    fs::write(path.join("train.conll"), format!("{}{WITH_ACCENTS}", support::TRAIN)).unwrap();
    folder
}

/// Replaces the tiny model by an encoder without a masked-LM head.
fn write_without_head(folder: &Path, config: &Config) {
    let settings = TaggerSettings { n_tags: 1, kind: HeadKind::Linear, allowed: None };
    let tagger = Tagger::random(config, settings, 1).unwrap();
    let parameters = tagger.parameters();
    let encoder = parameters.list().iter().filter(|p| !p.name.starts_with("classifier."));
    let tensors: Vec<_> = encoder
        .map(|p| Tensor { name: &p.name, shape: &p.shape, data: parameters.get(&p.name).unwrap() })
        .collect();
    save(&folder.join("model"), config, &tensors).unwrap();
}

/// Replaces the tiny model by one without a masked-LM head.
pub(crate) fn remove_head(folder: &Path) {
    write_without_head(folder, &config_of(folder, ModelType::XlmRoberta, "unigram"));
}

/// Asserts that the tags of drafts and all tokens outside mentions are those of gold, and that a token whose pieces were
/// not replaced has the letters, accents and casing of gold. Returns the old and new tokens that differ.
fn changed_tokens(drafts: &[Value], tokenizer: &Tokenizer) -> Vec<(String, String)> {
    let gold = sentences(&format!("{}{WITH_ACCENTS}", support::TRAIN));
    assert_tags_unchanged(drafts, &gold);
    let encode = |token: &str| tokenizer.encode(&[token]).unwrap().pieces;
    let mut changed = Vec::new();
    for draft in drafts {
        let source = usize::try_from(draft["source"].as_u64().unwrap()).unwrap() - 1;
        for (old, new) in gold[source].0.iter().zip(content(draft).0) {
            if *old != new {
                assert_ne!(encode(old), encode(&new), "`{new}` is `{old}` with other letters");
                changed.push((old.clone(), new));
            }
        }
    }
    changed
}

#[test]
fn augment_train_and_tag_run_with_every_family() {
    for (family, tokenizer) in TOKENIZERS {
        let folder = folder_of(family, tokenizer);
        let path = folder.path();
        done(path, &augment_into("out", "--method melm --rounds 2 --keep-model"));
        let saved = Checkpoint::open(&path.join("out/model")).unwrap();
        assert!(saved.config().model_type == family && saved.has_masked_lm_head());
        let own = Tokenizer::open(&path.join("out/model")).unwrap();
        assert!(own.id("<B-PER>").is_some(), "{tokenizer}");
        let changed = changed_tokens(&drafts::read(&path.join("out/drafts.jsonl")), &own);
        assert!(changed.len() > 10, "{tokenizer}: {changed:?}");
        for (old, new) in changed {
            assert!(!new.contains("##") && !new.contains('▁') && !new.contains('Ġ'), "{new}");
            if own.is_uncased() {
                assert_casing(&old, &new);
            }
        }
        done(path, TRAIN);
        done(path, "tag tagger train.conll -o tagged.conll");
        let tagged = fs::read_to_string(path.join("tagged.conll")).unwrap();
        assert!(tagged.contains("Ada\tB-PER") || tagged.contains("Ada B-PER"), "{tagged}");
        assert_eq!(Checkpoint::open(&path.join("tagger")).unwrap().config().model_type, family);
    }
}

/// Asserts that a new token is in upper case if the old one is, and begins with an upper-case letter if the old one does.
fn assert_casing(old: &str, new: &str) {
    if old == old.to_uppercase() {
        assert_eq!(new, new.to_uppercase(), "for `{old}`");
    } else {
        let first = new.chars().next().unwrap();
        assert!(!first.is_lowercase(), "`{new}` for `{old}`");
    }
}

/// Covers `melm-nn::error::NoMaskedLmHead`.
#[test]
fn a_model_without_a_masked_lm_head_cannot_make_drafts_but_can_be_trained() {
    let folder = prepared();
    let path = folder.path();
    for family in [ModelType::XlmRoberta, ModelType::Electra] {
        write_without_head(path, &config_of(path, family, "unigram"));
        let augment = augment_into(&format!("out-{family:?}"), "");
        let finetune =
            format!("finetune train.conll --dev train.conll -o lm-{family:?} --model model");
        for args in [augment.as_str(), &finetune] {
            let output = run(path, args);
            let messages = String::from_utf8(output.stderr).unwrap();
            assert_eq!(output.status.code(), Some(1), "{args}: {messages}");
            for part in ["has no masked-LM head", "`xlm-roberta-base`", "`train` can use"] {
                assert!(messages.contains(part), "{args}: {messages}");
            }
        }
        // Nothing was begun: the model is checked when it is opened.
        assert!(["out", "lm"].iter().all(|name| !path.join(format!("{name}-{family:?}")).exists()));
        done(path, &format!("{TRAIN} --force"));
    }
}

#[test]
fn an_unsupported_family_is_refused_by_name() {
    let folder = prepared();
    let config = folder.path().join("model/config.json");
    let text = fs::read_to_string(&config).unwrap();
    fs::write(&config, text.replace("\"xlm-roberta\"", "\"deberta-v2\"")).unwrap();
    for args in [augment_into("out", "").as_str(), TRAIN] {
        let output = run(folder.path(), args);
        let messages = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{args}: {messages}");
        for part in
            ["`model_type` is `\"deberta-v2\"`", "use `xlm-roberta-base` for many languages"]
        {
            assert!(messages.contains(part), "{args}: {messages}");
        }
    }
}

#[test]
fn config_show_names_the_class_of_a_model_and_has_its_settings() {
    let folder = tempfile::tempdir().unwrap();
    let config = Config {
        model_type: ModelType::DistilBert,
        n_layers: 6,
        type_vocab_size: 0,
        pad_id: 0,
        ..Config::default()
    };
    fs::create_dir(folder.path().join("own")).unwrap();
    fs::write(folder.path().join("own/config.json"), config.to_json()).unwrap();
    for (model, class, rate) in [
        ("own", "base distilbert", 5e-5),
        ("mini", "small xlm-roberta", 2e-4),
        ("./none", "not on this machine, assumed to be base xlm-roberta", 2e-5),
    ] {
        let output = run(folder.path(), &format!("config show --model {model}"));
        let text = String::from_utf8(output.stdout).unwrap();
        for key in ["masked_lm", "tagger"] {
            assert!(text.contains(&format!("# {key} \"{model}\": {class}\n")), "{text}");
        }
        let plan: toml::Table = text.parse().unwrap();
        let found = plan["tagger"]["learning_rate"].as_float().unwrap();
        assert!((found - rate).abs() < 1e-12, "{model}: {found}");
    }
}
