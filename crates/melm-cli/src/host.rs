//! What other front ends, such as the Python package, share with the command: the device, the models and the settings of
//! this machine, messages of errors, and the times at which a run is saved.

use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use melm::hub::Hub;
use melm::models::ModelStore;
use melm_nn::device::Device;
use melm_text::{Format, Limits};

use crate::args::DeviceOptions;
use crate::diagnose;
use crate::failure::Failure;
use crate::machine::{self, TaggingDevice};
use crate::output;
use crate::terminal::{Terminal, bounded};

pub use crate::interrupt::INTERRUPTED;
pub use crate::observer::{SaveTimer, title};

/// Returns the format of an output file: `to` if it is given, or else the format with the ending of `path`, or that of the
/// input. Fails if no format or several formats have this ending.
pub fn choose_format(
    to: Option<Format>,
    path: Option<&Path>,
    input: Format,
) -> Result<Format, ErrorReport> {
    Ok(output::choose_format(to, path.unwrap_or(Path::new("-")), input)?)
}

/// Returns the limits for files: the usual ones, times the factor in `MELM_LIMIT_FACTOR`. Fails if the variable is not a
/// whole number from 1 to 1000.
pub fn limits() -> Result<Limits, ErrorReport> {
    Ok(machine::limits()?)
}

/// What an error is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorKind {
    /// A file or a data set.
    Data,
    /// A setting, an option or an output folder.
    Config,
    /// A model.
    Model,
    /// The caller stopped the work.
    Interrupted,
    /// Anything else, such as a device.
    Other,
}

/// An error in the words of the command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ErrorReport {
    /// What the error is about.
    pub kind: ErrorKind,
    /// The message that the command prints, without colours and without `error:` at its start.
    pub message: String,
}

impl ErrorReport {
    /// An error about a setting. `message` says what is wrong and what to do.
    pub fn config(message: impl Into<String>) -> Self {
        Self { kind: ErrorKind::Config, message: message.into() }
    }
}

impl From<Failure> for ErrorReport {
    fn from(failure: Failure) -> Self {
        let lines = bounded(diagnose::describe(&failure, &Terminal::plain()));
        let text = lines.join("\n");
        let message = text.trim_end().strip_prefix("error: ").unwrap_or(&text).to_owned();
        Self { kind: kind(&failure), message }
    }
}

impl From<melm::Error> for ErrorReport {
    fn from(error: melm::Error) -> Self {
        Failure::from(error).into()
    }
}

impl From<melm_text::Error> for ErrorReport {
    fn from(error: melm_text::Error) -> Self {
        Failure::from(error).into()
    }
}

impl From<melm_eval::Error> for ErrorReport {
    fn from(error: melm_eval::Error) -> Self {
        Failure::from(error).into()
    }
}

impl From<melm_report::Error> for ErrorReport {
    fn from(error: melm_report::Error) -> Self {
        Failure::from(error).into()
    }
}

fn kind(failure: &Failure) -> ErrorKind {
    match failure {
        Failure::Method(error) => method_kind(error),
        _ if failure.exit_code() == INTERRUPTED => ErrorKind::Interrupted,
        Failure::Text(_) | Failure::Report(_) | Failure::Reported(_) => ErrorKind::Data,
        Failure::Experiment(_) | Failure::Usage { .. } | Failure::Exists(_) => ErrorKind::Config,
        Failure::Impossible { .. } | Failure::Discarded(_) | Failure::Write { .. } => {
            ErrorKind::Other
        }
    }
}

/// Returns what an error of the library is about. Errors of files are about data: errors of models name the model.
fn method_kind(error: &melm::Error) -> ErrorKind {
    use melm::Error as E;
    match error {
        E::Interrupted => ErrorKind::Interrupted,
        E::UnknownKey { .. }
        | E::Setting { .. }
        | E::Occupied { .. }
        | E::InUse { .. }
        | E::ResultChanged { .. }
        | E::ResultMissing { .. }
        | E::NothingToFinetune { .. }
        | E::NothingToFreeze { .. }
        | E::Diverged { .. }
        | E::TooFewToCheck { .. } => ErrorKind::Config,
        E::NoTokenizer { .. }
        | E::TokenizerJson { .. }
        | E::TokenizerKind { .. }
        | E::NoSpecial { .. }
        | E::AddedPiece { .. }
        | E::SpecialInText { .. }
        | E::NoEmbeddedModel
        | E::NotAModel { .. }
        | E::Hub(_)
        | E::Engine(_)
        | E::DeviceFailed { .. }
        | E::TooManyPieces { .. }
        | E::NotATagger { .. }
        | E::TagNames { .. }
        | E::NotFinetunedFor { .. }
        | E::NoLanguage { .. } => ErrorKind::Model,
        E::Write { .. } => ErrorKind::Other,
        _ => ErrorKind::Data,
    }
}

/// A device and its description.
pub struct OpenedDevice {
    /// The device.
    pub device: Device,
    /// The name of the device and, if `auto` chose the CPU, the reason.
    pub description: String,
    /// True if a tagger is to use 8-bit weights on the device.
    pub is_int8: bool,
}

/// Opens a device by the names of `--device` (`auto`, `cpu`, `cuda`, `cuda:N`) and `--precision` (`auto`, `f32`, `bf16`).
pub fn open_device(
    name: &str,
    n_threads: Option<NonZeroUsize>,
    precision: &str,
) -> Result<OpenedDevice, ErrorReport> {
    let (device, description) = machine::device(&device_options(name, n_threads, precision)?)?;
    Ok(OpenedDevice { device, description, is_int8: false })
}

/// Like [`open_device`], for tagging, which can also use the precision `int8`.
pub fn open_tagging_device(
    name: &str,
    n_threads: Option<NonZeroUsize>,
    precision: &str,
) -> Result<OpenedDevice, ErrorReport> {
    let options = device_options(name, n_threads, precision)?;
    let TaggingDevice { device, description, is_int8 } = machine::tagging_device(&options)?;
    Ok(OpenedDevice { device, description, is_int8 })
}

fn device_options(
    name: &str,
    threads: Option<NonZeroUsize>,
    precision: &str,
) -> Result<DeviceOptions, ErrorReport> {
    let wrong = |option: &str, value: &str, message: String| {
        ErrorReport::config(format!("`{option}={value}`: {message}"))
    };
    Ok(DeviceOptions {
        device: name.parse().map_err(|message| wrong("device", name, message))?,
        threads,
        precision: precision.parse().map_err(|message| wrong("precision", precision, message))?,
    })
}

/// Returns a store that opens the models of this machine: folders, `mini` from its folder, and names in the cache and on
/// the hub that the environment describes. Downloads are not shown.
pub fn models(mini: Option<PathBuf>) -> ModelStore {
    let store = ModelStore::new().with_hub(hub());
    match mini {
        Some(folder) => store.with_mini(folder),
        None => store,
    }
}

/// Returns the cache and the hub of the Hugging Face libraries, as the environment describes them.
pub fn hub() -> Hub {
    machine::hub()
}
