//! A prepared run: data, plan, opened models and device.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use melm_nn::device::Device;
use melm_text::{Corpus, LeftOut, Token, UnlabelledText};

use super::algorithm::{Backbones, Gold, augment};
use super::harvest::add_harvest_round;
use super::result::Augmented;
use super::text::{TextOutcome, TextToLabel};
use crate::Error;
use crate::codemix::{MentionVectors, VectorKind};
use crate::files::{Fingerprint, write_whole};
use crate::gold_check::{CheckedSentence, GoldCheck};
use crate::methods::PretrainedSeq2Seq;
use crate::methods::{Method, Sources, tune};
use crate::models::{ModelStore, NeededModels, Pretrained};
use crate::names::{Names, harvest};
use crate::notes::{coverage_warning, coverage_warnings, type_warnings};
use crate::plan::Plan;
use crate::random::Seed;
use crate::run_folder::Identity;
use crate::shard::Shard;
use crate::stage::{Observer, Run};
use crate::tagger::{check_types, transition_warning};

/// A run that is ready to start: its plan is checked and its models are open. [`super::Augment::prepare`] creates it.
pub struct AugmentJob {
    pub(super) plan: Plan,
    pub(super) train: Corpus,
    pub(super) dev: Option<Corpus>,
    pub(super) text: Option<TextToLabel>,
    pub(super) names: Option<Names>,
    pub(super) masked_lm: Option<Pretrained>,
    pub(super) tagger: Option<Pretrained>,
    pub(super) seq2seq: Option<PretrainedSeq2Seq>,
    pub(super) vectors: Option<MentionVectors>,
    pub(super) device: Arc<Device>,
}

/// The data of a run.
pub(super) struct JobData {
    pub(super) train: Corpus,
    pub(super) dev: Option<Corpus>,
    pub(super) text: Option<TextToLabel>,
    pub(super) names: Option<Names>,
    pub(super) vectors: Option<MentionVectors>,
}

impl AugmentJob {
    /// The models that a plan needs to augment a corpus. `has_text` is true if unlabelled text is labelled too.
    pub fn needed_models(plan: &Plan, has_text: bool) -> NeededModels {
        NeededModels {
            masked_lm: plan.needs_masked_lm(),
            tagger: plan.has_judge() || has_text || plan.gold_check.folds > 0,
        }
    }

    /// Opens the models of the plan. Fails if the method fills masks and the model has no masked-LM head. Also computes mention vectors if the plan derives them from piece embeddings.
    pub(super) fn new(
        data: JobData,
        plan: Plan,
        models: &ModelStore,
        device: Arc<Device>,
    ) -> Result<Self, Error> {
        let JobData { train, dev, text, names, vectors } = data;
        if plan.method.mixes() && train.languages().len() < 2 {
            return Err(Error::OneLanguage);
        }
        if names.is_some() && !plan.method.has_names() {
            return Err(Error::UnusedNames { method: plan.method.name() });
        }
        let needed = Self::needed_models(&plan, text.is_some());
        let open = |is_needed: bool, name: &str| is_needed.then(|| models.open(name)).transpose();
        let masked_lm = open(needed.masked_lm, &plan.model.masked_lm)?;
        if let Some(model) = masked_lm.as_ref().filter(|_| plan.method.has_masked_lm()) {
            model.checkpoint().require_masked_lm_head()?;
        }
        let tagger = open(needed.tagger, &plan.model.tagger)?;
        if tagger.is_some() {
            check_types(&train, plan.tagger.head, &device)?;
        }
        let seq2seq = Some(&plan.model.seq2seq)
            .filter(|folder| plan.method == Method::Mulda && !folder.is_empty())
            .map(|name| models.open_seq2seq(name))
            .transpose()?;
        let by_pieces = plan.method.has_vectors() && plan.codemix.vectors == VectorKind::Pieces;
        let vectors = match masked_lm.as_ref().filter(|_| by_pieces) {
            Some(model) => Some(MentionVectors::from_piece_embeddings(&train, model)?),
            None => vectors,
        };
        Ok(Self { plan, train, dev, text, names, masked_lm, tagger, seq2seq, vectors, device })
    }

    /// The plan.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// The corpus that is augmented.
    pub fn train(&self) -> &Corpus {
        &self.train
    }

    /// The dev set, which selects the best epochs.
    pub fn dev(&self) -> Option<&Corpus> {
        self.dev.as_ref()
    }

