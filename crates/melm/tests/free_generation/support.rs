//! Provides a corpus with one sentence pattern, and runs plans on it.

use std::path::Path;

use melm::Error;
use melm::augment::{Backbones, Drafts, Gold, augment};
use melm::methods::Method;
use melm::plan::{ModelClass, ModelClasses, Plan, PlanTable, Preset};
use melm::random::Seed;
use melm::stage::{Control, Event, Run};
use melm_nn::device::Device;
use melm_text::{Corpus, ReadOptions, Source};

/// Returns sentences that all have one pattern, so that a model can learn the pattern and write new sentences.
pub(crate) fn text() -> String {
    let people = ["Ada Lovelace", "Konrad Zuse", "Grace Hopper", "Alan Turing"];
    let places = ["Bonn", "Ghent", "Oslo", "Rome"];
    let verbs = ["saw", "left", "liked"];
    let mut text = String::new();
    for (number, person) in people.iter().enumerate() {
        for (at, place) in places.iter().enumerate().filter(|(at, _)| (at + number) % 2 == 0) {
            let (first, last) = person.split_once(' ').unwrap();
            let verb = verbs[(number + at) % verbs.len()];
            text += &format!("{first} B-PER\n{last} I-PER\n{verb} O\n{place} B-LOC\n. O\n\n");
        }
    }
    text + "so O\nit O\nis O\n\n"
}

pub(crate) fn corpus(text: &str) -> Corpus {
    Corpus::read(&Source::from_text("test", text), &ReadOptions::default()).unwrap()
}

/// Returns the plan of a method without a judge, with some settings changed.
pub(crate) fn plan(method: Method, edits: &[&str]) -> Plan {
    let mut table = PlanTable::new(Preset::Best, ModelClasses::both(ModelClass::MINI));
    table.set(&format!("method={}", method.name())).unwrap();
    table.set("filter.mode=off").unwrap();
    for edit in edits {
        table.set(edit).unwrap();
    }
    table.plan().unwrap()
}

/// Runs a plan in `dir/work`, with `corpus` as training and dev set.
pub(crate) fn run(
    dir: &Path,
    corpus: &Corpus,
    plan: &Plan,
    backbones: Backbones<'_>,
    threads: usize,
    observer: &mut dyn FnMut(&'static str, Event<'_>) -> Control,
) -> Result<Drafts, Error> {
    let mut run = Run { seed: Seed(7), folder: Some(dir.join("work")), observer };
    let gold = Gold { train: corpus, dev: Some(corpus) };
    augment(gold, plan, backbones, &Device::cpu(threads), &mut run)
}

/// No models, for a run that needs none.
pub(crate) const NONE: Backbones<'_> = Backbones {
    masked_lm: None,
    tagger: None,
    seq2seq: None,
    vectors: None,
    names: None,
    judge: None,
};
