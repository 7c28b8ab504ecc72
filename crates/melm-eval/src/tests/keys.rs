//! Keys of cells.

use std::collections::{BTreeMap, BTreeSet};

use melm::plan::{ModelClass, ModelClasses, Plan, PlanTable, Preset};

use super::cell;
use crate::key::{ADDED, AddedKey, flatten, settings};
use crate::{Cell, CellKey, DataKey, Fingerprints, TextKey, TextKeys};

fn plan(edits: &[&str]) -> Plan {
    let mut table = PlanTable::new(Preset::Best, ModelClasses::both(ModelClass::MINI));
    for edit in edits {
        table.set(edit).unwrap();
    }
    table.plan().unwrap()
}

fn fingerprints() -> Fingerprints {
    let parts = ["isa", "lm", "encoder", "vectors"].map(str::to_owned);
    let [arithmetic, masked_lm, tagger, vectors] = parts;
    Fingerprints { arithmetic, masked_lm, tagger, seq2seq: String::new(), vectors }
}

/// The key of a cell whose dev sets have this fingerprint.
fn key(cell: &Cell, plan: &Plan, dev: &str, fingerprints: &Fingerprints) -> String {
    let languages = cell.languages();
    let data = languages.map(|language| DataKey { dev: Some(dev), language, train: language });
    let text = cell.text_languages().map(|language| {
        let size = cell.text.size;
        TextKey { language, noise_percent: cell.text.noise_percent, size, source: language }
    });
    let text = TextKeys { text: text.collect(), held_out: Vec::new() };
    CellKey::new(cell, plan, 10, data.collect(), text, fingerprints).digest()
}

#[test]
fn a_key_changes_with_everything_that_can_change_the_result() {
    let base = cell("melm");
    let usual = plan(&[]);
    let of = |cell: &Cell, plan: &Plan| key(cell, plan, "dev", &fingerprints());
    let mut keys = BTreeSet::from([of(&base, &usual)]);
    let mut n = 1;
    let mut is_new = |what: &str, key: String| {
        n += 1;
        assert!(keys.insert(key), "{what} does not change the key");
    };
    for changed in [
        Cell { language: "de".into(), ..base.clone() },
        Cell { language: "en+de".into(), ..base.clone() },
        Cell { size: 11, ..base.clone() },
        Cell { draw: 2, ..base.clone() },
        Cell { seed: 2, ..base.clone() },
        Cell { budget: "30 epochs".parse().unwrap(), ..base.clone() },
        cell("melm-plain"),
        cell("label-wise"),
        cell("lwtr"),
        cell("codemix-random"),
        cell("codemix-ess"),
        cell("melm-codemix"),
        cell("gold"),
        cell("gold-duplicated"),
        cell("gold-ensemble"),
        Cell { text: "100".parse().unwrap(), ..base.clone() },
        Cell { text: "de 100".parse().unwrap(), ..base.clone() },
        Cell { text: "100 noise 0".parse().unwrap(), ..base.clone() },
        Cell { text: "100 noise 0.2".parse().unwrap(), ..base.clone() },
        cell("picked"),
    ] {
        is_new(&changed.to_string(), of(&changed, &usual));
    }
    for edit in [
        "tagger.learning_rate=1e-3",
        "tagger.budget=31 updates",
        "finetune.learning_rate=1e-3",
        "generate.rounds=9",
        "filter.mode=off",
        "union=false",
    ] {
        is_new(edit, of(&base, &plan(&[edit])));
    }
    for part in 0..3 {
        let mut other = fingerprints();
        let parts = [&mut other.arithmetic, &mut other.masked_lm, &mut other.tagger];
        parts.into_iter().nth(part).unwrap().push('x');
        is_new("fingerprint", key(&base, &usual, "dev", &other));
    }
    is_new("dev", key(&base, &usual, "other dev", &fingerprints()));
    let data = vec![DataKey { dev: Some("dev"), language: "en", train: "en" }];
    is_new(
        "evaluations",
        CellKey::new(&base, &usual, 11, data, TextKeys::default(), &fingerprints()).digest(),
    );
    for method in ["codemix-ess", "melm-codemix"] {
        let mut other = fingerprints();
        other.vectors.push('x');
        is_new("vectors", key(&cell(method), &usual, "dev", &other));
        is_new("rate", of(&cell(method), &plan(&["codemix.rate=0.5"])));
    }
    let with_text = Cell { text: "100".parse().unwrap(), ..base.clone() };
    is_new("panel", of(&with_text, &plan(&["self_training.panel=3"])));
    // A pretrained encoder-decoder changes only cells of mulda.
    is_new("mulda", of(&cell("mulda"), &usual));
    let pretrained = Fingerprints { seq2seq: "mbart".to_owned(), ..fingerprints() };
    is_new("mbart", key(&cell("mulda"), &usual, "dev", &pretrained));
    assert_eq!(key(&base, &usual, "dev", &pretrained), of(&base, &usual));
    assert_eq!(n, 39);
}

