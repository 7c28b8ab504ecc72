//! Conversions of the errors of the engine and of the data crate.

use super::Error;

impl From<melm_nn::Error> for Error {
    fn from(error: melm_nn::Error) -> Self {
        match error {
            melm_nn::Error::Read { path, source } => Error::Read { path, source },
            melm_nn::Error::Write { path, source } => Error::Write { path, source },
            other => Error::Engine(other),
        }
    }
}

impl From<melm_text::Error> for Error {
    fn from(error: melm_text::Error) -> Self {
        match error {
            melm_text::Error::Read { name, source } => Error::Read { path: name.into(), source },
            other => Error::Text(other),
        }
    }
}
