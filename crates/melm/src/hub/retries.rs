//! How often a failed request is repeated, and how long the pauses are.

use std::time::Duration;

/// The longest pause between two attempts.
#[cfg(feature = "hub")]
const MAX_PAUSE: Duration = Duration::from_secs(30);

/// Says how often a request is repeated after a failure that can pass, such as a lost connection or status 503.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retries {
    /// The number of retries without progress. A download that has received more bytes starts to count again.
    pub count: u32,
    /// The pause before the first retry. Each further pause is twice as long, up to 30 s. A server can demand a longer
    /// pause, up to 60 s.
    pub first_pause: Duration,
}

impl Default for Retries {
    /// Five retries, with pauses of 1, 2, 4, 8 and 16 s.
    fn default() -> Self {
        Self { count: 5, first_pause: Duration::from_secs(1) }
    }
}

#[cfg(feature = "hub")]
impl Retries {
    /// Returns the pause before the retry with this number (from 0), or `None` if there are no more retries.
    pub(super) fn pause(&self, retry: u32, demanded: Option<Duration>) -> Option<Duration> {
        let pause = self.first_pause.saturating_mul(2_u32.saturating_pow(retry)).min(MAX_PAUSE);
        (retry < self.count).then(|| pause.max(demanded.unwrap_or_default()))
    }
}

#[cfg(all(test, feature = "hub"))]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_and_end() {
        let retries = Retries { count: 8, ..Retries::default() };
        let pauses: Vec<_> = (0..9).map(|n| retries.pause(n, None).map(|p| p.as_secs())).collect();
        let expected = [1, 2, 4, 8, 16, 30, 30, 30].map(Some);
        assert_eq!(pauses[..8], expected);
        assert_eq!(pauses[8], None);
        assert_eq!(retries.pause(0, Some(Duration::from_secs(7))), Some(Duration::from_secs(7)));
    }
}