    /// The masked language model, if the plan needs one.
    pub fn masked_lm(&self) -> Option<&Pretrained> {
        self.masked_lm.as_ref()
    }

    /// The unlabelled text, without the sentences that were left out.
    pub fn text(&self) -> Option<&UnlabelledText> {
        self.text.as_ref().map(|text| &text.text)
    }

    /// The numbers of sentences that were left out of the unlabelled text, because they are also in the training set, the dev
    /// set or a held-out text, or repeat another sentence of the text.
    pub fn left_out(&self) -> LeftOut {
        self.text.as_ref().map(|text| text.left_out).unwrap_or_default()
    }

    /// Returns true if names of the unlabelled text make drafts.
    fn harvests(&self) -> bool {
        self.plan.names.harvest && self.text.is_some() && self.plan.method.has_names()
    }

    /// Returns the names that the panel found in the text, if the plan asks for them and there are any.
    fn harvest_names(&self, labelled: &TextOutcome) -> Option<Names> {
        let text = self.text.as_ref().filter(|_| self.harvests())?;
        let candidates = &labelled.labelled.candidates;
        let names = harvest(&text.sentences, candidates, &self.train, &self.plan.names);
        (names.n_names() > 0).then_some(names)
    }

    /// Returns lines about the data of the run: what is read from the lists of names, and what is left out.
    pub fn notes(&self) -> Vec<String> {
        let share = self.plan.names.share;
        self.names.as_ref().map(|names| names.notes(share)).unwrap_or_default()
    }

    /// Returns a line for each reason why the run will probably not give what the user wants: entity types that look like
    /// several tags, a model that does not know the script or the language of the data, and so many entity types that
    /// taggers are slow.
    pub fn warnings(&self) -> Vec<String> {
        let mut warnings = type_warnings(&self.train);
        let tagger_name = &self.plan.model.tagger;
        let is_same = self.masked_lm.is_some() && self.plan.model.masked_lm == *tagger_name;
        let tagger = self.tagger.as_ref().filter(|_| !is_same);
        for model in self.masked_lm.iter().chain(tagger) {
            warnings.extend(coverage_warnings(model, "the training set", &self.train));
        }
        if let (Some(model), Some(text)) = (&self.tagger, self.text()) {
            let mut by_language: BTreeMap<Option<&str>, Vec<&[Token]>> = BTreeMap::new();
            for sentence in text.sentences() {
                by_language.entry(sentence.language()).or_default().push(sentence.tokens());
            }
            warnings.extend(by_language.iter().filter_map(|(language, sentences)| {
                let suffix = language.map_or(String::new(), |code| format!(" in `{code}`"));
                coverage_warning(model, &format!("the unlabelled text{suffix}"), sentences)
            }));
        }
        if self.tagger.is_some() {
            warnings.extend(transition_warning(&self.train, self.plan.tagger.head));
        }
        warnings
    }

    /// The pretrained model of the judge and of the panel, if the run has one of them.
    pub fn tagger(&self) -> Option<&Pretrained> {
        self.tagger.as_ref()
    }

    /// Runs in memory: nothing is written, and an interrupted run cannot resume.
    pub fn run(&self, observer: Observer<'_>) -> Result<Augmented, Error> {
        let mut run = Run { seed: Seed(self.plan.seed), folder: None, observer };
        self.run_stages(&mut run)
    }

    /// Makes the drafts, and trains the taggers of one shard.
    pub(super) fn run_voting(&self, shard: Shard, run: &mut Run<'_>) -> Result<(), Error> {
        let drafts = augment(self.gold(), &self.plan, self.backbones(), &self.device, run)?;
        self.label_text(&drafts, Some(shard), run).map(drop)
    }

    pub(super) fn run_stages(&self, run: &mut Run<'_>) -> Result<Augmented, Error> {
        let mut drafts = augment(self.gold(), &self.plan, self.backbones(), &self.device, run)?;
        let text = self.label_text(&drafts, None, run)?;
        if let Some(names) = text.as_ref().and_then(|text| self.harvest_names(text)) {
            drafts.n_harvested = names.n_names();
            let (gold, models) = (self.gold(), self.backbones());
            add_harvest_round(gold, &self.plan, models, &self.device, &names, &mut drafts, run)?;
        }
        let checked = self.check_gold(run)?;
        let augmented = Augmented::new(self.output_gold().clone(), self.plan.clone(), drafts, text);
        Ok(augmented.with_checked_gold(checked))
    }

