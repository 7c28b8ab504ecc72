//! An NVIDIA card, through its driver.
#![expect(unsafe_code, reason = "the driver is a C library")]

use super::blas::Blas;
use super::graphs::{FIRST_DRIVER, GraphCounts, Graphs};
use super::machine::{Function, Launch, Machine, Product};
use super::program::{Precision, Program, Shape};
use super::script::{Bucket, Entry, Script};
use super::{compile, library};
use crate::error::Error;
use cudarc::driver::result::{self, DriverError};
use cudarc::driver::sys::{self, CUdevice_attribute as Attribute, CUresult};
use std::ffi::{CString, c_void};
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

/// How a card is opened.
#[derive(Clone, Debug, Default)]
pub struct CudaSettings {
    /// The card's number.
    pub index: u32,
    /// What products are computed in.
    pub precision: Precision,
    /// Threads of the processor beside it, where models that have no kernels are computed; all cores if `None`.
    pub n_threads: Option<NonZeroUsize>,
    /// Where compiled kernels are kept; nowhere if `None`.
    pub cache: Option<PathBuf>,
    /// Folders to look for CUDA's libraries in, beyond the usual ones: environments of Python, toolkits.
    pub roots: Vec<PathBuf>,
    /// Whether kernels check every access to memory: slow, for tests.
    pub is_checked: bool,
    /// Whether every kernel is asked for by itself, instead of many in one call: for tests and benches.
    pub is_eager: bool,
    /// Bytes that may be used, for tests of what happens without more.
    pub most_bytes: Option<usize>,
}

/// A card with a stream of work.
pub(super) struct Card {
    name: String,
    device: sys::CUdevice,
    context: sys::CUcontext,
    stream: sys::CUstream,
    architecture: String,
    cache: Option<PathBuf>,
    blas: Blas,
    functions: Mutex<Vec<sys::CUfunction>>,
    budget: Mutex<Budget>,
    /// Memory of the processor that the card can write to, and when it has.
    pinned: Mutex<Pinned>,
    copied: sys::CUevent,
    /// None where every kernel is asked for by itself.
    graphs: Option<Mutex<Graphs>>,
}

struct Pinned {
    at: *mut c_void,
    n_bytes: usize,
}

impl Pinned {
    fn reserve(&mut self, n_bytes: usize) -> Result<(), Error> {
        if self.n_bytes < n_bytes {
            self.give_back();
            // SAFETY: a context is current.
            self.at = unsafe { result::malloc_host(n_bytes, 0) }
                .map_err(|error| failure("pinned memory", &error))?;
            self.n_bytes = n_bytes;
        }
        Ok(())
    }

    fn give_back(&mut self) {
        if self.n_bytes > 0 {
            // SAFETY: from `reserve`, and no copy is under way.
            let _ = unsafe { result::free_host(self.at) };
            self.n_bytes = 0;
        }
    }
}

/// Bytes in use, of those that may be.
struct Budget {
    used: usize,
    peak: usize,
    most: Option<usize>,
    sizes: std::collections::HashMap<u64, usize>,
}

// SAFETY: handles of the driver may be used from any thread, as long as its context is made current there.
unsafe impl Send for Card {}
// SAFETY: as above; what changes is behind a lock.
unsafe impl Sync for Card {}

pub(super) fn check(what: &'static str, result: Result<(), DriverError>) -> Result<(), Error> {
    result.map_err(|error| failure(what, &error))
}

pub(super) fn failure(what: &'static str, error: &DriverError) -> Error {
    let name = |text: Result<&std::ffi::CStr, DriverError>| {
        text.map_or_else(|_| format!("{:?}", error.0), |text| text.to_string_lossy().into_owned())
    };
    Error::Cuda { what, reason: name(error.error_string()) }
}

