//! The lists of a batch that kernels read: pieces, positions and attention tiles.

use super::kernels::Grid;
use super::memory::{DeviceBuffer, Staged, StagingBuffer, ToBytes};
use super::program::AttentionBlock;
use super::settings::Precision;
use super::span::Span;
use super::to_u32;
use crate::config::Config;
use crate::packed::Packed;

/// The sentence of a row, and the row's position in the sentence (`Place` in `common.cuh`).
#[derive(Clone, Copy)]
pub(super) struct RowPosition {
    sentence: u64,
    position: u32,
}

impl ToBytes for RowPosition {
    fn append(&self, bytes: &mut Vec<u8>) {
        self.sentence.append(bytes);
        u64::from(self.position).append(bytes);
    }
}

/// The queries or keys that one thread block of attention processes (`Task` in `heads.cuh`).
#[derive(Clone, Copy)]
pub(super) struct AttentionTile {
    start: u32,
    length: u32,
    first: u32,
    sentence: u64,
}

impl ToBytes for AttentionTile {
    fn append(&self, bytes: &mut Vec<u8>) {
        for number in [self.start, self.length, self.first, 0] {
            number.append(bytes);
        }
        self.sentence.append(bytes);
    }
}

/// The number of rows of a batch is padded to a multiple of this, so that batches of similar size have products of the
/// same shape.
const ROW_MULTIPLE: usize = 32;
/// The number of masked positions is padded to a multiple of the first number, or of the second if there are fewer
/// positions than the first number. The second is smaller, because the errors of padding positions take memory too.
const POSITION_MULTIPLES: [usize; 2] = [32, 8];
/// The key of the sentence made of padding rows. This sentence has no loss, so its gradient is zero.
const PADDING_KEY: u64 = u64::MAX;

/// The piece id that means "no piece" (also in `head.cu`).
pub(super) const NO_PIECE: u32 = u32::MAX;

/// Returns the number of rows of a batch, including padding.
pub(super) fn n_padded_rows(batch: &Packed) -> usize {
    batch.n_rows().next_multiple_of(ROW_MULTIPLE)
}

/// Returns the number of masked positions, including padding.
pub(super) fn n_padded_positions(n_positions: usize) -> usize {
    let multiple = POSITION_MULTIPLES[usize::from(n_positions < POSITION_MULTIPLES[0])];
    n_positions.next_multiple_of(multiple)
}

/// Pads a list with `filler` up to `len` items.
pub(super) fn pad<T: Copy>(
    list: impl Iterator<Item = T>,
    filler: T,
    len: usize,
) -> impl Iterator<Item = T> {
    list.chain(std::iter::repeat(filler)).take(len)
}

/// The lists of a batch, in GPU memory.
#[derive(Clone, Copy)]
pub(super) struct Inputs {
    pub(super) pieces: Span<u32>,
    pub(super) row_positions: Span<RowPosition>,
    pub(super) sentence_starts: Span<u32>,
    pub(super) tiles: Span<AttentionTile>,
    /// The frequencies of rotary positions, `[layers, head / 2]`; empty if the model has none.
    pub(super) frequencies: Span<f32>,
    pub(super) n_sentences: usize,
    /// The number of rows of the longest sentence.
    pub(super) max_length: usize,
    /// The attention kernels of the model.
    pub(super) block: AttentionBlock,
}

impl Inputs {
    /// Returns the grid of the attention kernels, with `n_parts` blocks in z.
    pub(super) fn attention_grid(&self, config: &Config, n_parts: usize) -> Grid {
        Grid::new([self.tiles.len(), config.n_heads, n_parts], self.block.n_threads)
    }
}

/// The lists of a batch, in a staging buffer.
pub(super) struct StagedInputs {
    pieces: Staged<u32>,
    row_positions: Staged<RowPosition>,
    sentence_starts: Staged<u32>,
    tiles: Staged<AttentionTile>,
    frequencies: Staged<f32>,
    n_sentences: usize,
    max_length: usize,
    block: AttentionBlock,
}

impl StagedInputs {
    /// Pads the batch and appends its lists to a staging buffer.
    pub(super) fn new(
        config: &Config,
        precision: Precision,
        batch: &Packed,
        staging: &mut StagingBuffer,
    ) -> Self {
        let (n_sentences, n_rows) = (batch.n_sentences(), n_padded_rows(batch));
        let padding_rows = batch.n_rows()..n_rows;
        let rows = || (0..n_sentences).map(|sentence| (sentence, batch.rows(sentence)));
        let max_length = rows().map(|(_, rows)| rows.len()).max().unwrap_or(0);
        let block = AttentionBlock::new(config, precision);
        let row_positions = batch
            .places()
            .map(|(sentence, position)| RowPosition { sentence, position: to_u32(position) });
        let padding = RowPosition { sentence: PADDING_KEY, position: 0 };
        let sentences = rows().map(|(sentence, rows)| (batch.key(sentence), rows));
        let sentences = sentences.chain([(PADDING_KEY, padding_rows)]);
        let tiles = sentences.flat_map(|(sentence, rows)| {
            let (start, length) = (to_u32(rows.start), to_u32(rows.len()));
            (0..length).step_by(block.n_rows).map(move |first| AttentionTile {
                start,
                length,
                first,
                sentence,
            })
        });
        let starts = rows().map(|(_, rows)| to_u32(rows.start)).chain([to_u32(batch.n_rows())]);
        Self {
            pieces: staging.push(pad(batch.pieces().iter().copied(), 0, n_rows)),
            row_positions: staging.push(pad(row_positions, padding, n_rows)),
            sentence_starts: staging.push(starts),
            tiles: staging.push(tiles),
            frequencies: staging.push(frequencies(config)),
            n_sentences,
            max_length,
            block,
        }
    }

    /// Returns the number of rows of the longest sentence.
    pub(super) fn max_length(&self) -> usize {
        self.max_length
    }

    /// Returns true if attention is computed by the kernels on tensor cores.
    pub(super) fn uses_tensor_cores(&self) -> bool {
        self.block.uses_tensor_cores
    }

    /// Returns the addresses of the lists, after the staging buffer was uploaded to `buffer`.
    pub(super) fn uploaded(&self, buffer: &DeviceBuffer) -> Inputs {
        Inputs {
            pieces: buffer.staged(self.pieces),
            row_positions: buffer.staged(self.row_positions),
            sentence_starts: buffer.staged(self.sentence_starts),
            tiles: buffer.staged(self.tiles),
            frequencies: buffer.staged(self.frequencies),
            n_sentences: self.n_sentences,
            max_length: self.max_length,
            block: self.block,
        }
    }
}

/// Returns the frequencies of rotary positions, layer after layer; nothing if the model has none. Column `d` of a head
/// turns by `theta^(-2d / head)` per position.
fn frequencies(config: &Config) -> Vec<f32> {
    let head_size = config.hidden_size / config.n_heads;
    let of_theta = |theta: f64| {
        (0..head_size / 2).map(move |d| theta.powf(-2.0 * d as f64 / head_size as f64))
    };
    let thetas = (0..config.n_layers).filter_map(|layer| config.theta(layer));
    #[expect(clippy::cast_possible_truncation, reason = "the precision of the engine")]
    thetas.flat_map(of_theta).map(|frequency| frequency as f32).collect()
}
