//! Tests of the presets.

use super::{ModelSize, ModelSizes, Plan, Preset};
use crate::mask::{Scope, Unit};
use crate::rate::Rate;

#[test]
fn presets_mask_the_units_of_their_source() {
    for size in [ModelSize::Small, ModelSize::Full] {
        for (name, preset) in Preset::NAMES {
            let plan = preset.plan(ModelSizes::both(size));
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
            assert_eq!(found, expected, "{name} {size:?}");
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
        for size in [ModelSize::Small, ModelSize::Full] {
            let plan = preset.plan(ModelSizes::both(size));
            let is_best = matches!(preset, Preset::Best | Preset::Quick);
            let is_frozen = is_best && size == ModelSize::Small;
            assert_eq!(!plan.finetune.training.freeze.0.is_empty(), is_frozen, "{name} {size:?}");
        }
    }
}

#[test]
fn quick_differs_from_best_only_in_self_training() {
    for size in [ModelSize::Small, ModelSize::Full] {
        let [best, quick] =
            [Preset::Best, Preset::Quick].map(|preset| preset.plan(ModelSizes::both(size)));
        let n_taggers =
            |plan: &Plan| plan.self_training.passes.get() as usize * plan.self_training.panel.get();
        assert!(n_taggers(&quick) < n_taggers(&best));
        assert_eq!(Plan { self_training: best.self_training.clone(), ..quick }, best);
    }
}
