//! The high-level interface of taggers: train, open, tag, score, save.

use std::path::Path;
use std::sync::Arc;

use melm_nn::device::Device;
use melm_nn::tagger::Int8Weights;
use melm_text::{Corpus, Mention, Scores, Tag};

use super::{ReadOn, TaggedSentence, TaggerModel, TrainedTagger, Truncation};
use crate::Error;
use crate::models::{ModelStore, NeededModels};
use crate::pieces::PieceCoverage;
use crate::plan::PlanBuilder;
use crate::random::Seed;
use crate::stage::{Control, Event, OnBatch, OwnedObserver, Run, ignore_events};
use crate::training::TrainingOutcome;

/// A tagger and the device it runs on.
///
/// ```no_run
/// use melm::{Corpus, Tagger};
///
/// # fn main() -> Result<(), melm::Error> {
/// let tagger = Tagger::trainer(Corpus::open("train.conll")?).dev(Corpus::open("dev.conll")?).train()?;
/// println!("F1 {:.2}", tagger.score(&Corpus::open("test.conll")?)?.micro().f1());
/// tagger.save("tagger")?;
/// let tagged = Tagger::open("tagger")?.tag(&Corpus::open("new.conll")?)?;
/// # Ok(())
/// # }
/// ```
pub struct Tagger {
    model: TaggerModel,
    device: Arc<Device>,
    /// The 8-bit weights, if the tagger uses them.
    int8: Option<Int8Weights>,
    outcome: Option<TrainingOutcome>,
    truncation: Truncation,
}

impl Tagger {
    /// Prepares the training of a tagger on a corpus.
    pub fn trainer(train: Corpus) -> TaggerTrainer {
        TaggerTrainer::new(train)
    }

    /// Opens a tagger that [`Self::save`] or `melm train` has written. The tagger runs on the CPU with all cores
    /// unless [`Self::with_device`] sets another device.
    pub fn open(dir: impl AsRef<Path>) -> Result<Self, Error> {
        let model = TaggerModel::open(dir.as_ref())?;
        let (device, truncation) = (Arc::new(Device::all_cores()), Truncation::default());
        Ok(Self { model, device, int8: None, outcome: None, truncation })
    }

    /// Moves the tagger to another device.
    #[must_use]
    pub fn with_device(mut self, device: impl Into<Arc<Device>>) -> Self {
        self.device = device.into();
        self
    }

    /// Lets the tagger use 8-bit weights for tagging on the CPU. With AVX-512 VNNI the encoder is then more than twice as fast
    /// as in f32. A few tags can change. On a GPU, and in [`Self::score`], it has no effect.
    ///
    /// # Errors
    /// Fails if there is not enough memory for the weights.
    pub fn with_int8(mut self) -> Result<Self, Error> {
        self.int8 = Some(self.model.quantize()?);
        Ok(self)
    }

    /// Returns the corpus with the tags that the tagger predicts. The old tags of the corpus are ignored.
    pub fn tag(&self, corpus: &Corpus) -> Result<Corpus, Error> {
        let tokens: Vec<Vec<&str>> = corpus
            .sentences()
            .iter()
            .map(|sentence| sentence.tokens().iter().map(AsRef::as_ref).collect())
            .collect();
        let (found, _) = self.find_tags(&tokens)?;
        let tags = self.model.tags();
        let sentences = corpus.sentences().iter().zip(found).map(|(sentence, found)| {
            let mentions: Vec<Mention> = melm_text::mentions(&found).collect();
            sentence.clone().with_mentions(mentions, tags.scheme())
        });
        let sentences = sentences.collect();
        Ok(Corpus::new(tags.types().clone(), tags.scheme(), sentences)
            .expect("the tags were written in this scheme"))
    }

    /// Tags sentences given as tokens. Returns the tags of each sentence with their probabilities, and the number of
    /// sentences and tokens that were too long for the model.
    pub fn tag_tokens<T: AsRef<str> + Sync>(
        &self,
        sentences: &[Vec<T>],
    ) -> Result<(Vec<TaggedSentence>, Truncation), Error> {
        self.tag_batches(sentences, &mut || Ok(()))
    }

    /// Like [`Self::tag_tokens`], but calls `on_batch` from time to time.
    pub(super) fn tag_batches<T: AsRef<str> + Sync>(
        &self,
        sentences: &[Vec<T>],
        on_batch: OnBatch<'_>,
    ) -> Result<(Vec<TaggedSentence>, Truncation), Error> {
        collect(sentences.len(), |on_tagged| {
            self.model.tag_batches(self.read_on(), sentences, on_tagged, on_batch)
        })
    }

    /// Like [`Self::tag_tokens`], but finds only the tags, which is faster.
    pub fn find_tags<T: AsRef<str> + Sync>(
        &self,
        sentences: &[Vec<T>],
    ) -> Result<(Vec<Vec<Tag>>, Truncation), Error> {
        self.find_tags_in_batches(sentences, &mut || Ok(()))
    }

    /// Like [`Self::find_tags`], but calls `on_batch` from time to time.
    pub(super) fn find_tags_in_batches<T: AsRef<str> + Sync>(
        &self,
        sentences: &[Vec<T>],
        on_batch: OnBatch<'_>,
    ) -> Result<(Vec<Vec<Tag>>, Truncation), Error> {
        collect(sentences.len(), |on_tagged| {
            self.model.find_tags_in_batches(self.read_on(), sentences, on_tagged, on_batch)
        })
    }

    pub(super) fn device(&self) -> &Device {
        &self.device
    }

