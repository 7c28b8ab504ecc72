//! Keys of cells: a ledger line belongs to a cell if both have the same key.
//!
//! A [`CellKey`] contains everything that affects the result of a cell. Its digest is the SHA-256 of its canonical
//! JSON: fields and settings in alphabetical order, no white space, absent fields left out.
//!
//! # Adding a key to the plan
//! A new plan key must not change the keys of cells that were run before the plan key existed. Add the plan key to
//! [`ADDED`], with the value at which the program behaves as it did before. Settings with that value are left out of
//! the digest. Do not use the value of the preset instead: if the preset changed later, cells with the new value would
//! get the keys of cells with the old value. A test fails for every plan key that is neither in `tests/plan_keys.txt`,
//! which lists the keys of the first version, nor in [`ADDED`].

use std::collections::BTreeMap;

use melm::files::sha256;
use melm::methods::Method;
use melm::plan::Plan;
use melm::training::Budget;
use serde::Serialize;
use serde_json::Value;

use crate::{Cell, Picking, System};

/// Plan keys that were added after the first version. The value given for each, as JSON, gives the same results as
/// before the key existed.
pub(crate) const ADDED: &[AddedKey] = &[
    AddedKey { key: "self_training.folds", neutral: "1" },
    // Changes no score: taggers never see the result.
    AddedKey { key: "gold_check.folds", neutral: "0" },
    // Only cells with noisy tags read these, and they did not exist before.
    AddedKey { key: "silver.agreement", neutral: "\"sentence\"" },
    AddedKey { key: "silver.votes", neutral: "1.0" },
    AddedKey { key: "silver.folds", neutral: "1" },
    // Only cells that pick sentences read these, and they did not exist before.
    AddedKey { key: "pick.score", neutral: "\"random\"" },
    AddedKey { key: "pick.length_power", neutral: "0.0" },
    AddedKey { key: "pick.diversity", neutral: "0.0" },
    // Before this key existed, a frozen embedding table included the rows of the markers.
    AddedKey { key: "markers.train", neutral: "false" },
    AddedKey { key: "generate.avoid_repeats", neutral: "false" },
    AddedKey { key: "generate.distinct_mentions", neutral: "false" },
    AddedKey { key: "generate.whole_words", neutral: "false" },
    AddedKey { key: "generate.keep_function_words", neutral: "false" },
    AddedKey { key: "generate.longest_mention", neutral: "0" },
    AddedKey { key: "generate.score_margin", neutral: "0.0" },
    AddedKey { key: "substitute.match_before", neutral: "false" },
    AddedKey { key: "filter.judges", neutral: "1" },
    AddedKey { key: "filter.votes", neutral: "1.0" },
    // Cells with lists of names have a key of their own.
    AddedKey { key: "names.share", neutral: "0.0" },
    // Cells do not harvest names.
    AddedKey { key: "names.harvest", neutral: "false" },
    AddedKey { key: "names.harvest_count", neutral: "2" },
    AddedKey { key: "names.harvest_votes", neutral: "1.0" },
];

/// A plan key that was added after the first version.
pub(crate) struct AddedKey {
    /// The key, for instance `tagger.head`.
    pub(crate) key: &'static str,
    /// The value, as JSON, at which the program behaves as it did without the key.
    pub(crate) neutral: &'static str,
}

/// Fingerprints of everything that affects results, except data and settings.
#[derive(Clone, Debug)]
pub struct Fingerprints {
    /// The arithmetic of the device, as returned by [`melm_nn::device::Device::arithmetic`].
    pub arithmetic: String,
    /// The fingerprint of the masked language model; empty if there is none.
    pub masked_lm: String,
    /// The fingerprint of the tagger's encoder.
    pub tagger: String,
    /// The fingerprint of the pretrained encoder-decoder of `mulda`; empty if there is none.
    pub seq2seq: String,
    /// The fingerprint of the word vectors.
    pub vectors: String,
}

