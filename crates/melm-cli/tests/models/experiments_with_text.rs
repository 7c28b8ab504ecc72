//! `reproduce` and `trial` with unlabelled text.

use std::fs;

use serde_json::Value;

use crate::reproduce::{GRID, args, experiment_folder, ledger};
use crate::support::{TRAIN, done, tiny_folder};

#[test]
fn a_grid_with_text_labels_the_rest_of_the_training_file() {
    let folder = experiment_folder();
    let text = "methods = [\"gold\", \"label-wise\"]\ntexts = [\"none\", \"1\", \"de 2\"]\nvariants = [\"base\"]";
    let grid = GRID
        .replace("methods = [\"gold\", \"gold-duplicated\", \"label-wise\", \"melm\"]", text)
        .replace("budgets = [\"1 epoch\", \"4 updates\"]", "budgets = [\"4 updates\"]")
        .replace("sizes = [3]", "sizes = [2]")
        .replace("languages = [\"en\", \"de\"]", "languages = [\"en\"]")
        .replace(
            "[plan]",
            "[plan]\nself_training.panel = 2\nself_training.budget = \"8 updates\"\nself_training.votes = 0.6",
        )
        + "[[grid]]\nlanguages = [\"en\"]\nsizes = [2]\ndraws = [1]\nseeds = [1]\nmethods = [\"gold-ensemble\"]\n\
           budgets = [\"4 updates\"]\n[variants.base]\n";
    fs::write(folder.path().join("grid.toml"), grid).unwrap();
    for language in ["en", "de"] {
        // Sentences of dev and test sets are left out of the text, so these sets have others than TRAIN.
        for split in ["dev", "test"] {
            let other = "Alan B-PER\nTuring I-PER\nran O\nin O\nBonn B-LOC\n\nHe O\nwon O\n\n";
            let path = folder.path().join(format!("data/{language}/{split}.conll"));
            fs::write(path, other).unwrap();
        }
    }
    let messages = done(folder.path(), &args("out", "--test"));
    // Two draws of gold and label-wise with three texts, and one ensemble.
    assert!(messages.contains("13 cells run"), "{messages}");
    let lines = ledger(&folder.path().join("out/ledger.jsonl"));
    let find = |method: &str, text: &str| {
        let is_own = |line: &&Value| {
            line["method"] == method && line.get("text").map_or(text == "none", |own| own == text)
        };
        lines.iter().find(is_own).unwrap()
    };
    assert!(find("gold", "none").get("labelled").is_none());
    for (text, n_text) in [("1", 1), ("de 2", 2)] {
        let line = find("label-wise", text);
        let last = line["labelled"]["passes"].as_array().unwrap().last().unwrap();
        assert_eq!(last["sentences"], n_text, "{line}");
        assert_eq!(line["labelled"]["kept"]["sentences"], last["kept"]);
        // The two gold sentences of this language are not drawn as text. The German file has the same sentences.
        assert_eq!(line["labelled"]["left_out"], 2);
        assert!(line["data"].get(if text == "1" { "text of en" } else { "text of de" }).is_some());
    }
    assert_eq!(find("gold-ensemble", "none")["updates"], 8);
    let table = fs::read_to_string(folder.path().join("out/table.md")).unwrap();
    assert!(
        table.contains("| label-wise + text de 2 |") && table.contains("| to text |"),
        "{table}"
    );
    // The lines are read back: nothing is left to run.
    let again = done(folder.path(), &args("out", "--test"));
    assert!(again.contains("0 cells run, 13 already in the ledger"), "{again}");
}

#[test]
fn a_trial_compares_with_unlabelled_text() {
    let folder = tiny_folder();
    let more: String = (0..3).map(|_| TRAIN).collect();
    fs::write(folder.path().join("train.conll"), more).unwrap();
    let text = "Ada Lovelace saw Bonn.\nKonrad Zuse saw London.\n";
    fs::write(folder.path().join("text.txt"), text).unwrap();
    fs::write(folder.path().join("held-out.txt"), "Konrad Zuse saw London.\n").unwrap();
    let args = "trial train.conll --model model --folds 2 --seeds 1 --updates 3 --methods label-wise --unlabelled text.txt \
                --set self_training.panel=2 --set self_training.budget=3~updates";
    let trial = |more: &str| {
        let all = format!("{args} {more}");
        let all: Vec<_> = all.split_whitespace().map(|arg| arg.replace('~', " ")).collect();
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_melm"));
        let output = command.args(&all).current_dir(folder.path()).output().unwrap();
        let [out, messages] = [output.stdout, output.stderr].map(|b| String::from_utf8(b).unwrap());
        assert!(output.status.success(), "{messages}");
        (out, messages)
    };
    let (out, messages) = trial("--held-out held-out.txt");
    assert!(messages.contains("1 sentence of unlabelled text; 1 left out"), "{messages}");
    assert!(out.contains("| gold + text |") && out.contains("| label-wise + text"), "{out}");
    let (json, _) = trial("--json");
    let found: Value = serde_json::from_str(&json).unwrap();
    assert!(found.get("label-wise + text").is_some() && found.get("gold + text").is_some());
}
