//! `train` and `tag` as a user meets them, on a tiny model drawn at random.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use melm::pieces::{Files, Tokenizer};
use melm_nn::config::Config;
use melm_nn::mlm::MaskedLm;

const TRAIN: &str = "\
Ada B-PER\nLovelace I-PER\nwrote O\nin O\nLondon B-LOC\n. O\n\n\
Bonn B-LOC\nis O\nnot O\nBerlin B-LOC\n. O\n\n\
Konrad B-PER\nZuse I-PER\nlived O\nin O\nBerlin B-LOC\n. O\n\n\
Grace B-PER\nHopper I-PER\nspoke O\n. O\n\n";

/// A folder with a tiny model and a corpus.
fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let model = folder.path().join("model");
    let tokenizer = include_str!("../../melm-mini/model/tokenizer.json").to_owned();
    let tokenizer = Tokenizer::from_files(Files { tokenizer, ..Files::default() }).unwrap();
    tokenizer.save(&model).unwrap();
    let config = Config {
        vocab_size: tokenizer.n_pieces(),
        hidden_size: 16,
        n_layers: 1,
        n_heads: 2,
        intermediate_size: 24,
        max_position_embeddings: 66,
        initializer_range: 0.2,
        ..Config::default()
    };
    MaskedLm::random(&config, 1).unwrap().save(&model).unwrap();
    fs::write(folder.path().join("train.conll"), TRAIN).unwrap();
    folder
}

fn melm(folder: &Path, args: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_melm"));
    command.args(args.split_whitespace()).current_dir(folder);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

fn run(folder: &Path, args: &str) -> Output {
    melm(folder, args).output().unwrap()
}

/// What the command printed; it must have succeeded.
fn done(folder: &Path, args: &str) -> String {
    let output = run(folder, args);
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{args}: {said}");
    said
}

fn train_into(out: &str, more: &str) -> String {
    format!(
        "train train.conll --dev train.conll -o {out} --model model --preset best \
         --set tagger.learning_rate=0.02 {more}"
    )
}

/// Everything but the record, which tells the time.
fn results(dir: &Path) -> Vec<(String, Vec<u8>)> {
    let mut names: Vec<_> = fs::read_dir(dir)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name != "run.json")
        .collect();
    names.sort();
    names.into_iter().map(|name| (name.clone(), fs::read(dir.join(name)).unwrap())).collect()
}

#[test]
fn a_tagger_is_trained_tags_and_scores() {
    let folder = folder();
    let said = done(folder.path(), &train_into("tagger", "--epochs 30"));
    assert!(
        said.contains("training model on 4 sentences of `train.conll` for 30 epochs"),
        "{said}"
    );
    assert!(said.contains("wrote `tagger`: dev F1"), "{said}");
    let dir = folder.path().join("tagger");
    let names: Vec<_> = results(&dir).into_iter().map(|(name, _)| name).collect();
    let expected =
        ["config.json", "metrics.jsonl", "model.safetensors", "plan.toml", "tagger.json"];
    assert!(expected.iter().all(|name| names.contains(&(*name).to_owned())), "{names:?}");
    assert!(!dir.join(".unfinished").exists());

    done(folder.path(), "tag tagger train.conll -o tagged.conll");
    let tagged = fs::read_to_string(folder.path().join("tagged.conll")).unwrap();
    assert_eq!(tagged, TRAIN);
    let score = run(folder.path(), "score train.conll tagged.conll --json");
    assert!(String::from_utf8(score.stdout).unwrap().contains("\"f1\": 1.0"));

    let plain = TRAIN.lines().map(|line| line.split(' ').next().unwrap().to_owned() + "\n");
    fs::write(folder.path().join("plain.txt"), plain.collect::<String>()).unwrap();
    let said = done(folder.path(), "tag tagger plain.txt --probabilities -o likely.conll");
    assert!(said.contains("adding a last column"), "{said}");
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
fn finished_work_is_recognised_and_never_overwritten_without_being_told_to() {
    let folder = folder();
    done(folder.path(), &train_into("tagger", "--updates 2"));
    let said = done(folder.path(), &train_into("tagger", "--updates 2"));
    assert!(said.contains("`tagger` is done already"), "{said}");
    let other = run(folder.path(), &train_into("tagger", "--updates 3"));
    assert_eq!(other.status.code(), Some(1));
    assert!(String::from_utf8(other.stderr).unwrap().contains("pass `--force`"));
    done(folder.path(), &train_into("tagger", "--updates 3 --force"));
    let plan = fs::read_to_string(folder.path().join("tagger/plan.toml")).unwrap();
    assert!(plan.contains("budget = \"3 updates\""), "{plan}");
    // The saved plan reruns it exactly.
    fs::write(folder.path().join("plan.toml"), plan).unwrap();
    done(folder.path(), "train train.conll --dev train.conll -o again --config plan.toml");
    assert_eq!(results(&folder.path().join("again")), results(&folder.path().join("tagger")));
}

#[test]
fn killed_at_ten_moments_it_ends_with_the_same_bytes() {
    let folder = folder();
    let more = "--updates 400 --save-every 0 --threads 1";
    let begun = std::time::Instant::now();
    done(folder.path(), &train_into("whole", more));
    let whole = begun.elapsed();
    let mut n_killed = 0;
    for kill in 1..40_u32 {
        let mut child = melm(folder.path(), &train_into("killed", more)).spawn().unwrap();
        // Anywhere from before the first step to after several; starting takes its time each time anew.
        std::thread::sleep(whole / 8 + whole * (kill * 7919 % 100) / 400);
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
    assert!(n_killed > 2, "only {n_killed} kills hit it");
    let (whole, killed) = (folder.path().join("whole"), folder.path().join("killed"));
    assert!(results(&whole) == results(&killed), "other bytes after {n_killed} kills");
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
    let said = String::from_utf8(stopped.stderr).unwrap();
    assert!(said.contains("the same command goes on"), "{said}");
    assert!(folder.path().join("tagger/.unfinished/tagger/state.safetensors").exists());
}

#[test]
fn what_cannot_be_done_is_said_before_any_work() {
    let folder = folder();
    for (args, code, expected) in [
        ("train train.conll -o t --model model --device cuda", 1, "processor only"),
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
        ("train train.conll -o t --model ./nowhere", 1, "neither a folder nor the name"),
        ("train train.conll -o model --model model", 1, "holds other files"),
        ("train nowhere.conll -o t --model model", 1, "cannot read `nowhere.conll`"),
        ("tag model train.conll", 1, "no tagger (no `classifier.weight`)"),
        ("tag nowhere train.conll", 1, "cannot read `nowhere/config.json`"),
    ] {
        let output = run(folder.path(), args);
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(said.contains(expected), "{args}: {said}");
        assert_eq!(output.status.code(), Some(code), "{args}: {said}");
        assert!(!folder.path().join("t").exists(), "{args}");
    }
}
