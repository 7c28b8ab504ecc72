//! What the commands with a model say about data, settings and files that are probably not what the user wants.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use crate::augment::{FAST, augment_into, prepared};
use crate::support::{done, folder, run, tiny_folder};
use crate::tagger::train_into;

/// Runs a command that must fail. Returns its messages.
fn refused(folder: &Path, args: &str) -> String {
    let output = run(folder, args);
    let messages = String::from_utf8(output.stderr).unwrap();
    assert!(matches!(output.status.code(), Some(1 | 2)), "{args}: {messages}");
    messages
}

/// Covers `melm::error::Occupied`.
#[test]
fn the_message_about_another_run_names_what_differs() {
    let folder = prepared();
    done(folder.path(), &train_into("tagger", "--updates 2"));
    let messages = refused(folder.path(), &train_into("tagger", "--updates 3"));
    let wanted = "`tagger` has a run with other data or settings: `tagger.budget` was \"2 updates\", and is \"3 updates\"; choose";
    assert!(messages.contains(wanted), "{messages}");
    fs::write(folder.path().join("other.conll"), "Ida B-PER\nsang O\n\n").unwrap();
    let other =
        train_into("tagger", "--updates 2").replace("--dev train.conll", "--dev other.conll");
    let messages = refused(folder.path(), &other);
    assert!(messages.contains("settings: it had another dev set; choose"), "{messages}");

    done(folder.path(), &augment_into("more", "--method label-wise"));
    fs::write(folder.path().join("text.conll"), "Ida\nsang\n\n").unwrap();
    let messages =
        refused(folder.path(), &augment_into("more", "--unlabelled text.conll --seed 7"));
    for wanted in ["it had no unlabelled text", "`seed` was 1, and is 7", "`method` was"] {
        assert!(messages.contains(wanted), "no {wanted} in {messages}");
    }
}

#[test]
fn a_changed_tagger_in_a_finished_folder_is_not_silent() {
    let folder = tiny_folder();
    let train = train_into("tagger", "--updates 2 -q");
    done(folder.path(), &train);
    assert_eq!(done(folder.path(), &train), "");
    for name in ["model.safetensors", "config.json", "tokenizer.json", "tagger.json"] {
        let path = folder.path().join("tagger").join(name);
        let whole = fs::read(&path).unwrap();
        let mut bytes = whole.clone();
        bytes[whole.len() - 1] ^= 1;
        fs::write(&path, bytes).unwrap();
        let messages = done(folder.path(), &train);
        let wanted = format!("warning: `tagger/{name}` was changed after the run wrote it");
        assert!(messages.contains(&wanted), "{messages}");
        fs::write(&path, whole).unwrap();
    }
}

/// Covers `melm::error::ResultMissing`.
#[test]
fn a_removed_result_of_a_finished_run_is_an_error_or_made_again() {
    let folder = tiny_folder();
    let train = train_into("tagger", "--updates 2 -q");
    done(folder.path(), &train);
    for name in
        ["model.safetensors", "config.json", "tokenizer.json", "tagger.json", "metrics.jsonl"]
    {
        let path = folder.path().join("tagger").join(name);
        let whole = fs::read(&path).unwrap();
        fs::remove_file(&path).unwrap();
        let messages = refused(folder.path(), &train);
        let wanted = format!("`tagger/{name}` is missing from a finished run; pass `--force`");
        assert!(messages.contains(&wanted), "{messages}");
        fs::write(&path, whole).unwrap();
    }
    assert_eq!(done(folder.path(), &train), "");
    let folder = prepared();
    let augment = augment_into("more", "--rounds 1 --check-gold=2");
    done(folder.path(), &augment);
    for name in ["metrics.jsonl", "drafts.jsonl", "gold.jsonl", "train.augmented.conll"] {
        let path = folder.path().join("more").join(name);
        let whole = fs::read(&path).unwrap();
        fs::remove_file(&path).unwrap();
        done(folder.path(), &augment);
        assert_eq!(fs::read(&path).unwrap(), whole, "{name}");
    }
}

#[test]
fn too_many_threads_are_refused() {
    let folder = tiny_folder();
    for n in ["1025", "20000", "4294967296"] {
        let line = format!("{} --threads {n}", train_into("tagger", "--updates 2"));
        let output = run(folder.path(), &line);
        assert_eq!(output.status.code(), Some(2), "{n}");
        let messages = String::from_utf8(output.stderr).unwrap();
        let wanted = format!("{n} threads are above the limit of 1024");
        assert!(messages.contains(&wanted), "{messages}");
    }
    assert!(!folder.path().join("tagger").exists());
}

#[test]
fn force_does_not_replace_what_the_command_reads() {
    let folder = prepared();
    let path = folder.path();
    done(path, &augment_into("more", "--method label-wise"));
    let read = || fs::read(path.join("more/train.augmented.conll")).unwrap();
    let before = read();
    let again = augment_into("more", "--method label-wise --force")
        .replace("augment train.conll", "augment more/train.augmented.conll");
    let messages = refused(path, &again);
    let wanted = "`--force` would replace `more/train.augmented.conll`, which this command reads";
    assert!(messages.contains(wanted), "{messages}");
    assert_eq!(read(), before);
    done(path, &augment_into("more", "--method label-wise --force"));
    let messages = refused(path, &train_into("model", "--updates 1 --force"));
    assert!(messages.contains("`--force` would replace `model`"), "{messages}");
}

