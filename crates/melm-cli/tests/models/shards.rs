//! `--shard` and `melm merge`: the joined output is that of one process.

use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::process::Stdio;

use serde_json::Value;

use crate::augment::{augment_into, prepared};
use crate::support::{TRAIN, assert_same, done, melm, run, tiny_folder};
use crate::unlabelled::with_text;

/// Returns a folder with a tagger, and inputs of several formats.
fn with_tagger() -> tempfile::TempDir {
    let folder = tiny_folder();
    let path = folder.path();
    done(
        path,
        "train train.conll -o tagger --model model --preset best --set tagger.learning_rate=0.02 --epochs 3",
    );
    // More than two blocks of 512 sentences, with comments before the first and after the last sentence.
    let rows = format!("# first\n{}# last\n", TRAIN.repeat(300));
    fs::write(path.join("rows.conll"), rows).unwrap();
    let objects: String = (0..10)
        .map(|n| {
            format!("{{\"id\": {n}, \"tokens\": [\"Ada\", \"slept\", \"{n}\"], \"x\": 0.10}}\n")
        })
        .collect();
    fs::write(path.join("objects.jsonl"), objects).unwrap();
    let letters: String = (0..7)
        .map(|n| {
            format!("Ada  Lovelace wrote{} in “Zürich”. Bonn is not Berlin.\n", " again".repeat(n))
        })
        .collect();
    fs::write(path.join("letters.txt"), letters).unwrap();
    folder
}

/// Writes `out` with the command in one process and in `n` shards, and asserts that the bytes are equal.
fn assert_equal_in_shards(folder: &Path, command: &str, out: &str, n: usize) {
    let whole = format!("whole-{out}");
    done(folder, &format!("{command} -o {whole}"));
    // The order of the shards does not matter.
    let mut shards = String::new();
    for number in (1..=n).rev() {
        done(folder, &format!("{command} -o {out} --shard {number}/{n}"));
        shards += &format!(" {out}.shard-{number}-of-{n}");
    }
    let messages = done(folder, &format!("merge{shards} -o {out} --force"));
    assert!(messages.contains(&format!("merged {n} shard")), "{messages}");
    for ending in ["", "txt"] {
        let name = |name: &str| match ending {
            "" => folder.join(name),
            ending => folder.join(name).with_extension(ending),
        };
        if !name(&whole).exists() {
            continue;
        }
        let (whole, merged) = (fs::read(name(&whole)).unwrap(), fs::read(name(out)).unwrap());
        assert!(!whole.is_empty() && whole == merged, "{command} in {n} shards");
    }
}

#[test]
fn merged_shards_of_tag_have_the_bytes_of_one_process_in_every_format() {
    let folder = with_tagger();
    let path = folder.path();
    assert_equal_in_shards(path, "tag tagger rows.conll --probabilities", "p.conll", 2);
    assert_equal_in_shards(path, "tag tagger objects.jsonl", "objects-out.jsonl", 3);
    // There are fewer sentences than shards, so some shards are empty.
    assert_equal_in_shards(path, "tag tagger train.conll", "small.conll", 6);
    for (to, out) in [
        ("conll", "a.conll"),
        ("jsonl", "a.jsonl"),
        ("label-studio", "a.json"),
        ("doccano", "b.jsonl"),
        ("spacy", "a.spacy"),
        ("parquet", "a.parquet"),
        ("gliner", "b.json"),
        ("prodigy", "c.jsonl"),
        ("brat", "a.ann"),
    ] {
        assert_equal_in_shards(path, &format!("tag tagger letters.txt --to {to}"), out, 3);
    }
    assert!(path.join("a.txt").exists());
    assert_equal_in_shards(path, "tag tagger objects.jsonl --to gliner", "d.json", 2);
}

