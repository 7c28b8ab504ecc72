//! The methods that make drafts, behind one trait.
//!
//! To add a method, add a variant to [`Method`], a file in this folder that implements [`Augmenter`], and an arm in
//! [`prepare`].

mod daga;
mod free_generation;
mod label_wise;
mod lwtr;
mod melm;
mod mulda;
mod replace;
mod sources;

pub use daga::{DagaSettings, UnknownTokens};
pub use free_generation::{RejectReason, RejectedCounts};
pub use label_wise::SubstituteSettings;
pub(crate) use label_wise::{Substitute, UsedNames};
pub(crate) use lwtr::swap_tokens;
pub use melm::{Melm, Tuned, tune};
pub(crate) use mulda::MuldaModel;
pub use mulda::{MuldaSettings, NO_PRETRAINING, PretrainedSeq2Seq};
pub use replace::substitute_mentions;
pub(crate) use replace::{NewMention, replace_mentions};
pub use sources::Sources;

use melm_nn::device::Device;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Error;
use crate::augment::{Backbones, Gold};
use crate::codemix::LexiconCounts;
use crate::draft::Draft;
use crate::generate::FixedCounts;
use crate::linearize::LinearizedCounts;
use crate::markers::MarkerStart;
use crate::plan::Plan;
use crate::stage::{Run, Stage};
use crate::training::TrainingOutcome;
use daga::Daga;
use free_generation::FreeGeneration;
use lwtr::ReplaceTokens;
use mulda::Mulda;

/// A method that makes drafts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Method {
    /// No drafts: the baseline of every comparison.
    Gold,
    /// Replaces a mention by another gold mention of the same type.
    LabelWise,
    /// A language model of linearized sentences is trained from scratch and writes new sentences (Ding et al. 2020).
    Daga,
    /// An encoder-decoder completes the beginnings of linearized sentences (Liu et al. 2021).
    Mulda,
    /// Replaces a token, inside or outside a mention, by another gold token that has the same tag.
    Lwtr,
    /// The pretrained masked language model fills masked entity pieces, without fine-tuning.
    MlmEntity,
    /// The masked entity language model without markers.
    MelmPlain,
    /// The masked entity language model.
    #[default]
    Melm,
    /// The masked entity language model, plus one draft of `label-wise` for each of its drafts.
    MelmBoth,
    /// Replaces a mention by a random mention of the same type in another language.
    CodemixRandom,
    /// Replaces a mention by the most similar mention of the same type in another language.
    CodemixEss,
    /// The masked entity language model, trained on gold and code-mixed sentences.
    MelmCodemix,
}

/// The properties of a method that other parts of the program depend on.
#[derive(Clone, Copy, Default)]
#[expect(clippy::struct_excessive_bools, reason = "each is an independent property")]
struct Properties {
    fills_masks: bool,
    finetunes: bool,
    linearizes: bool,
    mixes: bool,
    has_vectors: bool,
}

impl Method {
    /// All methods, baselines first.
    pub const ALL: [Self; 12] = [
        Self::Gold,
        Self::LabelWise,
        Self::Lwtr,
        Self::Daga,
        Self::Mulda,
        Self::MlmEntity,
        Self::MelmPlain,
        Self::Melm,
        Self::MelmBoth,
        Self::CodemixRandom,
        Self::CodemixEss,
        Self::MelmCodemix,
    ];

    fn properties(self) -> Properties {
        let none = Properties::default();
        let masked_lm = Properties { fills_masks: true, ..none };
        let melm = Properties { finetunes: true, linearizes: true, ..masked_lm };
        match self {
            Self::Gold | Self::LabelWise | Self::Lwtr | Self::Daga | Self::Mulda => none,
            Self::MlmEntity => masked_lm,
            Self::MelmPlain => Properties { finetunes: true, ..masked_lm },
            Self::Melm | Self::MelmBoth => melm,
            Self::CodemixRandom => Properties { mixes: true, ..none },
            Self::CodemixEss => Properties { mixes: true, has_vectors: true, ..none },
            Self::MelmCodemix => Properties { mixes: true, has_vectors: true, ..melm },
        }
    }

    /// Returns true if the method fills masks with a masked language model.
    pub fn has_masked_lm(self) -> bool {
        self.properties().fills_masks
    }

    /// Returns true if the method needs the masked language model or its tokenizer. `MulDA` needs the tokenizer if it
    /// has no pretrained model of its own.
    pub fn reads_masked_lm(self) -> bool {
        self.has_masked_lm() || self == Self::Mulda
    }

    /// Returns true if the method fine-tunes the masked language model.
    pub fn finetunes(self) -> bool {
        self.properties().finetunes
    }

    /// Returns true if the masked language model reads markers.
    pub fn linearizes(self) -> bool {
        self.properties().linearizes
    }

    /// Returns true if the method mixes languages. Such a method needs at least two languages.
    pub fn mixes(self) -> bool {
        self.properties().mixes
    }

    /// Returns true if the method can replace mentions by names of lists.
    pub fn has_names(self) -> bool {
        matches!(self, Self::LabelWise | Self::MelmBoth)
    }

    /// Returns true if the method compares mentions by their vectors.
    pub fn has_vectors(self) -> bool {
        self.properties().has_vectors
    }

