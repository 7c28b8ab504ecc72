//! The score of a rewritten mention: how likely the model finds its pieces, compared with those of the source.

use std::collections::HashMap;
use std::ops::Range;

use melm_nn::config::Config;
use melm_nn::device::Device;
use melm_nn::mlm::{AllowedPieces, MaskedBatch, MaskedLm, MaskedLmTape, PieceSets, Predictions};

use super::fill::FillTask;
use crate::Error;
use crate::linearize::Linearized;

/// A mention in a window: the pieces of the window, and the ranges of the mention's tokens that can be rewritten.
struct Passage<'p> {
    pieces: &'p [u32],
    tokens: Vec<Range<usize>>,
}

/// A piece of a passage that is predicted: it and the later pieces of its token are masked. If the later pieces were
/// visible, they would give the piece away (Kauf and Ivanova 2023).
struct ScoredPiece {
    passage: usize,
    masked: Range<usize>,
}

/// The inputs that are the same for all mentions.
pub(super) struct ScoreContext<'a> {
    pub(super) device: &'a Device,
    pub(super) model: &'a MaskedLm,
    /// The piece `<mask>`.
    pub(super) mask: u32,
    pub(super) pieces_per_batch: usize,
}

/// Scores mentions.
pub(super) struct MentionScorer {
    tape: MaskedLmTape,
    batch: MaskedBatch,
    out: Predictions,
}

impl MentionScorer {
    pub(super) fn new(config: &Config) -> Self {
        Self {
            tape: MaskedLmTape::for_prediction(config),
            batch: MaskedBatch::default(),
            out: Predictions::default(),
        }
    }

    /// Returns the score of each rewritten mention of the tasks, by the index of its task and of the mention: the mean
    /// log-probability of its pieces, minus that of the source's.
    ///
    /// The source mentions are scored again in every round, so that a round has the same batches, and the same scores to the
    /// last bit on a GPU, if an earlier process made the rounds before it.
    pub(super) fn score(
        &mut self,
        context: &ScoreContext<'_>,
        tasks: &[FillTask<'_>],
    ) -> Result<HashMap<(usize, usize), f64>, Error> {
        let (mut rewritten, mut new, mut old) = (Vec::new(), Vec::new(), Vec::new());
        for (number, task) in tasks.iter().enumerate() {
            for mention in rewritten_mentions(task) {
                let tokens = token_ranges(task.source, mention);
                old.push(Passage { pieces: &task.source.pieces, tokens });
                rewritten.push((number, mention));
                let mut tokens = token_ranges(&task.window, mention);
                // A token for which no piece was allowed has no piece to score.
                let pieces = &task.masked.pieces;
                tokens.retain(|range| !pieces[range.clone()].contains(&context.mask));
                new.push(Passage { pieces, tokens });
            }
        }
        let old = self.mean_log_probabilities(context, &old)?;
        let new = self.mean_log_probabilities(context, &new)?;
        let differences = new.into_iter().zip(old).map(|(new, old)| new - old);
        Ok(rewritten.into_iter().zip(differences).collect())
    }

    /// Returns the mean log-probability of the pieces of each passage.
    fn mean_log_probabilities(
        &mut self,
        context: &ScoreContext<'_>,
        passages: &[Passage<'_>],
    ) -> Result<Vec<f64>, Error> {
        let mut sums = vec![0.0; passages.len()];
        let mut pieces = Vec::new();
        for (passage, content) in passages.iter().enumerate() {
            for token in &content.tokens {
                let masked = token.clone().map(|position| position..token.end);
                pieces.extend(masked.map(|masked| ScoredPiece { passage, masked }));
            }
        }
        let length = |piece: &ScoredPiece| passages[piece.passage].pieces.len();
        let mut rest = &pieces[..];
        while !rest.is_empty() {
            let mut n_pieces = 0;
            let fits = rest.iter().position(|piece| {
                n_pieces += length(piece);
                n_pieces > context.pieces_per_batch
            });
            let (batch, later) = rest.split_at(fits.unwrap_or(rest.len()).max(1));
            self.predict(context, passages, batch)?;
            for (row, piece) in batch.iter().enumerate() {
                sums[piece.passage] += f64::from(self.out.row(row)[0].log_probability);
            }
            rest = later;
        }
        let n_pieces = |passage: &Passage<'_>| passage.tokens.iter().map(Range::len).sum::<usize>();
        Ok(sums.into_iter().zip(passages).map(|(sum, all)| sum / n_pieces(all) as f64).collect())
    }

    /// Predicts the pieces of a batch. Only the piece of the passage itself is allowed at each position, so that the
    /// prediction is its log-probability.
    fn predict(
        &mut self,
        context: &ScoreContext<'_>,
        passages: &[Passage<'_>],
        batch: &[ScoredPiece],
    ) -> Result<(), Error> {
        self.batch.clear();
        let mut sets = PieceSets::default();
        let mut set_of = Vec::new();
        for ScoredPiece { passage, masked } in batch {
            let mut pieces = passages[*passage].pieces.to_vec();
            let wanted = pieces[masked.start];
            pieces[masked.clone()].fill(context.mask);
            self.batch.positions.push(self.batch.sentences.n_rows() + masked.start);
            self.batch.sentences.push(&pieces, 0);
            set_of.push(sets.add(context.model.config().vocab_size, |piece| piece == wanted));
        }
        let allowed = AllowedPieces { sets: &sets, set_of: &set_of };
        let ScoreContext { device, model, .. } = context;
        model.predict_allowed(device, &self.batch, 1, allowed, &mut self.tape, &mut self.out)?;
        Ok(())
    }
}

/// Returns the indices of the mentions of which a piece was replaced.
fn rewritten_mentions(task: &FillTask<'_>) -> Vec<usize> {
    let is_changed = |range: &Range<usize>| {
        task.window.pieces[range.clone()] != task.masked.pieces[range.clone()]
    };
    let changed = task.window.entities.iter().filter(|entity| is_changed(&entity.piece_range));
    let mut mentions: Vec<_> = changed.map(|entity| entity.mention).collect();
    mentions.dedup();
    mentions
}

/// Returns the ranges of a mention's tokens that can be rewritten.
fn token_ranges(window: &Linearized, mention: usize) -> Vec<Range<usize>> {
    let own = window.entities.iter().filter(|entity| entity.mention == mention);
    own.map(|entity| entity.piece_range.clone()).collect()
}
