//! Finds the most likely pieces at masked rows. Scores are computed in blocks and not stored.

use super::allowed::AllowedPieces;
use super::scores::{Output, column_maxima, pack_states, score_block};
use super::{BLOCK, HeadTape, rows_per_group};
use crate::device::Cpu;
use crate::error::Error;
use crate::isa::per_isa;
use crate::math::exp;
use crate::split::Split;

/// A piece and its log-probability.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Candidate {
    /// The piece.
    pub piece: u32,
    /// The log-probability of the piece, relative to all pieces.
    pub log_probability: f32,
}

/// The best candidates of every masked row. The memory is reused from batch to batch.
#[derive(Clone, Debug, Default)]
pub struct Predictions {
    candidates: Vec<Candidate>,
    /// For each masked row, the index after its last candidate.
    ends: Vec<usize>,
    /// For each masked row, the logarithm of the sum of exponentials over all pieces. The log-probability of a piece is
    /// its score minus this number.
    pub(crate) log_totals: Vec<f32>,
}

impl Predictions {
    /// Returns the candidates of one masked row, best first. Of equally likely pieces, the one with the lower id comes
    /// first.
    ///
    /// # Panics
    /// Panics if there is no row with this index.
    pub fn row(&self, index: usize) -> &[Candidate] {
        let start = if index == 0 { 0 } else { self.ends[index - 1] };
        &self.candidates[start..self.ends[index]]
    }

    /// Returns the number of masked rows.
    pub fn n_rows(&self) -> usize {
        self.ends.len()
    }

    /// Adds the candidates of a row, best first.
    pub(crate) fn push_row(&mut self, candidates: impl Iterator<Item = Candidate>, log_total: f32) {
        self.candidates.extend(candidates);
        self.ends.push(self.candidates.len());
        self.log_totals.push(log_total);
    }

    pub(crate) fn clear(&mut self) {
        self.candidates.clear();
        self.ends.clear();
        self.log_totals.clear();
    }

    /// Adds the candidates of a row, leaving out unused entries.
    fn push(&mut self, best: &Summary<'_>) {
        let log_total = best.head[1].ln() + best.head[0];
        let taken = best.scores.iter().zip(best.pieces.iter()).take_while(|(_, p)| **p >= 0.0);
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a piece below 2^24"
        )]
        let candidates = taken.map(|(score, piece)| Candidate {
            piece: *piece as u32,
            log_probability: score - log_total,
        });
        self.push_row(candidates, log_total);
    }
}

per_isa! {
    /// Computes `exp(score - largest)` for all scores, and adds the sum of each column to `totals`.
    fn add_exponentials(scores: &[f32], stride: usize, largest: &[f32], totals: &mut [f32]) {
        for row in scores.chunks(stride) {
            for ((x, largest), total) in row.iter().zip(largest).zip(totals.iter_mut()) {
                *total += exp(*x - largest);
            }
        }
    }
}

per_isa! {
    /// Returns true if any element of `row` is above the corresponding element of `bars`.
    fn any_above(row: &[f32], bars: &[f32]) -> bool {
        let mut found = 0_u32;
        for (x, bar) in row.iter().zip(bars) {
            found |= u32::from(x > bar);
        }
        found != 0
    }
}

/// The result of one group of table rows for one masked row.
///
/// The record is `[largest score, sum of exponentials, k scores, k pieces]`.
///
/// Piece ids are stored as `f32`. This is exact, because a vocabulary has fewer than 2^24 pieces.
struct Summary<'a> {
    head: &'a mut [f32],
    scores: &'a mut [f32],
    pieces: &'a mut [f32],
}

impl<'a> Summary<'a> {
    fn new(record: &'a mut [f32], k: usize) -> Self {
        let (head, rest) = record.split_at_mut(2);
        let (scores, pieces) = rest.split_at_mut(k);
        Self { head, scores, pieces }
    }

    fn clear(&mut self) {
        self.head.copy_from_slice(&[f32::NEG_INFINITY, 0.0]);
        self.scores.fill(f32::NEG_INFINITY);
        self.pieces.fill(f32::NEG_INFINITY);
    }

    /// Inserts a candidate, so that the candidates stay sorted: before worse ones and after equal ones.
    fn insert(&mut self, score: f32, piece: f32) {
        let at = self.scores.partition_point(|s| *s >= score);
        if at < self.scores.len() {
            self.scores[at..].rotate_right(1);
            self.pieces[at..].rotate_right(1);
            self.scores[at] = score;
            self.pieces[at] = piece;
        }
    }

