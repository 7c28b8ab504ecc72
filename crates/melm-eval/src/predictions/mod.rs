//! Predictions of entity tokens (Table 3): the five most likely words of three models, side by side.

mod table;

pub use table::PredictionTable;

use melm::augment::Gold;
use melm::entity_lm::EntityLm;
use melm::methods::{Method, tune};
use melm::plan::Plan;
use melm::random::Seed;
use melm::stage::{Event, Run};
use melm::tagger::TaggerModel;
use melm_nn::device::Device;
use melm_nn::mlm::{MaskedBatch, MaskedLmTape, Predictions};
use melm_text::{Corpus, ReadOptions, Scheme, Source};

use crate::data::subset;
use crate::group::{CellGroup, OnEvent};
use crate::oracle::{predicted_mentions, token_texts};
use crate::{Cell, Error, ExampleSentence, ExperimentRunner};
use table::ExampleTable;

/// The methods whose models are compared, with their titles in the table.
const MODELS: [(Method, &str); 3] =
    [(Method::MlmEntity, "MLM"), (Method::MelmPlain, "MELM w/o linearize"), (Method::Melm, "MELM")];

/// The number of words of each model.
const N_BEST: usize = 5;

/// The number of sentences shown if the grid has none.
const N_SENTENCES: usize = 5;

/// A word that a model predicts for an entity token.
struct PredictedWord {
    text: String,
    /// True if the oracle predicts the mention of the token, with its entity type, after the word took the place of the
    /// token.
    is_valid: bool,
}

/// An entity token, and the words that a model considers most likely in its place.
struct TokenPrediction {
    sentence: usize,
    token: usize,
    words: Vec<PredictedWord>,
}

/// The share of valid words of each of [`MODELS`], in percent, for the dev set of one draw.
struct ValidShares {
    size: usize,
    shares: Vec<f64>,
}

impl ExperimentRunner {
    /// Fine-tunes the models on the gold of each cell, with the settings of its plan. Then predicts the entity tokens of
    /// the dev set of the draw, and of the sentences of the grid after the first cell. An oracle decides which of the words
    /// are valid. Without a dev set, uses training sentences instead.
    ///
    /// # Panics
    /// If there is no cell, or if the experiment has no masked language model.
    pub fn predictions(
        &self,
        cells: &[Cell],
        device: &Device,
        on_event: OnEvent<'_>,
    ) -> Result<PredictionTable, Error> {
        let oracle = self.train_oracle(&cells[0], device, on_event)?;
        let mut table = PredictionTable::new(&cells[0]);
        for cell in cells {
            let (train, dev) = CellGroup::new(self, cell, device)?.into_gold();
            let gold = Gold { train: &train, dev: dev.as_ref() };
            let scored = with_mentions(gold.dev.unwrap_or(gold.train), usize::MAX);
            let is_first = table.shares.is_empty();
            let shown = is_first.then(|| self.example_sentences(&scored)).transpose()?;
            let mut shares = Vec::new();
            let mut examples = shown.map(ExampleTable::new);
            for lm in self.tuned_models(cell, gold, device, on_event)? {
                let predict = |sentences: &Corpus| predict(&lm, &oracle, sentences, device);
                shares.push(valid_share(&predict(&scored)?));
                if let Some(examples) = &mut examples {
                    let predictions = predict(&examples.sentences)?;
                    examples.models.push(predictions);
                }
            }
            table.shares.push(ValidShares { size: cell.size, shares });
            table.examples = examples.or(table.examples);
        }
        table.paper = self.grid.sentences.iter().map(|one| one.paper.clone()).collect();
        Ok(table)
    }

    /// Returns the models of [`MODELS`], tuned on the gold of a cell.
    fn tuned_models(
        &self,
        cell: &Cell,
        gold: Gold<'_>,
        device: &Device,
        on_event: OnEvent<'_>,
    ) -> Result<Vec<EntityLm>, Error> {
        let pretrained =
            self.models.masked_lm.as_ref().expect("the grid has a method with a language model");
        let plan = self.plans.cell(cell);
        let mut observer = |stage: &'static str, event: Event<'_>| on_event(cell, stage, event);
        let mut run = Run { seed: Seed(plan.seed), folder: None, observer: &mut observer };
        let mut models = Vec::new();
        for (method, _) in MODELS {
            let plan = Plan { method, ..plan.clone() };
            models.push(tune(gold, &plan, pretrained, device, &mut run)?.lm);
        }
        Ok(models)
    }

