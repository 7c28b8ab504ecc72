//! Generates targets for sources, by sampling or by beam search, with the rules of `generate` in transformers.

use super::decode::Decoding;
use super::model::Seq2Seq;
use crate::device::Device;
use crate::draw::draw;
use crate::error::Error;
use crate::packed::Packed;

/// The start piece, the forced pieces and the largest length of a target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GenerationConfig {
    /// The first piece that the decoder reads (`decoder_start_token_id`).
    pub start: u32,
    /// The piece that the decoder must generate first, if any (`forced_bos_token_id`).
    pub forced_first: Option<u32>,
    /// The piece that is forced at the end when a target reaches the largest length, or `None` (`forced_eos_token_id`).
    pub forced_last: Option<u32>,
    /// The largest length of a target, including `start` (`max_length`).
    pub max_length: usize,
}

impl GenerationConfig {
    /// Returns the piece that must come next after `n` pieces (including `start`), or `None` if the decoder may choose.
    fn forced(&self, n: usize) -> Option<u32> {
        let last = self.forced_last.filter(|_| n + 1 == self.max_length);
        last.or(self.forced_first.filter(|_| n == 1))
    }
}

/// When a beam search stops before every sequence has ended (`early_stopping`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EarlyStopping {
    /// `False` in transformers: stop if the best running sequence, should it end now, would score below the worst
    /// finished one.
    Heuristic,
    /// `True` in transformers: stop as soon as there are as many finished sequences as beams.
    WhenFull,
    /// `"never"` in transformers: stop only if no running sequence can still score above the worst finished one.
    Never,
}

/// The settings of a beam search.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BeamSearch {
    /// The number of sequences that are continued at every step (`num_beams`).
    pub n_beams: usize,
    /// Scores are divided by the length of the target to this power (`length_penalty`). Values above 0 prefer longer
    /// targets.
    pub length_penalty: f64,
    /// When the search stops.
    pub stopping: EarlyStopping,
}

/// A generated target and its score.
#[derive(Clone, Debug, PartialEq)]
pub struct Generated {
    /// The generated pieces, without the start piece. The end piece is included if the target ended.
    pub pieces: Vec<u32>,
    /// The log-probability of the pieces, divided by their number to the power of the length penalty.
    pub score: f64,
}

/// The value that transformers uses for minus infinity.
const MINUS_INFINITY: f64 = -1e9;

impl Seq2Seq {
    /// Samples a target for every source. A target is `None` if it did not end before the largest length.
    /// `next_uniform(index)` returns the next random number in `[0, 1)` for the source with this index.
    ///
    /// # Errors
    /// Fails if a piece is not in the vocabulary, if a source is empty or too long, or if the device is a GPU, because
    /// this model has no GPU kernels.
    pub fn sample(
        &self,
        device: &Device,
        sources: &Packed,
        generation: &GenerationConfig,
        temperature: f64,
        next_uniform: &mut dyn FnMut(usize) -> f64,
    ) -> Result<Vec<Option<Vec<u32>>>, Error> {
        self.check_pieces(sources)?;
        let n = sources.n_sentences();
        let mut decoding = Decoding::start(self, device.require_cpu()?, sources)?;
        let (mut running, mut pieces): (Vec<usize>, _) =
            ((0..n).collect(), vec![generation.start; n]);
        let (mut unfinished, mut targets) = (vec![Vec::new(); n], vec![None; n]);
        for length in 1..generation.max_length.min(self.config.max_pieces + 1) {
            let scores = decoding.step(&pieces);
            let rows = scores.chunks_exact(self.config.vocab_size);
            let choose = |(at, row): (&usize, &[f32])| {
                generation.forced(length).unwrap_or_else(|| {
                    let piece = draw(row, temperature, next_uniform(*at));
                    u32::try_from(piece).expect("pieces are u32")
                })
            };
            pieces = running.iter().zip(rows).map(choose).collect();
            for (at, piece) in running.iter().zip(&pieces) {
                unfinished[*at].push(*piece);
                if *piece == self.config.eos_id {
                    targets[*at] = Some(std::mem::take(&mut unfinished[*at]));
                }
            }
            let eos = self.config.eos_id;
            let continuing: Vec<_> = (0..pieces.len()).filter(|at| pieces[*at] != eos).collect();
            if continuing.is_empty() {
                break;
            }
            decoding.keep(&continuing);
            running = continuing.iter().map(|at| running[*at]).collect();
            pieces = continuing.iter().map(|at| pieces[*at]).collect();
        }
        Ok(targets)
    }

    /// Returns the best targets of one source, best first. There are at most as many as beams.
    ///
    /// # Errors
    /// As [`Self::sample`].
    pub fn search(
        &self,
        device: &Device,
        source: &[u32],
        generation: &GenerationConfig,
        beams: &BeamSearch,
    ) -> Result<Vec<Generated>, Error> {
        let mut sources = Packed::default();
        sources.push(source, 0);
        self.check_pieces(&sources)?;
        let mut decoding = Decoding::start(self, device.require_cpu()?, &sources)?;
        decoding.keep(&vec![0; beams.n_beams]);
        let mut search = SearchState::new(*generation, *beams, self.config.eos_id);
        while search.is_running {
            let last: Vec<_> =
                search.running.iter().map(|one| one.last(generation.start)).collect();
            let scores = decoding.step(&last);
            decoding.keep(&search.advance(&scores));
        }
        let ended = search.finished.into_iter().filter(|(_, is_finished)| *is_finished);
        Ok(ended.map(|(found, _)| found).collect())
    }
}

