//! `melm finetune`, `generate` and `filter`: the stages of `augment`, one at a time.

use std::fs;
use std::path::Path;
use std::time::Duration;

use crate::augment::{augment_into, prepared};
use crate::drafts::{kept, read};
use crate::support::{TRAIN, assert_same, done, melm, run};

const LEARN: &str = "train.conll --dev train.conll --model model --config fast.toml";

fn text(folder: &Path, name: &str) -> String {
    fs::read_to_string(folder.join(name)).unwrap()
}

#[test]
fn single_stages_give_the_output_of_augment() {
    let folder = prepared();
    let path = folder.path();
    done(path, &augment_into("all", "--keep-model"));
    let messages = done(path, &format!("finetune {LEARN} -o lm"));
    assert!(messages.contains("fine-tuning model on 4 sentences of `train.conll`"), "{messages}");
    assert!(
        messages.contains("markers initialised: LOC as `location`, PER as `person`"),
        "{messages}"
    );
    assert!(messages.contains("wrote `lm`: dev loss "), "{messages}");
    for file in ["config.json", "model.safetensors", "tokenizer.json", "plan.toml"] {
        let (alone, kept) = (path.join("lm").join(file), path.join("all/model").join(file));
        assert!(fs::read(alone).unwrap() == fs::read(kept).unwrap(), "{file}");
    }
    assert!(text(path, "lm/metrics.jsonl").contains("dev_loss"));
    assert!(text(path, "lm/run.json").contains("\"command\": \"finetune\""));
    let card = text(path, "lm/README.md");
    assert!(card.starts_with("---\npipeline_tag: fill-mask\n"), "{card}");
    assert!(card.contains("the best on the dev set: mean loss "), "{card}");
    assert!(card.contains(&format!("$ melm finetune {LEARN} -o lm\n")), "{card}");

    let messages = done(path, "generate lm train.conll -o drafts.jsonl");
    assert!(messages.contains("making drafts of 4 sentences of `train.conll` with lm: 3 rounds"));
    let drafts = read(&path.join("drafts.jsonl"));
    for draft in &drafts {
        let verdict = draft["verdict"].as_str().unwrap();
        assert!(verdict == "new" || verdict.starts_with("repeats-"), "{draft}");
    }
    done(path, &format!("train {LEARN} -o tagger"));
    let judge = "train.conll --tagger tagger -o";
    done(path, &format!("filter drafts.jsonl {judge} judged.jsonl --augmented more.conll"));
    assert_eq!(text(path, "judged.jsonl"), text(path, "all/drafts.jsonl"));
    assert_eq!(text(path, "more.conll"), text(path, "all/train.augmented.conll"));

    // Judged drafts can be judged again in another mode.
    done(path, &format!("filter all/drafts.jsonl {judge} again.jsonl"));
    assert_eq!(text(path, "again.jsonl"), text(path, "judged.jsonl"));
    let likely = "--mode probability --threshold";
    done(path, &format!("filter judged.jsonl {judge} all.jsonl {likely} 0"));
    let n_new = drafts.iter().filter(|draft| draft["verdict"] == "new").count();
    assert_eq!(kept(&read(&path.join("all.jsonl"))).len(), n_new);
    done(path, &format!("filter judged.jsonl {judge} none.jsonl {likely} 1"));
    let none = text(path, "none.jsonl");
    assert_eq!(none.matches("\"verdict\":\"unlikely\"").count(), n_new, "{none}");
}

#[test]
fn a_model_without_markers_makes_drafts_too() {
    let folder = prepared();
    let path = folder.path();
    done(path, &augment_into("all", "--method melm-plain --set filter.mode=off --rounds 2"));
    let messages = done(path, &format!("finetune {LEARN} -o lm --set method=melm-plain"));
    assert!(!messages.contains("markers initialised"), "{messages}");
    done(path, "generate lm train.conll -o drafts.jsonl --rounds 2");
    let judged = text(path, "all/drafts.jsonl").replace("\"kept\"", "\"new\"");
    assert_eq!(text(path, "drafts.jsonl"), judged);
    done(path, "generate lm train.conll -o other.jsonl --rounds 2 --seed 5");
    assert_ne!(text(path, "other.jsonl"), judged);
}

