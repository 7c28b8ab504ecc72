//! The compiled kernels of a model. Launches them or records the launches.

use super::commands::{ArgumentRef, Command, CommandList, GraphKey};
use super::gpu::{Function, Gpu, Launch};
use super::product::{Operand, Product};
use super::program::{Kernel, KernelConfig, PROGRAMS};
use super::span::Span;
use super::to_u32;
use crate::dropout::{Dropout, Site};
use crate::error::Error;
use std::sync::{Arc, Mutex, PoisonError};

/// The kernels compiled for one model configuration. Launches run at once, or are recorded until [`Self::submit`].
pub(crate) struct Kernels {
    gpu: Arc<dyn Gpu>,
    functions: [Function; Kernel::COUNT],
    /// The recorded commands; `None` if commands run at once.
    recorded: Option<Mutex<CommandList>>,
}

/// A type that kernels take as an argument by value.
///
/// Implement the trait only for types that have the layout of the corresponding C type and no padding bytes.
pub(super) trait Argument: Copy {}

impl Argument for u32 {}
impl Argument for u64 {}
impl Argument for f32 {}
impl<T> Argument for Span<T> {}

/// The grid of thread blocks that a kernel runs on.
#[derive(Clone, Copy)]
pub(super) struct Grid {
    /// The number of thread blocks in x, y and z.
    pub(super) blocks: [usize; 3],
    /// The number of threads in each block.
    pub(super) n_threads: usize,
}

impl Grid {
    pub(super) fn new(blocks: [usize; 3], n_threads: usize) -> Self {
        Self { blocks, n_threads }
    }

    /// Returns a grid with `n_blocks` blocks in x.
    pub(super) fn linear(n_blocks: usize, n_threads: usize) -> Self {
        Self::new([n_blocks, 1, 1], n_threads)
    }
}

/// Launches a kernel: `launch!(kernels, Name, grid, arguments in the order of the kernel's parameters)`. Instead of a name
/// it takes an expression in parentheses.
macro_rules! launch {
    ($kernels:expr, ($kernel:expr), $grid:expr, $($argument:expr),+ $(,)?) => {
        $kernels.launch($kernel, $grid, &[$($crate::cuda::commands::ArgumentRef::new(&$argument)),+])?
    };
    ($kernels:expr, $kernel:ident, $grid:expr, $($argument:expr),+ $(,)?) => {
        $crate::cuda::kernels::launch!($kernels, ($crate::cuda::program::Kernel::$kernel), $grid, $($argument),+)
    };
}
pub(super) use launch;

impl Kernels {
    /// Compiles all source files, each on its own thread.
    pub(super) fn load(gpu: &Arc<dyn Gpu>, config: KernelConfig) -> Result<Self, Error> {
        let loaded: Vec<_> = std::thread::scope(|scope| {
            let threads: Vec<_> = PROGRAMS
                .iter()
                .map(|program| scope.spawn(move || gpu.load(program, config)))
                .collect();
            threads.into_iter().map(|thread| thread.join().expect("no panic")).collect()
        });
        let mut functions = [Function(0); Kernel::COUNT];
        for (program, loaded) in PROGRAMS.iter().zip(loaded) {
            for (kernel, function) in program.kernels.iter().zip(loaded?) {
                functions[*kernel as usize] = function;
            }
        }
        Ok(Self { gpu: Arc::clone(gpu), functions, recorded: None })
    }

    pub(super) fn gpu(&self) -> &Arc<dyn Gpu> {
        &self.gpu
    }

    /// Returns these kernels in recording mode, in which commands run only when [`Self::submit`] is called.
    pub(super) fn recording(&self) -> Self {
        let recorded = Some(Mutex::default());
        Self { gpu: Arc::clone(&self.gpu), functions: self.functions, recorded }
    }

    /// Runs the commands recorded since the last call. Panics if the kernels are not in recording mode.
    pub(super) fn submit(&self, key: GraphKey) -> Result<(), Error> {
        let recorded = self.recorded.as_ref().expect("made by `recording`");
        let commands =
            std::mem::take(&mut *recorded.lock().unwrap_or_else(PoisonError::into_inner));
        self.gpu.submit(key, commands)
    }

