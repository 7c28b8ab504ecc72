//! `melm augment`: its output, and the inputs it refuses.

use std::fs;
use std::path::Path;
use std::time::SystemTime;

use serde_json::Value;

use crate::drafts::{
    assert_explained, assert_tags_unchanged, content, kept, read, sentences, to_text,
};
use crate::support::{TRAIN, assert_same, done, melm, results, run, tiny_folder};

/// Settings with which the judge fits the few sentences perfectly, within a second.
pub(crate) const FAST: &str = "\
[finetune]\nbudget = '4 epochs'\nbatch_size = 2\nlearning_rate = 0.01\n\
[tagger]\nbudget = '40 epochs'\nbatch_size = 4\nlearning_rate = 0.02\nevaluate_every = 20\n";

pub(crate) fn prepared() -> tempfile::TempDir {
    let folder = tiny_folder();
    fs::write(folder.path().join("fast.toml"), FAST).unwrap();
    folder
}

pub(crate) fn augment_into(out: &str, more: &str) -> String {
    format!(
        "augment train.conll --dev train.conll -o {out} --model model --config fast.toml {more}"
    )
}

/// Options that skip fine-tuning and judging, for tests that only look at the files.
fn guess_into(out: &str, file: &str) -> String {
    format!(
        "augment {file} -o {out} --model model --config fast.toml --method mlm-entity \
         --set filter.mode=off --rounds 2"
    )
}

fn augmented(folder: &Path, name: &str) -> String {
    fs::read_to_string(folder.join(name)).unwrap()
}

fn funnel(dir: &Path) -> Value {
    let record = fs::read_to_string(dir.join("run.json")).unwrap();
    serde_json::from_str::<Value>(&record).unwrap()["drafts"].clone()
}

#[test]
fn the_output_is_gold_then_kept_drafts_and_verdicts_are_explained() {
    let folder = prepared();
    let plain = "Nobody O\nspoke O\n\n";
    fs::write(folder.path().join("train.conll"), format!("{TRAIN}{plain}")).unwrap();
    // The judge of so few sentences rejects every draft of whole words.
    let more = "--method melm --rounds 4 --set generate.whole_words=false";
    let messages = done(folder.path(), &augment_into("out", more));
    assert!(messages.contains("1 of 5 sentences without a mention: no drafts made"), "{messages}");
    let dir = folder.path().join("out");
    let mut names: Vec<_> = results(&dir).into_iter().map(|(name, _)| name).collect();
    names.retain(|name| !name.starts_with(".stages/"));
    assert_eq!(
        names,
        ["README.md", "drafts.jsonl", "metrics.jsonl", "plan.toml", "train.augmented.conll"]
    );

    let gold = sentences(&format!("{TRAIN}{plain}"));
    let drafts = read(&dir.join("drafts.jsonl"));
    assert_eq!(drafts.len(), 4 * 4);
    assert_explained(&drafts, &gold);
    assert_tags_unchanged(&drafts, &gold);
    let kept = kept(&drafts);
    assert!(!kept.is_empty() && kept.len() < drafts.len(), "{drafts:?}");
    let expected = format!("{TRAIN}{plain}{}", to_text(&kept));
    assert_eq!(augmented(&dir, "train.augmented.conll"), expected);

    let funnel = funnel(&dir);
    let n = |key: &str| usize::try_from(funnel[key].as_u64().unwrap()).unwrap();
    assert_eq!((n("drafts"), n("kept")), (drafts.len(), kept.len()));
    let repeats = n("repeat_source") + n("repeat_gold") + n("repeat_draft");
    let repeats = repeats + funnel["repeat_token"].as_u64().map_or(0, |_| n("repeat_token"));
    assert_eq!(n("drafts"), repeats + n("disagrees") + n("unlikely") + n("kept"));
    assert!(messages.contains(&format!("kept {:>26}", n("kept"))), "{messages}");
    let card = augmented(&dir, "README.md");
    let (n_gold, n_kept, n_drafts) = (gold.len(), kept.len(), drafts.len());
    for part in [
        "---\ntask_categories:\n- \"token-classification\"\n".to_owned(),
        "size_categories:\n- \"n<1K\"\n".to_owned(),
        format!("| gold: labelled by people | {n_gold} | {n_gold} |\n"),
        format!("| drafts: made from gold sentences | {n_kept} | {n_drafts} |\n"),
        format!("Together: {} sentences with ", n_gold + n_kept),
        format!("$ melm {}\n", augment_into("out", more)),
        "Licence: none is stated.".to_owned(),
    ] {
        assert!(card.contains(&part), "no `{part}` in\n{card}");
    }
    for stage in ["finetune", "judge"] {
        let metrics = augmented(&dir, "metrics.jsonl");
        assert!(metrics.contains(&format!("\"stage\":\"{stage}\"")), "{metrics}");
    }
}