#[test]
fn merged_shards_of_generate_have_the_bytes_of_one_process() {
    let folder = prepared();
    let path = folder.path();
    // The same sentences again: drafts in one shard repeat drafts in another.
    fs::write(path.join("twice.conll"), TRAIN.repeat(2) + "the O\nend O\n\n").unwrap();
    let learn = "train.conll --dev train.conll --model model --config fast.toml";
    done(path, &format!("finetune {learn} -o lm"));
    for (method, n) in [("melm", 1), ("melm", 2), ("melm", 9), ("melm-both", 3)] {
        let command = format!(
            "generate lm twice.conll --rounds 4 --set method={method} \
             --set generate.without_mentions=copied --set generate.ranks=[1,1] --set generate.mask.scope=whole"
        );
        let out = format!("{method}-{n}.jsonl");
        assert_equal_in_shards(path, &command, &out, n);
        let drafts = fs::read_to_string(path.join(&out)).unwrap();
        for verdict in ["\"new\"", "\"repeats-draft\"", "\"copied\""] {
            assert!(drafts.contains(verdict), "{verdict}");
        }
    }
    // A shard alone calls a draft new that the merged file calls repeated.
    let count = |name: &str| {
        fs::read_to_string(path.join(name)).unwrap().matches("\"verdict\":\"new\"").count()
    };
    let alone: usize = (1..=9).map(|i| count(&format!("melm-9.jsonl.shard-{i}-of-9"))).sum();
    assert!(alone > count("melm-9.jsonl"));
}

#[test]
fn shards_that_are_missing_doubled_or_different_are_refused() {
    let folder = with_tagger();
    let path = folder.path();
    for number in [1, 2, 4] {
        done(path, &format!("tag tagger train.conll -o out.conll --shard {number}/4 -q"));
    }
    let fails = |args: &str| {
        let output = run(path, args);
        assert_eq!(output.status.code(), Some(1), "{args}");
        assert!(!path.join("merged").exists());
        String::from_utf8(output.stderr).unwrap()
    };
    let [one, two, four] = [1, 2, 4].map(|number| format!("out.conll.shard-{number}-of-4"));
    assert_eq!(
        fails(&format!("merge {one} {two} {four} -o merged")),
        "error: shard 3 of 4 is missing\n\n\
         hint: make it: `melm tag tagger train.conll -o out.conll --shard 3/4 -q`\n"
    );
    let missing = fails(&format!("merge {two} -o merged"));
    assert!(missing.contains("error: shards 1, 3, 4 of 4 are missing"), "{missing}");
    fs::copy(path.join(&two), path.join("copy")).unwrap();
    let doubled = fails(&format!("merge {one} {two} copy {four} -o merged"));
    assert!(doubled.contains(&format!("`{two}` and `copy` are both shard 2 of 4")), "{doubled}");

    let differs = |command: &str, what: &str| {
        done(path, &format!("{command} -o other.conll --shard 3/4 --force"));
        let message =
            fails(&format!("merge {one} {two} other.conll.shard-3-of-4 {four} -o merged"));
        assert!(message.contains(&format!("they differ in the {what}")), "{message}");
    };
    differs("tag tagger train.conll --probabilities", "setting `probabilities`");
    differs("tag tagger train.conll --to jsonl", "output format");
    fs::write(path.join("changed.conll"), TRAIN.replace("Bonn", "Rome")).unwrap();
    differs("tag tagger changed.conll", "input");
    let config = path.join("tagger/config.json");
    let old = fs::read_to_string(&config).unwrap();
    fs::write(&config, format!("{old} ")).unwrap();
    differs("tag tagger train.conll", "model");
    fs::write(&config, old).unwrap();

    done(path, "tag tagger train.conll -o out.conll --shard 3/4 -q");
    let three = path.join("out.conll.shard-3-of-4");
    let whole = fs::read(&three).unwrap();
    fs::write(&three, &whole[..whole.len() - 1]).unwrap();
    let cut = fails(&format!("merge {one} {two} out.conll.shard-3-of-4 {four} -o merged"));
    assert!(cut.contains("is damaged") && cut.contains("--shard 3/4 -q --force"), "{cut}");
    let no_shard = fails("merge train.conll -o merged");
    assert!(no_shard.contains("`train.conll` is not a shard"), "{no_shard}");
    let changed =
        String::from_utf8(whole.clone()).unwrap().replacen("\"shard\":3", "\"shard\":5", 1);
    fs::write(&three, changed).unwrap();
    let wrong = fails("merge out.conll.shard-3-of-4 -o merged");
    assert!(wrong.contains("its header says shard 5 of 4"), "{wrong}");
}

