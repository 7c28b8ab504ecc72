//! Cells whose sentences are picked: the training sets of larger sizes contain those of smaller ones.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::num::NonZeroUsize;
use std::path::Path;

use melm::models::Pretrained;
use melm::pieces::Tokenizer;
use melm::plan::{ModelClass, ModelClasses, PlanTable, Preset};
use melm::stage::Control;
use melm_eval::{
    CellFilter, Dataset, Error, ExperimentModels, ExperimentRunner, Grid, LanguageData, Languages,
    Ledger, LedgerLine, Plans,
};
use melm_nn::config::Config;
use melm_nn::device::Device;
use melm_nn::mlm::MaskedLm;
use melm_text::{Corpus, ReadOptions, Source};

const GRID: &str = r#"
files = "{language}/{split}.conll"
evaluations = 1
[picking]
start = 4
batch = 3
pool = 12
[plan]
self_training.panel = 2
self_training.budget = "6 updates"
tagger.batch_size = 4
[[grid]]
languages = ["en"]
sizes = [4, 8, 10]
draws = [1]
seeds = [1]
methods = ["gold", "picked"]
budgets = ["4 updates"]
"#;

/// Thirty sentences with a person or a place.
fn corpus() -> Corpus {
    let names = ["Ada", "Bonn", "Zuse", "Rome", "Grace", "Oslo"];
    let mut text = String::new();
    for n in 0..30 {
        let (name, tag) = (names[n % 6], if n % 2 == 0 { "B-PER" } else { "B-LOC" });
        text += &format!("word{n} O\n{name} {tag}\nsaw O\n{} O\n. O\n\n", n * 7);
    }
    Corpus::read(&Source::from_text("train", text), &ReadOptions::default()).unwrap()
}

/// A tiny random model.
fn pretrained(dir: &Path) -> Pretrained {
    let pieces = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/pieces/unigram");
    let tokenizer = Tokenizer::open(&pieces).unwrap();
    tokenizer.save(dir).unwrap();
    let config = Config {
        vocab_size: tokenizer.n_pieces(),
        hidden_size: 16,
        n_layers: 1,
        n_heads: 2,
        intermediate_size: 24,
        max_position_embeddings: 66,
        initializer_range: 0.2,
        ..Config::default()
    };
    MaskedLm::random(&config, 1).unwrap().save(dir).unwrap();
    Pretrained::open(dir).unwrap()
}

/// Runs the cells that pass a filter in a new experiment.
fn run(dir: &Path, grid: &str, only: &[&str]) -> Vec<LedgerLine> {
    run_with(dir, grid, only, Some(Dataset::new(corpus())))
}

fn run_with(dir: &Path, grid: &str, only: &[&str], dev: Option<Dataset>) -> Vec<LedgerLine> {
    let grid = Grid::parse("grid.toml", grid).unwrap();
    let filters: Vec<CellFilter> = only.iter().map(|filter| filter.parse().unwrap()).collect();
    let cells = CellFilter::select(&filters, grid.cells()).unwrap();
    let classes = ModelClasses::both(ModelClass::MINI);
    let edit = |_: &mut PlanTable| Ok::<(), Error>(());
    let plans = Plans::new(&grid, Preset::Best, classes, &edit).unwrap();
    let train = Dataset::new(corpus());
    let data = LanguageData { train, dev, text: None, test: None, names: Vec::new() };
    let languages = Languages::from([("en".to_owned(), data)]);
    let models =
        ExperimentModels { masked_lm: None, tagger: pretrained(dir), seq2seq: None, vectors: None };
    let device = || Ok::<_, Error>(Device::cpu(1));
    let arithmetic = device().unwrap().arithmetic();
    let runner = ExperimentRunner::new(grid, languages, plans, models, arithmetic).unwrap();
    let mut ledger = Ledger::in_memory();
    let on_progress = |_: &_, _: melm_eval::Progress<'_>| Control::Continue;
    runner.run(&cells, &mut ledger, NonZeroUsize::MIN, &device, &on_progress).unwrap();
    ledger.lines().to_vec()
}

