//! Products small enough for the cache of one thread: nothing is packed, nothing is shared out.

use super::{Extent, Left, Out, Right, Shape, Tile, extent, multiply};
use crate::isa::Isa;

/// `out (+)= left * right` on the calling thread; `right` is read row by row.
pub(crate) fn small_product(
    isa: Isa,
    shape: Shape,
    left: Left<'_>,
    right: Right<'_>,
    out: Out<'_>,
) {
    small_product_ahead(isa, shape, (left, right), out, &[]);
}

/// As [`small_product`], fetching `ahead` from memory meanwhile: what the caller will multiply next.
pub(crate) fn small_product_ahead(
    isa: Isa,
    shape: Shape,
    (left, right): (Left<'_>, Right<'_>),
    out: Out<'_>,
    ahead: &[f32],
) {
    let Shape { m, k, n } = shape;
    let Out { data, row: c_row, accumulates } = out;
    if m == 0 || n == 0 || k == 0 {
        return;
    }
    assert!(right.column == 1, "a right matrix read across has to be packed first");
    assert!((m - 1) * left.row + (k - 1) * left.step < left.data.len());
    assert!((k - 1) * right.step + n <= right.data.len());
    assert!(n <= c_row && (m - 1) * c_row + n <= data.len());
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
