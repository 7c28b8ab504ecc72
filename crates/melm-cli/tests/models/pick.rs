//! `melm pick`: the formats of its output, the file of votes, and what it refuses.

use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::support::{done, melm, run, tiny_folder};

const TEXT: &str = "\
Ada Lovelace wrote in London.
Konrad Zuse wrote in Berlin.
London is not Bonn.
Grace Hopper lived in Bonn.
Ada Lovelace spoke.
";

fn with_text() -> tempfile::TempDir {
    let folder = tiny_folder();
    let settings = "[self_training]\npanel = 2\nbudget = '20 updates'\n[tagger]\nbatch_size = 4\n";
    fs::write(folder.path().join("fast.toml"), settings).unwrap();
    fs::write(folder.path().join("text.txt"), TEXT).unwrap();
    folder
}

const PICK: &str =
    "pick text.txt --train train.conll --model model --config fast.toml --device cpu";

fn lines(path: &Path) -> Vec<Value> {
    let text = fs::read_to_string(path).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn picks_are_written_in_the_format_of_train_or_for_a_tool_with_a_file_of_votes() {
    let folder = with_text();
    let at = |name: &str| folder.path().join(name);
    let messages = done(folder.path(), &format!("{PICK} -n 2 -o next.conll"));
    assert!(
        messages.contains("picking 2 of 4 sentences of `text.txt` (1 other left out"),
        "{messages}"
    );
    assert!(!at("next.conll.unfinished").exists());
    let votes = lines(&at("next.conll.pick.jsonl"));
    let ranks: Vec<_> = votes.iter().map(|line| line["rank"].as_u64().unwrap()).collect();
    assert_eq!(ranks, [1, 2]);
    let rows: Vec<String> = votes
        .iter()
        .flat_map(|line| {
            let all = |key: &str| line[key].as_array().unwrap().clone();
            let pair = |(token, tag): (Value, Value)| {
                format!("{} {}", token.as_str().unwrap(), tag.as_str().unwrap())
            };
            let rows = all("tokens").into_iter().zip(all("tags")).map(pair);
            rows.chain([String::new()]).collect::<Vec<_>>()
        })
        .collect();
    assert_eq!(fs::read_to_string(at("next.conll")).unwrap(), rows.join("\n") + "\n");
    // Existing files are kept, and the same picks are written for Label Studio.
    let refused = run(folder.path(), &format!("{PICK} -n 2 -o next.conll"));
    assert_eq!(refused.status.code(), Some(1));
    done(folder.path(), &format!("{PICK} -n 2 --to label-studio -o tasks.json"));
    let tasks: Value = serde_json::from_slice(&fs::read(at("tasks.json")).unwrap()).unwrap();
    assert_eq!(tasks.as_array().unwrap().len(), 2);
    assert!(tasks[0]["predictions"].is_array() && tasks[0].get("annotations").is_none());
    assert_eq!(lines(&at("tasks.json.pick.jsonl")), votes);
    let streamed = melm(folder.path(), &format!("{PICK} -n 2")).output().unwrap();
    assert_eq!(streamed.stdout, fs::read(at("next.conll")).unwrap());
}

#[test]
fn a_dry_run_estimates_and_known_text_is_refused() {
    let folder = with_text();
    let messages = done(folder.path(), &format!("{PICK} -o next.conll --dry-run"));
    assert!(messages.contains("training the panel"), "{messages}");
    assert!(!folder.path().join("next.conll").exists());
    fs::copy(folder.path().join("train.conll"), folder.path().join("text.txt")).unwrap();
    let output = run(folder.path(), &format!("{PICK} -o next.conll --text-format conll"));
    assert_eq!(output.status.code(), Some(1));
    let messages = String::from_utf8(output.stderr).unwrap();
    assert!(messages.contains("every sentence of the unlabelled text is also in"), "{messages}");
}

#[test]
fn a_text_with_too_few_sentences_and_one_without_a_language_are_explained() {
    let folder = with_text();
    let messages = done(folder.path(), &format!("{PICK} -n 100 -o next.conll --dry-run"));
    assert!(messages.contains("picking 4 of 4 sentences"), "{messages}");
    assert!(messages.contains("the text has fewer than 100 sentences"), "{messages}");
    let messages = done(folder.path(), &format!("{PICK} -n 4 -o next.conll --dry-run"));
    assert!(!messages.contains("the text has fewer"), "{messages}");
    let output = run(folder.path(), &PICK.replace("train.conll", "en=train.conll"));
    let messages = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{messages}");
    assert!(messages.contains("for example `en=text.txt`"), "{messages}");
    assert!(!messages.contains("--unlabelled"), "{messages}");
}
