//! Copies parts of a matrix into panels that the tiles read sequentially.

#[cfg(target_arch = "x86_64")]
use crate::isa::IsaKind;
use crate::isa::{Isa, per_isa};

/// The side of the squares in which a block is transposed.
const SIDE: usize = 16;

per_isa! {
    /// Fills the panel `[k, width]` with the first `width` numbers of each row of `from`. The rows of `from` are `step`
    /// apart.
    pub(crate) fn pack_rows(from: &[f32], step: usize, width: usize, panel: &mut [f32]) {
        // The constants are the widths of whole tiles. A copy of constant length compiles to a few moves, any other
        // copy to a call.
        match width {
            48 => copy_rows::<48>(from, step, panel),
            16 => copy_rows::<16>(from, step, panel),
            8 => copy_rows::<8>(from, step, panel),
            6 => copy_rows::<6>(from, step, panel),
            _ => {
                for (k, row) in panel.chunks_exact_mut(width).enumerate() {
                    row.copy_from_slice(&from[k * step..k * step + width]);
                }
            }
        }
    }
}

#[expect(clippy::inline_always, reason = "compiled for the caller's instruction set")]
#[inline(always)]
fn copy_rows<const WIDTH: usize>(from: &[f32], step: usize, panel: &mut [f32]) {
    for (k, row) in panel.as_chunks_mut::<WIDTH>().0.iter_mut().enumerate() {
        if let Some(from) = from[k * step..].first_chunk::<WIDTH>() {
            *row = *from;
        }
    }
}

/// Fills the panel `[k, width]` with the transpose of the first `width` rows of `from`. The rows of `from` are `row`
/// apart.
pub(crate) fn pack_columns(isa: Isa, from: &[f32], row: usize, width: usize, panel: &mut [f32]) {
    #[cfg(target_arch = "x86_64")]
    if isa.kind() == IsaKind::Avx512 {
        return pack_squares(isa, from, row, width, panel);
    }
    let block = PanelBlock { width, breadth: width, depth: panel.len() / width };
    transpose(isa, from, row, block, panel);
}

/// A part of a panel that is `width` wide: the first `breadth` columns of `depth` rows.
#[derive(Clone, Copy)]
struct PanelBlock {
    width: usize,
    breadth: usize,
    depth: usize,
}

/// Transposes whole squares by shuffles in registers, and the remaining elements one by one.
#[cfg(target_arch = "x86_64")]
fn pack_squares(isa: Isa, from: &[f32], row: usize, width: usize, panel: &mut [f32]) {
    let n = panel.len() / width;
    let (whole_k, whole_width) = (n / SIDE * SIDE, width / SIDE * SIDE);
    if n == 0 || width == 0 {
        return;
    }
    assert!((width - 1) * row + n <= from.len());
    for j in (0..whole_width).step_by(SIDE) {
        for k in (0..whole_k).step_by(SIDE) {
            let to = panel[k * width + j..].as_mut_ptr();
            #[expect(unsafe_code, reason = "intrinsics on raw squares")]
            // SAFETY: the square lies inside both matrices, whose extents are checked above, and `isa` guarantees
            // AVX-512.
            unsafe {
                super::avx512::transpose(from[j * row + k..].as_ptr(), row, to, width);
            }
        }
    }
    if whole_k < n {
        let rest = PanelBlock { width, breadth: width, depth: n - whole_k };
        transpose(isa, &from[whole_k..], row, rest, &mut panel[whole_k * width..]);
    }
    if whole_width < width {
        let rest = PanelBlock { width, breadth: width - whole_width, depth: whole_k };
        transpose(isa, &from[whole_width * row..], row, rest, &mut panel[whole_width..]);
    }
}

per_isa! {
    /// Transposes one block of a panel, in small squares that stay in the first-level cache.
    fn transpose(from: &[f32], row: usize, block: PanelBlock, panel: &mut [f32]) {
        let PanelBlock { width, breadth, depth: n } = block;
        for k0 in (0..n).step_by(SIDE) {
            let depth = SIDE.min(n - k0);
            for j0 in (0..breadth).step_by(SIDE) {
                let breadth = SIDE.min(breadth - j0);
                let mut square = [[0.0_f32; SIDE]; SIDE];
                for (j, line) in square.iter_mut().enumerate().take(breadth) {
                    let start = (j0 + j) * row + k0;
                    line[..depth].copy_from_slice(&from[start..start + depth]);
                }
                for k in 0..depth {
                    let out = &mut panel[(k0 + k) * width + j0..][..breadth];
                    for (j, out) in out.iter_mut().enumerate() {
                        *out = square[j][k];
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::pack_columns;
    use crate::isa::{Isa, IsaKind};

    #[test]
    fn a_panel_is_the_transposed_block_whatever_its_size() {
        let row = 53;
        let from: Vec<f32> = (0..50 * row).map(|i| i as f32).collect();
        for kind in [IsaKind::Avx512, IsaKind::Avx2, IsaKind::Scalar] {
            let Some(isa) = Isa::from_kind(kind) else { continue };
            for (width, n) in [(1, 1), (16, 16), (48, 50), (33, 47), (5, 40), (50, 3)] {
                let mut panel = vec![f32::NAN; width * n];
                pack_columns(isa, &from, row, width, &mut panel);
                let wanted: Vec<_> =
                    (0..n).flat_map(|k| (0..width).map(move |j| (j * row + k) as f32)).collect();
                assert_eq!(panel, wanted, "{width} x {n}");
            }
        }
    }
}
