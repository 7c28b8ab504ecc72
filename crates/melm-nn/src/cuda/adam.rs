//! Adam on the GPU. The gradient of the embedding table (called "the table" below) is computed a few rows at a time, so
//! that it is never stored whole.

use super::Cuda;
use super::gradients::GpuGradients;
use super::kernels::{Argument, Grid, Kernels, launch};
use super::memory::{StagingBuffer, download_floats};
use super::moments::GpuMoments;
use super::product::{Operand, Product, ProductSize};
use super::span::Span;
use super::weights::GpuWeights;
use super::{SPLITS, to_u32};
use crate::error::Error;
use crate::gradients::Gradients;
use crate::optim::{AdamFactors, MomentLayout};
use crate::params::Parameters;
use std::ops::Range;

/// The number of values of the table's gradient that are stored at once. They take 24 MiB, about the size of the L2
/// cache of a GPU.
const CHUNK_NUMBERS: usize = 6 << 20;
/// The number of table rows in a chunk is a multiple of this, so that the addresses of all chunks are aligned.
const ROW_ALIGNMENT: usize = 16;
/// The number of thread blocks that compute one sum of squares together.
pub(super) const NORM_BLOCKS: usize = 512;

/// The number of looked-up pieces in a product is a multiple of this.
const PIECE_MULTIPLE: usize = 256;

/// The factors of Adam's update rule (`Rule` in `adam.cu`).
#[repr(C)]
#[derive(Clone, Copy)]
struct AdamRule {
    beta1: f32,
    beta2: f32,
    eps: f32,
    rate: f32,
    root: f32,
    keep: f32,
    /// The number of the step, from 1.
    step: u32,
}

impl Argument for AdamRule {}

/// The embedding lookups of a step, in GPU memory (`Lookups` in `adam.cu`).
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub(super) struct LookupLists {
    pieces: Span<u32>,
    starts: Span<u32>,
    order: Span<u32>,
    rows: Span<f32>,
    piece_index: Span<u32>,
}

impl Argument for LookupLists {}

/// One optimiser step.
pub(super) struct AdamStep<'a> {
    pub(super) kernels: &'a Kernels,
    pub(super) weights: &'a GpuWeights,
    pub(super) parameters: &'a Parameters,
    pub(super) gradients: &'a GpuGradients,
    pub(super) moments: &'a mut GpuMoments,
    /// The ranges of the parameters to update, without the table. Neighbouring tensors share one range.
    pub(super) ranges: Vec<Range<usize>>,
    pub(super) trains_table: bool,
}

impl Cuda {
    /// Updates the trained parameters as [`crate::optim::Adam::step`] does. The GPU computes the norm for clipping
    /// itself, so that the CPU does not wait for the norm. Returns false if there are no gradients on this GPU.
    pub(crate) fn adam_step(
        &self,
        factors: AdamFactors,
        max_norm: Option<f32>,
        parameters: &Parameters,
        gradients: &Gradients,
        moments: &mut GpuMoments,
    ) -> Result<bool, Error> {
        let result = self.try_adam_step(factors, max_norm, parameters, gradients, moments);
        // A step that runs out of memory has not changed any parameter. It is tried again after the memory of the
        // passes is freed.
        self.retry_if_out_of_memory(result, true, || {
            self.try_adam_step(factors, max_norm, parameters, gradients, moments)
        })
    }

    fn try_adam_step(
        &self,
        factors: AdamFactors,
        max_norm: Option<f32>,
        parameters: &Parameters,
        gradients: &Gradients,
        moments: &mut GpuMoments,
    ) -> Result<bool, Error> {
        let Some(gpu_gradients) = gradients.gpu() else { return Ok(false) };
        let kernels = gpu_gradients.kernels.recording();
        let weights = parameters.gpu_weights(self, &gpu_gradients.kernels)?;
        let mut step = AdamStep {
            kernels: &kernels,
            weights: &weights,
            parameters,
            gradients: gpu_gradients,
            moments,
            ranges: trained_ranges(parameters, gradients),
            trains_table: gpu_gradients.has_table() && parameters.table().is_trained(),
        };
        let lookups = step.sort_lookups()?;
        step.reserve(&lookups)?;
        if let Some(max_norm) = max_norm {
            step.clip(max_norm, factors.step, &lookups)?;
        }
        step.update(factors, max_norm.is_some(), &lookups)?;
        let clips = usize::from(max_norm.is_some());
        let sizes = [gpu_gradients.n_states, step.ranges.len(), 2 * lookups.n_padded() + clips];
        kernels.submit(weights.graph_key("step", sizes))?;
        Ok(true)
    }
}

