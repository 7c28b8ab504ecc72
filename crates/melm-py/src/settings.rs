//! The settings of a run: a preset, a file, keys of the plan, models and the device.

use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::Arc;

use melm::augment::AugmentJob;
use melm::models::ModelStore;
use melm::plan::{ModelClass, ModelClasses, PlanBuilder, Preset};
use melm_cli::host::{self, ErrorReport, OpenedDevice};
use melm_nn::device::Device;
use melm_nn::files::{MAX_CONFIG_BYTES, read_text_or_pipe};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyList};
use toml::Value;

use crate::error::to_exception;

/// The settings of a run.
#[pyclass(frozen, module = "melm._melm")]
pub(crate) struct Settings {
    pub(crate) preset: Preset,
    pub(crate) plan: PlanBuilder,
    pub(crate) device: String,
    n_threads: Option<NonZeroUsize>,
    precision: String,
    mini: Option<PathBuf>,
}

#[pymethods]
impl Settings {
    /// Collects settings. `config` is the path of a TOML file, or `None`. `keys` are pairs of a keyword, such as
    /// `generate__rounds`, and a value. They override `config`. `mini` is the folder of the model `mini`.
    #[new]
    fn new(
        preset: &str,
        config: Option<PathBuf>,
        keys: Vec<(String, Bound<'_, PyAny>)>,
        device: String,
        threads: Option<usize>,
        precision: String,
        mini: Option<PathBuf>,
    ) -> PyResult<Self> {
        let preset = parse_preset(preset).map_err(to_exception)?;
        let mut plan = PlanBuilder::new(preset);
        if let Some(path) = config {
            let text = read_text_or_pipe(&path, MAX_CONFIG_BYTES)
                .map_err(|source| to_exception(melm::Error::Read { path: path.clone(), source }))?;
            plan = plan.merge_toml(&path.display().to_string(), &text);
        }
        for (keyword, value) in keys {
            let place = format!("{keyword}={}", value.repr()?);
            plan = plan.set_value(&place, &keyword.replace("__", "."), to_toml(&keyword, &value)?);
        }
        let n_threads = match threads {
            Some(n) => Some(NonZeroUsize::new(n).ok_or_else(|| {
                to_exception(ErrorReport::config("`threads=0`: use at least one thread"))
            })?),
            None => None,
        };
        Ok(Self { preset, plan, device, n_threads, precision, mini })
    }
}

impl Settings {
    /// Opens the device.
    pub(crate) fn open_device(&self) -> Result<Arc<Device>, ErrorReport> {
        self.open_own_device().map(Arc::new)
    }

    /// Opens the device for one owner.
    pub(crate) fn open_own_device(&self) -> Result<Device, ErrorReport> {
        let OpenedDevice { device, .. } =
            host::open_device(&self.device, self.n_threads, &self.precision)?;
        Ok(device)
    }

    /// Opens the device for tagging.
    pub(crate) fn open_tagging_device(&self) -> Result<OpenedDevice, ErrorReport> {
        host::open_tagging_device(&self.device, self.n_threads, &self.precision)
    }

    /// Returns the store that opens models.
    pub(crate) fn models(&self) -> ModelStore {
        host::models(self.mini.clone())
    }
}

/// Returns the names of the models that a run needs and that are not on this machine. `task` is `augment`, with
/// `has_text` for unlabelled text, or `train`.
#[pyfunction]
pub(crate) fn needed_models(
    settings: &Settings,
    task: &str,
    has_text: bool,
) -> PyResult<Vec<String>> {
    let plan = settings.plan.build(ModelClasses::both(ModelClass::XLM_R_BASE));
    let plan = plan.map_err(to_exception)?;
    let needs = AugmentJob::needed_models(&plan, has_text);
    let (masked_lm, tagger) = match task {
        "train" => (false, true),
        _ => (needs.masked_lm, needs.tagger),
    };
    let wanted = [(masked_lm, plan.model.masked_lm), (tagger, plan.model.tagger)];
    let mut names: Vec<String> = Vec::new();
    for (_, name) in wanted.into_iter().filter(|(is_needed, _)| *is_needed) {
        let is_local = settings.models().class(&name, false).map_err(to_exception)?.is_some();
        if !is_local && !names.contains(&name) {
            names.push(name);
        }
    }
    Ok(names)
}

/// Returns the folder of the cache of models, as the environment describes it.
#[pyfunction]
pub(crate) fn hub_cache() -> PathBuf {
    host::hub().cache
}

fn parse_preset(name: &str) -> Result<Preset, ErrorReport> {
    let found = Preset::NAMES.into_iter().find(|(known, _)| *known == name);
    let names = Preset::NAMES.map(|(name, _)| name).join(", ");
    let wrong = || ErrorReport::config(format!("`preset={name}`: expected one of {names}"));
    found.map(|(_, preset)| preset).ok_or_else(wrong)
}

/// Converts a value of a setting.
fn to_toml(keyword: &str, value: &Bound<'_, PyAny>) -> PyResult<Value> {
    // A bool is an int in Python, so it is tried first.
    if value.is_instance_of::<PyBool>() {
        return Ok(Value::Boolean(value.extract()?));
    }
    if let Ok(number) = value.extract::<i64>() {
        return Ok(Value::Integer(number));
    }
    if let Ok(number) = value.extract::<f64>() {
        return Ok(Value::Float(number));
    }
    if let Ok(text) = value.extract::<String>() {
        return Ok(Value::String(text));
    }
    if let Ok(path) = value.extract::<PathBuf>() {
        return Ok(Value::String(path.display().to_string()));
    }
    if let Ok(list) = value.cast::<PyList>() {
        let items = list.iter().map(|item| to_toml(keyword, &item));
        return Ok(Value::Array(items.collect::<PyResult<_>>()?));
    }
    Err(to_exception(ErrorReport::config(format!(
        "`{keyword}={}`: a setting is a number, a text, a bool or a list of these",
        value.repr()?
    ))))
}
