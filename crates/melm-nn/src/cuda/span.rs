//! Arrays in GPU memory, given by address and length.

use std::marker::PhantomData;
use std::ops::Range;

/// An array of `T` in GPU memory, in the form that kernels take (`Span` in `common.cuh`).
#[repr(C)]
#[derive(Debug, PartialEq)]
pub(super) struct Span<T> {
    pub(super) address: u64,
    pub(super) len: u64,
    element: PhantomData<T>,
}

impl<T> Clone for Span<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Span<T> {}

impl<T> Default for Span<T> {
    fn default() -> Self {
        Self::new(0, 0)
    }
}

impl<T> Span<T> {
    pub(super) fn new(address: u64, len: usize) -> Self {
        Self { address, len: len as u64, element: PhantomData }
    }

    pub(super) fn len(&self) -> usize {
        usize::try_from(self.len).expect("made from a usize")
    }

    pub(super) fn n_bytes(&self) -> usize {
        self.len() * size_of::<T>()
    }

    /// Returns the elements in `range`. Panics if the range is not inside the span.
    pub(super) fn slice(&self, range: Range<usize>) -> Self {
        assert!(range.start <= range.end && range.end <= self.len(), "{range:?} of {}", self.len);
        Self::new(self.address + (range.start * size_of::<T>()) as u64, range.len())
    }

    /// Returns the first `len` elements. Panics if there are fewer.
    pub(super) fn first(&self, len: usize) -> Self {
        self.slice(0..len)
    }
}

/// An array of floats in GPU memory whose type is known only at run time: bf16 (two bytes) or f32 (four bytes).
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct FloatSpan {
    pub(super) address: u64,
    pub(super) len: usize,
    /// The size of one float, in bytes.
    pub(super) element_size: usize,
}

impl FloatSpan {
    pub(super) fn from_f32(span: Span<f32>) -> Self {
        Self { address: span.address, len: span.len(), element_size: size_of::<f32>() }
    }

    pub(super) fn is_f32(&self) -> bool {
        self.element_size == size_of::<f32>()
    }

    /// Returns the elements in `range`. Panics if the range is not inside the span.
    pub(super) fn slice(&self, range: Range<usize>) -> Self {
        assert!(range.start <= range.end && range.end <= self.len, "{range:?} of {}", self.len);
        let address = self.address + (range.start * self.element_size) as u64;
        Self { address, len: range.len(), element_size: self.element_size }
    }

    pub(super) fn n_bytes(&self) -> usize {
        self.len * self.element_size
    }

    /// Returns the distance from the start of another array to the start of this one, in elements. Returns `None` if this
    /// array starts before the other one, or not a whole number of elements after it.
    pub(super) fn distance_from(&self, other: &Self) -> Option<usize> {
        let n_bytes = usize::try_from(self.address.checked_sub(other.address)?).ok()?;
        n_bytes.is_multiple_of(self.element_size).then_some(n_bytes / self.element_size)
    }

    /// Returns the distance from the start of each array to that of the next one, in elements; 0 for a single array.
    ///
    /// # Panics
    /// If the distances differ, or if an array starts before the one before it.
    pub(super) fn constant_distance(spans: &[Self]) -> usize {
        let mut distances = spans.windows(2).map(|pair| pair[1].distance_from(&pair[0]));
        let first = distances.next().map_or(0, |distance| distance.expect("arrays in order"));
        assert!(distances.all(|distance| distance == Some(first)), "arrays at a constant distance");
        first
    }

    /// Returns the span as a kernel argument of type `Span<product_t>`. Each kernel is compiled for one `product_t`, so
    /// the element type `u16` of the returned span is not used.
    pub(super) fn argument(&self) -> Span<u16> {
        Span::new(self.address, self.len)
    }
}

#[cfg(test)]
mod tests {
    use super::{FloatSpan, Span};

    fn at(addresses: &[u64]) -> Vec<FloatSpan> {
        addresses.iter().map(|address| FloatSpan::from_f32(Span::new(*address, 2))).collect()
    }

    #[test]
    fn arrays_at_a_constant_distance() {
        assert_eq!(FloatSpan::constant_distance(&at(&[64])), 0);
        assert_eq!(FloatSpan::constant_distance(&at(&[64, 80, 96])), 4);
    }

    #[test]
    #[should_panic(expected = "constant distance")]
    fn other_distances_are_refused() {
        FloatSpan::constant_distance(&at(&[64, 80, 100]));
    }
}
