//! Handing each task its own part of some arrays, checked once instead of at every use.

use crate::device::Cpu;
use std::marker::PhantomData;

/// Where one array is cut.
#[derive(Clone, Copy)]
enum Cuts<'a> {
    Every(usize),
    At(&'a [usize]),
}

/// An array cut into one part a task.
pub(crate) struct Split<'a> {
    data: *mut f32,
    len: usize,
    cuts: Cuts<'a>,
    owner: PhantomData<&'a mut [f32]>,
}

impl<'a> Split<'a> {
    /// Parts of `width`, the last one perhaps shorter.
    pub(crate) fn every(data: &'a mut [f32], width: usize) -> Self {
        Self::new(data, Cuts::Every(width))
    }

    /// Part `i` from `cuts[i]` to `cuts[i + 1]`.
    pub(crate) fn at(data: &'a mut [f32], cuts: &'a [usize]) -> Self {
        assert!(cuts.is_sorted() && cuts.last().is_none_or(|last| *last <= data.len()));
        Self::new(data, Cuts::At(cuts))
    }

    fn new(data: &'a mut [f32], cuts: Cuts<'a>) -> Self {
        Self { data: data.as_mut_ptr(), len: data.len(), cuts, owner: PhantomData }
    }
}

#[expect(unsafe_code, reason = "parts go to different threads")]
// SAFETY: `Cpu::each` hands out every part once, parts do not overlap, and `f32` is `Send`.
unsafe impl Sync for Split<'_> {}

/// One array or several, cut for the same tasks.
pub(crate) trait Parts: Sync {
    /// What a task gets.
    type Part;

    /// The part of one task.
    ///
    /// # Safety
    /// At most once for every `index`.
    #[expect(unsafe_code, reason = "aliasing is the caller's to exclude")]
    unsafe fn part(&self, index: usize) -> Self::Part;
}

impl<'a> Parts for Split<'a> {
    type Part = &'a mut [f32];

    #[expect(unsafe_code, reason = "one part of the array")]
    unsafe fn part(&self, index: usize) -> &'a mut [f32] {
        let (start, end) = match self.cuts {
            Cuts::Every(width) => {
                ((index * width).min(self.len), ((index + 1) * width).min(self.len))
            }
            Cuts::At(cuts) => (cuts[index], cuts[index + 1]),
        };
        // SAFETY: start <= end <= len by construction; the parts of different indices do not overlap.
        unsafe { std::slice::from_raw_parts_mut(self.data.wrapping_add(start), end - start) }
    }
}

macro_rules! tuple {
    ($($name:ident $index:tt),*) => {
        impl<$($name: Parts),*> Parts for ($($name,)*) {
            type Part = ($($name::Part,)*);

            #[expect(unsafe_code, reason = "passes the promise on")]
            unsafe fn part(&self, index: usize) -> Self::Part {
                // SAFETY: the caller's promise.
                unsafe { ($(self.$index.part(index),)*) }
            }
        }
    };
}
tuple!(A 0, B 1);
tuple!(A 0, B 1, C 2);
tuple!(A 0, B 1, C 2, D 3);

impl Cpu {
    #[expect(clippy::needless_pass_by_value, reason = "parts can be handed out once only")]
    /// Runs `task(index, worker, part)` for every index, shared out among the threads.
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