/// Returns the ranges of the tensors that this step updates, without the table. Ranges of neighbouring tensors are
/// joined, including the alignment gap between them. The trained rows of a tensor end where the tensor ends.
fn trained_ranges(parameters: &Parameters, gradients: &Gradients) -> Vec<Range<usize>> {
    let mut ranges: Vec<Range<usize>> = Vec::new();
    let mut is_joined = false;
    for (index, parameter) in parameters.list()[..parameters.list().len() - 1].iter().enumerate() {
        let trained = parameter.trained();
        let is_trained = !trained.is_empty() && gradients.is_written(index);
        let starts_at_once = trained.start == parameter.range.start;
        match ranges.last_mut() {
            Some(last) if is_trained && is_joined && starts_at_once => last.end = trained.end,
            _ if is_trained => ranges.push(trained),
            _ => {}
        }
        is_joined = is_trained;
    }
    ranges
}

/// The embedding lookups of a step, sorted by piece.
pub(super) struct LookupsByPiece {
    /// The looked-up pieces, each listed once.
    pub(super) pieces: Vec<u32>,
    /// The lookups in GPU memory.
    pub(super) lists: LookupLists,
}

impl LookupsByPiece {
    /// Returns the number of looked-up pieces, including padding. With padding, products of steps with different numbers of
    /// pieces often have the same size, so that they share a CUDA graph.
    pub(super) fn n_padded(&self) -> usize {
        self.pieces.len().next_multiple_of(PIECE_MULTIPLE)
    }
}

/// A range of parameters and its gradient.
struct AdamRange {
    range: Range<usize>,
    gradient: Span<f32>,
    /// The lookups whose gradients are added; empty outside the table.
    lookups: LookupLists,
    /// The table row where the range starts; 0 outside the table.
    first_row: usize,
}