    /// Runs a command, or records it in recording mode.
    fn run_or_record(
        &self,
        run: impl FnOnce(&dyn Gpu) -> Result<(), Error>,
        record: impl FnOnce(&mut CommandList),
    ) -> Result<(), Error> {
        match &self.recorded {
            None => run(&*self.gpu),
            Some(recorded) => {
                record(&mut recorded.lock().unwrap_or_else(PoisonError::into_inner));
                Ok(())
            }
        }
    }

    /// Launches a kernel; use [`launch!`]. Does nothing if the grid is empty.
    pub(super) fn launch(
        &self,
        kernel: Kernel,
        grid: Grid,
        arguments: &[ArgumentRef<'_>],
    ) -> Result<(), Error> {
        if grid.blocks.contains(&0) {
            return Ok(());
        }
        let launch = Launch {
            function: self.functions[kernel as usize],
            grid: grid.blocks.map(to_u32),
            n_threads: to_u32(grid.n_threads),
        };
        let run = |gpu: &dyn Gpu| {
            let mut pointers: Vec<_> = arguments.iter().map(ArgumentRef::pointer).collect();
            gpu.launch(launch, &mut pointers)
        };
        self.run_or_record(run, |commands| commands.push_launch(launch, arguments))
    }

    /// Copies within GPU memory.
    pub(super) fn copy(&self, from: u64, to: u64, n_bytes: usize) -> Result<(), Error> {
        let record =
            |commands: &mut CommandList| commands.push(Command::Copy { from, to, n_bytes });
        self.run_or_record(|gpu| gpu.copy(from, to, n_bytes), record)
    }

    /// Fills a span with zeros. Does nothing if the span is empty.
    pub(super) fn clear<T>(&self, span: Span<T>) -> Result<(), Error> {
        let (at, n_bytes) = (span.address, span.n_bytes());
        if n_bytes == 0 {
            return Ok(());
        }
        let record = |commands: &mut CommandList| commands.push(Command::Clear { at, n_bytes });
        self.run_or_record(|gpu| gpu.clear(at, n_bytes), record)
    }

    /// Computes a matrix product with cuBLASLt if it supports the product, else with the kernel in `product.cu`.
    pub(super) fn product(&self, product: &Product) -> Result<(), Error> {
        product.check();
        if product.m == 0 || product.n == 0 {
            return Ok(());
        }
        if self.gpu.has_product(product)? {
            let record = |commands: &mut CommandList| commands.push(Command::Product(*product));
            return self.run_or_record(|gpu| gpu.product(product), record);
        }
        let blocks = [product.n.div_ceil(16), product.m.div_ceil(16), product.n_batches];
        let is_f32 = product.a.values.is_f32();
        self.launch(
            if is_f32 { Kernel::PlainProduct } else { Kernel::RoundedProduct },
            Grid::new(blocks, 256),
            &[
                ArgumentRef::new(&Strided::new(&product.a)),
                ArgumentRef::new(&Strided::new(&product.b)),
                ArgumentRef::new(&product.out),
                ArgumentRef::new(&(product.out_row_stride as u64)),
                ArgumentRef::new(&(product.out_batch_stride as u64)),
                ArgumentRef::new(&product.bias),
                ArgumentRef::new(&to_u32(product.m)),
                ArgumentRef::new(&to_u32(product.n)),
                ArgumentRef::new(&to_u32(product.k)),
                ArgumentRef::new(&u32::from(product.accumulates)),
            ],
        )
    }
}

/// An operand in the form that `product.cu` takes.
#[repr(C)]
#[derive(Clone, Copy)]
struct Strided {
    data: Span<u16>,
    row: u64,
    column: u64,
    batch: u64,
}

impl Argument for Strided {}

impl Strided {
    fn new(operand: &Operand) -> Self {
        let (row, column) =
            if operand.is_transposed { (1, operand.row_stride) } else { (operand.row_stride, 1) };
        Self {
            data: operand.values.argument(),
            row: row as u64,
            column: column as u64,
            batch: operand.batch_stride as u64,
        }
    }
}

/// The dropout at one site in the model, in the form that kernels take (`Drop` in `common.cuh`).
#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct KernelDropout {
    site: u64,
    threshold: u32,
    scale: f32,
}

impl Argument for KernelDropout {}

impl KernelDropout {
    /// No dropout.
    pub(super) const NONE: Self = Self { site: 0, threshold: 0, scale: 1.0 };

    pub(super) fn new(dropout: &Dropout, layer: usize, site: Site) -> Self {
        let (site, threshold, scale) = dropout.site(layer, site);
        Self { site, threshold, scale }
    }
}
