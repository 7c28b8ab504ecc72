//! The gradients of one step. The gradient of the piece table is stored as factors (see `table.rs`). The gradients of
//! all other parameters are stored in a block with the layout of the parameters.

use crate::buffer::Buffer;
use crate::cuda::GpuGradients;
#[cfg(feature = "cuda")]
use crate::cuda::{Cuda, Kernels};
use crate::device::Device;
use crate::error::Error;
use crate::ops::linear::Accumulator;
use crate::params::Parameters;
use crate::table::TableGradient;
use std::ops::Range;
#[cfg(feature = "cuda")]
use std::sync::Arc;

/// The gradients of all parameters, summed over the micro-batches of a step.
///
/// If no backward pass has written to a tensor, the tensor has no gradient, and the optimiser skips it, as in torch.
pub struct Gradients {
    values: Buffer,
    /// For each tensor, its start in the block, and true if this step has written to its gradient.
    tensors: Vec<(usize, bool)>,
    pub(crate) table: TableGradient,
    /// The gradients in GPU memory, if a GPU has computed some.
    gpu: Option<GpuGradients>,
}

impl Gradients {
    /// Allocates gradients for all parameters except the piece table, whose gradient is stored as factors.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`] if the memory cannot be allocated.
    pub fn new(parameters: &Parameters) -> Result<Self, Error> {
        let table = parameters.table();
        Ok(Self {
            values: Buffer::zeros(table.range.start)?,
            tensors: parameters.list().iter().map(|p| (p.range.start, false)).collect(),
            table: TableGradient::new(table.shape[0], table.shape[1]),
            gpu: None,
        })
    }

    /// Removes all gradients. Call it at the start of a step.
    pub fn clear(&mut self) {
        for (_, is_written) in &mut self.tensors {
            *is_written = false;
        }
        self.table.clear();
        if let Some(gpu) = &mut self.gpu {
            gpu.clear();
        }
    }

    /// Returns the gradient of a tensor, or `None` if this step has computed none. For the piece table, call
    /// [`Self::table_gradient`].
    pub fn get(&self, parameters: &Parameters, name: &str) -> Option<&[f32]> {
        let range = parameters.find(name).ok()?.range.clone();
        let index = self.tensors.binary_search_by_key(&range.start, |t| t.0).ok()?;
        (self.tensors[index].1 && range.end <= self.values.len()).then(|| &self.values[range])
    }

    /// Returns the dense gradient of the piece table: for tests with small models.
    pub fn table_gradient(&self) -> Vec<f32> {
        self.table.to_dense()
    }

    /// Returns the gradient of one tensor or of several adjacent tensors for writing. The first write in a step
    /// overwrites the gradient, later writes add to it.
    pub(crate) fn slot(&mut self, range: &Range<usize>) -> Accumulator<'_> {
        let accumulates = self.mark(range);
        Accumulator { data: &mut self.values[range.clone()], accumulates }
    }

    /// Marks the tensors inside `range` as written. Returns true if all of them were written before in this step.
    pub(crate) fn mark(&mut self, range: &Range<usize>) -> bool {
        let first = self.tensors.partition_point(|t| t.0 < range.start);
        let end = self.tensors.partition_point(|t| t.0 < range.end);
        let were_written = self.tensors[first..end].iter().all(|t| t.1);
        for tensor in &mut self.tensors[first..end] {
            tensor.1 = true;
        }
        were_written
    }

    /// Allocates gradients in GPU memory, unless they exist already on this GPU.
    #[cfg(feature = "cuda")]
    pub(crate) fn allocate_on_gpu(
        &mut self,
        cuda: &Cuda,
        kernels: &Arc<Kernels>,
        parameters: &Parameters,
    ) -> Result<(), Error> {
        // All micro-batches of a step run on one device. After a change of the GPU, gradients start at zero.
        if self.gpu.as_ref().is_none_or(|gpu| !gpu.is_on(cuda)) {
            self.gpu = Some(GpuGradients::new(cuda, kernels, parameters)?);
        }
        Ok(())
    }

    #[cfg(feature = "cuda")]
    pub(crate) fn gpu(&self) -> Option<&GpuGradients> {
        self.gpu.as_ref()
    }

    #[cfg(feature = "cuda")]
    pub(crate) fn gpu_mut(&mut self) -> &mut GpuGradients {
        self.gpu.as_mut().expect("GPU gradients are allocated before a batch starts")
    }

    /// Copies the gradients from GPU memory, so that [`Self::get`] returns them. Returns the dense gradient of the
    /// piece table: for tests with small models.
    ///
    /// # Errors
    /// If the GPU fails.
    pub fn fetch(&mut self, device: &Device, parameters: &Parameters) -> Result<Vec<f32>, Error> {
        match (device, &self.gpu) {
            (Device::Cuda(cuda), Some(gpu)) => {
                gpu.download(&mut self.values)?;
                cuda.download_table_gradient(parameters, self)
            }
            _ => Ok(self.table.to_dense()),
        }
    }

    /// Fills the gradient of a tensor with zeros unless this step has written to it: for tensors of which a step writes
    /// only some rows.
    pub(crate) fn clear_fresh(&mut self, range: &Range<usize>) {
        let slot = self.slot(range);
        if !slot.accumulates {
            slot.data.fill(0.0);
        }
    }

    /// Returns true if this step has written to any tensor.
    #[cfg(feature = "cuda")]
    pub(crate) fn has_any(&self) -> bool {
        self.tensors.iter().any(|t| t.1)
    }

    /// Returns true if this step has written to the tensor at `index`.
    pub(crate) fn is_written(&self, index: usize) -> bool {
        self.tensors[index].1
    }

    pub(crate) fn at(&self, range: &Range<usize>) -> &[f32] {
        &self.values[range.clone()]
    }
}
