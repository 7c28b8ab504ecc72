//! Adam and `AdamW` exactly as in torch, with clipping by the global norm. The piece table, whose gradient is stored as
//! factors, is updated block by block.

use super::MomentLayout;
use crate::buffer::{Buffer, zeroed_vec};
use crate::cuda::{Cuda, GpuMoments};
use crate::device::{Cpu, Device};
use crate::error::Error;
use crate::gradients::Gradients;
use crate::isa::per_isa;
use crate::math::sum_of;
use crate::params::Parameters;
use crate::split::Split;
use std::borrow::Cow;
use std::sync::atomic::{AtomicBool, Ordering};

/// The number of parameters that one task updates.
const BLOCK: usize = 1 << 16;
/// On a GPU, the numbers of failed steps are read once in this many steps, because reading waits for the GPU.
const CHECK_INTERVAL: u64 = 16;
/// The number of table rows that one task updates. Their gradient stays in the second-level cache until it is used.
const TABLE_ROWS: usize = 64;

/// The settings of Adam, with the defaults of torch.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AdamSettings {
    /// The decay rate of the mean of the gradients.
    pub beta1: f32,
    /// The decay rate of the mean of the squared gradients.
    pub beta2: f32,
    /// The epsilon that is added to the square root in the denominator.
    pub eps: f32,
    /// The decoupled weight decay, applied to every tensor: 0 for Adam, more than 0 for `AdamW`.
    pub weight_decay: f32,
    /// The largest allowed norm of all gradients together. If the norm is larger, the gradients are scaled down.
    pub max_norm: Option<f32>,
}

impl Default for AdamSettings {
    fn default() -> Self {
        Self { beta1: 0.9, beta2: 0.999, eps: 1e-8, weight_decay: 0.0, max_norm: None }
    }
}

/// The optimiser. It stores two moments for each parameter, but none for the frozen rows of the piece table. On the
/// CPU, the moments of other frozen tensors are never touched and take no memory.
pub struct Adam {
    settings: AdamSettings,
    n_steps: u64,
    layout: MomentLayout,
    mean: Buffer,
    square: Buffer,
    /// The squared norm of each block of gradients.
    norms: Buffer,
    /// The norm of all gradients in the last step.
    norm: Option<f64>,
    /// The moments in GPU memory. If set, they are newer than `mean` and `square`.
    gpu: Option<GpuMoments>,
}

/// The factors of one step that the innermost loop uses.
#[derive(Clone, Copy)]
pub(crate) struct AdamFactors {
    pub(crate) beta1: f32,
    pub(crate) beta2: f32,
    pub(crate) eps: f32,
    /// The learning rate divided by the first bias correction.
    pub(crate) rate: f32,
    /// The inverse of the square root of the second bias correction.
    pub(crate) root: f32,
    /// The factor that weight decay multiplies each parameter by.
    pub(crate) keep: f32,
    /// The factor that clipping multiplies each gradient by.
    clip: f32,
    /// The number of the step, from 1.
    #[cfg(feature = "cuda")]
    pub(crate) step: u32,
}

/// The bits of the exponent of an f32. They are all 1 in infinities and NaN only.
const EXPONENT: u32 = 0x7f80_0000;

per_isa! {
    /// Returns true if all new values and second moments are finite.
    fn update(factors: AdamFactors, gradient: &[f32], values: &mut [f32], mean: &mut [f32], square: &mut [f32]) -> bool {
        let mut n_failed = 0_u32;
        for (((p, m), v), g) in values.iter_mut().zip(mean).zip(square).zip(gradient) {
            let g = g * factors.clip;
            *m += (g - *m) * (1.0 - factors.beta1);
            *v = *v * factors.beta2 + g * g * (1.0 - factors.beta2);
            *p = *p * factors.keep - factors.rate * *m / (v.sqrt() * factors.root + factors.eps);
            n_failed |= u32::from(p.to_bits() & EXPONENT == EXPONENT) | u32::from(v.to_bits() & EXPONENT == EXPONENT);
        }
        n_failed == 0
    }
}

per_isa! {
    fn squared(x: &[f32]) -> f32 {
        sum_of(x, x, |x, _| x * x)
    }
}

impl Adam {
    /// Creates an optimiser for the trained rows of these parameters.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`] if the memory for the moments cannot be allocated.
    pub fn new(parameters: &Parameters, settings: AdamSettings) -> Result<Self, Error> {
        let layout = MomentLayout::new(parameters);
        Ok(Self {
            settings,
            n_steps: 0,
            layout,
            mean: Buffer::zeros(layout.len)?,
            square: Buffer::zeros(layout.len)?,
            norms: Buffer::default(),
            norm: None,
            gpu: None,
        })
    }

    /// Returns the norm of all gradients of the last step before clipping, if clipping is on. On a GPU, this waits
    /// until the step is finished.
    pub fn norm(&self) -> Result<Option<f64>, Error> {
        match &self.gpu {
            Some(gpu) if self.settings.max_norm.is_some() => gpu.norm(),
            _ => Ok(self.norm),
        }
    }

