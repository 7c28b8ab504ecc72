//! The methods, all behind one trait.

use std::ops::ControlFlow;

use melm_nn::device::Device;
use melm_text::Corpus;
use serde::{Deserialize, Serialize};

use super::algorithm::{Backbones, Gold};
use super::sources::{self, Sources, codemix};
use crate::Error;
use crate::baselines::{Daga, Mulda, ReplaceTokens, Substitute};
use crate::codemix::{Codemix, LexiconCounts};
use crate::draft::Draft;
use crate::entity_lm::{EntityLm, Finetuned};
use crate::free_generation::{FreeGeneration, RejectedCounts};
use crate::generate::{Drafter, Progress};
use crate::linearize::LinearizedCorpus;
use crate::markers::MarkerStart;
use crate::models::Pretrained;
use crate::plan::Plan;
use crate::stage::{Control, Event, Run, Stage};
use crate::training::TrainingOutcome;

/// How drafts are made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Method {
    /// No drafts at all: what augmentation is compared with.
    Gold,
    /// A mention gives way to another of its type from gold.
    LabelWise,
    /// A language model of linearized sentences, trained from scratch, writes new ones (Ding et al. 2020).
    Daga,
    /// An encoder-decoder goes on with the beginnings of linearized sentences (Liu et al. 2021).
    Mulda,
    /// A token, in a mention or not, gives way to another of its tag from gold.
    Lwtr,
    /// Masked entity pieces are guessed by the pretrained model as it is.
    MlmEntity,
    /// The masked entity language model without markers.
    MelmPlain,
    /// The masked entity language model.
    #[default]
    Melm,
    /// The masked entity language model, and beside each of its drafts one by `label-wise`.
    MelmBoth,
    /// A mention gives way to any of its type in another language.
    CodemixRandom,
    /// A mention gives way to the most similar of its type in another language.
    CodemixEss,
    /// The masked entity language model on gold and code-mixed sentences.
    MelmCodemix,
}

