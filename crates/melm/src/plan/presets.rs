//! The presets: complete plans with the settings of the paper, of the authors' code, and with the best measured
//! settings.

use std::num::{NonZeroU32, NonZeroU64, NonZeroUsize};

use super::family_rates::tagger_rate;
use super::{ModelClass, ModelClasses, ModelNames, ModelSize, Plan, VERSION};
use crate::codemix::{CodemixSettings, VectorKind};
use crate::entity_lm::{FinetuneSettings, MarkerSettings};
use crate::generate::{FillOrder, GenerateSettings, Ranks, WithoutMentions};
use crate::gold_check::GoldCheckSettings;
use crate::judge::{FilterMode, FilterSettings};
use crate::markers::{RelatedWords, RowStart};
use crate::mask::{GenerationMask, Refresh, Scope, TrainingMask, Unit};
use crate::methods::Method;
use crate::methods::{DagaSettings, MuldaSettings, SubstituteSettings, UnknownTokens};
use crate::names::NamesSettings;
use crate::pick::PickSettings;
use crate::rate::Rate;
use crate::self_training::{Agreement, Choice, PanelData, SelfTrainingSettings, SilverSettings};
use crate::tagger::{TaggerHead, TaggerSettings};
use crate::training::{
    Budget, CheckpointChoice, EvaluationInterval, FrozenPrefixes, ScheduleKind, TrainingSettings,
};

/// A complete plan that has a name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Preset {
    /// The settings that gave the best results in our measurements.
    #[default]
    Best,
    /// The settings of [`Self::Best`], but with a smaller panel and a single pass over unlabelled text, for machines
    /// without a GPU.
    Quick,
    /// The settings of the paper.
    Paper,
    /// The settings of the authors' public code, where it differs from the paper.
    ReferenceCode,
}

