//! An NVIDIA GPU, used through the CUDA driver.
#![expect(unsafe_code, reason = "the driver is a C library")]

use super::blas::Blas;
use super::commands::{Command, CommandList, GraphKey};
use super::downloads::{Download, Downloads};
use super::gpu::{Function, Gpu, Launch};
use super::graphs::{Graphs, MIN_DRIVER_VERSION};
use super::pinned::PinnedMemory;
use super::product::Product;
use super::program::{KernelConfig, Program};
use super::settings::{CudaSettings, GraphCounts, MemorySize, Precision};
use super::{compile, library};
use crate::error::Error;
use cudarc::driver::result::{self, DriverError};
use cudarc::driver::sys::{self, CUdevice_attribute as Attribute, CUresult};
use std::ffi::{CString, c_void};
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

/// An NVIDIA GPU with one stream.
pub(super) struct DriverGpu {
    name: String,
    device: sys::CUdevice,
    context: sys::CUcontext,
    stream: sys::CUstream,
    architecture: String,
    cache: Option<PathBuf>,
    blas: Blas,
    functions: Mutex<Vec<sys::CUfunction>>,
    budget: Mutex<MemoryBudget>,
    downloads: Mutex<Downloads<PinnedMemory>>,
    /// The CUDA graphs; `None` if every kernel is launched on its own.
    graphs: Option<Mutex<Graphs>>,
}

/// A copy of at most this many bytes to the GPU does not wait for the earlier work of the stream (CUDA C++ Programming
/// Guide, "Concurrent Execution between Host and Device").
const MAX_IMMEDIATE: usize = 1 << 16;
/// Copies of at most this many bytes are split into such copies, so that a thread can prepare a pass while the GPU computes
/// another one. The lists of a pass have fewer bytes, and weights have more.
const MAX_SPLIT: usize = 1 << 20;

/// The number of bytes allocated so far, and the limit.
struct MemoryBudget {
    used: usize,
    peak: usize,
    max: Option<usize>,
    sizes: std::collections::HashMap<u64, usize>,
}

// SAFETY: driver handles may be used from any thread on which the context is current.
unsafe impl Send for DriverGpu {}
// SAFETY: as for `Send`. Mutable state is behind locks.
unsafe impl Sync for DriverGpu {}

/// Converts the result of a driver call; see [`cuda_error`].
pub(super) fn check(what: &'static str, result: Result<(), DriverError>) -> Result<(), Error> {
    result.map_err(|error| cuda_error(what, &error))
}

/// Converts a driver error. `what` names the operation or object that the driver refused.
pub(super) fn cuda_error(what: &'static str, error: &DriverError) -> Error {
    let name = |text: Result<&std::ffi::CStr, DriverError>| {
        text.map_or_else(|_| format!("{:?}", error.0), |text| text.to_string_lossy().into_owned())
    };
    Error::Cuda { what, reason: name(error.error_string()) }
}

impl DriverGpu {
    pub(super) fn open(settings: &CudaSettings) -> Result<Self, Error> {
        library::load(&settings.roots)?;
        let refused = |error: DriverError| Error::NoCuda {
            reason: match cuda_error("", &error) {
                Error::Cuda { reason, .. } => format!("the driver reports: {reason}"),
                _ => String::new(),
            },
        };
        result::init().map_err(refused)?;
        let n_gpus = result::device::get_count().map_err(refused)?;
        let index = i32::try_from(settings.index).unwrap_or(i32::MAX);
        if index >= n_gpus {
            let reason =
                format!("GPU {index} was asked for, but {n_gpus} were found (numbers start at 0)");
            return Err(Error::NoCuda { reason });
        }
        let device = result::device::get(index).map_err(refused)?;
        let name = result::device::get_name(device).map_err(refused)?;
        // SAFETY: the device is valid. `drop` releases the context.
        let context = unsafe { result::primary_ctx::retain(device) }.map_err(refused)?;
        // SAFETY: the context was created above.
        unsafe { result::ctx::set_current(context) }.map_err(refused)?;
        let number = |attribute| {
            // SAFETY: the device is valid.
            unsafe { result::device::get_attribute(device, attribute) }.map_err(refused)
        };
        let major = number(Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)?;
        let minor = number(Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)?;
        if major < 8 && settings.precision == Precision::Bf16 {
            let reason = format!(
                "{name} does not support bf16 (compute capability {major}.{minor}, needs 8.0)"
            );
            return Err(Error::NoCuda { reason });
        }
        let stream =
            result::stream::create(result::stream::StreamKind::NonBlocking).map_err(refused)?;
        let blas = Blas::open(settings.precision)?;
        let graphs = if settings.is_eager || driver_version() < MIN_DRIVER_VERSION {
            None
        } else {
            Some(Mutex::new(Graphs::new()?))
        };
        Ok(Self {
            name,
            device,
            context,
            stream,
            architecture: format!("sm_{major}{minor}"),
            cache: settings.cache.clone(),
            blas,
            functions: Mutex::default(),
            budget: Mutex::new(MemoryBudget {
                used: 0,
                peak: 0,
                max: settings.max_bytes,
                sizes: std::collections::HashMap::new(),
            }),
            downloads: Mutex::default(),
            graphs,
        })
    }