    /// The name of the method in plans and options.
    pub fn name(self) -> &'static str {
        match self {
            Self::Gold => "gold",
            Self::LabelWise => "label-wise",
            Self::Lwtr => "lwtr",
            Self::Daga => "daga",
            Self::Mulda => "mulda",
            Self::MlmEntity => "mlm-entity",
            Self::MelmPlain => "melm-plain",
            Self::Melm => "melm",
            Self::MelmBoth => "melm-both",
            Self::CodemixRandom => "codemix-random",
            Self::CodemixEss => "codemix-ess",
            Self::MelmCodemix => "melm-codemix",
        }
    }

    /// Returns the method with this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|method| method.name() == name)
    }
}

/// Makes drafts, one round at a time.
pub trait Augmenter {
    /// Returns the drafts of one round in the order of their sources. The drafts must depend only on the key of the
    /// stage and on the round.
    fn round(&mut self, round: u32, stage: &mut Stage<'_>) -> Result<Vec<Draft>, Error>;

    /// The number of sentences that the last round wrote but that did not become drafts. Empty for methods that fill
    /// masks.
    fn dropped(&self) -> RejectedCounts {
        RejectedCounts::default()
    }
}

/// A report on the preparation of a method: how its model was trained, and what had to be left out.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Prepared {
    /// How the rows of the markers were initialised.
    pub markers: Vec<MarkerStart>,
    /// The training record of the method's model, if the method trains one.
    pub finetuned: Option<TrainingOutcome>,
    /// The number of sentences without a mention. No drafts are made of them.
    pub n_without_mentions: usize,
    /// How much of the corpus the masked language model can read and mask; `None` for methods without such a model.
    pub linearized: Option<LinearizedCounts>,
    /// The number of entity tokens and mentions that the plan does not allow to be rewritten.
    pub fixed: FixedCounts,
    /// The number of sentences that are not used for training, because they are too long for the encoder-decoder.
    pub n_too_long: usize,
    /// The number of words and mentions without a vector, for code-mixing.
    pub codemix: Option<LexiconCounts>,
}

/// Prepares the method of a plan. Trains the model of the method, if it has one.
pub fn prepare<'a>(
    gold: Gold<'a>,
    plan: &'a Plan,
    backbones: Backbones<'a>,
    device: &'a Device,
    run: &mut Run<'_>,
) -> Result<(Box<dyn Augmenter + 'a>, Prepared), Error> {
    let (train, n_rounds) = (gold.train, plan.generate.rounds.get());
    let without = train.sentences().iter().filter(|s| s.mentions().next().is_none());
    let mut prepared = Prepared { n_without_mentions: without.count(), ..Prepared::default() };
    let augmenter: Box<dyn Augmenter> = match plan.method {
        Method::Gold => Box::new(NoAugmentation),
        Method::LabelWise => {
            let names = backbones.used_names(plan);
            Box::new(Substitute::new(train, plan.substitute).with_names(names))
        }
        Method::Lwtr => Box::new(ReplaceTokens::new(train, plan.substitute)),
        Method::Daga => {
            let stage = &mut run.stage("daga");
            let (daga, outcome) = Daga::train(gold, &plan.daga, device, stage)?;
            prepared.finetuned = Some(outcome);
            Box::new(FreeGeneration::new(daga, train, n_rounds))
        }
        Method::Mulda => {
            let (model, stage) = (backbones.mulda(), &mut run.stage("mulda"));
            let (mulda, learnt) = Mulda::train(gold, model, &plan.mulda, device, stage)?;
            prepared.finetuned = Some(learnt.outcome);
            prepared.n_too_long = learnt.n_too_long;
            Box::new(FreeGeneration::new(mulda, train, n_rounds))
        }
        Method::CodemixRandom | Method::CodemixEss => {
            let mix = sources::codemix(train, plan, backbones.vectors)?;
            prepared.codemix = Some(mix.counts().clone());
            Box::new(mix)
        }
        Method::MlmEntity
        | Method::MelmPlain
        | Method::Melm
        | Method::MelmBoth
        | Method::MelmCodemix => {
            Box::new(prepare_melm(gold, plan, backbones, device, run, &mut prepared)?)
        }
    };
    Ok((augmenter, prepared))
}

/// Linearizes and fine-tunes (sections 2.1 and 2.2), and records the counts in `prepared`.
fn prepare_melm<'a>(
    gold: Gold<'a>,
    plan: &'a Plan,
    backbones: Backbones<'a>,
    device: &'a Device,
    run: &mut Run<'_>,
    prepared: &mut Prepared,
) -> Result<Melm<'a>, Error> {
    let pretrained = backbones.masked_lm.expect("a method that fills masks has a model for it");
    let sources = Sources::new(gold.train, plan, backbones.vectors, run)?;
    prepared.codemix.clone_from(&sources.counts);
    let learned_from = Gold { train: &sources.corpus, dev: gold.dev };
    let tuned = tune(learned_from, plan, pretrained, device, run)?;
    let melm = Melm::with_sources(tuned.lm, tuned.linearized, gold.train, sources, plan, device);
    let melm = melm.with_names(backbones.used_names(plan));
    prepared.markers = tuned.markers;
    prepared.finetuned = tuned.outcome;
    prepared.linearized = Some(melm.counts());
    prepared.fixed = melm.fixed();
    Ok(melm)
}

/// Makes no drafts.
struct NoAugmentation;

impl Augmenter for NoAugmentation {
    fn round(&mut self, _: u32, _: &mut Stage<'_>) -> Result<Vec<Draft>, Error> {
        Ok(Vec::new())
    }
}
