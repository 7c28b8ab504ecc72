//! Prediction with the masked language model: the best pieces at masked positions, and the losses there.

use super::gpu::Gpu;
use super::inputs::{NO_PIECE, pad};
use super::kernels::{Grid, launch};
use super::masked_lm::{CHUNK, MlmHeadTape, StagedPositions};
use super::memory::{Arena, ToBytes, download_floats};
use super::pass::Pass;
use super::program::SEGMENTS;
use super::span::Span;
use super::views::{MaskedLmView, MaskedQuery};
use super::{Cuda, to_u32};
use crate::dropout::Dropout;
use crate::error::Error;
use crate::mlm::{AllowedPieces, Candidate, LmHead, Predictions};
use std::ops::Range;

/// A piece and its score (`Candidate` in `head.cu`).
#[derive(Clone, Copy)]
struct ScoredPiece {
    score: u32,
    piece: u32,
}

impl ToBytes for ScoredPiece {
    fn append(&self, bytes: &mut Vec<u8>) {
        self.score.append(bytes);
        self.piece.append(bytes);
    }
}

/// The buffers for the best pieces.
struct BestBuffers {
    /// The `k` best pieces of each segment, for each row of a chunk.
    segments: Span<ScoredPiece>,
    /// The `k` best pieces of each row.
    rows: Span<ScoredPiece>,
    /// The logarithm of each row's softmax denominator.
    log_totals: Span<f32>,
}

/// The sets of allowed pieces, in GPU memory; empty if all pieces are allowed.
#[derive(Clone, Copy)]
struct AllowedSets {
    sets: Span<u64>,
    /// The index of the allowed set, for each masked position.
    set_of: Span<u32>,
}

impl Cuda {
    /// Writes the `k` best allowed pieces for every masked position to `out`, as [`crate::mlm::MaskedLm::predict`]
    /// does. Returns the sum of the negative log-likelihoods of the original pieces if the query asks for losses, else
    /// 0. If GPU memory does not suffice, the batch is split in halves.
    pub(crate) fn predict_masked(
        &self,
        model: MaskedLmView<'_>,
        query: MaskedQuery<'_>,
        out: &mut Predictions,
    ) -> Result<f64, Error> {
        out.clear();
        let k = query.k.min(model.encoder.config().vocab_size);
        self.append_predictions(model, MaskedQuery { k, ..query }, out)
    }

    fn append_predictions(
        &self,
        model: MaskedLmView<'_>,
        query: MaskedQuery<'_>,
        out: &mut Predictions,
    ) -> Result<f64, Error> {
        let result = self.try_append_predictions(model, query, out);
        self.retry_if_out_of_memory(result, query.batch.can_be_halved(), || {
            let mut loss = 0.0;
            let mut start = 0;
            for half in query.batch.halves() {
                let end = start + half.positions.len();
                let allowed = query.allowed.map(|allowed| allowed.part(start..end));
                start = end;
                if !half.positions.is_empty() {
                    let query = MaskedQuery { batch: &half, allowed, ..query };
                    loss += self.append_predictions(model, query, out)?;
                }
            }
            Ok(loss)
        })
    }

    fn try_append_predictions(
        &self,
        model: MaskedLmView<'_>,
        query: MaskedQuery<'_>,
        out: &mut Predictions,
    ) -> Result<f64, Error> {
        let MaskedLmView { parameters, encoder, head } = model;
        let MaskedQuery { batch, k, allowed, needs_losses } = query;
        let config = encoder.config();
        let mut setup = self.begin_pass(parameters, encoder, &batch.sentences, None)?;
        let positions = StagedPositions::new(batch, &mut setup);
        let (m, stride) = (positions.n, setup.weights.n_table_rows);
        let sets = setup.stage(allowed.iter().flat_map(AllowedPieces::words));
        let set_of = allowed
            .map(|allowed| setup.stage(pad(allowed.set_of.iter().map(|set| to_u32(*set)), 0, m)));
        let (tape, (head_tape, best)) = setup.lay_out(|arena: &mut Arena| {
            let head_tape = MlmHeadTape::lay_out(arena, config, m, stride, false);
            let best = BestBuffers {
                segments: arena.span(m.min(CHUNK) * SEGMENTS * k),
                rows: arena.span(m * k),
                log_totals: arena.span(m),
            };
            (head_tape, best)
        })?;
        let pass = setup.upload(Dropout::NONE)?;
        let (rows, originals) = (pass.staged(positions.rows), pass.staged(positions.originals));
        let set_of = set_of.map(|set_of| pass.staged(set_of)).unwrap_or_default();
        let allowed = AllowedSets { sets: pass.staged(sets), set_of };

        pass.forward(&tape)?;
        let hidden = tape.last_hidden(config).operand;
        pass.transform_forward(&head.transform, hidden, rows, &head_tape.transform)?;
        for start in (0..m).step_by(CHUNK) {
            let chunk = start..m.min(start + CHUNK);
            pass.find_best(head, &head_tape, &best, allowed, chunk.clone(), k)?;
            if needs_losses {
                pass.compute_losses(&head_tape, originals, chunk)?;
            }
        }
        let needs_losses = usize::from(needs_losses);
        pass.submit("predict", [pass.n_rows, m, 2 * k + needs_losses])?;
        // The number of masked positions without padding.
        let m = batch.positions.len();
        best.first(m, k).download(pass.gpu(), k, out)?;
        let mut losses = vec![0.0; needs_losses * m];
        download_floats(pass.gpu(), head_tape.losses.first(losses.len()), &mut losses)?;
        Ok(losses.into_iter().map(f64::from).sum())
    }
}

