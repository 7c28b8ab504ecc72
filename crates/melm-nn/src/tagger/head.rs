//! The linear layer over the first pieces, forward and back.

use super::TaggerSettings;
use crate::buffer::Buffer;
use crate::config::Config;
use crate::crf::{Chain, ChainGradient, Lattice};
use crate::device::Cpu;
use crate::dropout::{RowMask, Site};
use crate::encoder::{EncoderTape, LinearParams};
use crate::gradients::Gradients;
use crate::ops::linear::{Accumulator, Linear};
use crate::ops::norm::drop_row;
use crate::ops::{ColumnSums, ROWS_PER_TASK, add};
use crate::params::Parameters;
use crate::split::Split;

/// Working memory of a [`super::Tagger`]: what the forward pass keeps for the backward pass.
///
/// Buffers grow to the largest batch seen and are reused.
pub struct TaggerTape {
    /// The encoder's part, with the hidden states.
    pub encoder: EncoderTape,
    pub(super) head: HeadTape,
}

impl TaggerTape {
    /// A tape that keeps every layer, for training and for prediction.
    pub fn for_training(config: &Config) -> Self {
        Self { encoder: EncoderTape::for_training(config), head: HeadTape::default() }
    }

    /// A tape that keeps only what the next layer needs, for prediction only.
    pub fn for_prediction(config: &Config) -> Self {
        Self { encoder: EncoderTape::for_prediction(config), head: HeadTape::default() }
    }
}

/// Working memory of the head.
#[derive(Default)]
pub(super) struct HeadTape {
    /// The encoder's rows at the first pieces after dropout, `[tokens, hidden]`.
    gathered: Buffer,
    /// `[tokens, tags]`, and their gradient.
    pub(super) emissions: Buffer,
    pub(super) d_emissions: Buffer,
    d_gathered: Buffer,
    sums: ColumnSums,
    pub(super) chain: Chain,
    pub(super) chain_gradient: ChainGradient,
    pub(super) lattice: Lattice,
}

/// Where the linear layer's numbers are.
pub(super) struct Head {
    pub(super) classifier: LinearParams,
    width: usize,
    n_tags: usize,
}

impl Head {
    pub(super) fn new(config: &Config, settings: &TaggerSettings, parameters: &Parameters) -> Self {
        Self {
            classifier: LinearParams::of(parameters, "classifier"),
            width: config.hidden_size,
            n_tags: settings.n_tags,
        }
    }

    fn linear(&self) -> Linear {
        Linear { inputs: self.width, outputs: self.n_tags }
    }

    /// The emissions at `rows` of the encoder's output, in the head's tape.
    pub(super) fn forward(
        &self,
        cpu: &Cpu,
        parameters: &Parameters,
        rows: &[usize],
        (tape, head): (&EncoderTape, &mut HeadTape),
    ) {
        let (n, width, n_tags) = (rows.len(), self.width, self.n_tags);
        head.gathered.reserve(n * width);
        head.emissions.reserve(n * n_tags);
        let gathered = &mut head.gathered[..n * width];
        let hidden = tape.hidden();
        let parts = Split::every(gathered, ROWS_PER_TASK * width);
        cpu.each(n.div_ceil(ROWS_PER_TASK), parts, |task, _, out| {
            let rows = &rows[task * ROWS_PER_TASK..];
            for (out, row) in out.chunks_exact_mut(width).zip(rows) {
                out.copy_from_slice(&hidden[row * width..(row + 1) * width]);
                drop_row(cpu.isa(), mask(tape, *row), out);
            }
        });
        let emissions = &mut head.emissions[..n * n_tags];
        let weight = parameters.at(&self.classifier.weight);
        self.linear().forward(cpu, n, (&head.gathered[..n * width], weight), emissions);
        for row in emissions.chunks_exact_mut(n_tags) {
            add(cpu.isa(), row, parameters.at(&self.classifier.bias));
        }
    }

    /// From the gradient of the emissions in the head's tape to that of the layer, and to that of the encoder's rows
    /// in [`EncoderTape::d_hidden`].
    pub(super) fn backward(
        &self,
        cpu: &Cpu,
        parameters: &Parameters,
        rows: &[usize],
        (tape, head, gradients): (&mut EncoderTape, &mut HeadTape, &mut Gradients),
    ) {
        let (n, width) = (rows.len(), self.width);
        let d = &head.d_emissions[..n * self.n_tags];
        let shape = head.sums.of_rows(cpu, d, self.n_tags);
        head.sums.finish_into(cpu, shape, 0, gradients.slot(&self.classifier.bias));
        if parameters.trains(&self.classifier.weight) {
            let slot = gradients.slot(&self.classifier.weight);
            self.linear().weight_gradient(cpu, n, (d, &head.gathered[..n * width]), slot);
        }
        head.d_gathered.reserve(n * width);
        let d_gathered = &mut head.d_gathered[..n * width];
        let out = Accumulator { data: &mut *d_gathered, accumulates: false };
        self.linear().backward(cpu, n, (d, parameters.at(&self.classifier.weight)), out);
        for (d, row) in d_gathered.chunks_exact_mut(width).zip(rows) {
            drop_row(cpu.isa(), mask(tape, *row), d);
        }
        let d_hidden = tape.d_hidden();
        d_hidden.fill(0.0);
        for (d, row) in d_gathered.chunks_exact(width).zip(rows) {
            add(cpu.isa(), &mut d_hidden[row * width..(row + 1) * width], d);
        }
    }
}

/// What survives of a row of the batch. The site is in no layer, so any number will do for it.
fn mask(tape: &EncoderTape, row: usize) -> RowMask {
    let (sentence, position) = tape.places[row];
    tape.dropout.row(0, Site::Classifier, sentence, position)
}
