//! Rates: probabilities and shares. Their values are checked to be from 0 to 1.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A number from 0 to 1.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "f64", into = "f64")]
#[schemars(extend("minimum" = 0, "maximum" = 1))]
pub struct Rate(f64);

/// The error for a number that is not from 0 to 1.
#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error)]
#[error("a rate is a number from 0 to 1, found {0}")]
pub struct InvalidRate(f64);

impl TryFrom<f64> for Rate {
    type Error = InvalidRate;

    fn try_from(value: f64) -> Result<Self, InvalidRate> {
        if (0.0..=1.0).contains(&value) { Ok(Self(value)) } else { Err(InvalidRate(value)) }
    }
}

impl Rate {
    /// Creates a rate from a constant in the source code.
    ///
    /// # Panics
    /// If `value` is not from 0 to 1.
    pub const fn constant(value: f64) -> Self {
        assert!(0.0 <= value && value <= 1.0, "a rate is from 0 to 1");
        Self(value)
    }

    /// Returns the rate as a number.
    pub fn value(self) -> f64 {
        self.0
    }
}

impl From<Rate> for f64 {
    fn from(rate: Rate) -> Self {
        rate.0
    }
}

#[cfg(test)]
mod tests {
    use super::Rate;

    #[test]
    fn numbers_outside_0_to_1_are_refused() {
        for wrong in [-0.1, 1.5, f64::NAN] {
            assert!(Rate::try_from(wrong).is_err());
        }
        assert!(serde_json::from_str::<Rate>("1.5").is_err());
        assert!(serde_json::from_str::<Rate>("0.5").unwrap() == Rate::constant(0.5));
    }
}
