//! The tagger: a pretrained encoder that learns tags from a corpus, and tags sentences.
//!
//! As the judge of the filter (section 2.4) and as the model whose F1 the paper reports. One scheme, one set of tags, a
//! linear head or a CRF over the first piece of every token.

mod encode;
mod folder;
mod learn;
mod predict;
mod score;
mod settings;
mod tags;

pub use encode::Cuts;
pub use predict::Tagged;
pub use score::Scored;
pub use settings::{Head, TaggerSettings};
pub use tags::TagSet;

use melm_nn::device::Device;
use melm_nn::tagger as nn;
use melm_text::Corpus;

use crate::Error;
use crate::fit::{Fitted, fit};
use crate::model::Pretrained;
use crate::pieces::Tokenizer;
use crate::stage::Stage;
use learn::Lessons;

/// A model that tags sentences.
pub struct Tagger {
    model: nn::Tagger,
    tokenizer: Tokenizer,
    tags: TagSet,
    is_constrained: bool,
}

/// A training of a tagger: what it was made from, and how it went.
pub struct Trained {
    /// The tagger with its best parameters.
    pub tagger: Tagger,
    /// Its epochs, and which of them is kept.
    pub fitted: Fitted,
    /// What did not fit the model in one piece.
    pub cuts: Cuts,
}

impl Tagger {
    /// An untrained tagger for the tags of a corpus.
    pub fn new(
        pretrained: &Pretrained,
        corpus: &Corpus,
        settings: &TaggerSettings,
        seed: u64,
    ) -> Result<Self, Error> {
        let tags = TagSet::of(corpus);
        let nn_settings = settings.of_engine(&tags);
        let model = nn::Tagger::open(pretrained.checkpoint(), nn_settings, seed)?;
        let is_constrained = settings.constrained;
        Ok(Self { model, tokenizer: pretrained.tokenizer(), tags, is_constrained })
    }

    /// Trains a tagger on a corpus and keeps the epoch that is best on dev; the last without a dev set.
    pub fn train(
        pretrained: &Pretrained,
        (train, dev): (&Corpus, Option<&Corpus>),
        (settings, device): (&TaggerSettings, &Device),
        stage: &mut Stage<'_>,
    ) -> Result<Trained, Error> {
        let seed = stage.key().then("head").generator().bits();
        let tagger = Self::new(pretrained, train, settings, seed)?;
        let mut lessons = Lessons::new(tagger, train, dev)?;
        let fitted = fit(&mut lessons, &settings.fit, device, stage)?;
        let cuts = lessons.cuts();
        Ok(Trained { tagger: lessons.into_tagger(), fitted, cuts })
    }

    /// The tags it chooses from.
    pub fn tags(&self) -> &TagSet {
        &self.tags
    }
}
