//! The best pieces and the losses at masked positions, on a card.

use super::encode::Pass;
use super::head::{CHUNK, HeadTape, Masked};
use super::inputs::{Inputs, NO_PIECE, filled_positions, filled_rows};
use super::kernels::launch;
use super::machine::{Machine, Span};
use super::memory::{Arena, Parcel, Plain, read_floats};
use super::program::SEGMENTS;
use super::tape::Tape;
use super::{Cuda, n32};
use crate::dropout::Dropout;
use crate::error::Error;
use crate::mlm::{AllowedPieces, Candidate, MaskedBatch, Predictions};

/// A piece and its score, as `head.cu` has it.
#[derive(Clone, Copy)]
struct Best {
    score: u32,
    piece: u32,
}

impl Plain for Best {
    fn put(&self, bytes: &mut Vec<u8>) {
        self.score.put(bytes);
        self.piece.put(bytes);
    }
}

impl Cuda {
    /// The `k` best pieces that are allowed at every masked position, as [`crate::mlm::MaskedLm::predict`] finds them;
    /// with `needs_losses` also the sum of the negative log-likelihoods of the originals.
    pub(crate) fn predict_masked(
        &self,
        model: Masked<'_>,
        (batch, k, allowed): (&MaskedBatch, usize, Option<AllowedPieces<'_>>),
        needs_losses: bool,
        out: &mut Predictions,
    ) -> Result<f64, Error> {
        out.clear();
        self.predict_part(model, (batch, k, allowed), needs_losses, out)
    }

    fn predict_part(
        &self,
        model: Masked<'_>,
        (batch, k, allowed): (&MaskedBatch, usize, Option<AllowedPieces<'_>>),
        needs_losses: bool,
        out: &mut Predictions,
    ) -> Result<f64, Error> {
        let job = Job { batch, k: k.min(model.encoder.config().vocab_size), allowed, needs_losses };
        match self.try_predict(model, job, out) {
            Err(Error::DeviceMemory { .. }) if batch.can_be_halved() => {
                self.workspace().arena.give_back();
                let mut loss = 0.0;
                let mut start = 0;
                for half in batch.halves() {
                    let end = start + half.positions.len();
                    let allowed = allowed.map(|allowed| allowed.part(start..end));
                    start = end;
                    if !half.positions.is_empty() {
                        loss += self.predict_part(model, (&half, k, allowed), needs_losses, out)?;
                    }
                }
                Ok(loss)
            }
            done => done,
        }
    }

    fn try_predict(
        &self,
        model: Masked<'_>,
        job: Job<'_>,
        out: &mut Predictions,
    ) -> Result<f64, Error> {
        let Masked { parameters, encoder, head } = model;
        let Job { batch, k, .. } = job;
        let config = encoder.config();
        let kernels = self.kernels(config)?;
        let weights = parameters.on(self, &kernels)?;
        let (n, stride) = (filled_rows(&batch.sentences), weights.n_rows);
        let (m, positions, originals) = filled_positions(&batch.positions, &batch.originals);
        let mut workspace = self.workspace();
        let super::Workspace { arena, parcel, parcel_block, .. } = &mut *workspace;
        parcel.clear();
        let inputs = Inputs::pack(config, &batch.sentences, parcel);
        let (positions, originals) = (parcel.put(positions), parcel.put(originals));
        let sets = parcel.put(job.allowed.iter().flat_map(AllowedPieces::words));
        let set_of = job.allowed.map(|allowed| {
            let own = allowed.set_of.iter().map(|set| n32(*set));
            parcel.put(own.chain(std::iter::repeat(0)).take(m))
        });
        let set_of = set_of.unwrap_or_default();
        let lay_out = |arena: &mut Arena| {
            let tape = Tape::lay_out(arena, config, n, false);
            let own = HeadTape::lay_out(arena, config, (m, stride), false);
            let found = Found {
                segments: arena.span(m.min(CHUNK) * SEGMENTS * k),
                rows: arena.span(m * k),
                log_totals: arena.span(m),
            };
            (tape, own, found)
        };
        let (tape, own, found) = arena.lay_out(self.precision.size(), lay_out)?;
        parcel.send(parcel_block)?;
        let inputs = inputs.placed(parcel_block);
        let positions = Parcel::placed(positions, parcel_block);
        let originals = Parcel::placed(originals, parcel_block);
        let (sets, set_of) =
            (Parcel::placed(sets, parcel_block), Parcel::placed(set_of, parcel_block));

        let dropout = Dropout::NONE;
        let written = kernels.written();
        let pass = Pass { kernels: &written, weights: &weights, encoder, inputs, dropout, n };
        pass.forward(&tape)?;
        pass.head_forward(head, (tape.hidden(config).y, positions), &own)?;
        let (width, vocab) = (config.hidden_size, config.vocab_size);
        let words = n32(vocab.div_ceil(64));
        for start in (0..m).step_by(CHUNK) {
            let end = m.min(start + CHUNK);
            let n_rows = end - start;
            let scores = own.scores.first(n_rows * stride);
            let states = own.states().part(start * width..end * width);
            pass.scores(head, states, (scores, own.totals))?;
            let set_of = if job.allowed.is_some() { set_of.part(start..end) } else { set_of };
            launch!(
                written,
                BestOfSegments,
                ([SEGMENTS, n_rows, 1], 256),
                scores,
                sets,
                set_of,
                words,
                n32(k),
                found.segments,
                n32(vocab),
                n32(stride),
            );
            launch!(
                written,
                BestOfRows,
                ([n_rows.div_ceil(64), 1, 1], 64),
                found.segments,
                own.totals,
                n32(k),
                found.rows.part(start * k..end * k),
                found.log_totals.part(start..end),
                n32(n_rows),
            );
            if job.needs_losses {
                launch!(
                    written,
                    ScoreLosses,
                    ([n_rows.div_ceil(64), 1, 1], 64),
                    scores,
                    own.totals,
                    originals.part(start..end),
                    own.losses.part(start..end),
                    n32(stride),
                    n32(n_rows),
                );
            }
        }
        let needs_losses = usize::from(job.needs_losses);
        written.play(weights.bucket("predict", [n, m, 2 * k + needs_losses]))?;
        let m = batch.positions.len();
        found.first(m, k).read(&**kernels.machine(), k, out)?;
        let mut losses = vec![0.0; needs_losses * m];
        read_floats(&**kernels.machine(), own.losses.first(losses.len()), &mut losses)?;
        Ok(losses.into_iter().map(f64::from).sum())
    }
}

#[derive(Clone, Copy)]
struct Job<'a> {
    batch: &'a MaskedBatch,
    k: usize,
    allowed: Option<AllowedPieces<'a>>,
    needs_losses: bool,
}

/// Where the best pieces go.
struct Found {
    segments: Span<Best>,
    rows: Span<Best>,
    log_totals: Span<f32>,
}

impl Found {
    /// Without the rows that only fill up.
    fn first(&self, m: usize, k: usize) -> Self {
        Self {
            segments: self.segments,
            rows: self.rows.first(m * k),
            log_totals: self.log_totals.first(m),
        }
    }

    /// Adds the `k` best pieces of every row to `out`.
    fn read(&self, machine: &dyn Machine, k: usize, out: &mut Predictions) -> Result<(), Error> {
        let mut bytes = vec![0; self.rows.n_bytes()];
        machine.download(self.rows.address, &mut bytes)?;
        let mut log_totals = vec![0.0; self.log_totals.len()];
        read_floats(machine, self.log_totals, &mut log_totals)?;
        for (row, log_total) in bytes.chunks_exact(k * size_of::<Best>()).zip(log_totals) {
            let word =
                |at: usize| u32::from_le_bytes([row[at], row[at + 1], row[at + 2], row[at + 3]]);
            let candidates = (0..k)
                .map(|rank| Candidate {
                    piece: word(8 * rank + 4),
                    log_probability: f32::from_bits(word(8 * rank)),
                })
                .take_while(|candidate| candidate.piece != NO_PIECE);
            out.push_row(candidates, log_total);
        }
        Ok(())
    }
}
