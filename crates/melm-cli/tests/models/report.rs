//! `melm report`, `melm filter --decisions` and `melm augment --check-gold`.

use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::augment::{augment_into, prepared};
use crate::drafts::read;
use crate::support::{TRAIN, assert_same, done, run, tiny_folder};

/// The numbers that `melm report --json` prints.
fn numbers(folder: &Path, dir: &str) -> Value {
    let output = run(folder, &format!("report {dir} --json"));
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// The id of a candidate on the page, by its index.
fn page_id(page: &str, at: usize) -> String {
    let (_, rest) = page.split_once("type=\"application/json\">").unwrap();
    let data: Value = serde_json::from_str(rest.split_once("</script>").unwrap().0).unwrap();
    data["items"][at][0].as_str().unwrap().to_owned()
}

#[test]
fn a_report_shows_the_run() {
    let folder = prepared();
    let path = folder.path();
    done(path, &augment_into("out", ""));
    let messages = done(path, "report out");
    assert!(messages.contains("wrote `out/report.html`: "), "{messages}");
    let lines = read(&path.join("out/drafts.jsonl"));
    let found = numbers(path, "out");
    assert_eq!(found["shown"]["total"], lines.len());
    let n_kept = lines.iter().filter(|line| line["verdict"] == "kept").count();
    let steps = found["funnels"][0]["steps"].as_array().unwrap();
    assert_eq!(steps.last().unwrap()["count"], n_kept);
    let words: Vec<_> = augment_into("out", "").split_whitespace().map(ToOwned::to_owned).collect();
    assert_eq!(found["command"], format!("melm {}", words.join(" ")));
    assert_eq!(found["is_recorded_command"], true);

    // The page exists already.
    let again = run(path, "report out");
    assert_eq!(again.status.code(), Some(1));
    done(path, "report out --force");
}

#[test]
fn decisions_of_a_report_are_applied() {
    let folder = prepared();
    let path = folder.path();
    done(path, &augment_into("out", ""));
    done(path, "report out");
    let page = fs::read_to_string(path.join("out/report.html")).unwrap();
    let [first, second] = [0, 1].map(|at| page_id(&page, at));
    let decisions = format!(
        "{{\"id\":\"{first}\",\"decision\":\"accept\"}}\n{{\"id\":\"{second}\",\"decision\":\"reject\"}}\n"
    );
    fs::write(path.join("decisions.jsonl"), decisions).unwrap();
    let filter = |drafts: &str, out: &str| {
        format!(
            "filter {drafts} train.conll --decisions decisions.jsonl -o {out} --augmented decided.conll --force"
        )
    };
    let messages = done(path, &filter("out/drafts.jsonl", "decided.jsonl"));
    assert!(
        messages.contains("1 sentence accepted") && messages.contains("1 sentence rejected"),
        "{messages}"
    );
    let (lines, decided) =
        (read(&path.join("out/drafts.jsonl")), read(&path.join("decided.jsonl")));
    assert_eq!(
        (&decided[0]["verdict"], &decided[1]["verdict"]),
        (&"accepted".into(), &"rejected".into())
    );
    // Everything else stays.
    assert_eq!(lines[2..], decided[2..]);
    let n_kept = decided.iter().filter(|line| line["verdict"] == "kept").count() + 1;
    let augmented = fs::read_to_string(path.join("decided.conll")).unwrap();
    assert_eq!(augmented.matches("\n\n").count(), TRAIN.matches("\n\n").count() + n_kept);
    // The ids do not depend on verdicts, so the decisions fit the decided drafts too.
    done(path, &filter("decided.jsonl", "again.jsonl"));
    assert_eq!(read(&path.join("again.jsonl")), decided);
}

/// Checks gold with two taggers of three updates each. Returns the messages.
fn check_gold(folder: &Path, out: &str) -> String {
    let args = "augment train.conll --model model --method gold --check-gold=2 --set tagger.budget=3~updates -o";
    let words = args.split(' ').map(|word| word.replace('~', " ")).chain([out.to_owned()]);
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_melm"));
    let output = command.args(words).current_dir(folder).output().unwrap();
    let messages = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{messages}");
    messages
}

#[test]
fn gold_is_read_by_taggers_that_were_not_trained_on_it() {
    let folder = tiny_folder();
    let path = folder.path();
    let messages = check_gold(path, "one");
    assert!(messages.contains("of 4 gold sentences may have wrong tags"), "{messages}");
    let lines = read(&path.join("one/gold.jsonl"));
    let sources: Vec<_> = lines.iter().map(|line| line["source"].as_u64().unwrap()).collect();
    assert_eq!(sources, [1, 2, 3, 4]);
    let in_first = lines.iter().filter(|line| line["fold"] == 1).count();
    assert_eq!(in_first, 2);
    assert_eq!(lines[1]["tokens"][0], "Bonn");
    assert_eq!(lines[1]["tags"][0], "B-LOC");
    for line in &lines {
        let pairs = line["tags"].as_array().unwrap().iter().zip(line["found"].as_array().unwrap());
        let n_different = pairs.filter(|(gold, found)| gold != found).count();
        let n_listed = line["disagreements"].as_array().map_or(0, Vec::len);
        assert_eq!(n_different, n_listed);
        // The tagger's tags are the most probable ones.
        assert!(line["found_probability"].as_f64() >= line["probability"].as_f64());
    }
    let few = run(path, "augment train.conll --model model --method gold --check-gold=3 -o three");
    let messages = String::from_utf8(few.stderr).unwrap();
    assert!(messages.contains("too few gold sentences for a check with 3 folds: 4"), "{messages}");
}

#[test]
fn a_check_of_gold_is_repeatable_and_has_a_report() {
    let folder = tiny_folder();
    let path = folder.path();
    check_gold(path, "one");
    check_gold(path, "two");
    assert_same(&path.join("one"), &path.join("two"));
    let found = numbers(path, "one");
    assert_eq!(found["gold_check"]["sentences"], 4);
    let charts = found["charts"].as_array().unwrap();
    assert!(charts.iter().any(|chart| chart["title"] == "Checking gold: loss"), "{charts:?}");
}

#[test]
fn a_trial_has_a_report() {
    let folder = tiny_folder();
    let path = folder.path();
    fs::write(path.join("train.conll"), TRAIN.repeat(3)).unwrap();
    let args = "trial train.conll --model model --folds 2 --seeds 1 --updates 3 --methods label-wise -o out";
    let output = run(path, args);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let printed = String::from_utf8(output.stdout).unwrap();
    let found = numbers(path, "out");
    assert_eq!(
        (&found["kind"], &found["command"]),
        (&"trial".into(), &format!("melm {args}").into())
    );
    let rows = found["tables"][0]["rows"].as_array().unwrap();
    let systems: Vec<_> = rows.iter().map(|row| row["system"].as_str().unwrap()).collect();
    assert_eq!(systems, ["gold", "label-wise"]);
    // The verdict is the one that the trial printed.
    let verdict = found["verdict"].as_str().unwrap().trim_end_matches('.');
    let rest: String = verdict.chars().skip(1).collect();
    assert!(printed.contains(&rest), "{printed}\n{verdict}");
    done(path, "report out -o page.html");
    assert!(
        fs::read_to_string(path.join("page.html"))
            .unwrap()
            .contains("Cross-validation with 2 folds")
    );
}
