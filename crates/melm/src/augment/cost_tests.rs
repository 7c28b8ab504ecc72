//! Compares the page of models with the engine: which models open, what they are used for, and the memory they need.

use melm_nn::config::ModelType;

use super::*;
use crate::plan::{ModelClass, ModelClasses, Preset};

const PAGE: &str = include_str!("../../../../docs/reference/models.md");
/// The number of pieces of a sentence for which the page gives the memory.
const SENTENCE_PIECES: f64 = 32.0;

/// A published model, with the values of its `config.json`.
#[derive(Clone, Copy)]
struct Published {
    name: &'static str,
    model_type: &'static str,
    vocab_size: usize,
    hidden_size: usize,
    n_layers: usize,
    intermediate_size: usize,
    /// False if the published weights are those of an encoder alone.
    has_head: bool,
}

const fn model(
    name: &'static str,
    model_type: &'static str,
    vocab_size: usize,
    hidden_size: usize,
    n_layers: usize,
    intermediate_size: usize,
) -> Published {
    let has_head = true;
    Published { name, model_type, vocab_size, hidden_size, n_layers, intermediate_size, has_head }
}

const fn encoder(model: Published) -> Published {
    Published { has_head: false, ..model }
}

const PUBLISHED: [Published; 21] = [
    model("mini", "xlm-roberta", 50_960, 512, 6, 2048),
    model("xlm-roberta-base", "xlm-roberta", 250_002, 768, 12, 3072),
    model("xlm-roberta-large", "xlm-roberta", 250_002, 1024, 24, 4096),
    encoder(model("intfloat/multilingual-e5-base", "xlm-roberta", 250_002, 768, 12, 3072)),
    encoder(model("intfloat/multilingual-e5-small", "bert", 250_037, 384, 12, 1536)),
    model("roberta-base", "roberta", 50_265, 768, 12, 3072),
    model("roberta-large", "roberta", 50_265, 1024, 24, 4096),
    model("almanach/camembert-base", "camembert", 32_005, 768, 12, 3072),
    model("bert-base-cased", "bert", 28_996, 768, 12, 3072),
    model("bert-base-uncased", "bert", 30_522, 768, 12, 3072),
    model("bert-large-cased", "bert", 28_996, 1024, 24, 4096),
    model("bert-base-multilingual-cased", "bert", 119_547, 768, 12, 3072),
    model("dmis-lab/biobert-base-cased-v1.2", "bert", 28_996, 768, 12, 3072),
    model("distilbert-base-cased", "distilbert", 28_996, 768, 6, 3072),
    model("distilbert-base-multilingual-cased", "distilbert", 119_547, 768, 6, 3072),
    encoder(model("google/electra-base-discriminator", "electra", 30_522, 768, 12, 3072)),
    encoder(model("google/electra-large-discriminator", "electra", 30_522, 1024, 24, 4096)),
    model("answerdotai/ModernBERT-base", "modernbert", 50_368, 768, 22, 1152),
    model("answerdotai/ModernBERT-large", "modernbert", 50_368, 1024, 28, 2624),
    model("jhu-clsp/mmBERT-base", "modernbert", 256_000, 768, 22, 1152),
    model("jhu-clsp/mmBERT-small", "modernbert", 256_000, 384, 22, 1152),
];

/// Returns the row of the page whose first cell is a name in back-ticks.
fn row(name: &str) -> Vec<&'static str> {
    let start = format!("| `{name}` |");
    let line = PAGE.lines().find(|line| line.starts_with(&start));
    cells(line.unwrap_or_else(|| panic!("the page has no row for {name}")))
}

fn cells(line: &'static str) -> Vec<&'static str> {
    line.trim_matches('|').split('|').map(str::trim).collect()
}

/// Returns the memory for tagging, for training a tagger and for fine-tuning, in GiB.
fn memory(config: &Config, class: ModelClass) -> [f64; 3] {
    let size = EncoderSize::from_config(config);
    let plan = Preset::Best.plan(ModelClasses::both(class));
    let corpus = CorpusSize { sentences: 1.0, pieces: SENTENCE_PIECES, entity_pieces: 0.0 };
    let training =
        |settings: &TrainingSettings| size.training_cost(settings, &corpus, &corpus, 0.0).bytes;
    let tagger = training(&plan.tagger.training);
    let finetune = training(&plan.finetune.training);
    [BYTES * size.all, tagger, finetune].map(|bytes| bytes / f64::from(1 << 30))
}

#[test]
fn the_page_of_models_states_what_the_engine_does() {
    for published in PUBLISHED {
        let model_type = ModelType::from_name(published.model_type).unwrap();
        let config = Config {
            model_type,
            vocab_size: published.vocab_size,
            hidden_size: published.hidden_size,
            n_layers: published.n_layers,
            intermediate_size: published.intermediate_size,
            ..Config::default()
        };
        let class = ModelClass::from_config(&config);
        let [tag, train, finetune] = memory(&config, class).map(|gib| format!("{gib:.1}"));
        let makes_drafts = published.has_head && model_type.has_masked_lm_head();
        let (drafts, finetune) =
            if makes_drafts { ("yes", finetune) } else { ("no", "–".to_owned()) };
        let class = class.to_string();
        let expected =
            [&format!("`{}`", published.name), &class, drafts, "yes", &tag, &train, &finetune];
        assert_eq!(row(published.name), expected);
    }
}

#[test]
fn the_page_of_models_lists_the_families_that_are_refused() {
    let refused: Vec<_> =
        PAGE.lines().filter(|line| line.contains("| refused")).map(cells).collect();
    assert!(refused.len() > 15, "{refused:?}");
    for row in refused {
        let name = row[0].trim_matches('`');
        let text = format!("{{\"model_type\": \"{name}\"}}");
        let message = Config::parse("config.json".as_ref(), &text).unwrap_err().to_string();
        let instead = row[3];
        assert!(message.contains(name) && message.contains(instead), "{message}\n{instead}");
    }
}
