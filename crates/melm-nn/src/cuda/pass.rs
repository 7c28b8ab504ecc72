//! The preparation that all passes share: kernels, weights, inputs, buffers and gradients.
//!
//! [`Cuda::begin_pass`] stages the sentences of a batch. The caller stages further lists, lays out the buffers and, for
//! training, reserves room for gradients. [`PassSetup::upload`] then copies the lists to the GPU and returns the
//! [`Pass`], which records its commands until [`Pass::submit`]. All allocations come before the first command, so that
//! running out of memory leaves gradients and weights unchanged.

use super::backward::GradientSink;
use super::dropout_bits::DropoutBits;
use super::gpu::Gpu;
use super::inputs::{Inputs, StagedInputs, n_padded_rows};
use super::kernels::Kernels;
use super::memory::{Arena, Staged, ToBytes};
use super::span::Span;
use super::sums::PartialSums;
use super::tape::Tape;
use super::weights::GpuWeights;
use super::{Cuda, Workspace};
use crate::config::Config;
use crate::dropout::Dropout;
use crate::encoder::Encoder;
use crate::error::Error;
use crate::gradients::Gradients;
use crate::packed::Packed;
use crate::params::Parameters;
use std::sync::{Arc, MutexGuard};

/// The number of bytes of GPU memory for the list of a backward pass's sums. A pass has a few hundred sums.
const SUMS_BYTES: usize = 1 << 16;

/// A pass that is being prepared.
pub(super) struct PassSetup<'a> {
    pub(super) weights: Arc<GpuWeights>,
    kernels: Kernels,
    encoder: &'a Encoder,
    inputs: StagedInputs,
    /// The number of rows of the batch, including padding.
    pub(super) n_rows: usize,
    operand_size: usize,
    workspace: MutexGuard<'a, Workspace>,
}

/// A forward pass over one batch, and its backward pass in training. Commands are recorded until [`Self::submit`] runs
/// them.
pub(super) struct Pass<'a> {
    pub(super) kernels: Kernels,
    pub(super) weights: Arc<GpuWeights>,
    pub(super) encoder: &'a Encoder,
    pub(super) inputs: Inputs,
    pub(super) dropout: Dropout,
    /// The number of rows of the batch, including padding.
    pub(super) n_rows: usize,
    workspace: MutexGuard<'a, Workspace>,
}

impl Cuda {
    /// Starts to prepare a pass over `sentences`. If `gradients` is given, allocates the gradients in GPU memory on
    /// first use.
    pub(super) fn begin_pass<'a>(
        &'a self,
        parameters: &Parameters,
        encoder: &'a Encoder,
        sentences: &Packed,
        gradients: Option<&mut Gradients>,
    ) -> Result<PassSetup<'a>, Error> {
        let kernels = self.kernels(encoder.config())?;
        let weights = parameters.gpu_weights(self, &kernels)?;
        if let Some(gradients) = gradients {
            gradients.allocate_on_gpu(self, &kernels, parameters)?;
        }
        let mut workspace = self.workspace();
        workspace.staging.clear();
        let staging = &mut workspace.staging;
        let inputs = StagedInputs::new(encoder.config(), self.precision, sentences, staging);
        Ok(PassSetup {
            weights,
            kernels: kernels.recording(),
            encoder,
            inputs,
            n_rows: n_padded_rows(sentences),
            operand_size: self.precision.size(),
            workspace,
        })
    }
}

impl<'a> PassSetup<'a> {
    /// Stages a list; [`Pass::staged`] returns its GPU address after the upload.
    pub(super) fn stage<T: ToBytes>(&mut self, list: impl IntoIterator<Item = T>) -> Staged<T> {
        self.workspace.staging.push(list)
    }

    /// Lays out the buffers of a pass without gradients: those of the encoder and those that `head` takes from the
    /// arena.
    pub(super) fn lay_out<H>(
        &mut self,
        head: impl Fn(&mut Arena) -> H,
    ) -> Result<(Tape, H), Error> {
        let (config, n_rows) = (self.encoder.config(), self.n_rows);
        self.workspace.arena.lay_out(self.operand_size, |arena| {
            let tape = Tape::lay_out(arena, config, n_rows, false);
            (tape, head(arena))
        })
    }

    /// Lays out the buffers of a training pass: those of the encoder, those that `head` takes from the arena, and the
    /// partial sums. The head needs `n_head_partials` numbers for its partial sums.
    pub(super) fn lay_out_training<H>(
        &mut self,
        n_head_partials: usize,
        head: impl Fn(&mut Arena) -> H,
    ) -> Result<(Tape, H, PartialSums), Error> {
        let (config, n_rows) = (self.encoder.config(), self.n_rows);
        let inputs = &self.inputs;
        let n_partials = Tape::n_partials(config, n_rows) + n_head_partials;
        self.workspace.arena.lay_out(self.operand_size, |arena| {
            let mut tape = Tape::lay_out(arena, config, n_rows, true);
            let head = head(arena);
            let sums = PartialSums::new(arena.span(n_partials));
            // The size of these bits depends on the longest sentence. They come last, so that the addresses of all other
            // buffers, and with them CUDA graphs, depend only on the numbers of rows.
            tape.dropout_bits = DropoutBits::lay_out_training(arena, config, n_rows, inputs);
            (tape, head, sums)
        })
    }

    /// Reserves room for the gradients of the batch, which has `n_states` masked positions.
    pub(super) fn reserve_gradients(
        &mut self,
        parameters: &Parameters,
        gradients: &mut Gradients,
        n_states: usize,
    ) -> Result<(), Error> {
        let (n_scores, trained) = (self.weights.n_table_rows, parameters.table().trained_rows());
        gradients.gpu_mut().reserve(n_states, n_scores, self.n_rows, trained)?;
        self.workspace.sums_block.reserve(SUMS_BYTES)
    }

    /// Copies the staged lists to the GPU and returns the pass, ready to record commands.
    pub(super) fn upload(mut self, dropout: Dropout) -> Result<Pass<'a>, Error> {
        let workspace = &mut *self.workspace;
        workspace.staging.upload(&mut workspace.staging_block)?;
        let inputs = self.inputs.uploaded(&workspace.staging_block);
        Ok(Pass {
            kernels: self.kernels,
            weights: self.weights,
            encoder: self.encoder,
            inputs,
            dropout,
            n_rows: self.n_rows,
            workspace: self.workspace,
        })
    }
}

impl Pass<'_> {
    pub(super) fn config(&self) -> &Config {
        self.encoder.config()
    }

    pub(super) fn gpu(&self) -> &dyn Gpu {
        &**self.kernels.gpu()
    }

    /// Returns the GPU address of a staged list.
    pub(super) fn staged<T>(&self, list: Staged<T>) -> Span<T> {
        self.workspace.staging_block.staged(list)
    }

    /// Runs the commands recorded since the last call. `pass` and `sizes` are the key of the CUDA graph.
    pub(super) fn submit(&self, pass: &'static str, sizes: [usize; 3]) -> Result<(), Error> {
        self.kernels.submit(self.weights.graph_key(pass, sizes))
    }

    /// Records the backward pass of the encoder, which starts from the gradient in `tape.d_hidden`, and the final sums.
    pub(super) fn finish_backward(
        &mut self,
        tape: &Tape,
        pieces: &[u32],
        mut sink: GradientSink<'_>,
    ) -> Result<(), Error> {
        self.backward(tape, pieces, &mut sink)?;
        let values = sink.gradients.gpu_mut().values.span();
        sink.sums.reduce(&self.kernels, &mut self.workspace.sums_block, values)
    }
}