    /// Lets taggers read gold sentences that they were not trained on. Returns `None` if the plan does not ask for it.
    fn check_gold(&self, run: &mut Run<'_>) -> Result<Option<Vec<CheckedSentence>>, Error> {
        let n_folds = self.plan.gold_check.folds;
        if n_folds == 0 {
            return Ok(None);
        }
        let tagger = self.tagger.as_ref().expect("a run that checks gold opens the tagger's model");
        let (gold, settings, device) = (self.gold(), &self.plan.tagger, &*self.device);
        GoldCheck { gold, settings, n_folds, tagger, device }.run(run).map(Some)
    }

    /// The gold corpus with the languages of the unlabelled text, which get output files too.
    pub fn output_gold(&self) -> &Corpus {
        self.text.as_ref().map_or(&self.train, |text| &text.gold)
    }

    fn gold(&self) -> Gold<'_> {
        Gold { train: &self.train, dev: self.dev.as_ref() }
    }

    fn backbones(&self) -> Backbones<'_> {
        Backbones {
            masked_lm: self.masked_lm.as_ref(),
            tagger: self.tagger.as_ref(),
            seq2seq: self.seq2seq.as_ref(),
            vectors: self.vectors.as_ref(),
            names: self.names.as_ref(),
            judge: None,
        }
    }

    /// Saves the fine-tuned masked language model. Loads it from the saved state of the run, or trains it if there is
    /// none. Does nothing for methods without a masked language model.
    pub(super) fn save_model(&self, dir: &Path, run: &mut Run<'_>) -> Result<(), Error> {
        let model = self.masked_lm.as_ref().filter(|_| self.plan.method.has_masked_lm());
        let Some(model) = model else { return Ok(()) };
        let sources = Sources::new(&self.train, &self.plan, self.vectors.as_ref(), run)?;
        let gold = Gold { train: &sources.corpus, dev: self.dev.as_ref() };
        tune(gold, &self.plan, model, &self.device, run)?.lm.save(dir)?;
        // `melm generate` reads its settings from this file.
        write_whole(&dir.join("plan.toml"), self.plan.to_toml().as_bytes())
    }

    /// Everything that can change the result, except for the number of rounds: a run with more rounds continues in the
    /// same folder. It keeps the drafts of the finished rounds. With unlabelled text, it trains new panels if the drafts
    /// are part of their training sets. The content of the models is included, but not their names.
    pub(crate) fn identity(&self) -> Result<Identity, Error> {
        let mut plan = self.plan.clone();
        plan.generate.rounds = std::num::NonZeroU32::MIN;
        plan.model.masked_lm.clear();
        plan.model.tagger.clear();
        plan.model.seq2seq.clear();
        let settings = self.identifying_settings(&plan);
        let mut identity = Identity::new("augment", self.device.arithmetic(), &settings)
            .with_gold(&self.train, self.dev.as_ref());
        let models =
            [("masked language model", &self.masked_lm), ("model of taggers", &self.tagger)];
        for (name, model) in models {
            if let Some(model) = model {
                identity = identity.with_content(name, model.fingerprint()?);
            }
        }
        if let Some(seq2seq) = &self.seq2seq {
            identity = identity.with_content("encoder-decoder", seq2seq.fingerprint()?);
        }
        if let Some(text) = &self.text {
            identity = identity.with_hash_of("unlabelled text", |hash| text.add_to(hash));
            if !text.silver.given.is_empty() {
                identity = identity
                    .with_hash_of("set of silver sentences", |hash| text.add_silver_to(hash));
            }
        }
        if let Some(names) = &self.names {
            identity = identity.with_hash_of("set of name lists", |hash| names.add_to(hash));
        }
        if let Some(vectors) = &self.vectors {
            let add = |hash: &mut Fingerprint| vectors.add_to(&self.train, hash);
            identity = identity.with_hash_of("set of word vectors", add);
        }
        Ok(identity)
    }

    /// The settings that can change the result.
    fn identifying_settings(&self, plan: &Plan) -> toml::Table {
        let mut settings = toml::Table::try_from(plan).expect("a plan is a table");
        if self.text.as_ref().is_none_or(|text| text.silver.given.is_empty()) {
            settings.remove("silver");
        }
        if self.text.is_none() {
            // These settings change nothing without text.
            settings.remove("self_training");
        }
        if self.names.is_none() && !self.harvests() {
            settings.remove("names");
        }
        // Only `melm pick` reads these.
        settings.remove("pick");
        if plan.gold_check.folds == 0 {
            // These settings change nothing without folds.
            settings.remove("gold_check");
        }
        settings
    }
}
