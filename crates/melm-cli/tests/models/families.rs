//! Models of other families than XLM-R, models without a masked-LM head, and families that are not supported.

use std::fs;
use std::path::Path;

use melm_nn::config::{Config, ModelType};
use melm_nn::mlm::MaskedLm;
use melm_nn::tagger::{HeadKind, Tagger, TaggerSettings};
use melm_nn::weights::{Checkpoint, Tensor, save};

use crate::augment::{augment_into, prepared};
use crate::support::{done, run};

const TRAIN: &str =
    "train train.conll --dev train.conll -o tagger --model model --config fast.toml";

/// Returns the configuration of the tiny model for another family.
fn config_of(folder: &Path, model_type: ModelType) -> Config {
    let config = Checkpoint::open(&folder.join("model")).unwrap().config().clone();
    let type_vocab_size = if model_type == ModelType::DistilBert { 0 } else { 2 };
    Config { model_type, type_vocab_size, ..config }
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

#[test]
fn augment_train_and_tag_run_with_every_family() {
    for family in [ModelType::Bert, ModelType::DistilBert, ModelType::Camembert] {
        let folder = prepared();
        let path = folder.path();
        let model = MaskedLm::random(&config_of(path, family), 1).unwrap();
        model.save(&path.join("model")).unwrap();
        done(path, &augment_into("out", "--rounds 1 --keep-model"));
        let saved = Checkpoint::open(&path.join("out/model")).unwrap();
        assert!(saved.config().model_type == family && saved.has_masked_lm_head());
        done(path, TRAIN);
        done(path, "tag tagger train.conll -o tagged.conll");
        let tagged = fs::read_to_string(path.join("tagged.conll")).unwrap();
        assert!(tagged.contains("Ada\tB-PER") || tagged.contains("Ada B-PER"), "{tagged}");
        assert_eq!(Checkpoint::open(&path.join("tagger")).unwrap().config().model_type, family);
    }
}

#[test]
fn a_model_without_a_masked_lm_head_cannot_make_drafts_but_can_be_trained() {
    let folder = prepared();
    let path = folder.path();
    for family in [ModelType::XlmRoberta, ModelType::Electra] {
        write_without_head(path, &config_of(path, family));
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
