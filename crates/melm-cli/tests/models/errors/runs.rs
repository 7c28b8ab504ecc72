//! Errors in the files of a run: states, drafts, names, shards, reports.

use std::fs;
use std::path::Path;

use serde_json::json;

use super::{AUGMENT, Case, TAGGER, TRAIN, check, done, edit_json, nothing, write};

/// A draft of the first sentence, with another place.
fn draft() -> String {
    let line = json!({
        "origin": "draft", "source": 1, "round": 1, "seed": 1, "verdict": "kept",
        "tokens": ["Ada", "Lovelace", "wrote", "in", "Bonn", "."],
        "tags": ["B-PER", "I-PER", "O", "O", "B-LOC", "O"],
        "replaced": [{
            "mention": 1, "entity_type": "LOC", "start": 4, "end": 5, "old": ["London"], "new": ["Bonn"],
        }],
    });
    format!("{line}\n")
}

fn failing(
    variant: &'static str,
    command: &str,
    message: &'static str,
    prepare: fn(&Path),
) -> Case {
    Case { variant, prepare, command: command.to_owned(), exit: 1, message }
}

#[test]
fn wrong_drafts_and_names_are_refused() {
    check(&[
        failing(
            "melm::error::NotADraft",
            "filter drafts.jsonl train.conll --decisions none.jsonl",
            "`drafts.jsonl`:1: missing field `round`",
            |folder| {
                write(folder, "drafts.jsonl", "{}\n");
                write(folder, "none.jsonl", "");
            },
        ),
        failing(
            "melm-text::sentence::Uneven",
            "filter drafts.jsonl train.conll --decisions none.jsonl",
            "`drafts.jsonl`:1: 1 tokens but 2 tags",
            |folder| {
                let line = json!({
                    "source": null, "round": 1, "seed": 1, "verdict": "kept", "tokens": ["a"], "tags": ["O", "O"],
                    "replaced": [],
                });
                write(folder, "drafts.jsonl", line.to_string());
                write(folder, "none.jsonl", "");
            },
        ),
        failing(
            "melm-text::sentence::Empty",
            "filter drafts.jsonl train.conll --decisions none.jsonl",
            "`drafts.jsonl`:1: the sentence has no tokens",
            |folder| {
                let line = json!({
                    "source": null, "round": 1, "seed": 1, "verdict": "kept", "tokens": [], "tags": [], "replaced": [],
                });
                write(folder, "drafts.jsonl", line.to_string());
                write(folder, "none.jsonl", "");
            },
        ),
        failing(
            "melm::error::UnknownTag",
            "filter drafts.jsonl train.conll --tagger persons",
            "the judge does not know the tag `LOC`",
            |folder| {
                write(folder, "persons.conll", "Ada B-PER\nsang O\n\nBob B-PER\nran O\n");
                let train =
                    "train persons.conll --dev persons.conll -o persons --model model --updates 1";
                done(folder, train);
                write(folder, "drafts.jsonl", draft());
            },
        ),
        failing(
            "melm::error::NoNames",
            &format!("{AUGMENT} --method label-wise --name-list LOC=names.txt"),
            "no name in `names.txt` can be used for LOC: 0 repeat others, and 1 have another type",
            |folder| write(folder, "names.txt", "Ada Lovelace\n"),
        ),
    ]);
}

#[test]
fn the_state_of_another_training_is_refused() {
    check(&[failing(
        "melm-nn::error::State",
        &format!("{AUGMENT} --rounds 2"),
        "done.safetensors` does not belong to this training; remove it to start again",
        |folder| {
            done(folder, AUGMENT);
            let stages = folder.join("out/.stages");
            fs::copy(
                stages.join("judge/done.safetensors"),
                stages.join("finetune/done.safetensors"),
            )
            .unwrap();
        },
    )]);
}

#[test]
fn trainings_without_usable_sentences_or_numbers_are_refused() {
    check(&[
        failing(
            "melm::error::NoMentions",
            TRAIN,
            "`train.conll` has no mentions to learn from; use a file with tags such as `B-PER`",
            |folder| write(folder, "train.conll", "Ada O\nsang O\n\n"),
        ),
        failing(
            "melm::error::NothingToLearn",
            TRAIN,
            "every sentence of the training set is too long for the model; split the sentences",
            |folder| write(folder, "train.conll", "Ada B-PER\n".repeat(100)),
        ),
        failing(
            "melm::error::Diverged and melm-nn::error::NotFiniteStep",
            &format!("{TRAIN} --set tagger.learning_rate=1e38"),
            "the training `tagger` diverged at update 1: its gradients are not finite",
            nothing,
        ),
        failing(
            "melm::error::VectorDimensions",
            "augment en=train.conll de=train.conll -o out --model model --method codemix-ess --vectors en=en.vec --vectors de=de.vec --set filter.mode=off",
            "the vectors of `de.vec` have 3 dimensions, those of `en.vec` have 2; use vectors that are aligned",
            |folder| {
                write(folder, "en.vec", "1 2\nlondon 1 0\n");
                write(folder, "de.vec", "1 3\nlondon 1 0 0\n");
            },
        ),
    ]);
}

