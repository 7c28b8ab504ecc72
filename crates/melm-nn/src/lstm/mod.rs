//! An LSTM language model over tokens, for the baseline DAGA (Ding et al. 2020). The model is trained from scratch.
//! Then sentences are sampled from it.
//!
//! Tensors have the names that torch uses (`nn.Embedding`, `nn.LSTM`, `nn.Linear` without a bias). Dropout is applied to
//! the embedded rows and to the outputs of every layer, as in torch.
//!
//! ```
//! use melm_nn::device::Device;
//! use melm_nn::dropout::Dropout;
//! use melm_nn::gradients::Gradients;
//! use melm_nn::lstm::{LstmConfig, LstmLm, LstmTape};
//! use melm_nn::optim::{Adam, AdamSettings};
//! use melm_nn::packed::Packed;
//!
//! let config = LstmConfig { vocab_size: 9, embedding_size: 8, hidden_size: 16, n_layers: 1, dropout: 0.0 };
//! let mut model = LstmLm::random(&config, 1)?;
//! let mut batch = Packed::default();
//! batch.push(&[0, 5, 7, 6, 1], 0);
//! let (device, mut tape) = (Device::cpu(1), LstmTape::default());
//! let mut gradients = Gradients::new(model.parameters())?;
//! let mut adam = Adam::new(model.parameters(), AdamSettings::default())?;
//! for step in 0..60 {
//!     gradients.clear();
//!     model.accumulate(&device, &batch, 0.25, Dropout::NONE, &mut tape, &mut gradients)?;
//!     adam.step(&device, 3e-2, model.parameters_mut(), &mut gradients)?;
//! }
//! let mut state = model.start(1);
//! let mut scores = Vec::new();
//! let mut token = 0;
//! for expected in [5, 7, 6, 1] {
//!     model.next(&device, &[token], &mut state, &mut scores)?;
//!     token = melm_nn::draw::draw(&scores, 0.01, 0.5) as u32;
//!     assert_eq!(token, expected);
//! }
//! # Ok::<(), melm_nn::Error>(())
//! ```

mod batch;
mod cell;
mod generate;
mod layer;
mod train;

pub use generate::LstmState;
pub use train::LstmTape;

use crate::config::MOST_LAYERS;
use crate::dropout::mix;
use crate::error::Error;
use crate::packed::Packed;
use crate::params::Parameters;
use crate::weights::TensorShape;
use layer::Layer;
use std::ops::Range;

/// The name of the embedding table.
pub const EMBEDDING: &str = "embedding.weight";
/// The name of the output matrix.
const OUTPUT: &str = "output.weight";
/// New weights are drawn uniformly from `[-SPREAD, SPREAD]`, as in the code of DAGA.
const SPREAD: f32 = 0.1;

/// The sizes of a model and its dropout rate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LstmConfig {
    /// The number of different tokens.
    pub vocab_size: usize,
    /// The width of a token embedding.
    pub embedding_size: usize,
    /// The width of the cell state and of the output.
    pub hidden_size: usize,
    /// The number of layers, at least one.
    pub n_layers: usize,
    /// The dropout rate, in `[0, 1)`.
    pub dropout: f32,
}

impl LstmConfig {
    fn tensors(&self) -> Vec<TensorShape> {
        let Self { vocab_size, embedding_size, hidden_size, n_layers, .. } = *self;
        let wide = hidden_size.saturating_mul(4);
        let tensor = |name: String, shape: &[usize]| TensorShape::new(name, shape);
        let mut list = Vec::new();
        for layer in 0..n_layers {
            let inputs = if layer == 0 { embedding_size } else { hidden_size };
            list.push(tensor(format!("lstm.weight_ih_l{layer}"), &[wide, inputs]));
            list.push(tensor(format!("lstm.weight_hh_l{layer}"), &[wide, hidden_size]));
            list.push(tensor(format!("lstm.bias_ih_l{layer}"), &[wide]));
            list.push(tensor(format!("lstm.bias_hh_l{layer}"), &[wide]));
        }
        list.push(tensor(OUTPUT.to_owned(), &[vocab_size, hidden_size]));
        list.push(tensor(EMBEDDING.to_owned(), &[vocab_size, embedding_size]));
        list
    }
}

/// The language model.
pub struct LstmLm {
    config: LstmConfig,
    parameters: Parameters,
    layers: Vec<Layer>,
    embedding: Range<usize>,
    output: Range<usize>,
}

impl LstmLm {
    /// Creates a model whose parameters are all zero.
    ///
    /// # Errors
    /// Fails with [`Error::Limit`] if there are too many layers, and with [`Error::OutOfMemory`] if there is not enough
    /// memory.
    ///
    /// # Panics
    /// Panics if the configuration has no layer.
    pub fn zeros(config: &LstmConfig) -> Result<Self, Error> {
        assert!(config.n_layers > 0, "a model needs at least one layer");
        Error::check_limit("n_layers", config.n_layers, MOST_LAYERS)?;
        let parameters = Parameters::from_shapes(config.tensors())?;
        let layer = |index| {
            let inputs = if index == 0 { config.embedding_size } else { config.hidden_size };
            Layer::new(&parameters, index, inputs, config.hidden_size)
        };
        let layers = (0..config.n_layers).map(layer).collect();
        let (embedding, output) =
            (parameters.span(EMBEDDING, EMBEDDING), parameters.span(OUTPUT, OUTPUT));
        Ok(Self { config: *config, layers, embedding, output, parameters })
    }

    /// Creates a model with random parameters between -0.1 and 0.1. `seed` determines them.
    ///
    /// # Errors
    /// As [`Self::zeros`].
    ///
    /// # Panics
    /// As [`Self::zeros`].
    pub fn random(config: &LstmConfig, seed: u64) -> Result<Self, Error> {
        let mut model = Self::zeros(config)?;
        for (index, value) in (0_u64..).zip(model.parameters.values_mut()) {
            let share = (mix(mix(seed) ^ index) >> 40) as f32 / (1_u64 << 24) as f32;
            *value = SPREAD * (2.0 * share - 1.0);
        }
        Ok(model)
    }

    /// Returns the sizes and the dropout rate.
    pub fn config(&self) -> &LstmConfig {
        &self.config
    }

    /// Returns the parameters.
    pub fn parameters(&self) -> &Parameters {
        &self.parameters
    }

    /// Returns the parameters for modification.
    pub fn parameters_mut(&mut self) -> &mut Parameters {
        &mut self.parameters
    }

    fn check(&self, batch: &Packed) -> Result<(), Error> {
        batch.check_pieces(self.config.vocab_size)?;
        match batch.lengths().find(|n_tokens| *n_tokens < 2) {
            Some(n_tokens) => Err(Error::NothingToPredict { n_tokens }),
            None => Ok(()),
        }
    }
}
