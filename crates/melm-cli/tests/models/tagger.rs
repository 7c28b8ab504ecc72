//! `melm train` and `melm tag`.

use std::fs;
use std::process::Command;
use std::time::Duration;

use crate::support::{TRAIN, assert_same, done, folder, melm, results, run, tiny_folder};

pub(crate) fn train_into(out: &str, more: &str) -> String {
    format!(
        "train train.conll --dev train.conll -o {out} --model model --preset best \
         --set tagger.learning_rate=0.02 {more}"
    )
}

#[test]
fn a_tagger_is_trained_then_tags_a_file_that_is_scored() {
    let folder = folder();
    let messages = done(folder.path(), &train_into("tagger", "--epochs 30"));
    assert!(
        messages.contains("training model on 4 sentences of `train.conll` for 30 epochs"),
        "{messages}"
    );
    assert!(messages.contains("wrote `tagger`: dev F1"), "{messages}");
    let dir = folder.path().join("tagger");
    let names: Vec<_> = results(&dir).into_iter().map(|(name, _)| name).collect();
    let expected = [
        "README.md",
        "config.json",
        "metrics.jsonl",
        "model.safetensors",
        "plan.toml",
        "tagger.json",
    ];
    assert!(expected.iter().all(|name| names.contains(&(*name).to_owned())), "{names:?}");
    assert!(!dir.join(".unfinished").exists());
    let card = fs::read_to_string(dir.join("README.md")).unwrap();
    let n_tokens = TRAIN.lines().filter(|line| !line.is_empty()).count();
    for part in [
        "---\npipeline_tag: token-classification\n".to_owned(),
        format!("| training set | 4 | {n_tokens} |\n| dev set | 4 | {n_tokens} |\n"),
        "The model was trained for 30 epochs".to_owned(),
        "the best on the dev set: micro-F1 100.00 %.".to_owned(),
        format!("$ melm {}\n", train_into("tagger", "--epochs 30").trim_end()),
    ] {
        assert!(card.contains(&part), "no `{part}` in\n{card}");
    }

    done(folder.path(), "tag tagger train.conll -o tagged.conll");
    let tagged = fs::read_to_string(folder.path().join("tagged.conll")).unwrap();
    assert_eq!(tagged, TRAIN);
    let score = run(folder.path(), "score train.conll tagged.conll --json");
    assert!(String::from_utf8(score.stdout).unwrap().contains("\"f1\": 1.0"));

    let plain = TRAIN.lines().map(|line| line.split(' ').next().unwrap().to_owned() + "\n");
    fs::write(folder.path().join("plain.txt"), plain.collect::<String>()).unwrap();
    let messages = done(folder.path(), "tag tagger plain.txt --probabilities -o likely.conll");
    assert!(messages.contains("adding the tags as a last column"), "{messages}");
    let likely = fs::read_to_string(folder.path().join("likely.conll")).unwrap();
    for (row, gold) in likely.lines().zip(TRAIN.lines()) {
        let columns: Vec<_> = row.split('\t').collect();
        assert_eq!(columns[..columns.len().min(2)].join(" "), gold);
        assert!(
            row.is_empty() || columns[2].parse::<f64>().is_ok_and(|p| (0.0..=1.0).contains(&p))
        );
    }

    done(folder.path(), "convert train.conll -o train.jsonl");
    done(folder.path(), "tag tagger train.jsonl --probabilities -o likely.jsonl");
    let likely = fs::read_to_string(folder.path().join("likely.jsonl")).unwrap();
    let first: serde_json::Value = serde_json::from_str(likely.lines().next().unwrap()).unwrap();
    assert_eq!(first["ner_tags"][4], "B-LOC");
    assert_eq!(first["ner_probabilities"].as_array().unwrap().len(), 6);
}

