//! What the choice of a cuBLASLt algorithm depends on.

use super::product::Product;

/// Row counts are rounded up to a multiple of this when an algorithm is chosen, so that close counts share one.
const ROW_MULTIPLE: usize = 64;
/// The largest alignment of addresses, in bytes, that algorithms ask for.
const ALIGNMENT: u32 = 16;

/// Everything that the choice of an algorithm depends on.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct PlanKey {
    sizes: [usize; 3],
    row_strides: [usize; 3],
    /// The number of batches and the three strides between them.
    batches: [usize; 4],
    is_transposed: [bool; 2],
    element_size: usize,
    accumulates: bool,
    has_bias: bool,
    /// The alignment of all addresses, in bytes.
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

/// Returns the product with its number of rows rounded up, because rows vary from batch to batch. In the gradient of a
/// weight the rows are the dimension `k` that is summed over.
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