impl Card {
    pub(super) fn open(settings: &CudaSettings) -> Result<Self, Error> {
        library::load(&settings.roots)?;
        let refused = |error: DriverError| Error::NoCuda {
            reason: match failure("", &error) {
                Error::Cuda { reason, .. } => format!("the driver says: {reason}"),
                _ => String::new(),
            },
        };
        result::init().map_err(refused)?;
        let n_cards = result::device::get_count().map_err(refused)?;
        let index = i32::try_from(settings.index).unwrap_or(i32::MAX);
        if index >= n_cards {
            let reason = format!("card {index} was asked for, and there are {n_cards}");
            return Err(Error::NoCuda { reason });
        }
        let device = result::device::get(index).map_err(refused)?;
        let name = result::device::get_name(device).map_err(refused)?;
        // SAFETY: the device is valid; the context is released on drop.
        let context = unsafe { result::primary_ctx::retain(device) }.map_err(refused)?;
        // SAFETY: the context was just made.
        unsafe { result::ctx::set_current(context) }.map_err(refused)?;
        let number = |attribute| {
            // SAFETY: the device is valid.
            unsafe { result::device::get_attribute(device, attribute) }.map_err(refused)
        };
        let major = number(Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)?;
        let minor = number(Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)?;
        if major < 8 && settings.precision == Precision::Bf16 {
            let reason =
                format!("{name} has no bf16 (compute capability {major}.{minor}, 8.0 needed)");
            return Err(Error::NoCuda { reason });
        }
        let stream =
            result::stream::create(result::stream::StreamKind::NonBlocking).map_err(refused)?;
        let blas = Blas::open(settings.precision)?;
        let copied =
            result::event::create(sys::CUevent_flags::CU_EVENT_DISABLE_TIMING).map_err(refused)?;
        let graphs = if settings.is_eager || driver_version() < FIRST_DRIVER {
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
            budget: Mutex::new(Budget {
                used: 0,
                peak: 0,
                most: settings.most_bytes,
                sizes: std::collections::HashMap::new(),
            }),
            pinned: Mutex::new(Pinned { at: std::ptr::null_mut(), n_bytes: 0 }),
            copied,
            graphs,
        })
    }

    /// Asks a stream for an entry of a script.
    fn ask(&self, on: sys::CUstream, script: &Script, entry: &Entry) -> Result<(), Error> {
        match entry {
            Entry::Launch(launch, values) => {
                self.launch_on(on, *launch, &mut script.pointers(values))
            }
            Entry::Product(product) => self.blas.product(product, on),
            Entry::Copy { from, to, n_bytes } => copy_on(on, (*from, *to), *n_bytes),
            Entry::Clear { at, n_bytes } => clear_on(on, *at, *n_bytes),
        }
    }

    fn function(&self, launch: Launch) -> sys::CUfunction {
        self.functions.lock().unwrap_or_else(PoisonError::into_inner)[launch.function.0]
    }

    fn launch_on(
        &self,
        on: sys::CUstream,
        launch: Launch,
        arguments: &mut [*mut c_void],
    ) -> Result<(), Error> {
        let (grid, block) = (launch.grid.into(), (launch.n_threads, 1, 1));
        // SAFETY: the arguments are what the kernel takes, which the tests of every kernel show.
        check("a kernel", unsafe {
            result::launch_kernel(self.function(launch), grid, block, 0, on, arguments)
        })
    }

    fn bind(&self) -> Result<(), Error> {
        // SAFETY: the context lives as long as the card.
        check("its context", unsafe { result::ctx::set_current(self.context) })
    }

    fn budget(&self) -> std::sync::MutexGuard<'_, Budget> {
        self.budget.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The version of CUDA that the driver is made for, as in 12030 for 12.3.
fn driver_version() -> i32 {
    let mut version = 0;
    // SAFETY: there is a place for the answer.
    unsafe { sys::cuDriverGetVersion(&raw mut version) }.result().map_or(0, |()| version)
}

/// The context is current.
fn copy_on(on: sys::CUstream, (from, to): (u64, u64), n_bytes: usize) -> Result<(), Error> {
    // SAFETY: callers hold as many bytes at both places.
    check("a copy within it", unsafe { result::memcpy_dtod_async(to, from, n_bytes, on) })
}

/// The context is current.
fn clear_on(on: sys::CUstream, at: u64, n_bytes: usize) -> Result<(), Error> {
    // SAFETY: callers hold as many bytes there.
    check("zeros", unsafe { result::memset_d8_async(at, 0, n_bytes, on) })
}

impl Drop for Card {
    fn drop(&mut self) {
        if self.bind().is_ok() {
            // SAFETY: nothing uses stream or context after this.
            unsafe {
                let _ = result::stream::synchronize(self.stream);
                if let Some(graphs) = &mut self.graphs {
                    graphs.get_mut().unwrap_or_else(PoisonError::into_inner).close();
                }
                self.blas.close();
                self.pinned.get_mut().unwrap_or_else(PoisonError::into_inner).give_back();
                let _ = result::event::destroy(self.copied);
                let _ = result::stream::destroy(self.stream);
                let _ = result::primary_ctx::release(self.device);
            }
        }
    }
}

impl Machine for Card {
    fn name(&self) -> &str {
        &self.name
    }

    fn memory(&self) -> Result<(usize, usize), Error> {
        self.bind()?;
        let found = result::mem_get_info();
        let (free, total) = found.map_err(|error| failure("its memory's size", &error))?;
        let budget = self.budget();
        let left = budget.most.map_or(free, |most| most.saturating_sub(budget.used));
        Ok((free.min(left), total))
    }

