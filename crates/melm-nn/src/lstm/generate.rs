//! Predicts the next token of several sequences at once.

use super::LstmLm;
use super::layer::LayerState;
use crate::buffer::Buffer;
use crate::device::Device;
use crate::error::Error;

/// The state of several sequences that are being read or generated.
pub struct LstmState {
    n: usize,
    layers: Vec<LayerState>,
    gates: Buffer,
    hidden: usize,
}

impl LstmState {
    /// Keeps only the given sequences, in the given order.
    ///
    /// # Panics
    /// Panics if an index is out of range.
    pub fn keep(&mut self, sequences: &[usize]) {
        let hidden = self.hidden;
        let pick = |rows: &mut Vec<f32>| {
            let kept = sequences.iter().flat_map(|at| &rows[at * hidden..(at + 1) * hidden]);
            *rows = kept.copied().collect();
        };
        for layer in &mut self.layers {
            pick(&mut layer.cell_state);
            pick(&mut layer.output);
        }
        self.n = sequences.len();
    }
}

impl LstmLm {
    /// Returns the state of `n` sequences before their first token.
    pub fn start(&self, n: usize) -> LstmState {
        let hidden = self.config.hidden_size;
        let zeros = || vec![0.0; n * hidden];
        let layers = self.layers.iter();
        let layers = layers.map(|_| LayerState { cell_state: zeros(), output: zeros() }).collect();
        LstmState { n, layers, gates: Buffer::default(), hidden }
    }

    /// Reads the next token of every sequence. Writes the logits of the token after it to `scores`.
    ///
    /// The shape of `scores` is `[sequences, vocabulary]`.
    ///
    /// # Errors
    /// Fails on a GPU, because this model has no GPU kernels.
    ///
    /// # Panics
    /// Panics if the number of tokens differs from the number of sequences, or if a token is not in the vocabulary.
    pub fn next(
        &self,
        device: &Device,
        tokens: &[u32],
        state: &mut LstmState,
        scores: &mut Vec<f32>,
    ) -> Result<(), Error> {
        assert_eq!(tokens.len(), state.n, "expected one token for each sequence");
        let (cpu, width) = (device.require_cpu()?, self.config.embedding_size);
        let table = self.parameters.at(&self.embedding);
        let row = |token: &u32| &table[*token as usize * width..][..width];
        let mut x: Vec<f32> = tokens.iter().flat_map(row).copied().collect();
        for (layer, state_of_layer) in self.layers.iter().zip(&mut state.layers) {
            layer.step(cpu, &self.parameters, &x, state_of_layer, &mut state.gates)?;
            x.clone_from(&state_of_layer.output);
        }
        scores.resize(state.n * self.config.vocab_size, 0.0);
        self.output_linear().forward(cpu, &x, self.parameters.at(&self.output), scores);
        Ok(())
    }
}
