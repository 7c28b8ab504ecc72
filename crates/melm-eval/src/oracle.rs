//! The oracle: a tagger trained on all gold of a language, which decides whether a mention is valid (section 4.2).

use std::ops::Range;

use melm::random::Seed;
use melm::stage::{Event, Run};
use melm::tagger::TaggerModel;
use melm::training::Budget;
use melm_nn::device::Device;
use melm_text::{Corpus, Sentence, mentions};

use crate::data::concatenate;
use crate::group::OnEvent;
use crate::{Cell, Dataset, Error, ExperimentRunner};

/// The budget of the oracle. The oracle learns from all gold of a language.
pub const ORACLE_BUDGET: &str = "3 epochs";

impl ExperimentRunner {
    /// Trains the oracle of a cell's languages on all of their gold for [`ORACLE_BUDGET`], with the settings of the cell's
    /// tagger.
    pub(crate) fn train_oracle(
        &self,
        cell: &Cell,
        device: &Device,
        on_event: OnEvent<'_>,
    ) -> Result<TaggerModel, Error> {
        let mut settings = self.plans.cell(cell).tagger;
        settings.training.budget = ORACLE_BUDGET.parse::<Budget>().expect("it is a budget");
        let (train, dev) = self.all_gold(cell)?;
        let mut observer = |stage: &'static str, event: Event<'_>| on_event(cell, stage, event);
        let mut run = Run { seed: Seed(1), folder: None, observer: &mut observer };
        let (encoder, stage) = (&self.models.tagger, &mut run.stage("oracle"));
        let trained = TaggerModel::train(encoder, &train, dev.as_ref(), &settings, device, stage)?;
        Ok(trained.tagger)
    }

    /// Returns all train and dev sentences of the languages of a cell.
    fn all_gold(&self, cell: &Cell) -> Result<(Corpus, Option<Corpus>), Error> {
        let languages: Vec<_> = cell.languages().map(|name| &self.languages[name]).collect();
        let copy = |dataset: &Dataset| dataset.corpus().clone();
        let train: Vec<_> = languages.iter().map(|one| copy(&one.train)).collect();
        let dev: Vec<_> = languages.iter().filter_map(|one| one.dev.as_ref().map(copy)).collect();
        let dev = (!dev.is_empty()).then(|| concatenate(&dev)).transpose()?;
        Ok((concatenate(&train)?, dev))
    }
}

/// The mentions of a text: the range of their tokens and the name of their type.
type NamedMentions<'o> = Vec<(Range<usize>, &'o str)>;

/// Returns the mentions that the oracle predicts in each text.
pub(crate) fn predicted_mentions<'o>(
    oracle: &'o TaggerModel,
    device: &Device,
    texts: &[Vec<&str>],
) -> Result<Vec<NamedMentions<'o>>, Error> {
    let mut found = vec![Vec::new(); texts.len()];
    oracle.tag_each(device, texts, &mut |at, tagged| {
        let name = |entity_type| oracle.tags().types().name(entity_type);
        found[at] = mentions(&tagged.tags).map(|m| (m.tokens, name(m.entity_type))).collect();
    })?;
    Ok(found)
}

/// Returns the tokens of a sentence as text.
pub(crate) fn token_texts(sentence: &Sentence) -> Vec<&str> {
    sentence.tokens().iter().map(AsRef::as_ref).collect()
}
