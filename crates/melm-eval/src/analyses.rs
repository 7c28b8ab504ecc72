//! The analyses that are no table of scores, on a bench.

use melm_nn::device::Device;
use melm_text::Corpus;

use super::bench::Bench;
use super::group::{Group, Hear};
use super::predictions::{Prediction, predictions};
use super::{Cell, Entities, gathered, subset};
use crate::Error;
use melm::augment::Gold;
use melm::stage::{Event, Observer};
use melm::tagger::Tagger;

impl Bench<'_> {
    /// All of a language's gold and its dev set.
    pub fn whole(&self, language: &str) -> Result<(Corpus, Option<Corpus>), Error> {
        let languages: Vec<_> = language.split('+').map(|name| &self.languages[name]).collect();
        let train: Vec<_> = languages.iter().map(|one| one.train.corpus.clone()).collect();
        let dev: Vec<_> = languages
            .iter()
            .filter_map(|one| one.dev.as_ref())
            .map(|dev| dev.corpus.clone())
            .collect();
        let dev = (!dev.is_empty()).then(|| gathered(&dev)).transpose()?;
        Ok((gathered(&train)?, dev))
    }

    /// What three models put in the place of entities, in the first `n` dev sentences of a cell's draw that have any;
    /// those of train without a dev set. They learn from the cell's gold, by its plan.
    ///
    /// # Panics
    /// If the bench has no masked language model.
    pub fn predictions(
        &self,
        (cell, n): (&Cell, usize),
        device: &Device,
        hear: Hear<'_>,
    ) -> Result<(Corpus, Vec<Prediction>), Error> {
        let (train, dev) = Group::new(self, cell, device)?.into_gold();
        let from = dev.as_ref().unwrap_or(&train);
        let with = from.sentences().iter().enumerate();
        let with = with.filter(|(_, sentence)| sentence.mentions().next().is_some());
        let shown = subset(from, &with.map(|(at, _)| at).take(n).collect::<Vec<_>>());
        let masked_lm = self.masked_lm.expect("a grid with a method that has one");
        let mut listen = |stage: &'static str, event: Event<'_>| hear(cell, stage, event);
        let gold = Gold { train: &train, dev: dev.as_ref() };
        let with = (masked_lm, device, &mut listen as Observer<'_>);
        let found = predictions(gold, &shown, &self.plan_of(cell), with)?;
        Ok((shown, found))
    }

    /// Counts the unique valid entities in the training sets of cells that share their gold. Budgets do not matter.
    pub fn entities(
        &self,
        cells: &[Cell],
        (oracle, device): (&Tagger, &Device),
        hear: Hear<'_>,
    ) -> Result<Vec<(Cell, Entities)>, Error> {
        let mut found = Vec::new();
        for group in cells.chunk_by(Cell::is_beside) {
            let mut shared = Group::new(self, &group[0], device)?;
            for cell in group {
                let (train, gold) = shared.training_set(cell, hear)?;
                let entities = Entities::count(train, gold, oracle, device)?;
                found.push((cell.clone(), entities));
            }
        }
        Ok(found)
    }
}
