//! How much larger than usual a file may be.

use std::num::NonZeroU32;

/// A factor for the limits of sizes that bound the memory for hostile files: the longest line of a corpus, the
/// size, the data and the text of a `DocBin` or a parquet file, and the size of unlabelled text. Other limits are fixed.
///
/// ```
/// use melm_text::Limits;
/// let limits = Limits::times(4).unwrap();
/// assert_eq!(limits.scale(1 << 20), 4 << 20);
/// assert_eq!(Limits::times(0), None);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    factor: NonZeroU32,
}

impl Limits {
    /// The largest factor. With it, a line may have 250 GiB.
    pub const MAX_FACTOR: u32 = 1_000;

    /// Limits that are `factor` times as large as the usual ones. Returns `None` if the factor is not from 1 to
    /// [`Self::MAX_FACTOR`].
    pub fn times(factor: u32) -> Option<Self> {
        let factor = NonZeroU32::new(factor).filter(|factor| factor.get() <= Self::MAX_FACTOR)?;
        Some(Self { factor })
    }

    /// Returns the limit for a size whose usual limit is `usual`.
    pub fn scale(self, usual: u64) -> u64 {
        usual.saturating_mul(u64::from(self.factor.get()))
    }

    /// Returns the limit for a number of bytes or tokens in memory.
    pub(crate) fn scale_size(self, usual: usize) -> usize {
        usize::try_from(self.scale(usual as u64)).unwrap_or(usize::MAX)
    }
}

impl Default for Limits {
    /// The usual limits.
    fn default() -> Self {
        Self { factor: NonZeroU32::MIN }
    }
}
