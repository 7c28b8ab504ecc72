//! Copies from GPU memory to CPU memory that run while the CPU continues: which of their memory is in use.

use crate::error::Error;
use std::sync::{Arc, Weak};

/// A copy from GPU memory to CPU memory that is under way. When it is dropped, its memory is free for other copies.
#[must_use]
pub(super) struct Download {
    index: usize,
    pub(super) n_bytes: usize,
    _user: Arc<()>,
}

/// The memory of copies, which later copies use again. `M` is the memory of one copy. The copies run in the order in which
/// they begin, so that a copy may begin while the one that had its memory before is still under way.
pub(super) struct Downloads<M> {
    slots: Vec<Slot<M>>,
}

struct Slot<M> {
    memory: M,
    n_bytes: usize,
    /// Upgrades as long as the [`Download`] exists.
    user: Weak<()>,
}

/// The smallest memory of a copy, in bytes: one page.
const MIN_BYTES: usize = 1 << 12;

impl<M> Default for Downloads<M> {
    fn default() -> Self {
        Self { slots: Vec::new() }
    }
}

impl<M> Downloads<M> {
    /// Starts a copy of `n_bytes` bytes: calls `copy` with the memory for it, which may have more bytes. If no memory is
    /// free, allocates some with `allocate`, which takes the number of bytes. This is a power of two, so that there are only
    /// few sizes.
    pub(super) fn begin(
        &mut self,
        n_bytes: usize,
        allocate: impl FnOnce(usize) -> Result<M, Error>,
        copy: impl FnOnce(&mut M) -> Result<(), Error>,
    ) -> Result<Download, Error> {
        let is_free = |slot: &Slot<M>| slot.user.strong_count() == 0 && slot.n_bytes >= n_bytes;
        let free = (0..self.slots.len()).filter(|index| is_free(&self.slots[*index]));
        let index = if let Some(index) = free.min_by_key(|index| self.slots[*index].n_bytes) {
            index
        } else {
            let n_bytes = n_bytes.next_power_of_two().max(MIN_BYTES);
            self.slots.push(Slot { memory: allocate(n_bytes)?, n_bytes, user: Weak::new() });
            self.slots.len() - 1
        };
        let slot = &mut self.slots[index];
        copy(&mut slot.memory)?;
        let user = Arc::new(());
        slot.user = Arc::downgrade(&user);
        Ok(Download { index, n_bytes, _user: user })
    }

    /// Returns the memory of a copy.
    pub(super) fn memory(&self, download: &Download) -> &M {
        &self.slots[download.index].memory
    }

    /// Removes all memory and returns it.
    pub(super) fn drain(&mut self) -> impl Iterator<Item = M> {
        self.slots.drain(..).map(|slot| slot.memory)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn begin(downloads: &mut Downloads<Vec<u8>>, n_bytes: usize) -> Download {
        downloads.begin(n_bytes, |n| Ok(vec![0; n]), |_| Ok(())).expect("enough memory")
    }

    fn sizes(downloads: &mut Downloads<Vec<u8>>) -> Vec<usize> {
        downloads.drain().map(|memory| memory.len()).collect()
    }

    #[test]
    fn the_memory_of_a_dropped_download_is_used_again() {
        let mut downloads = Downloads::default();
        for n_bytes in [5000, 8192, 100, 4097] {
            drop(begin(&mut downloads, n_bytes));
        }
        assert_eq!(sizes(&mut downloads), [8192]);
    }

    #[test]
    fn downloads_under_way_have_their_own_memory() {
        let mut downloads = Downloads::default();
        let (first, second) = (begin(&mut downloads, 5000), begin(&mut downloads, 0));
        assert_ne!(first.index, second.index);
        drop(first);
        // The memory of the second one is too small, and in use.
        let third = begin(&mut downloads, 9000);
        assert_eq!(downloads.memory(&third).len(), 16_384);
        assert_eq!(begin(&mut downloads, 10).n_bytes, 10);
        assert_eq!(sizes(&mut downloads), [8192, 4096, 16_384]);
    }

    #[test]
    fn a_download_that_fails_occupies_no_memory() {
        let mut downloads = Downloads::default();
        let lost = || Err(Error::Cuda { what: "a copy from it", reason: "it is lost".to_owned() });
        for _ in 0..2 {
            assert!(downloads.begin(8, |n| Ok(vec![0; n]), |_| lost()).is_err());
        }
        assert_eq!(sizes(&mut downloads), [4096]);
    }
}
