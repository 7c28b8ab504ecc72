//! MELM and its variants: a masked entity language model makes the drafts (sections 2.1 to 2.3).

use std::ops::Range;

use melm_nn::device::Device;
use melm_text::Corpus;

use super::label_wise::{Substitute, UsedNames};
use super::sources::Sources;
use super::{Augmenter, Method};
use crate::Error;
use crate::augment::Gold;
use crate::draft::Draft;
use crate::entity_lm::{EntityLm, Finetuned};
use crate::generate::{Drafter, FixedCounts, fix_tokens};
use crate::linearize::{LinearizedCorpus, LinearizedCounts};
use crate::markers::MarkerStart;
use crate::models::Pretrained;
use crate::plan::Plan;
use crate::stage::{Event, Run, Stage};
use crate::training::TrainingOutcome;

/// The masked language model of a plan, ready to generate.
pub struct Tuned {
    /// The model.
    pub lm: EntityLm,
    /// How the rows of its markers were initialised.
    pub markers: Vec<MarkerStart>,
    /// The record of the fine-tuning; `None` if the method uses the pretrained model unchanged.
    pub outcome: Option<TrainingOutcome>,
    /// The linearized training set.
    pub linearized: LinearizedCorpus,
}

/// Adds markers to a pretrained model, and fine-tunes the model if the method does so.
pub fn tune(
    gold: Gold<'_>,
    plan: &Plan,
    pretrained: &Pretrained,
    device: &Device,
    run: &mut Run<'_>,
) -> Result<Tuned, Error> {
    let mut stage = run.stage("finetune");
    let seed = stage.key().then("rows").generator().bits();
    let (lm, markers) = EntityLm::new(pretrained, gold, &plan.marker_settings(), seed)?;
    if !plan.method.finetunes() {
        let linearized = lm.linearize(gold.train)?;
        return Ok(Tuned { lm, markers, outcome: None, linearized });
    }
    let Finetuned { lm, outcome, linearized } =
        lm.finetune(gold.train, gold.dev, &plan.finetune, device, &mut stage)?;
    Ok(Tuned { lm, markers, outcome: Some(outcome), linearized })
}

/// Makes drafts with a masked entity language model (section 2.3).
pub struct Melm<'a> {
    drafter: Drafter,
    sources: Sources<'a>,
    linearized: LinearizedCorpus,
    fixed: FixedCounts,
    /// Makes the second half of the drafts in the method `melm-both`. It puts gold mentions of any length into other
    /// contexts, while the model writes new mentions of the same length.
    substitute: Option<Substitute<'a>>,
    device: &'a Device,
}

impl<'a> Melm<'a> {
    /// Creates the method from a fine-tuned model. Drafts are made of `corpus`.
    pub fn new(
        lm: EntityLm,
        corpus: &'a Corpus,
        plan: &'a Plan,
        device: &'a Device,
    ) -> Result<Self, Error> {
        let linearized = lm.linearize(corpus)?;
        Ok(Self::with_sources(lm, linearized, corpus, Sources::gold(corpus), plan, device))
    }

    /// Like [`Self::new`], but the sources may include code-mixed sentences. `linearized` contains all sources.
    pub(super) fn with_sources(
        lm: EntityLm,
        mut linearized: LinearizedCorpus,
        gold: &'a Corpus,
        sources: Sources<'a>,
        plan: &'a Plan,
        device: &'a Device,
    ) -> Self {
        let has_both = plan.method == Method::MelmBoth;
        let substitute = has_both.then(|| Substitute::new(gold, plan.substitute));
        let fixed = fix_tokens(&mut linearized, &sources.corpus, &plan.generate);
        let drafter = Drafter::new(lm, plan.generate.clone());
        Self { drafter, sources, linearized, fixed, substitute, device }
    }

    /// Converts drafts of code-mixed sentences to drafts of the gold sentences that the code-mixed sentences were
    /// made from. In the first round, the code-mixed sentences themselves are drafts too. Each precedes the draft
    /// made from it.
    fn trace_to_gold(&self, round: u32, mut drafts: Vec<Draft>) -> Vec<Draft> {
        let mixed = &self.sources.mixed;
        let n_gold = self.sources.corpus.sentences().len() - mixed.len();
        for draft in &mut drafts {
            if let Some(at) = draft.source.and_then(|source| source.checked_sub(n_gold)) {
                draft.source = mixed[at].source;
                draft.mixed.clone_from(&mixed[at].replacements);
            }
        }
        let mut all = if round == 1 { mixed.clone() } else { Vec::new() };
        all.extend(drafts);
        all.sort_by_key(|draft| draft.source);
        all
    }

    /// Makes drafts only of the sentences with these indices. The drafts of a sentence stay the same, because they do not
    /// depend on other sentences.
    #[must_use]
    pub fn with_sentences(mut self, sentences: &Range<usize>) -> Self {
        self.linearized.windows.retain(|window| sentences.contains(&window.sentence));
        self
    }

    /// Lets the method `melm-both` use names of lists.
    #[must_use]
    pub(super) fn with_names(mut self, names: Option<UsedNames<'a>>) -> Self {
        self.substitute = self.substitute.map(|substitute| substitute.with_names(names));
        self
    }

    /// The number of entity tokens and mentions that the plan does not allow to be rewritten.
    pub fn fixed(&self) -> FixedCounts {
        self.fixed
    }

    /// Counts how much of the corpus the model can read and mask.
    pub fn counts(&self) -> LinearizedCounts {
        let n_unmaskable = self.drafter.n_unmaskable(&self.linearized);
        self.linearized.counts(&self.sources.corpus, n_unmaskable)
    }
}

impl Augmenter for Melm<'_> {
    fn round(&mut self, round: u32, stage: &mut Stage<'_>) -> Result<Vec<Draft>, Error> {
        let n_rounds = u64::from(self.drafter.settings().rounds.get());
        let key = stage.key();
        // The progress of the stage counts the steps of all rounds.
        let mut on_progress = |done: u64, of: u64| {
            let before = u64::from(round - 1) * of;
            stage.report(Event::Progress { done: before + done, of: of * n_rounds })
        };
        let (corpus, linearized) = (&self.sources.corpus, &self.linearized);
        let made =
            self.drafter.round(self.device, corpus, linearized, key, round, &mut on_progress)?;
        let mut drafts = self.trace_to_gold(round, made.drafts);
        if let Some(substitute) = &self.substitute {
            drafts.extend(substitute.round(key.then("beside"), round));
            drafts.sort_by_key(|draft| draft.source);
        }
        Ok(drafts)
    }
}
