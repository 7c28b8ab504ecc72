//! The description of a matrix product.

use super::span::{FloatSpan, Span};

/// One of the two matrices that a product reads. Both have the same element type.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Operand {
    pub(super) values: FloatSpan,
    /// Elements from one row to the next.
    pub(super) row_stride: usize,
    pub(super) is_transposed: bool,
    /// Elements from one product of a batch to the next.
    pub(super) batch_stride: usize,
}

impl Operand {
    pub(super) fn new(values: FloatSpan, row_stride: usize) -> Self {
        Self { values, row_stride, is_transposed: false, batch_stride: 0 }
    }

    pub(super) fn transposed(self) -> Self {
        Self { is_transposed: true, ..self }
    }

    pub(super) fn with_batch_stride(self, batch_stride: usize) -> Self {
        Self { batch_stride, ..self }
    }
}

/// `out[m, n] (+)= a[m, k] b[k, n] + bias[n]`, `n_batches` times.
///
/// A GPU opened for bf16 multiplies f32 operands in tf32, which keeps eleven bits.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Product {
    pub(super) m: usize,
    pub(super) n: usize,
    pub(super) k: usize,
    pub(super) a: Operand,
    pub(super) b: Operand,
    pub(super) out: Span<f32>,
    pub(super) out_row_stride: usize,
    pub(super) out_batch_stride: usize,
    /// True if the product is added to `out`, false if it overwrites `out`.
    pub(super) accumulates: bool,
    /// Empty if there is no bias.
    pub(super) bias: Span<f32>,
    pub(super) n_batches: usize,
}

/// The sizes of a product `[m, k] [k, n]`.
#[derive(Clone, Copy)]
pub(super) struct ProductSize {
    pub(super) m: usize,
    pub(super) n: usize,
    pub(super) k: usize,
}

impl Product {
    /// One product that overwrites `out`, whose rows follow each other without gaps. No bias.
    pub(super) fn new(size: ProductSize, a: Operand, b: Operand, out: Span<f32>) -> Self {
        let ProductSize { m, n, k } = size;
        Self {
            m,
            n,
            k,
            a,
            b,
            out,
            out_row_stride: n,
            out_batch_stride: 0,
            accumulates: false,
            bias: Span::default(),
            n_batches: 1,
        }
    }

    /// Adds to the output if `accumulates` is true.
    pub(super) fn accumulating(self, accumulates: bool) -> Self {
        Self { accumulates, ..self }
    }

    pub(super) fn with_bias(self, bias: Span<f32>) -> Self {
        Self { bias, ..self }
    }

    /// `n_batches` products, whose outputs follow each other without gaps.
    pub(super) fn batched(self, n_batches: usize) -> Self {
        Self { n_batches, out_batch_stride: self.m * self.n, ..self }
    }

    /// Panics if the operands differ in type, or if the product reads or writes beyond its spans.
    pub(super) fn check(&self) {
        let Self { m, n, k, a, b, n_batches, .. } = *self;
        assert_eq!(a.values.element_size, b.values.element_size, "operands of one type");
        let end = |rows: usize, columns: usize, row: usize, batch: usize| match (rows, columns) {
            (0, _) | (_, 0) => 0,
            _ => (n_batches - 1) * batch + (rows - 1) * row + columns,
        };
        let fits = |operand: &Operand, rows: usize, columns: usize| {
            let (rows, columns) =
                if operand.is_transposed { (columns, rows) } else { (rows, columns) };
            end(rows, columns, operand.row_stride, operand.batch_stride) <= operand.values.len
        };
        let out_fits = end(m, n, self.out_row_stride, self.out_batch_stride) <= self.out.len();
        assert!(fits(&a, m, k) && fits(&b, k, n) && out_fits, "{self:?} exceeds its spans");
    }
}
