//! A tiny model, a corpus that it can memorise, and a text.

use std::path::Path;

use melm::pieces::Tokenizer;
use melm::{Augment, Corpus};
use melm_nn::config::Config;
use melm_nn::device::Device;
use melm_nn::mlm::MaskedLm;
use melm_text::{LabelledFile, ReadOptions, Source, TextOptions, UnlabelledText};

pub(crate) const TRAIN: &str = "\
Ada B-PER\nLovelace I-PER\nwrote O\nin O\nLondon B-LOC\n. O\n\n\
Bonn B-LOC\nis O\nnot O\nBerlin B-LOC\n. O\n\n\
Konrad B-PER\nZuse I-PER\nlived O\nin O\nBerlin B-LOC\n. O\n\n\
Grace B-PER\nHopper I-PER\nspoke O\n. O\n\n";

/// The first sentence is in the training set, the second is repeated, the third is held out.
pub(crate) const TEXT: &str = "\
Ada Lovelace wrote in London.
Konrad Zuse wrote in Berlin.
Konrad Zuse spoke in Bonn.
Konrad Zuse wrote in Berlin .
London is not Bonn.
Grace Hopper lived in Bonn.
Ada Lovelace spoke.
";

/// Writes a tiny model to a folder. Its tokenizer has a few hundred pieces.
pub(crate) fn write_model(dir: &Path) {
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
}

pub(crate) fn corpus(text: &str) -> Corpus {
    let source = Source::from_text("train.conll", text);
    LabelledFile::read(source, &ReadOptions::default()).unwrap().into_corpus()
}

pub(crate) fn unlabelled(text: &str) -> UnlabelledText {
    UnlabelledText::read("text.txt", text.as_bytes(), &TextOptions::default()).unwrap()
}

/// A run with small budgets: label-wise drafts, two passes with panels of two taggers.
pub(crate) fn augment(model: &Path, train: Corpus) -> Augment {
    let edits = [
        "method=label-wise",
        "generate.rounds=2",
        "tagger.budget=40 epochs",
        "tagger.batch_size=4",
        "tagger.learning_rate=0.02",
        "tagger.evaluate_every=20",
        "self_training.passes=2",
        "self_training.panel=2",
        "self_training.budget=60 updates",
    ];
    let model = model.display().to_string();
    let augment = Augment::new(train.clone()).dev(train).model(&model).device(Device::cpu(2));
    edits.iter().fold(augment, |augment, edit| augment.set(edit))
}
