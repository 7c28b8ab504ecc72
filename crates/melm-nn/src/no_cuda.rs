//! Takes the place of the module `cuda` in a build without the feature `cuda`.
//!
//! The types have the same names and methods, so that the rest of the crate is the same in both builds. They have no
//! values: [`Cuda::open`] always fails, so no method can be called.

#[path = "cuda/settings.rs"]
mod settings;
#[path = "cuda/views.rs"]
mod views;

pub(crate) use views::{MaskedLmView, MaskedQuery, TaggerView};

pub use settings::{CudaSettings, GraphCounts, MemorySize, Precision};

use crate::config::Config;
use crate::dropout::Dropout;
use crate::error::Error;
use crate::gradients::Gradients;
use crate::mlm::{MaskedBatch, Predictions};
use crate::optim::AdamFactors;
use crate::params::Parameters;
use crate::tagger::TaggedBatch;
use std::ops::Range;

/// An open GPU. There is none in this build.
pub enum Cuda {}

impl Cuda {
    /// Fails with [`Error::NoCuda`].
    pub fn open(_: &CudaSettings) -> Result<Self, Error> {
        Err(Error::NoCuda { reason: "this program was built without the feature `cuda`".into() })
    }

    pub(crate) fn n_threads(&self) -> usize {
        match *self {}
    }

    /// The index of the GPU.
    pub fn index(&self) -> u32 {
        match *self {}
    }

    /// The name of the GPU.
    pub fn name(&self) -> &str {
        match *self {}
    }

    /// The precision of matrix products.
    pub fn precision(&self) -> Precision {
        match *self {}
    }

    /// Returns the size of GPU memory.
    pub fn memory(&self) -> Result<MemorySize, Error> {
        match *self {}
    }

    /// The highest number of bytes of GPU memory that were allocated at the same time.
    pub fn peak_bytes(&self) -> usize {
        match *self {}
    }

    /// Returns how often passes ran as CUDA graphs.
    pub fn graph_counts(&self) -> GraphCounts {
        match *self {}
    }

    /// Waits until the GPU has finished all submitted work.
    pub fn synchronize(&self) -> Result<(), Error> {
        match *self {}
    }

    /// Measures the speed of one matrix product of a layer, in operations per second.
    pub fn measure_flops(&self, _: &Config, _: usize) -> Result<f64, Error> {
        match *self {}
    }

    pub(crate) fn train_masked(
        &self,
        _: MaskedLmView<'_>,
        _: &MaskedBatch,
        _: f32,
        _: Dropout,
        _: &mut Gradients,
    ) -> Result<f64, Error> {
        match *self {}
    }

    pub(crate) fn predict_masked(
        &self,
        _: MaskedLmView<'_>,
        _: MaskedQuery<'_>,
        _: &mut Predictions,
    ) -> Result<f64, Error> {
        match *self {}
    }

    pub(crate) fn train_tagger(
        &self,
        _: TaggerView<'_>,
        _: &TaggedBatch,
        _: f32,
        _: Dropout,
        _: &mut Gradients,
    ) -> Result<f64, Error> {
        match *self {}
    }

    pub(crate) fn tagger_emissions(
        &self,
        _: TaggerView<'_>,
        _: &TaggedBatch,
        _: &mut Vec<f32>,
    ) -> Result<(), Error> {
        match *self {}
    }

    pub(crate) fn adam_step(
        &self,
        _: AdamFactors,
        _: Option<f32>,
        _: &Parameters,
        _: &Gradients,
        _: &mut GpuMoments,
    ) -> Result<bool, Error> {
        match *self {}
    }

    pub(crate) fn download_table_gradient(
        &self,
        _: &Parameters,
        _: &Gradients,
    ) -> Result<Vec<f32>, Error> {
        match *self {}
    }
}

/// The moments of the optimiser in GPU memory.
pub(crate) enum GpuMoments {}

impl GpuMoments {
    pub(crate) fn upload(cuda: &Cuda, _: [&[f32]; 2]) -> Result<Self, Error> {
        match *cuda {}
    }

    pub(crate) fn is_on(&self, _: &Cuda) -> bool {
        match *self {}
    }

    pub(crate) fn norm(&self) -> Result<Option<f64>, Error> {
        match *self {}
    }

    pub(crate) fn failed_step(&self) -> Result<Option<u64>, Error> {
        match *self {}
    }

    pub(crate) fn download(&self, _: [&mut [f32]; 2]) -> Result<(), Error> {
        match *self {}
    }
}

/// The gradients in GPU memory.
pub(crate) enum GpuGradients {}

impl GpuGradients {
    pub(crate) fn clear(&mut self) {
        match *self {}
    }

    pub(crate) fn download(&self, _: &mut [f32]) -> Result<(), Error> {
        match *self {}
    }
}

/// The parameters in GPU memory.
pub(crate) enum GpuWeights {}

impl GpuWeights {
    pub(crate) fn duplicate(&self) -> Result<Option<Self>, Error> {
        match *self {}
    }

    pub(crate) fn has_layout_of(&self, _: &Self) -> bool {
        match *self {}
    }

    pub(crate) fn copy_from(&self, _: &Self) -> Result<(), Error> {
        match *self {}
    }

    pub(crate) fn download(&self, _: &Range<usize>, _: &mut [f32]) -> Result<(), Error> {
        match *self {}
    }
}
