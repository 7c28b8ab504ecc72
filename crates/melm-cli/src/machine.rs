//! Opens models and devices as the options and the environment say.

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use melm::hub::{DownloadProgress, Hub, Token};
use melm::models::ModelStore;
use melm_nn::cuda::{Cuda, CudaSettings, Precision};
use melm_nn::device::{Device, n_cores};
use melm_nn::tagger::Int8Weights;
use melm_text::Limits;

use crate::args::{DeviceOption, DeviceOptions, PrecisionOption};
use crate::failure::Failure;
use crate::host;
use crate::progress::Progress;
use crate::terminal::Terminal;

/// Returns a store that opens models from the Hugging Face cache and hub, and shows the progress of downloads.
pub(crate) fn models(terminal: &Terminal) -> ModelStore {
    let terminal = *terminal;
    let progress: Mutex<Option<(String, Progress)>> = Mutex::new(None);
    // A program without the embedded model, such as the Python package, sets the variable to the folder of the model.
    let mini = std::env::var_os("MELM_MINI").filter(|value| !value.is_empty()).map(PathBuf::from);
    host::models(mini).on_download(move |model, download| {
        let mut progress = progress.lock().unwrap_or_else(PoisonError::into_inner);
        if progress.as_ref().is_none_or(|(file, _)| file != download.file) {
            let what = format!("downloading {} of {model}", download.file);
            let mut started = Progress::for_steps(&what, &terminal);
            // Bytes of an earlier run do not count for the time left.
            started.resume(download.n_bytes);
            *progress = Some((download.file.to_owned(), started));
        }
        if let Some((_, progress)) = &mut *progress {
            progress.set_note(download_note(&download));
            progress.set_step(download.n_bytes, download.n_total);
        }
        if download.problem.is_none() && download.n_bytes >= download.n_total {
            *progress = None;
        }
    })
}

/// Returns the size of a download, or why it waits.
fn download_note(download: &DownloadProgress<'_>) -> String {
    let megabytes = |n_bytes: u64| n_bytes as f64 / 1e6;
    if let Some(problem) = download.problem {
        return format!("{problem}, waiting");
    }
    let (done, total) = (megabytes(download.n_bytes), megabytes(download.n_total));
    format!("{done:.0} of {total:.0} MB")
}

/// The environment variable with the factor of the limits for files.
const LIMIT_FACTOR: &str = "MELM_LIMIT_FACTOR";

/// Returns the limits for files: the usual ones, times the factor in the environment if there is one.
pub(crate) fn limits() -> Result<Limits, Failure> {
    limits_from(std::env::var_os(LIMIT_FACTOR).as_deref())
}

fn limits_from(value: Option<&OsStr>) -> Result<Limits, Failure> {
    let Some(value) = value.filter(|value| !value.is_empty()) else { return Ok(Limits::default()) };
    let factor = value.to_str().and_then(|text| text.parse().ok()).and_then(Limits::times);
    factor.ok_or_else(|| Failure::Usage {
        message: format!(
            "the environment variable `{LIMIT_FACTOR}` is `{}`, expected a whole number from 1 to {}",
            value.display(),
            Limits::MAX_FACTOR
        ),
        hint: "unset it to use the usual limits",
    })
}

/// Returns the cache that the Python libraries of Hugging Face use, with their settings.
pub(crate) fn hub() -> Hub {
    hub_from(|name| std::env::var_os(name))
}

/// Returns the hub that the variables of the environment describe, as in Python's `huggingface_hub`.
fn hub_from(variable: impl Fn(&str) -> Option<OsString>) -> Hub {
    let value = |name: &str| variable(name).filter(|value| !value.is_empty());
    let path = |name: &str| value(name).map(PathBuf::from);
    let text = |name: &str| value(name).map(|value| value.to_string_lossy().into_owned());
    let user = path("HOME").or_else(|| path("USERPROFILE")).unwrap_or_default();
    let home = path("HF_HOME")
        .or_else(|| path("XDG_CACHE_HOME").map(|cache| cache.join("huggingface")))
        .unwrap_or_else(|| user.join(".cache/huggingface"));
    let mut hub = Hub::new(path("HF_HUB_CACHE").unwrap_or_else(|| home.join("hub")));
    hub.endpoint = text("HF_ENDPOINT");
    hub.offline = ["HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE"].iter().any(|name| {
        text(name).is_some_and(|value| {
            ["1", "on", "yes", "true"].contains(&value.to_ascii_lowercase().as_str())
        })
    });
    hub.token = text("HF_TOKEN").and_then(|token| Token::new(&token)).or_else(|| {
        let file = path("HF_TOKEN_PATH").unwrap_or_else(|| home.join("token"));
        Token::new(&std::fs::read_to_string(file).ok()?)
    });
    hub
}