#[test]
fn standard_input_is_read_once() {
    let folder = folder();
    for command in [
        "filter - - --tagger model -o out.jsonl",
        "train - --dev - -o out --model model",
        "finetune - --dev - -o out --model model",
        "trial - --dev - --model model",
    ] {
        let messages = refused(folder.path(), command);
        assert!(messages.contains("only one of the files can be standard input"), "{messages}");
    }
    assert!(!folder.path().join("out.jsonl").exists());
}

/// A trial without `-o` would lose its result after hours.
#[cfg(unix)]
#[test]
fn a_trial_with_a_closed_standard_output_does_not_start() {
    let folder = folder();
    let line = "$MELM trial train.conll --model model --folds 2 --seeds 1 --updates 1 >&-";
    let mut command = std::process::Command::new("sh");
    command.args(["-c", line]).env("MELM", env!("CARGO_BIN_EXE_melm"));
    let output = command.current_dir(folder.path()).output().unwrap();
    let messages = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{messages}");
    assert!(messages.contains("cannot write `standard output`: it is closed"), "{messages}");
    assert!(!messages.contains("cross-validating"), "{messages}");
}

#[test]
fn tag_ends_with_a_summary() {
    let folder = tiny_folder();
    done(folder.path(), &train_into("tagger", "--epochs 30"));
    let messages = done(folder.path(), "tag tagger train.conll -o out.conll");
    let tagged = fs::read_to_string(folder.path().join("out.conll")).unwrap();
    let mentions = |name: &str| tagged.matches(&format!("B-{name}")).count();
    let (n_loc, n_per) = (mentions("LOC"), mentions("PER"));
    assert!(n_loc > 0 && n_per > 0, "{tagged}");
    let n = n_loc + n_per;
    let wanted =
        format!("tagged 4 sentences, 21 tokens, {n} mentions (LOC {n_loc}, PER {n_per}) in ");
    assert!(messages.lines().last().unwrap().starts_with(&wanted), "{messages}");
    fs::write(folder.path().join("in.txt"), "Ada wrote in London.\nBonn is not Berlin at all.\n")
        .unwrap();
    let messages = done(folder.path(), "tag tagger in.txt --plain -o out.jsonl");
    assert!(messages.contains("tagged 2 sentences, 12 tokens, "), "{messages}");
    assert_eq!(done(folder.path(), "tag tagger train.conll -o quiet.conll -q"), "");
    // A sentence that is longer than the model is counted.
    let long: String = (0..100).map(|n| format!("word{n}\n")).collect();
    fs::write(folder.path().join("long.conll"), long + "\n").unwrap();
    let messages = done(folder.path(), "tag tagger long.conll --format conll -o long.out.conll");
    assert!(messages.contains("1 of 1 sentence longer than the model's input"), "{messages}");
    assert!(messages.contains("tagged 1 sentence, 100 tokens, "), "{messages}");
}

#[test]
fn augment_says_how_large_its_stages_are() {
    let folder = folder();
    fs::write(folder.path().join("fast.toml"), FAST).unwrap();
    let messages = done(
        folder.path(),
        &augment_into("out", "--set finetune.freeze=[] --set tagger.freeze=[]"),
    );
    let line = messages.lines().find(|line| line.starts_with("`out/.stages` takes ")).unwrap();
    let megabytes: f64 = line.split(' ').nth(2).unwrap().parse().unwrap();
    let mut n_bytes = 0;
    for stage in ["finetune", "judge"] {
        n_bytes +=
            fs::metadata(folder.path().join("out/.stages").join(stage).join("done.safetensors"))
                .unwrap()
                .len();
    }
    assert!(megabytes >= (n_bytes / 1_000_000) as f64 && n_bytes > 1_000_000, "{line}: {n_bytes}");
}

/// Returns sentences with this many entity types.
fn with_types(n: usize) -> String {
    (0..n).fold(String::new(), |mut text, at| {
        write!(text, "Ada B-T{at}\nsang O\n\n").unwrap();
        text
    })
}

#[test]
fn many_entity_types_have_an_estimate_and_a_limit() {
    let folder = prepared();
    let path = folder.path().join("many.conll");
    let augment = "augment many.conll -o out --model model --config fast.toml --dry-run";
    fs::write(&path, with_types(9)).unwrap();
    assert!(!done(folder.path(), augment).contains("entity types make"));
    fs::write(&path, with_types(3_000)).unwrap();
    let messages = done(folder.path(), augment);
    // 6,001 tags have 36,012,001 pairs, and a pair takes 37 bytes, and 8 for each of two tokens.
    let wanted = "warning: 3000 entity types make 6001 tags in IOB2: their transitions take about 1.8 GiB of memory and ";
    assert!(messages.contains(wanted), "{messages}");
    assert!(messages.contains("ms for each token of a training step on one core"), "{messages}");
    let (_, estimate) = messages.rsplit_once(" and ").unwrap();
    assert!(estimate.starts_with("1.8 GiB of memory; stopped because"), "{messages}");
    fs::write(&path, with_types(8_192)).unwrap();
    let messages = refused(folder.path(), "train many.conll -o tagger --model model --updates 1");
    let wanted = "8192 entity types make 16385 tags in IOB2, and a tagger has at most 16384";
    assert!(messages.contains(wanted), "{messages}");
}

