//! Tests of the presets.

use melm_nn::config::{Config, ModelType};

use super::{ModelClass, ModelClasses, ModelSize, Plan, Preset};
use crate::mask::{Scope, Unit};
use crate::rate::Rate;

const CLASSES: [ModelClass; 2] = [ModelClass::MINI, ModelClass::XLM_R_BASE];

#[test]
fn presets_mask_the_units_of_their_source() {
    for class in CLASSES {
        for (name, preset) in Preset::NAMES {
            let plan = preset.plan(ModelClasses::both(class));
            let (training, generation) = (plan.finetune.mask, plan.generate.mask);
            let found = (training.unit, training.refresh.into(), generation.unit, generation.scope);
            let (every, cycled) = ("every-epoch".to_owned(), "cycle-30".to_owned());
            let expected = match preset {
                Preset::Best | Preset::Quick => (Unit::Piece, every, Unit::Piece, Scope::Mention),
                // Section 2.2: "we randomly mask entity tokens"; section 2.3: "for each entity mention comprising
                // of n tokens".
                Preset::Paper => (Unit::Token, every, Unit::Token, Scope::Mention),
                Preset::ReferenceCode => (Unit::Piece, cycled, Unit::Piece, Scope::Token),
            };
            assert_eq!(found, expected, "{name} {class:?}");
            assert_eq!(
                (training.rate, generation.mean),
                (Rate::constant(0.7), Rate::constant(0.5))
            );
        }
    }
}

#[test]
fn only_the_best_settings_of_small_models_freeze_rows() {
    for (name, preset) in Preset::NAMES {
        for class in CLASSES {
            let plan = preset.plan(ModelClasses::both(class));
            let is_best = matches!(preset, Preset::Best | Preset::Quick);
            let is_frozen = is_best && class.size == ModelSize::Small;
            assert_eq!(!plan.finetune.training.freeze.0.is_empty(), is_frozen, "{name} {class:?}");
        }
    }
}

#[test]
fn quick_differs_from_best_only_in_self_training() {
    for class in CLASSES {
        let [best, quick] =
            [Preset::Best, Preset::Quick].map(|preset| preset.plan(ModelClasses::both(class)));
        let n_taggers =
            |plan: &Plan| plan.self_training.passes.get() as usize * plan.self_training.panel.get();
        assert!(n_taggers(&quick) < n_taggers(&best));
        assert_eq!(Plan { self_training: best.self_training.clone(), ..quick }, best);
    }
}

fn class(family: ModelType, size: ModelSize) -> ModelClass {
    ModelClass { family, size }
}

#[test]
fn the_class_of_a_model_follows_from_its_configuration() {
    use ModelSize::{Base, Large, Small};
    use ModelType::{Bert, Camembert, DistilBert, Electra, Roberta, XlmRoberta};
    // As published: hidden size and number of layers.
    for (name, model_type, hidden_size, n_layers, size) in [
        ("mini", XlmRoberta, 512, 6, Small),
        ("xlm-roberta-base", XlmRoberta, 768, 12, Base),
        ("xlm-roberta-large", XlmRoberta, 1024, 24, Large),
        // A BERT with the tokenizer of XLM-R.
        ("intfloat/multilingual-e5-small", Bert, 384, 12, Small),
        ("roberta-large", Roberta, 1024, 24, Large),
        ("camembert-base", Camembert, 768, 12, Base),
        ("bert-base-cased", Bert, 768, 12, Base),
        ("bert-large-cased", Bert, 1024, 24, Large),
        ("distilbert-base-cased", DistilBert, 768, 6, Base),
        ("google/electra-base-discriminator", Electra, 768, 12, Base),
    ] {
        let config = Config { model_type, hidden_size, n_layers, ..Config::default() };
        assert_eq!(ModelClass::from_config(&config), class(model_type, size), "{name}");
    }
    assert_eq!(class(DistilBert, Base).to_string(), "base distilbert");
}

#[test]
fn the_learning_rate_of_a_tagger_depends_on_family_and_size() {
    use ModelSize::{Base, Large, Small};
    use ModelType::{Bert, Camembert, DistilBert, Electra, Roberta, XlmRoberta};
    let rate = |preset: Preset, class| {
        preset.plan(ModelClasses::both(class)).tagger.training.learning_rate
    };
    for (family, size, expected) in [
        (XlmRoberta, Small, 2e-4),
        (XlmRoberta, Base, 2e-5),
        (XlmRoberta, Large, 2e-5),
        (Roberta, Base, 2e-5),
        (Camembert, Large, 2e-5),
        (Bert, Small, 2e-4),
        (Bert, Base, 3e-5),
        (Bert, Large, 2e-5),
        (DistilBert, Base, 5e-5),
        (Electra, Small, 2e-4),
        (Electra, Base, 5e-5),
        (Electra, Large, 2e-5),
    ] {
        let class = class(family, size);
        for preset in [Preset::Best, Preset::Quick] {
            assert!((rate(preset, class) - expected).abs() < 1e-12, "{class}");
        }
        for preset in [Preset::Paper, Preset::ReferenceCode] {
            assert!((rate(preset, class) - 2e-5).abs() < 1e-12, "{class}");
        }
    }
}

#[test]
fn only_the_learning_rate_of_the_tagger_depends_on_the_family() {
    for (_, preset) in Preset::NAMES {
        for size in [ModelSize::Small, ModelSize::Base, ModelSize::Large] {
            let base = preset.plan(ModelClasses::both(class(ModelType::XlmRoberta, size)));
            for family in ModelType::ALL {
                let mut plan = preset.plan(ModelClasses::both(class(family, size)));
                plan.tagger.training.learning_rate = base.tagger.training.learning_rate;
                assert_eq!(plan, base, "{family:?} {size:?}");
            }
        }
    }
}
