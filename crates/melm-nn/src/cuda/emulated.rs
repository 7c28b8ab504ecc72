//! A card in the imagination: kernels compiled for the processor, products by the definition.
#![expect(unsafe_code, reason = "it calls into a library that it just made")]
#![expect(clippy::cast_possible_truncation, reason = "addresses of this machine")]

use super::driver::CudaSettings;
use super::graphs::GraphCounts;
use super::machine::{Factor, Function, Launch, Machine, Product};
use super::program::{Precision, Program, Shape};
use super::script::{Bucket, Script};
use crate::error::Error;
use std::collections::{BTreeMap, HashMap};
use std::ffi::c_void;
use std::fmt::Write as _;
use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

/// What `EMULATE` makes of a kernel.
type Run = unsafe extern "C" fn(*const u32, u32, *mut *mut c_void);

/// Memory, a compiler and a processor.
pub(super) struct Emulator {
    precision: Precision,
    most_bytes: usize,
    is_eager: bool,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// Allocations by address, in units that align them for anything.
    blocks: HashMap<u64, Vec<u128>>,
    /// The most bytes that they took at once.
    peak: usize,
    functions: Vec<Run>,
    begun: Vec<u8>,
    scripts: HashMap<Bucket, Script>,
    counts: GraphCounts,
}

/// What was compiled in this process. Held while a kernel runs: a library's threads share their places.
static COMPILED: Mutex<BTreeMap<String, Vec<Run>>> = Mutex::new(BTreeMap::new());

const UNIT: usize = size_of::<u128>();

impl Emulator {
    pub(super) fn new(settings: &CudaSettings) -> Self {
        Self {
            precision: settings.precision,
            most_bytes: settings.most_bytes.unwrap_or(1 << 32),
            is_eager: settings.is_eager,
            state: Mutex::default(),
        }
    }

    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn used(state: &State) -> usize {
        state.blocks.values().map(|block| block.len() * UNIT).sum()
    }

    /// A factor of one of a product's batches, row by row.
    fn factor(&self, factor: &Factor, batch: usize, (rows, columns): (usize, usize)) -> Vec<f32> {
        let (of_row, of_column) =
            if factor.is_transposed { (1, factor.row) } else { (factor.row, 1) };
        let element = |row: usize, column: usize| {
            let at = batch * factor.batch + row * of_row + column * of_column;
            assert!(at < factor.numbers.len, "a product leaves its factor");
            let address = factor.numbers.address as usize + at * factor.numbers.size;
            // SAFETY: within the numbers, which are an allocation of ours.
            let bits = unsafe {
                match factor.numbers.size {
                    2 => u32::from(std::ptr::read(address as *const u16)) << 16,
                    _ => std::ptr::read(address as *const u32),
                }
            };
            match self.precision {
                Precision::F32 => f32::from_bits(bits),
                // tf32 in the worst case: the bits that it has no room for are cut off.
                Precision::Bf16 => f32::from_bits(bits & !0x1fff),
            }
        };
        (0..rows)
            .flat_map(|row| (0..columns).map(move |column| (row, column)))
            .map(|(row, column)| element(row, column))
            .collect()
    }
}

fn compile(program: &Program, shape: Shape) -> Result<Vec<Run>, Error> {
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
        // Libraries of other shapes have shared memory of the same names and other sizes.
        .arg("-fno-gnu-unique")
        .args(shape.definitions())
        .arg(&source)
        .arg("-o")
        .arg(&library)
        .output()
        .map_err(|error| failed(format!("no C++ compiler: {error}")))?;
    if !compiled.status.success() {
        return Err(failed(String::from_utf8_lossy(&compiled.stderr).into_owned()));
    }
    // SAFETY: the library is what we just compiled; it has no start code.
    let loaded = unsafe { libloading::Library::new(&library) };
    let _ = std::fs::remove_dir_all(&dir);
    let loaded = loaded.map_err(|error| failed(error.to_string()))?;
    let runs = program.kernels.iter().map(|kernel| {
        let name = format!("run_{}", kernel.name());
        // SAFETY: `EMULATE` gave it this type.
        *unsafe { loaded.get::<Run>(name.as_bytes()) }.expect("every kernel")
    });
    let runs = runs.collect();
    std::mem::forget(loaded);
    Ok(runs)
}

