//! The description of a matrix product.

use super::span::{FloatSpan, Span};

/// One of the two input matrices of a product. Both inputs have the same element type.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Operand {
    pub(super) values: FloatSpan,
    /// The number of elements from the start of one row to the start of the next.
    pub(super) row_stride: usize,
    pub(super) is_transposed: bool,
    /// The number of elements from the matrix of one product in a batch to the matrix of the next.
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

/// A batch of `n_batches` products `out[m, n] = a[m, k] b[k, n] + bias[n]`. The result can also be added to `out`.
///
/// With bf16 precision, f32 operands are multiplied in tf32, whose significand has eleven bits.
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
    /// The bias; empty if there is none.
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
    /// Creates a single product without bias that overwrites `out`. The rows of `out` are contiguous.
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

    /// Returns the product, changed to add to its output if `accumulates` is true.
    pub(super) fn accumulating(self, accumulates: bool) -> Self {
        Self { accumulates, ..self }
    }

    pub(super) fn with_bias(self, bias: Span<f32>) -> Self {
        Self { bias, ..self }
    }

    /// Returns a batch of `n_batches` products whose outputs are contiguous.
    pub(super) fn batched(self, n_batches: usize) -> Self {
        Self { n_batches, out_batch_stride: self.m * self.n, ..self }
    }

    /// Panics if the operands differ in type, or if the product would read or write outside its spans.
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