#[test]
fn a_tagger_with_8_bit_weights_finds_the_same_tags() {
    let folder = folder();
    done(folder.path(), &train_into("tagger", "--epochs 30"));
    let tag = |options: &str| {
        let command = format!("tag tagger train.conll --probabilities {options} -o - --device cpu");
        let output = run(folder.path(), &command);
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        assert!(output.status.success(), "{}", text(output.stderr));
        (text(output.stdout), text(output.stderr))
    };
    let without_probability = |text: &str| -> Vec<String> {
        let row = |line: &str| line.rsplit_once(' ').map_or("", |(row, _)| row).to_owned();
        text.lines().map(row).collect()
    };
    let (exact, _) = tag("--precision f32");
    assert_eq!(tag("").0, exact);
    let (found, messages) = tag("--precision int8");
    assert!(messages.contains(", int8"), "{messages}");
    assert_eq!(without_probability(&found), without_probability(&exact));
    assert_eq!(without_probability(&found), TRAIN.lines().collect::<Vec<_>>());
    assert_ne!(found, exact, "the probabilities of 8-bit weights differ a little");
    assert_eq!(tag("--precision int8 --threads 1").0, found);

    let refused = run(folder.path(), "train train.conll -o other --model model --precision int8");
    let message = String::from_utf8(refused.stderr).unwrap();
    assert!(message.contains("`--precision int8` is for `melm tag`"), "{message}");
}

#[test]
fn finished_training_is_recognised_and_overwritten_only_with_force() {
    let folder = folder();
    done(folder.path(), &train_into("tagger", "--updates 2"));
    let messages = done(folder.path(), &train_into("tagger", "--updates 2"));
    assert!(messages.contains("`tagger` is already finished"), "{messages}");
    let other = run(folder.path(), &train_into("tagger", "--updates 3"));
    assert_eq!(other.status.code(), Some(1));
    assert!(String::from_utf8(other.stderr).unwrap().contains("pass `--force`"));
    done(folder.path(), &train_into("tagger", "--updates 3 --force"));
    let plan = fs::read_to_string(folder.path().join("tagger/plan.toml")).unwrap();
    assert!(plan.contains("budget = \"3 updates\""), "{plan}");
    // A run with the saved plan gives exactly the same result.
    fs::write(folder.path().join("plan.toml"), plan).unwrap();
    done(folder.path(), "train train.conll --dev train.conll -o again --config plan.toml");
    assert_same(&folder.path().join("again"), &folder.path().join("tagger"));
}

#[test]
fn the_last_epoch_is_kept_if_the_plan_says_so() {
    let folder = folder();
    let messages = done(folder.path(), &train_into("last", "--updates 6 --set tagger.keep=last"));
    assert!(messages.contains("wrote `last`: last epoch, "), "{messages}");
    let without = train_into("without", "--updates 6").replace(" --dev train.conll", "");
    done(folder.path(), &without);
    let weights =
        |name: &str| fs::read(folder.path().join(name).join("model.safetensors")).unwrap();
    assert!(weights("last") == weights("without"));
    let metrics = fs::read_to_string(folder.path().join("last/metrics.jsonl")).unwrap();
    assert!(metrics.contains("dev_f1"), "{metrics}");
}

#[test]
fn a_training_killed_ten_times_ends_with_the_same_bytes() {
    let folder = folder();
    let more = "--updates 400 --save-every 0 --threads 1";
    let begun = std::time::Instant::now();
    done(folder.path(), &train_into("whole", more));
    let whole = begun.elapsed();
    let mut n_killed = 0;
    for kill in 1..40_u32 {
        let mut child = melm(folder.path(), &train_into("killed", more)).spawn().unwrap();
        // Kill the command between its start and the first steps. The time to start differs from run to run. On a busy
        // machine the first run may have been several times slower than this one, so the waits are short.
        std::thread::sleep(whole / 16 + whole * (kill * 7919 % 100) / 800);
        child.kill().unwrap();
        let status = child.wait().unwrap();
        if status.success() || folder.path().join("killed/run.json").exists() {
            break;
        }
        n_killed += 1;
        if n_killed == 10 {
            break;
        }
    }
    done(folder.path(), &train_into("killed", more));
    assert!(n_killed > 2, "only {n_killed} of the runs were killed");
    assert_same(&folder.path().join("whole"), &folder.path().join("killed"));
}

#[cfg(unix)]
#[test]
fn ctrl_c_stops_with_130_and_the_same_command_goes_on() {
    let folder = folder();
    let args = train_into("tagger", "--updates 100000");
    let child = melm(folder.path(), &args).spawn().unwrap();
    let work = folder.path().join("tagger/.unfinished/tagger/metrics.jsonl");
    while !work.exists() {
        std::thread::sleep(Duration::from_millis(20));
    }
    Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    let stopped = child.wait_with_output().unwrap();
    assert_eq!(stopped.status.code(), Some(130));
    let messages = String::from_utf8(stopped.stderr).unwrap();
    assert!(messages.contains("run the same command again to continue"), "{messages}");
    assert!(folder.path().join("tagger/.unfinished/tagger/state.safetensors").exists());
}

