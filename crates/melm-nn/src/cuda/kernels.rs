//! Launching: kernels by name, arguments by type, products with a way out.

use super::machine::{Function, Launch, Machine, Product, Span};
use super::n32;
use super::program::{Kernel, PROGRAMS, Shape};
use super::script::{Bucket, Entry, Script, Value};
use crate::dropout::{Dropout, Site};
use crate::error::Error;
use std::sync::{Arc, Mutex, PoisonError};

/// The kernels of one shape of model, and the products between them.
pub(crate) struct Kernels {
    machine: Arc<dyn Machine>,
    functions: [Function; Kernel::COUNT],
    /// What they were asked for, where it is written down first.
    script: Option<Mutex<Script>>,
}

/// Something that a kernel takes by value, laid out as in C and without padding.
pub(super) trait Argument: Copy {}

impl Argument for u32 {}
impl Argument for u64 {}
impl Argument for f32 {}
impl<T> Argument for Span<T> {}

/// Runs a kernel: `launch!(kernels, Name, (grid, threads), arguments in the kernel's order)`.
macro_rules! launch {
    ($kernels:expr, $kernel:ident, $over:expr, $($argument:expr),+ $(,)?) => {
        $kernels.launch(
            $crate::cuda::program::Kernel::$kernel,
            $over,
            &[$($crate::cuda::script::Value::of(&$argument)),+],
        )?
    };
}
pub(super) use launch;

impl Kernels {
    /// Compiles every program, side by side.
    pub(super) fn load(machine: &Arc<dyn Machine>, shape: Shape) -> Result<Self, Error> {
        let loaded: Vec<_> = std::thread::scope(|scope| {
            let threads: Vec<_> = PROGRAMS
                .iter()
                .map(|program| scope.spawn(move || machine.load(program, shape)))
                .collect();
            threads.into_iter().map(|thread| thread.join().expect("no panic")).collect()
        });
        let mut functions = [Function(0); Kernel::COUNT];
        for (program, loaded) in PROGRAMS.iter().zip(loaded) {
            for (kernel, function) in program.kernels.iter().zip(loaded?) {
                functions[*kernel as usize] = function;
            }
        }
        Ok(Self { machine: Arc::clone(machine), functions, script: None })
    }

    pub(super) fn machine(&self) -> &Arc<dyn Machine> {
        &self.machine
    }

    /// The same kernels, which only write down what they are asked for until [`Self::play`].
    pub(super) fn written(&self) -> Self {
        let script = Some(Mutex::default());
        Self { machine: Arc::clone(&self.machine), functions: self.functions, script }
    }

    /// Runs what was written down since the last time.
    pub(super) fn play(&self, bucket: Bucket) -> Result<(), Error> {
        let script = self.script.as_ref().expect("kernels of `written`");
        let script = std::mem::take(&mut *script.lock().unwrap_or_else(PoisonError::into_inner));
        self.machine.play(bucket, script)
    }

    /// Asks the machine now, or writes down.
    fn ask(
        &self,
        now: impl FnOnce(&dyn Machine) -> Result<(), Error>,
        later: impl FnOnce(&mut Script),
    ) -> Result<(), Error> {
        match &self.script {
            None => now(&*self.machine),
            Some(script) => {
                later(&mut script.lock().unwrap_or_else(PoisonError::into_inner));
                Ok(())
            }
        }
    }

    pub(super) fn launch(
        &self,
        kernel: Kernel,
        (grid, n_threads): ([usize; 3], usize),
        values: &[Value<'_>],
    ) -> Result<(), Error> {
        if grid.contains(&0) {
            return Ok(());
        }
        let function = self.functions[kernel as usize];
        let launch = Launch { function, grid: grid.map(n32), n_threads: n32(n_threads) };
        let now = |machine: &dyn Machine| {
            let mut arguments: Vec<_> = values.iter().map(Value::pointer).collect();
            machine.launch(launch, &mut arguments)
        };
        self.ask(now, |script| script.push_launch(launch, values))
    }

    /// Copies within the machine.
    pub(super) fn copy(&self, from: u64, to: u64, n_bytes: usize) -> Result<(), Error> {
        let later = |script: &mut Script| script.push(Entry::Copy { from, to, n_bytes });
        self.ask(|machine| machine.copy(from, to, n_bytes), later)
    }

    /// Zeros.
    pub(super) fn clear<T>(&self, span: Span<T>) -> Result<(), Error> {
        let (at, n_bytes) = (span.address, span.n_bytes());
        let later = |script: &mut Script| script.push(Entry::Clear { at, n_bytes });
        self.ask(|machine| machine.clear(at, n_bytes), later)
    }

    /// A product, by our own kernel where the machine has none.
    pub(super) fn product(&self, product: &Product) -> Result<(), Error> {
        check(product);
        if product.m == 0 || product.n == 0 {
            return Ok(());
        }
        if self.machine.has_product(product)? {
            let later = |script: &mut Script| script.push(Entry::Product(*product));
            return self.ask(|machine| machine.product(product), later);
        }
        let strided = |factor: &super::machine::Factor| {
            let (row, column) =
                if factor.is_transposed { (1, factor.row) } else { (factor.row, 1) };
            Strided {
                data: factor.numbers.span(),
                row: row as u64,
                column: column as u64,
                batch: factor.batch as u64,
            }
        };
        let grid = [product.n.div_ceil(16), product.m.div_ceil(16), product.n_batches];
        let is_plain = product.a.numbers.size == size_of::<f32>();
        let kernel = if is_plain { Kernel::PlainProduct } else { Kernel::RoundedProduct };
        self.launch(
            kernel,
            (grid, 256),
            &[
                Value::of(&strided(&product.a)),
                Value::of(&strided(&product.b)),
                Value::of(&product.out),
                Value::of(&(product.out_row as u64)),
                Value::of(&(product.out_batch as u64)),
                Value::of(&product.bias),
                Value::of(&n32(product.m)),
                Value::of(&n32(product.n)),
                Value::of(&n32(product.k)),
                Value::of(&u32::from(product.accumulates)),
            ],
        )
    }
}

/// That a product's factors are of one type, and that it stays within them.
fn check(product: &Product) {
    let Product { m, n, k, a, b, n_batches, .. } = *product;
    assert_eq!(a.numbers.size, b.numbers.size, "factors of one type");
    let end = |rows: usize, columns: usize, row: usize, batch: usize| match (rows, columns) {
        (0, _) | (_, 0) => 0,
        _ => (n_batches - 1) * batch + (rows - 1) * row + columns,
    };
    let factor = |factor: &super::machine::Factor, rows: usize, columns: usize| {
        let (rows, columns) = if factor.is_transposed { (columns, rows) } else { (rows, columns) };
        end(rows, columns, factor.row, factor.batch) <= factor.numbers.len
    };
    let out = end(m, n, product.out_row, product.out_batch) <= product.out.len();
    assert!(factor(&a, m, k) && factor(&b, k, n) && out, "{product:?} leaves its numbers");
}

#[repr(C)]
#[derive(Clone, Copy)]
struct Strided {
    data: Span<u16>,
    row: u64,
    column: u64,
    batch: u64,
}

impl Argument for Strided {}

/// The dropout of one site, as kernels take it.
#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct Drop {
    site: u64,
    threshold: u32,
    scale: f32,
}

impl Argument for Drop {}

impl Drop {
    pub(super) const NONE: Self = Self { site: 0, threshold: 0, scale: 1.0 };

    pub(super) fn at(dropout: &Dropout, layer: usize, site: Site) -> Self {
        let (site, threshold, scale) = dropout.site(layer, site);
        Self { site, threshold, scale }
    }
}
