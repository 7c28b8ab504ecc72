//! The masked entity language model: a pretrained masked LM with markers, fine-tuned to guess entity pieces (section 2.2).

mod folder;
mod learn;
mod settings;

pub use settings::{FinetuneSettings, MarkerSettings};

use melm_nn::device::Device;
use melm_nn::mlm::MaskedLm;
use melm_text::Corpus;

use crate::Error;
use crate::fit::{Fitted, fit};
use crate::linearize::{LinearizedCorpus, linearize};
use crate::markers::{MarkerStart, Markers};
use crate::model::Pretrained;
use crate::pieces::Tokenizer;
use crate::stage::Stage;
use learn::Lessons;

/// A masked language model that knows the markers of a task.
pub struct EntityLm {
    model: MaskedLm,
    tokenizer: Tokenizer,
    markers: Option<Markers>,
}

/// How a fine-tuning went.
pub struct Finetuned {
    /// The model with its best parameters.
    pub lm: EntityLm,
    /// Its epochs, and which of them is kept.
    pub fitted: Fitted,
    /// The training sentences as the model read them.
    pub n_windowed: usize,
    /// Mentions of the training set that do not fit the model.
    pub n_left_out: usize,
}

impl EntityLm {
    /// The pretrained model with a marker for every tag of the corpora, and where their rows start.
    pub fn new(
        pretrained: &Pretrained,
        corpora: &[&Corpus],
        settings: &MarkerSettings,
        seed: u64,
    ) -> Result<(Self, Vec<MarkerStart>), Error> {
        let mut tokenizer = pretrained.tokenizer();
        let markers =
            settings.linearize.then(|| Markers::of(corpora, &mut tokenizer)).transpose()?;
        let n_rows = pretrained.checkpoint().config().vocab_size;
        let n_added = tokenizer.n_pieces().saturating_sub(n_rows);
        let mut model = MaskedLm::open(pretrained.checkpoint(), n_added, seed)?;
        let starts = match &markers {
            Some(markers) => {
                markers.initialise(&mut model, &tokenizer, settings.start, &settings.words)?
            }
            None => Vec::new(),
        };
        Ok((Self { model, tokenizer, markers }, starts))
    }

    /// A corpus as this model reads it.
    pub fn linearize(&self, corpus: &Corpus) -> Result<LinearizedCorpus, Error> {
        linearize(corpus, &self.tokenizer, self.markers.as_ref(), self.model.config().longest())
    }

    /// Learns to guess the entity pieces of a corpus, and keeps the epoch with the lowest loss on dev; the last without
    /// a dev set.
    pub fn finetune(
        self,
        train: &Corpus,
        dev: Option<&Corpus>,
        settings: &FinetuneSettings,
        device: &Device,
        stage: &mut Stage<'_>,
    ) -> Result<Finetuned, Error> {
        let train = self.linearize(train)?;
        let (n_windowed, n_left_out) = (train.n_windowed, train.n_left_out);
        let dev = dev.map(|dev| self.linearize(dev)).transpose()?;
        let mut lessons = Lessons::new(self, train, dev, settings, stage.key());
        let fitted = fit(&mut lessons, &settings.fit, device, stage)?;
        Ok(Finetuned { lm: lessons.into_lm(), fitted, n_windowed, n_left_out })
    }

    /// The network.
    pub fn model(&self) -> &MaskedLm {
        &self.model
    }

    /// Its tokenizer, which has the markers.
    pub fn tokenizer(&self) -> &Tokenizer {
        &self.tokenizer
    }
}