/// Covers `melm::error::TokenizerKind`.
#[test]
fn a_damaged_charsmap_is_refused_without_a_panic() {
    let folder = folder();
    let path = folder.path().join("model/tokenizer.json");
    let whole: serde_json::Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    let table = whole["normalizer"]["normalizers"][0]["precompiled_charsmap"].as_str().unwrap();
    let mut tables = vec!["BAAAAP////8=".to_owned(), "AAAA".to_owned()];
    // The first is cut within its texts, which makes positions of texts wrong. In the others, units of the trie are changed.
    tables.push(table[..table.len() / 2].to_owned());
    for at in [8, 3_000, 100_000] {
        let mut damaged = table.to_owned();
        damaged.replace_range(at..at + 400, &"/".repeat(400));
        tables.push(damaged);
    }
    let mut n_refused = 0;
    for table in tables {
        let mut damaged = whole.clone();
        damaged["normalizer"]["normalizers"][0]["precompiled_charsmap"] = table.into();
        fs::write(&path, damaged.to_string()).unwrap();
        let output = run(folder.path(), &train_into("tagger", "--updates 1 --force"));
        let messages = String::from_utf8(output.stderr).unwrap();
        assert!(!messages.contains("panicked"), "{messages}");
        n_refused +=
            usize::from(messages.contains("a damaged normalization table is not supported"));
    }
    assert!(n_refused >= 4, "only {n_refused} were refused");
}

/// Tagging and the panel of `pick` can take hours.
#[test]
fn an_output_that_cannot_be_written_is_refused_before_tagging_and_picking() {
    let folder = prepared();
    let path = folder.path();
    done(path, &train_into("tagger", "--updates 2"));
    done(path, "convert train.conll --to brat -o brat");
    fs::write(path.join("text.txt"), "Ada sang.\nIda lived in Bonn.\n").unwrap();
    fs::write(path.join("mine.txt"), "mine").unwrap();
    let pick = "pick text.txt --train train.conll --model model --config fast.toml";
    for (args, wanted) in [
        ("tag tagger train.conll --to doccano -o nodir/x.jsonl", "create the folder first"),
        ("tag tagger text.txt --plain -o nodir/x.conll", "create the folder first"),
        ("tag tagger brat.ann", "cannot be written to a stream"),
        ("tag tagger text.txt --plain --to brat -o mine", "`mine.txt` exists already"),
        (&format!("{pick} --to brat"), "cannot be written to a stream"),
        (&format!("{pick} --to brat -o mine"), "`mine.txt` exists already"),
        (&format!("{pick} -o nodir/x.conll"), "create the folder first"),
    ] {
        let messages = refused(path, args);
        assert!(messages.contains(wanted), "{args}: {messages}");
        let has_started = ["tagging ", "picking "].iter().any(|verb| messages.contains(verb));
        assert!(!has_started, "{args}: {messages}");
    }
    assert_eq!(fs::read_to_string(path.join("mine.txt")).unwrap(), "mine");
}

#[test]
fn an_output_folder_that_is_a_file_is_refused() {
    let folder = prepared();
    let train = fs::read_to_string(folder.path().join("train.conll")).unwrap();
    for args in [
        train_into("train.conll", "--updates 2"),
        train_into("train.conll", "--updates 2 --force"),
        augment_into("train.conll", "--method gold"),
    ] {
        let messages = refused(folder.path(), &args);
        assert!(messages.contains("cannot write `train.conll`: not a directory"), "{messages}");
        assert!(messages.contains("choose another folder"), "{messages}");
    }
    assert_eq!(fs::read_to_string(folder.path().join("train.conll")).unwrap(), train);
}

#[test]
fn a_number_that_is_read_as_a_file_is_explained() {
    let folder = prepared();
    let messages = refused(folder.path(), &augment_into("out", "--check-gold 4"));
    assert!(messages.contains("several files need a language each"), "{messages}");
    assert!(messages.contains("`--check-gold=4`"), "{messages}");
    let messages = refused(folder.path(), &augment_into("out", "train.conll"));
    assert!(!messages.contains("--check-gold"), "{messages}");
}

#[test]
fn a_dry_run_without_models_has_no_estimate() {
    let folder = prepared();
    let messages = done(folder.path(), &augment_into("out", "--method gold --dry-run"));
    assert!(messages.contains("no model is trained or used; stopped because"), "{messages}");
    assert!(!messages.contains("-0 s"), "{messages}");
}
