//! The tables and figures of the paper that are not tables of methods, and a pretrained model for `MulDA`.

use std::fs;
use std::path::Path;

use melm::pieces::Tokenizer;
use melm_nn::seq2seq::{Seq2Seq, Seq2SeqConfig, StackConfig};

use crate::reproduce::{GRID, args, experiment_folder, ledger};
use crate::support::{TRAIN, done, run};

/// Returns a folder with a grid of two variants, which has every system of the analyses.
fn variants_folder() -> tempfile::TempDir {
    let folder = experiment_folder();
    let grid = GRID
        .replace("\"label-wise\", ", "\"label-wise\", \"add-entity\", \"add-context\", ")
        + "[variants]\n\"R 1\" = { generate.rounds = 1 }\n\"R 2\" = { generate.rounds = 2 }\n";
    let grid = grid.replace("sizes = [3]", "sizes = [2]");
    fs::write(folder.path().join("grid.toml"), grid).unwrap();
    folder
}

/// The arguments that make a table of the first draw.
fn first_draw(table: &str) -> String {
    args("out", "--only draw=1").replace("mono", table)
}

#[test]
fn the_analyses_run_on_any_grid() {
    let folder = variants_folder();
    let at = |name: &str| fs::read_to_string(folder.path().join("out").join(name)).unwrap();
    let args = first_draw;
    done(folder.path(), &args("rounds"));
    assert!(at("table-rounds.md").contains("| 2 | melm | R 2 |"), "{}", at("table-rounds.md"));
    assert!(at("table-rounds-dev-variants-4-updates.svg").contains("</svg>"));
    // The table shows dev sets even with `--test`.
    for language in ["en", "de"] {
        fs::write(folder.path().join(format!("data/{language}/test.conll")), TRAIN).unwrap();
    }
    let messages = done(folder.path(), &(args("rounds") + " --test --only language=de"));
    assert!(messages.contains("showing scores of the dev sets"), "{messages}");
    // A dry run lists the cells.
    let listed = run(folder.path(), &(args("entities") + " --dry-run"));
    assert!(String::from_utf8(listed.stdout).unwrap().contains("melm, 1 epoch, R 1"));
    let messages = done(folder.path(), &args("costs"));
    assert!(messages.contains("0 cells run"), "{messages}");
    assert!(at("table-costs.md").contains("| 4 updates | 2 |"), "{}", at("table-costs.md"));
    done(folder.path(), &args("add-entity"));
    let table = at("table-add-entity.md");
    assert!(
        table.contains("| 2 | add-entity |") && table.contains("| 2 | add-context |"),
        "{table}"
    );
}

#[test]
fn predictions_are_shown_beside_those_of_the_paper() {
    let folder = variants_folder();
    let at = |name: &str| fs::read_to_string(folder.path().join("out").join(name)).unwrap();
    let args = first_draw;
    done(folder.path(), &args("predictions"));
    let table = at("table-predictions.md");
    assert!(table.contains("| token | tag | model | words |"), "{table}");
    assert!(
        table.contains("| gold | model | valid | to MLM |") && table.contains("| 2 | MELM |"),
        "{table}"
    );
    // With sentences in the grid, the table shows these, and the words of the paper beside ours.
    let grid = fs::read_to_string(folder.path().join("grid.toml")).unwrap();
    let shown = "[[sentences]]\ntokens = \"near Oslo\"\ntags = \"O B-LOC\"\npaper.melm = [\"Rome, *the*\"]\n";
    fs::write(folder.path().join("shown.toml"), grid + shown).unwrap();
    done(folder.path(), &args("predictions").replace("grid.toml", "shown.toml"));
    let table = at("table-predictions.md");
    assert!(
        table.contains("near Oslo\n\n| token | tag | model | words | in the paper |"),
        "{table}"
    );
    assert!(
        table.contains(" | Rome, *the* |\n") && table.contains("| Oslo | B-LOC | MELM |"),
        "{table}"
    );
}

