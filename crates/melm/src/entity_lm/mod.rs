//! The masked entity language model: a pretrained masked LM with markers, fine-tuned to predict entity pieces
//! (section 2.2).

mod folder;
mod learn;
mod settings;

pub use settings::{FinetuneSettings, MarkerSettings};

use melm_nn::device::Device;
use melm_nn::mlm::MaskedLm;
use melm_text::Corpus;

use crate::Error;
use crate::augment::Gold;
use crate::linearize::{LinearizedCorpus, linearize};
use crate::markers::{MarkerStart, Markers};
use crate::mask::Masker;
use crate::models::Pretrained;
use crate::pieces::{PieceKinds, Tokenizer};
use crate::stage::Stage;
use crate::training::{self, TrainingOutcome};
use learn::TrainingSet;

/// A masked language model with the markers of a task.
pub struct EntityLm {
    model: MaskedLm,
    tokenizer: Tokenizer,
    /// `None` if sentences get no markers.
    markers: Option<Markers>,
    /// Knows the kind of every piece of the vocabulary, including the markers.
    masker: Masker,
}

/// The result of fine-tuning.
pub struct Finetuned {
    /// The model with its best parameters.
    pub lm: EntityLm,
    /// The metrics of the epochs, and the epoch that was kept.
    pub outcome: TrainingOutcome,
    /// The training set as the model read it.
    pub linearized: LinearizedCorpus,
}

impl EntityLm {
    /// Adds a marker for every tag of the training and dev sets to a pretrained model. Returns the model, and how the
    /// embedding row of each marker was initialised. Rows can start from mentions of the training set. Random rows are
    /// drawn from `seed`.
    pub fn new(
        pretrained: &Pretrained,
        gold: Gold<'_>,
        settings: &MarkerSettings,
        seed: u64,
    ) -> Result<(Self, Vec<MarkerStart>), Error> {
        let mut tokenizer = pretrained.tokenizer();
        let corpora: Vec<_> = std::iter::once(gold.train).chain(gold.dev).collect();
        let markers = settings
            .linearize
            .then(|| Markers::from_corpora(&corpora, &mut tokenizer))
            .transpose()?;
        let n_rows = pretrained.checkpoint().config().vocab_size;
        let n_added = tokenizer.n_pieces().saturating_sub(n_rows);
        let mut model = MaskedLm::open(pretrained.checkpoint(), n_added, seed)?;
        let starts = match &markers {
            Some(markers) => {
                let MarkerSettings { start, words, .. } = settings;
                markers.initialise(&mut model, &tokenizer, *start, words, gold.train)?
            }
            None => Vec::new(),
        };
        // Markers may also have ids that the checkpoint already has rows for: if it was fine-tuned before, or if its
        // table has more rows than the tokenizer has pieces.
        let ids = markers.iter().flat_map(Markers::iter).map(|(_, id)| id as usize);
        let first = ids.min().filter(|_| settings.train);
        model.set_first_added_piece(first.unwrap_or(usize::MAX));
        Ok((Self::from_parts(model, tokenizer, markers), starts))
    }

    /// Combines a model with its tokenizer, which must already contain `markers`. If `markers` is `None`, sentences
    /// get no markers. Classifies every piece of the vocabulary.
    pub fn from_parts(model: MaskedLm, tokenizer: Tokenizer, markers: Option<Markers>) -> Self {
        let masker = Masker::new(PieceKinds::new(&tokenizer));
        Self { model, tokenizer, markers, masker }
    }

    /// Linearizes a corpus for this model.
    ///
    /// # Errors
    /// If a tag or a language of the corpus has no marker.
    pub fn linearize(&self, corpus: &Corpus) -> Result<LinearizedCorpus, Error> {
        linearize(corpus, &self.tokenizer, self.markers.as_ref(), self.model.config().max_pieces())
    }

    /// Fine-tunes the model to predict the masked entity pieces of `train`. Keeps the epoch with the lowest loss on
    /// `dev`, or the last epoch without a dev set.
    pub(crate) fn finetune(
        self,
        train: &Corpus,
        dev: Option<&Corpus>,
        settings: &FinetuneSettings,
        device: &Device,
        stage: &mut Stage<'_>,
    ) -> Result<Finetuned, Error> {
        let train = self.linearize(train)?;
        let dev = dev.map(|dev| self.linearize(dev)).transpose()?;
        let mut set = TrainingSet::new(self, train, dev, settings, stage.key());
        let outcome = training::train(&mut set, &settings.training, device, stage)?;
        let (lm, linearized) = set.into_parts();
        Ok(Finetuned { lm, outcome, linearized })
    }

    /// The network.
    pub fn model(&self) -> &MaskedLm {
        &self.model
    }

    /// The tokenizer, with the markers.
    pub fn tokenizer(&self) -> &Tokenizer {
        &self.tokenizer
    }

    /// The masker for the vocabulary of this model.
    pub(crate) fn masker(&self) -> &Masker {
        &self.masker
    }
}