    /// Returns the number of steps so far.
    pub fn n_steps(&self) -> u64 {
        self.n_steps
    }

    pub(crate) fn set_steps(&mut self, n_steps: u64) {
        self.n_steps = n_steps;
    }

    /// Returns the layout of the moments.
    pub(crate) fn layout(&self) -> MomentLayout {
        self.layout
    }

    /// Returns the first and second moments, in the order of [`Self::layout`].
    pub(crate) fn moments(&self) -> Result<[Cow<'_, [f32]>; 2], Error> {
        let Some(gpu) = &self.gpu else {
            return Ok([Cow::Borrowed(&self.mean), Cow::Borrowed(&self.square)]);
        };
        let mut moments = [zeroed_vec(self.mean.len())?, zeroed_vec(self.square.len())?];
        gpu.download(moments.each_mut().map(|moments| &mut moments[..]))?;
        Ok(moments.map(Cow::Owned))
    }

    /// Returns the moments for overwriting. Moments in GPU memory are dropped.
    pub(crate) fn moments_mut(&mut self) -> (&mut [f32], &mut [f32]) {
        self.gpu = None;
        (&mut self.mean, &mut self.square)
    }

    /// Fails with [`Error::NotFiniteStep`] if the gradients of an earlier step on a GPU were not finite. On the CPU,
    /// [`Self::step`] itself fails. Waits until the GPU is idle.
    ///
    /// # Errors
    /// If an earlier step was not finite, or the GPU fails.
    pub fn check_finite(&self) -> Result<(), Error> {
        let failed = self.gpu.as_ref().map(GpuMoments::failed_step).transpose()?.flatten();
        failed.map_or(Ok(()), |step| Err(Error::NotFiniteStep { step }))
    }

    /// Updates the trained parameters with the gradients of a step, at learning rate `rate`.
    ///
    /// # Errors
    /// [`Error::NotFiniteStep`] if the norm of the gradients, an updated parameter or its second moment is infinite or
    /// NaN. If clipping is on and the norm is not finite, nothing has changed; else some parameters may have changed.
    /// On a GPU this is found some steps later, because the CPU does not wait for every step; the GPU changes nothing
    /// after the step that failed. [`Self::check_finite`] finds it at once. Other errors if the GPU fails.
    ///
    /// # Panics
    /// If other rows of the piece table were frozen when the optimiser was created.
    pub fn step(
        &mut self,
        device: &Device,
        rate: f32,
        parameters: &mut Parameters,
        gradients: &mut Gradients,
    ) -> Result<(), Error> {
        assert_eq!(
            self.layout,
            MomentLayout::new(parameters),
            "tensors are frozen before the optimiser is created"
        );
        if let Device::Cuda(cuda) = device {
            return self.step_on(cuda, rate, parameters, gradients);
        }
        let Device::Cpu(cpu) = device else { return Ok(()) };
        self.fetch_moments()?;
        self.step_on_cpu(cpu, rate, parameters, gradients)
    }

    fn step_on_cpu(
        &mut self,
        cpu: &Cpu,
        rate: f32,
        parameters: &mut Parameters,
        gradients: &mut Gradients,
    ) -> Result<(), Error> {
        let trains_table = gradients.table.is_written() && parameters.table().is_trained();
        let norm = self
            .settings
            .max_norm
            .map(|_| self.gradient_norm(cpu, parameters, gradients, trains_table));
        self.norm = norm;
        let failed = Error::NotFiniteStep { step: self.n_steps + 1 };
        if norm.is_some_and(|norm| !norm.is_finite()) {
            return Err(failed);
        }
        self.n_steps += 1;
        let factors = self.factors(rate, norm);
        let is_finite = AtomicBool::new(true);
        self.step_tensors(cpu, factors, parameters, gradients, &is_finite);
        if trains_table {
            self.step_table(cpu, factors, parameters, gradients, &is_finite);
        }
        if is_finite.into_inner() { Ok(()) } else { Err(failed) }
    }

    /// Updates all trained tensors except the piece table.
    fn step_tensors(
        &mut self,
        cpu: &Cpu,
        factors: AdamFactors,
        parameters: &mut Parameters,
        gradients: &Gradients,
        is_finite: &AtomicBool,
    ) {
        for index in 0..parameters.list().len() - 1 {
            let range = parameters.list()[index].trained();
            if range.is_empty() || !gradients.is_written(index) {
                continue;
            }
            let gradient = gradients.at(&range);
            let parts = (
                Split::every(&mut parameters.values_mut()[range.clone()], BLOCK),
                Split::every(&mut self.mean[range.clone()], BLOCK),
                Split::every(&mut self.square[range.clone()], BLOCK),
            );
            cpu.each(range.len().div_ceil(BLOCK), parts, |task, _, (values, mean, square)| {
                if !update(cpu.isa(), factors, &gradient[task * BLOCK..], values, mean, square) {
                    is_finite.store(false, Ordering::Relaxed);
                }
            });
        }
    }