#[test]
fn shards_count_the_entities_of_one_run_and_count_none_twice() {
    let folder = variants_folder();
    let at = |name: &str| fs::read_to_string(folder.path().join("out").join(name)).unwrap();
    let args = first_draw;
    done(folder.path(), &args("entities"));
    let table = at("table-entities.md");
    assert!(table.contains("| 2 | melm, R 1 |") && table.contains("| 2 | melm, R 2 |"), "{table}");
    assert!(at("table-entities.svg").contains("Unique valid entities"));
    let lines = at("entities.jsonl").lines().count();
    done(folder.path(), &args("entities"));
    assert_eq!(at("entities.jsonl").lines().count(), lines);
    for shard in ["1/2", "2/2"] {
        let shard = args("entities").replace("-o out", &format!("-o shards --shard {shard}"));
        done(folder.path(), &shard);
    }
    let joined = fs::read_to_string(folder.path().join("shards/table-entities.md")).unwrap();
    assert_eq!(joined, table);
    let again = run(folder.path(), "reproduce entities -o shards --table-only");
    assert_eq!(String::from_utf8(again.stdout).unwrap(), table);
}

/// Writes the folder of a tiny random mBART.
fn write_mbart(dir: &Path) {
    let pieces = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/pieces/unigram");
    let mut tokenizer = Tokenizer::open(&pieces).unwrap();
    tokenizer.add_markers(&["en_XX", "de_DE"]).unwrap();
    tokenizer.save(dir).unwrap();
    let stack = StackConfig { n_layers: 1, n_heads: 2, inner: 32 };
    let config = Seq2SeqConfig {
        vocab_size: tokenizer.n_pieces(),
        width: 16,
        encoder: stack,
        decoder: stack,
        max_pieces: 64,
        dropout: 0.0,
        attention_dropout: 0.0,
        scales_embedding: true,
        init_std: 0.05,
        pad_id: tokenizer.specials().pad,
        eos_id: tokenizer.specials().eos,
    };
    Seq2Seq::random(&config, 3).unwrap().save(dir).unwrap();
}

const MULDA: &str = r#"
files = "{language}/{split}.conll"
[plan]
tagger.budget = "4 updates"
generate.rounds = 1
filter.mode = "off"
mulda.budget = "8 epochs"
mulda.batch_size = 2
mulda.learning_rate = 0.02
mulda.tries = 3
mulda.longest = 30
[[grid]]
languages = ["en"]
sizes = [4]
draws = [1]
seeds = [1]
methods = ["gold", "mulda"]
budgets = ["4 updates"]
[paper]
4.mulda = { en = 12.34 }
"#;

#[test]
fn grids_fine_tune_a_pretrained_mbart() {
    let folder = experiment_folder();
    let at = |name: &str| folder.path().join(name);
    write_mbart(&at("mbart"));
    fs::write(at("data/en/test.conll"), TRAIN).unwrap();
    fs::write(at("grid.toml"), MULDA).unwrap();
    fs::write(at("named.toml"), MULDA.replace("[plan]", "[plan]\nmodel.seq2seq = \"mbart\""))
        .unwrap();
    let table = || fs::read_to_string(at("out/table.md")).unwrap();
    let pretrained = args("out", "--test --mulda-model mbart");
    done(folder.path(), &pretrained);
    // The row has the name of the paper's system, and the paper's value beside ours.
    assert!(table().contains("| 4 | mulda |") && table().contains("(12.34)"), "{}", table());
    let lines = ledger(&at("out/ledger.jsonl"));
    let line = lines.iter().find(|line| line["method"] == "mulda").unwrap();
    assert_eq!(line["seq2seq"], "mbart");
    assert!(line["drafts"].is_object(), "{line}");
    assert!(lines.iter().all(|line| line["method"] == "mulda" || line["seq2seq"].is_null()));
    // The grid can name the model, too.
    let named = args("out", "--test").replace("grid.toml", "named.toml");
    assert!(done(folder.path(), &named).contains("0 cells run, 2 already in the ledger"));
    // Without a pretrained model it is another tagger, and the row says so.
    assert!(done(folder.path(), &args("out", "--test")).contains("1 cell run, 1 already"));
    assert!(table().contains("| MulDA architecture, no pretraining |"), "{}", table());
    assert!(!table().contains("(12.34)"), "{}", table());
}

