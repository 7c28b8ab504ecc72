//! The tagger: a pretrained encoder that is trained on a corpus and then tags sentences.
//!
//! The tagger is the judge of the filter (section 2.4) and the model whose F1 the paper reports. A tagger has one
//! scheme, one set of tags, and a linear head or a CRF, which reads the first piece of every token.

mod batches;
mod documents;
mod encode;
mod file;
mod folder;
mod front;
mod learn;
mod limits;
mod pipeline;
mod predict;
mod read;
mod score;
mod settings;
mod summary;
mod tags;

pub use encode::Truncation;
pub use file::FileToTag;
pub use front::{Tagger, TaggerTrainer};
pub use predict::TaggedSentence;
pub use read::ReadOn;
pub use score::TaggerScores;
pub use settings::{TaggerHead, TaggerSettings};
pub use summary::TagSummary;
pub use tags::TagSet;

pub(crate) use limits::{check_types, transition_bytes, transition_warning};

use melm_nn::device::Device;
use melm_nn::tagger as nn;
use melm_text::Corpus;

use crate::Error;
use crate::models::Pretrained;
use crate::pieces::Tokenizer;
use crate::stage::Stage;
use crate::training::{self, TrainingOutcome};
use learn::TrainingSet;

/// A model that tags sentences.
pub struct TaggerModel {
    model: nn::Tagger,
    tokenizer: Tokenizer,
    tags: TagSet,
    is_constrained: bool,
}

/// A trained tagger and the record of its training.
pub struct TrainedTagger {
    /// The tagger with the parameters of the kept epoch.
    pub tagger: TaggerModel,
    /// The metrics of the epochs, and the epoch that was kept.
    pub outcome: TrainingOutcome,
    /// The number of training sentences and tokens that were too long for the model.
    pub truncation: Truncation,
}

impl TaggerModel {
    /// Creates an untrained tagger for the tags of a corpus. The weights of its head are random, with the seed
    /// `seed`.
    pub(crate) fn new(
        pretrained: &Pretrained,
        corpus: &Corpus,
        settings: &TaggerSettings,
        seed: u64,
    ) -> Result<Self, Error> {
        let tags = TagSet::from_corpus(corpus);
        limits::check_number(&tags)?;
        let nn_settings = settings.to_engine(&tags);
        let model = nn::Tagger::open(pretrained.checkpoint(), nn_settings, seed)?;
        let is_constrained = settings.constrained;
        Ok(Self { model, tokenizer: pretrained.tokenizer(), tags, is_constrained })
    }

    /// Trains a tagger on `train`. Keeps the epoch with the best F1 on `dev`, or the last epoch without a dev set,
    /// unless the settings say otherwise.
    pub fn train(
        pretrained: &Pretrained,
        train: &Corpus,
        dev: Option<&Corpus>,
        settings: &TaggerSettings,
        device: &Device,
        stage: &mut Stage<'_>,
    ) -> Result<TrainedTagger, Error> {
        check_types(train, settings.head, device)?;
        let seed = stage.key().then("head").generator().bits();
        let tagger = Self::new(pretrained, train, settings, seed)?;
        let mut set = TrainingSet::new(tagger, train, dev)?;
        let outcome = training::train(&mut set, &settings.training, device, stage)?;
        let truncation = set.truncation();
        Ok(TrainedTagger { tagger: set.into_tagger(), outcome, truncation })
    }

    /// Quantizes the weights of the encoder to 8 bits, for [`ReadOn::new`].
    pub fn quantize(&self) -> Result<nn::Int8Weights, Error> {
        Ok(self.model.quantize()?)
    }

    /// The tags that the tagger chooses from.
    pub fn tags(&self) -> &TagSet {
        &self.tags
    }
}
