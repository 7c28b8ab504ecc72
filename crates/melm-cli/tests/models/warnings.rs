//! Warnings about the data of a run, and the counts of its final summary.

use std::fs;

use crate::augment::{FAST, augment_into, prepared};
use crate::drafts::read;
use crate::support::{TRAIN, done};
use crate::unlabelled::with_text;

/// Two sentences of TRAIN, and one with another type in another scheme.
const MISLEADING_DEV: &str = "Bonn S-LOC\nis O\nnot O\nBerlin S-LOC\n. O\n\n\
    Grace B-PER\nHopper E-PER\nspoke O\n. O\n\nNato S-ORG\n\n";

/// The commands that compare a dev set with a training set.
const WITH_DEV: [&str; 3] = [
    "train train.conll --dev dev.conll -o one --model model --updates 1",
    "augment train.conll --dev dev.conll -o two --model model --config fast.toml --dry-run",
    "trial train.conll --dev dev.conll --folds 2 --seeds 1 --updates 1 --model model --methods label-wise",
];

#[test]
fn a_misleading_dev_set_is_reported() {
    let folder = prepared();
    let path = folder.path();
    fs::write(path.join("dev.conll"), MISLEADING_DEV).unwrap();
    for command in WITH_DEV {
        let messages = done(path, command);
        for warning in [
            "warning: 2 of 3 sentences of the dev set are in the training set too",
            "warning: the dev set has entity types that the training set does not have: `ORG`",
            "warning: the training set has the scheme IOB2, the dev set IOBES",
        ] {
            assert!(messages.contains(warning), "{command}: no {warning} in {messages}");
        }
    }
    fs::write(path.join("dev.conll"), "Ada B-PER\nsang O\n\n").unwrap();
    for command in WITH_DEV {
        let messages = done(path, &command.replace("-o one", "-o other"));
        for part in ["of the dev set are", "the dev set has", "has the scheme"] {
            assert!(!messages.contains(part), "{command}: {messages}");
        }
    }
}

#[test]
fn joined_tags_are_reported() {
    let folder = prepared();
    let path = folder.path();
    let commands = ["train", "finetune", "augment", "trial"].map(|command| match command {
        "trial" => WITH_DEV[2].replace(" --dev dev.conll", ""),
        "augment" => WITH_DEV[1].replace(" --dev dev.conll", ""),
        _ => format!("{command} train.conll -o {command} --model model --updates 1"),
    });
    let warning = "warning: the training set has 1 × entity type that looks like several tags: melm reads one tag for \
                   each token, and takes this as one type: `PER|B-ORG`";
    fs::write(
        path.join("train.conll"),
        TRAIN.replace("B-PER", "B-PER|B-ORG").replace("I-PER", "I-PER|B-ORG"),
    )
    .unwrap();
    for command in &commands {
        let messages = done(path, command);
        let joined = messages.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(joined.contains(warning), "{command}: {messages}");
    }
    fs::write(path.join("train.conll"), TRAIN.replace("-PER", "-PER/ORG").replace("-LOC", "-A+B"))
        .unwrap();
    for command in &commands {
        let messages = done(
            path,
            &format!("{command} --force")
                .replace("methods label-wise --force", "methods label-wise"),
        );
        assert!(!messages.contains("several tags"), "{command}: {messages}");
    }
}

/// Returns the two numbers of a message such as `3 of 20 entity tokens not replaced`.
pub(crate) fn numbers(messages: &str, what: &str) -> (usize, usize) {
    let line = messages.lines().find(|line| line.contains(what));
    let line = line.unwrap_or_else(|| panic!("no `{what}` in {messages}"));
    let words: Vec<_> = line.split(what).next().unwrap().split_whitespace().collect();
    let [.., n, "of", of] = words[..] else { panic!("{line}") };
    (n.parse().unwrap(), of.parse().unwrap())
}

#[test]
fn the_summary_of_augment_has_the_score_of_the_judge_and_counts_of_how_many() {
    let folder = with_text();
    let path = folder.path();
    // `von` is a function word in a mention. TRAIN has ten other entity tokens.
    let more = "Universität B-ORG\nvon I-ORG\nBonn I-ORG\nspoke O\n. O\n\n";
    fs::write(path.join("train.conll"), format!("{TRAIN}{more}")).unwrap();
    let messages = done(path, &augment_into("out", "--unlabelled text.conll --rounds 1"));
    assert!(messages.contains("for each tagger; 2 of 7 sentences left out"), "{messages}");
    let fixed = "1 of 13 entity tokens function words or numbers: not rewritten";
    assert!(messages.contains(fixed), "{messages}");
    let judge = messages.lines().find(|line| line.starts_with("the judge: dev F1 "));
    let judge = judge.unwrap_or_else(|| panic!("{messages}"));
    let (f1, epoch) = judge["the judge: dev F1 ".len()..].split_once(" in epoch ").unwrap();
    assert!((0.0..=100.0).contains(&f1.parse::<f64>().unwrap()) && epoch.parse::<u32>().is_ok());

    // The drafts of this model have no token that kept its old text. `filter` reads such a draft.
    let mut lines = read(&path.join("out/drafts.jsonl"));
    lines[0]["restored"] = 2.into();
    let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
    fs::write(path.join("edited.jsonl"), text).unwrap();
    fs::write(path.join("none.jsonl"), "").unwrap();
    let filter = "filter edited.jsonl train.conll --decisions none.jsonl -o filtered.jsonl";
    let replaced = lines.iter().filter(|line| line["origin"] == "draft");
    let replaced = replaced.flat_map(|draft| draft["replaced"].as_array().unwrap());
    let n_tokens = replaced.map(|one| one["new"].as_array().unwrap().len()).sum();
    assert_eq!(numbers(&done(path, filter), "entity tokens not replaced"), (2, n_tokens));

    fs::write(path.join("names.txt"), "Emmy Noether\nLise Meitner\n").unwrap();
    fs::write(path.join("fast.toml"), FAST).unwrap();
    let names = "--method label-wise --name-list PER=names.txt --set names.share=0.5 --set filter.mode=off --rounds 2";
    let messages = done(path, &augment_into("named", names));
    let drafts = read(&path.join("named/drafts.jsonl"));
    let kept: Vec<_> = drafts.iter().filter(|draft| draft["verdict"] == "kept").collect();
    let has_name = |draft: &serde_json::Value| {
        draft["replaced"].as_array().unwrap().iter().any(|one| !one["from"].is_null())
    };
    let n_named = kept.iter().filter(|draft| has_name(draft)).count();
    assert_eq!(numbers(&messages, "kept drafts with a name"), (n_named, kept.len()), "{messages}");
}
