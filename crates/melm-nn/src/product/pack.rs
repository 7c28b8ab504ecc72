//! Copies parts of a matrix into panels that the tiles read front to back.

use crate::isa::per_isa;

per_isa! {
    /// Panel `[k, width]` from `width` neighbours in each of the rows of `from`, which are `step` apart.
    pub(crate) fn pack_rows(from: &[f32], step: usize, width: usize, panel: &mut [f32]) {
        for (k, row) in panel.chunks_exact_mut(width).enumerate() {
            row.copy_from_slice(&from[k * step..k * step + width]);
        }
    }
}

per_isa! {
    /// Panel `[k, width]` from the starts of `width` rows of `from`, which are `row` apart: a transposition.
    pub(crate) fn pack_columns(from: &[f32], row: usize, width: usize, panel: &mut [f32]) {
        const SIDE: usize = 16;
        let n = panel.len() / width;
        for k0 in (0..n).step_by(SIDE) {
            let depth = SIDE.min(n - k0);
            for j0 in (0..width).step_by(SIDE) {
                let breadth = SIDE.min(width - j0);
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