#[test]
fn every_method_makes_drafts_of_its_kind() {
    let folder = prepared();
    let gold = sentences(TRAIN);
    for method in ["melm-plain", "mlm-entity"] {
        done(folder.path(), &augment_into(method, &format!("--method {method}")));
        let drafts = read(&folder.path().join(method).join("drafts.jsonl"));
        assert_eq!(drafts.len(), 3 * 4, "{method}");
        assert_explained(&drafts, &gold);
        assert_tags_unchanged(&drafts, &gold);
    }
    assert!(!folder.path().join("mlm-entity/.stages/finetune").exists());

    done(folder.path(), &augment_into("label-wise", "--method label-wise"));
    let drafts = read(&folder.path().join("label-wise/drafts.jsonl"));
    assert_explained(&drafts, &gold);
    for replaced in drafts.iter().flat_map(|draft| draft["replaced"].as_array().unwrap()) {
        let donor = &replaced["donor"];
        let at = |value: &Value| usize::try_from(value.as_u64().unwrap()).unwrap();
        let from = &gold[at(&donor["sentence"])];
        let tokens = at(&donor["tokens"]["start"])..at(&donor["tokens"]["end"]);
        assert_eq!(from.0[tokens.clone()], crate::drafts::texts(&replaced["new"]));
        assert_eq!(
            from.1[tokens.start],
            format!("B-{}", replaced["entity_type"].as_str().unwrap())
        );
    }

    // The second run reads the rounds of the first, and makes one more.
    done(folder.path(), &augment_into("lwtr", "--method lwtr --rounds 2"));
    done(folder.path(), &augment_into("lwtr", "--method lwtr"));
    let drafts = read(&folder.path().join("lwtr/drafts.jsonl"));
    assert_eq!(drafts.len(), 3 * 4);
    let mut n_outside = 0;
    for draft in &drafts {
        let at = |value: &Value| usize::try_from(value.as_u64().unwrap()).unwrap();
        let (tokens, tags) = &gold[at(&draft["source"]) - 1];
        let mut expected = tokens.clone();
        for swap in draft["swapped"].as_array().unwrap() {
            let (from, place) = (&gold[at(&swap["sentence"])], at(&swap["from"]));
            let token = at(&swap["token"]);
            assert_eq!(from.1[place], tags[token]);
            n_outside += usize::from(tags[token] == "O");
            expected[token].clone_from(&from.0[place]);
        }
        assert_eq!(crate::drafts::texts(&draft["tokens"]), expected);
        assert_eq!(crate::drafts::texts(&draft["tags"]), *tags);
    }
    assert!(n_outside > 0);

    let messages = done(folder.path(), &augment_into("gold", "--method gold"));
    assert_eq!(augmented(folder.path(), "gold/train.augmented.conll"), TRAIN);
    assert_eq!(augmented(folder.path(), "gold/drafts.jsonl"), "");
    // No judge is trained if there are no drafts to judge.
    assert!(messages.contains("by gold: "), "{messages}");
    assert!(!folder.path().join("gold/.stages/judge").exists());
}