impl Generated {
    fn last(&self, start: u32) -> u32 {
        self.pieces.last().copied().unwrap_or(start)
    }
}

/// The state of a beam search.
struct SearchState {
    generation: GenerationConfig,
    beams: BeamSearch,
    eos_id: u32,
    /// The length of the running sequences, including the start piece.
    length: usize,
    running: Vec<Generated>,
    /// The best finished sequences. `false` marks an entry that is still empty.
    finished: Vec<(Generated, bool)>,
    can_improve: bool,
    is_running: bool,
}

impl SearchState {
    fn new(generation: GenerationConfig, beams: BeamSearch, eos_id: u32) -> Self {
        let empty = |score| Generated { pieces: Vec::new(), score };
        // All beams are equal at the start, so the scores of all but the first are minus infinity.
        let running =
            (0..beams.n_beams).map(|at| empty(if at == 0 { 0.0 } else { MINUS_INFINITY }));
        let finished = vec![(empty(MINUS_INFINITY), false); beams.n_beams];
        let (running, length) = (running.collect(), 1);
        let is_running = generation.max_length > 1;
        Self { generation, beams, eos_id, length, running, finished, can_improve: true, is_running }
    }

    /// Extends the running sequences by one piece. Returns, for each new sequence, the index of the sequence that it
    /// extends.
    fn advance(&mut self, scores: &[f32]) -> Vec<usize> {
        let n = self.beams.n_beams;
        let continuations = self.continuations(scores);
        let mut ranked: Vec<_> = continuations
            .iter()
            .map(|one| one.score + if self.ends(one) { MINUS_INFINITY } else { 0.0 })
            .enumerate()
            .collect();
        ranked.sort_by(|a, b| b.1.total_cmp(&a.1));
        ranked.truncate(n);
        self.finish(&continuations);
        let sequence = |one: &Continuation, score| {
            let mut pieces = self.running[one.from].pieces.clone();
            pieces.push(one.piece);
            Generated { pieces, score }
        };
        let next = ranked.iter().map(|(at, score)| sequence(&continuations[*at], *score));
        self.running = next.collect();
        self.length += 1;
        self.can_improve &= self.may_improve();
        let is_full = self.finished.iter().all(|(_, is_finished)| *is_finished);
        let stops_full = is_full && self.beams.stopping == EarlyStopping::WhenFull;
        let all_end = self.length >= self.generation.max_length;
        self.is_running = self.can_improve && !stops_full && !all_end;
        ranked.iter().map(|(at, _)| continuations[*at].from).collect()
    }

    /// Returns the best continuations, best first: twice as many as there are beams.
    fn continuations(&self, scores: &[f32]) -> Vec<Continuation> {
        let vocab_size = scores.len() / self.running.len();
        let forced = self.generation.forced(self.length);
        let mut all = Vec::with_capacity(scores.len());
        for ((from, before), row) in self.running.iter().enumerate().zip(scores.chunks(vocab_size))
        {
            let largest = row.iter().copied().fold(f32::NEG_INFINITY, f32::max);
            let total: f64 = row.iter().map(|x| f64::from(x - largest).exp()).sum();
            let log_total = total.ln() + f64::from(largest);
            for (piece, x) in (0..).zip(row) {
                let score = match forced {
                    None => f64::from(*x) - log_total,
                    Some(forced) if forced == piece => 0.0,
                    Some(_) => f64::NEG_INFINITY,
                };
                all.push(Continuation { from, piece, score: before.score + score });
            }
        }
        let n_kept = (2 * self.beams.n_beams).min(all.len());
        let best_first = |a: &Continuation, b: &Continuation| b.score.total_cmp(&a.score);
        all.select_nth_unstable_by(n_kept - 1, best_first);
        all.truncate(n_kept);
        all.sort_by(|a, b| best_first(a, b).then((a.from, a.piece).cmp(&(b.from, b.piece))));
        all
    }

    fn ends(&self, one: &Continuation) -> bool {
        one.piece == self.eos_id || self.length + 1 >= self.generation.max_length
    }

    /// Adds a continuation to the finished sequences if it ends and is among the best `n_beams`.
    fn finish(&mut self, continuations: &[Continuation]) {
        let n = self.beams.n_beams;
        let is_full = self.finished.iter().all(|(_, is_finished)| *is_finished);
        if !self.can_improve || (is_full && self.beams.stopping == EarlyStopping::WhenFull) {
            return;
        }
        let norm = (self.length as f64).powf(self.beams.length_penalty);
        let ended: Vec<_> = continuations[..n].iter().filter(|one| self.ends(one)).collect();
        for one in ended {
            let mut pieces = self.running[one.from].pieces.clone();
            pieces.push(one.piece);
            self.finished.push((Generated { pieces, score: one.score / norm }, true));
        }
        self.finished.sort_by(|(a, _), (b, _)| b.score.total_cmp(&a.score));
        self.finished.truncate(n);
    }

    /// Returns true if the best running sequence may still score above the worst finished one.
    fn may_improve(&self) -> bool {
        let is_never =
            self.beams.stopping == EarlyStopping::Never && self.beams.length_penalty > 0.0;
        let length = if is_never { self.generation.max_length } else { self.length } - 1;
        let best = self.running[0].score / (length as f64).powf(self.beams.length_penalty);
        let worst =
            self.finished.iter().map(|(found, _)| found.score).fold(f64::INFINITY, f64::min);
        let is_full = self.finished.iter().all(|(_, is_finished)| *is_finished);
        best > if is_full { worst } else { MINUS_INFINITY }
    }
}

/// A running sequence extended by one piece.
struct Continuation {
    from: usize,
    piece: u32,
    score: f64,
}
