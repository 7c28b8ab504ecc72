//! Splits one or more arrays into mutable parts, one for each task. The bounds are checked once.

use crate::device::Cpu;
use std::marker::PhantomData;
use std::ops::Range;

/// The boundaries between the parts of an array.
#[derive(Clone, Copy)]
enum Boundaries<'a> {
    Every(usize),
    At(&'a [usize]),
}

/// An array that is split into one part for each task.
pub(crate) struct Split<'a> {
    data: *mut f32,
    len: usize,
    boundaries: Boundaries<'a>,
    owner: PhantomData<&'a mut [f32]>,
}

impl<'a> Split<'a> {
    /// Splits into parts of `width`. The last part may be shorter.
    pub(crate) fn every(data: &'a mut [f32], width: usize) -> Self {
        Self::new(data, Boundaries::Every(width))
    }

    /// Splits at `offsets`: part `i` goes from `offsets[i]` to `offsets[i + 1]`.
    pub(crate) fn at(data: &'a mut [f32], offsets: &'a [usize]) -> Self {
        assert!(offsets.is_sorted() && offsets.last().is_none_or(|last| *last <= data.len()));
        Self::new(data, Boundaries::At(offsets))
    }

    fn new(data: &'a mut [f32], boundaries: Boundaries<'a>) -> Self {
        Self { data: data.as_mut_ptr(), len: data.len(), boundaries, owner: PhantomData }
    }
}

#[expect(unsafe_code, reason = "parts go to different threads")]
// SAFETY: `Cpu::each` requests every part once, parts do not overlap, and `f32` is `Send`.
unsafe impl Sync for Split<'_> {}

/// One or more arrays that are split for the same tasks.
pub(crate) trait Parts: Sync {
    /// The type of one part.
    type Part;

    /// Returns the part of task `index`.
    ///
    /// # Safety
    /// Must be called at most once for every `index`.
    #[expect(unsafe_code, reason = "the caller excludes aliasing")]
    unsafe fn part(&self, index: usize) -> Self::Part;
}

impl<'a> Parts for Split<'a> {
    type Part = &'a mut [f32];

    #[expect(unsafe_code, reason = "one part of the array")]
    unsafe fn part(&self, index: usize) -> &'a mut [f32] {
        let (start, end) = match self.boundaries {
            Boundaries::Every(width) => {
                // Saturating, because a product that wraps around would give a part that overlaps another one.
                let start = index.saturating_mul(width).min(self.len);
                (start, start.saturating_add(width).min(self.len))
            }
            Boundaries::At(offsets) => (offsets[index], offsets[index + 1]),
        };
        // SAFETY: start <= end <= len by construction, and the parts of different indices do not overlap.
        unsafe { std::slice::from_raw_parts_mut(self.data.wrapping_add(start), end - start) }
    }
}

/// A matrix whose rows are shared out among tasks by columns.
pub(crate) struct Cells<'a> {
    data: *mut f32,
    len: usize,
    row: usize,
    owner: PhantomData<&'a mut [f32]>,
}

#[expect(unsafe_code, reason = "tasks write disjoint cells of one matrix")]
// SAFETY: the pointer is only used to write the cells of the tasks, which do not overlap, and `f32` is `Send`.
unsafe impl Sync for Cells<'_> {}

impl<'a> Cells<'a> {
    /// Shares out a matrix with rows of `row` numbers.
    pub(crate) fn new(data: &'a mut [f32], row: usize) -> Self {
        Self { data: data.as_mut_ptr(), len: data.len(), row, owner: PhantomData }
    }

    /// Returns some columns of a row.
    ///
    /// # Safety
    /// Two results that exist at the same time must not overlap.
    ///
    /// # Panics
    /// If the matrix has no such cells.
    #[expect(unsafe_code, reason = "the caller excludes aliasing")]
    #[expect(clippy::mut_from_ref, reason = "each task requests only its own cells")]
    pub(crate) unsafe fn part(&self, row: usize, columns: Range<usize>) -> &mut [f32] {
        let start = row * self.row + columns.start;
        assert!(columns.end <= self.row && start + columns.len() <= self.len);
        // SAFETY: the cells are inside the matrix, and the caller guarantees that they belong to nobody else.
        unsafe { std::slice::from_raw_parts_mut(self.data.add(start), columns.len()) }
    }
}

macro_rules! tuple {
    ($($name:ident $index:tt),*) => {
        impl<$($name: Parts),*> Parts for ($($name,)*) {
            type Part = ($($name::Part,)*);

            #[expect(unsafe_code, reason = "passes the promise on")]
            unsafe fn part(&self, index: usize) -> Self::Part {
                // SAFETY: the caller calls this at most once for every index.
                unsafe { ($(self.$index.part(index),)*) }
            }
        }
    };
}
tuple!(A 0, B 1);
tuple!(A 0, B 1, C 2);
tuple!(A 0, B 1, C 2, D 3);

impl Cpu {
    #[expect(clippy::needless_pass_by_value, reason = "each part may be given out only once")]
    /// Runs `task(index, worker, part)` for every index below `n_tasks`, on all threads.
    pub(crate) fn each<P: Parts>(
        &self,
        n_tasks: usize,
        parts: P,
        task: impl Fn(usize, usize, P::Part) + Sync,
    ) {
        let parts = &parts;
        self.pool().run(n_tasks, &|index, worker| {
            #[expect(unsafe_code, reason = "takes one part")]
            // SAFETY: the pool runs every index once.
            let part = unsafe { parts.part(index) };
            task(index, worker, part);
        });
    }
}

#[cfg(test)]
mod tests {
    use super::Split;
    use crate::device::Cpu;

    #[test]
    fn every_element_belongs_to_one_task() {
        let (mut a, mut b) = (vec![0.0; 10], vec![0.0; 7]);
        let parts = (Split::every(&mut a, 4), Split::at(&mut b, &[0, 0, 5, 7]));
        Cpu::new(2).each(3, parts, |index, _, (a, b)| {
            a.iter_mut().chain(b).for_each(|x| *x += index as f32 + 1.0);
        });
        assert_eq!(a, [1.0, 1.0, 1.0, 1.0, 2.0, 2.0, 2.0, 2.0, 3.0, 3.0]);
        assert_eq!(b, [2.0, 2.0, 2.0, 2.0, 2.0, 3.0, 3.0]);
    }
}