impl Pass<'_> {
    /// Finds the `k` best allowed pieces for a chunk of masked positions.
    fn find_best(
        &self,
        head: &LmHead,
        head_tape: &MlmHeadTape,
        best: &BestBuffers,
        allowed: AllowedSets,
        chunk: Range<usize>,
        k: usize,
    ) -> Result<(), Error> {
        let (width, vocab) = (self.config().hidden_size, self.config().vocab_size);
        let (n_rows, stride) = (chunk.len(), self.weights.n_table_rows);
        let scores = head_tape.scores.first(n_rows * stride);
        let states = head_tape.states().slice(chunk.start * width..chunk.end * width);
        self.compute_scores(head, states, scores, head_tape.totals)?;
        let AllowedSets { sets, set_of } = allowed;
        let set_of = if set_of.len() > 0 { set_of.slice(chunk.clone()) } else { set_of };
        launch!(
            self.kernels,
            BestOfSegments,
            Grid::new([SEGMENTS, n_rows, 1], 256),
            scores,
            sets,
            set_of,
            to_u32(vocab.div_ceil(64)),
            to_u32(k),
            best.segments,
            to_u32(vocab),
            to_u32(stride),
        );
        launch!(
            self.kernels,
            BestOfRows,
            Grid::linear(n_rows.div_ceil(64), 64),
            best.segments,
            head_tape.totals,
            to_u32(k),
            best.rows.slice(chunk.start * k..chunk.end * k),
            best.log_totals.slice(chunk),
            to_u32(n_rows),
        );
        Ok(())
    }

    /// Computes the losses of the original pieces for a chunk of masked positions, whose scores are already computed.
    fn compute_losses(
        &self,
        head_tape: &MlmHeadTape,
        originals: Span<u32>,
        chunk: Range<usize>,
    ) -> Result<(), Error> {
        let (n_rows, stride) = (chunk.len(), self.weights.n_table_rows);
        launch!(
            self.kernels,
            ScoreLosses,
            Grid::linear(n_rows.div_ceil(64), 64),
            head_tape.scores.first(n_rows * stride),
            head_tape.totals,
            originals.slice(chunk.clone()),
            head_tape.losses.slice(chunk),
            to_u32(stride),
            to_u32(n_rows),
        );
        Ok(())
    }
}

impl BestBuffers {
    /// Returns the part of the buffers that belongs to the first `m` rows.
    fn first(&self, m: usize, k: usize) -> Self {
        Self {
            segments: self.segments,
            rows: self.rows.first(m * k),
            log_totals: self.log_totals.first(m),
        }
    }

    /// Appends the `k` best pieces of every row to `out`.
    fn download(&self, gpu: &dyn Gpu, k: usize, out: &mut Predictions) -> Result<(), Error> {
        let mut bytes = vec![0; self.rows.n_bytes()];
        gpu.download(self.rows.address, &mut bytes)?;
        let mut log_totals = vec![0.0; self.log_totals.len()];
        download_floats(gpu, self.log_totals, &mut log_totals)?;
        for (row, log_total) in bytes.chunks_exact(k * size_of::<ScoredPiece>()).zip(log_totals) {
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
