//! The extension module `melm._melm` of the Python package.
//!
//! Each function takes plain values, calls the library with the GIL released, and returns plain values. Converting data
//! of other libraries, such as pandas, is done in Python: see the folder `python/melm`.

#![expect(
    clippy::needless_pass_by_value,
    reason = "PyO3 converts arguments of Python to values, not to references"
)]

mod augment;
mod corpus;
mod data;
mod error;
mod files;
mod pick;
mod run;
mod settings;
mod source;
mod tagger;
mod text;
mod transitions;
mod trial;

use pyo3::prelude::*;

/// The extension module.
#[pymodule]
mod _melm {
    #[pymodule_export]
    use crate::augment::{AugmentResult, augment};
    #[pymodule_export]
    use crate::corpus::Corpus;
    #[pymodule_export]
    use crate::error::{ConfigError, DataError, Error, ModelError};
    #[pymodule_export]
    use crate::files::{check, convert, report_html, score};
    #[pymodule_export]
    use crate::pick::{PickResult, pick};
    #[pymodule_export]
    use crate::run::run_command;
    #[pymodule_export]
    use crate::settings::{Settings, hub_cache, needed_models};
    #[pymodule_export]
    use crate::source::Source;
    #[pymodule_export]
    use crate::tagger::Tagger;
    #[pymodule_export]
    use crate::text::Text;
    #[pymodule_export]
    use crate::transitions::allowed_transitions;
    #[pymodule_export]
    use crate::trial::trial;

    use pyo3::prelude::*;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }
}
