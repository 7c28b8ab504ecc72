//! An emulated GPU, which runs the kernels compiled for the CPU. Matrix products are computed by three nested loops.
#![expect(unsafe_code, reason = "it calls into a library that it just compiled")]
#![expect(clippy::cast_possible_truncation, reason = "addresses of this machine")]

use super::commands::{CommandList, GraphKey};
use super::downloads::{Download, Downloads};
use super::gpu::{Function, Gpu, Launch};
use super::product::{MIN_TF32_TERMS, Operand, Product};
use super::program::{KernelConfig, Program};
use super::settings::{CudaSettings, GraphCounts, MemorySize, Precision};
use crate::error::Error;
use std::collections::{BTreeMap, HashMap};
use std::ffi::c_void;
use std::fmt::Write as _;
use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

/// The C function that the macro `EMULATE` defines for a kernel.
type Run = unsafe extern "C" fn(*const u32, u32, *mut *mut c_void);

/// A GPU whose memory is CPU memory.
pub(super) struct EmulatedGpu {
    precision: Precision,
    max_bytes: usize,
    is_eager: bool,
    /// The number of uploads after which every call fails, as on a GPU that was reset or fell off the bus.
    n_uploads: Option<usize>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// The allocated blocks by address. `u128` ensures their alignment.
    blocks: HashMap<u64, Vec<u128>>,
    /// The highest number of bytes that were allocated at the same time.
    peak_bytes: usize,
    functions: Vec<Run>,
    /// The number of uploads so far.
    n_uploads: usize,
    /// The bytes copied by `begin_download`.
    downloads: Downloads<Vec<u8>>,
    /// The last command list for each graph key.
    graphs: HashMap<GraphKey, CommandList>,
    counts: GraphCounts,
}

/// The kernels compiled in this process. The lock is held while a kernel runs, because the compiled library stores the
/// emulated threads in global variables.
static COMPILED: Mutex<BTreeMap<String, Vec<Run>>> = Mutex::new(BTreeMap::new());

const UNIT: usize = size_of::<u128>();

impl EmulatedGpu {
    pub(super) fn new(settings: &CudaSettings) -> Self {
        Self {
            precision: settings.precision,
            max_bytes: settings.max_bytes.unwrap_or(1 << 32),
            is_eager: settings.is_eager,
            n_uploads: None,
            state: Mutex::default(),
        }
    }

    /// Sets the number of uploads after which every call fails.
    pub(super) fn failing_after(mut self, n_uploads: usize) -> Self {
        self.n_uploads = Some(n_uploads);
        self
    }

    /// Fails if the emulated GPU is lost.
    fn check_alive(&self) -> Result<(), Error> {
        match self.n_uploads {
            Some(limit) if self.state().n_uploads > limit => {
                let reason = "the GPU is lost (emulated)".to_owned();
                Err(Error::Cuda { what: "a copy to it", reason })
            }
            _ => Ok(()),
        }
    }

    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn used(state: &State) -> usize {
        state.blocks.values().map(|block| block.len() * UNIT).sum()
    }

    /// Reads one operand of product number `batch`, row by row, with the precision of tf32 if `is_tf32` is true.
    fn read(
        operand: &Operand,
        batch: usize,
        rows: usize,
        columns: usize,
        is_tf32: bool,
    ) -> Vec<f32> {
        let Operand { values, row_stride, .. } = *operand;
        let (row_stride, column_stride) =
            if operand.is_transposed { (1, row_stride) } else { (row_stride, 1) };
        let element = |row: usize, column: usize| {
            let at = batch * operand.batch_stride + row * row_stride + column * column_stride;
            assert!(at < values.len, "a product reads beyond its operand");
            let address = values.address as usize + at * values.element_size;
            // SAFETY: the address is inside the operand, as checked above, and the operand is part of one of our
            // allocations.
            let bits = unsafe {
                match values.element_size {
                    2 => u32::from(std::ptr::read(address as *const u16)) << 16,
                    _ => std::ptr::read(address as *const u32),
                }
            };
            // tf32 rounds to the nearest, as a GPU does.
            f32::from_bits(if is_tf32 { (bits + 0x1000) & !0x1fff } else { bits })
        };
        (0..rows)
            .flat_map(|row| (0..columns).map(move |column| (row, column)))
            .map(|(row, column)| element(row, column))
            .collect()
    }
}

