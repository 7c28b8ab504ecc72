//! One seed for a run, and a random stream of its own for everything that draws.
//!
//! A stream is found by its path (`stage / purpose / epoch or round / sentence`), not by when it
//! is asked for: what a sentence draws depends on neither thread count, batch order nor resumption.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

/// The seed of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Seed(pub u64);

impl Seed {
    /// The key of the stream called `name`.
    pub fn stream(self, name: &str) -> StreamKey {
        StreamKey([self.0, 0, 0, 0]).then(name)
    }
}

/// The name of a stream: absorbs one path component after another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StreamKey([u64; 4]);

impl StreamKey {
    /// The stream `name` below this one.
    #[must_use]
    pub fn then(self, name: &str) -> Self {
        name.bytes().fold(self.absorb(name.len() as u64), |key, byte| key.absorb(u64::from(byte)))
    }

    /// The stream `number` below this one: an epoch, a round, a sentence.
    #[must_use]
    pub fn at(self, number: u64) -> Self {
        self.absorb(u64::MAX).absorb(number)
    }

    /// The generator of this stream.
    pub fn generator(self) -> Generator {
        let mut seed = [0; 32];
        for (bytes, word) in seed.chunks_exact_mut(8).zip(self.0) {
            bytes.copy_from_slice(&word.to_le_bytes());
        }
        Generator(ChaCha8Rng::from_seed(seed))
    }

    /// Four lanes of SplitMix64 (Steele et al. 2014), each also fed by its neighbour.
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

/// Random numbers that are the same on every platform and with every version of `rand`.
#[derive(Debug, Clone)]
pub struct Generator(ChaCha8Rng);

impl Generator {
    /// A number from 0 to `n - 1`, each equally likely.
    ///
    /// # Panics
    /// If `n` is 0.
    pub fn below(&mut self, n: usize) -> usize {
        let n = n as u64;
        assert!(n > 0, "no number is below 0");
        // Rejecting the incomplete last stretch of u64 keeps the draw exactly uniform.
        let limit = u64::MAX - u64::MAX % n;
        loop {
            let draw = self.0.next_u64();
            if draw < limit {
                return usize::try_from(draw % n).expect("it is below a usize");
            }
        }
    }

    /// The numbers from 0 to `n - 1` in an order of which each is equally likely.
    pub fn permutation(&mut self, n: usize) -> Vec<usize> {
        self.first_of(n, n)
    }

    /// The first `size` of the numbers below `n` in a random order, which do not depend on how many follow: Fisher and
    /// Yates from the front.
    fn first_of(&mut self, n: usize, size: usize) -> Vec<usize> {
        let mut numbers: Vec<usize> = (0..n).collect();
        for at in 0..size {
            numbers.swap(at, at + self.below(n - at));
        }
        numbers.truncate(size);
        numbers
    }

    /// 64 random bits: the seed of a stream that is not ours, such as dropout's.
    pub(crate) fn bits(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// A number in [0, 1), in steps of 2^-53.
    pub fn uniform(&mut self) -> f64 {
        (self.0.next_u64() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// A number from the standard normal distribution (Box and Muller 1958).
    pub fn normal(&mut self) -> f64 {
        // One less a uniform number is never 0, whose logarithm there is none.
        let radius = (-2.0 * libm::log(1.0 - self.uniform())).sqrt();
        radius * libm::cos(std::f64::consts::TAU * self.uniform())
    }

    /// `size` of the numbers below `n` in rising order, each set of them equally likely.
    ///
    /// Of one state of the generator, smaller subsets are parts of larger ones.
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
        // 5 standard deviations of a binomial count of mean 10,000.
        assert!(counts.iter().all(|n| (n - 10_000).abs() < 460), "{counts:?}");
    }

    #[test]
    fn normal_draws_have_the_normal_distribution() {
        let mut generator = Seed(3).stream("test").generator();
        let n = 100_000;
        let draws: Vec<f64> = (0..n).map(|_| generator.normal()).collect();
        // The distribution function at six places, from a table; 5 standard deviations of a share at most.
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
        // 5 standard deviations of a binomial count of mean 5,000.
        assert!(counts.values().all(|n| (n - 5_000).abs() < 325), "{counts:?}");
    }
}
