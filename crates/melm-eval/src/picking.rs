//! Simulates picking: sentences of the training file are picked, their tags are revealed, and more are picked with them.
//!
//! The system `picked` learns from as many sentences as `gold`. Both begin with the same draw. `gold` adds sentences at
//! random, because a draw contains all smaller draws with the same number; `picked` adds those that [`pick_sentences`]
//! chooses, a batch at a time.

use std::collections::HashMap;
use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, PoisonError};

use melm::augment::Gold;
use melm::pick::{PickData, pick_sentences};
use melm::plan::Plan;
use melm::random::Seed;
use melm::sample::draw;
use melm::stage::Run;
use melm_nn::device::Device;
use melm_text::{Corpus, Sentence};
use serde::{Deserialize, Serialize};

use crate::data::subset;
use crate::plans::plan_name;
use crate::text::{Accuracy, named};
use crate::{Cell, Error, ExperimentRunner};

/// How the cells of the system `picked` get their sentences.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Picking {
    /// The number of sentences that are drawn at random at the start.
    pub start: NonZeroUsize,
    /// The number of sentences that are picked with the same panel.
    pub batch: NonZeroUsize,
    /// The number of sentences that each batch is picked from, drawn at random from those without revealed tags.
    pub pool: NonZeroUsize,
}

impl Default for Picking {
    fn default() -> Self {
        let n = |n: usize| NonZeroUsize::new(n).expect("the sizes are not 0");
        Self { start: n(50), batch: n(50), pool: n(3000) }
    }
}

/// The sentences that a cell of the system `picked` learns from.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PickResult {
    /// The tokens of the training set.
    pub tokens: usize,
    /// The mentions of the training set.
    pub mentions: usize,
    /// The tokens of the random draw of the same size, which the system `gold` learns from.
    pub random_tokens: usize,
    /// The mentions of the random draw of the same size.
    pub random_mentions: usize,
    /// The tags that the panels suggested for the picked sentences, compared with the true ones.
    pub suggestions: Accuracy,
}

/// The sentences of one chain of batches, in the order in which their tags were revealed. Cells of different sizes share
/// a chain.
#[derive(Default)]
struct Chain {
    positions: Vec<usize>,
    /// How right the suggested tags of each sentence were. The sentences of the start have none.
    suggestions: Vec<Accuracy>,
}

/// The chains of an experiment, by language, draw, seed and plan.
#[derive(Default)]
pub(crate) struct Chains(Mutex<HashMap<String, Arc<Mutex<Chain>>>>);

impl Chains {
    fn find(&self, name: String) -> Arc<Mutex<Chain>> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(all.entry(name).or_default())
    }
}

impl ExperimentRunner {
    /// Returns the training set of a cell of the system `picked`. `random` is the draw of the same size.
    pub(crate) fn pick(
        &self,
        cell: &Cell,
        plan: &Plan,
        random: &Corpus,
        device: &Device,
        run: &mut Run<'_>,
    ) -> Result<(Corpus, PickResult), Error> {
        let name = format!("{} {} {} {}", cell.language, cell.draw, cell.seed, plan_name(plan));
        let chain = self.chains.find(name);
        // Another job that runs a cell of the same chain waits here, and then uses the sentences.
        let mut chain = chain.lock().unwrap_or_else(PoisonError::into_inner);
        let train = self.languages[&cell.language].train.corpus();
        let start = self.grid.picking.start.get();
        if chain.positions.is_empty() {
            chain.positions = draw(train.sentences().len(), start, Seed(cell.draw));
            chain.suggestions = vec![Accuracy::default(); start];
        }
        while chain.positions.len() < cell.size {
            self.add_batch(&mut chain, cell, plan, device, run)?;
        }
        let corpus = subset(train, &chain.positions[..cell.size]);
        let mut suggestions = Accuracy::default();
        chain.suggestions[..cell.size].iter().for_each(|one| suggestions.merge(one));
        let n_tokens =
            |corpus: &Corpus| corpus.sentences().iter().flat_map(Sentence::tokens).count();
        let n_mentions =
            |corpus: &Corpus| corpus.sentences().iter().flat_map(Sentence::mentions).count();
        let result = PickResult {
            tokens: n_tokens(&corpus),
            mentions: n_mentions(&corpus),
            random_tokens: n_tokens(random),
            random_mentions: n_mentions(random),
            suggestions,
        };
        Ok((corpus, result))
    }

    /// Trains a panel on the sentences of a chain, and adds a batch of those that it picks. A batch is always whole, so that
    /// the chain does not depend on the sizes of the cells that share it.
    fn add_batch(
        &self,
        chain: &mut Chain,
        cell: &Cell,
        plan: &Plan,
        device: &Device,
        run: &mut Run<'_>,
    ) -> Result<(), Error> {
        let language = &self.languages[&cell.language];
        let (train, n_known) = (language.train.corpus(), chain.positions.len());
        let gold = subset(train, &chain.positions);
        let dev = language.dev.as_ref().map(|dev| {
            let dev = dev.corpus();
            subset(dev, &draw(dev.sentences().len(), n_known, Seed(cell.draw)))
        });
        let rest: Vec<usize> =
            (0..train.sentences().len()).filter(|at| !chain.positions.contains(at)).collect();
        let n_pool = self.grid.picking.pool.get().min(rest.len());
        let key = Seed(cell.draw).stream("pool").at(n_known as u64);
        let pool = key.generator().subset(rest.len(), n_pool);
        let pool: Vec<usize> = pool.into_iter().map(|at| rest[at]).collect();
        let text: Vec<Sentence> = pool.iter().map(|at| train.sentences()[*at].clone()).collect();
        let gold_and_dev = Gold { train: &gold, dev: dev.as_ref() };
        let data = PickData { gold: gold_and_dev, text: &text, n: self.grid.picking.batch };
        let picked = pick_sentences(data, plan, &self.models.tagger, device, run, None)?;
        if picked.sentences.is_empty() {
            let message = format!("no sentence of {} is left to pick", cell.language);
            return Err(Error::Grid { name: self.grid.name.clone(), message });
        }
        for one in picked.sentences {
            let position = pool[one.number];
            let mut suggested = Accuracy::default();
            let truth = named(&train.sentences()[position], train, 0);
            suggested.add(&named(&one.sentence, &gold, 0), &truth);
            chain.positions.push(position);
            chain.suggestions.push(suggested);
        }
        Ok(())
    }
}