    fn peak(&self) -> usize {
        self.budget().peak
    }

    fn allocate(&self, n_bytes: usize) -> Result<u64, Error> {
        let (free, total) = self.memory()?;
        let mut budget = self.budget();
        let refused = || Err(Error::DeviceMemory { wanted: n_bytes, free, total });
        if budget.most.is_some() && n_bytes > free {
            return refused();
        }
        // SAFETY: the context is current.
        let address = match unsafe { result::malloc_sync(n_bytes) } {
            Ok(address) => address,
            Err(DriverError(CUresult::CUDA_ERROR_OUT_OF_MEMORY)) => return refused(),
            Err(error) => return Err(failure("memory", &error)),
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
            // SAFETY: the address came from `allocate`, and freeing waits for what is under way.
            let _ = unsafe { result::free_sync(address) };
        }
    }

    fn upload(&self, bytes: &[u8], to: u64) -> Result<(), Error> {
        self.bind()?;
        // SAFETY: callers hold as many bytes there; from memory that is not pinned the driver copies before it returns.
        check("a copy to it", unsafe { result::memcpy_htod_async(to, bytes, self.stream) })
    }

    fn download(&self, from: u64, out: &mut [u8]) -> Result<(), Error> {
        self.bind()?;
        // SAFETY: callers hold as many bytes there.
        unsafe {
            check("a copy from it", result::memcpy_dtoh_async(out, from, self.stream))?;
            check("the work before a copy", result::stream::synchronize(self.stream))
        }
    }

    fn begin_download(&self, from: u64, n_bytes: usize) -> Result<(), Error> {
        self.bind()?;
        let mut pinned = self.pinned.lock().unwrap_or_else(PoisonError::into_inner);
        pinned.reserve(n_bytes)?;
        // SAFETY: callers hold as many bytes there; the pinned ones are not read before the event.
        unsafe {
            let out = std::slice::from_raw_parts_mut(pinned.at.cast::<u8>(), n_bytes);
            check("a copy from it", result::memcpy_dtoh_async(out, from, self.stream))?;
            check("an event", result::event::record(self.copied, self.stream))
        }
    }

    fn end_download(&self, out: &mut [u8]) -> Result<(), Error> {
        self.bind()?;
        let pinned = self.pinned.lock().unwrap_or_else(PoisonError::into_inner);
        assert!(out.len() <= pinned.n_bytes, "no more than was begun");
        // SAFETY: the copy is done after the event, and nothing writes there until the next one begins.
        unsafe {
            check("the work before a copy", result::event::synchronize(self.copied))?;
            out.copy_from_slice(std::slice::from_raw_parts(pinned.at.cast::<u8>(), out.len()));
        }
        Ok(())
    }

    fn copy(&self, from: u64, to: u64, n_bytes: usize) -> Result<(), Error> {
        self.bind()?;
        copy_on(self.stream, (from, to), n_bytes)
    }

    fn clear(&self, at: u64, n_bytes: usize) -> Result<(), Error> {
        self.bind()?;
        clear_on(self.stream, at, n_bytes)
    }

    fn load(&self, program: &Program, shape: Shape) -> Result<Vec<Function>, Error> {
        let image = compile::image(program, shape, &self.architecture, self.cache.as_deref())?;
        self.bind()?;
        // SAFETY: the image is what the compiler made; it is never unloaded.
        let module = unsafe { result::module::load_data(image.as_ptr().cast::<c_void>()) }
            .map_err(|error| failure("its kernels", &error))?;
        let mut functions = self.functions.lock().unwrap_or_else(PoisonError::into_inner);
        program
            .kernels
            .iter()
            .map(|kernel| {
                let name = CString::new(kernel.name()).expect("names have no zeros");
                // SAFETY: the module was just loaded.
                let function = unsafe { result::module::get_function(module, name) }
                    .map_err(|error| failure("a kernel by its name", &error))?;
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

    fn play(&self, bucket: Bucket, script: Script) -> Result<(), Error> {
        let Some(graphs) = &self.graphs else { return script.run(self) };
        self.bind()?;
        let mut graphs = graphs.lock().unwrap_or_else(PoisonError::into_inner);
        let ask = |on, script: &Script, entry: &Entry| self.ask(on, script, entry);
        // SAFETY: the context is current, and asked is what the script says.
        unsafe {
            graphs.play(self.stream, (bucket, script), (&ask, &|launch| self.function(launch)))
        }
    }

    fn graphs(&self) -> GraphCounts {
        let counts =
            |graphs: &Mutex<Graphs>| graphs.lock().unwrap_or_else(PoisonError::into_inner).counts;
        self.graphs.as_ref().map_or_else(GraphCounts::default, counts)
    }
}
