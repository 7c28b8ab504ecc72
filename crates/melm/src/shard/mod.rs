//! Shards: the parts of a large input that several processes work on, and how their outputs are joined.
//!
//! A [`Shard`] is a contiguous part of the input. The output of one shard is a [`ShardFile`]: one line with a
//! [`ShardHeader`], then the content. A [`ShardSet`] checks that the shards of one input are complete and fit
//! together, and joins their contents in the order of the input. The joined output has the same bytes as the output of
//! one process.

mod drafts;
mod error;
mod file;
mod header;
mod set;

pub use error::ShardError;
pub use file::ShardFile;
pub use header::{ShardContent, ShardHeader, ShardInput, ShardUnit};
pub use set::ShardSet;

use std::fmt;
use std::ops::Range;
use std::path::Path;
use std::str::FromStr;

use melm_text::Corpus;

use crate::Error;
use crate::files::Fingerprint;
use crate::models::weight_files;
use crate::pieces::TokenizerFiles;
use crate::run_folder::data_fingerprint;

/// The number of sentences that a tagger reads at a time. Large shards begin at multiples of it, so that a shard is
/// tagged in the same batches as in a run without shards. On a GPU, the last digits of a probability depend on the batch.
pub(crate) const BLOCK: usize = 512;

/// The largest number of shards. A file can claim any number, and the missing ones are listed.
pub const MAX_SHARDS: usize = 100_000;

/// One of the parts that an input is divided into.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shard {
    number: usize,
    count: usize,
}

impl Shard {
    /// Creates shard `number` of `count`. Returns `None` unless `number` is from 1 to `count`, and `count` is at most
    /// [`MAX_SHARDS`].
    pub fn new(number: usize, count: usize) -> Option<Self> {
        let is_valid = (1..=count).contains(&number) && count <= MAX_SHARDS;
        is_valid.then_some(Self { number, count })
    }

    /// The number of the shard, from 1.
    pub fn number(self) -> usize {
        self.number
    }

    /// The number of shards.
    pub fn count(self) -> usize {
        self.count
    }

    /// Returns the part of an input of `n` sentences or texts that belongs to this shard.
    ///
    /// Shard `i` of `k` begins at `(i - 1) * n / k`, rounded down. If there are at least 512 for each shard, the
    /// beginning is also rounded down to a multiple of 512. Every sentence belongs to exactly one shard.
    ///
    /// ```
    /// use melm::shard::Shard;
    /// let ranges = (1..=3).map(|number| Shard::new(number, 3).unwrap().range(10));
    /// assert_eq!(ranges.collect::<Vec<_>>(), [0..3, 3..6, 6..10]);
    /// ```
    pub fn range(self, n: usize) -> Range<usize> {
        let block = if n / self.count >= BLOCK { BLOCK } else { 1 };
        let start = |shards_before: usize| {
            if shards_before == self.count {
                return n;
            }
            // The product can exceed 64 bits.
            let start = shards_before as u128 * n as u128 / self.count as u128;
            let start = usize::try_from(start).expect("it is at most n");
            start - start % block
        };
        start(self.number - 1)..start(self.number)
    }
}

impl fmt::Display for Shard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.number, self.count)
    }
}

impl FromStr for Shard {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let numbers = text.split_once('/').and_then(|(number, count)| {
            Some((number.trim().parse().ok()?, count.trim().parse().ok()?))
        });
        let shard = numbers.and_then(|(number, count)| Self::new(number, count));
        shard.ok_or_else(|| "expected I/N with I from 1 to N, for example 3/8".to_owned())
    }
}

/// Returns a hash of the files of a model folder that determine its output.
pub fn fingerprint_model(dir: &Path) -> Result<String, Error> {
    let mut fingerprint = Fingerprint::default();
    fingerprint.add(TokenizerFiles::read(dir)?.tokenizer.as_bytes());
    fingerprint.add_file(&dir.join("config.json"))?;
    let extra = dir.join("tagger.json");
    if extra.exists() {
        fingerprint.add_file(&extra)?;
    }
    for path in weight_files(dir)? {
        fingerprint.add_file(&path)?;
    }
    Ok(fingerprint.finish())
}

/// Returns a hash of the files, sentences and languages of a corpus.
pub fn fingerprint_corpus(corpus: &Corpus) -> String {
    data_fingerprint(corpus)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn every_sentence_is_in_exactly_one_shard(n in 0usize..20_000, count in 1usize..40) {
            let mut end = 0;
            for number in 1..=count {
                let range = Shard::new(number, count).unwrap().range(n);
                prop_assert_eq!(range.start, end);
                prop_assert!(range.start <= range.end);
                prop_assert!(range.len().abs_diff(n / count) <= BLOCK);
                if n >= BLOCK * count {
                    prop_assert_eq!(range.start % BLOCK, 0);
                }
                end = range.end;
            }
            prop_assert_eq!(end, n);
        }
    }

    #[test]
    fn a_shard_is_written_as_its_number_and_their_count() {
        let shard: Shard = "3/8".parse().unwrap();
        assert_eq!((shard.number(), shard.count(), shard.to_string().as_str()), (3, 8, "3/8"));
        for wrong in ["0/8", "9/8", "3", "3/", "/8", "a/b", "3/8/9", "-1/8", "1/0", "1/100001"] {
            assert!(wrong.parse::<Shard>().is_err(), "{wrong}");
        }
        assert!(Shard::new(MAX_SHARDS, MAX_SHARDS).unwrap().range(MAX_SHARDS).len() <= 1);
    }
}
