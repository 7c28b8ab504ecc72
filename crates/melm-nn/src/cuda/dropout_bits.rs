//! The weights of attention that dropout keeps, as bits, for the kernels on tensor cores. They need each bit three times.

use super::inputs::{Inputs, StagedInputs};
use super::kernels::{Grid, Kernels, launch};
use super::memory::Arena;
use super::span::Span;
use super::to_u32;
use crate::config::Config;
use crate::dropout::{Dropout, Site};
use crate::error::Error;

/// Which weights of attention dropout keeps, in one layer or in all.
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub(super) struct DropoutBits {
    /// `[layers, rows, heads, n_words]`: a bit is 1 where dropout keeps a weight; empty without dropout.
    pub(super) words: Span<u32>,
    n_words: u32,
    unused: u32,
}

impl DropoutBits {
    /// Lays out the bits of all layers of a batch with `n_rows` rows, whose longest sentence has `max_length` pieces.
    pub(super) fn lay_out(
        arena: &mut Arena,
        config: &Config,
        n_rows: usize,
        max_length: usize,
    ) -> Self {
        let n_words = max_length.div_ceil(u32::BITS as usize);
        let words = arena.span(config.n_layers * n_rows * config.n_heads * n_words);
        Self { words, n_words: to_u32(n_words), unused: 0 }
    }

    /// Lays out the bits for a pass in training, if the model has dropout of attention.
    pub(super) fn lay_out_training(
        arena: &mut Arena,
        config: &Config,
        n_rows: usize,
        inputs: &StagedInputs,
    ) -> Self {
        // The other kernels compute themselves what dropout keeps.
        let are_read = config.attention_dropout > 0.0 && inputs.uses_tensor_cores();
        let max_length = if are_read { inputs.max_length() } else { 0 };
        Self::lay_out(arena, config, n_rows, max_length)
    }

    /// Returns the bits of one layer.
    pub(super) fn of_layer(self, layer: usize, n_layers: usize) -> Self {
        let n = self.words.len() / n_layers;
        Self { words: self.words.slice(layer * n..(layer + 1) * n), ..self }
    }

    /// Computes the bits of all layers.
    pub(super) fn compute(
        self,
        kernels: &Kernels,
        config: &Config,
        dropout: &Dropout,
        inputs: &Inputs,
    ) -> Result<(), Error> {
        if self.words.len() == 0 {
            return Ok(());
        }
        let n_words_of_layer = self.words.len() / config.n_layers;
        let (_, threshold, _) = dropout.site(0, Site::Attention);
        launch!(
            kernels,
            AttentionDropoutBits,
            Grid::new([n_words_of_layer.div_ceil(256), config.n_layers, 1], 256),
            dropout.key(),
            Site::Attention as u32,
            threshold,
            inputs.row_positions,
            self.words,
            self.n_words,
        );
        Ok(())
    }
}

#[cfg(all(test, feature = "emulated"))]
mod tests {
    use super::*;
    use crate::cuda::emulated::EmulatedGpu;
    use crate::cuda::gpu::Gpu;
    use crate::cuda::memory::{DeviceBuffer, StagingBuffer};
    use crate::cuda::settings::{CudaSettings, Precision};
    use crate::packed::Packed;
    use std::sync::Arc;

    /// Returns the number of words for a sentence of 40 pieces, in a model with two layers and two heads.
    fn n_words(head_size: usize, attention_dropout: f32, precision: Precision) -> usize {
        let config = Config {
            hidden_size: 2 * head_size,
            n_heads: 2,
            n_layers: 2,
            attention_dropout,
            ..Config::default()
        };
        let mut batch = Packed::default();
        batch.push(&[3; 40], 0);
        let inputs = StagedInputs::new(&config, precision, &batch, &mut StagingBuffer::default());
        let gpu: Arc<dyn Gpu> = Arc::new(EmulatedGpu::new(&CudaSettings::default()));
        let lay_out =
            |arena: &mut Arena| DropoutBits::lay_out_training(arena, &config, 64, &inputs);
        let mut buffer = DeviceBuffer::empty(&gpu);
        buffer.lay_out(precision.size(), lay_out).expect("enough memory").words.len()
    }

    #[test]
    fn there_are_bits_only_if_a_kernel_reads_them() {
        assert_eq!(n_words(96, 0.1, Precision::Bf16), 2 * 64 * 2 * 2);
        assert_eq!(n_words(98, 0.1, Precision::Bf16), 0);
        assert_eq!(n_words(96, 0.0, Precision::Bf16), 0);
        assert_eq!(n_words(96, 0.1, Precision::F32), 0);
    }
}