#[test]
fn a_killed_fine_tuning_resumes_to_the_same_bytes() {
    let folder = prepared();
    let finetune = |out: &str| format!("finetune {LEARN} --epochs 20 --save-every 0 -o {out}");
    done(folder.path(), &finetune("whole"));
    let mut child = melm(folder.path(), &finetune("killed")).spawn().unwrap();
    let metrics = folder.path().join("killed/.unfinished/finetune/metrics.jsonl");
    while !fs::read_to_string(&metrics).is_ok_and(|lines| lines.lines().count() > 2) {
        std::thread::sleep(Duration::from_micros(200));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    let messages = done(folder.path(), &finetune("killed"));
    assert!(messages.contains("resuming after"), "{messages}");
    assert_same(&folder.path().join("whole"), &folder.path().join("killed"));
    let messages = done(folder.path(), &finetune("killed"));
    assert!(messages.contains("`killed` is already finished"), "{messages}");
}

#[test]
fn contradicting_inputs_are_refused_with_a_hint() {
    let folder = prepared();
    let path = folder.path();
    fs::write(path.join("other.conll"), "Oslo B-GPE\nis O\ncold O\n").unwrap();
    done(path, &format!("finetune {LEARN} --epochs 1 -o lm"));
    done(path, &format!("train {LEARN} --epochs 1 -o tagger"));
    done(path, "generate lm train.conll -o drafts.jsonl --rounds 1");
    fs::write(path.join("gpe.conll"), TRAIN.replace("LOC", "GPE")).unwrap();
    let gpe = text(path, "drafts.jsonl").replace("LOC", "GPE");
    fs::write(path.join("gpe.jsonl"), gpe).unwrap();
    for (args, code, expected) in [
        ("generate lm other.conll -o o", 1, "`lm` has no marker for the tag `B-GPE`"),
        ("generate nowhere train.conll -o o", 1, "cannot read `nowhere/config.json`"),
        ("generate lm train.conll -o drafts.jsonl", 1, "`drafts.jsonl` exists already"),
        (
            "generate lm train.conll -o o --set method=label-wise",
            2,
            "does not use a fine-tuned model",
        ),
        (
            "generate lm train.conll -o o --set method=melm-codemix",
            2,
            "mixes languages, which `melm generate` does not do",
        ),
        (
            "finetune train.conll -o o --model model --set method=gold",
            2,
            "does not fine-tune a model",
        ),
        ("filter drafts.jsonl other.conll --tagger tagger -o o", 1, "`drafts.jsonl`:1: "),
        ("filter train.conll train.conll --tagger tagger -o o", 1, "`train.conll`:1: "),
        ("filter drafts.jsonl gpe.conll --tagger tagger -o o", 1, "`drafts.jsonl`:1: mention "),
        ("filter gpe.jsonl gpe.conll --tagger tagger -o o", 1, "does not know the tag `GPE`"),
        ("filter drafts.jsonl train.conll --tagger lm -o o", 1, "is not a tagger"),
        (
            "filter drafts.jsonl train.conll --tagger tagger -o o --mode off",
            2,
            "expected agreement",
        ),
        ("filter drafts.jsonl train.conll --tagger tagger -o o --threshold 2", 2, "from 0 to 1"),
        ("filter drafts.jsonl train.conll --tagger tagger -o o --threshold 1", 2, "--mode prob"),
    ] {
        let output = run(path, args);
        let messages = String::from_utf8(output.stderr).unwrap();
        assert!(messages.contains(expected), "{args}: {messages}");
        assert_eq!(output.status.code(), Some(code), "{args}: {messages}");
        assert!(!path.join("o").exists(), "{args}");
    }
}

#[test]
fn a_judge_of_another_scheme_judges_the_same_mentions() {
    let folder = prepared();
    let path = folder.path();
    done(path, "convert train.conll --to-scheme iobes -o iobes.conll");
    done(path, &format!("train {LEARN} -o tagger").replace("train.conll", "iobes.conll"));
    done(path, "augment train.conll -o lw --method label-wise --set filter.mode=off");
    done(path, "filter lw/drafts.jsonl train.conll --tagger tagger -o judged.jsonl");
    // Draft and judge have different schemes: if their tags were compared directly, no draft would be kept.
    assert!(!kept(&read(&path.join("judged.jsonl"))).is_empty());
}

#[test]
fn drafts_of_several_files_are_judged_once_each() {
    let folder = prepared();
    let path = folder.path();
    done(path, &format!("train {LEARN} --epochs 1 -o tagger"));
    done(path, "augment train.conll -o lw --method label-wise --set filter.mode=off");
    let drafts = text(path, "lw/drafts.jsonl");
    fs::write(path.join("twice.jsonl"), format!("{drafts}{drafts}")).unwrap();
    let judge = "train.conll --tagger tagger --mode probability --threshold 0 -o";
    done(path, &format!("filter lw/drafts.jsonl {judge} once.jsonl"));
    done(path, &format!("filter twice.jsonl {judge} both.jsonl"));
    let [once, both] = ["once.jsonl", "both.jsonl"].map(|name| kept(&read(&path.join(name))));
    assert_eq!(once, both);
}

#[test]
fn a_draft_that_was_changed_by_hand_is_refused() {
    let folder = prepared();
    let path = folder.path();
    done(path, &format!("train {LEARN} --epochs 1 -o tagger"));
    done(path, "augment train.conll -o lw --method label-wise --set filter.mode=off");
    let line = text(path, "lw/drafts.jsonl").lines().next().unwrap().to_owned();
    let draft: serde_json::Value = serde_json::from_str(&line).unwrap();
    let changed = |change: &dyn Fn(&mut serde_json::Value)| {
        let mut draft = draft.clone();
        change(&mut draft);
        draft.to_string()
    };
    for (text, expected) in [
        (changed(&|draft| draft["source"] = 0.into()), "there is no sentence 0"),
        (changed(&|draft| draft["tags"][0] = "B-ORG".into()), "tokens and tags"),
        (
            changed(&|draft| draft["replaced"][0]["start"] = 9000.into()),
            "the replaced mentions are at",
        ),
        (changed(&|draft| draft["replaced"][0]["mention"] = 7.into()), "mention 7"),
        (
            changed(&|draft| draft["replaced"][0]["donor"]["tokens"]["end"] = 2.into()),
            "has no replacement",
        ),
        (
            changed(&|draft| draft["replaced"][0]["donor"]["sentence"] = 99.into()),
            "has no replacement in the corpus",
        ),
    ] {
        fs::write(path.join("changed.jsonl"), text + "\n").unwrap();
        let output = run(path, "filter changed.jsonl train.conll --tagger tagger -o o");
        let messages = String::from_utf8(output.stderr).unwrap();
        assert!(messages.contains(expected), "{expected}: {messages}");
        assert_eq!(output.status.code(), Some(1), "{messages}");
    }
}