impl Preset {
    /// The presets and their names, in the order of `--help`.
    pub const NAMES: [(&'static str, Self); 4] = [
        ("best", Self::Best),
        ("quick", Self::Quick),
        ("paper", Self::Paper),
        ("reference-code", Self::ReferenceCode),
    ];

    /// The complete plan for models of these classes. `best` and `quick` depend on them; the other presets do not.
    pub fn plan(self, classes: ModelClasses) -> Plan {
        if self == Self::Quick {
            return Plan { self_training: quick_self_training(), ..Self::Best.plan(classes) };
        }
        let (masked_lm, tagger) = match self {
            Self::Best | Self::Quick => ("mini", "mini"),
            // Section 3.2: base for the masked language model, large for the tagger.
            Self::Paper | Self::ReferenceCode => ("xlm-roberta-base", "xlm-roberta-large"),
        };
        let is_reference = self == Self::ReferenceCode;
        Plan {
            version: VERSION,
            seed: 1,
            // docs/results.md: the mean F1 of `melm-both` is higher than that of the paper's method at each training
            // set size.
            method: if self == Self::Best { Method::MelmBoth } else { Method::Melm },
            // `docs/fidelity.md` row 10: the authors' code writes the drafts without gold.
            union: !is_reference,
            model: ModelNames {
                masked_lm: masked_lm.to_owned(),
                tagger: tagger.to_owned(),
                seq2seq: String::new(),
            },
            markers: MarkerSettings {
                linearize: true,
                // `docs/fidelity.md` row 13: the authors' code adds the mean of related words to a random row.
                start: if is_reference { RowStart::RelatedAdded } else { RowStart::RelatedWords },
                train: true,
                words: RelatedWords::new(),
            },
            finetune: match (self, classes.masked_lm.size) {
                (Self::ReferenceCode, _) => reference_finetune(),
                (Self::Best | Self::Quick, ModelSize::Small) => small_finetune(),
                (Self::Best | Self::Quick, ModelSize::Base | ModelSize::Large) => full_finetune(),
                (Self::Paper, _) => paper_finetune(),
            },
            generate: match self {
                Self::Best | Self::Quick => readable_generate(),
                Self::Paper => paper_generate(),
                Self::ReferenceCode => reference_generate(),
            },
            substitute: SubstituteSettings {
                rate: Rate::constant(0.5),
                match_before: self == Self::Best,
            },
            names: NamesSettings::default(),
            daga: if self == Self::Best { small_daga() } else { paper_daga() },
            mulda: if self == Self::Best { small_mulda() } else { paper_mulda() },
            // Section 2.5: every mention is replaced by the most similar one, compared by MUSE vectors.
            codemix: CodemixSettings { rate: Rate::constant(1.0), vectors: VectorKind::Words },
            // `docs/fidelity.md` row 9: the authors' code has no filter.
            filter: FilterSettings {
                mode: if is_reference { FilterMode::Off } else { FilterMode::Agreement },
                threshold: Rate::constant(0.5),
                judges: NonZeroUsize::MIN,
                votes: Rate::constant(1.0),
            },
            self_training: self_training(),
            silver: SilverSettings::default(),
            pick: PickSettings::default(),
            // The check trains several taggers, so it is off unless the user asks for it.
            gold_check: GoldCheckSettings { folds: 0 },
            tagger: match (self, classes.tagger.size) {
                (Self::Best | Self::Quick, ModelSize::Small) => small_tagger(),
                (Self::Best | Self::Quick, _) => full_tagger(classes.tagger),
                (Self::Paper | Self::ReferenceCode, _) => paper_tagger(),
            },
        }
    }
}

/// The settings in sections 2.2 and 3.2 of the paper: entity tokens are masked; Adam at 1e-5, batch size 30,
/// 20 epochs. Masks are redrawn in each epoch. The loss is computed for masked pieces only.
fn paper_finetune() -> FinetuneSettings {
    FinetuneSettings {
        mask: TrainingMask { unit: Unit::Token, ..TrainingMask::default() },
        training: TrainingSettings {
            budget: Budget::Epochs(count(20)),
            batch_size: size_of(30),
            learning_rate: 1e-5,
            warmup: 0.0,
            schedule: ScheduleKind::Constant,
            weight_decay: 0.0,
            clip: 0.0,
            evaluate_every: EvaluationInterval::Epochs(count(1)),
            patience: 0,
            keep: CheckpointChoice::Best,
            freeze: FrozenPrefixes::default(),
        },
    }
}

/// The settings of the authors' code (`docs/fidelity.md` rows 3 and 14): pieces are masked, and 30 masks are used in
/// turn. An update has 2 batches of 16 sentences, and its gradient is clipped.
fn reference_finetune() -> FinetuneSettings {
    let paper = paper_finetune();
    let thirty = NonZeroU32::new(30).expect("30 is not 0");
    FinetuneSettings {
        mask: TrainingMask {
            unit: Unit::Piece,
            refresh: Refresh::Cycled(thirty),
            ..TrainingMask::default()
        },
        training: TrainingSettings { batch_size: size_of(32), clip: 1.0, ..paper.training },
    }
}

/// The settings of the paper, but pieces are masked instead of tokens. `docs/fidelity.md` rows 3 and 4 have the
/// measured difference.
fn full_finetune() -> FinetuneSettings {
    FinetuneSettings { mask: TrainingMask::default(), ..paper_finetune() }
}

/// The settings that measured best on dev for the embedded model; `docs/log.md` has the measurements.
fn small_finetune() -> FinetuneSettings {
    let full = full_finetune();
    FinetuneSettings {
        training: TrainingSettings {
            budget: Budget::Epochs(count(5)),
            batch_size: size_of(16),
            learning_rate: 2e-4,
            warmup: 0.1,
            schedule: ScheduleKind::Linear,
            clip: 1.0,
            // One evaluation, after the last epoch: an evaluation takes as long as most of an epoch, and earlier epochs
            // are seldom better.
            evaluate_every: EvaluationInterval::Epochs(count(5)),
            freeze: piece_embeddings(),
            ..full.training
        },
        ..full
    }
}

/// The settings of the authors' code of DAGA and of its command line: embedding size 300, one layer of size 512,
/// dropout 0.5, batch size 32, 30 epochs, early stopping after 2 epochs without improvement. Tokens that occur once
/// are unknown. The learning rate is our choice, because the authors use SGD.
fn paper_daga() -> DagaSettings {
    DagaSettings {
        embedding_size: size_of(300),
        hidden_size: size_of(512),
        layers: size_of(1),
        dropout: Rate::constant(0.5),
        min_count: size_of(2),
        unknown: UnknownTokens::Kept,
        temperature: 1.0,
        longest: size_of(150),
        tries: size_of(20),
        training: TrainingSettings {
            budget: Budget::Epochs(count(30)),
            batch_size: size_of(32),
            learning_rate: 2e-3,
            clip: 5.0,
            patience: 3,
            ..paper_finetune().training
        },
    }
}

/// Half the sizes of `paper_daga`, for about a hundred sentences. Most tokens of such a corpus occur only once, so
/// that these tokens must not become unknown.
fn small_daga() -> DagaSettings {
    let paper = paper_daga();
    DagaSettings {
        embedding_size: size_of(150),
        hidden_size: size_of(256),
        min_count: NonZeroUsize::MIN,
        unknown: UnknownTokens::Dropped,
        training: TrainingSettings { batch_size: size_of(16), patience: 5, ..paper.training },
        ..paper
    }
}

/// The settings of the authors' code of `MulDA`: learning rate 5e-5, dropout 0.3 (attention: 0.1), updates of two
/// batches of 512 pieces, 250 epochs, five beams.
fn paper_mulda() -> MuldaSettings {
    MuldaSettings {
        language: "en_XX".to_owned(),
        width: size_of(128),
        layers: size_of(2),
        heads: size_of(4),
        dropout: Rate::constant(0.3),
        attention_dropout: Rate::constant(0.1),
        beams: 5,
        temperature: 1.0,
        longest: size_of(200),
        tries: size_of(20),
        training: TrainingSettings {
            budget: Budget::Epochs(count(250)),
            batch_size: size_of(16),
            learning_rate: 5e-5,
            warmup: 0.05,
            schedule: ScheduleKind::Linear,
            evaluate_every: EvaluationInterval::Epochs(count(10)),
            ..paper_finetune().training
        },
    }
}

/// The settings for a small model without pretraining. Sentences are sampled, because a beam search repeats gold. The
/// last epoch is kept: the best epoch on dev is the tenth, when the model can hardly write sentences yet
/// (`docs/log.md`).
fn small_mulda() -> MuldaSettings {
    let paper = paper_mulda();
    MuldaSettings {
        dropout: Rate::constant(0.1),
        attention_dropout: Rate::constant(0.0),
        beams: 0,
        training: TrainingSettings {
            budget: Budget::Epochs(count(60)),
            learning_rate: 2e-3,
            warmup: 0.1,
            clip: 1.0,
            evaluate_every: EvaluationInterval::Epochs(count(5)),
            keep: CheckpointChoice::Last,
            ..paper.training
        },
        ..paper
    }
}

/// The settings of the paper, with rules for drafts that read better. No token is repeated side by side or in two mentions,
/// function words are kept, and the model does not rewrite mentions of more than three tokens. A new token is a whole word
/// with the casing of the old one, and the tokens of a mention are chosen one after the other. On dev these rules make no
/// clear difference in F1 (`docs/log.md`).
fn readable_generate() -> GenerateSettings {
    GenerateSettings {
        order: FillOrder::WithinMentions,
        whole_words: true,
        keep_case: true,
        avoid_repeats: true,
        distinct_mentions: true,
        keep_function_words: true,
        longest_mention: 3,
        ..GenerateSettings::default()
    }
}

/// The settings of section 2.3: for each mention, the number of masked tokens is drawn.
fn paper_generate() -> GenerateSettings {
    let mask = GenerationMask { unit: Unit::Token, ..GenerationMask::default() };
    GenerateSettings { mask, ..GenerateSettings::default() }
}

/// The settings of the authors' code (`docs/fidelity.md` rows 4, 5 and 17): the number of masks is drawn for each
/// token, the most probable piece is never chosen, and sentences without mentions are copied.
fn reference_generate() -> GenerateSettings {
    let default = GenerateSettings::default();
    GenerateSettings {
        mask: GenerationMask { scope: Scope::Token, ..default.mask },
        ranks: Ranks::try_from((2, 5)).expect("two ranks in order"),
        without_mentions: WithoutMentions::Copied,
        ..default
    }
}

/// The name prefix of the piece embeddings, which are frozen. A hundred sentences are too few to train the embeddings
/// of fifty thousand pieces. Without training them, an update takes half the time. The rows of markers are trained
/// (`markers.train`).
fn piece_embeddings() -> FrozenPrefixes {
    FrozenPrefixes(vec!["roberta.embeddings.word_embeddings".to_owned()])
}

/// The settings that measured best on dev for the embedded model; `docs/log.md` has the measurements. The paper has no
/// unlabelled text, so all presets but `quick` share them.
fn self_training() -> SelfTrainingSettings {
    SelfTrainingSettings {
        passes: NonZeroU32::new(2).expect("2 is not 0"),
        panel: size_of(5),
        folds: NonZeroUsize::MIN,
        learns_from: PanelData::GoldAndDrafts,
        budget: Budget::Updates(count(300)),
        agreement: Agreement::Mention,
        votes: Rate::constant(0.8),
        threshold: Rate::constant(0.5),
        cap: size_of(6),
        last_cap: size_of(20),
        choice: Choice::Random,
        without_mentions: Rate::constant(0.0),
    }
}

/// The settings for a machine without a GPU: 3 instead of 10 taggers are trained.
fn quick_self_training() -> SelfTrainingSettings {
    SelfTrainingSettings {
        passes: NonZeroU32::MIN,
        panel: size_of(3),
        votes: Rate::constant(1.0),
        last_cap: size_of(6),
        ..self_training()
    }
}

fn count(n: u64) -> NonZeroU64 {
    NonZeroU64::new(n).expect("counts in presets are not 0")
}

fn size_of(n: usize) -> NonZeroUsize {
    NonZeroUsize::new(n).expect("counts in presets are not 0")
}

/// The settings of section 3.2: CRF, `AdamW` at 2e-5, batch size 16, 10 epochs. The best epoch on dev is kept.
fn paper_tagger() -> TaggerSettings {
    TaggerSettings {
        head: TaggerHead::Crf,
        constrained: false,
        training: TrainingSettings {
            budget: Budget::Epochs(count(10)),
            batch_size: size_of(16),
            learning_rate: 2e-5,
            warmup: 0.0,
            schedule: ScheduleKind::Constant,
            weight_decay: 0.01,
            clip: 1.0,
            evaluate_every: EvaluationInterval::Epochs(count(1)),
            patience: 0,
            keep: CheckpointChoice::Best,
            freeze: FrozenPrefixes::default(),
        },
    }
}

/// The settings of the paper, with the learning rate of the model's family.
fn full_tagger(class: ModelClass) -> TaggerSettings {
    let paper = paper_tagger();
    let learning_rate = tagger_rate(class).unwrap_or(paper.training.learning_rate);
    TaggerSettings { training: TrainingSettings { learning_rate, ..paper.training }, ..paper }
}

/// The settings that measured best on dev for the embedded model; `docs/log.md` has the measurements.
fn small_tagger() -> TaggerSettings {
    TaggerSettings {
        head: TaggerHead::Crf,
        constrained: true,
        training: TrainingSettings {
            budget: Budget::Epochs(count(15)),
            learning_rate: 2e-4,
            warmup: 0.1,
            schedule: ScheduleKind::Linear,
            evaluate_every: EvaluationInterval::Epochs(count(3)),
            freeze: piece_embeddings(),
            ..paper_tagger().training
        },
    }
}