    /// Raises the largest score to `largest`, and rescales the sum of exponentials accordingly.
    fn raise(&mut self, largest: f32) {
        if largest > self.head[0] {
            self.head[1] *= exp(self.head[0] - largest);
            self.head[0] = largest;
        }
    }

    /// Merges the summary of another group into this one.
    fn merge(&mut self, other: &Summary<'_>) {
        self.raise(other.head[0]);
        self.head[1] += other.head[1] * exp(other.head[0] - self.head[0]);
        for (score, piece) in other.scores.iter().zip(other.pieces.iter()) {
            self.insert(*score, *piece);
        }
    }
}

impl HeadTape {
    /// Writes the `k` best allowed pieces for each row of `states` to `out`.
    pub(crate) fn best(
        &mut self,
        cpu: &Cpu,
        output: Output<'_>,
        states: &[f32],
        k: usize,
        allowed: Option<AllowedPieces<'_>>,
        out: &mut Predictions,
    ) -> Result<(), Error> {
        out.clear();
        let n = states.len() / output.width;
        let vocab_size = output.bias.len();
        let k = k.min(vocab_size);
        let (group_rows, record) = (rows_per_group(vocab_size), 2 + 2 * k);
        let n_groups = vocab_size.div_ceil(group_rows);
        self.panels.try_reserve(n * output.width)?;
        pack_states(cpu.isa(), states, output.width, &mut self.panels);
        self.groups.try_reserve(n_groups * n * record)?;
        let groups = &mut self.groups[..n_groups * n * record];
        let panels = &self.panels;
        cpu.each(n_groups, Split::every(groups, n * record), |group, worker, records| {
            for record in records.chunks_exact_mut(record) {
                Summary::new(record, k).clear();
            }
            let start = group * group_rows;
            let rows = start..vocab_size.min(start + group_rows);
            for start in rows.clone().step_by(BLOCK) {
                let block = start..rows.end.min(start + BLOCK);
                let mut scratch = cpu.scratch(worker);
                scratch.reserve((BLOCK + 3) * n);
                let (scores, rest) = scratch[..(BLOCK + 3) * n].split_at_mut(BLOCK * n);
                let scores = &mut scores[..block.len() * n];
                score_block(cpu.isa(), output, block.clone(), panels, n, scores, n);
                summarise(cpu, scores, block.start, records, k, allowed, rest);
            }
        });
        for row in 0..n {
            let (first, others) = self.groups.split_at_mut(n * record);
            let mut best = Summary::new(&mut first[row * record..(row + 1) * record], k);
            for other in others[..(n_groups - 1) * n * record].chunks_exact_mut(n * record) {
                best.merge(&Summary::new(&mut other[row * record..(row + 1) * record], k));
            }
            out.push(&best);
        }
        Ok(())
    }
}

/// Updates the summaries of the `n` masked rows with the scores `[block, n]` of one block of table rows. The first row
/// of the block is `first_piece`.
fn summarise(
    cpu: &Cpu,
    scores: &[f32],
    first_piece: usize,
    records: &mut [f32],
    k: usize,
    allowed: Option<AllowedPieces<'_>>,
    scratch: &mut [f32],
) {
    let record = 2 + 2 * k;
    let n = records.len() / record;
    let (largest, rest) = scratch.split_at_mut(n);
    let (totals, bars) = rest.split_at_mut(n);
    column_maxima(cpu.isa(), scores, n, largest);
    for (column, record) in records.chunks_exact_mut(record).enumerate() {
        let mut summary = Summary::new(record, k);
        summary.raise(largest[column]);
        largest[column] = summary.head[0];
        bars[column] = summary.scores[k - 1];
    }
    totals.fill(0.0);
    add_exponentials(cpu.isa(), scores, n, largest, totals);
    for (record, total) in records.chunks_exact_mut(record).zip(totals.iter()) {
        record[1] += total;
    }
    for (row, piece) in scores.chunks_exact(n).zip(first_piece..) {
        if !any_above(cpu.isa(), row, bars) {
            continue;
        }
        for (column, score) in
            row.iter().enumerate().filter(|(column, score)| **score > bars[*column])
        {
            if allowed.is_some_and(|allowed| !allowed.contains(column, piece)) {
                continue;
            }
            let mut summary = Summary::new(&mut records[column * record..(column + 1) * record], k);
            summary.insert(*score, piece as f32);
        }
        for (bar, record) in bars.iter_mut().zip(records.chunks_exact(record)) {
            *bar = record[1 + k];
        }
    }
}