/// Opens the device that the options name. Also returns a line that names the device and, if `auto` chose the CPU, says why.
///
/// Fails if the options ask for int8, which only tagging can use: see [`tagging_device`].
pub(crate) fn device(options: &DeviceOptions) -> Result<(Device, String), Failure> {
    if options.precision == PrecisionOption::Int8 {
        return Err(Failure::Usage {
            message:
                "`--precision int8` is for `melm tag`: everything else computes in f32 on the CPU"
                    .into(),
            hint: "leave it out",
        });
    }
    check_threads(options)?;
    open(options)
}

/// The highest number of threads: more than any machine has cores.
const MAX_THREADS: usize = 1024;

/// Fails if there are too many threads. Each has a stack and buffers.
fn check_threads(options: &DeviceOptions) -> Result<(), Failure> {
    match options.threads.map(usize::from) {
        Some(n) if n > MAX_THREADS => Err(Failure::Usage {
            message: format!("{n} threads are above the limit of {MAX_THREADS}"),
            hint: "leave out the number of threads to use all cores",
        }),
        _ => Ok(()),
    }
}

/// A device for tagging.
pub(crate) struct TaggingDevice {
    pub(crate) device: Device,
    /// A line that names the device and the precision.
    pub(crate) description: String,
    /// True if the weights are to be quantized to 8 bits.
    pub(crate) is_int8: bool,
}

/// Like [`device`], for tagging, which can also use 8-bit weights on the CPU.
pub(crate) fn tagging_device(options: &DeviceOptions) -> Result<TaggingDevice, Failure> {
    check_threads(options)?;
    let wants_int8 = options.precision == PrecisionOption::Int8;
    let (device, mut description) = match options.device {
        DeviceOption::Auto if wants_int8 => cpu(options, None),
        DeviceOption::Cuda(_) if wants_int8 => {
            return Err(Failure::Usage {
                message: "`--precision int8` needs the CPU".into(),
                hint: "pass `--device cpu`, or leave the precision out",
            });
        }
        _ => open(options)?,
    };
    if let (Device::Cpu(cpu), true) = (&device, wants_int8) {
        description += if Int8Weights::are_fast(cpu.isa()) {
            ", int8"
        } else {
            ", int8 (slow: the CPU has no AVX-512 VNNI)"
        };
    }
    Ok(TaggingDevice { device, description, is_int8: wants_int8 })
}

fn open(options: &DeviceOptions) -> Result<(Device, String), Failure> {
    let index = match options.device {
        DeviceOption::Cpu => return Ok(cpu(options, None)),
        DeviceOption::Auto => 0,
        DeviceOption::Cuda(index) => index,
    };
    match Cuda::open(&cuda_settings(index, options)) {
        Ok(cuda) => {
            let device = Device::from(cuda);
            let description = device.to_string();
            Ok((device, description))
        }
        Err(error) => without_gpu(options, error),
    }
}

/// Returns the CPU in place of a GPU that cannot be opened. Fails if the options ask for a GPU.
fn without_gpu(
    options: &DeviceOptions,
    error: melm_nn::Error,
) -> Result<(Device, String), Failure> {
    match error {
        error if options.device != DeviceOption::Auto => Err(melm::Error::from(error).into()),
        melm_nn::Error::NoCuda { reason } => Ok(cpu(options, Some(&reason))),
        // For example, driver and libraries do not match, or the GPU has no free memory.
        error => Ok(cpu(options, Some(&format!("no GPU: {error}")))),
    }
}

