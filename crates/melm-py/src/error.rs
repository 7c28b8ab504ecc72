//! The exceptions of the package. Their messages are those of the command.

use melm_cli::host::{ErrorKind, ErrorReport};
use pyo3::create_exception;
use pyo3::exceptions::{PyException, PyKeyboardInterrupt, PyOSError};
use pyo3::prelude::*;

create_exception!(melm, Error, PyException, "Base class of the exceptions of melm.");
create_exception!(melm, DataError, Error, "Data cannot be read or used.");
create_exception!(melm, ConfigError, Error, "A setting, an option or an output folder is wrong.");
create_exception!(melm, ModelError, Error, "A model cannot be opened or used.");

/// Returns the exception for an error.
pub(crate) fn to_exception(report: impl Into<ErrorReport>) -> PyErr {
    let ErrorReport { kind, message } = report.into();
    match kind {
        ErrorKind::Data => DataError::new_err(message),
        ErrorKind::Config => ConfigError::new_err(message),
        ErrorKind::Model => ModelError::new_err(message),
        ErrorKind::Interrupted => PyKeyboardInterrupt::new_err(message),
        ErrorKind::Other => PyOSError::new_err(message),
    }
}