    /// Enqueues one command of a command list on a stream. The context must be current.
    pub(super) fn enqueue(
        &self,
        stream: sys::CUstream,
        commands: &CommandList,
        command: &Command,
    ) -> Result<(), Error> {
        match command {
            Command::Launch(launch, arguments) => {
                self.launch_on(stream, *launch, &mut commands.pointers(arguments))
            }
            Command::Product(product) => self.blas.product(product, stream),
            Command::Copy { from, to, n_bytes } => copy_on(stream, *from, *to, *n_bytes),
            Command::Clear { at, n_bytes } => clear_on(stream, *at, *n_bytes),
        }
    }

    /// Returns the handle of a kernel.
    pub(super) fn function(&self, launch: Launch) -> sys::CUfunction {
        self.functions.lock().unwrap_or_else(PoisonError::into_inner)[launch.function.0]
    }

    fn launch_on(
        &self,
        stream: sys::CUstream,
        launch: Launch,
        arguments: &mut [*mut c_void],
    ) -> Result<(), Error> {
        let (grid, block) = (launch.grid.into(), (launch.n_threads, 1, 1));
        // SAFETY: the arguments have the types that the kernel takes. Tests launch every kernel to check this.
        check("a kernel launch", unsafe {
            result::launch_kernel(self.function(launch), grid, block, 0, stream, arguments)
        })
    }

    /// Makes the context current on this thread.
    fn bind(&self) -> Result<(), Error> {
        // SAFETY: the context lives as long as `self`.
        check("its context", unsafe { result::ctx::set_current(self.context) })
    }

    fn budget(&self) -> std::sync::MutexGuard<'_, MemoryBudget> {
        self.budget.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the CUDA version that the driver supports, for example 12030 for 12.3; 0 if unknown.
fn driver_version() -> i32 {
    let mut version = 0;
    // SAFETY: the pointer points to a variable of the right type.
    unsafe { sys::cuDriverGetVersion(&raw mut version) }.result().map_or(0, |()| version)
}

/// Enqueues a copy within GPU memory. The context must be current.
fn copy_on(stream: sys::CUstream, from: u64, to: u64, n_bytes: usize) -> Result<(), Error> {
    // SAFETY: the caller owns `n_bytes` bytes at both addresses.
    check("a copy within its memory", unsafe {
        result::memcpy_dtod_async(to, from, n_bytes, stream)
    })
}

/// Enqueues filling GPU memory with zeros. The context must be current.
fn clear_on(stream: sys::CUstream, at: u64, n_bytes: usize) -> Result<(), Error> {
    // SAFETY: the caller owns `n_bytes` bytes at this address.
    check("clearing memory", unsafe { result::memset_d8_async(at, 0, n_bytes, stream) })
}

impl Drop for DriverGpu {
    fn drop(&mut self) {
        if self.bind().is_ok() {
            // SAFETY: the stream is idle after `synchronize`, and nothing uses the handles afterwards.
            unsafe {
                let _ = result::stream::synchronize(self.stream);
                if let Some(graphs) = &mut self.graphs {
                    graphs.get_mut().unwrap_or_else(PoisonError::into_inner).close();
                }
                self.blas.close();
                let downloads = self.downloads.get_mut().unwrap_or_else(PoisonError::into_inner);
                downloads.drain().for_each(PinnedMemory::close);
                let _ = result::stream::destroy(self.stream);
                let _ = result::primary_ctx::release(self.device);
            }
        }
    }
}

impl Gpu for DriverGpu {
    fn name(&self) -> &str {
        &self.name
    }

    fn memory(&self) -> Result<MemorySize, Error> {
        self.bind()?;
        let found = result::mem_get_info();
        let (free, total) =
            found.map_err(|error| cuda_error("a query of its memory size", &error))?;
        let budget = self.budget();
        let left = budget.max.map_or(free, |max| max.saturating_sub(budget.used));
        Ok(MemorySize { free: free.min(left), total })
    }

    fn peak_bytes(&self) -> usize {
        self.budget().peak
    }

    fn allocate(&self, n_bytes: usize) -> Result<u64, Error> {
        let MemorySize { free, total } = self.memory()?;
        let mut budget = self.budget();
        let refused = || Err(Error::DeviceMemory { wanted: n_bytes, free, total });
        if budget.max.is_some() && n_bytes > free {
            return refused();
        }
        // SAFETY: the context is current.
        let address = match unsafe { result::malloc_sync(n_bytes) } {
            Ok(address) => address,
            Err(DriverError(CUresult::CUDA_ERROR_OUT_OF_MEMORY)) => return refused(),
            Err(error) => return Err(cuda_error("memory", &error)),
        };
        budget.used += n_bytes;
        budget.peak = budget.peak.max(budget.used);
        budget.sizes.insert(address, n_bytes);
        drop(budget);
        self.clear(address, n_bytes)?;
        Ok(address)
    }

