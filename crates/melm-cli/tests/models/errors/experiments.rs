//! Errors in grids, ledgers and trials.

use std::fs;
use std::path::Path;

use super::{Case, check, done, nothing, write};

/// Runs the grid that [`prepare`] writes.
const RUN: &str = "reproduce mono --config grid.toml --data data --model model -o out --threads 1";

const GRID: &str = "files = '{language}/{split}.conll'\nplan.tagger.budget = '1 updates'\n[[grid]]\nlanguages = ['en']\n\
    sizes = [3]\ndraws = [1]\nseeds = [1]\nmethods = ['gold', 'label-wise']\nbudgets = ['1 updates']\n";

/// Writes a grid and its data.
fn prepare(folder: &Path) {
    write(folder, "grid.toml", GRID);
    let corpus = fs::read(folder.join("train.conll")).unwrap();
    for split in ["train", "dev"] {
        write(folder, &format!("data/en/{split}.conll"), &corpus);
    }
}

fn failing(
    variant: &'static str,
    command: &str,
    exit: i32,
    message: &'static str,
    prepare: fn(&Path),
) -> Case {
    Case { variant, prepare, command: command.to_owned(), exit, message }
}

#[test]
fn grids_without_data_or_cells_are_refused() {
    check(&[
        failing(
            "melm-eval::error::Grid",
            RUN,
            2,
            "`grid.toml`: TOML parse error at line 1",
            |folder| {
                write(folder, "grid.toml", "x = 1");
            },
        ),
        failing(
            "melm-eval::error::Grid, with a language that is a path",
            RUN,
            2,
            "`grid.toml`: the language `../other` is not a name: use letters, digits, `-` and `_`",
            |folder| {
                prepare(folder);
                write(folder, "grid.toml", GRID.replace("['en']", "['../other']"));
            },
        ),
        failing(
            "melm-eval::error::Grid, with files outside of the data folder",
            RUN,
            2,
            "`grid.toml`: `files` must be a path inside of the data folder, without `..`",
            |folder| {
                prepare(folder);
                write(folder, "grid.toml", GRID.replace("'{language}/", "'../{language}/"));
            },
        ),
        failing(
            "melm-eval::error::NoCells",
            &format!("{RUN} --only method=gold --only method=label-wise"),
            2,
            "no cell of the grid passes `--only`",
            prepare,
        ),
        failing(
            "melm-eval::error::NoDataFolder",
            &RUN.replace(" --data data", ""),
            2,
            "the grid `grid.toml` needs data; name its folder",
            prepare,
        ),
        failing(
            "melm-eval::error::TooFewSentences",
            RUN,
            1,
            "the grid asks for 300 sentences; `data/en/train.conll` has 4",
            |folder| {
                prepare(folder);
                write(folder, "grid.toml", GRID.replace("sizes = [3]", "sizes = [300]"));
            },
        ),
        failing(
            "melm-eval::error::EmptyTable",
            &RUN.replace("mono", "cross"),
            2,
            "the table `cross` scores taggers on the test sets of other languages",
            prepare,
        ),
        failing(
            "melm-eval::error::Variants",
            &RUN.replace(" --model model", ""),
            2,
            "the variants of `grid.toml` have different models; run each in a folder of its own, with `--model`",
            |folder| {
                prepare(folder);
                let variants = "variants = ['a', 'b']\n[variants]\na = { model.masked_lm = 'a' }\n\
                                b = { model.masked_lm = 'b' }\n";
                write(folder, "grid.toml", format!("{GRID}{variants}"));
            },
        ),
        failing(
            "melm-eval::error::Trial",
            "trial train.conll --folds 100 --model model",
            2,
            "too few sentences for 100 folds: 4",
            nothing,
        ),
        failing(
            "melm-eval::error::Trial, with one sentence",
            "trial one.conll --folds 2 --model model",
            2,
            "too few sentences for 2 folds: 1",
            |folder| write(folder, "one.conll", "Ada B-PER\nsang O\n\n"),
        ),
    ]);
}

#[test]
fn damaged_ledgers_are_refused() {
    check(&[
        failing(
            "melm-eval::error::FolderOfRun",
            "trial train.conll -o out --model model --folds 2 --seeds 1 --updates 1",
            1,
            "`out` is the folder of another run; choose another folder with `-o DIR`",
            |folder| write(folder, "out/.lock", ""),
        ),
        failing(
            "melm-eval::error::LedgerLine",
            RUN,
            1,
            "`out/ledger.jsonl`:1: column 2: missing field",
            |folder| {
                prepare(folder);
                write(folder, "out/ledger.jsonl", "{}\n");
            },
        ),
        failing(
            "melm-eval::error::NoLines",
            &format!("{RUN} --table-only --only method=gold --only method=label-wise"),
            2,
            "no line of the ledger passes `--only`",
            |folder| {
                prepare(folder);
                done(folder, RUN);
            },
        ),
    ]);
}

/// Covers `melm-eval::error::LedgerInUse`.
#[test]
fn a_ledger_in_use_is_refused() {
    let folder = super::tiny_folder();
    prepare(folder.path());
    write(folder.path(), "out/ledger.jsonl", "");
    let file = fs::File::open(folder.path().join("out/ledger.jsonl")).unwrap();
    file.lock().unwrap();
    let output = super::run(folder.path(), RUN);
    let messages = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{messages}");
    assert!(messages.contains("another run is writing to `out/ledger.jsonl`"), "{messages}");
}
