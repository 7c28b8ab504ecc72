//! Matrix products that are small enough for the cache of one thread. They pack no panels and run on the calling
//! thread.

use super::{Extent, Left, Out, Right, Shape, Tile, extent, is_inside, multiply};
use crate::isa::Isa;

/// Computes `out = left * right` or `out += left * right` on the calling thread. `right` must be stored in rows.
pub(crate) fn small_product(
    isa: Isa,
    shape: Shape,
    left: Left<'_>,
    right: Right<'_>,
    out: Out<'_>,
) {
    small_product_ahead(isa, shape, left, right, out, &[]);
}

/// Like [`small_product`], but also prefetches `ahead`, the data that the caller multiplies next.
pub(crate) fn small_product_ahead(
    isa: Isa,
    shape: Shape,
    left: Left<'_>,
    right: Right<'_>,
    out: Out<'_>,
    ahead: &[f32],
) {
    let Shape { m, k, n } = shape;
    let Out { data, row: c_row, accumulates } = out;
    if m == 0 || n == 0 || k == 0 {
        return;
    }
    assert!(right.column == 1, "a right matrix stored by columns has to be packed first");
    assert!(left.contains(m, k) && right.contains(k, n));
    assert!(n <= c_row && is_inside(data.len(), [m, n], [c_row, 1]));
    #[cfg(any(feature = "gemm_products", not(target_arch = "x86_64")))]
    if isa.kind() == crate::isa::IsaKind::Gemm {
        let out = Out { data, row: c_row, accumulates };
        return super::gemm_products::small_product(shape, left, right, out);
    }
    let Extent { rows, columns } = extent(isa);
    let n_steps = k * n.div_ceil(columns) * m.div_ceil(rows);
    let ahead_step = ahead.len().div_ceil(n_steps);
    let mut next = ahead.as_ptr();
    for column in (0..n).step_by(columns) {
        for row in (0..m).step_by(rows) {
            let tile = Tile {
                k,
                a: left.data[row * left.row..].as_ptr(),
                a_row: left.row,
                a_k: left.step,
                b: right.data[column..].as_ptr(),
                b_k: right.step,
                c: data[row * c_row + column..].as_mut_ptr(),
                c_row,
                rows: rows.min(m - row),
                columns: columns.min(n - column),
                ahead: next,
                ahead_step,
                accumulates,
            };
            next = next.wrapping_add(ahead_step * k);
            #[expect(unsafe_code, reason = "the tile is raw")]
            // SAFETY: the three matrices were checked against the shape above.
            unsafe {
                multiply(isa, &tile);
            }
        }
    }
}
