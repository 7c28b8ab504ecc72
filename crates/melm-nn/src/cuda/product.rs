//! The description of a matrix product.

use super::span::{FloatSpan, Span};

/// Shorter sums of f32 operands are computed in f32. With tf32, a gradient of the tiny ModernBERT of the tests was off by
/// 4.1e-2 on an H200.
pub(super) const MIN_TF32_TERMS: usize = 16;

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
/// With bf16 precision, f32 operands are multiplied in tf32, whose significand has eleven bits, if sums have at least
/// [`MIN_TF32_TERMS`] terms.
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

/// The distances between the matrices of neighbouring products of a batch, in elements.
#[derive(Clone, Copy, PartialEq, Eq)]
struct BatchStrides {
    a: usize,
    b: usize,
    out: usize,
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

    /// Joins neighbouring products of a list into batches where operands and outputs lie at constant distances. A batch
    /// computes the same, and keeps the whole GPU busy where a single product does not.
    pub(super) fn join(products: &[Self]) -> Vec<Self> {
        let mut joined: Vec<Self> = Vec::new();
        let mut previous = None;
        for product in products {
            let batch = joined.last().zip(previous.replace(*product)).and_then(|(batch, last)| {
                let distances = product.distances(&last)?;
                (batch.n_batches == 1 || distances == batch.batch_strides())
                    .then(|| batch.with_another(distances))
            });
            match (batch, joined.last_mut()) {
                (Some(batch), Some(last)) => *last = batch,
                _ => joined.push(*product),
            }
        }
        joined
    }

    /// Returns the distances of the operands and the output from those of another product, in elements. Returns `None` if
    /// the products differ in more than addresses, if one of them is a batch, or if a distance is negative.
    fn distances(&self, other: &Self) -> Option<BatchStrides> {
        let at_other = Self {
            a: Operand { values: other.a.values, ..self.a },
            b: Operand { values: other.b.values, ..self.b },
            out: other.out,
            ..*self
        };
        if at_other != *other || self.n_batches != 1 || self.bias.len() > 0 {
            return None;
        }
        let distance = |own: FloatSpan, others: FloatSpan| {
            let is_alike = own.len == others.len && own.element_size == others.element_size;
            own.distance_from(&others).filter(|_| is_alike)
        };
        Some(BatchStrides {
            a: distance(self.a.values, other.a.values)?,
            b: distance(self.b.values, other.b.values)?,
            out: distance(FloatSpan::from_f32(self.out), FloatSpan::from_f32(other.out))?,
        })
    }

    fn batch_strides(&self) -> BatchStrides {
        let (a, b) = (self.a.batch_stride, self.b.batch_stride);
        BatchStrides { a, b, out: self.out_batch_stride }
    }

    /// Returns the batch with one product more at its end.
    fn with_another(&self, strides: BatchStrides) -> Self {
        let longer = |operand: Operand, stride: usize| {
            let values = FloatSpan { len: operand.values.len + stride, ..operand.values };
            Operand { values, batch_stride: stride, ..operand }
        };
        Self {
            a: longer(self.a, strides.a),
            b: longer(self.b, strides.b),
            out: Span::new(self.out.address, self.out.len() + strides.out),
            out_batch_stride: strides.out,
            n_batches: self.n_batches + 1,
            ..*self
        }
    }

    /// Panics if the operands differ in type, if the bias has not `n` numbers, or if the product would read or write outside
    /// its spans.
    pub(super) fn check(&self) {
        let Self { m, n, k, a, b, n_batches, .. } = *self;
        assert_eq!(a.values.element_size, b.values.element_size, "operands of one type");
        assert!([0, n].contains(&self.bias.len()), "{self:?} has a bias of another length");
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the product of layer `layer`, whose operands and output lie at constant distances.
    fn of_layer(layer: u64) -> Product {
        let operand = |address: u64, row_stride: usize| {
            let values = FloatSpan { address, len: 6 * row_stride, element_size: 2 };
            Operand::new(values, row_stride)
        };
        let (a, b) = (operand(4096 + 100 * layer, 4), operand(8192 + 60 * layer, 5));
        let out = Span::new(16_384 + 400 * layer, 20);
        Product::new(ProductSize { m: 4, n: 5, k: 6 }, a.transposed(), b, out)
    }

    #[test]
    fn products_at_constant_distances_become_one_batch() {
        let joined = Product::join(&[of_layer(1), of_layer(2), of_layer(3)]);
        let [batch] = joined[..] else { panic!("{joined:?}") };
        assert_eq!(batch.n_batches, 3);
        assert_eq!((batch.a.batch_stride, batch.b.batch_stride), (50, 30));
        assert_eq!(batch.out_batch_stride, 100);
        assert_eq!(batch.a.values.address, of_layer(1).a.values.address);
        assert_eq!(batch.out.len(), 220);
        batch.check();
    }

    #[test]
    fn a_bias_has_as_many_numbers_as_the_output_has_columns() {
        let product = of_layer(1);
        product.with_bias(Span::new(4096, 5)).check();
        for len in [1, 4, 6] {
            let product = product.with_bias(Span::new(4096, len));
            assert!(std::panic::catch_unwind(|| product.check()).is_err(), "{len}");
        }
    }

    #[test]
    fn products_that_differ_stay_alone() {
        let (first, second) = (of_layer(1), of_layer(2));
        let after_gap = of_layer(4);
        let joined = Product::join(&[first, second, after_gap]);
        assert_eq!(joined.iter().map(|product| product.n_batches).collect::<Vec<_>>(), [2, 1]);
        assert_eq!(joined[1], after_gap);
        // Addresses that fall, another output mode, another size, another type.
        let larger = Product { n: 4, ..second };
        let values = FloatSpan { element_size: 4, ..second.a.values };
        let plain = Product { a: Operand { values, ..second.a }, ..second };
        for other in [of_layer(0), second.accumulating(true), larger, plain] {
            assert_eq!(Product::join(&[first, other]), [first, other]);
        }
        assert_eq!(Product::join(&[]), []);
    }
}