/// Covers `melm-nn::error::Write`. Files may not grow above 5 kB, and the signal for this is ignored.
#[cfg(unix)]
#[test]
fn a_disk_without_room_for_the_weights_is_named() {
    let folder = super::tiny_folder();
    let command =
        format!("trap '' XFSZ; ulimit -f 10; exec {} {TRAIN}", env!("CARGO_BIN_EXE_melm"));
    let output = std::process::Command::new("sh")
        .args(["-c", &command])
        .current_dir(folder.path())
        .output()
        .unwrap();
    let messages = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{messages}");
    assert!(messages.contains("error: cannot write `out/.unfinished/tagger/"), "{messages}");
    assert!(messages.contains(".safetensors`: File too large"), "{messages}");
    assert!(messages.contains("check that the folder can be written to"), "{messages}");
}

/// Makes two shards of a tagged corpus, `a.shard-1-of-2` and `a.shard-2-of-2`.
fn shards(folder: &Path, options: &str) {
    done(folder, TAGGER);
    for number in 1..=2 {
        done(folder, &format!("tag tagger train.conll {options} --shard {number}/2 -o a"));
    }
}

#[test]
fn shards_that_do_not_fit_are_refused() {
    const MERGE: &str = "merge a.shard-1-of-2 a.shard-2-of-2";
    check(&[
        failing(
            "melm::shard::error::Missing",
            "merge a.shard-1-of-2",
            "shard 2 of 2 is missing",
            |folder| {
                shards(folder, "");
            },
        ),
        failing(
            "melm::shard::error::Different",
            MERGE,
            "they differ in the setting `probabilities`",
            |folder| {
                shards(folder, "");
                done(folder, "tag tagger train.conll --probabilities --shard 2/2 -o a --force");
            },
        ),
        failing(
            "melm::shard::error::Content",
            MERGE,
            "line 1 of the content: expected value",
            |folder| {
                shards(folder, "--to doccano");
                // The checksum fits the new content.
                let path = folder.join("a.shard-1-of-2");
                let text = fs::read_to_string(&path).unwrap();
                let mut header: serde_json::Value =
                    serde_json::from_str(text.lines().next().unwrap()).unwrap();
                header["content_sha256"] = json!(melm::files::sha256(b"x\n"));
                let start = "{\"melm_shard\":1,";
                let rest = header.to_string().replacen("\"melm_shard\":1,", "", 1);
                fs::write(path, format!("{start}{}\nx\n", &rest[1..])).unwrap();
            },
        ),
        failing(
            "melm-cli::failure::Impossible",
            MERGE,
            "which this program does not have",
            |folder| {
                shards(folder, "--to doccano");
                for number in 1..=2 {
                    let path = folder.join(format!("a.shard-{number}-of-2"));
                    let text = fs::read_to_string(&path)
                        .unwrap()
                        .replace("\"format\":\"doccano\"", "\"format\":\"xml\"");
                    fs::write(path, text).unwrap();
                }
            },
        ),
    ]);
}

#[test]
fn folders_without_a_report_are_refused() {
    check(&[
        failing("melm-report::error::Read", "report none", "cannot read `none`", nothing),
        failing(
            "melm-report::error::OtherCommand",
            "report out",
            "`out` was made by `melm train`",
            |folder| {
                done(folder, TRAIN);
            },
        ),
        failing(
            "melm-report::error::Unfinished",
            "report out",
            "the run in `out` is not finished",
            |folder| {
                write(folder, "out/.unfinished/key", "x");
            },
        ),
        failing(
            "melm-report::error::Line",
            "report out",
            "run the command again with `--force`",
            |folder| {
                done(folder, AUGMENT);
                edit_json(folder, "out/run.json", |json| json["rounds"] = json!("one"));
                write(folder, "out/metrics.jsonl", "{}\n");
            },
        ),
    ]);
}
