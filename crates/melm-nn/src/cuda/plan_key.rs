//! The cache key of cuBLASLt algorithms.

use super::product::Product;

/// When an algorithm is chosen, the number of rows is rounded up to a multiple of this, so that similar numbers of rows
/// use the same algorithm.
const ROW_MULTIPLE: usize = 64;
/// The strictest alignment of addresses, in bytes, that an algorithm may require.
const ALIGNMENT: u32 = 16;

/// All properties of a product on which the choice of an algorithm depends.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct PlanKey {
    sizes: [usize; 3],
    row_strides: [usize; 3],
    /// The number of batches, and the batch strides of `a`, `b` and the output.
    batches: [usize; 4],
    is_transposed: [bool; 2],
    element_size: usize,
    accumulates: bool,
    has_bias: bool,
    /// The alignment that all addresses of the product have, in bytes.
    pub(super) alignment: u32,
}

impl PlanKey {
    pub(super) fn new(product: &Product) -> Self {
        let Product { a, b, .. } = product;
        let addresses = a.values.address | b.values.address | product.out.address;
        let addresses = addresses | product.bias.address;
        let alignment =
            if addresses == 0 { ALIGNMENT } else { 1 << addresses.trailing_zeros().min(4) };
        Self {
            sizes: [product.m, product.n, product.k],
            row_strides: [a.row_stride, b.row_stride, product.out_row_stride],
            batches: [product.n_batches, a.batch_stride, b.batch_stride, product.out_batch_stride],
            is_transposed: [a.is_transposed, b.is_transposed],
            element_size: a.values.element_size,
            accumulates: product.accumulates,
            has_bias: product.bias.len > 0,
            alignment,
        }
    }
}

/// Returns the product with its number of rows rounded up, because the number of rows varies between batches. If the
/// product is the gradient of a weight, the rows are the dimension `k`, over which the product sums.
pub(super) fn round_rows(product: &Product) -> Product {
    let mut rounded = *product;
    if product.a.is_transposed {
        rounded.k = product.k.next_multiple_of(ROW_MULTIPLE);
    } else {
        rounded.m = product.m.next_multiple_of(ROW_MULTIPLE);
        rounded.out_batch_stride = rounded.m * product.out_row_stride;
    }
    rounded
}