impl Machine for Emulator {
    fn name(&self) -> &'static str {
        "emulated"
    }

    fn memory(&self) -> Result<(usize, usize), Error> {
        Ok((self.most_bytes - Self::used(&self.state()), self.most_bytes))
    }

    fn peak(&self) -> usize {
        self.state().peak
    }

    fn allocate(&self, n_bytes: usize) -> Result<u64, Error> {
        let mut state = self.state();
        let free = self.most_bytes.saturating_sub(Self::used(&state));
        if n_bytes > free {
            return Err(Error::DeviceMemory { wanted: n_bytes, free, total: self.most_bytes });
        }
        let mut block = vec![0_u128; n_bytes.div_ceil(UNIT)];
        let address = block.as_mut_ptr() as u64;
        state.blocks.insert(address, block);
        state.peak = state.peak.max(Self::used(&state));
        Ok(address)
    }

    fn free(&self, address: u64) {
        self.state().blocks.remove(&address);
    }

    fn upload(&self, bytes: &[u8], to: u64) -> Result<(), Error> {
        // SAFETY: callers hold as many bytes there.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), to as *mut u8, bytes.len()) };
        Ok(())
    }

    fn download(&self, from: u64, out: &mut [u8]) -> Result<(), Error> {
        if !out.is_empty() {
            // SAFETY: callers hold as many bytes there.
            unsafe {
                std::ptr::copy_nonoverlapping(from as *const u8, out.as_mut_ptr(), out.len());
            }
        }
        Ok(())
    }

    fn begin_download(&self, from: u64, n_bytes: usize) -> Result<(), Error> {
        let mut bytes = vec![0; n_bytes];
        self.download(from, &mut bytes)?;
        self.state().begun = bytes;
        Ok(())
    }

    fn end_download(&self, out: &mut [u8]) -> Result<(), Error> {
        out.copy_from_slice(&self.state().begun);
        Ok(())
    }

    fn copy(&self, from: u64, to: u64, n_bytes: usize) -> Result<(), Error> {
        // SAFETY: callers hold as many bytes at both places.
        unsafe { std::ptr::copy(from as *const u8, to as *mut u8, n_bytes) };
        Ok(())
    }

    fn clear(&self, at: u64, n_bytes: usize) -> Result<(), Error> {
        // SAFETY: callers hold as many bytes there.
        unsafe { std::ptr::write_bytes(at as *mut u8, 0, n_bytes) };
        Ok(())
    }

    fn load(&self, program: &Program, shape: Shape) -> Result<Vec<Function>, Error> {
        let name = format!("{}{:?}", program.name, shape);
        let known = COMPILED.lock().unwrap_or_else(PoisonError::into_inner).get(&name).cloned();
        let runs = match known {
            Some(runs) => runs,
            None => compile(program, shape)?,
        };
        let mut compiled = COMPILED.lock().unwrap_or_else(PoisonError::into_inner);
        let runs = compiled.entry(name).or_insert(runs);
        let mut state = self.state();
        let first = state.functions.len();
        state.functions.extend(runs.iter());
        Ok((first..state.functions.len()).map(Function).collect())
    }

    fn launch(&self, launch: Launch, arguments: &mut [*mut c_void]) -> Result<(), Error> {
        let run = self.state().functions[launch.function.0];
        let _alone = COMPILED.lock().unwrap_or_else(PoisonError::into_inner);
        // SAFETY: the arguments are what the kernel takes.
        unsafe { run(launch.grid.as_ptr(), launch.n_threads, arguments.as_mut_ptr()) };
        Ok(())
    }

    /// Odd products are left to the kernel that a card uses for them.
    fn has_product(&self, product: &Product) -> Result<bool, Error> {
        Ok((product.n * product.k).is_multiple_of(2))
    }

    /// As a card does: the script that a bucket had before, where the new one is like it, with what has changed.
    fn play(&self, bucket: Bucket, script: Script) -> Result<(), Error> {
        if self.is_eager {
            return script.run(self);
        }
        let known = self.state().scripts.remove(&bucket);
        let mut counts = self.graphs();
        let script = match known {
            Some(mut known) if script.is_like(&known) => {
                counts.n_played += 1;
                known.follow(&script);
                known
            }
            Some(_) => {
                counts.n_made += 1;
                script
            }
            None => {
                counts.n_run += 1;
                script
            }
        };
        let done = script.run(self);
        let mut state = self.state();
        state.counts = counts;
        state.scripts.insert(bucket, script);
        done
    }

    fn graphs(&self) -> GraphCounts {
        self.state().counts
    }

    fn product(&self, product: &Product) -> Result<(), Error> {
        let Product { m, n, k, .. } = *product;
        for batch in 0..product.n_batches {
            let (a, b) =
                (self.factor(&product.a, batch, (m, k)), self.factor(&product.b, batch, (k, n)));
            for i in 0..m {
                let mut sums = vec![0.0_f32; n];
                for l in 0..k {
                    let row = &b[l * n..(l + 1) * n];
                    sums.iter_mut().zip(row).for_each(|(sum, x)| *sum += a[i * k + l] * x);
                }
                let start = batch * product.out_batch + i * product.out_row;
                assert!(start + n <= product.out.len(), "a product leaves its place");
                for (j, sum) in sums.into_iter().enumerate() {
                    // SAFETY: within the output, and the bias is as long as a row.
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
