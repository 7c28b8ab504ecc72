//! Finds models and a machine to run them on.

use std::path::PathBuf;

use melm::hub::Hub;
use melm::model::Pretrained;
use melm::plan::ModelSize;
use melm_nn::cuda::{Cuda, CudaSettings, Precision};
use melm_nn::device::{Cpu, Device};

use crate::args::{DeviceChoice, MINI, Machine};
use crate::failure::Failure;
use crate::progress::Progress;
use crate::terminal::Terminal;

#[cfg(feature = "embedded")]
fn embedded() -> Result<Pretrained, Failure> {
    let files = melm::model::Embedded {
        config: melm_mini::CONFIG,
        tokenizer: melm_mini::TOKENIZER,
        tokenizer_config: melm_mini::TOKENIZER_CONFIG,
        special_tokens_map: melm_mini::SPECIAL_TOKENS_MAP,
        weights: melm_mini::WEIGHTS,
    };
    Ok(Pretrained::embedded(MINI, files)?)
}

#[cfg(not(feature = "embedded"))]
fn embedded() -> Result<Pretrained, Failure> {
    Err(Failure::Impossible {
        message: "this program was built without the model `mini`".into(),
        hint: "give a folder with `--model DIR`, or build with the feature `embedded`".into(),
    })
}

/// Opens a model: `mini`, a folder, or a name to look up and fetch.
pub(crate) fn open(model: &str, terminal: &Terminal) -> Result<Pretrained, Failure> {
    if model == MINI { embedded() } else { Ok(Pretrained::open(&fetch(model, terminal)?)?) }
}

/// The folder of a model, fetched if need be.
fn fetch(model: &str, terminal: &Terminal) -> Result<PathBuf, Failure> {
    let mut progress: Option<(String, Progress)> = None;
    let folder = hub().resolve(model, &mut |fetching| {
        if progress.as_ref().is_none_or(|(file, _)| file != fetching.file) {
            let what = format!("fetching {} of {model}", fetching.file);
            progress = Some((fetching.file.to_owned(), Progress::of_steps(&what, terminal)));
        }
        if let Some((_, progress)) = &mut progress {
            progress.at_step(fetching.n_bytes, fetching.n_total);
        }
    })?;
    Ok(folder)
}

/// How large a model is. With `fetches` a terminal, one that is not here is fetched; without, taken for an XLM-R.
pub(crate) fn size(model: &str, fetches: Option<&Terminal>) -> Result<ModelSize, Failure> {
    if model == MINI {
        return Ok(ModelSize::Small);
    }
    let folder = match fetches {
        Some(terminal) => Some(fetch(model, terminal)?),
        None => hub().find_local(model),
    };
    let config = folder.and_then(|folder| std::fs::read_to_string(folder.join("config.json")).ok());
    let config = config.and_then(|text| serde_json::from_str::<serde_json::Value>(&text).ok());
    let width = config.and_then(|config| config.get("hidden_size")?.as_u64());
    let width = width.and_then(|width| usize::try_from(width).ok());
    Ok(width.map_or(ModelSize::Full, ModelSize::from_hidden_size))
}

/// The cache where Python keeps it.
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

/// The device to compute on, and one line that says which and why.
pub(crate) fn device(machine: &Machine) -> Result<(Device, String), Failure> {
    let index = match machine.device {
        DeviceChoice::Cpu => return Ok(cpu(machine, None)),
        DeviceChoice::Auto => 0,
        DeviceChoice::Cuda(index) => index,
    };
    match Cuda::open(&cuda_settings(index, machine)) {
        Ok(cuda) => {
            let said = match cuda.precision() {
                Precision::Bf16 => format!("cuda:{index}, {}, bf16", cuda.name()),
                Precision::F32 => format!("cuda:{index}, {}, f32", cuda.name()),
            };
            Ok((cuda.into(), said))
        }
        Err(error) => without_card(machine, error),
    }
}

/// The processor instead of a card that cannot be opened, unless a card was asked for.
fn without_card(machine: &Machine, error: melm_nn::Error) -> Result<(Device, String), Failure> {
    match error {
        error if machine.device != DeviceChoice::Auto => Err(melm::Error::from(error).into()),
        melm_nn::Error::NoCuda { reason } => Ok(cpu(machine, Some(&reason))),
        // Its driver and libraries do not fit each other, or it is full.
        error => Ok(cpu(machine, Some(&format!("no card: {error}")))),
    }
}

fn cpu(machine: &Machine, why: Option<&str>) -> (Device, String) {
    let available = std::thread::available_parallelism().map_or(1, usize::from);
    let n_threads = machine.threads.map_or(available, usize::from);
    let cpu = Cpu::new(n_threads);
    let threads = if n_threads == 1 { "1 thread".into() } else { format!("{n_threads} threads") };
    let why = why.map(|why| format!(" ({why})")).unwrap_or_default();
    let said = format!("cpu, {threads}, {}{why}", cpu.isa().name());
    (cpu.into(), said)
}

/// Where CUDA's libraries may be, and where compiled kernels are kept.
fn cuda_settings(index: u32, machine: &Machine) -> CudaSettings {
    let path = |name: &str| std::env::var_os(name).filter(|v| !v.is_empty()).map(PathBuf::from);
    let home = path("HOME").or_else(|| path("USERPROFILE"));
    let cache = path("XDG_CACHE_HOME").or_else(|| Some(home.as_ref()?.join(".cache")));
    let named = ["CUDA_HOME", "CUDA_PATH", "VIRTUAL_ENV", "CONDA_PREFIX"];
    let mut roots: Vec<_> = named.iter().filter_map(|name| path(name)).collect();
    roots.extend(home.map(|home| home.join(".local")));
    // The environment of the Python that would be started.
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
    fn a_card_that_cannot_be_opened_is_an_error_only_if_it_was_asked_for() {
        let precision = "bf16".parse().unwrap();
        let machine = |device| Machine { device, threads: None, precision };
        let full = || melm_nn::Error::DeviceMemory { wanted: 5 << 20, free: 0, total: 4 << 20 };
        let none = || melm_nn::Error::NoCuda { reason: "no driver".into() };
        for (error, why) in
            [(full(), "(no card: the CUDA device has too little memory"), (none(), "(no driver)")]
        {
            let Ok((device, said)) = without_card(&machine(DeviceChoice::Auto), error) else {
                panic!("the processor is always there")
            };
            assert!(matches!(device, Device::Cpu(_)) && said.contains(why), "{said}");
        }
        for error in [full(), none()] {
            assert!(without_card(&machine(DeviceChoice::Cuda(0)), error).is_err());
        }
    }
}