#[test]
fn a_key_does_not_depend_on_settings_that_the_method_never_reads() {
    let key_of =
        |method: &str, edit: &str| key(&cell(method), &plan(&[edit]), "dev", &fingerprints());
    for (method, edit) in [
        ("gold", "finetune.learning_rate=1e-3"),
        ("gold", "tagger.budget=31 updates"),
        ("gold-duplicated", "filter.mode=off"),
        ("label-wise", "generate.mask.mean=0.9"),
        ("melm", "daga.tries=3"),
        ("melm", "self_training.panel=3"),
        ("daga", "mulda.tries=3"),
        ("lwtr", "finetune.learning_rate=1e-3"),
        ("codemix-ess", "finetune.learning_rate=1e-3"),
        ("melm", "codemix.rate=0.5"),
        ("melm", "substitute.rate=0.9"),
        ("mlm-entity", "finetune.learning_rate=1e-3"),
        ("daga", "finetune.learning_rate=1e-3"),
        ("codemix-random", "codemix.vectors=pieces"),
    ] {
        assert_eq!(key_of(method, edit), key_of(method, "seed=5"), "{method} {edit}");
    }
    for (method, edit) in [
        ("daga", "daga.tries=3"),
        ("mulda", "mulda.tries=3"),
        ("melm-both", "substitute.rate=0.9"),
        ("melm-plain", "finetune.learning_rate=1e-3"),
        ("codemix-ess", "codemix.vectors=pieces"),
    ] {
        assert_ne!(key_of(method, edit), key_of(method, "seed=5"), "{method} {edit}");
    }
    assert_ne!(key_of("gold-duplicated", "generate.rounds=9"), key_of("gold-duplicated", "seed=1"));
}

/// Returns all keys of a plan, except the words of markers, which have a key for each entity type.
fn plan_keys() -> Vec<String> {
    let mut flat = BTreeMap::new();
    flatten("", serde_json::to_value(plan(&[])).unwrap(), &mut flat);
    flat.into_keys().collect()
}

#[test]
fn every_plan_key_is_of_the_first_version_or_declared_as_added() {
    let first: Vec<&str> = include_str!("plan_keys.txt").lines().collect();
    for key in plan_keys() {
        let is_known = first.contains(&key.as_str()) || ADDED.iter().any(|one| one.key == key);
        assert!(is_known, "add `{key}` to ADDED in key.rs, with the value that changes nothing");
    }
}

#[test]
fn a_neutral_value_of_an_added_key_does_not_change_keys() {
    let names = |edit: &str, added: &[AddedKey]| -> Vec<String> {
        settings(&cell("melm"), &plan(&[edit]), added).into_keys().collect()
    };
    let added = [AddedKey { key: "tagger.clip", neutral: "1.0" }];
    assert!(names("tagger.clip=1.0", &[]).contains(&"tagger.clip".to_owned()));
    assert!(!names("tagger.clip=1.0", &added).contains(&"tagger.clip".to_owned()));
    assert!(names("tagger.clip=2.0", &added).contains(&"tagger.clip".to_owned()));
}

#[test]
fn a_key_is_the_digest_of_canonical_json() {
    let (cell, plan, fingerprints) = (cell("gold"), plan(&[]), fingerprints());
    let data = vec![DataKey { dev: None, language: "en", train: "t" }];
    let key = CellKey::new(&cell, &plan, 10, data, TextKeys::default(), &fingerprints);
    // The ledgers of the repository contain keys, which therefore must not change by accident.
    let expected = r#"{"arithmetic":"isa","budget":"30 updates","data":[{"language":"en","train":"t"}],"draw":1,"evaluations":10,"melm":"0.1.0","method":"gold","seed":1,"settings":{"tagger.batch_size":16,"tagger.clip":1.0,"tagger.constrained":true,"tagger.evaluate_every":3,"tagger.freeze":["roberta.embeddings.word_embeddings"],"tagger.head":"crf","tagger.keep":"best","tagger.learning_rate":0.0002,"tagger.patience":0,"tagger.schedule":"linear","tagger.warmup":0.1,"tagger.weight_decay":0.01},"size":10,"tagger":"encoder"}"#;
    assert_eq!(serde_json::to_string(&key).unwrap(), expected);
    assert_eq!(key.digest(), melm::files::sha256(expected.as_bytes()));
}
