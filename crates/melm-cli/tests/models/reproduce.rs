//! `reproduce` and `trial` on tiny grids.

use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::support::{TRAIN, done, run, tiny_folder};

pub(crate) const GRID: &str = r#"
files = "{language}/{split}.conll"
transfer.en = ["de"]
evaluations = 2
[plan]
tagger.budget = "4 updates"
tagger.learning_rate = 0.01
finetune.budget = "1 epoch"
generate.rounds = 1
filter.mode = "off"
[[grid]]
languages = ["en", "de"]
sizes = [3]
draws = [1, 2]
seeds = [1]
methods = ["gold", "gold-duplicated", "label-wise", "melm"]
budgets = ["1 epoch", "4 updates"]
[paper]
3.melm = { en = 12.34 }
"#;

/// A line of the grid that is only valid with English taggers.
const TRANSFER: &str = r#"transfer.en = ["de"]"#;

/// Returns a folder with a tiny model, data of two languages and a grid, but no test sets.
pub(crate) fn experiment_folder() -> tempfile::TempDir {
    let folder = tiny_folder();
    for language in ["en", "de"] {
        fs::create_dir_all(folder.path().join("data").join(language)).unwrap();
        for split in ["train", "dev"] {
            fs::write(folder.path().join(format!("data/{language}/{split}.conll")), TRAIN).unwrap();
        }
    }
    fs::write(folder.path().join("grid.toml"), GRID).unwrap();
    folder
}

pub(crate) fn args(out: &str, more: &str) -> String {
    format!("reproduce mono --config grid.toml --data data --model model -o {out} {more}")
}