#[test]
fn shards_pass_through_pipes_and_are_described_as_json() {
    let folder = with_tagger();
    let path = folder.path();
    let messages = done(path, "tag tagger train.conll -o out.conll --shard 2/2");
    assert!(
        messages.contains(
            "wrote shard 2/2: 3 to 4 of 4 sentences; join all shards with `melm merge \
             out.conll.shard-*-of-2 -o out.conll`"
        ),
        "{messages}"
    );
    let refused = run(path, "tag tagger train.conll -o out.conll --shard 2/2");
    let refused = String::from_utf8(refused.stderr).unwrap();
    assert!(refused.contains("`out.conll.shard-2-of-2` exists already"), "{refused}");

    let first = run(path, "tag tagger train.conll --shard 1/2");
    let mut merge = melm(path, "merge - out.conll.shard-2-of-2 -o merged.conll --json");
    let mut merge = merge.stdin(Stdio::piped()).spawn().unwrap();
    merge.stdin.take().unwrap().write_all(&first.stdout).unwrap();
    let merge = merge.wait_with_output().unwrap();
    let summary: Value = serde_json::from_slice(&merge.stdout).unwrap();
    assert_eq!((&summary["shards"], &summary["input"]["n"]), (&2.into(), &4.into()));
    done(path, "tag tagger train.conll -o whole.conll");
    let [merged, whole] =
        ["merged.conll", "whole.conll"].map(|name| fs::read(path.join(name)).unwrap());
    assert_eq!(merged, whole);
    let usage = run(path, "merge out.conll.shard-2-of-2 --json");
    assert_eq!(usage.status.code(), Some(2));
}

/// Covers `melm::error::VotesMissing`, which becomes a message without `error:`.
#[test]
fn taggers_in_shards_give_the_run_of_one_process() {
    let folder = with_text();
    let path = folder.path();
    let text = "--unlabelled text.conll";
    done(path, &augment_into("whole", text));
    let vote = |shard: &str| done(path, &augment_into("more/", &format!("{text} --shard {shard}")));
    // The panel has two taggers and two passes. The second pass needs the votes of both taggers in the first one.
    let first = vote("1/2");
    assert!(first.contains("have voted in pass 1; missing: tagger 2 of other shards"), "{first}");
    let votes = |folder: &str| {
        let entries = fs::read_dir(path.join(folder).join(".stages/votes")).unwrap();
        let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let mut names: Vec<_> = names.filter(|name| !name.contains("metrics")).collect();
        names.sort();
        names.join(" ")
    };
    assert_eq!(votes("more.shard-1-of-2"), "pass-1-tagger-1.votes");
    let second = vote("2/2");
    assert!(second.contains("have voted in pass 2; missing: tagger 1 of other shards"), "{second}");
    assert!(vote("1/2").contains("all taggers have voted; run the command without `--shard`"));
    assert!(!path.join("more").exists() && !path.join("more.shard-1-of-2/run.json").exists());

    done(path, &augment_into("more", text));
    assert_same(&path.join("whole"), &path.join("more"));
    let usage = run(path, &augment_into("other", "--shard 1/2"));
    assert_eq!(usage.status.code(), Some(2));
}

#[test]
fn votes_of_a_run_with_another_seed_are_not_used() {
    let folder = with_text();
    let path = folder.path();
    // Without drafts, both runs have the same training set, and their votes the same key.
    let gold = "--unlabelled text.conll --method gold";
    done(path, &augment_into("more", &format!("{gold} --shard 1/1")));
    let other = format!("{gold} --seed 2");
    done(path, &augment_into("alone", &other));
    done(path, &augment_into("more", &other));
    assert_same(&path.join("alone"), &path.join("more"));
}