    fn step_on(
        &mut self,
        cuda: &Cuda,
        rate: f32,
        parameters: &mut Parameters,
        gradients: &mut Gradients,
    ) -> Result<(), Error> {
        if self.gpu.as_ref().is_some_and(|gpu| !gpu.is_on(cuda)) {
            self.fetch_moments()?;
        }
        if self.gpu.is_none() {
            self.gpu = Some(GpuMoments::upload(cuda, [&self.mean, &self.square])?);
        }
        if self.n_steps.is_multiple_of(CHECK_INTERVAL) {
            self.check_finite()?;
        }
        self.n_steps += 1;
        let factors = self.factors(rate, None);
        let moments = self.gpu.as_mut().expect("just made");
        match cuda.adam_step(factors, self.settings.max_norm, parameters, gradients, moments) {
            Ok(true) => parameters.mark_changed_on_gpu(),
            Ok(false) => {}
            Err(error) => {
                self.n_steps -= 1;
                return Err(error);
            }
        }
        Ok(())
    }

    /// Moves the moments from GPU memory to the CPU, so that another device can continue.
    fn fetch_moments(&mut self) -> Result<(), Error> {
        self.check_finite()?;
        if let Some(gpu) = self.gpu.take() {
            gpu.download([&mut self.mean, &mut self.square])?;
        }
        Ok(())
    }

    fn factors(&self, rate: f32, norm: Option<f64>) -> AdamFactors {
        let AdamSettings { beta1, beta2, eps, weight_decay, max_norm } = self.settings;
        // For more steps than `i32::MAX`, the bias correction is 1 anyway.
        let n_steps = i32::try_from(self.n_steps).unwrap_or(i32::MAX);
        let corrections = [beta1, beta2].map(|beta| 1.0 - f64::from(beta).powi(n_steps));
        // The 1e-6 is that of `torch.nn.utils.clip_grad_norm_`.
        let clip = match (max_norm, norm) {
            (Some(most), Some(norm)) => (f64::from(most) / (norm + 1e-6)).min(1.0),
            _ => 1.0,
        };
        #[expect(clippy::cast_possible_truncation, reason = "the precision of the engine")]
        AdamFactors {
            beta1,
            beta2,
            eps,
            rate: (f64::from(rate) / corrections[0]) as f32,
            root: (1.0 / corrections[1].sqrt()) as f32,
            keep: 1.0 - rate * weight_decay,
            clip: clip as f32,
            #[cfg(feature = "cuda")]
            step: u32::try_from(self.n_steps).unwrap_or(u32::MAX),
        }
    }

    /// Returns the norm of all gradients.
    fn gradient_norm(
        &mut self,
        cpu: &Cpu,
        parameters: &Parameters,
        gradients: &mut Gradients,
        trains_table: bool,
    ) -> f64 {
        let mut total = 0.0;
        let norms = &mut self.norms;
        for (index, parameter) in parameters.list().iter().enumerate() {
            if !parameter.is_trained()
                || index + 1 == parameters.list().len()
                || !gradients.is_written(index)
            {
                continue;
            }
            let gradient = gradients.at(&parameter.trained());
            let n_blocks = gradient.len().div_ceil(BLOCK);
            norms.reserve(n_blocks);
            cpu.each(n_blocks, Split::every(&mut norms[..n_blocks], 1), |task, _, norm| {
                let end = gradient.len().min((task + 1) * BLOCK);
                norm[0] = squared(cpu.isa(), &gradient[task * BLOCK..end]);
            });
            total += norms[..n_blocks].iter().map(|norm| f64::from(*norm)).sum::<f64>();
        }
        if trains_table {
            total += gradients.table.squared_norm(cpu);
        }
        // Rounding can make the sum negative. A NaN stays a NaN.
        if total < 0.0 { 0.0 } else { total.sqrt() }
    }

    /// Updates the trained rows of the piece table in blocks of rows: computes the gradient of a block, then applies it.
    fn step_table(
        &mut self,
        cpu: &Cpu,
        factors: AdamFactors,
        parameters: &mut Parameters,
        gradients: &mut Gradients,
        is_finite: &AtomicBool,
    ) {
        let table = parameters.table();
        let (range, trained, width) = (table.trained(), table.trained_rows(), table.shape[1]);
        let moments = self.layout.range(&range);
        gradients.table.prepare(cpu.isa());
        let gradient = &gradients.table;
        let block = TABLE_ROWS * width;
        let parts = (
            Split::every(&mut parameters.values_mut()[range], block),
            Split::every(&mut self.mean[moments.clone()], block),
            Split::every(&mut self.square[moments], block),
        );
        let n_tasks = trained.len().div_ceil(TABLE_ROWS);
        cpu.each(n_tasks, parts, |task, worker, (values, mean, square)| {
            let start = trained.start + task * TABLE_ROWS;
            let rows = start..trained.end.min(start + TABLE_ROWS);
            let mut scratch = cpu.scratch(worker);
            scratch.reserve(block);
            let out = &mut scratch[..rows.len() * width];
            gradient.rows_into(cpu.isa(), rows, out, [values, mean, square]);
            if !update(cpu.isa(), factors, out, values, mean, square) {
                is_finite.store(false, Ordering::Relaxed);
            }
        });
    }
}