pub(crate) fn ledger(path: &Path) -> Vec<Value> {
    let text = fs::read_to_string(path).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Returns keys and scores. Leaves out times, which differ between runs.
fn scores(path: &Path) -> Vec<(String, Value, Value)> {
    let line = |line: Value| (line["key"].to_string(), line["dev"].clone(), line["test"].clone());
    let mut scores: Vec<_> = ledger(path).into_iter().map(line).collect();
    scores.sort_by(|a, b| a.0.cmp(&b.0));
    scores
}

#[test]
fn a_grid_is_run_once_in_any_order_and_tests_are_scored_on_request() {
    let folder = experiment_folder();
    let at = |name: &str| folder.path().join(name);
    let messages = done(folder.path(), &args("one", ""));
    assert!(messages.contains("32 cells with model, dev sets only"), "{messages}");
    assert!(messages.contains("32 cells run"), "{messages}");
    let table = fs::read_to_string(at("one/table.md")).unwrap();
    assert!(table.contains("### Monolingual, dev F1, 1 epoch"), "{table}");
    assert!(table.contains("### Monolingual, dev F1, 4 updates"), "{table}");
    // The paper's value is for the test set, so it is not in the dev table.
    assert!(table.contains("| 3 | melm |") && !table.contains("12.34"), "{table}");
    let lines = ledger(&at("one/ledger.jsonl"));
    assert_eq!(lines.len(), 32);
    assert!(lines.iter().all(|line| line["test"].is_null()));
    let melm = lines.iter().find(|line| line["method"] == "melm").unwrap();
    assert!(at(&format!("one/plans/{}.toml", melm["plan"].as_str().unwrap())).exists());
    assert!(melm["drafts"]["drafts"].as_u64().unwrap() > 0);
    let twice = lines.iter().find(|line| line["method"] == "gold-duplicated").unwrap();
    assert_eq!(twice["n_train"], 6);

    // No cell is run again, except one whose ledger line is incomplete.
    let messages = done(folder.path(), &args("one", ""));
    assert!(messages.contains("0 cells run, 32 already in the ledger"), "{messages}");
    let text = fs::read_to_string(at("one/ledger.jsonl")).unwrap();
    fs::create_dir(at("killed")).unwrap();
    fs::write(at("killed/ledger.jsonl"), &text[..text.len() - 100]).unwrap();
    let messages = done(folder.path(), &args("killed", "--jobs 2 --keep-taggers"));
    assert!(messages.contains("1 cell run, 31 already in the ledger"), "{messages}");
    assert_eq!(scores(&at("one/ledger.jsonl")), scores(&at("killed/ledger.jsonl")));
    let kept = fs::read_dir(at("killed/taggers")).unwrap().next().unwrap().unwrap().path();
    done(folder.path(), &format!("tag {} data/en/dev.conll -o tagged.conll", kept.display()));

    // Shards and parallel jobs give the same scores.
    done(folder.path(), &args("shards", "--shard 1/2 --jobs 2"));
    done(folder.path(), &args("shards", "--shard 2/2"));
    let both = [1, 2].map(|i| fs::read(at(&format!("shards/ledger-{i}-of-2.jsonl"))).unwrap());
    // The table of the last shard has the cells of all shards.
    assert_eq!(fs::read(at("shards/table.md")).unwrap(), fs::read(at("one/table.md")).unwrap());
    fs::create_dir(at("joined")).unwrap();
    fs::write(at("joined/ledger.jsonl"), both.concat()).unwrap();
    assert_eq!(scores(&at("joined/ledger.jsonl")), scores(&at("one/ledger.jsonl")));
    let messages = done(folder.path(), &args("joined", ""));
    assert!(messages.contains("0 cells run, 32 already in the ledger"), "{messages}");

    // A dry run lists one cell on each line, and marks the cells that are in the ledger.
    let listed = run(folder.path(), &args("shards", "--dry-run --shard 2/2"));
    let listed = String::from_utf8(listed.stdout).unwrap();
    assert_eq!(listed.lines().count(), ledger(&at("shards/ledger-2-of-2.jsonl")).len());
    assert!(listed.lines().all(|cell| cell.ends_with(" (in the ledger)")), "{listed}");

    // Another interval between evaluations on dev changes the cells whose budget is in epochs.
    fs::write(at("every.toml"), format!("evaluate_every = 1\n{GRID}")).unwrap();
    let every = args("one", "--only draw=1").replace("grid.toml", "every.toml");
    let messages = done(folder.path(), &every);
    assert!(messages.contains("8 cells run, 8 already in the ledger"), "{messages}");

    // Cells with other settings are run.
    let messages =
        done(folder.path(), &args("one", "--set tagger.learning_rate=0.02 --only draw=1"));
    assert!(messages.contains("16 cells run"), "{messages}");

    // Without test files `--test` fails; with them the same taggers are scored.
    let refused = run(folder.path(), &args("one", "--test"));
    assert_eq!(refused.status.code(), Some(1));
    for language in ["en", "de"] {
        fs::write(at(&format!("data/{language}/test.conll")), TRAIN).unwrap();
    }
    let messages = done(folder.path(), &args("one", "--test --only draw=1"));
    assert!(messages.contains("16 cells run"), "{messages}");
    let table = fs::read_to_string(at("one/table.md")).unwrap();
    assert!(table.contains("test F1, 4 updates") && table.contains("(12.34)"), "{table}");
    // `--table-only` prints dev or test scores, as requested.
    let printed = |more: &str| {
        let output = run(folder.path(), &args("one", &format!("--table-only {more}")));
        String::from_utf8(output.stdout).unwrap()
    };
    assert!(printed("").contains(", dev F1,") && !printed("").contains(", test F1,"));
    assert!(printed("--test").contains(", test F1,") && !printed("--test").contains(", dev F1,"));
    let lines = ledger(&at("one/ledger.jsonl"));
    let tested: Vec<_> = lines.iter().filter(|line| !line["test"].is_null()).collect();
    assert_eq!(tested.len(), 16);
    for line in tested {
        let first = lines.iter().find(|other| other["key"] == line["key"]).unwrap();
        assert_eq!(line["dev"], first["dev"]);
        let n_tests = if line["language"] == "en" { 2 } else { 1 };
        assert_eq!(line["test"].as_object().unwrap().len(), n_tests);
    }
    // The table of English taggers on German comes from the same ledger.
    let cross = args("one", "--test --only draw=1").replace("mono", "cross");
    let messages = done(folder.path(), &cross);
    assert!(messages.contains("0 cells run, 16 already in the ledger"), "{messages}");
    let table = fs::read_to_string(at("one/table-cross.md")).unwrap();
    assert!(table.contains("| gold | method | en→de | mean |"), "{table}");
    // `--table-only` needs no data.
    let output = run(folder.path(), "reproduce cross --config grid.toml -o one --table-only");
    assert!(String::from_utf8(output.stdout).unwrap().contains("en→de"));
}

#[test]
fn a_cell_equals_the_result_of_the_single_commands() {
    let folder = experiment_folder();
    let grid = GRID.replace("\"1 epoch\", ", "\"25 epochs\", ");
    fs::write(folder.path().join("grid.toml"), grid).unwrap();
    let only = "--only draw=2 --only language=en --only method=gold,label-wise";
    done(folder.path(), &args("out", only));
    done(folder.path(), "sample data/en/train.conll --size 3 --seed 2 -o train.conll --force");
    done(folder.path(), "sample data/en/dev.conll --size 3 --seed 2 -o dev.conll");
    let plan = "--dev dev.conll --model model --seed 1 --set tagger.learning_rate=0.01 \
                --set generate.rounds=1 --set filter.mode=off";
    done(folder.path(), &format!("augment train.conll --method label-wise -o more {plan}"));
    for (method, train) in [("gold", "train.conll"), ("label-wise", "more/train.augmented.conll")] {
        done(folder.path(), &format!("train {train} --epochs 25 -o {method} {plan}"));
        done(folder.path(), &format!("tag {method} dev.conll -o {method}.conll"));
        let score = run(folder.path(), &format!("score dev.conll {method}.conll --json"));
        let score: Value = serde_json::from_slice(&score.stdout).unwrap();
        let lines = ledger(&folder.path().join("out/ledger.jsonl"));
        let is_it = |line: &&Value| line["method"] == method && line["budget"] == "25 epochs";
        let f1 = lines.iter().find(is_it).unwrap()["dev"]["f1"].as_f64().unwrap();
        let expected = 100.0 * score["f1"].as_f64().unwrap();
        assert!(f1 > 0.0 && (f1 - expected).abs() < 0.006, "{method}: {f1}, expected {expected}");
    }
}

#[test]
fn variants_share_cells_that_they_do_not_change() {
    let folder = experiment_folder();
    let grid = GRID.to_owned() + "[variants]\nfew.generate.rounds = 1\nmany.generate.rounds = 2\n";
    fs::write(folder.path().join("grid.toml"), grid).unwrap();
    let messages = done(folder.path(), &args("out", "--only draw=1 --only language=en"));
    // Of 2 x 4 x 2 cells, the two budgets of gold have the same result in both variants.
    assert!(messages.contains("14 cells run, 2 the same as another cell"), "{messages}");
    let table = fs::read_to_string(folder.path().join("out/table.md")).unwrap();
    assert!(table.contains("| to few |"), "{table}");
    assert_eq!(ledger(&folder.path().join("out/ledger.jsonl")).len(), 16);
}

/// Covers `melm-eval::error::FilterValue`, `melm-eval::error::NoDataFile` and `melm-eval::error::NoLedger`, among others.
#[test]
fn mistakes_are_reported_before_anything_is_run() {
    let folder = experiment_folder();
    for (args, code, expected) in [
        ("reproduce mono -o out", 2, "needs data"),
        (
            "reproduce mono --config grid.toml --data nowhere -o out --model model",
            1,
            "the grid needs `nowhere/de/train.conll`",
        ),
        (
            &*args("out", "--only method=gold,mlem"),
            2,
            "no cell has the method `mlem`: there are `gold`, `gold-duplicated`",
        ),
        (&*args("out", "--table-only"), 1, "there is no ledger in `out`"),
        (&*args("out", "").replace("mono", "cross"), 2, "`--test`"),
        (
            "reproduce rounds --smoke -o out",
            2,
            "`--smoke` supports only mono, costs, predictions and entities",
        ),
        (&*args("out", "").replace("mono", "multi"), 2, "taggers of several languages"),
        (&*args("out", "--only method=gold").replace("mono", "costs"), 2, "the method melm with"),
        (&*args("out", "").replace("mono", "costs-multi"), 2, "the method melm-codemix"),
        (&*args("out", "--test --only language=de").replace("mono", "cross"), 2, "transfer.en"),
        (&*args("out", "--test").replace("mono", "entities"), 2, "do not support"),
        (&*args("out", "--table-only").replace("mono", "predictions"), 2, "does not support"),
        (&*args("out", "--table-only").replace("mono", "entities"), 1, "there is no ledger"),
        (
            "trial train.conll --model model --folds 2 --methods codemix-random",
            2,
            "mixes languages",
        ),
        ("trial en=train.conll --model model", 2, "pass the file without `LANG=`"),
        (&*args("out", "--set tagger.buget=3"), 2, "did you mean `tagger.budget`?"),
        ("reproduce table1 -o out", 2, "expected one of mono, cross, multi"),
    ] {
        let output = run(folder.path(), args);
        let messages = String::from_utf8(output.stderr).unwrap();
        assert!(messages.contains(expected), "{args}: {messages}");
        assert_eq!(output.status.code(), Some(code), "{args}: {messages}");
        assert!(!folder.path().join("out").exists(), "{args}");
    }
    for (from, to, code, expected) in [
        ("sizes = [3]", "sizes = [99]", 1, "asks for 99 sentences; `data/de/train.conll` has 4"),
        ("sizes = [3]", "sizes = [0]", 2, "`sizes` has a 0"),
        ("draws = [1, 2]", "draws = []", 2, "`draws` of a block is empty"),
        (r#"["en", "de"]"#, r#"["en+en"]"#, 2, "`en+en` names a language twice"),
        (r#"["en", "de"]"#, r#"["de"]"#, 2, "`transfer.en`: no block has a tagger for en"),
        ("{language}/", "", 2, "`files` must contain `{language}`"),
        ("{language}", "{lang}", 2, "only `{language}` and `{split}` can be used"),
    ] {
        assert!(GRID.contains(from), "{from}");
        fs::write(folder.path().join("grid.toml"), GRID.replace(from, to)).unwrap();
        let output = run(folder.path(), &args("out", ""));
        let messages = String::from_utf8(output.stderr).unwrap();
        assert!(messages.contains(expected), "{to}: {messages}");
        assert_eq!(output.status.code(), Some(code), "{to}: {messages}");
        assert!(!folder.path().join("out").exists(), "{to}");
    }
    // If cells draw all sentences, every draw is the same.
    fs::write(folder.path().join("grid.toml"), GRID.replace("sizes = [3]", "sizes = [4]")).unwrap();
    let messages = done(folder.path(), &args("out", "--dry-run"));
    assert!(messages.contains("each of the 2 draws contains all of them"), "{messages}");
    assert!(!folder.path().join("out").exists());
}

#[test]
fn code_mixing_is_compared_on_joined_languages() {
    let folder = experiment_folder();
    let grid = GRID
        .replace(r#"["en", "de"]"#, r#"["en+de"]"#)
        .replace(
            r#""label-wise", "melm"]"#,
            r#""lwtr", "codemix-random", "codemix-ess", "melm-codemix"]"#,
        )
        .replace("draws = [1, 2]", "draws = [1]")
        .replace(TRANSFER, "");
    fs::write(folder.path().join("multi.toml"), grid).unwrap();
    let mixed = TRAIN.replace("Berlin", "Wien").replace("Bonn", "Köln").replace("Ada", "Ida");
    fs::write(folder.path().join("data/de/train.conll"), mixed).unwrap();
    let args = "reproduce multi --config multi.toml --data data --model model -o out";
    let refused = run(folder.path(), args);
    assert_eq!(refused.status.code(), Some(1));
    let messages = String::from_utf8(refused.stderr).unwrap();
    assert!(messages.contains("the language `en` has no word vectors"), "{messages}");
    done(folder.path(), &format!("{args} --only method=gold,codemix-random"));
    let messages = done(folder.path(), &format!("{args} --vectors pieces"));
    assert!(messages.contains("8 cells run, 4 already in the ledger"), "{messages}");
    let table = fs::read_to_string(folder.path().join("out/table-multi.md")).unwrap();
    for method in ["lwtr", "codemix-random", "codemix-ess", "melm-codemix"] {
        assert!(table.contains(&format!("| {method} |")), "{table}");
    }
    let lines = ledger(&folder.path().join("out/ledger.jsonl"));
    let of = |method: &str| lines.iter().find(|line| line["method"] == method).unwrap().clone();
    // Six sentences: codemix-ess makes one draft of each, melm-codemix three.
    assert_eq!(of("codemix-ess")["drafts"]["drafts"], 6);
    assert_eq!(of("melm-codemix")["drafts"]["drafts"], 18);
    // The costs of the multilingual method come from the same ledger.
    let messages =
        done(folder.path(), &format!("{args} --vectors pieces").replace("multi ", "costs-multi "));
    assert!(messages.contains("0 cells run, 12 already in the ledger"), "{messages}");
    let table = fs::read_to_string(folder.path().join("out/table-costs-multi.md")).unwrap();
    assert!(table.contains("### Costs of melm-codemix") && table.contains("| en+de |"), "{table}");
}

#[test]
fn a_trial_gives_a_verdict_and_continues_where_it_stopped() {
    let folder = tiny_folder();
    let more: String = (0..3).map(|_| TRAIN).collect();
    fs::write(folder.path().join("train.conll"), more).unwrap();
    let args = "trial train.conll --model model --folds 3 --seeds 1 --updates 3 \
                --set generate.rounds=1 --set finetune.budget=1_epoch -o out";
    let args: Vec<_> = args.split_whitespace().map(|arg| arg.replace('_', " ")).collect();
    let trial = || {
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_melm"));
        let output = command.args(&args).current_dir(folder.path()).output().unwrap();
        let messages = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.success(), "{messages}");
        (messages, String::from_utf8(output.stdout).unwrap())
    };
    let (messages, out) = trial();
    // On a CPU, gold is compared with label-wise and melm-both.
    assert!(
        messages.contains(
            "cross-validating 12 sentences of `train.conll` with 3 folds, 1 seed, 3 updates each: 9 cells"
        ),
        "{messages}"
    );
    assert!(out.contains("| gold |") && out.contains("| melm-both"), "{out}");
    // After so few updates all taggers of a fold score the same, which says nothing about smaller differences.
    assert!(!out.contains("differences of 0.0 points"), "{out}");
    assert!(
        ["use melm-both", "do not use melm-both", "no verdict", "augmentation helps"]
            .iter()
            .any(|v| out.contains(v)),
        "{out}"
    );
    assert_eq!(ledger(&folder.path().join("out/ledger.jsonl")).len(), 9);
    assert_eq!(trial().1, out);
    assert_eq!(ledger(&folder.path().join("out/ledger.jsonl")).len(), 9);
    let few = run(folder.path(), "trial train.conll --model model --folds 9");
    assert_eq!(few.status.code(), Some(2));
    assert!(String::from_utf8(few.stderr).unwrap().contains("too few sentences for 9 folds"));
}

#[test]
fn a_model_without_a_masked_lm_head_is_refused_before_anything_is_trained() {
    let folder = experiment_folder();
    let path = folder.path();
    crate::families::remove_head(path);
    let out = args("out", "");
    for command in
        [out.as_str(), "trial train.conll --folds 2 --seeds 1 --updates 4 --model model -o out"]
    {
        let output = run(path, command);
        let messages = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{command}: {messages}");
        assert!(messages.contains("has no masked-LM head"), "{command}: {messages}");
        assert!(!path.join("out").exists(), "{command}");
    }
    // Methods that fill no masks need no head.
    let grid = GRID.replace(", \"melm\"]", "]");
    fs::write(path.join("grid.toml"), grid.replace("3.melm", "3.gold")).unwrap();
    done(path, &out);
}
