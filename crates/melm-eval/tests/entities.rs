//! Unique valid entities, counted by an oracle that has memorised the corpus.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::path::Path;

use melm::models::Pretrained;
use melm::pieces::{Tokenizer, TokenizerFiles};
use melm::random::Seed;
use melm::stage::{Control, Event, Run};
use melm::tagger::{TaggerHead, TaggerModel, TaggerSettings, TrainedTagger};
use melm::training::{
    CheckpointChoice, EvaluationInterval, FrozenPrefixes, ScheduleKind, TrainingSettings,
};
use melm_eval::Entities;
use melm_nn::config::Config;
use melm_nn::device::Device;
use melm_nn::mlm::MaskedLm;
use melm_text::{Corpus, ReadOptions, Source};

const TEXT: &str = "\
Ada B-PER\nLovelace I-PER\nwrote O\nin O\nLondon B-LOC\n. O\n\n\
Bonn B-LOC\nis O\nnot O\nBerlin B-LOC\n. O\n\n\
Konrad B-PER\nZuse I-PER\nlived O\nin O\nBerlin B-LOC\n. O\n\n\
He O\nsaw O\nRotterdam B-LOC\nand O\nMadrid B-LOC\n. O\n\n\
Grace B-PER\nHopper I-PER\nspoke O\n. O\n\n";

fn corpus(text: &str) -> Corpus {
    Corpus::read(&Source::from_text("test", text), &ReadOptions::default()).unwrap()
}

/// A tiny random model with mini's tokenizer.
fn pretrained(dir: &Path) -> Pretrained {
    let files =
        TokenizerFiles { tokenizer: melm_mini::TOKENIZER.to_owned(), ..TokenizerFiles::default() };
    let tokenizer = Tokenizer::from_files(files).unwrap();
    tokenizer.save(dir).unwrap();
    let config = Config {
        vocab_size: tokenizer.n_pieces(),
        hidden_size: 16,
        n_layers: 1,
        n_heads: 2,
        intermediate_size: 24,
        max_position_embeddings: 34,
        initializer_range: 0.2,
        ..Config::default()
    };
    MaskedLm::random(&config, 1).unwrap().save(dir).unwrap();
    Pretrained::open(dir).unwrap()
}

fn train(dir: &Path, gold: &Corpus) -> TrainedTagger {
    let settings = TaggerSettings {
        head: TaggerHead::Crf,
        constrained: true,
        training: TrainingSettings {
            budget: "30 epochs".parse().unwrap(),
            batch_size: 2.try_into().unwrap(),
            learning_rate: 2e-2,
            warmup: 0.1,
            schedule: ScheduleKind::Linear,
            weight_decay: 0.01,
            clip: 1.0,
            evaluate_every: EvaluationInterval::Epochs(2.try_into().unwrap()),
            patience: 0,
            keep: CheckpointChoice::Best,
            freeze: FrozenPrefixes(vec!["roberta.embeddings.word".to_owned()]),
        },
    };
    let mut listener = |_: &str, _: Event<'_>| Control::Continue;
    let mut run = Run { seed: Seed(1), folder: None, observer: &mut listener };
    let stage = &mut run.stage("tagger");
    let pretrained = pretrained(&dir.join("model"));
    TaggerModel::train(&pretrained, gold, Some(gold), &settings, &Device::cpu(2), stage).unwrap()
}

#[test]
fn a_mention_is_valid_if_the_oracle_finds_it_with_the_same_label() {
    let gold = corpus(TEXT);
    let dir = tempfile::tempdir().unwrap();
    let oracle = train(dir.path(), &gold);
    assert!(oracle.outcome.best.unwrap().value > 0.999);
    let count = |text: &str| {
        Entities::count(&corpus(text), &gold, &oracle.tagger, &Device::cpu(1)).unwrap()
    };
    // By hand: Ada Lovelace, London, Bonn, Berlin (twice), Konrad Zuse, Rotterdam, Madrid, Grace Hopper.
    assert_eq!(count(TEXT), Entities { unique: 8, valid: 8, valid_new: 0 });
    // Bonn labelled as a person is not valid.
    let wrong = TEXT.replace("Bonn B-LOC", "Bonn B-PER");
    assert_eq!(count(&wrong), Entities { unique: 8, valid: 7, valid_new: 0 });
    // Berlin has the wrong label once and the right label once: two entities, one of them valid.
    let wrong = TEXT.replacen("Berlin B-LOC", "Berlin B-PER", 1);
    assert_eq!(count(&wrong), Entities { unique: 9, valid: 8, valid_new: 0 });
}
