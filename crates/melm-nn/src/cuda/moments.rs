//! The state of Adam in GPU memory.

use std::sync::Arc;

use super::Cuda;
use super::memory::{DeviceBuffer, download_floats, upload_floats};
use super::span::Span;
use crate::error::Error;

/// The state of Adam in GPU memory: the two moments of each parameter, in a `MomentLayout`, and scratch buffers.
pub(crate) struct GpuMoments {
    pub(super) mean: DeviceBuffer,
    pub(super) square: DeviceBuffer,
    /// The gradient of the table rows that are being updated.
    pub(super) chunk: DeviceBuffer,
    /// The norm of all gradients, followed by the partial sums of squares from which it is computed.
    pub(super) norms: DeviceBuffer,
    /// Gram matrices; see `AdamStep::compute_head_norm`.
    pub(super) grams: DeviceBuffer,
    /// The errors of the looked-up pieces; see `AdamStep::compute_lookup_rows`.
    pub(super) picked: DeviceBuffer,
    /// The head's part of the gradient of the looked-up rows.
    pub(super) lookup_rows: DeviceBuffer,
    /// The factor by which clipping multiplies all gradients, and the number of the first step that was not finite.
    flags: DeviceBuffer,
    /// For each piece of the vocabulary, its index in the list of looked-up pieces plus one; 0 if the piece was not
    /// looked up.
    pub(super) piece_index: DeviceBuffer,
    pub(super) staging_block: DeviceBuffer,
}

impl GpuMoments {
    /// Copies the two moments from CPU memory to the GPU.
    pub(crate) fn upload(cuda: &Cuda, moments: [&[f32]; 2]) -> Result<Self, Error> {
        let result = Self::try_upload(cuda, moments);
        cuda.retry_if_out_of_memory(result, true, || Self::try_upload(cuda, moments))
    }

    /// Returns true if the moments are in the memory of this GPU.
    pub(crate) fn is_on(&self, cuda: &Cuda) -> bool {
        Arc::ptr_eq(self.mean.gpu(), &cuda.gpu)
    }

    fn try_upload(cuda: &Cuda, moments: [&[f32]; 2]) -> Result<Self, Error> {
        let upload = |values: &[f32]| {
            let buffer = DeviceBuffer::zeros(&cuda.gpu, size_of_val(values))?;
            upload_floats(&*cuda.gpu, values, buffer.span())?;
            Ok::<_, Error>(buffer)
        };
        let empty = || DeviceBuffer::empty(&cuda.gpu);
        let [mean, square] = moments;
        Ok(Self {
            mean: upload(mean)?,
            square: upload(square)?,
            chunk: empty(),
            norms: empty(),
            grams: empty(),
            picked: empty(),
            lookup_rows: empty(),
            flags: DeviceBuffer::zeros(&cuda.gpu, 16)?,
            piece_index: empty(),
            staging_block: empty(),
        })
    }

    /// Returns the norm of the gradients of the last step, before clipping; `None` before the first step.
    pub(crate) fn norm(&self) -> Result<Option<f64>, Error> {
        let norms = self.norms.span::<f64>();
        if norms.len() == 0 {
            return Ok(None);
        }
        let mut bytes = [0; 8];
        self.norms.gpu().download(norms.address, &mut bytes)?;
        Ok(Some(f64::from_le_bytes(bytes)))
    }

    /// The factor by which clipping multiplies all gradients.
    pub(super) fn clip(&self) -> Span<f32> {
        self.flags.span().first(1)
    }

    /// The number of the first step whose gradients or updates were not finite, from 1; 0 if there is none. Kernels
    /// write it, and change no parameter once it is set.
    pub(super) fn failed(&self) -> Span<u32> {
        self.flags.span().slice(1..2)
    }

    /// Returns the number of the first step that was not finite, from 1. Waits until the GPU is idle.
    pub(crate) fn failed_step(&self) -> Result<Option<u64>, Error> {
        let mut bytes = [0; 4];
        self.flags.gpu().download(self.failed().address, &mut bytes)?;
        let step = u32::from_le_bytes(bytes);
        Ok((step > 0).then_some(step.into()))
    }

    /// Copies the moments to CPU memory.
    pub(crate) fn download(&self, out: [&mut [f32]; 2]) -> Result<(), Error> {
        for (buffer, out) in [&self.mean, &self.square].into_iter().zip(out) {
            download_floats(&**buffer.gpu(), buffer.span(), out)?;
        }
        Ok(())
    }
}