#[test]
fn a_picked_training_set_has_its_size_and_does_not_depend_on_other_cells() {
    let dir = tempfile::tempdir().unwrap();
    let all = run(dir.path(), GRID, &[]);
    assert_eq!(all.len(), 6);
    let find = |lines: &[LedgerLine], size: usize, method: &str| {
        let mut lines = lines.iter();
        lines
            .find(|line| line.cell.size == size && line.cell.method.name() == method)
            .unwrap()
            .clone()
    };
    for size in [4, 8, 10] {
        let line = find(&all, size, "picked");
        let picked = line.picked.unwrap();
        assert_eq!((line.n_train, picked.tokens, picked.random_tokens), (size, 5 * size, 5 * size));
        // Every sentence has one mention. Those of the start have no suggestions.
        assert_eq!((picked.mentions, picked.suggestions.sentences), (size, size - 4));
        assert_eq!(picked.suggestions.true_mentions, size - 4);
    }
    // At the size of the start nothing was picked, so that both systems have the same tagger.
    assert_eq!(find(&all, 4, "picked").dev, find(&all, 4, "gold").dev);
    // A cell that is run alone picks the same sentences as one that continues where a smaller one ended.
    let alone = run(dir.path(), GRID, &["method=picked", "size=10"]);
    let [alone, shared] = [find(&alone, 10, "picked"), find(&all, 10, "picked")];
    assert_eq!((&alone.key, &alone.dev, &alone.picked), (&shared.key, &shared.dev, &shared.picked));
    let other = run(dir.path(), &GRID.replace("pool = 12", "pool = 20"), &["size=10"]);
    assert_ne!(find(&other, 10, "picked").key, alone.key);
    assert_eq!(find(&other, 10, "gold").key, find(&all, 10, "gold").key);
}

#[test]
fn picking_has_one_language_no_text_and_a_start() {
    let grid = |change: [&str; 2]| Grid::parse("a", &GRID.replace(change[0], change[1]));
    for change in [["[\"en\"]", "[\"en+de\"]"], ["draws = [1]", "draws = [1]\ntexts = [\"10\"]"]] {
        let message = grid(change).unwrap_err().to_string();
        assert!(message.contains("`picked` cannot be combined with"), "{message}");
    }
    let message = grid(["start = 4", "start = 5"]).unwrap_err().to_string();
    assert!(message.contains("begins with 5 sentences: the size 4"), "{message}");
}

#[test]
fn shards_keep_all_sizes_of_a_draw_together() {
    let grid = GRID.replace("draws = [1]", "draws = [1, 2, 3]");
    let cells = Grid::parse("a", &grid).unwrap().cells();
    let mut all = Vec::new();
    for (shard, n) in [("1/2", 12), ("2/2", 6)] {
        let own = melm_eval::shard_cells(&cells, shard.parse().unwrap());
        assert_eq!(own.len(), n, "draws 1 and 3, or draw 2, with three sizes and two systems each");
        all.extend(own);
    }
    assert!(cells.iter().all(|cell| all.contains(cell)) && all.len() == cells.len());
}

#[test]
fn silver_with_noise_is_given_to_the_panel_and_counted() {
    let dir = tempfile::tempdir().unwrap();
    let grid = GRID
        .replace("methods = [\"gold\", \"picked\"]", "methods = [\"gold\"]")
        .replace("sizes = [4, 8, 10]", "sizes = [8]\ntexts = [\"9 noise 0\", \"9 noise 0.5\"]")
        .replace("[[grid]]", "self_training.passes = 1\nsilver.agreement = \"off\"\n[[grid]]");
    // Without the corpus as dev set, which would leave out all of its sentences.
    let lines = run_with(dir.path(), &grid, &[], None);
    let labelled: Vec<_> = lines.iter().map(|line| line.labelled.clone().unwrap()).collect();
    let [clean, noisy] = &labelled[..] else { panic!("{} lines", labelled.len()) };
    let (given, kept) = (clean.given.unwrap(), clean.kept.unwrap());
    assert_eq!((given.sentences, given.right_sentences, given.right_mentions), (9, 9, 9));
    assert_eq!((kept.sentences, kept.right_sentences), (9, 9));
    let (given, kept) = (noisy.given.unwrap(), noisy.kept.unwrap());
    assert_eq!(given.true_mentions, 9);
    assert!(given.right_sentences < 9 && kept.right_sentences <= given.right_sentences);
}