/// Everything that affects the result of a cell.
///
/// Settings that the cell's system never reads are left out, so that variants that differ only in these settings share
/// one result.
#[derive(Clone, Debug, Serialize)]
pub struct CellKey<'a> {
    arithmetic: &'a str,
    budget: String,
    data: Vec<DataKey<'a>>,
    draw: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    evaluations: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    masked_lm: Option<&'a str>,
    melm: &'static str,
    method: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    names: Option<NamesKey>,
    /// How sentences are picked, for the system `picked`.
    #[serde(skip_serializing_if = "Option::is_none")]
    picking: Option<Picking>,
    seed: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    seq2seq: Option<&'a str>,
    settings: BTreeMap<String, Value>,
    size: usize,
    tagger: &'a str,
    #[serde(flatten)]
    text: TextKeys<'a>,
    /// The version of the fine-tuning with markers. The embeddings of markers were not trained before version 2 if the
    /// embeddings of pieces were frozen, and their start has changed.
    #[serde(skip_serializing_if = "Option::is_none")]
    trained_markers: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    vectors: Option<&'a str>,
}

/// The lists of names of a cell.
#[derive(Clone, Debug, Serialize)]
pub struct NamesKey {
    /// The share of new mentions that are names.
    pub share: f64,
    /// The fingerprint of the names.
    pub source: String,
}

/// The unlabelled text of a cell.
#[derive(Clone, Debug, Default, Serialize)]
pub struct TextKeys<'a> {
    /// The fingerprints of the sets whose sentences are left out of the text.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub held_out: Vec<&'a str>,
    /// The text of each language; empty if there is none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub text: Vec<TextKey<'a>>,
}

/// The unlabelled text of one language.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct TextKey<'a> {
    /// The name of the language.
    pub language: &'a str,
    /// The share of wrong mentions in percent, if the sentences have given tags.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub noise_percent: Option<u8>,
    /// The maximum number of sentences that are drawn.
    pub size: usize,
    /// The fingerprint of the sentences that they are drawn from.
    pub source: &'a str,
}

/// The fingerprints of the data that a cell learns from, for one language.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct DataKey<'a> {
    /// The fingerprint of the dev set, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dev: Option<&'a str>,
    /// The name of the language.
    pub language: &'a str,
    /// The fingerprint of the training set.
    pub train: &'a str,
}

impl<'a> CellKey<'a> {
    /// Collects everything that affects the result of `cell`.
    ///
    /// `plan` contains the settings of the cell's variant. `evaluations` is the number of dev evaluations of a training
    /// run whose budget is in updates. `data` contains the languages in the order of the cell, `text` those of its
    /// unlabelled text.
    pub fn new(
        cell: &Cell,
        plan: &Plan,
        evaluations: u64,
        data: Vec<DataKey<'a>>,
        text: TextKeys<'a>,
        fingerprints: &'a Fingerprints,
    ) -> Self {
        let method = cell.method.drafts();
        // The budget in the plan is that of the judge. Only methods with drafts have a judge.
        let judge = method.map(|_| plan.tagger.training.budget);
        let in_updates = |budget: &Budget| matches!(budget, Budget::Updates(_));
        let has_updates = judge.iter().chain([&cell.budget]).any(in_updates);
        let has_own =
            |method: &Method| *method == Method::Mulda && !fingerprints.seq2seq.is_empty();
        Self {
            arithmetic: &fingerprints.arithmetic,
            budget: cell.budget.to_string(),
            data,
            draw: cell.draw,
            evaluations: has_updates.then_some(evaluations),
            masked_lm: method
                .filter(|method| method.reads_masked_lm() && !has_own(method))
                .map(|_| fingerprints.masked_lm.as_str()),
            melm: env!("CARGO_PKG_VERSION"),
            method: cell.method.name(),
            names: None,
            picking: None,
            seed: cell.seed,
            seq2seq: method.filter(has_own).map(|_| fingerprints.seq2seq.as_str()),
            settings: settings(cell, plan, ADDED),
            size: cell.size,
            tagger: &fingerprints.tagger,
            text,
            trained_markers: method.filter(|method| method.linearizes()).map(|_| 2),
            vectors: method
                .filter(|method| method.has_vectors())
                .map(|_| fingerprints.vectors.as_str()),
        }
    }

