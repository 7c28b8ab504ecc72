//! Provides a tiny model with the tokenizer of the embedded model, and a corpus that this model can memorise.

use std::path::Path;

use melm::models::Pretrained;
use melm::pieces::{Tokenizer, TokenizerFiles};
use melm::random::Seed;
use melm::stage::{Control, Event, Run};
use melm::tagger::{TaggerHead, TaggerModel, TaggerSettings, TrainedTagger};
use melm::training::{
    CheckpointChoice, EvaluationInterval, FrozenPrefixes, ScheduleKind, TrainingSettings,
};
use melm_nn::config::Config;
use melm_nn::device::Device;
use melm_nn::mlm::MaskedLm;
use melm_text::{Corpus, ReadOptions, Source};

/// The maximum length of the tiny model in pieces, including `<s>` and `</s>`.
pub(crate) const LONGEST: usize = 32;

pub(crate) fn pretrained(dir: &Path) -> Pretrained {
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
        max_position_embeddings: LONGEST + 2,
        initializer_range: 0.2,
        ..Config::default()
    };
    MaskedLm::random(&config, 1).unwrap().save(dir).unwrap();
    Pretrained::open(dir).unwrap()
}

pub(crate) const TEXT: &str = "\
Ada B-PER\nLovelace I-PER\nwrote O\nin O\nLondon B-LOC\n. O\n\n\
Bonn B-LOC\nis O\nnot O\nBerlin B-LOC\n. O\n\n\
Konrad B-PER\nZuse I-PER\nlived O\nin O\nBerlin B-LOC\n. O\n\n\
He O\nsaw O\nRotterdam B-LOC\nand O\nMadrid B-LOC\n. O\n\n\
Grace B-PER\nHopper I-PER\nspoke O\n. O\n\n";

pub(crate) fn corpus(text: &str) -> Corpus {
    Corpus::read(&Source::from_text("test", text), &ReadOptions::default()).unwrap()
}

pub(crate) fn settings(head: TaggerHead) -> TaggerSettings {
    TaggerSettings {
        head,
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
    }
}

/// Trains in the folder `dir/work`.
pub(crate) fn train(
    dir: &Path,
    corpus: &Corpus,
    settings: &TaggerSettings,
    on_event: &mut dyn FnMut(Event<'_>) -> Control,
) -> Result<TrainedTagger, melm::Error> {
    train_in(dir, Some("work"), corpus, settings, &Device::cpu(2), on_event)
}

/// Trains in the folder `dir/work`, or in memory if `work` is `None`.
pub(crate) fn train_in(
    dir: &Path,
    work: Option<&str>,
    corpus: &Corpus,
    settings: &TaggerSettings,
    device: &Device,
    on_event: &mut dyn FnMut(Event<'_>) -> Control,
) -> Result<TrainedTagger, melm::Error> {
    let model = dir.join("model");
    let pretrained =
        if model.exists() { Pretrained::open(&model).unwrap() } else { pretrained(&model) };
    let mut observer = |_: &str, event: Event<'_>| on_event(event);
    let mut run =
        Run { seed: Seed(1), folder: work.map(|work| dir.join(work)), observer: &mut observer };
    let stage = &mut run.stage("tagger");
    TaggerModel::train(&pretrained, corpus, Some(corpus), settings, device, stage)
}