    fn read_on(&self) -> ReadOn<'_> {
        ReadOn::new(&self.device, self.int8.as_ref())
    }

    /// Tags a gold corpus and scores the result as conlleval and seqeval do. Types are compared by name. The corpus
    /// and the tagger may use different schemes. A gold mention of a type that the tagger does not know counts as
    /// missed.
    pub fn score(&self, gold: &Corpus) -> Result<Scores, Error> {
        Ok(self.model.score(&self.device, gold)?.scores)
    }

    /// Writes a Hugging Face folder.
    pub fn save(&self, dir: impl AsRef<Path>) -> Result<(), Error> {
        self.model.save(dir.as_ref())
    }

    /// The model, which gives access to its tags and to lower-level functions.
    pub fn model(&self) -> &TaggerModel {
        &self.model
    }

    /// Returns a warning if the tagger does not know the script or the language of sentences. `what` names the sentences.
    pub fn coverage_warning<S, T>(
        &self,
        what: &str,
        sentences: &[S],
    ) -> Result<Option<String>, Error>
    where
        S: AsRef<[T]> + Sync,
        T: AsRef<str>,
    {
        let coverage =
            PieceCoverage::new(&self.model.tokenizer, sentences, self.device.n_threads())?;
        Ok(coverage.warning(what, "the tagger"))
    }

    /// The training record of the tagger; `None` for a tagger that was opened.
    pub fn training(&self) -> Option<&TrainingOutcome> {
        self.outcome.as_ref()
    }

    /// The number of training sentences and tokens that were too long for the model. All numbers are 0 for a tagger that
    /// was opened.
    pub fn truncation(&self) -> Truncation {
        self.truncation
    }
}

/// Returns the results of `n` sentences in the order of the sentences. `read` calls its argument once for each sentence.
fn collect<R>(
    n: usize,
    read: impl FnOnce(&mut dyn FnMut(usize, R)) -> Result<Truncation, Error>,
) -> Result<(Vec<R>, Truncation), Error> {
    let mut results: Vec<Option<R>> = std::iter::repeat_with(|| None).take(n).collect();
    let truncation = read(&mut |at, result| results[at] = Some(result))?;
    let results = results.into_iter().map(|one| one.expect("the tagger reads every sentence"));
    Ok((results.collect(), truncation))
}

/// Trains a tagger. [`Tagger::trainer`] creates it. By default the encoder is the embedded model `mini`, and the
/// settings are those of the preset `best` with seed 1.
pub struct TaggerTrainer {
    train: Corpus,
    dev: Option<Corpus>,
    plan: PlanBuilder,
    models: ModelStore,
    device: Option<Arc<Device>>,
    observer: OwnedObserver,
}

impl TaggerTrainer {
    fn new(train: Corpus) -> Self {
        Self {
            train,
            dev: None,
            plan: PlanBuilder::default(),
            models: ModelStore::new(),
            device: None,
            observer: Box::new(ignore_events),
        }
    }

    /// Sets the dev set, which selects the best epoch. Without a dev set, the last epoch is kept.
    #[must_use]
    pub fn dev(mut self, dev: Corpus) -> Self {
        self.dev = Some(dev);
        self
    }

    /// Sets the seed of all random choices; 1 by default. The same seed gives the same tagger.
    #[must_use]
    pub fn seed(self, seed: u64) -> Self {
        self.set(&format!("seed={seed}"))
    }

    /// Sets the pretrained model: `mini` (default), a folder, or a name on the Hugging Face hub. Names need a
    /// [`ModelStore`] with a hub: see [`Self::models`].
    #[must_use]
    pub fn model(self, model: &str) -> Self {
        self.set(&format!("model.tagger={model}"))
    }

    /// Sets the preset and all changes to it. Earlier calls of [`Self::set`] and similar methods have no effect.
    #[must_use]
    pub fn settings(mut self, plan: PlanBuilder) -> Self {
        self.plan = plan;
        self
    }

    /// Sets one key of the plan from `key=value`, such as `tagger.budget=300 updates`. [`Self::train`] fails if the
    /// key or the value is invalid.
    #[must_use]
    pub fn set(mut self, edit: &str) -> Self {
        self.plan = self.plan.set(edit);
        self
    }

    /// Sets the store that opens models. The default store opens only `mini` and folders.
    #[must_use]
    pub fn models(mut self, models: ModelStore) -> Self {
        self.models = models;
        self
    }

    /// Sets the device of training and tagging. By default the CPU with all cores is used.
    #[must_use]
    pub fn device(mut self, device: impl Into<Arc<Device>>) -> Self {
        self.device = Some(device.into());
        self
    }

    /// Sets the observer, which receives the events of the training and can stop it.
    #[must_use]
    pub fn on_event(
        mut self,
        observer: impl FnMut(&'static str, Event<'_>) -> Control + Send + 'static,
    ) -> Self {
        self.observer = Box::new(observer);
        self
    }

    /// Trains the tagger.
    pub fn train(mut self) -> Result<Tagger, Error> {
        let needs = NeededModels { masked_lm: false, tagger: true };
        let plan = self.models.plan(&self.plan, |_| needs)?;
        let pretrained = self.models.open(&plan.model.tagger)?;
        let device = self.device.unwrap_or_else(|| Arc::new(Device::all_cores()));
        let seed = Seed(plan.seed);
        let mut run = Run { seed, folder: None, observer: &mut self.observer };
        let (stage, dev) = (&mut run.stage("tagger"), self.dev.as_ref());
        let trained =
            TaggerModel::train(&pretrained, &self.train, dev, &plan.tagger, &device, stage)?;
        let TrainedTagger { tagger: model, outcome, truncation } = trained;
        Ok(Tagger { model, device, int8: None, outcome: Some(outcome), truncation })
    }
}
