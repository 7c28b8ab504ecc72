//! Guessing the next token of several sequences at once.

use super::LstmLm;
use crate::buffer::Buffer;
use crate::device::Device;
use crate::error::Error;
use crate::ops::linear::Linear;

/// Where sequences under way stand.
pub struct LstmState {
    n: usize,
    /// Memory and output of each layer, `[sequences, hidden]`.
    layers: Vec<(Vec<f32>, Vec<f32>)>,
    gates: Buffer,
    hidden: usize,
}

impl LstmState {
    /// How many sequences are under way.
    pub fn n_sequences(&self) -> usize {
        self.n
    }

    /// Goes on with these sequences only, in this order.
    ///
    /// # Panics
    /// If there is no such sequence.
    pub fn keep(&mut self, sequences: &[usize]) {
        let hidden = self.hidden;
        let pick = |rows: &mut Vec<f32>| {
            let kept = sequences.iter().flat_map(|at| &rows[at * hidden..(at + 1) * hidden]);
            *rows = kept.copied().collect();
        };
        for (memory, output) in &mut self.layers {
            pick(memory);
            pick(output);
        }
        self.n = sequences.len();
    }
}

impl LstmLm {
    /// The beginning of `n` sequences.
    pub fn start(&self, n: usize) -> LstmState {
        let hidden = self.config.hidden_size;
        let zeros = || vec![0.0; n * hidden];
        let layers = self.layers.iter().map(|_| (zeros(), zeros())).collect();
        LstmState { n, layers, gates: Buffer::default(), hidden }
    }

    /// Reads one more token of every sequence; `scores` `[sequences, tokens]` are then the logits of what follows.
    ///
    /// # Panics
    /// If there is not one token for each sequence, or one that the model does not have.
    pub fn next(
        &self,
        device: &Device,
        tokens: &[u32],
        state: &mut LstmState,
        scores: &mut Vec<f32>,
    ) -> Result<(), Error> {
        assert_eq!(tokens.len(), state.n, "one token for each sequence");
        let (cpu, width) = (device.require_cpu()?, self.config.embedding_size);
        let table = self.parameters.at(&self.embedding);
        let row = |token: &u32| &table[*token as usize * width..][..width];
        let mut x: Vec<f32> = tokens.iter().flat_map(row).copied().collect();
        for (layer, (memory, output)) in self.layers.iter().zip(&mut state.layers) {
            layer.step(cpu, (&self.parameters, &x), (memory, output), &mut state.gates);
            x.clone_from(output);
        }
        let linear = Linear { inputs: self.config.hidden_size, outputs: self.config.vocab_size };
        scores.resize(state.n * self.config.vocab_size, 0.0);
        linear.forward(cpu, state.n, (&x, self.parameters.at(&self.output)), scores);
        Ok(())
    }
}