/// Covers `melm-nn::error::NoCuda`, among others.
#[test]
fn errors_are_reported_before_training() {
    let folder = folder();
    for (args, code, expected) in [
        ("train train.conll -o t --model model --device cuda", 1, "no CUDA device"),
        (
            "train train.conll -o t --model model --set tagger.buget=3",
            2,
            "did you mean `tagger.budget`?",
        ),
        (
            "train train.conll -o t --model model --set tagger.head=tree",
            2,
            "unknown variant `tree`",
        ),
        ("train train.conll -o t --model ./nowhere", 1, "neither a folder nor a model name"),
        ("train train.conll -o model --model model", 1, "has other files"),
        ("train nowhere.conll -o t --model model", 1, "cannot read `nowhere.conll`"),
        ("tag model train.conll", 1, "is not a tagger (it has no `classifier.weight`)"),
        ("tag nowhere train.conll", 1, "cannot read `nowhere/config.json`"),
    ] {
        let output = run(folder.path(), args);
        let messages = String::from_utf8(output.stderr).unwrap();
        assert!(messages.contains(expected), "{args}: {messages}");
        assert_eq!(output.status.code(), Some(code), "{args}: {messages}");
        assert!(!folder.path().join("t").exists(), "{args}");
    }
}

#[test]
fn probabilities_are_added_after_nested_json_values() {
    let folder = folder();
    done(folder.path(), &train_into("tagger", "--updates 1"));
    let line = r#"{"tokens": ["Bonn"], "ner_tags": ["O"], "meta": {"a": {"b": 1}}}"#;
    fs::write(folder.path().join("in.jsonl"), line).unwrap();
    done(folder.path(), "tag tagger in.jsonl --probabilities -o out.jsonl");
    let out = fs::read_to_string(folder.path().join("out.jsonl")).unwrap();
    let object: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert_eq!(object["meta"]["a"]["b"], 1);
    assert_eq!(object["ner_probabilities"].as_array().unwrap().len(), 1);
}

#[test]
fn a_diverging_training_fails() {
    let folder = folder();
    let more =
        "--updates 20 --set tagger.learning_rate=1e30 --set tagger.clip=0 --set tagger.head=linear";
    let output = run(folder.path(), &train_into("tagger", more));
    let messages = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{messages}");
    assert!(messages.contains("diverged at update"), "{messages}");
    // A CRF finds no sequence of tags before the loss is infinite.
    for rate in ["1e5", "1e7", "1e20"] {
        let more = format!("--updates 6 --set tagger.learning_rate={rate} --force");
        let output = run(folder.path(), &train_into("crf", &more));
        let messages = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{messages}");
        assert!(messages.contains("the training `tagger` diverged at update"), "{messages}");
    }
    let slip = run(folder.path(), &train_into("t", "--set tagger.freeze=['encoder.layer']"));
    let messages = String::from_utf8(slip.stderr).unwrap();
    assert!(
        messages.contains("the plan freezes `encoder.layer`, but no tensor name starts with it"),
        "{messages}"
    );
}

#[test]
fn types_with_spaces_are_not_written_between_spaces() {
    let folder = tiny_folder();
    let path = folder.path();
    fs::write(path.join("city.conll"), "Bonn\tB-big city\nis\tO\n\nOslo\tB-big city\n\n").unwrap();
    done(path, "train city.conll -o tagger --model model --updates 1");
    fs::write(path.join("spaces.conll"), "Bonn NE O\nis VB O\n\n").unwrap();
    let refused = run(path, "tag tagger spaces.conll -o out.conll");
    assert_eq!(refused.status.code(), Some(2));
    let messages = String::from_utf8(refused.stderr).unwrap();
    assert!(messages.contains("entity type `big city`"), "{messages}");
    done(path, "convert spaces.conll --separator tab -o tabs.conll");
    done(path, "tag tagger tabs.conll -o out.conll");
    done(path, "check out.conll");
}