fn cpu(options: &DeviceOptions, why: Option<&str>) -> (Device, String) {
    let n_threads = options.threads.map_or_else(n_cores, usize::from);
    let device = Device::cpu(n_threads);
    let why = why.map(|why| format!(" ({why})")).unwrap_or_default();
    let description = format!("{device}{why}");
    (device, description)
}

/// Returns the settings of a GPU, with the folders that may contain the CUDA libraries and the cache of compiled kernels.
fn cuda_settings(index: u32, options: &DeviceOptions) -> CudaSettings {
    let path = |name: &str| std::env::var_os(name).filter(|v| !v.is_empty()).map(PathBuf::from);
    let home = path("HOME").or_else(|| path("USERPROFILE"));
    let cache = path("XDG_CACHE_HOME").or_else(|| Some(home.as_ref()?.join(".cache")));
    let named = ["CUDA_HOME", "CUDA_PATH", "VIRTUAL_ENV", "CONDA_PREFIX"];
    let mut roots: Vec<_> = named.iter().filter_map(|name| path(name)).collect();
    roots.extend(home.map(|home| home.join(".local")));
    // Also search the Python environment of the first `python3` in PATH.
    let python = std::env::var_os("PATH").and_then(|folders| {
        std::env::split_paths(&folders).find(|folder| folder.join("python3").is_file())
    });
    roots.extend(python.and_then(|folder| Some(folder.parent()?.to_path_buf())));
    roots.extend(["/usr/local/cuda", "/usr", "/usr/local"].map(PathBuf::from));
    CudaSettings {
        index,
        precision: match options.precision {
            PrecisionOption::F32 => Precision::F32,
            PrecisionOption::Auto | PrecisionOption::Bf16 | PrecisionOption::Int8 => {
                Precision::Bf16
            }
        },
        n_threads: options.threads,
        cache: cache.map(|cache| cache.join("melm/kernels")),
        roots,
        ..CudaSettings::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_environment_of_huggingface_hub_is_understood() {
        let hub = |variables: &[(&str, &str)]| {
            hub_from(|name| {
                let found = variables.iter().find(|(key, _)| *key == name);
                found.map(|(_, value)| OsString::from(value))
            })
        };
        let folder = tempfile::tempdir().unwrap();
        let home = folder.path().to_str().unwrap();
        let plain = hub(&[("HOME", home), ("HF_HUB_OFFLINE", "0"), ("HF_TOKEN", "")]);
        assert_eq!(plain.cache, folder.path().join(".cache/huggingface/hub"));
        assert_eq!((plain.token, plain.offline, plain.endpoint), (None, false, None));

        std::fs::write(folder.path().join("token"), "from-file\n").unwrap();
        let with_file = hub(&[("HF_HOME", home), ("HF_HUB_OFFLINE", "True")]);
        assert_eq!(with_file.cache, folder.path().join("hub"));
        assert_eq!(with_file.token, Token::new("from-file"));
        assert!(with_file.offline);

        let set = hub(&[
            ("HF_HOME", home),
            ("HF_TOKEN", "from-variable"),
            ("HF_HUB_CACHE", "/c"),
            ("HF_ENDPOINT", "http://127.0.0.1:1"),
        ]);
        assert_eq!(set.token, Token::new("from-variable"));
        assert_eq!(set.cache, PathBuf::from("/c"));
        assert_eq!(set.endpoint.as_deref(), Some("http://127.0.0.1:1"));
    }

    #[test]
    fn opening_a_gpu_fails_only_if_the_options_ask_for_one() {
        let precision = PrecisionOption::Auto;
        let options = |device| DeviceOptions { device, threads: None, precision };
        let full = || melm_nn::Error::DeviceMemory { wanted: 5 << 20, free: 0, total: 4 << 20 };
        let none = || melm_nn::Error::NoCuda { reason: "no driver".into() };
        for (error, why) in
            [(full(), "(no GPU: the CUDA device has too little memory"), (none(), "(no driver)")]
        {
            let Ok((device, description)) = without_gpu(&options(DeviceOption::Auto), error) else {
                panic!("the CPU can always be opened")
            };
            assert!(matches!(device, Device::Cpu(_)) && description.contains(why), "{description}");
        }
        for error in [full(), none()] {
            assert!(without_gpu(&options(DeviceOption::Cuda(0)), error).is_err());
        }
    }
}