impl AdamStep<'_> {
    /// Sorts the lookups by piece and uploads them.
    fn sort_lookups(&mut self) -> Result<LookupsByPiece, Error> {
        let mut sorted =
            if self.trains_table { self.gradients.lookups.clone() } else { Vec::new() };
        sorted.sort_unstable();
        let groups: Vec<_> = sorted.chunk_by(|a, b| a.piece == b.piece).collect();
        let pieces: Vec<_> = groups.iter().map(|group| group[0].piece).collect();
        let ends = groups.iter().scan(0, |end, group| {
            *end += to_u32(group.len());
            Some(*end)
        });
        let mut staging = StagingBuffer::default();
        let staged_pieces = staging.push(pieces.iter().copied());
        let starts = staging.push(std::iter::once(0).chain(ends));
        let order = staging.push(sorted.iter().map(|lookup| lookup.row));
        staging.upload(&mut self.moments.staging_block)?;
        // The index is filled with zeros when it is allocated. Every step removes its own entries again.
        let n_bytes = self.parameters.table().shape[0] * size_of::<u32>();
        self.moments.piece_index.reserve(n_bytes)?;
        let buffer = &self.moments.staging_block;
        let lists = LookupLists {
            pieces: buffer.staged(staged_pieces),
            starts: buffer.staged(starts),
            order: buffer.staged(order),
            rows: self.gradients.lookup_rows(),
            piece_index: self.moments.piece_index.span(),
        };
        Ok(LookupsByPiece { pieces, lists })
    }

    /// Allocates all memory that the step needs, before any parameter is updated.
    fn reserve(&mut self, lookups: &LookupsByPiece) -> Result<(), Error> {
        let n_parts = NORM_BLOCKS * (self.ranges.len() + 1) + lookups.pieces.len();
        self.moments.norms.reserve((n_parts + 1) * size_of::<f64>())?;
        if self.trains_table {
            let (n, width) = (self.gradients.n_states, self.gradients.width);
            let n_grams = (SPLITS + 1) * n * n;
            self.moments.grams.reserve(n_grams * size_of::<f32>())?;
            let (n_looked_up, operand_size) = (lookups.n_padded(), self.gradients.operand_size());
            self.moments.picked.reserve(n_looked_up * n * operand_size)?;
            self.moments.lookup_rows.reserve(n_looked_up * width * size_of::<f32>())?;
            let n_rows = self.chunk_rows();
            self.moments.chunk.reserve(n_rows * width * size_of::<f32>())?;
        }
        Ok(())
    }

    /// Returns the number of table rows whose gradient is stored at once.
    fn chunk_rows(&self) -> usize {
        let (n_trained, width) = (self.gradients.trained.len(), self.gradients.width);
        (CHUNK_NUMBERS / width).next_multiple_of(ROW_ALIGNMENT).min(n_trained)
    }

    fn update(
        &mut self,
        factors: AdamFactors,
        clips: bool,
        lookups: &LookupsByPiece,
    ) -> Result<(), Error> {
        let clip = if clips { self.moments.clip() } else { Span::default() };
        let gradient = self.gradients.values.span::<f32>();
        for range in self.ranges.clone() {
            let gradient = gradient.slice(range.clone());
            let lookups = LookupLists::default();
            self.update_range(factors, clip, AdamRange { range, gradient, lookups, first_row: 0 })?;
        }
        if !self.trains_table {
            return Ok(());
        }
        self.index_lookups(lookups, true)?;
        let table = self.parameters.table();
        let (start, trained, width) = (table.range.start, table.trained_rows(), table.shape[1]);
        let n_rows = self.chunk_rows();
        for first_row in trained.clone().step_by(n_rows) {
            let rows = first_row..trained.end.min(first_row + n_rows);
            let gradient = self.moments.chunk.span().first(rows.len() * width);
            self.compute_table_gradient(rows.clone(), gradient)?;
            let range = start + rows.start * width..start + rows.end * width;
            let lookups = lookups.lists;
            self.update_range(factors, clip, AdamRange { range, gradient, lookups, first_row })?;
        }
        self.index_lookups(lookups, false)
    }

    /// Writes the looked-up pieces to the piece index if `enters` is true, else removes them from it.
    fn index_lookups(&self, lookups: &LookupsByPiece, enters: bool) -> Result<(), Error> {
        let grid = Grid::linear(lookups.pieces.len().div_ceil(128), 128);
        launch!(self.kernels, ListLookups, grid, lookups.lists, u32::from(enters));
        Ok(())
    }

    /// Applies Adam's update rule to a range of parameters.
    fn update_range(
        &self,
        factors: AdamFactors,
        clip: Span<f32>,
        part: AdamRange,
    ) -> Result<(), Error> {
        let AdamFactors { beta1, beta2, eps, rate, root, keep, step, .. } = factors;
        let AdamRange { range, gradient, lookups, first_row } = part;
        // Each block has 256 threads, and each thread updates four numbers.
        let n_blocks = range.len().div_ceil(1024);
        let moments = MomentLayout::new(self.parameters).range(&range);
        launch!(
            self.kernels,
            Adam,
            Grid::linear(n_blocks, 256),
            self.weights.master(&range),
            self.moments.mean.span::<f32>().slice(moments.clone()),
            self.moments.square.span::<f32>().slice(moments),
            gradient,
            self.weights.rounded(&range),
            AdamRule { beta1, beta2, eps, rate, root, keep, step },
            clip,
            self.moments.failed(),
            lookups,
            to_u32(first_row),
        );
        Ok(())
    }

    /// Computes the gradient of some trained table rows that comes from the masked-LM head: `errors^T states`.
    fn compute_table_gradient(&self, rows: Range<usize>, out: Span<f32>) -> Result<(), Error> {
        let GpuGradients { width, n_states: n, stride, .. } = *self.gradients;
        if n == 0 {
            return self.kernels.clear(out);
        }
        let factors = self.gradients.factors();
        let first_column = rows.start - self.gradients.trained.start;
        let errors = factors.errors.slice(first_column..factors.errors.len);
        let errors = Operand::new(errors, stride).transposed();
        let states = Operand::new(factors.states, width);
        let size = ProductSize { m: rows.len(), n: width, k: n };
        self.kernels.product(&Product::new(size, errors, states, out))
    }

    /// Computes the whole gradient of the table, with zeros in frozen rows, and copies it to CPU memory.
    fn download_table_gradient(&mut self) -> Result<Vec<f32>, Error> {
        let lookups = self.sort_lookups()?;
        let table = self.parameters.table();
        let (vocab_size, width) = (table.shape[0], table.shape[1]);
        self.moments.chunk.reserve(vocab_size * width * size_of::<f32>())?;
        let gradient = self.moments.chunk.span().first(vocab_size * width);
        self.kernels.clear(gradient)?;
        let trained = self.gradients.trained.clone();
        let of_trained = gradient.slice(trained.start * width..vocab_size * width);
        self.compute_table_gradient(trained, of_trained)?;
        let grid = Grid::linear(lookups.pieces.len(), 128);
        launch!(self.kernels, AddLookups, grid, lookups.lists, gradient);
        let mut whole = vec![0.0; vocab_size * width];
        download_floats(&**self.kernels.gpu(), gradient, &mut whole)?;
        Ok(whole)
    }
}

impl Cuda {
    /// Returns the whole gradient of the table, or an empty list if there are no gradients on this GPU. Only for tests,
    /// which use small tables.
    pub(crate) fn download_table_gradient(
        &self,
        parameters: &Parameters,
        gradients: &Gradients,
    ) -> Result<Vec<f32>, Error> {
        let Some(gradients) = gradients.gpu() else { return Ok(Vec::new()) };
        let weights = parameters.gpu_weights(self, &gradients.kernels)?;
        let mut moments = GpuMoments::upload(self, [&[], &[]])?;
        AdamStep {
            kernels: &gradients.kernels,
            weights: &weights,
            parameters,
            gradients,
            moments: &mut moments,
            ranges: Vec::new(),
            trains_table: true,
        }
        .download_table_gradient()
    }
}
