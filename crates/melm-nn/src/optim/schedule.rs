//! Schedules of the learning rate.

/// A schedule: the factor that the learning rate is multiplied by at each step, as in the Hugging Face schedules of the
/// same names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Schedule {
    /// The factor rises linearly from 0 to 1 over the first `n_warmup` steps and then stays 1.
    Constant {
        /// The number of warm-up steps; 0 for none.
        n_warmup: u64,
    },
    /// The factor rises linearly from 0 to 1 over the first `n_warmup` steps, then falls linearly to 0 at step
    /// `n_steps`.
    Linear {
        /// The number of warm-up steps; 0 for none.
        n_warmup: u64,
        /// The total number of steps, including warm-up.
        n_steps: u64,
    },
}

impl Schedule {
    /// Returns the factor at `step`, counted from 0.
    ///
    /// ```
    /// use melm_nn::optim::Schedule;
    /// let schedule = Schedule::Linear { n_warmup: 2, n_steps: 10 };
    /// assert_eq!([0, 1, 2, 6, 10].map(|step| schedule.factor(step)), [0.0, 0.5, 1.0, 0.5, 0.0]);
    /// ```
    pub fn factor(self, step: u64) -> f32 {
        let (Self::Constant { n_warmup } | Self::Linear { n_warmup, .. }) = self;
        if step < n_warmup {
            return step as f32 / n_warmup as f32;
        }
        match self {
            Self::Constant { .. } => 1.0,
            Self::Linear { n_steps, .. } => {
                let left = n_steps.saturating_sub(step);
                left as f32 / n_steps.saturating_sub(n_warmup).max(1) as f32
            }
        }
    }
}
