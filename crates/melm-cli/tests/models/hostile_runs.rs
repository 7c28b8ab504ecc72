//! Folders of runs that somebody has changed: links, names of other files, large files, and results with other bytes.
#![cfg(unix)]

use std::fs::{self, File};
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Output;

use serde_json::{Value, json};

use crate::augment::{augment_into, prepared};
use crate::support::{assert_same, done, run, tiny_folder};
use crate::tagger::train_into;

/// Runs a command that must fail. Returns its messages.
fn refused(folder: &Path, args: &str) -> String {
    let Output { status, stderr, .. } = run(folder, args);
    let messages = String::from_utf8(stderr).unwrap();
    assert_eq!(status.code(), Some(1), "{args}: {messages}");
    messages
}

/// Changes `run.json` of the folder `out`.
fn edit_record(out: &Path, edit: impl FnOnce(&mut Value)) {
    let path = out.join("run.json");
    let mut record = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    edit(&mut record);
    fs::write(path, record.to_string()).unwrap();
}

fn is_link(path: &Path) -> bool {
    fs::symlink_metadata(path).unwrap().is_symlink()
}

#[test]
fn a_new_run_removes_a_link_to_stages_and_replaces_links_to_results() {
    let folder = prepared();
    let (out, other) = (folder.path().join("out"), folder.path().join("other"));
    fs::create_dir(&out).unwrap();
    fs::create_dir(&other).unwrap();
    symlink(&other, out.join(".stages")).unwrap();
    let files = ["drafts.jsonl", "train.augmented.conll", "run.json", "plan.toml", "metrics.jsonl"];
    for name in files {
        fs::write(folder.path().join(name), "theirs").unwrap();
        symlink(folder.path().join(name), out.join(name)).unwrap();
    }
    done(folder.path(), &augment_into("out", "--force"));
    assert_eq!(fs::read_dir(&other).unwrap().count(), 0);
    assert!(
        out.join(".stages/finetune/done.safetensors").exists() && !is_link(&out.join(".stages"))
    );
    for name in files {
        assert_eq!(fs::read(folder.path().join(name)).unwrap(), b"theirs", "{name}");
        assert!(!is_link(&out.join(name)), "{name}");
    }
}

#[test]
fn a_run_does_not_continue_through_a_link() {
    let folder = prepared();
    let path = folder.path();
    done(path, &augment_into("out", ""));
    let more = augment_into("out", "--rounds 4");
    for part in [".stages", ".stages/finetune", ".stages/rounds"] {
        let (inside, other) = (path.join("out").join(part), path.join("other"));
        fs::rename(&inside, &other).unwrap();
        symlink(&other, &inside).unwrap();
        let count = || fs::read_dir(&other).unwrap().count();
        let before = count();
        let messages = refused(path, &more);
        let expected = format!("`out/{part}` is a link, and nothing is written outside");
        assert!(messages.contains(&expected), "{messages}");
        assert_eq!(count(), before);
        fs::remove_file(&inside).unwrap();
        fs::rename(&other, &inside).unwrap();
    }
    done(path, &more);
    fs::create_dir(path.join("other")).unwrap();
    symlink(path.join("other"), path.join("out/model")).unwrap();
    let messages = refused(path, &augment_into("out", "--rounds 4 --keep-model"));
    assert!(messages.contains("`out/model` is a link"), "{messages}");
    assert_eq!(fs::read_dir(path.join("other")).unwrap().count(), 0);
}

#[test]
fn a_record_cannot_name_files_of_other_folders() {
    let folder = tiny_folder();
    let path = folder.path();
    let train = train_into("out", "--updates 1");
    done(path, &train);
    let absolute = path.join("train.conll").display().to_string();
    for name in ["../train.conll", &absolute, "..", "", "a/../../train.conll"] {
        edit_record(&path.join("out"), |record| record["files"] = json!({ name: "0" }));
        let messages = refused(path, &train);
        assert!(messages.contains("which is not a file of its folder"), "{name}: {messages}");
        assert!(messages.contains("`out/run.json` names the file `"), "{name}: {messages}");
    }
}

#[test]
fn the_identity_of_another_run_cannot_fill_the_terminal() {
    let folder = tiny_folder();
    let path = folder.path();
    let train = train_into("out", "--updates 1");
    done(path, &train);
    edit_record(&path.join("out"), |record| {
        record["key"] = json!("x");
        for name in ["seed", "device", "a\nerror: forged", "method"] {
            record["identity"]["settings"][name] = json!("1\nerror: forged".repeat(5_000));
        }
    });
    let messages = refused(path, &train);
    assert!(messages.lines().count() < 5 && messages.len() < 2_000, "{messages}");
    assert!(messages.contains(r"`seed` was 1\nerror: forged1\nerror"), "{messages}");
    assert!(messages.contains("choose another folder, or pass `--force`"), "{messages}");
}

#[test]
fn metrics_and_checked_gold_have_checksums() {
    let folder = prepared();
    let path = folder.path();
    let augment = augment_into("out", "--check-gold=2");
    done(path, &augment);
    for name in ["gold.jsonl", "metrics.jsonl"] {
        let file = path.join("out").join(name);
        let whole = fs::read_to_string(&file).unwrap();
        fs::write(&file, whole.replacen('1', "2", 1)).unwrap();
        let messages = done(path, &augment);
        let expected = format!("`out/{name}` was changed after the run wrote it");
        assert!(messages.contains(&expected), "{messages}");
        fs::write(&file, whole).unwrap();
    }
    // Runs of earlier versions have no checksums of these files.
    edit_record(&path.join("out"), |record| {
        let files = record["files"].as_object_mut().unwrap();
        assert!(files.remove("gold.jsonl").is_some() && files.remove("metrics.jsonl").is_some());
    });
    fs::write(path.join("out/metrics.jsonl"), "").unwrap();
    let messages = done(path, &augment);
    assert!(messages.contains("already finished") && !messages.contains("changed"), "{messages}");
    done(path, &augment_into("out", "--check-gold=2 --rounds 4"));
    done(path, &augment_into("whole", "--check-gold=2 --rounds 4"));
    assert_same(&path.join("whole"), &path.join("out"));
}

#[test]
fn files_of_stages_and_shards_have_limits() {
    let folder = prepared();
    let path = folder.path();
    done(path, &augment_into("out", ""));
    let enlarge = |name: &str| {
        let file = File::options().write(true).open(path.join(name)).unwrap();
        file.set_len((4 << 30) + (1 << 20)).unwrap();
    };
    enlarge("out/.stages/finetune/metrics.jsonl");
    let messages = refused(path, &augment_into("out", "--rounds 4"));
    assert!(messages.contains("metrics.jsonl`: it has more than 4096 MiB"), "{messages}");
    done(path, &train_into("tagger", "--updates 1"));
    done(path, "tag tagger train.conll --shard 1/1 -o a");
    enlarge("a.shard-1-of-1");
    let messages = refused(path, "merge a.shard-1-of-1 -o b");
    assert!(messages.contains("cannot read `a.shard-1-of-1`: it has more than 4096"), "{messages}");
}
