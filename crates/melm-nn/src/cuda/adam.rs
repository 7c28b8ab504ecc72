//! Adam on a card, the table a chunk at a time: its gradient is never whole.

use super::Cuda;
use super::gradients::CardGradients;
use super::kernels::{Argument, Kernels, launch};
use super::machine::{Factor, Product, Span};
use super::memory::{Block, Parcel, read_floats, write_floats};
use super::weights::Weights;
use super::{SPLITS, n32};
use crate::error::Error;
use crate::gradients::Gradients;
use crate::optim::Rule;
use crate::params::Parameters;
use std::ops::Range;
use std::sync::Arc;

/// Numbers of the table's gradient that are there at once: about what the second-level cache of a card holds.
const CHUNK_NUMBERS: usize = 6 << 20;
/// Table rows of a chunk are a multiple of this, so that chunks are aligned.
const ROW_ALIGNMENT: usize = 16;
/// Blocks that share a sum of squares.
pub(super) const NORM_BLOCKS: usize = 512;

/// The optimiser's memory on a card: two moments a parameter.
pub(crate) struct Moments {
    mean: Block,
    square: Block,
    /// Some rows of the table's gradient.
    chunk: Block,
    pub(super) norms: Block,
    pub(super) grams: Block,
    pub(super) clip: Block,
    /// For each piece, which of the looked-up ones it is.
    listed: Block,
    parcel: Block,
}

/// As `adam.cu` has it.
#[repr(C)]
#[derive(Clone, Copy)]
struct CardRule {
    beta1: f32,
    beta2: f32,
    eps: f32,
    rate: f32,
    root: f32,
    keep: f32,
}

impl Argument for CardRule {}

/// As `adam.cu` has it.
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub(super) struct Lookups {
    pieces: Span<u32>,
    starts: Span<u32>,
    order: Span<u32>,
    rows: Span<f32>,
    of: Span<u32>,
}

impl Argument for Lookups {}

impl Moments {
    /// Moments on a card, from those that the processor has.
    pub(crate) fn send(cuda: &Cuda, moments: [&[f32]; 2]) -> Result<Self, Error> {
        match Self::try_send(cuda, moments) {
            Err(Error::DeviceMemory { .. }) => {
                cuda.workspace().arena.give_back();
                Self::try_send(cuda, moments)
            }
            done => done,
        }
    }

    /// Whether they are on this card.
    pub(crate) fn are_on(&self, cuda: &Cuda) -> bool {
        Arc::ptr_eq(self.mean.machine(), &cuda.machine)
    }

    fn try_send(cuda: &Cuda, moments: [&[f32]; 2]) -> Result<Self, Error> {
        let send = |values: &[f32]| {
            let block = Block::zeros(&cuda.machine, size_of_val(values))?;
            write_floats(&*cuda.machine, values, block.span())?;
            Ok::<_, Error>(block)
        };
        let empty = || Block::empty(&cuda.machine);
        let [mean, square] = moments;
        Ok(Self {
            mean: send(mean)?,
            square: send(square)?,
            chunk: empty(),
            norms: empty(),
            grams: empty(),
            clip: Block::zeros(&cuda.machine, 16)?,
            listed: empty(),
            parcel: empty(),
        })
    }

    /// The norm of the last step's gradients; `None` before any.
    pub(crate) fn norm(&self) -> Result<Option<f64>, Error> {
        let norms = self.norms.span::<f64>();
        if norms.len() == 0 {
            return Ok(None);
        }
        let mut bytes = [0; 8];
        self.norms.machine().download(norms.address, &mut bytes)?;
        Ok(Some(f64::from_le_bytes(bytes)))
    }

    /// Copies them back.
    pub(crate) fn read(&self, out: [&mut [f32]; 2]) -> Result<(), Error> {
        for (block, out) in [&self.mean, &self.square].into_iter().zip(out) {
            read_floats(&**block.machine(), block.span(), out)?;
        }
        Ok(())
    }
}

/// One step: what is read, and what is changed.
pub(super) struct Step<'a> {
    pub(super) kernels: &'a Kernels,
    pub(super) weights: &'a Weights,
    pub(super) parameters: &'a Parameters,
    pub(super) card: &'a CardGradients,
    pub(super) moments: &'a mut Moments,
    /// Tensors to change, neighbours together.
    pub(super) ranges: Vec<Range<usize>>,
    pub(super) trains_table: bool,
}

