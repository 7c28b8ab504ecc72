//! Where models are found, and the device that they run on: read from options and environment.

use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use melm::hub::Hub;
use melm::models::ModelStore;
use melm_nn::cuda::{Cuda, CudaSettings};
use melm_nn::device::Device;

use crate::args::{DeviceChoice, Machine};
use crate::failure::Failure;
use crate::progress::Progress;
use crate::terminal::Terminal;

/// Opens models from the Hugging Face cache and hub, and shows the progress of downloads.
pub(crate) fn models(terminal: &Terminal) -> ModelStore {
    let terminal = *terminal;
    let progress: Mutex<Option<(String, Progress)>> = Mutex::new(None);
    ModelStore::new().with_hub(hub()).on_download(move |model, download| {
        let mut progress = progress.lock().unwrap_or_else(PoisonError::into_inner);
        if progress.as_ref().is_none_or(|(file, _)| file != download.file) {
            let what = format!("downloading {} of {model}", download.file);
            *progress = Some((download.file.to_owned(), Progress::of_steps(&what, &terminal)));
        }
        if let Some((_, progress)) = &mut *progress {
            progress.at_step(download.n_bytes, download.n_total);
        }
        if download.n_bytes >= download.n_total {
            *progress = None;
        }
    })
}

/// The cache of Hugging Face's Python libraries.
#[expect(clippy::disallowed_methods, reason = "the command line is where the environment is read")]
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
pub(crate) fn device(machine: &Machine) -> Result<(Device, String), Failure> {
    let index = match machine.device {
        DeviceChoice::Cpu => return Ok(cpu(machine, None)),
        DeviceChoice::Auto => 0,
        DeviceChoice::Cuda(index) => index,
    };
    match Cuda::open(&cuda_settings(index, machine)) {
        Ok(cuda) => {
            let device = Device::from(cuda);
            let description = device.to_string();
            Ok((device, description))
        }
        Err(error) => without_gpu(machine, error),
    }
}

/// The CPU instead of a GPU that cannot be opened; an error if the options ask for a GPU.
fn without_gpu(machine: &Machine, error: melm_nn::Error) -> Result<(Device, String), Failure> {
    match error {
        error if machine.device != DeviceChoice::Auto => Err(melm::Error::from(error).into()),
        melm_nn::Error::NoCuda { reason } => Ok(cpu(machine, Some(&reason))),
        // The driver and the libraries do not fit each other, or the GPU has no free memory.
        error => Ok(cpu(machine, Some(&format!("no GPU: {error}")))),
    }
}

fn cpu(machine: &Machine, why: Option<&str>) -> (Device, String) {
    let available = std::thread::available_parallelism().map_or(1, usize::from);
    let n_threads = machine.threads.map_or(available, usize::from);
    let device = Device::cpu(n_threads);
    let why = why.map(|why| format!(" ({why})")).unwrap_or_default();
    let description = format!("{device}{why}");
    (device, description)
}

/// The folders that may hold CUDA's libraries, and the cache of compiled kernels.
fn cuda_settings(index: u32, machine: &Machine) -> CudaSettings {
    let path = |name: &str| std::env::var_os(name).filter(|v| !v.is_empty()).map(PathBuf::from);
    let home = path("HOME").or_else(|| path("USERPROFILE"));
    let cache = path("XDG_CACHE_HOME").or_else(|| Some(home.as_ref()?.join(".cache")));
    let named = ["CUDA_HOME", "CUDA_PATH", "VIRTUAL_ENV", "CONDA_PREFIX"];
    let mut roots: Vec<_> = named.iter().filter_map(|name| path(name)).collect();
    roots.extend(home.map(|home| home.join(".local")));
    // The environment of the `python3` on the path.
    let python = std::env::var_os("PATH").and_then(|folders| {
        std::env::split_paths(&folders).find(|folder| folder.join("python3").is_file())
    });
    roots.extend(python.and_then(|folder| Some(folder.parent()?.to_path_buf())));
    roots.extend(["/usr/local/cuda", "/usr", "/usr/local"].map(PathBuf::from));
    CudaSettings {
        index,
        precision: machine.precision.0,
        n_threads: machine.threads,
        cache: cache.map(|cache| cache.join("melm/kernels")),
        roots,
        ..CudaSettings::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gpu_that_cannot_be_opened_is_an_error_only_if_it_was_asked_for() {
        let precision = "bf16".parse().unwrap();
        let machine = |device| Machine { device, threads: None, precision };
        let full = || melm_nn::Error::DeviceMemory { wanted: 5 << 20, free: 0, total: 4 << 20 };
        let none = || melm_nn::Error::NoCuda { reason: "no driver".into() };
        for (error, why) in
            [(full(), "(no GPU: the CUDA device has too little memory"), (none(), "(no driver)")]
        {
            let Ok((device, said)) = without_gpu(&machine(DeviceChoice::Auto), error) else {
                panic!("the CPU is always there")
            };
            assert!(matches!(device, Device::Cpu(_)) && said.contains(why), "{said}");
        }
        for error in [full(), none()] {
            assert!(without_gpu(&machine(DeviceChoice::Cuda(0)), error).is_err());
        }
    }
}
