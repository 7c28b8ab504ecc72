//! The class of a model: its family and its size. The best settings depend on both.

use std::fmt;

use melm_nn::config::{Config, ModelType};

/// The hidden size of base models, such as XLM-R-base, BERT-base and `DistilBERT`.
const BASE_HIDDEN_SIZE: usize = 768;
/// The hidden size of large models.
const LARGE_HIDDEN_SIZE: usize = 1024;
/// The number of layers of base models. Large ones have 24 or more.
const BASE_LAYERS: usize = 12;

/// The size class of a model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ModelSize {
    /// Narrower than XLM-R-base, such as the embedded model `mini`: a hidden size below 768.
    Small,
    /// Neither small nor large, such as XLM-R-base.
    Base,
    /// A hidden size of at least 1024 and more than 12 layers, such as XLM-R-large.
    Large,
}

/// The family and the size of a model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ModelClass {
    /// The family.
    pub family: ModelType,
    /// The size.
    pub size: ModelSize,
}

/// The classes of a plan's models.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ModelClasses {
    /// The class of the masked language model.
    pub masked_lm: ModelClass,
    /// The class of the tagger.
    pub tagger: ModelClass,
}

impl ModelClasses {
    /// Uses the same class for both models.
    pub fn both(class: ModelClass) -> Self {
        Self { masked_lm: class, tagger: class }
    }
}

impl ModelClass {
    /// The class of the embedded model.
    pub const MINI: Self = Self { family: ModelType::XlmRoberta, size: ModelSize::Small };
    /// The class of XLM-R-base, which is assumed for a model that is not on this machine.
    pub const XLM_R_BASE: Self = Self { family: ModelType::XlmRoberta, size: ModelSize::Base };

    /// Returns the class of a model with this configuration.
    pub fn from_config(config: &Config) -> Self {
        let is_large = config.hidden_size >= LARGE_HIDDEN_SIZE && config.n_layers > BASE_LAYERS;
        let size = match config.hidden_size {
            ..BASE_HIDDEN_SIZE => ModelSize::Small,
            _ if is_large => ModelSize::Large,
            _ => ModelSize::Base,
        };
        Self { family: config.model_type, size }
    }
}

impl fmt::Display for ModelClass {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let size = match self.size {
            ModelSize::Small => "small",
            ModelSize::Base => "base",
            ModelSize::Large => "large",
        };
        write!(out, "{size} {}", self.family.name())
    }
}