    /// Adds how the grid picks sentences. Only the key of a cell of the system `picked` depends on it.
    #[must_use]
    pub fn with_picking(self, picking: Picking) -> Self {
        let is_picked = self.method == System::Picked.name();
        Self { picking: is_picked.then_some(picking), ..self }
    }

    /// Adds the lists of names that the cell uses.
    #[must_use]
    pub fn with_names(mut self, names: Option<NamesKey>) -> Self {
        self.names = names;
        self
    }

    /// Returns the SHA-256 of the canonical JSON, in hexadecimal.
    pub fn digest(&self) -> String {
        sha256(serde_json::to_string(self).expect("a key is JSON").as_bytes())
    }
}

/// Returns the plan keys that a system reads, with their values.
pub(crate) fn settings(cell: &Cell, plan: &Plan, added: &[AddedKey]) -> BTreeMap<String, Value> {
    let mut all = BTreeMap::new();
    flatten("", serde_json::to_value(plan).expect("a plan is JSON"), &mut all);
    let is_neutral = |key: &str, value: &Value| {
        let neutral = added.iter().find(|one| one.key == key).map(|one| one.neutral);
        neutral.is_some_and(|text| {
            serde_json::from_str(text).is_ok_and(|neutral: Value| neutral == *value)
        })
    };
    all.retain(|key, value| reads(cell, key) && !is_neutral(key, value));
    all
}

/// Flattens a nested table: stores every value under a key such as `tagger.budget`.
pub(crate) fn flatten(prefix: &str, value: Value, flat: &mut BTreeMap<String, Value>) {
    match value {
        Value::Object(table) => {
            for (name, inner) in table {
                let key = if prefix.is_empty() { name } else { format!("{prefix}.{name}") };
                flatten(&key, inner, flat);
            }
        }
        value => drop(flat.insert(prefix.to_owned(), value)),
    }
}

/// Returns true if the result of a cell depends on a plan key.
fn reads(cell: &Cell, key: &str) -> bool {
    let system = cell.method;
    // The budget in the plan is that of the judge, so without a judge it does not matter.
    let has_judge = system.drafts().is_some();
    if key == "tagger.budget" && !has_judge {
        return false;
    }
    let judging: &[&str] = if has_judge { &JUDGING } else { &[] };
    let labelling: &[&str] = match (cell.text.is_none(), cell.text.noise_percent) {
        (true, _) => &[],
        (false, None) => &["self_training"],
        (false, Some(_)) => &["self_training", "silver"],
    };
    let all = ["tagger"].iter().chain(judging).chain(labelling).chain(own_settings(system));
    let mut all = all.copied();
    all.any(|name| {
        key.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
    })
}

/// Keys and sections of the plan that every method with drafts reads.
const JUDGING: [&str; 5] =
    ["filter", "generate.avoid_repeats", "generate.rounds", "generate.without_mentions", "union"];

/// Returns the keys and sections of the plan that a system reads in addition to `tagger` and [`JUDGING`].
fn own_settings(system: System) -> &'static [&'static str] {
    match system {
        System::AddEntity | System::AddContext | System::Method(Method::Gold) => &[],
        System::GoldDuplicated => &["generate.rounds"],
        System::GoldEnsemble => &["self_training.panel"],
        System::Picked => &["pick", "self_training"],
        System::Method(Method::LabelWise | Method::Lwtr) => &["substitute"],
        System::Method(Method::Daga) => &["daga"],
        System::Method(Method::Mulda) => &["mulda"],
        System::Method(Method::MlmEntity) => &["generate"],
        System::Method(Method::MelmPlain) => &["finetune", "generate"],
        System::Method(Method::Melm) => &["finetune", "generate", "markers"],
        System::Method(Method::MelmBoth) => &["finetune", "generate", "markers", "substitute"],
        System::Method(Method::MelmCodemix) => &["codemix", "finetune", "generate", "markers"],
        System::Method(Method::CodemixRandom) => &["codemix.rate"],
        System::Method(Method::CodemixEss) => &["codemix"],
    }
}