#[test]
fn the_augmented_file_has_the_format_of_the_input() {
    let folder = prepared();
    let path = folder.path();
    let columns = "# id 7\nAda\tNNP\tx\tB-PER\nsang\tVBD\ty\tO\n\nBonn\tNNP\tz\tB-LOC\n";
    fs::write(path.join("columns.conll"), columns).unwrap();
    done(path, &guess_into("columns", "columns.conll"));
    let text = augmented(path, "columns/train.augmented.conll");
    let new = text.strip_prefix(columns).unwrap().trim_start();
    assert!(!new.is_empty() && !new.contains('#'), "{text}");
    for row in new.lines().filter(|row| !row.is_empty()) {
        let columns: Vec<_> = row.split('\t').collect();
        let rest = &columns[1..];
        let known = [["NNP", "x", "B-PER"], ["VBD", "y", "O"], ["NNP", "z", "B-LOC"]];
        assert!(known.iter().any(|known| known == rest), "{text}");
    }

    let windows = TRAIN.replace('\n', "\r\n");
    fs::write(path.join("windows.conll"), &windows).unwrap();
    done(path, &guess_into("windows", "windows.conll"));
    let text = augmented(path, "windows/train.augmented.conll");
    assert!(text.starts_with(&windows) && text.len() > windows.len());
    assert_eq!(text.matches('\n').count(), text.matches("\r\n").count());

    let strings = "{\"id\": 1, \"tokens\": [\"in\", \"Bonn\"], \"ner_tags\": [\"O\", \"B-LOC\"]}\n";
    let ids = "{\"tokens\": [\"in\", \"Bonn\"], \"ner_tags\": [0, 3]}\n";
    fs::write(path.join("names.txt"), "O\nB-PER\nI-PER\nB-LOC\nI-LOC\n").unwrap();
    for (name, lines, more) in [("strings", strings, ""), ("ids", ids, "--names names.txt")] {
        fs::write(path.join(format!("{name}.jsonl")), lines).unwrap();
        done(path, &format!("{} {more}", guess_into(name, &format!("{name}.jsonl"))));
        let text = augmented(path, &format!("{name}/train.augmented.jsonl"));
        let new = text.strip_prefix(lines).unwrap();
        assert!(!new.is_empty(), "{name}");
        let gold: Value = serde_json::from_str(lines).unwrap();
        for line in new.lines() {
            let draft: Value = serde_json::from_str(line).unwrap();
            assert_eq!(draft["ner_tags"], gold["ner_tags"], "{name}");
            assert_eq!(draft["tokens"][0], "in", "{name}");
            assert_ne!(draft["tokens"][1], "Bonn", "{name}");
        }
    }
}

#[test]
fn the_same_plan_and_seed_give_the_same_bytes_with_any_number_of_threads() {
    let folder = prepared();
    done(folder.path(), &augment_into("one", "--threads 1"));
    done(folder.path(), &augment_into("two", "--threads 2"));
    let dir = |name: &str| folder.path().join(name);
    assert_same(&dir("one"), &dir("two"));
    done(folder.path(), &augment_into("other", "--seed 2"));
    assert_ne!(augmented(&dir("one"), "drafts.jsonl"), augmented(&dir("other"), "drafts.jsonl"));
    fs::rename(dir("one").join("plan.toml"), dir("plan.toml")).unwrap();
    fs::write(dir("one").join("plan.toml"), augmented(&dir("two"), "plan.toml")).unwrap();
    done(folder.path(), "augment train.conll --dev train.conll -o again --config plan.toml");
    assert_same(&dir("one"), &dir("again"));
}

/// Returns the files with their contents and modification times.
fn written(dir: &Path) -> Vec<(String, Vec<u8>, SystemTime)> {
    let when = |name: &str| fs::metadata(dir.join(name)).unwrap().modified().unwrap();
    results(dir).into_iter().map(|(name, bytes)| (name.clone(), bytes, when(&name))).collect()
}

