//! The settings of self-training: the section `self_training` of the plan.

use std::num::{NonZeroU32, NonZeroUsize};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::rate::Rate;
use crate::training::Budget;

/// The largest `panel`.
const MOST_TAGGERS: usize = 100;

/// How unlabelled sentences are labelled and which of them are kept.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SelfTrainingSettings {
    /// The number of passes. The panel of the first pass is trained without unlabelled text. The panel of a later pass
    /// is also trained on the sentences that the pass before it kept.
    pub passes: NonZeroU32,
    /// The number of taggers in the panel of each pass. They differ only in their random seeds.
    #[schemars(range(max = MOST_TAGGERS))]
    pub panel: NonZeroUsize,
    /// In later passes, the number of parts that the text is cut into. A tagger of the panel is not trained on the
    /// sentences of one part, and votes on this part only. A label is then never confirmed by a tagger that has learnt
    /// it. 1 means that every tagger is trained on all kept sentences and votes on all sentences.
    pub folds: NonZeroUsize,
    /// The training set of the panel: `"gold"`, or `"gold-and-drafts"`, which adds the kept drafts.
    pub learns_from: PanelData,
    /// The length of the training of each tagger of the panel: `"20 epochs"` or `"300 updates"`. The other settings are
    /// those of the section `tagger`.
    pub budget: Budget,
    /// The rule that decides which sentences are kept: `"sentence"`, `"mention"`, `"part"` or `"probability"`.
    pub agreement: Agreement,
    /// The share of the panel that has to agree, above 0.5. 1 means all taggers. The rule `"probability"` ignores it.
    #[schemars(extend("exclusiveMinimum" = 0.5))]
    pub votes: Rate,
    /// For the rule `"probability"`, a sentence is kept if the mean probability of its tags is at least this value. A
    /// tagger that predicts other tags counts as 0.
    pub threshold: Rate,
    /// The maximum number of kept sentences with a mention for each gold sentence, in all passes but the last.
    pub cap: NonZeroUsize,
    /// The maximum number of kept sentences with a mention for each gold sentence, in the last pass.
    pub last_cap: NonZeroUsize,
    /// Which sentences are kept if there are more than the cap: `"random"` ones, or `"balanced"` ones, so that all
    /// entity types get a similar number of mentions.
    pub choice: Choice,
    /// The number of kept sentences without a mention, as a share of the kept sentences with a mention.
    pub without_mentions: Rate,
}

/// The training set of the panels, beside the sentences of the text that were kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PanelData {
    /// Gold alone.
    Gold,
    /// Gold and the kept drafts.
    GoldAndDrafts,
}

/// The rule that decides which sentences are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Agreement {
    /// Enough taggers predict the same tags for the whole sentence.
    Sentence,
    /// For every mention that any tagger predicts, enough taggers predict it, or enough taggers do not. In the second
    /// case the mention is removed.
    Mention,
    /// As for `mention`, but a sentence with a disputed mention is not rejected: its longest part without a disputed
    /// mention is kept.
    Part,
    /// The mean probability of the tags is high enough.
    Probability,
}

/// How kept sentences are chosen if there are more than the cap.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Choice {
    /// At random.
    Random,
    /// So that all entity types get a similar number of mentions.
    Balanced,
}

impl SelfTrainingSettings {
    /// Returns the first key with an invalid value and a description of the allowed values. Returns `None` if all
    /// values are valid.
    pub(crate) fn first_invalid(&self) -> Option<(&'static str, String)> {
        if self.votes.value() <= 0.5 {
            return Some(("votes", "above 0.5".to_owned()));
        }
        let (panel, folds) = (self.panel.get(), self.folds.get());
        if folds > 1 && (!panel.is_multiple_of(folds) || panel / folds < 2) {
            let expected = format!(
                "1, or a divisor of the panel ({panel}) that leaves two taggers or more for a part"
            );
            return Some(("folds", expected));
        }
        crate::plan::check_limits(&[("panel", panel, MOST_TAGGERS)])
    }

    /// The number of taggers that have to agree if `n_taggers` vote.
    pub(super) fn n_needed(&self, n_taggers: usize) -> usize {
        n_needed(self.votes, n_taggers)
    }

    /// The number of parts that the text is cut into in a pass (counted from 1).
    pub(super) fn n_folds(&self, pass: u32) -> usize {
        if pass == 1 { 1 } else { self.folds.get() }
    }

    /// The maximum number of kept sentences in a pass (counted from 1) for `n_gold` gold sentences.
    pub(super) fn max_kept(&self, pass: u32, n_gold: usize) -> usize {
        let cap = if pass == self.passes.get() { self.last_cap } else { self.cap };
        n_gold.saturating_mul(cap.get())
    }
}

/// The number of taggers that are at least a share of `n_taggers`, and at least 1.
pub(crate) fn n_needed(share: Rate, n_taggers: usize) -> usize {
    // The tolerance keeps 0.6 of 5 taggers at 3.
    let share = share.value() * n_taggers as f64 - 1e-9;
    (1..n_taggers).find(|n| *n as f64 >= share).unwrap_or(n_taggers)
}