fn compile(program: &Program, config: KernelConfig) -> Result<Vec<Run>, Error> {
    static COUNT: AtomicUsize = AtomicUsize::new(0);
    let failed = |reason: String| Error::Cuda { what: "an emulated kernel", reason };
    let (process, count) = (std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
    let dir: PathBuf = std::env::temp_dir().join(format!("melm-emulated-{process}-{count}"));
    let (source, library) = (dir.join("kernels.cpp"), dir.join("kernels.so"));
    let mut text = program.text();
    for kernel in program.kernels {
        let _ = write!(text, "\nEMULATE({})", kernel.name());
    }
    let prepared = std::fs::create_dir_all(&dir)
        .and_then(|()| std::fs::write(&source, text + "\n"))
        .and_then(|()| std::fs::write(dir.join("emulated.h"), include_str!("kernels/emulated.h")));
    prepared.map_err(|error| failed(error.to_string()))?;
    let compiled = Command::new("c++")
        .args(["-std=c++17", "-O1", "-shared", "-fPIC", "-w", "-DEMULATED=1"])
        // Kernels compiled for other models define shared memory of the same name but a different size.
        .arg("-fno-gnu-unique")
        .args(config.definitions())
        .arg(&source)
        .arg("-o")
        .arg(&library)
        .output()
        .map_err(|error| failed(format!("no C++ compiler: {error}")))?;
    if !compiled.status.success() {
        return Err(failed(String::from_utf8_lossy(&compiled.stderr).into_owned()));
    }
    // SAFETY: the library was compiled above and has no initialisation code.
    let loaded = unsafe { libloading::Library::new(&library) };
    let _ = std::fs::remove_dir_all(&dir);
    let loaded = loaded.map_err(|error| failed(error.to_string()))?;
    let runs = program.kernels.iter().map(|kernel| {
        let name = format!("run_{}", kernel.name());
        // SAFETY: the macro `EMULATE` defines the function with this type.
        *unsafe { loaded.get::<Run>(name.as_bytes()) }.expect("every kernel")
    });
    let runs = runs.collect();
    std::mem::forget(loaded);
    Ok(runs)
}

impl Gpu for EmulatedGpu {
    fn name(&self) -> &'static str {
        "emulated"
    }

    fn memory(&self) -> Result<MemorySize, Error> {
        let free = self.max_bytes - Self::used(&self.state());
        Ok(MemorySize { free, total: self.max_bytes })
    }

    fn peak_bytes(&self) -> usize {
        self.state().peak_bytes
    }

    fn allocate(&self, n_bytes: usize) -> Result<u64, Error> {
        let mut state = self.state();
        let free = self.max_bytes.saturating_sub(Self::used(&state));
        if n_bytes > free {
            return Err(Error::DeviceMemory { wanted: n_bytes, free, total: self.max_bytes });
        }
        let mut block = vec![0_u128; n_bytes.div_ceil(UNIT)];
        let address = block.as_mut_ptr() as u64;
        state.blocks.insert(address, block);
        state.peak_bytes = state.peak_bytes.max(Self::used(&state));
        Ok(address)
    }

    fn free(&self, address: u64) {
        self.state().blocks.remove(&address);
    }

    fn upload(&self, bytes: &[u8], to: u64) -> Result<(), Error> {
        self.state().n_uploads += 1;
        self.check_alive()?;
        // SAFETY: the caller owns this many bytes at `to`.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), to as *mut u8, bytes.len()) };
        Ok(())
    }

    fn download(&self, from: u64, out: &mut [u8]) -> Result<(), Error> {
        self.check_alive()?;
        if !out.is_empty() {
            // SAFETY: the caller owns this many bytes at `from`.
            unsafe {
                std::ptr::copy_nonoverlapping(from as *const u8, out.as_mut_ptr(), out.len());
            }
        }
        Ok(())
    }

    fn begin_download(&self, from: u64, n_bytes: usize) -> Result<Download, Error> {
        let mut bytes = vec![0; n_bytes];
        self.download(from, &mut bytes)?;
        self.state().downloads.begin(
            n_bytes,
            |n_bytes| Ok(vec![0; n_bytes]),
            |memory| {
                memory[..n_bytes].copy_from_slice(&bytes);
                Ok(())
            },
        )
    }

    fn end_download(&self, download: Download, out: &mut [u8]) -> Result<(), Error> {
        out.copy_from_slice(&self.state().downloads.memory(&download)[..download.n_bytes]);
        Ok(())
    }

    fn copy(&self, from: u64, to: u64, n_bytes: usize) -> Result<(), Error> {
        // SAFETY: the caller owns `n_bytes` bytes at both addresses.
        unsafe { std::ptr::copy(from as *const u8, to as *mut u8, n_bytes) };
        Ok(())
    }

    fn clear(&self, at: u64, n_bytes: usize) -> Result<(), Error> {
        // SAFETY: the caller owns `n_bytes` bytes at this address.
        unsafe { std::ptr::write_bytes(at as *mut u8, 0, n_bytes) };
        Ok(())
    }

    fn load(&self, program: &Program, config: KernelConfig) -> Result<Vec<Function>, Error> {
        let name = format!("{}{config:?}", program.name);
        let known = COMPILED.lock().unwrap_or_else(PoisonError::into_inner).get(&name).cloned();
        let runs = match known {
            Some(runs) => runs,
            None => compile(program, config)?,
        };
        let mut compiled = COMPILED.lock().unwrap_or_else(PoisonError::into_inner);
        let runs = compiled.entry(name).or_insert(runs);
        let mut state = self.state();
        let first = state.functions.len();
        state.functions.extend(runs.iter());
        Ok((first..state.functions.len()).map(Function).collect())
    }

    fn launch(&self, launch: Launch, arguments: &mut [*mut c_void]) -> Result<(), Error> {
        self.check_alive()?;
        let run = self.state().functions[launch.function.0];
        let _alone = COMPILED.lock().unwrap_or_else(PoisonError::into_inner);
        // SAFETY: the arguments have the types that the kernel takes.
        unsafe { run(launch.grid.as_ptr(), launch.n_threads, arguments.as_mut_ptr()) };
        Ok(())
    }

    /// Returns false for products of odd size, so that tests also run the kernel that replaces cuBLASLt.
    fn has_product(&self, product: &Product) -> Result<bool, Error> {
        Ok((product.n * product.k).is_multiple_of(2))
    }

    /// Runs a command list. If a real GPU would update the graph captured for this key, updates the stored list instead
    /// and runs it.
    fn submit(&self, key: GraphKey, commands: CommandList) -> Result<(), Error> {
        if self.is_eager {
            return commands.run(self);
        }
        let known = self.state().graphs.remove(&key);
        let mut counts = self.graph_counts();
        let commands = match known {
            Some(mut known) if commands.has_structure_of(&known) => {
                counts.n_replayed += 1;
                known.update_launches(&commands);
                known
            }
            Some(_) => {
                counts.n_captured += 1;
                commands
            }
            None => {
                counts.n_eager += 1;
                commands
            }
        };
        let done = commands.run(self);
        let mut state = self.state();
        state.counts = counts;
        state.graphs.insert(key, commands);
        done
    }

    fn graph_counts(&self) -> GraphCounts {
        self.state().counts
    }

    fn product(&self, product: &Product) -> Result<(), Error> {
        let Product { m, n, k, .. } = *product;
        for batch in 0..product.n_batches {
            let is_tf32 = self.precision == Precision::Bf16 && k >= MIN_TF32_TERMS;
            let a = Self::read(&product.a, batch, m, k, is_tf32);
            let b = Self::read(&product.b, batch, k, n, is_tf32);
            for i in 0..m {
                let mut sums = vec![0.0_f32; n];
                for l in 0..k {
                    let row = &b[l * n..(l + 1) * n];
                    sums.iter_mut().zip(row).for_each(|(sum, x)| *sum += a[i * k + l] * x);
                }
                let start = batch * product.out_batch_stride + i * product.out_row_stride;
                assert!(start + n <= product.out.len(), "a product writes beyond its output");
                for (j, sum) in sums.into_iter().enumerate() {
                    // SAFETY: the address is inside the output, and the bias is as long as a row.
                    unsafe {
                        let bias = (product.bias.address as usize + 4 * j) as *const f32;
                        let sum = if product.bias.len() > 0 { sum + *bias } else { sum };
                        let out = (product.out.address as usize + 4 * (start + j)) as *mut f32;
                        *out = if product.accumulates { *out + sum } else { sum };
                    }
                }
            }
        }
        Ok(())
    }
}
