//! Work that is written down before a machine is asked for it, so that it can be handed over at once.

use super::kernels::Argument;
use super::machine::{Launch, Machine, Product};
use crate::error::Error;
use std::ffi::c_void;
use std::marker::PhantomData;
use std::ops::Range;

/// What a kernel takes by value: where it is, and its size.
#[derive(Clone, Copy)]
pub(super) struct Value<'a> {
    at: *const c_void,
    size: usize,
    of: PhantomData<&'a ()>,
}

impl<'a> Value<'a> {
    pub(super) fn of<T: Argument>(value: &'a T) -> Self {
        Self { at: std::ptr::from_ref(value).cast(), size: size_of::<T>(), of: PhantomData }
    }

    pub(super) fn pointer(&self) -> *mut c_void {
        self.at.cast_mut()
    }
}

/// What a script is for. Scripts of one bucket mostly differ in what kernels take, not in which they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Bucket {
    pub(super) what: &'static str,
    /// Where the model is.
    pub(super) weights: u64,
    pub(super) sizes: [usize; 3],
}

/// One thing that is asked of a machine.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Entry {
    /// A kernel, and which of the script's values it takes.
    Launch(Launch, Range<usize>),
    Product(Product),
    Copy {
        from: u64,
        to: u64,
        n_bytes: usize,
    },
    Clear {
        at: u64,
        n_bytes: usize,
    },
}

/// Kernels, products, copies within the machine and zeros, in order.
#[derive(Default)]
pub(super) struct Script {
    entries: Vec<Entry>,
    /// The values of all kernels; each begins with a word of its own, at one of `starts`.
    words: Vec<u64>,
    starts: Vec<usize>,
}

impl Script {
    pub(super) fn entries(&self) -> &[Entry] {
        &self.entries
    }

    pub(super) fn push(&mut self, entry: Entry) {
        self.entries.push(entry);
    }

    pub(super) fn push_launch(&mut self, launch: Launch, values: &[Value<'_>]) {
        let first = self.starts.len();
        for value in values {
            let start = self.words.len();
            self.starts.push(start);
            self.words.resize(start + value.size.div_ceil(size_of::<u64>()), 0);
            #[expect(unsafe_code, reason = "values of all kinds are kept as their bytes")]
            // SAFETY: the value has so many bytes, by its trait none of them padding, and so has the room just made.
            unsafe {
                let to = self.words[start..].as_mut_ptr().cast::<u8>();
                std::ptr::copy_nonoverlapping(value.at.cast::<u8>(), to, value.size);
            }
        }
        self.entries.push(Entry::Launch(launch, first..self.starts.len()));
    }

    /// The bytes of some values.
    fn words_of(&self, values: &Range<usize>) -> &[u64] {
        let at = |index: usize| self.starts.get(index).copied().unwrap_or(self.words.len());
        &self.words[at(values.start)..at(values.end)]
    }

    /// Where some values are.
    pub(super) fn pointers(&self, values: &Range<usize>) -> Vec<*mut c_void> {
        let at = |start: &usize| self.words[*start..].as_ptr().cast_mut().cast();
        self.starts[values.clone()].iter().map(at).collect()
    }

    /// Whether it has the same kernels, which may take other values, and all else is equal.
    pub(super) fn is_like(&self, other: &Self) -> bool {
        let is_like = |(own, others): (&Entry, &Entry)| match (own, others) {
            (Entry::Launch(own, _), Entry::Launch(others, _)) => {
                own.function == others.function && own.n_threads == others.n_threads
            }
            (own, others) => own == others,
        };
        self.entries.len() == other.entries.len()
            && self.starts == other.starts
            && self.entries.iter().zip(&other.entries).all(is_like)
    }

    /// The entries whose kernels take something else than those of a script that is like this one.
    pub(super) fn changes<'a>(
        &'a self,
        other: &'a Self,
    ) -> impl Iterator<Item = (usize, Launch, Vec<*mut c_void>)> {
        self.entries.iter().zip(&other.entries).enumerate().filter_map(|(index, pair)| match pair {
            (Entry::Launch(own, values), Entry::Launch(others, theirs))
                if own.grid != others.grid || self.words_of(values) != other.words_of(theirs) =>
            {
                Some((index, *own, self.pointers(values)))
            }
            _ => None,
        })
    }

    /// Takes over what kernels take in a script that is like this one.
    #[cfg(feature = "emulated")]
    pub(super) fn follow(&mut self, other: &Self) {
        let changes: Vec<_> = other.changes(self).map(|(index, ..)| index).collect();
        for index in changes {
            let Entry::Launch(_, values) = self.entries[index].clone() else { continue };
            let start = self.starts[values.start];
            let words = other.words_of(&values);
            self.words[start..start + words.len()].copy_from_slice(words);
            self.entries[index] = other.entries[index].clone();
        }
    }

    /// Asks for all of it, one after the other.
    pub(super) fn run(&self, machine: &dyn Machine) -> Result<(), Error> {
        self.entries.iter().try_for_each(|entry| match entry {
            Entry::Launch(launch, values) => machine.launch(*launch, &mut self.pointers(values)),
            Entry::Product(product) => machine.product(product),
            Entry::Copy { from, to, n_bytes } => machine.copy(*from, *to, *n_bytes),
            Entry::Clear { at, n_bytes } => machine.clear(*at, *n_bytes),
        })
    }
}