impl Method {
    /// The names; baselines first.
    pub const NAMES: [(&'static str, Self); 12] = [
        ("gold", Self::Gold),
        ("label-wise", Self::LabelWise),
        ("lwtr", Self::Lwtr),
        ("daga", Self::Daga),
        ("mulda", Self::Mulda),
        ("mlm-entity", Self::MlmEntity),
        ("melm-plain", Self::MelmPlain),
        ("melm", Self::Melm),
        ("melm-both", Self::MelmBoth),
        ("codemix-random", Self::CodemixRandom),
        ("codemix-ess", Self::CodemixEss),
        ("melm-codemix", Self::MelmCodemix),
    ];

    /// Whether it needs a masked language model.
    pub fn has_masked_lm(self) -> bool {
        self.finetunes() || self == Self::MlmEntity
    }

    /// Whether it reads the masked language model, or at least its pieces: a `MulDA` without a pretrained model has none of
    /// its own.
    pub fn reads_masked_lm(self) -> bool {
        self.has_masked_lm() || self == Self::Mulda
    }

    /// Whether it fine-tunes that model.
    pub fn finetunes(self) -> bool {
        self.linearizes() || self == Self::MelmPlain
    }

    /// Whether that model reads markers.
    pub fn linearizes(self) -> bool {
        matches!(self, Self::Melm | Self::MelmBoth | Self::MelmCodemix)
    }

    /// Whether it mixes languages, of which it needs several.
    pub fn mixes(self) -> bool {
        matches!(self, Self::CodemixRandom | Self::CodemixEss | Self::MelmCodemix)
    }

    /// Whether it compares mentions by vectors.
    pub fn has_vectors(self) -> bool {
        self.mixes() && self != Self::CodemixRandom
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        let found = Self::NAMES.into_iter().find(|(_, method)| *method == self);
        found.expect("every method has a name").0
    }
}

/// Makes drafts, a round at a time.
pub trait Augmenter {
    /// The drafts of one round, in the order of their sources; they depend on the stage's key and the round alone.
    fn round(&mut self, round: u32, stage: &mut Stage<'_>) -> Result<Vec<Draft>, Error>;

    /// What it wrote in the last round that is no draft; methods that fill masks write nothing else.
    fn dropped(&self) -> RejectedCounts {
        RejectedCounts::default()
    }
}

/// How a method was prepared.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Prepared {
    /// Where the rows of markers started.
    pub markers: Vec<MarkerStart>,
    /// The fine-tuning, if there was one.
    pub finetuned: Option<TrainingOutcome>,
    /// Sentences without a mention, of which there are no drafts.
    pub n_without_mentions: usize,
    /// Sentences read in several windows.
    pub n_windowed: usize,
    /// Mentions that do not fit the model and stay as they are.
    pub n_left_out: usize,
    /// Entity tokens that can never be masked and stay as they are: the model has no pieces for them.
    pub n_unmaskable: usize,
    /// Sentences too long for an encoder-decoder, from which it learnt nothing.
    pub n_too_long: usize,
    /// What code-mixing found no vector for, if there was any.
    pub codemix: Option<LexiconCounts>,
}

/// Prepares a plan's method: fine-tunes what has to be fine-tuned.
pub fn prepare<'a>(
    gold: Gold<'a>,
    plan: &'a Plan,
    backbones: Backbones<'_>,
    device: &'a Device,
    run: &mut Run<'_>,
) -> Result<(Box<dyn Augmenter + 'a>, Prepared), Error> {
    let sentences = gold.train.sentences().iter();
    let mut prepared = Prepared {
        n_without_mentions: sentences.filter(|s| s.mentions().next().is_none()).count(),
        ..Prepared::default()
    };
    if !plan.method.has_masked_lm() {
        let augmenter: Box<dyn Augmenter> = match plan.method {
            Method::LabelWise => Box::new(Substitute::new(gold.train, plan.substitute)),
            Method::Daga => {
                let stage = &mut run.stage("daga");
                let (daga, outcome) = Daga::train(gold, &plan.daga, device, stage)?;
                prepared.finetuned = Some(outcome);
                Box::new(FreeGeneration::new(daga, gold.train, plan.generate.rounds.get()))
            }
            Method::Mulda => {
                let (model, stage) = (backbones.mulda(), &mut run.stage("mulda"));
                let (mulda, learnt) = Mulda::train(gold, model, &plan.mulda, device, stage)?;
                prepared.finetuned = Some(learnt.outcome);
                prepared.n_too_long = learnt.n_too_long;
                Box::new(FreeGeneration::new(mulda, gold.train, plan.generate.rounds.get()))
            }
            Method::Lwtr => Box::new(ReplaceTokens::new(gold.train, plan.substitute)),
            Method::CodemixRandom | Method::CodemixEss => {
                let mix = codemix(gold.train, plan, backbones.vectors)?;
                prepared.codemix = Some(mix.counts().clone());
                Box::new(mix)
            }
            _ => Box::new(Nothing),
        };
        return Ok((augmenter, prepared));
    }
    let pretrained = backbones.masked_lm;
    let pretrained = pretrained.expect("a plan with a masked language model has a model for it");
    let sources = Sources::of(gold.train, plan, backbones.vectors, run)?;
    prepared.codemix.clone_from(&sources.counts);
    let learnt = Gold { train: &sources.corpus, dev: gold.dev };
    let tuned = tune(learnt, plan, pretrained, device, run)?;
    let melm = Melm::with_sources(tuned.lm, tuned.linearized, gold.train, sources, plan, device);
    prepared.markers = tuned.markers;
    prepared.finetuned = tuned.outcome;
    prepared.n_windowed = melm.linearized().n_windowed;
    prepared.n_left_out = melm.linearized().n_left_out;
    prepared.n_unmaskable = melm.n_unmaskable();
    Ok((Box::new(melm), prepared))
}

/// The masked language model of a plan, ready to guess.
pub struct Tuned {
    /// The model.
    pub lm: EntityLm,
    /// Where the rows of its markers started.
    pub markers: Vec<MarkerStart>,
    /// How it was fine-tuned, unless the method takes it as it is.
    pub outcome: Option<TrainingOutcome>,
    /// The training set as the model reads it.
    pub linearized: LinearizedCorpus,
}

/// Gives a pretrained model its markers, and fine-tunes it if the method does.
pub fn tune(
    gold: Gold<'_>,
    plan: &Plan,
    pretrained: &Pretrained,
    device: &Device,
    run: &mut Run<'_>,
) -> Result<Tuned, Error> {
    let mut stage = run.stage("finetune");
    let corpora: Vec<_> = std::iter::once(gold.train).chain(gold.dev).collect();
    let seed = stage.key().then("rows").generator().bits();
    let (lm, markers) = EntityLm::new(pretrained, &corpora, &plan.marker_settings(), seed)?;
    if !plan.method.finetunes() {
        let linearized = lm.linearize(gold.train)?;
        return Ok(Tuned { lm, markers, outcome: None, linearized });
    }
    let Finetuned { lm, outcome, linearized } =
        lm.finetune(gold.train, gold.dev, &plan.finetune, device, &mut stage)?;
    Ok(Tuned { lm, markers, outcome: Some(outcome), linearized })
}

