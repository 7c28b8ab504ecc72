//! Opens models and devices as the options and the environment say.

use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use melm::hub::Hub;
use melm::models::ModelStore;
use melm_nn::cuda::{Cuda, CudaSettings};
use melm_nn::device::Device;

use crate::args::{DeviceOption, DeviceOptions};
use crate::failure::Failure;
use crate::progress::Progress;
use crate::terminal::Terminal;

/// Returns a store that opens models from the Hugging Face cache and hub, and shows the progress of downloads.
pub(crate) fn models(terminal: &Terminal) -> ModelStore {
    let terminal = *terminal;
    let progress: Mutex<Option<(String, Progress)>> = Mutex::new(None);
    ModelStore::new().with_hub(hub()).on_download(move |model, download| {
        let mut progress = progress.lock().unwrap_or_else(PoisonError::into_inner);
        if progress.as_ref().is_none_or(|(file, _)| file != download.file) {
            let what = format!("downloading {} of {model}", download.file);
            *progress = Some((download.file.to_owned(), Progress::for_steps(&what, &terminal)));
        }
        if let Some((_, progress)) = &mut *progress {
            progress.set_step(download.n_bytes, download.n_total);
        }
        if download.n_bytes >= download.n_total {
            *progress = None;
        }
    })
}

/// Returns the cache that the Python libraries of Hugging Face use.
#[expect(clippy::disallowed_methods, reason = "only the command line reads the environment")]
fn hub() -> Hub {
    let path = |name: &str| std::env::var_os(name).filter(|v| !v.is_empty()).map(PathBuf::from);
    let home = path("HOME").or_else(|| path("USERPROFILE")).unwrap_or_default();
    let cache = path("HF_HUB_CACHE")
        .or_else(|| path("HF_HOME").map(|home| home.join("hub")))
        .or_else(|| path("XDG_CACHE_HOME").map(|cache| cache.join("huggingface/hub")))
        .unwrap_or_else(|| home.join(".cache/huggingface/hub"));
    let mut hub = Hub::new(cache);
    hub.endpoint = std::env::var("HF_ENDPOINT").ok().filter(|endpoint| !endpoint.is_empty());
    hub
}

/// Opens the device that the options name. Also returns a line that names the device and, if `auto` chose the CPU, says why.
pub(crate) fn device(options: &DeviceOptions) -> Result<(Device, String), Failure> {
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
    let available = std::thread::available_parallelism().map_or(1, usize::from);
    let n_threads = options.threads.map_or(available, usize::from);
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
        precision: options.precision.0,
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
    fn opening_a_gpu_fails_only_if_the_options_ask_for_one() {
        let precision = "bf16".parse().unwrap();
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
