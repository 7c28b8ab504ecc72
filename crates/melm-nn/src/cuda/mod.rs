//! NVIDIA cards: the same models, trained and run in memory of their own.
//!
//! Every number lives on the card: weights, moments, gradients, what a pass leaves for the way back. The processor sends
//! pieces and gets losses, and gets the weights back when a training is saved. Products are cuBLASLt's, everything
//! between them is a kernel of `kernels/`, compiled for a model's shape when it is first used. Nothing depends on the
//! order in which blocks happen to run, so that the same step gives the same bits.
//!
//! The driver and two libraries are looked for when a card is asked for, not when the program is built or started.

mod adam;
mod backward;
mod blas;
mod compile;
mod driver;
#[cfg(feature = "emulated")]
mod emulated;
mod encode;
mod gradients;
mod graphs;
mod head;
mod inputs;
mod kernels;
mod library;
mod machine;
mod memory;
mod norm;
mod predict;
mod program;
mod script;
mod sums;
mod tagger;
mod tape;
mod weights;

pub use driver::CudaSettings;
pub use graphs::GraphCounts;
pub use program::Precision;

pub(crate) use adam::Moments;
pub(crate) use gradients::CardGradients;
pub(crate) use head::Masked;
pub(crate) use kernels::Kernels;
pub(crate) use tagger::OnCard;
pub(crate) use weights::Weights;

use crate::config::Config;
use crate::error::Error;
use machine::{Factor, Machine, Product};
use memory::{Block, Parcel};
use program::Shape;
use std::collections::HashMap;
use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A card: a stream of work, kernels, and working memory that is allocated once.
pub struct Cuda {
    machine: Arc<dyn Machine>,
    precision: Precision,
    n_threads: Option<NonZeroUsize>,
    is_checked: bool,
    kernels: Mutex<HashMap<Shape, Arc<Kernels>>>,
    workspace: Mutex<Workspace>,
}

/// Memory of the pass under way.
struct Workspace {
    arena: Block,
    parcel: Parcel,
    parcel_block: Block,
    sums_block: Block,
}

impl Cuda {
    /// Opens a card, or says why there is none.
    pub fn open(settings: &CudaSettings) -> Result<Self, Error> {
        let machine: Arc<dyn Machine> = Arc::new(driver::Card::open(settings)?);
        Ok(Self::over(machine, settings))
    }

    /// Runs the kernels on the processor, one thread after the other: for tests where there is no card.
    #[cfg(feature = "emulated")]
    pub fn emulated(settings: &CudaSettings) -> Result<Self, Error> {
        Ok(Self::over(Arc::new(emulated::Emulator::new(settings)), settings))
    }

    fn over(machine: Arc<dyn Machine>, settings: &CudaSettings) -> Self {
        let workspace = Workspace {
            arena: Block::empty(&machine),
            parcel: Parcel::default(),
            parcel_block: Block::empty(&machine),
            sums_block: Block::empty(&machine),
        };
        Self {
            machine,
            precision: settings.precision,
            n_threads: settings.n_threads,
            is_checked: settings.is_checked,
            kernels: Mutex::default(),
            workspace: Mutex::new(workspace),
        }
    }

    /// Threads of the processor beside it.
    pub(crate) fn n_threads(&self) -> usize {
        let all = || std::thread::available_parallelism().map_or(1, usize::from);
        self.n_threads.map_or_else(all, usize::from)
    }

    /// The card's name.
    pub fn name(&self) -> &str {
        self.machine.name()
    }

    /// What products are computed in.
    pub fn precision(&self) -> Precision {
        self.precision
    }

    /// Bytes that are free on the card, and all of them.
    pub fn memory(&self) -> Result<(usize, usize), Error> {
        self.machine.memory()
    }

    /// The most bytes that were allocated on it at once.
    pub fn peak(&self) -> usize {
        self.machine.peak()
    }

    /// How work was handed to the card.
    pub fn graphs(&self) -> GraphCounts {
        self.machine.graphs()
    }

    /// Waits until everything that was asked for is done.
    pub fn wait(&self) -> Result<(), Error> {
        self.machine.download(0, &mut [])
    }

    #[expect(clippy::many_single_char_names, reason = "the letters of matrix algebra")]
    /// Operations a second in a product of a layer, as [`crate::ceiling::LinearProbe`] measures the processor's.
    pub fn speed(&self, config: &Config, n_rows: usize) -> Result<f64, Error> {
        let kernels = self.kernels(config)?;
        let (m, n, k) = (n_rows, config.intermediate_size, config.hidden_size);
        let mut workspace = self.workspace();
        let (a, b, out) = workspace.arena.lay_out(self.precision.size(), |arena| {
            (arena.numbers(m * k), arena.numbers(n * k), arena.span::<f32>(m * n))
        })?;
        let (a, b) = (Factor::of(a, k), Factor::of(b, k).transposed());
        let (bias, accumulates) = (machine::Span::default(), false);
        let product = Product {
            m,
            n,
            k,
            a,
            b,
            out,
            out_row: n,
            out_batch: 0,
            accumulates,
            bias,
            n_batches: 1,
        };
        let run = |times: u32| {
            (0..times).try_for_each(|_| kernels.product(&product))?;
            self.wait()
        };
        run(N_PROBES)?;
        let begun = std::time::Instant::now();
        run(N_PROBES)?;
        let operations = 2.0 * (m * n * k) as f64 * f64::from(N_PROBES);
        Ok(operations / begun.elapsed().as_secs_f64())
    }

    /// The kernels for a model, compiled on first use.
    fn kernels(&self, config: &Config) -> Result<Arc<Kernels>, Error> {
        let shape = Shape {
            hidden: config.hidden_size,
            head_size: config.hidden_size / config.n_heads,
            precision: self.precision,
            is_checked: self.is_checked,
        };
        if shape.hidden > program::MOST_HIDDEN || shape.head_size > program::MOST_HEAD_SIZE {
            let (hidden, head) = (shape.hidden, shape.head_size);
            let reason = format!("{hidden} wide, with heads of {head}");
            return Err(Error::Cuda { what: "a model this large", reason });
        }
        let mut known = self.kernels.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(kernels) = known.get(&shape) {
            return Ok(Arc::clone(kernels));
        }
        let kernels = Arc::new(Kernels::load(&self.machine, shape)?);
        known.insert(shape, Arc::clone(&kernels));
        Ok(kernels)
    }

    fn workspace(&self) -> MutexGuard<'_, Workspace> {
        self.workspace.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Parts that long sums over the vocabulary are cut into: enough of them to fill a card.
const SPLITS: usize = 32;

/// Products by which the speed of a card is measured.
const N_PROBES: u32 = 50;

/// Room for the list of a backward pass's sums, of which there are a few hundred.
const SUMS_BYTES: usize = 1 << 16;

/// A count as kernels take it.
fn n32(n: usize) -> u32 {
    u32::try_from(n).expect("fewer than 2^32 of anything in a batch")
}
