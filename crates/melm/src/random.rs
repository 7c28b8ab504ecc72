//! Named random streams: one seed for a run, and a stream for each purpose.
//!
//! The numbers of a stream depend only on the seed and on the path of the stream, which has the form
//! `stage / purpose / epoch or round / sentence`. They do not depend on the number of threads, the order of the
//! batches or an interruption.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

/// The seed of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Seed(pub u64);

impl Seed {
    /// Returns the key of the stream called `name`.
    pub fn stream(self, name: &str) -> StreamKey {
        StreamKey([self.0, 0, 0, 0]).then(name)
    }
}

/// The key of a stream: a hash of the seed and the components of the path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StreamKey([u64; 4]);

impl StreamKey {
    /// Returns the key of the stream `name` below this one.
    #[must_use]
    pub fn then(self, name: &str) -> Self {
        name.bytes().fold(self.absorb(name.len() as u64), |key, byte| key.absorb(u64::from(byte)))
    }

    /// Returns the key of a numbered stream below this one. The number is, for example, that of an epoch, a round or
    /// a sentence.
    #[must_use]
    pub fn at(self, number: u64) -> Self {
        self.absorb(u64::MAX).absorb(number)
    }

    /// Returns the generator of this stream, at its start.
    pub fn generator(self) -> Generator {
        let mut seed = [0; 32];
        for (bytes, word) in seed.chunks_exact_mut(8).zip(self.0) {
            bytes.copy_from_slice(&word.to_le_bytes());
        }
        Generator(ChaCha8Rng::from_seed(seed))
    }

    /// Mixes a number into the key with four lanes of SplitMix64 (Steele et al. 2014). Each lane also depends on the
    /// lane before it.
    fn absorb(self, value: u64) -> Self {
        let mut lanes = self.0;
        for lane in 0..4 {
            let fed = lanes[lane] ^ value ^ lanes[(lane + 3) % 4].rotate_left(23);
            let step = 0x9e37_79b9_7f4a_7c15_u64.wrapping_mul(lane as u64 + 1);
            lanes[lane] = mix(fed.wrapping_add(step));
        }
        Self(lanes)
    }
}

fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// A random number generator. Its numbers are the same on every platform and do not depend on the version of `rand`.
#[derive(Debug, Clone)]
pub struct Generator(ChaCha8Rng);

impl Generator {
    /// Draws a number from 0 to `n - 1`. All numbers have the same probability.
    ///
    /// # Panics
    /// If `n` is 0.
    pub fn below(&mut self, n: usize) -> usize {
        let n = n as u64;
        assert!(n > 0, "no number is below 0");
        // In general `n` does not divide the range of u64. Rejecting numbers of the incomplete last part keeps the
        // draw uniform.
        let limit = u64::MAX - u64::MAX % n;
        loop {
            let draw = self.0.next_u64();
            if draw < limit {
                return usize::try_from(draw % n).expect("it is below a usize");
            }
        }
    }

    /// Returns the numbers from 0 to `n - 1` in random order. Each order has the same probability.
    pub fn permutation(&mut self, n: usize) -> Vec<usize> {
        self.first_of(n, n)
    }

    /// Returns the first `size` numbers of [`Self::permutation`], by a Fisher-Yates shuffle from the front. A larger
    /// `size` gives the same numbers, followed by more.
    fn first_of(&mut self, n: usize, size: usize) -> Vec<usize> {
        let mut numbers: Vec<usize> = (0..n).collect();
        for at in 0..size {
            numbers.swap(at, at + self.below(n - at));
        }
        numbers.truncate(size);
        numbers
    }

    /// Draws 64 random bits, for example as the seed of another generator.
    pub(crate) fn bits(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// Draws a number from [0, 1), in steps of 2^-53.
    pub fn uniform(&mut self) -> f64 {
        (self.0.next_u64() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// Draws a number from the standard normal distribution (Box and Muller 1958).
    pub fn normal(&mut self) -> f64 {
        // `uniform` can return 0 but not 1, so that the argument of the logarithm is never 0.
        let radius = (-2.0 * libm::log(1.0 - self.uniform())).sqrt();
        radius * libm::cos(std::f64::consts::TAU * self.uniform())
    }

    /// Draws `size` of the numbers below `n`, and returns them in ascending order. Each subset has the same
    /// probability.
    ///
    /// From the same state of the generator, a smaller subset is part of a larger one.
    ///
    /// # Panics
    /// If `size` is above `n`.
    pub fn subset(&mut self, n: usize, size: usize) -> Vec<usize> {
        let mut numbers = self.first_of(n, size);
        numbers.sort_unstable();
        numbers
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_with_different_paths_differ() {
        let first = |key: StreamKey| key.generator().below(usize::MAX);
        let keys = [
            Seed(1).stream("sample"),
            Seed(2).stream("sample"),
            Seed(1).stream("mask"),
            Seed(1).stream("mask").at(0),
            Seed(1).stream("mask").at(1),
            Seed(1).stream("ma").then("sk"),
        ];
        let mut draws: Vec<_> = keys.map(first).to_vec();
        draws.sort_unstable();
        draws.dedup();
        assert_eq!(draws.len(), keys.len());
    }

    #[test]
    fn every_number_below_n_is_equally_likely() {
        let mut generator = Seed(7).stream("test").generator();
        let mut counts = [0_i32; 6];
        for _ in 0..60_000 {
            counts[generator.below(6)] += 1;
        }
        // The tolerance is 5 standard deviations of a binomial count with mean 10,000.
        assert!(counts.iter().all(|n| (n - 10_000).abs() < 460), "{counts:?}");
    }

    #[test]
    fn normal_draws_have_the_normal_distribution() {
        let mut generator = Seed(3).stream("test").generator();
        let n = 100_000;
        let draws: Vec<f64> = (0..n).map(|_| generator.normal()).collect();
        // The values of the distribution function are from a table. The tolerance is at least 5 standard deviations.
        for (at, share) in [
            (-2.0, 0.022_750),
            (-1.0, 0.158_655),
            (0.0, 0.5),
            (0.5, 0.691_462),
            (1.5, 0.933_193),
            (3.0, 0.998_650),
        ] {
            let found = draws.iter().filter(|draw| **draw < at).count() as f64 / f64::from(n);
            let deviation = (share * (1.0 - share) / f64::from(n)).sqrt();
            assert!((found - share).abs() < 5.0 * deviation, "{at}: {found}, expected {share}");
        }
    }

    #[test]
    fn every_subset_of_a_size_is_equally_likely() {
        let mut generator = Seed(5).stream("test").generator();
        let mut counts = std::collections::BTreeMap::new();
        for _ in 0..30_000 {
            *counts.entry(generator.subset(4, 2)).or_insert(0_i32) += 1;
        }
        assert_eq!(counts.len(), 6);
        // The tolerance is 5 standard deviations of a binomial count with mean 5,000.
        assert!(counts.values().all(|n| (n - 5_000).abs() < 325), "{counts:?}");
    }
}