#[test]
fn more_rounds_reuse_finished_work() {
    let folder = prepared();
    done(folder.path(), &augment_into("whole", "--rounds 3"));
    done(folder.path(), &augment_into("grown", "--rounds 2"));
    let stages = folder.path().join("grown/.stages");
    let before = written(&stages);
    let messages = done(folder.path(), &augment_into("grown", "--rounds 3"));
    assert!(messages.contains("wrote `grown/train.augmented.conll`"), "{messages}");
    let mut after = written(&stages);
    after.retain(|(name, ..)| !name.starts_with("rounds/round-3."));
    assert_eq!(before, after);
    assert_same(&folder.path().join("whole"), &folder.path().join("grown"));
    let messages = done(folder.path(), &augment_into("grown", "--rounds 3"));
    assert!(messages.contains("`grown` is already finished"), "{messages}");
    // A deleted output is written again.
    fs::remove_file(folder.path().join("grown/train.augmented.conll")).unwrap();
    done(folder.path(), &augment_into("grown", "--rounds 3"));
    assert_same(&folder.path().join("whole"), &folder.path().join("grown"));
    // A changed output file is neither accepted as the result nor overwritten.
    let path = folder.path().join("grown/train.augmented.conll");
    let edited = format!("{}Ada B-PER\n\n", fs::read_to_string(&path).unwrap());
    fs::write(&path, &edited).unwrap();
    let warning = "warning: `grown/train.augmented.conll` was changed after the run wrote it\n";
    let messages = done(folder.path(), &augment_into("grown", "--rounds 3"));
    assert!(messages.ends_with(&format!("`grown` is already finished\n{warning}")), "{messages}");
    let messages = done(folder.path(), &augment_into("grown", "--rounds 3 -q"));
    assert!(messages.ends_with(warning), "{messages}");
    let more = run(folder.path(), &augment_into("grown", "--rounds 4"));
    assert_eq!(more.status.code(), Some(1));
    let messages = String::from_utf8(more.stderr).unwrap();
    assert!(
        messages.contains("was changed after the run wrote it") && messages.contains("--force"),
        "{messages}"
    );
    assert_eq!(fs::read_to_string(&path).unwrap(), edited);
    fs::remove_file(&path).unwrap();
    done(folder.path(), &augment_into("grown", "--rounds 3"));
    fs::write(folder.path().join("whole/drafts.jsonl"), "").unwrap();
    done(folder.path(), &augment_into("whole", "--rounds 3 --force"));
    assert_same(&folder.path().join("whole"), &folder.path().join("grown"));
    let fewer = run(folder.path(), &augment_into("grown", "--rounds 1"));
    assert_eq!(fewer.status.code(), Some(1));
    assert!(String::from_utf8(fewer.stderr).unwrap().contains("has a run of more rounds"));

    // A damaged round is generated again.
    fs::write(stages.join("rounds/round-2.jsonl"), "").unwrap();
    done(folder.path(), &augment_into("grown", "--rounds 4"));
    done(folder.path(), &augment_into("four", "--rounds 4"));
    assert_same(&folder.path().join("four"), &folder.path().join("grown"));
}

#[test]
fn a_dry_run_writes_nothing_and_another_plan_needs_force() {
    let folder = prepared();
    let messages = done(folder.path(), &augment_into("out", "--dry-run"));
    assert!(messages.contains("GiB of memory; stopped because of `--dry-run`"), "{messages}");
    assert!(!folder.path().join("out").exists());

    done(folder.path(), &augment_into("out", "--method label-wise"));
    let before = written(&folder.path().join("out"));
    let other = run(folder.path(), &augment_into("out", "--method label-wise --seed 3"));
    assert_eq!(other.status.code(), Some(1));
    assert!(String::from_utf8(other.stderr).unwrap().contains("pass `--force`"));
    assert_eq!(written(&folder.path().join("out")), before);
    done(folder.path(), &augment_into("out", "--method label-wise --seed 3 --force"));
    done(folder.path(), &augment_into("afresh", "--method label-wise --seed 3"));
    assert_same(&folder.path().join("out"), &folder.path().join("afresh"));
}

#[test]
fn another_tag_column_counts_as_other_data() {
    let folder = prepared();
    fs::write(folder.path().join("two.conll"), "Ada B-PER B-ART\nsang O O\n\n").unwrap();
    let args = "augment two.conll -o out --method gold --tag-column";
    done(folder.path(), &format!("{args} 2"));
    let other = run(folder.path(), &format!("{args} 3"));
    assert!(String::from_utf8(other.stderr).unwrap().contains("pass `--force`"));
}

