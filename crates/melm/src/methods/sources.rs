//! The sentences that a masked language model learns from: gold, or gold and code-mixed sentences (section 2.5).

use std::borrow::Cow;

use melm_text::Corpus;

use super::Augmenter;
use crate::Error;
use crate::codemix::{Codemix, DonorChoice, LexiconCounts, MentionVectors};
use crate::draft::Draft;
use crate::plan::Plan;
use crate::stage::{Event, Run, Stage};

/// Prepares the code-mixing of a plan.
pub(super) fn codemix<'a>(
    train: &'a Corpus,
    plan: &Plan,
    vectors: Option<&MentionVectors>,
) -> Result<Codemix<'a>, Error> {
    let choice = if plan.method.has_vectors() { DonorChoice::Similar } else { DonorChoice::Random };
    if let (DonorChoice::Similar, None, Some(part)) = (choice, vectors, train.languages().first()) {
        return Err(Error::NoVectorsOf { language: part.code.to_string() });
    }
    Codemix::new(train, choice, vectors, plan.codemix)
}

/// Makes one round of code-mixed drafts.
fn mix_round(
    mix: &mut Codemix<'_>,
    round: u32,
    stage: &mut Stage<'_>,
) -> Result<Vec<Draft>, Error> {
    let key = stage.key();
    mix.round(key, round, &mut |done, of| stage.report(Event::Progress { done, of }))
}

/// The sentences that a masked language model learns from and makes drafts of: gold, followed by code-mixed sentences
/// if the method mixes languages.
pub struct Sources<'a> {
    /// All sentences, gold first.
    pub corpus: Cow<'a, Corpus>,
    /// The code-mixed sentences, as drafts.
    pub(super) mixed: Vec<Draft>,
    /// The number of words and mentions without a vector.
    pub(super) counts: Option<LexiconCounts>,
}

impl<'a> Sources<'a> {
    /// Uses gold alone.
    pub(super) fn gold(train: &'a Corpus) -> Self {
        Self { corpus: Cow::Borrowed(train), mixed: Vec::new(), counts: None }
    }

    /// Prepares the sources for the method of a plan.
    pub(crate) fn new(
        train: &'a Corpus,
        plan: &Plan,
        vectors: Option<&MentionVectors>,
        run: &mut Run<'_>,
    ) -> Result<Self, Error> {
        if !plan.method.mixes() {
            return Ok(Self::gold(train));
        }
        let mut mix = codemix(train, plan, vectors)?;
        let mixed = mix_round(&mut mix, 1, &mut run.stage("codemix"))?;
        let corpus = Cow::Owned(train.with_more(mixed.iter().map(|draft| draft.sentence.clone())));
        Ok(Self { corpus, mixed, counts: Some(mix.counts().clone()) })
    }
}

impl Augmenter for Codemix<'_> {
    fn round(&mut self, round: u32, stage: &mut Stage<'_>) -> Result<Vec<Draft>, Error> {
        mix_round(self, round, stage)
    }
}
