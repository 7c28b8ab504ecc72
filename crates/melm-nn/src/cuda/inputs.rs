//! What the kernels read of a batch.

use super::Block;
use super::machine::Span;
use super::memory::{Parcel, Plain};
use super::n32;
use super::program::attention_block;
use crate::config::Config;
use crate::packed::Packed;

/// Where a row belongs, as `common.cuh` has it.
#[derive(Clone, Copy)]
pub(super) struct Place {
    sentence: u64,
    position: u32,
}

impl Plain for Place {
    fn put(&self, bytes: &mut Vec<u8>) {
        self.sentence.put(bytes);
        u64::from(self.position).put(bytes);
    }
}

/// A block's queries or keys, as `attention.cu` has it.
#[derive(Clone, Copy)]
pub(super) struct Task {
    start: u32,
    length: u32,
    first: u32,
    sentence: u64,
}

impl Plain for Task {
    fn put(&self, bytes: &mut Vec<u8>) {
        for number in [self.start, self.length, self.first, 0] {
            number.put(bytes);
        }
        self.sentence.put(bytes);
    }
}

/// Rows of a batch are a multiple of this: batches of about one length then have the same products.
const ROWS: usize = 32;
/// Masked positions of a batch are a multiple of this; of the second where they are fewer, since their errors are kept.
const POSITIONS: [usize; 2] = [32, 8];
/// The key of the sentence that fills a batch up; it has no loss, so that its gradient is zero.
const FILLING: u64 = u64::MAX;

/// The rows of a batch with those that fill it up.
pub(super) fn filled_rows(batch: &Packed) -> usize {
    batch.n_rows().next_multiple_of(ROWS)
}

/// Masked positions and what stood there, with some that fill them up: of the first row, without an original.
pub(super) fn filled_positions<'a>(
    positions: &'a [usize],
    originals: &'a [u32],
) -> (usize, impl Iterator<Item = u32> + 'a, impl Iterator<Item = u32> + 'a) {
    let unit = POSITIONS[usize::from(positions.len() < POSITIONS[0])];
    let m = positions.len().next_multiple_of(unit);
    let positions = positions.iter().map(|row| n32(*row)).chain(std::iter::repeat(0)).take(m);
    let originals = originals.iter().copied().chain(std::iter::repeat(NO_PIECE)).take(m);
    (m, positions, originals)
}

/// `head.cu`'s word for no piece.
pub(super) const NO_PIECE: u32 = u32::MAX;

/// What the kernels read of a batch.
#[derive(Clone, Copy)]
pub(super) struct Inputs {
    pub(super) pieces: Span<u32>,
    pub(super) places: Span<Place>,
    pub(super) starts: Span<u32>,
    pub(super) tasks: Span<Task>,
    pub(super) n_sentences: usize,
    pub(super) longest: usize,
}

impl Inputs {
    /// Packs a batch, filled up; [`Self::placed`] says where it came to lie.
    pub(super) fn pack(config: &Config, batch: &Packed, parcel: &mut Parcel) -> Self {
        let (n_sentences, n) = (batch.n_sentences(), filled_rows(batch));
        let filling = batch.n_rows()..n;
        let (_, n_queries) = attention_block(config.hidden_size / config.n_heads);
        let rows = || (0..n_sentences).map(|sentence| (sentence, batch.rows(sentence)));
        let places =
            batch.places().map(|(sentence, position)| Place { sentence, position: n32(position) });
        let filled = Place { sentence: FILLING, position: 0 };
        let sentences = rows().map(|(sentence, rows)| (batch.key(sentence), rows));
        let sentences = sentences.chain([(FILLING, filling.clone())]);
        let tasks = sentences.flat_map(|(sentence, rows)| {
            let (start, length) = (n32(rows.start), n32(rows.len()));
            (0..length).step_by(n_queries).map(move |first| Task { start, length, first, sentence })
        });
        Self {
            pieces: parcel.put(batch.pieces().iter().copied().chain(filling.clone().map(|_| 0))),
            places: parcel.put(places.chain(filling.map(|_| filled))),
            starts: parcel
                .put(rows().map(|(_, rows)| n32(rows.start)).chain([n32(batch.n_rows())])),
            tasks: parcel.put(tasks),
            n_sentences,
            longest: rows().map(|(_, rows)| rows.len()).max().unwrap_or(0),
        }
    }

    pub(super) fn placed(self, block: &Block) -> Self {
        Self {
            pieces: Parcel::placed(self.pieces, block),
            places: Parcel::placed(self.places, block),
            starts: Parcel::placed(self.starts, block),
            tasks: Parcel::placed(self.tasks, block),
            ..self
        }
    }
}
