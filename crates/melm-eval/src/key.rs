//! What stands for everything that can change the result of a cell.

use super::{Cell, Languages, System};
use melm::augment::Method;
use melm::files::Fingerprint;
use melm::plan::Plan;
use melm::training::Budget;

/// What decides results beside data and plan.
#[derive(Clone, Debug)]
pub struct Arithmetic {
    /// The device's, as [`melm_nn::device::Device::arithmetic`] says.
    pub device: String,
    /// The fingerprint of the masked language model.
    pub masked_lm: String,
    /// The fingerprint of the tagger's encoder.
    pub tagger: String,
    /// The fingerprint of the vectors that mentions are compared by.
    pub vectors: String,
}

/// The key of a cell: of version, arithmetic, models, data, plan and coordinates. Settings that its method never reads
/// are left out, so that variants of them share what they do not change.
pub(crate) fn key(
    cell: &Cell,
    (plan, evaluations): (&Plan, u64),
    languages: &Languages,
    arithmetic: &Arithmetic,
) -> String {
    let mut fingerprint = Fingerprint::default();
    let mut add = |text: &str| fingerprint.add(text.as_bytes());
    add(env!("CARGO_PKG_VERSION"));
    add(&arithmetic.device);
    add(&arithmetic.tagger);
    if cell.method.drafts().is_some_and(Method::reads_masked_lm) {
        add(&arithmetic.masked_lm);
    }
    if cell.method.drafts().is_some_and(Method::has_vectors) {
        add(&arithmetic.vectors);
    }
    add(&cell.language);
    if cell.languages().count() > 1 && cell.method.drafts().is_some() {
        // Not as in ledgers from before sentences knew their languages.
        add("languages");
    }
    for language in cell.languages().filter_map(|name| languages.get(name)) {
        add(&language.train.fingerprint);
        add(language.dev.as_ref().map_or("", |dev| &dev.fingerprint));
    }
    let judge = Some(plan.tagger.training.budget).filter(|_| cell.method.drafts().is_some());
    if judge.into_iter().chain([cell.budget]).any(|budget| matches!(budget, Budget::Updates(_))) {
        // Not as in ledgers from before these were evaluated by updates rather than by whole epochs.
        add("evaluated by updates");
    }
    for text in [
        cell.size.to_string(),
        cell.draw.to_string(),
        cell.seed.to_string(),
        cell.method.to_string(),
        cell.budget.to_string(),
        evaluations.to_string(),
        settings_of(cell.method, plan),
    ] {
        add(&text);
    }
    fingerprint.finish()
}

/// The settings that a system reads.
fn settings_of(system: System, plan: &Plan) -> String {
    let mut plan = plan.clone();
    plan.seed = 0;
    plan.method = Method::default();
    plan.model.masked_lm.clear();
    plan.model.tagger.clear();
    let tagger = || toml::to_string(&plan.tagger).expect("settings are a table");
    // The budget of the plan is the judge's; gold has none.
    let mut gold = plan.clone();
    gold.tagger.training.budget = Budget::Epochs(std::num::NonZeroU64::MIN);
    let alone = || toml::to_string(&gold.tagger).expect("settings are a table");
    match system {
        System::Method(Method::Gold) | System::AddEntity | System::AddContext => alone(),
        System::GoldDuplicated => format!("{}\n{}", alone(), plan.generate.rounds),
        System::Method(Method::LabelWise | Method::Lwtr) => {
            let generate = format!("{} {:?}", plan.generate.rounds, plan.generate.without_mentions);
            let rest = (plan.union, plan.substitute, plan.filter);
            format!("{}\n{generate}\n{rest:?}", tagger())
        }
        System::Method(method @ (Method::CodemixRandom | Method::CodemixEss)) => {
            let generate = format!("{} {:?}", plan.generate.rounds, plan.generate.without_mentions);
            let vectors = method.has_vectors().then_some(plan.codemix.vectors);
            let rest = (plan.union, plan.codemix.rate, vectors, plan.filter);
            format!("{}\n{generate}\n{rest:?}", tagger())
        }
        System::Method(method) => {
            let sections = [
                ("codemix", method.mixes()),
                ("daga", method == Method::Daga),
                ("mulda", method == Method::Mulda),
            ];
            let unread = sections.into_iter().filter(|(_, is_read)| !is_read);
            let text = plan.to_toml().replace("seq2seq = \"\"\n", "");
            unread.fold(text, |text, (section, _)| without_section(&text, section))
        }
    }
}

/// A plan without one of its sections: cells that were run before there was such a section keep their keys.
fn without_section(toml: &str, name: &str) -> String {
    let sections = toml.split_inclusive("\n\n");
    sections.filter(|section| !section.starts_with(&format!("[{name}]\n"))).collect()
}