/// Drafts by a masked entity language model (section 2.3).
pub struct Melm<'a> {
    drafter: Drafter,
    sources: Sources<'a>,
    linearized: LinearizedCorpus,
    /// Who makes a draft beside each of the model's, if the method wants both: mentions of gold in other contexts, of
    /// any length, where the model's are new and as long as they were.
    beside: Option<Substitute<'a>>,
    device: &'a Device,
}

impl<'a> Melm<'a> {
    /// A model that is ready to guess.
    pub fn new(
        lm: EntityLm,
        corpus: &'a Corpus,
        plan: &'a Plan,
        device: &'a Device,
    ) -> Result<Self, Error> {
        let linearized = lm.linearize(corpus)?;
        Ok(Self::with_sources(lm, linearized, corpus, Sources::gold(corpus), plan, device))
    }

    /// Like [`Self::new`], with code-mixed sentences among the sources. `linearized` is the corpus of these sources.
    fn with_sources(
        lm: EntityLm,
        linearized: LinearizedCorpus,
        gold: &'a Corpus,
        sources: Sources<'a>,
        plan: &'a Plan,
        device: &'a Device,
    ) -> Self {
        let has_both = plan.method == Method::MelmBoth;
        let beside = has_both.then(|| Substitute::new(gold, plan.substitute));
        let drafter = Drafter::new(lm, plan.generate.clone());
        Self { drafter, sources, linearized, beside, device }
    }

    /// Drafts of code-mixed sentences as drafts of the gold sentences behind them; in the first round with the
    /// code-mixed sentences themselves, each before what was made of it.
    fn of_gold(&self, round: u32, mut drafts: Vec<Draft>) -> Vec<Draft> {
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

    /// The corpus as the model reads it.
    pub fn linearized(&self) -> &LinearizedCorpus {
        &self.linearized
    }

    /// How many entity tokens can never be masked.
    pub fn n_unmaskable(&self) -> usize {
        self.drafter.n_unmaskable(&self.linearized)
    }
}

impl Augmenter for Melm<'_> {
    fn round(&mut self, round: u32, stage: &mut Stage<'_>) -> Result<Vec<Draft>, Error> {
        let n_rounds = u64::from(self.drafter.settings().rounds.get());
        let key = stage.key();
        let mut on_progress = |progress: Progress| {
            let (done, of) = (progress.done as u64, progress.total as u64);
            let before = u64::from(round - 1) * of;
            match stage.report(Event::Progress { done: before + done, of: of * n_rounds }) {
                Control::Stop => ControlFlow::Break(()),
                Control::Continue | Control::Save => ControlFlow::Continue(()),
            }
        };
        let (corpus, linearized) = (&self.sources.corpus, &self.linearized);
        let made =
            self.drafter.round(self.device, corpus, linearized, key, round, &mut on_progress)?;
        let mut drafts = self.of_gold(round, made.ok_or(Error::Interrupted)?.drafts);
        if let Some(beside) = &self.beside {
            drafts.extend(beside.round(key.then("beside"), round));
            drafts.sort_by_key(|draft| draft.source);
        }
        Ok(drafts)
    }
}

impl Augmenter for Substitute<'_> {
    fn round(&mut self, round: u32, stage: &mut Stage<'_>) -> Result<Vec<Draft>, Error> {
        Ok(Substitute::round(self, stage.key(), round))
    }
}

impl Augmenter for ReplaceTokens<'_> {
    fn round(&mut self, round: u32, stage: &mut Stage<'_>) -> Result<Vec<Draft>, Error> {
        Ok(ReplaceTokens::round(self, stage.key(), round))
    }
}

impl Augmenter for Codemix<'_> {
    fn round(&mut self, round: u32, stage: &mut Stage<'_>) -> Result<Vec<Draft>, Error> {
        sources::round(self, round, stage)
    }
}

/// No drafts.
struct Nothing;

impl Augmenter for Nothing {
    fn round(&mut self, _: u32, _: &mut Stage<'_>) -> Result<Vec<Draft>, Error> {
        Ok(Vec::new())
    }
}
