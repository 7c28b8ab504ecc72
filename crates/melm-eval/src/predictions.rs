//! Predictions of entity tokens (Table 3): the five most likely words of three models, side by side.

use melm::augment::Gold;
use melm::entity_lm::EntityLm;
use melm::methods::{Method, tune};
use melm::plan::Plan;
use melm::random::Seed;
use melm::stage::{Event, Run};
use melm_nn::device::Device;
use melm_nn::mlm::{MaskedBatch, MaskedLmTape, Predictions};
use melm_text::Corpus;

use crate::data::subset;
use crate::group::{CellGroup, OnEvent};
use crate::{Cell, Error, ExperimentRunner};

/// The methods whose models are compared, with their titles in the table.
const MODELS: [(Method, &str); 3] =
    [(Method::MlmEntity, "MLM"), (Method::MelmPlain, "MELM w/o linearize"), (Method::Melm, "MELM")];

/// The number of words shown for each model.
const N_BEST: usize = 5;

/// The number of sentences shown.
const N_SENTENCES: usize = 5;

/// An entity token that is one piece, and the words that each model considers most likely in its place.
struct TokenPrediction {
    sentence: usize,
    token: usize,
    /// The most likely words of each of [`MODELS`].
    words: Vec<Vec<String>>,
}

/// The most likely words of three models for the entity tokens of a few sentences.
pub struct PredictionTable {
    title: String,
    sentences: Corpus,
    predictions: Vec<TokenPrediction>,
}

impl ExperimentRunner {
    /// Fine-tunes the models on the gold of a cell, with the settings of its plan. Then predicts the entity tokens of
    /// the first dev sentences of the draw that have mentions. Without a dev set, uses training sentences instead.
    ///
    /// # Panics
    /// If the experiment has no masked language model.
    pub fn predictions(
        &self,
        cell: &Cell,
        device: &Device,
        on_event: OnEvent<'_>,
    ) -> Result<PredictionTable, Error> {
        let (train, dev) = CellGroup::new(self, cell, device)?.into_gold();
        let source = dev.as_ref().unwrap_or(&train);
        let sentences = source.sentences().iter().enumerate();
        let with_mentions = sentences.filter(|(_, one)| one.mentions().next().is_some());
        let positions: Vec<_> = with_mentions.map(|(at, _)| at).take(N_SENTENCES).collect();
        let sentences = subset(source, &positions);
        let pretrained =
            self.models.masked_lm.as_ref().expect("the grid has a method with a language model");
        let gold = Gold { train: &train, dev: dev.as_ref() };
        let plan = self.plans.cell(cell);
        let mut observer = |stage: &'static str, event: Event<'_>| on_event(cell, stage, event);
        let mut run = Run { seed: Seed(plan.seed), folder: None, observer: &mut observer };
        let mut predictions: Vec<TokenPrediction> = Vec::new();
        for (method, _) in MODELS {
            let plan = Plan { method, ..plan.clone() };
            let tuned = tune(gold, &plan, pretrained, device, &mut run)?;
            add_model(&mut predictions, &tuned.lm, &sentences, device)?;
        }
        let Cell { language, size, draw, .. } = cell;
        let title = format!("### The likeliest five: {size} sentences of {language}, draw {draw}");
        Ok(PredictionTable { title, sentences, predictions })
    }
}

/// Adds the words of one model for every entity token that is one piece. Masks one token at a time.
fn add_model(
    predictions: &mut Vec<TokenPrediction>,
    lm: &EntityLm,
    sentences: &Corpus,
    device: &Device,
) -> Result<(), Error> {
    let (model, tokenizer) = (lm.model(), lm.tokenizer());
    let mut tape = MaskedLmTape::for_prediction(model.config());
    let mut found = Predictions::default();
    for window in lm.linearize(sentences)?.windows {
        for entity in window.entities.iter().filter(|entity| entity.piece_range.len() == 1) {
            let mut pieces = window.pieces.clone();
            pieces[entity.piece_range.start] = tokenizer.specials().mask;
            let mut batch = MaskedBatch::default();
            batch.sentences.push(&pieces, 0);
            batch.positions.push(entity.piece_range.start);
            model
                .predict(device, &batch, N_BEST, &mut tape, &mut found)
                .map_err(melm::Error::from)?;
            let words = found.row(0).iter().map(|best| tokenizer.decode(&[best.piece])).collect();
            let (sentence, token) = (window.sentence, entity.token);
            let mut known = predictions.iter_mut();
            match known.find(|one| (one.sentence, one.token) == (sentence, token)) {
                Some(known) => known.words.push(words),
                None => predictions.push(TokenPrediction { sentence, token, words: vec![words] }),
            }
        }
    }
    Ok(())
}

impl PredictionTable {
    /// Returns a Markdown table for each sentence: every entity token with the words of each model.
    pub fn markdown(&self) -> String {
        let titles = MODELS.map(|(_, title)| title).join(" | ");
        let mut text = format!("{}\n\n", self.title);
        for (at, sentence) in self.sentences.sentences().iter().enumerate() {
            let tokens: Vec<_> = sentence.tokens().iter().map(ToString::to_string).collect();
            text += &format!(
                "{}\n\n| token | tag | {titles} |\n| --- | --- | --- | --- | --- |\n",
                tokens.join(" ")
            );
            for one in self.predictions.iter().filter(|one| one.sentence == at) {
                let tag = sentence.tags()[one.token];
                let tag = self.sentences.types().spell(tag, self.sentences.scheme());
                let models: Vec<_> = one.words.iter().map(|words| words.join(", ")).collect();
                text += &format!("| {} | {tag} | {} |\n", tokens[one.token], models.join(" | "));
            }
            text += "\n";
        }
        text + "Every entity token that is one piece is masked alone; nothing is kept from the candidates.\n"
    }
}