#[test]
fn options_print_the_record_and_keep_the_model() {
    let folder = prepared();
    let output = melm(folder.path(), &augment_into("out", "--json --keep-model")).output().unwrap();
    assert!(output.status.success());
    let record: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(record["drafts"], funnel(&folder.path().join("out")));
    for file in ["config.json", "model.safetensors", "tokenizer.json", "plan.toml"] {
        assert!(folder.path().join("out/model").join(file).exists(), "{file}");
    }
}

#[test]
fn the_default_method_adds_a_label_wise_draft_to_each_draft_of_the_model() {
    let folder = prepared();
    done(folder.path(), &augment_into("both", "--rounds 2"));
    done(folder.path(), &augment_into("melm", "--rounds 2 --method melm"));
    let drafts = |out: &str| read(&folder.path().join(out).join("drafts.jsonl"));
    let (both, melm) = (drafts("both"), drafts("melm"));
    assert_explained(&both, &sentences(TRAIN));
    let is_taken = |draft: &Value| draft["replaced"][0].get("donor").is_some();
    for pair in both.chunks(2) {
        assert_eq!(pair[0]["source"], pair[1]["source"]);
        assert!(!is_taken(&pair[0]) && is_taken(&pair[1]), "{pair:?}");
    }
    let contents = |drafts: Vec<Value>| drafts.iter().map(content).collect::<Vec<_>>();
    let models = both.into_iter().filter(|draft| !is_taken(draft)).collect();
    assert_eq!(contents(models), contents(melm));
}

#[test]
fn the_plan_can_leave_out_gold_and_copy_sentences_without_mentions() {
    let folder = prepared();
    let plain = "Nobody O\nspoke O\n\n";
    fs::write(folder.path().join("train.conll"), format!("{plain}{TRAIN}")).unwrap();
    let copied = "--method melm --set generate.without_mentions=copied --rounds 2";
    let messages =
        done(folder.path(), &augment_into("out", &format!("{copied} --set union=false")));
    assert!(messages.contains("copied, no mentions"), "{messages}");
    assert!(messages.contains("no gold sentences and "), "{messages}");
    let dir = folder.path().join("out");
    let drafts = read(&dir.join("drafts.jsonl"));
    assert_explained(&drafts, &sentences(&format!("{plain}{TRAIN}")));
    let verdicts: Vec<_> = drafts.iter().map(|draft| draft["verdict"].as_str().unwrap()).collect();
    assert_eq!((drafts.len(), verdicts[0], verdicts[5]), (2 * 5, "copied", "copied"));
    assert_eq!(funnel(&dir)["copied"], 2);
    let written = sentences(&augmented(&dir, "train.augmented.conll"));
    let wanted = drafts.iter().filter(|d| d["verdict"] == "kept" || d["verdict"] == "copied");
    assert_eq!(written, wanted.map(content).collect::<Vec<_>>());
}

#[test]
fn tokens_that_cannot_be_predicted_are_reported() {
    let folder = prepared();
    fs::write(folder.path().join("odd.conll"), "in O\nBonn B-LOC\n\nin O\n𓀀𓀁 B-LOC\n\n").unwrap();
    let messages = done(folder.path(), &guess_into("out", "odd.conll"));
    assert!(
        messages.contains("1 of 2 entity tokens unknown to the model: not replaced"),
        "{messages}"
    );
    assert!(messages.contains("repeat their source         2"), "{messages}");
}

#[test]
fn examples_show_the_source_and_its_draft() {
    let folder = prepared();
    let messages = done(folder.path(), &guess_into("out", "train.conll"));
    assert!(messages.contains("    1  [Ada Lovelace] wrote in [London] .\n    →  ["), "{messages}");
    assert_eq!(messages.matches("    1  ").count(), 1, "{messages}");
    let messages = done(folder.path(), &augment_into("other", "--method label-wise --keep-model"));
    assert!(
        messages.contains("ignoring `--keep-model`: the method label-wise fine-tunes no model"),
        "{messages}"
    );
}