/// Writes copies of the grids of `results/2026-11-17-paper` with small sizes, few draws and short budgets.
#[cfg(unix)]
fn write_small_grids(from: &Path, to: &Path) {
    const SMALLER: [(&str, &str); 14] = [
        ("[100, 200, 400, 800]", "[2, 3]"),
        ("[100, 200, 400]", "[2]"),
        ("[100, 200]", "[2, 3]"),
        ("[400, 800]", "[4]"),
        (r#"["en", "de", "es", "nl"]"#, r#"["en"]"#),
        ("en+de+es+nl", "en+de"),
        ("[100, 800]", "[2, 4]"),
        ("[100]", "[2]"),
        ("[800]", "[4]"),
        ("300 updates", "2 updates"),
        ("600 updates", "3 updates"),
        ("10 epochs", "1 epoch"),
        ("8 epochs", "1 epoch"),
        ("[plan]", "[plan]\nfilter.mode = \"off\"\ndaga.hidden_size = 8\ndaga.tries = 2"),
    ];
    fs::create_dir(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "toml") {
            let text = fs::read_to_string(&path).unwrap();
            let small = SMALLER.iter().fold(text, |text, (old, new)| text.replace(old, new));
            let is_long = |line: &&str| line.starts_with("draws = ");
            let short =
                |line: &str| if is_long(&line) { "draws = [1, 2]" } else { line }.to_owned() + "\n";
            let small: String = small.lines().map(short).collect();
            fs::write(to.join(path.file_name().unwrap()), small).unwrap();
        }
    }
}

/// Writes data of four languages. Every sentence has every type, because the models must know the types of the paper's
/// sentences.
#[cfg(unix)]
fn write_data(folder: &Path) {
    let sentence = |n: usize| {
        format!("EU B-ORG\nsaw O\nGerman B-MISC\nAda{n} B-PER\nin O\nBonn{n} B-LOC\n. O\n\n")
    };
    let text: String = (0..12).map(sentence).collect();
    for language in ["en", "de", "es", "nl"] {
        let data = folder.join("data").join(language);
        fs::create_dir_all(&data).unwrap();
        for split in ["train", "dev", "test"] {
            fs::write(data.join(format!("{split}.conll")), &text).unwrap();
        }
    }
}

#[cfg(unix)]
#[test]
fn the_scripts_of_the_papers_tables_run_from_end_to_end() {
    let folder = experiment_folder();
    let at = |name: &str| folder.path().join(name);
    write_data(folder.path());
    let scripts = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../results/2026-11-17-paper");
    write_small_grids(&scripts, &at("grids"));
    fs::create_dir(at("figures")).unwrap();
    let sh = |script: &str, args: &[&str]| {
        let mut command = std::process::Command::new("sh");
        command.arg(scripts.join(script)).arg(env!("CARGO_BIN_EXE_melm")).args(args);
        command.envs([("DEVICE", "cpu"), ("MODEL", "model"), ("GRIDS", "grids"), ("SHARDS", "2")]);
        let output = command.current_dir(folder.path()).output().unwrap();
        let messages = String::from_utf8_lossy(&output.stderr).into_owned();
        let printed = String::from_utf8(output.stdout).unwrap();
        assert!(output.status.success(), "{script}: {messages}{printed}");
        printed
    };
    assert!(sh("run.sh", &["data", "pieces", "out", "300"]).contains("done: out"));
    // Shards are joined, and the same command finds nothing left to do.
    let n_lines = |name: &str| fs::read_to_string(at(name)).unwrap().lines().count();
    assert_eq!(n_lines("out/masking/ledger.jsonl"), 9 * 2);
    assert_eq!(n_lines("out/add-entity/ledger.jsonl"), 3 * 4 * 2);
    assert_eq!(n_lines("out/entities/entities.jsonl"), 9 * 2 * 2);
    assert!(!at("out/entities/entities-1-of-2.jsonl").exists());
    let tables = sh("tables.sh", &["out", "figures"]);
    assert!(!tables.contains("Not measured yet"), "{tables}");
    for part in
        ["| EU | B-ORG | MELM |", "| to add-entity |", "(78.56)", "(92.84)", "(82.38)", "(83.21)"]
    {
        assert!(tables.contains(part), "no {part} in {tables}");
    }
    for name in
        ["add-entity", "entities", "masking-2-updates", "gains-mono", "gains-cross", "gains-multi"]
    {
        assert!(
            fs::read_to_string(at(&format!("figures/{name}.svg"))).unwrap().contains("<circle")
        );
    }
    // Without ledgers of its own, the page says what is not measured.
    assert!(sh("tables.sh", &["nowhere"]).contains("## Table 4: mask rates\n\nNot measured yet."));
}