    /// Returns the sentences that the table shows: those of the grid, or the first of `others`.
    fn example_sentences(&self, others: &Corpus) -> Result<Corpus, Error> {
        if self.grid.sentences.is_empty() {
            return Ok(with_mentions(others, N_SENTENCES));
        }
        read_examples(&self.grid.name, &self.grid.sentences, others.scheme())
    }
}

/// Reads the sentences of a grid. Fails if a tag is not valid.
fn read_examples(
    name: &str,
    sentences: &[ExampleSentence],
    scheme: Scheme,
) -> Result<Corpus, Error> {
    let rows = |one: &ExampleSentence| {
        let pairs = one.tokens.split(' ').zip(one.tags.split(' '));
        pairs.map(|(token, tag)| format!("{token}\t{tag}\n")).collect::<String>() + "\n"
    };
    let text: String = sentences.iter().map(rows).collect();
    let options = ReadOptions { scheme: Some(scheme), ..ReadOptions::default() };
    let corpus = Corpus::read(&Source::from_text(name, &text), &options);
    corpus.map_err(|error| Error::Grid { name: name.to_owned(), message: error.to_string() })
}

/// Returns the first `n` sentences that have mentions.
fn with_mentions(corpus: &Corpus, n: usize) -> Corpus {
    let sentences = corpus.sentences().iter().enumerate();
    let with_mentions = sentences.filter(|(_, one)| one.mentions().next().is_some());
    subset(corpus, &with_mentions.map(|(at, _)| at).take(n).collect::<Vec<_>>())
}

/// Returns the share of words that are valid, in percent.
fn valid_share(predictions: &[TokenPrediction]) -> f64 {
    let words = || predictions.iter().flat_map(|one| &one.words);
    100.0 * words().filter(|word| word.is_valid).count() as f64 / words().count().max(1) as f64
}

/// Predicts every entity token of the sentences. One mask takes the place of all pieces of the token.
fn predict(
    lm: &EntityLm,
    oracle: &TaggerModel,
    sentences: &Corpus,
    device: &Device,
) -> Result<Vec<TokenPrediction>, Error> {
    let (model, tokenizer) = (lm.model(), lm.tokenizer());
    let mut tape = MaskedLmTape::for_prediction(model.config());
    let mut found = Predictions::default();
    let mut predictions = Vec::new();
    for window in lm.linearize(sentences)?.windows {
        for entity in &window.entities {
            let mut pieces = window.pieces.clone();
            pieces.splice(entity.piece_range.clone(), [tokenizer.specials().mask]);
            let mut batch = MaskedBatch::default();
            batch.sentences.push(&pieces, 0);
            batch.positions.push(entity.piece_range.start);
            model
                .predict(device, &batch, N_BEST, &mut tape, &mut found)
                .map_err(melm::Error::from)?;
            let texts = found.row(0).iter().map(|best| tokenizer.decode(&[best.piece]));
            let words = texts.map(|text| PredictedWord { text, is_valid: false }).collect();
            let (sentence, token) = (window.sentence, entity.token);
            predictions.push(TokenPrediction { sentence, token, words });
        }
    }
    mark_valid(&mut predictions, oracle, sentences, device)?;
    Ok(predictions)
}

/// Marks the words with which the oracle finds the mention of the token.
fn mark_valid(
    predictions: &mut [TokenPrediction],
    oracle: &TaggerModel,
    sentences: &Corpus,
    device: &Device,
) -> Result<(), Error> {
    let mut texts = Vec::new();
    for one in predictions.iter() {
        for word in &one.words {
            let mut tokens = token_texts(&sentences.sentences()[one.sentence]);
            tokens[one.token] = &word.text;
            texts.push(tokens);
        }
    }
    // The tagger cannot read a token without text.
    for text in &mut texts {
        text.iter_mut().filter(|token| token.trim().is_empty()).for_each(|token| *token = "_");
    }
    let found = predicted_mentions(oracle, device, &texts)?;
    let valid: Vec<bool> = predictions
        .iter()
        .flat_map(|one| std::iter::repeat_n(one, one.words.len()))
        .zip(&found)
        .map(|(one, found)| {
            let mut own = sentences.sentences()[one.sentence].mentions();
            let own = own.find(|mention| mention.tokens.contains(&one.token));
            own.is_some_and(|own| {
                let name = sentences.types().name(own.entity_type);
                found.contains(&(own.tokens, name))
            })
        })
        .collect();
    let words = predictions.iter_mut().flat_map(|one| &mut one.words);
    for (word, is_valid) in words.zip(valid) {
        word.is_valid = is_valid && !word.text.trim().is_empty();
    }
    Ok(())
}
