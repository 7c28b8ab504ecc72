//! What the code for cards asks of a machine: memory, kernels, products. A card answers, or a stand-in for tests.

use super::graphs::GraphCounts;
use super::program::{Program, Shape};
use super::script::{Bucket, Script};
use crate::error::Error;
use std::ffi::c_void;
use std::marker::PhantomData;
use std::ops::Range;

/// A kernel that a machine has loaded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Function(pub(super) usize);

/// A kernel over a grid of blocks of threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Launch {
    pub(super) function: Function,
    pub(super) grid: [u32; 3],
    pub(super) n_threads: u32,
}

/// A card, or what stands for one.
pub(super) trait Machine: Send + Sync {
    /// Its name and what is in it, for people.
    fn name(&self) -> &str;

    /// Bytes that are free, and all.
    fn memory(&self) -> Result<(usize, usize), Error>;

    /// The most bytes that were allocated at once.
    fn peak(&self) -> usize;

    /// `n_bytes` of memory, zeros.
    fn allocate(&self, n_bytes: usize) -> Result<u64, Error>;

    /// Gives memory back.
    fn free(&self, address: u64);

    /// Copies to the machine.
    fn upload(&self, bytes: &[u8], to: u64) -> Result<(), Error>;

    /// Copies from the machine, once everything asked for before is done.
    fn download(&self, from: u64, out: &mut [u8]) -> Result<(), Error>;

    /// Begins to copy from the machine what is there once everything asked for before is done.
    fn begin_download(&self, from: u64, n_bytes: usize) -> Result<(), Error>;

    /// Waits for what [`Self::begin_download`] began, and not for what was asked for since.
    fn end_download(&self, out: &mut [u8]) -> Result<(), Error>;

    /// Copies within the machine.
    fn copy(&self, from: u64, to: u64, n_bytes: usize) -> Result<(), Error>;

    /// Zeros.
    fn clear(&self, at: u64, n_bytes: usize) -> Result<(), Error>;

    /// Compiles a program for a model's shape; one function for each of its kernels.
    fn load(&self, program: &Program, shape: Shape) -> Result<Vec<Function>, Error>;

    /// Runs a kernel. The arguments point to what it takes, in its order.
    fn launch(&self, launch: Launch, arguments: &mut [*mut c_void]) -> Result<(), Error>;

    /// Whether the machine has a product of this shape.
    fn has_product(&self, product: &Product) -> Result<bool, Error>;

    /// A matrix product that it has.
    fn product(&self, product: &Product) -> Result<(), Error>;

    /// Runs a script, at once where the machine can.
    fn play(&self, bucket: Bucket, script: Script) -> Result<(), Error>;

    /// How often scripts were run at once.
    fn graphs(&self) -> GraphCounts;
}

/// Numbers on the machine, as kernels take them.
#[repr(C)]
#[derive(Debug, PartialEq)]
pub(super) struct Span<T> {
    pub(super) address: u64,
    pub(super) len: u64,
    of: PhantomData<T>,
}

impl<T> Clone for Span<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Span<T> {}

impl<T> Default for Span<T> {
    fn default() -> Self {
        Self::new(0, 0)
    }
}

impl<T> Span<T> {
    pub(super) fn new(address: u64, len: usize) -> Self {
        Self { address, len: len as u64, of: PhantomData }
    }

    pub(super) fn len(&self) -> usize {
        usize::try_from(self.len).expect("a length of this machine")
    }

    pub(super) fn n_bytes(&self) -> usize {
        self.len() * size_of::<T>()
    }

    /// Some of the numbers.
    pub(super) fn part(&self, range: Range<usize>) -> Self {
        assert!(range.start <= range.end && range.end <= self.len(), "{range:?} of {}", self.len);
        Self::new(self.address + (range.start * size_of::<T>()) as u64, range.len())
    }

    /// The first numbers.
    pub(super) fn first(&self, len: usize) -> Self {
        self.part(0..len)
    }
}

/// A matrix of numbers that products read, both of a product in one type.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Factor {
    pub(super) numbers: Numbers,
    /// From one row to the next.
    pub(super) row: usize,
    /// Whether the product wants it the other way round.
    pub(super) is_transposed: bool,
    /// From one product of a batch to the next.
    pub(super) batch: usize,
}

impl Factor {
    pub(super) fn of(numbers: Numbers, row: usize) -> Self {
        Self { numbers, row, is_transposed: false, batch: 0 }
    }

    pub(super) fn transposed(self) -> Self {
        Self { is_transposed: true, ..self }
    }

    pub(super) fn every(self, batch: usize) -> Self {
        Self { batch, ..self }
    }
}

/// Numbers in bf16 or f32, by their size; a machine opened for bf16 reads f32 with tf32's eleven bits.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Numbers {
    pub(super) address: u64,
    pub(super) len: usize,
    pub(super) size: usize,
}

impl Numbers {
    /// Numbers as they are.
    pub(super) fn plain(span: Span<f32>) -> Self {
        Self { address: span.address, len: span.len(), size: size_of::<f32>() }
    }

    pub(super) fn part(&self, range: Range<usize>) -> Self {
        assert!(range.start <= range.end && range.end <= self.len, "{range:?} of {}", self.len);
        let address = self.address + (range.start * self.size) as u64;
        Self { address, len: range.len(), size: self.size }
    }

    pub(super) fn n_bytes(&self) -> usize {
        self.len * self.size
    }

    /// As kernels take the type of products.
    pub(super) fn span(&self) -> Span<u16> {
        Span::new(self.address, self.len)
    }
}

/// `out[m, n] (+)= a[m, k] b[k, n] + bias[n]`, `n_batches` times.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Product {
    pub(super) m: usize,
    pub(super) n: usize,
    pub(super) k: usize,
    pub(super) a: Factor,
    pub(super) b: Factor,
    pub(super) out: Span<f32>,
    pub(super) out_row: usize,
    pub(super) out_batch: usize,
    pub(super) accumulates: bool,
    pub(super) bias: Span<f32>,
    pub(super) n_batches: usize,
}