    fn free(&self, address: u64) {
        let mut budget = self.budget();
        let n_bytes = budget.sizes.remove(&address).unwrap_or(0);
        budget.used -= n_bytes;
        if self.bind().is_ok() {
            // SAFETY: the address came from `allocate`. The driver waits for running work before it frees the memory.
            let _ = unsafe { result::free_sync(address) };
        }
    }

    fn upload(&self, bytes: &[u8], to: u64) -> Result<(), Error> {
        self.bind()?;
        let is_short = bytes.len() <= MAX_SPLIT;
        let n_part = if is_short { MAX_IMMEDIATE } else { bytes.len() };
        bytes.chunks(n_part).zip((to..).step_by(n_part)).try_for_each(|(part, to)| {
            // SAFETY: the caller owns this many bytes at `to`. The driver has read `part` when the call returns, because
            // `part` is not pinned.
            check("a copy to it", unsafe { result::memcpy_htod_async(to, part, self.stream) })
        })
    }

    fn download(&self, from: u64, out: &mut [u8]) -> Result<(), Error> {
        self.bind()?;
        // SAFETY: the caller owns this many bytes at `from`.
        unsafe {
            check("a copy from it", result::memcpy_dtoh_async(out, from, self.stream))?;
            check("the work before a copy", result::stream::synchronize(self.stream))
        }
    }

    fn begin_download(&self, from: u64, n_bytes: usize) -> Result<Download, Error> {
        self.bind()?;
        let mut downloads = self.downloads.lock().unwrap_or_else(PoisonError::into_inner);
        downloads.begin(n_bytes, PinnedMemory::new, |memory| {
            memory.begin_copy(from, n_bytes, self.stream)
        })
    }

    fn end_download(&self, download: Download, out: &mut [u8]) -> Result<(), Error> {
        self.bind()?;
        let downloads = || self.downloads.lock().unwrap_or_else(PoisonError::into_inner);
        assert_eq!(out.len(), download.n_bytes, "as many bytes as `begin_download` asked for");
        // Other downloads can begin and end while this thread waits.
        let done = downloads().memory(&download).done();
        // SAFETY: the event lives as long as `self`.
        check("the work before a copy", unsafe { result::event::synchronize(done) })?;
        // No other copy gets this memory before `download` is dropped.
        out.copy_from_slice(&downloads().memory(&download).bytes()[..out.len()]);
        Ok(())
    }

    fn copy(&self, from: u64, to: u64, n_bytes: usize) -> Result<(), Error> {
        self.bind()?;
        copy_on(self.stream, from, to, n_bytes)
    }

    fn clear(&self, at: u64, n_bytes: usize) -> Result<(), Error> {
        self.bind()?;
        clear_on(self.stream, at, n_bytes)
    }

    fn load(&self, program: &Program, config: KernelConfig) -> Result<Vec<Function>, Error> {
        let image =
            compile::load_or_compile(program, config, &self.architecture, self.cache.as_deref())?;
        self.bind()?;
        // SAFETY: the image is valid output of the compiler. The module is never unloaded.
        let module = unsafe { result::module::load_data(image.as_ptr().cast::<c_void>()) }
            .map_err(|error| cuda_error("the compiled kernels", &error))?;
        let mut functions = self.functions.lock().unwrap_or_else(PoisonError::into_inner);
        program
            .kernels
            .iter()
            .map(|kernel| {
                let name = CString::new(kernel.name()).expect("names have no zeros");
                // SAFETY: the module was loaded above.
                let function = unsafe { result::module::get_function(module, name) }
                    .map_err(|error| cuda_error("the lookup of a kernel", &error))?;
                functions.push(function);
                Ok(Function(functions.len() - 1))
            })
            .collect()
    }

    fn launch(&self, launch: Launch, arguments: &mut [*mut c_void]) -> Result<(), Error> {
        self.bind()?;
        self.launch_on(self.stream, launch, arguments)
    }

    fn has_product(&self, product: &Product) -> Result<bool, Error> {
        self.bind()?;
        self.blas.has(product)
    }

    fn product(&self, product: &Product) -> Result<(), Error> {
        self.bind()?;
        self.blas.product(product, self.stream)
    }

    fn submit(&self, key: GraphKey, commands: CommandList) -> Result<(), Error> {
        let Some(graphs) = &self.graphs else { return commands.run(self) };
        self.bind()?;
        let mut graphs = graphs.lock().unwrap_or_else(PoisonError::into_inner);
        // SAFETY: the context is current, and the stream belongs to it.
        unsafe { graphs.submit(self.stream, key, commands, self) }
    }

    fn graph_counts(&self) -> GraphCounts {
        let counts =
            |graphs: &Mutex<Graphs>| graphs.lock().unwrap_or_else(PoisonError::into_inner).counts;
        self.graphs.as_ref().map_or_else(GraphCounts::default, counts)
    }
}
