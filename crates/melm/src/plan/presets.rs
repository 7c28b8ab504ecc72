//! Whole plans: the paper's, the reference code's, and what measured best.

use std::num::{NonZeroU64, NonZeroUsize};

use super::{Models, Plan, VERSION};
use crate::fit::{Budget, FitSettings, Freeze, Shape};
use crate::tagger::{Head, TaggerSettings};

/// A plan by name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Preset {
    /// What measured best.
    #[default]
    Best,
    /// The paper, each value with its section.
    Paper,
    /// The authors' public code, where it leaves the paper.
    ReferenceCode,
}

/// How large the model is: what measured best depends on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Size {
    /// Like the embedded mini: less than half of XLM-R-base.
    Small,
    /// XLM-R and larger.
    Full,
}

impl Size {
    /// Rows of XLM-R-base are 768 wide; anything narrower is small.
    pub fn of_width(hidden_size: usize) -> Self {
        if hidden_size < 768 { Self::Small } else { Self::Full }
    }
}

impl Preset {
    /// The names, in the order of `--help`.
    pub const NAMES: [(&'static str, Self); 3] =
        [("best", Self::Best), ("paper", Self::Paper), ("reference-code", Self::ReferenceCode)];

    /// The whole plan, for a tagger of this size.
    pub fn plan(self, size: Size) -> Plan {
        let (masked_lm, tagger) = match self {
            Self::Best => ("mini", "mini"),
            // Section 4.1: base for the masked language model, large for the tagger.
            Self::Paper | Self::ReferenceCode => ("xlm-roberta-base", "xlm-roberta-large"),
        };
        Plan {
            version: VERSION,
            seed: 1,
            model: Models { masked_lm: masked_lm.to_owned(), tagger: tagger.to_owned() },
            tagger: match (self, size) {
                (Self::Best, Size::Small) => small_tagger(),
                _ => paper_tagger(),
            },
        }
    }
}

fn count(n: u64) -> NonZeroU64 {
    NonZeroU64::new(n).expect("a preset counts from 1")
}

fn batch_of(n: usize) -> NonZeroUsize {
    NonZeroUsize::new(n).expect("a preset counts from 1")
}

/// Section 4.1: CRF, `AdamW` at 2e-5, batch 16, 10 epochs, best on dev.
fn paper_tagger() -> TaggerSettings {
    TaggerSettings {
        head: Head::Crf,
        constrained: false,
        fit: FitSettings {
            budget: Budget::Epochs(count(10)),
            batch_size: batch_of(16),
            learning_rate: 2e-5,
            warmup: 0.0,
            schedule: Shape::Constant,
            weight_decay: 0.01,
            clip: 1.0,
            evaluate_every: count(1),
            patience: 0,
            freeze: Freeze::default(),
        },
    }
}

/// What measured best on dev for mini; `docs/log.md` has the measurements.
fn small_tagger() -> TaggerSettings {
    TaggerSettings {
        head: Head::Crf,
        constrained: true,
        fit: FitSettings {
            budget: Budget::Epochs(count(20)),
            learning_rate: 3e-4,
            warmup: 0.1,
            schedule: Shape::Linear,
            evaluate_every: count(2),
            freeze: Freeze(vec!["roberta.embeddings.word_embeddings".to_owned()]),
            ..paper_tagger().fit
        },
    }
}
