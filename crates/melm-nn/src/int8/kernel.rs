//! The innermost loop of an 8-bit product: one tile of exact sums.

use crate::isa::{Isa, IsaKind};

/// The number of products that one instruction adds to a sum. The summed dimension is padded to a multiple of it.
pub(crate) const GROUP: usize = 4;
/// The number of outputs of a panel: the lanes of a 512-bit vector of `i32`.
pub(crate) const LANES: usize = 16;
/// The number of bytes of one step of a panel: [`GROUP`] weights for each of its outputs.
pub(crate) const BLOCK: usize = GROUP * LANES;
/// The largest number of rows of a tile.
pub(crate) const ROWS: usize = 6;
/// The largest number of panels of a tile. With 6 rows of 4 vectors, 24 sums are in registers.
pub(crate) const PANELS: usize = 4;

/// The sums of a tile. Those of a smaller tile are at the start of each row, and those of the first rows.
pub(crate) type Sums = [[i32; PANELS * LANES]; ROWS];

/// One step of a panel: [`GROUP`] weights for each of [`LANES`] outputs. It fills one cache line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C, align(64))]
pub(crate) struct Block(pub(crate) [i8; BLOCK]);

/// One tile: the sum of products of each of its rows with each column of its panels.
#[derive(Clone, Copy)]
pub(crate) struct Int8Tile<'a> {
    /// The activations of the first row, and those of the other rows, `stride` bytes apart.
    pub(crate) rows: &'a [u8],
    pub(crate) stride: usize,
    /// The number of rows, from 1 to [`ROWS`].
    pub(crate) n_rows: usize,
    /// The panels one after the other. Each has `n_steps` blocks.
    pub(crate) panels: &'a [Block],
    /// The number of panels, from 1 to [`PANELS`].
    pub(crate) n_panels: usize,
    /// The summed dimension divided by [`GROUP`].
    pub(crate) n_steps: usize,
}

impl Int8Tile<'_> {
    /// Returns true if the slices contain every element that the sizes describe.
    fn is_valid(&self) -> bool {
        (1..=ROWS).contains(&self.n_rows)
            && (1..=PANELS).contains(&self.n_panels)
            && self.rows.len() >= (self.n_rows - 1) * self.stride + self.n_steps * GROUP
            && self.panels.len() >= self.n_panels * self.n_steps
    }
}

/// The instructions for 8-bit products that this CPU supports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// AVX-512 with VNNI: 64 products in one instruction.
    Vnni,
    /// AVX2: 16 products of widened integers in one instruction.
    Avx2,
    Portable,
}

/// A kernel for tiles that this CPU supports. A value of this type proves that the CPU has the features.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Kernel(Kind);

impl Kernel {
    /// Returns the best kernel within an instruction set.
    pub(crate) fn detect(isa: Isa) -> Self {
        Self(match isa.kind() {
            #[cfg(target_arch = "x86_64")]
            IsaKind::Avx512 if is_x86_feature_detected!("avx512vnni") => Kind::Vnni,
            IsaKind::Avx512 | IsaKind::Avx2 => Kind::Avx2,
            IsaKind::Gemm | IsaKind::Scalar => Kind::Portable,
        })
    }

    /// Returns true if an 8-bit product is several times as fast as one in f32.
    pub(crate) fn is_fast(self) -> bool {
        self.0 == Kind::Vnni
    }

    /// Computes the sums of a tile. Earlier values in `sums` do not matter: those of the tile are overwritten, and the others
    /// are not used.
    ///
    /// # Panics
    /// If the slices of the tile are shorter than its sizes say.
    pub(crate) fn multiply(self, tile: &Int8Tile<'_>, sums: &mut Sums) {
        assert!(tile.is_valid(), "a tile inside its matrices");
        #[cfg(target_arch = "x86_64")]
        #[expect(unsafe_code, reason = "calls the kernel for the detected features")]
        match self.0 {
            // SAFETY: the tile was checked, and this kind exists only where the features were detected.
            Kind::Vnni => unsafe { super::vnni::multiply(tile, sums) },
            // SAFETY: as above.
            Kind::Avx2 => unsafe { super::avx2::multiply(tile, sums) },
            Kind::Portable => portable(tile, sums),
        }
        #[cfg(not(target_arch = "x86_64"))]
        portable(tile, sums);
    }
}

/// Computes the sums of a tile in plain Rust.
fn portable(tile: &Int8Tile<'_>, sums: &mut Sums) {
    for (row, sums) in sums.iter_mut().enumerate().take(tile.n_rows) {
        let x = &tile.rows[row * tile.stride..][..tile.n_steps * GROUP];
        let panels = tile.panels.chunks_exact(tile.n_steps).take(tile.n_panels);
        for (sums, panel) in sums.as_chunks_mut::<LANES>().0.iter_mut().zip(panels) {
            *sums = [0; LANES];
            for (x, Block(weights)) in x.as_chunks::<GROUP>().0.iter().zip(panel) {
                for (sum, weights) in sums.iter_mut().zip(weights.as_chunks::<GROUP>().0) {
                    for (x, weight) in x.iter().zip(weights) {
                        *sum += i32::from(*x) * i32::from(*weight);
                    }
                }
            }
        }
    }
}