impl Cuda {
    /// Changes the trained parameters as [`crate::optim::Adam::step`] does. The card finds the norm for clipping itself,
    /// so that nobody waits for it. Whether there was anything to change by.
    pub(crate) fn step(
        &self,
        (rule, max_norm): (Rule, Option<f32>),
        (parameters, gradients): (&Parameters, &Gradients),
        moments: &mut Moments,
    ) -> Result<bool, Error> {
        match self.try_step((rule, max_norm), (parameters, gradients), moments) {
            // Nothing was changed yet: what the passes hold may be enough.
            Err(Error::DeviceMemory { .. }) => {
                self.workspace().arena.give_back();
                self.try_step((rule, max_norm), (parameters, gradients), moments)
            }
            done => done,
        }
    }

    fn try_step(
        &self,
        (rule, max_norm): (Rule, Option<f32>),
        (parameters, gradients): (&Parameters, &Gradients),
        moments: &mut Moments,
    ) -> Result<bool, Error> {
        let Some(card) = gradients.card() else { return Ok(false) };
        let (table, kernels) = (parameters.table(), card.kernels.written());
        let weights = parameters.on(self, &card.kernels)?;
        let trains_table = card.has_table() && !table.is_frozen;
        let ranges = trained_ranges(parameters, gradients);
        let mut step = Step {
            kernels: &kernels,
            weights: &weights,
            parameters,
            card,
            moments,
            ranges,
            trains_table,
        };
        let lookups = step.lookups()?;
        step.reserve(lookups.pieces.len())?;
        if let Some(most) = max_norm {
            step.clip(most, &lookups)?;
        }
        step.update(rule, max_norm.is_some(), &lookups)?;
        let sizes = [card.n_states, step.ranges.len(), usize::from(max_norm.is_some())];
        kernels.play(weights.bucket("step", sizes))?;
        Ok(true)
    }
}

/// The tensors that this step changes, without the table; neighbours are joined over the gaps between them.
fn trained_ranges(parameters: &Parameters, gradients: &Gradients) -> Vec<Range<usize>> {
    let mut ranges: Vec<Range<usize>> = Vec::new();
    let mut is_joined = false;
    for (index, parameter) in parameters.list()[..parameters.list().len() - 1].iter().enumerate() {
        let is_trained = !parameter.is_frozen && gradients.is_written(index);
        match ranges.last_mut() {
            Some(last) if is_trained && is_joined => last.end = parameter.range.end,
            _ if is_trained => ranges.push(parameter.range.clone()),
            _ => {}
        }
        is_joined = is_trained;
    }
    ranges
}

/// The lookups by piece, on the card and here.
pub(super) struct ByPiece {
    pub(super) pieces: Vec<u32>,
    pub(super) card: Lookups,
}

