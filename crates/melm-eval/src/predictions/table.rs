//! The table of predictions.

use std::collections::{BTreeMap, BTreeSet};

use melm_text::Corpus;

use super::{MODELS, N_BEST, PredictedWord, TokenPrediction, ValidShares};
use crate::Cell;
use crate::statistics::Mean;

/// The most likely words of three models for the entity tokens of a few sentences, and the share of valid words.
pub struct PredictionTable {
    title: String,
    pub(super) examples: Option<ExampleTable>,
    /// The words in the paper for each example: for each method, those of each entity token.
    pub(super) paper: Vec<BTreeMap<String, Vec<String>>>,
    pub(super) shares: Vec<ValidShares>,
}

/// The sentences that are shown, and the predictions of each of [`MODELS`].
pub(super) struct ExampleTable {
    pub(super) sentences: Corpus,
    pub(super) models: Vec<Vec<TokenPrediction>>,
}

impl ExampleTable {
    pub(super) fn new(sentences: Corpus) -> Self {
        Self { sentences, models: Vec::new() }
    }
}

impl PredictionTable {
    pub(super) fn new(cell: &Cell) -> Self {
        let Cell { language, size, draw, .. } = cell;
        let title = format!("### The likeliest five: {size} sentences of {language}, draw {draw}");
        Self { title, examples: None, paper: Vec::new(), shares: Vec::new() }
    }

    /// Returns a Markdown table for each sentence, with the words of each model, and a table of the shares of valid words.
    pub fn markdown(&self) -> String {
        let mut text = format!("{}\n\n", self.title);
        if let Some(examples) = &self.examples {
            for sentence in 0..examples.sentences.sentences().len() {
                text += &self.sentence_table(examples, sentence);
            }
        }
        text += "One mask takes the place of each entity token; nothing is kept from the candidates. *Italics*: with this word \
                 an oracle, a tagger trained on all gold of the language, does not find the mention with its type.\n\n";
        text + &self.share_table()
    }

    /// Returns the table of one sentence. The paper's words are in the last column, if the grid has any.
    fn sentence_table(&self, examples: &ExampleTable, number: usize) -> String {
        let corpus = &examples.sentences;
        let sentence = &corpus.sentences()[number];
        let tokens: Vec<_> = sentence.tokens().iter().map(ToString::to_string).collect();
        let paper = self.paper.get(number).filter(|paper| !paper.is_empty());
        let mut head = vec!["token", "tag", "model", "words"];
        head.extend(paper.map(|_| "in the paper"));
        let line = " --- |".repeat(head.len());
        let mut text = format!("{}\n\n| {} |\n|{line}\n", tokens.join(" "), head.join(" | "));
        let own =
            |model: usize| examples.models[model].iter().filter(move |one| one.sentence == number);
        for (at, first) in own(0).enumerate() {
            let tag = corpus.types().spell(sentence.tags()[first.token], corpus.scheme());
            for (model, (method, title)) in MODELS.iter().enumerate() {
                let words = own(model).nth(at).map_or_else(String::new, |one| spell(&one.words));
                let mut cells =
                    vec![tokens[first.token].clone(), tag.to_string(), (*title).to_owned(), words];
                let published = |paper: &BTreeMap<String, Vec<String>>| {
                    paper
                        .get(method.name())
                        .and_then(|all| all.get(at))
                        .cloned()
                        .unwrap_or_default()
                };
                cells.extend(paper.map(published));
                text += &format!("| {} |\n", cells.join(" | "));
            }
        }
        text + "\n"
    }

    /// Returns the table of the shares of valid words by size, with the difference of each model from the first.
    fn share_table(&self) -> String {
        let sizes: BTreeSet<usize> = self.shares.iter().map(|one| one.size).collect();
        let mut text = format!(
            "### Valid words among the likeliest {N_BEST}, in percent\n\n| gold | model | valid | to {} |\n| --- | --- | \
             --- | --- |\n",
            MODELS[0].1
        );
        for size in sizes {
            let own: Vec<_> = self.shares.iter().filter(|one| one.size == size).collect();
            for (model, (_, title)) in MODELS.iter().enumerate() {
                let mean = |of: &dyn Fn(&ValidShares) -> f64| {
                    Mean::from_values(&own.iter().map(|one| of(one)).collect::<Vec<_>>())
                };
                let valid = mean(&|one| one.shares[model]);
                let gain = mean(&|one| one.shares[model] - one.shares[0]).filter(|_| model > 0);
                let valid = valid.map(|mean| mean.with_interval(1)).unwrap_or_default();
                let gain = gain.map(|mean| mean.difference_with_interval(1)).unwrap_or_default();
                text += &format!("| {size} | {title} | {valid} | {gain} |\n");
            }
        }
        text + "\nAll entity tokens of the dev set of each draw; means over draws, with their 95 % interval (Student's t).\n"
    }
}

/// Joins words. Those that are not valid are in italics.
fn spell(words: &[PredictedWord]) -> String {
    let spell = |word: &PredictedWord| {
        let text = word.text.replace('|', "\\|").replace('*', "\\*").replace('_', "\\_");
        if word.is_valid { text } else { format!("*{text}*") }
    };
    words.iter().map(spell).collect::<Vec<_>>().join(", ")
}
