//! A model's parameters on a card: as they are learnt, and as products read them.

use super::kernels::{Kernels, launch};
use super::machine::{Numbers, Span};
use super::memory::{Block, read_floats, write_floats};
use super::program::Precision;
use super::script::Bucket;
use super::{Cuda, SPLITS};
use crate::error::Error;
use crate::params::Parameters;
use std::ops::Range;
use std::sync::Arc;

/// How many times a second copy must find room: later batches may be longer, and other trainings share the card. A guess.
const ROOM: usize = 4;

/// Parameters on a card. The table has rows of zeros after its own, so that it can be cut evenly.
pub(crate) struct Weights {
    values: Block,
    /// In bf16, when products read that.
    rounded: Option<Block>,
    table: Range<usize>,
    width: usize,
    /// Rows of the table, those of zeros included.
    pub(super) n_rows: usize,
}

/// The table's rows, cut evenly into parts whose length suits products.
pub(super) fn padded(vocab_size: usize) -> usize {
    vocab_size.next_multiple_of(8 * SPLITS)
}

impl Weights {
    /// Copies the parameters to the card.
    pub(crate) fn send(
        cuda: &Cuda,
        kernels: &Kernels,
        parameters: &Parameters,
    ) -> Result<Self, Error> {
        let table = parameters.table();
        let (vocab_size, width) = (table.shape[0], table.shape[1]);
        let n_rows = padded(vocab_size);
        let len = table.range.start + n_rows * width;
        let values = Block::zeros(&cuda.machine, len * size_of::<f32>())?;
        write_floats(&*cuda.machine, parameters.values(), values.span())?;
        let rounded = match cuda.precision {
            Precision::F32 => None,
            Precision::Bf16 => {
                let rounded = Block::zeros(&cuda.machine, len * size_of::<u16>())?;
                let (from, to) = (values.span::<f32>(), rounded.span::<u16>());
                launch!(kernels, RoundWeights, ([1024, 1, 1], 256), from, to);
                Some(rounded)
            }
        };
        Ok(Self { values, rounded, table: table.range.clone(), width, n_rows })
    }

    /// What a script over them is for.
    pub(super) fn bucket(&self, what: &'static str, sizes: [usize; 3]) -> Bucket {
        Bucket { what, weights: self.values.span::<f32>().address, sizes }
    }

    /// Whether they are on this card.
    pub(crate) fn are_on(&self, cuda: &Cuda) -> bool {
        Arc::ptr_eq(self.values.machine(), &cuda.machine)
    }

    /// As many numbers beside these, the same ones; none where the room may be needed for the work itself.
    pub(crate) fn twin(&self) -> Result<Option<Self>, Error> {
        let rounded = self.rounded.as_ref().map_or(0, Block::n_bytes);
        let (free, _) = self.values.machine().memory()?;
        if free < ROOM * (self.values.n_bytes() + rounded) {
            return Ok(None);
        }
        let empty = |like: &Block| Block::zeros(like.machine(), like.n_bytes());
        let twin = Self {
            values: empty(&self.values)?,
            rounded: self.rounded.as_ref().map(empty).transpose()?,
            table: self.table.clone(),
            width: self.width,
            n_rows: self.n_rows,
        };
        twin.become_as(self)?;
        Ok(Some(twin))
    }

    /// Whether [`Self::become_as`] can be: both are on one card, of one model.
    pub(crate) fn is_like(&self, other: &Self) -> bool {
        Arc::ptr_eq(self.values.machine(), other.values.machine())
            && self.values.n_bytes() == other.values.n_bytes()
    }

    /// Takes over the numbers of a twin.
    pub(crate) fn become_as(&self, other: &Self) -> Result<(), Error> {
        self.values.become_as(&other.values)?;
        match (&self.rounded, &other.rounded) {
            (Some(own), Some(others)) => own.become_as(others),
            _ => Ok(()),
        }
    }

    /// Some of the numbers as they are learnt.
    pub(super) fn plain(&self, range: &Range<usize>) -> Span<f32> {
        self.values.span().part(range.clone())
    }

    /// Some of the numbers in the type of those that they are multiplied with.
    pub(super) fn like(&self, other: Numbers, range: &Range<usize>) -> Numbers {
        if other.size == size_of::<f32>() {
            return Numbers::plain(self.plain(range));
        }
        self.product(range)
    }

    /// Some of the numbers as products read them.
    pub(super) fn product(&self, range: &Range<usize>) -> Numbers {
        match &self.rounded {
            None => Numbers::plain(self.plain(range)),
            Some(rounded) => rounded.numbers(size_of::<u16>()).part(range.clone()),
        }
    }

    /// The table as products read it, with its rows of zeros.
    pub(super) fn table_product(&self) -> Numbers {
        self.product(&(self.table.start..self.table.start + self.n_rows * self.width))
    }

    /// The copy that products read, where it is another; to be kept up to date.
    pub(super) fn rounded(&self, range: &Range<usize>) -> Span<u16> {
        match &self.rounded {
            None => Span::default(),
            Some(rounded) => rounded.span().part(range.clone()),
        }
    }

    /// Copies numbers back.
    pub(crate) fn read(&self, range: &Range<usize>, out: &mut [f32]) -> Result<(), Error> {
        read_floats(&**self.values.machine(), self.plain(range), out)
    }
}