impl Step<'_> {
    fn lookups(&mut self) -> Result<ByPiece, Error> {
        let mut sorted = if self.trains_table { self.card.lookups.clone() } else { Vec::new() };
        sorted.sort_unstable();
        let groups: Vec<_> = sorted.chunk_by(|a, b| a.0 == b.0).collect();
        let pieces: Vec<_> = groups.iter().map(|group| group[0].0).collect();
        let ends = groups.iter().scan(0, |end, group| {
            *end += n32(group.len());
            Some(*end)
        });
        let mut parcel = Parcel::default();
        let on_card = (
            parcel.put(pieces.iter().copied()),
            parcel.put(std::iter::once(0).chain(ends)),
            parcel.put(sorted.iter().map(|lookup| lookup.1)),
        );
        parcel.send(&mut self.moments.parcel)?;
        // Zeros at first; every step takes out again what it has entered.
        let n_bytes = self.parameters.table().shape[0] * size_of::<u32>();
        self.moments.listed.reserve(n_bytes)?;
        let block = &self.moments.parcel;
        let card = Lookups {
            pieces: Parcel::placed(on_card.0, block),
            starts: Parcel::placed(on_card.1, block),
            order: Parcel::placed(on_card.2, block),
            rows: self.card.lookup_rows(),
            of: self.moments.listed.span(),
        };
        Ok(ByPiece { pieces, card })
    }

    /// All memory of the step, before anything is changed.
    fn reserve(&mut self, n_pieces: usize) -> Result<(), Error> {
        let n_parts = NORM_BLOCKS * (self.ranges.len() + 1) + n_pieces;
        self.moments.norms.reserve((n_parts + 1) * size_of::<f64>())?;
        if self.trains_table {
            let (n, width) = (self.card.n_states, self.card.width);
            let n_grams = (SPLITS + 1) * n * n;
            self.moments.grams.reserve(n_grams * size_of::<f32>())?;
            let n_rows = self.chunk_rows();
            self.moments.chunk.reserve(n_rows * width * size_of::<f32>())?;
        }
        Ok(())
    }

    /// Rows of the table whose gradient is there at once.
    fn chunk_rows(&self) -> usize {
        let (vocab_size, width) = (self.parameters.table().shape[0], self.card.width);
        (CHUNK_NUMBERS / width).next_multiple_of(ROW_ALIGNMENT).min(vocab_size)
    }

    fn update(&mut self, rule: Rule, clips: bool, lookups: &ByPiece) -> Result<(), Error> {
        let clip = if clips { self.moments.clip.span().first(1) } else { Span::default() };
        let gradient = self.card.values.span::<f32>();
        for range in self.ranges.clone() {
            let gradient = gradient.part(range.clone());
            self.adam(rule, (&range, gradient, clip), (Lookups::default(), 0))?;
        }
        if !self.trains_table {
            return Ok(());
        }
        self.list_lookups(lookups, true)?;
        let table = self.parameters.table();
        let (start, vocab_size, width) = (table.range.start, table.shape[0], table.shape[1]);
        let n_rows = self.chunk_rows();
        for first in (0..vocab_size).step_by(n_rows) {
            let rows = first..vocab_size.min(first + n_rows);
            let chunk = self.moments.chunk.span().first(rows.len() * width);
            self.table_gradient(rows.clone(), chunk)?;
            let range = start + rows.start * width..start + rows.end * width;
            self.adam(rule, (&range, chunk, clip), (lookups.card, rows.start))?;
        }
        self.list_lookups(lookups, false)
    }

    /// Enters the pieces into the list by piece, or takes them out.
    fn list_lookups(&self, lookups: &ByPiece, enters: bool) -> Result<(), Error> {
        let over = ([lookups.pieces.len().div_ceil(128), 1, 1], 128);
        launch!(self.kernels, ListLookups, over, lookups.card, u32::from(enters));
        Ok(())
    }

    /// Adam over some numbers; over rows of the table with their lookups and the number of the first row.
    fn adam(
        &self,
        rule: Rule,
        (range, gradient, clip): (&Range<usize>, Span<f32>, Span<f32>),
        (lookups, first): (Lookups, usize),
    ) -> Result<(), Error> {
        let Rule { beta1, beta2, eps, rate, root, keep, .. } = rule;
        // Four numbers a thread.
        let n_blocks = range.len().div_ceil(1024);
        launch!(
            self.kernels,
            Adam,
            ([n_blocks, 1, 1], 256),
            self.weights.plain(range),
            self.moments.mean.span::<f32>().part(range.clone()),
            self.moments.square.span::<f32>().part(range.clone()),
            gradient,
            self.weights.rounded(range),
            CardRule { beta1, beta2, eps, rate, root, keep },
            clip,
            lookups,
            n32(first),
        );
        Ok(())
    }

    /// The head's part of the gradient of some rows of the table.
    fn table_gradient(&self, rows: Range<usize>, chunk: Span<f32>) -> Result<(), Error> {
        let (stride, width, n) = (self.weights.n_rows, self.card.width, self.card.n_states);
        if n == 0 {
            return self.kernels.clear(chunk);
        }
        let (errors, states) = self.card.factors(stride);
        let errors = errors.part(rows.start..errors.len);
        self.kernels.product(&Product {
            m: rows.len(),
            n: width,
            k: n,
            a: Factor::of(errors, stride).transposed(),
            b: Factor::of(states, width),
            out: chunk,
            out_row: width,
            out_batch: 0,
            accumulates: false,
            bias: Span::default(),
            n_batches: 1,
        })
    }

    /// The table's gradient written out whole.
    fn whole_table(&mut self) -> Result<Vec<f32>, Error> {
        let lookups = self.lookups()?;
        let table = self.parameters.table();
        let (vocab_size, width) = (table.shape[0], table.shape[1]);
        self.moments.chunk.reserve(vocab_size * width * size_of::<f32>())?;
        let chunk = self.moments.chunk.span().first(vocab_size * width);
        self.table_gradient(0..vocab_size, chunk)?;
        let over = ([lookups.pieces.len(), 1, 1], 128);
        launch!(self.kernels, AddLookups, over, lookups.card, chunk);
        let mut whole = vec![0.0; vocab_size * width];
        read_floats(&**self.kernels.machine(), chunk, &mut whole)?;
        Ok(whole)
    }
}

impl Cuda {
    /// The table's gradient written out whole: for tests, at the size of tests.
    pub(crate) fn whole_table(
        &self,
        parameters: &Parameters,
        gradients: &Gradients,
    ) -> Result<Vec<f32>, Error> {
        let Some(card) = gradients.card() else { return Ok(Vec::new()) };
        let kernels = Arc::clone(&card.kernels);
        let weights = parameters.on(self, &kernels)?;
        let mut moments = Moments::send(self, [&[], &[]])?;
        Step {
            kernels: &kernels,
            weights: &weights,
            parameters,
            card,
            moments: &mut moments,
            ranges: Vec::new(),
            trains_table: true,
        }
        .whole_table()
    }
}
