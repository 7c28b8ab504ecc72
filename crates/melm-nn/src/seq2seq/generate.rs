//! Targets written for sources, drawn or searched for; the rules are those of transformers' `generate`.

use super::decode::Decoding;
use super::model::Seq2Seq;
use crate::device::Device;
use crate::draw::draw;
use crate::error::Error;
use crate::packed::Packed;

/// What a target begins and ends with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GenerationConfig {
    /// What the decoder reads first (`decoder_start_token_id`).
    pub start: u32,
    /// What it must write first, if anything (`forced_bos_token_id`).
    pub forced_first: Option<u32>,
    /// What it must write last when the longest length is reached, if anything (`forced_eos_token_id`).
    pub forced_last: Option<u32>,
    /// The longest target, with what the decoder reads first (`max_length`).
    pub longest: usize,
}

impl GenerationConfig {
    /// The piece that must stand at the next place, if any, when `n` pieces are there, the first read included.
    fn forced(&self, n: usize) -> Option<u32> {
        let last = self.forced_last.filter(|_| n + 1 == self.longest);
        last.or(self.forced_first.filter(|_| n == 1))
    }
}

/// When a search may stop before every sequence has ended (`early_stopping`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EarlyStopping {
    /// `False`: once the best sequence under way could not beat the worst finished one if it ended now.
    Heuristic,
    /// `True`: once there are as many finished sequences as beams.
    WhenFull,
    /// `"never"`: once no sequence under way could ever beat the worst finished one.
    Never,
}

/// A beam search.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BeamSearch {
    /// Sequences kept at every step (`num_beams`).
    pub n_beams: usize,
    /// Scores are divided by the length to this power: above 0 prefers longer targets.
    pub length_penalty: f64,
    /// When to stop.
    pub stopping: EarlyStopping,
}

/// A target that was found.
#[derive(Clone, Debug, PartialEq)]
pub struct Generated {
    /// Its pieces, without the first that the decoder read; its end included if it ended.
    pub pieces: Vec<u32>,
    /// Its log-probability over its length to the power of the penalty.
    pub score: f64,
}

/// What stands for minus infinity in transformers.
const NEVER: f64 = -1e9;

impl Seq2Seq {
    /// Draws a target for every source; `None` where it has not ended at the longest length. `share` gives the random
    /// number of a source's next draw.
    pub fn sample(
        &self,
        device: &Device,
        sources: &Packed,
        frame: &GenerationConfig,
        temperature: f64,
        share: &mut dyn FnMut(usize) -> f64,
    ) -> Result<Vec<Option<Vec<u32>>>, Error> {
        self.check_pieces(sources)?;
        let n = sources.n_sentences();
        let mut decoding = Decoding::start(self, device.require_cpu()?, sources);
        let (mut running, mut pieces): (Vec<usize>, _) = ((0..n).collect(), vec![frame.start; n]);
        let (mut texts, mut written) = (vec![Vec::new(); n], vec![None; n]);
        for length in 1..frame.longest.min(self.config.longest + 1) {
            let scores = decoding.step(&pieces);
            let rows = scores.chunks_exact(self.config.vocab_size);
            let choose = |(at, row): (&usize, &[f32])| {
                frame.forced(length).unwrap_or_else(|| {
                    let piece = draw(row, temperature, share(*at));
                    u32::try_from(piece).expect("pieces are u32")
                })
            };
            pieces = running.iter().zip(rows).map(choose).collect();
            for (at, piece) in running.iter().zip(&pieces) {
                texts[*at].push(*piece);
                if *piece == self.config.eos_id {
                    written[*at] = Some(std::mem::take(&mut texts[*at]));
                }
            }
            let eos = self.config.eos_id;
            let going_on: Vec<_> = (0..pieces.len()).filter(|at| pieces[*at] != eos).collect();
            if going_on.is_empty() {
                break;
            }
            decoding.keep(&going_on);
            running = going_on.iter().map(|at| running[*at]).collect();
            pieces = going_on.iter().map(|at| pieces[*at]).collect();
        }
        Ok(written)
    }

    /// The best targets of one source, as many as there are beams, best first.
    pub fn search(
        &self,
        device: &Device,
        source: &[u32],
        frame: &GenerationConfig,
        beams: &BeamSearch,
    ) -> Result<Vec<Generated>, Error> {
        let mut sources = Packed::default();
        sources.push(source, 0);
        self.check_pieces(&sources)?;
        let mut decoding = Decoding::start(self, device.require_cpu()?, &sources);
        decoding.keep(&vec![0; beams.n_beams]);
        let mut search = Search::new(*frame, *beams, self.config.eos_id);
        while search.goes_on {
            let last: Vec<_> = search.running.iter().map(|one| one.last(frame.start)).collect();
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

/// A search under way.
struct Search {
    frame: GenerationConfig,
    beams: BeamSearch,
    eos_id: u32,
    /// Pieces of the sequences under way, the first read included.
    length: usize,
    running: Vec<Generated>,
    /// The best so far, and whether each is a sequence at all.
    finished: Vec<(Generated, bool)>,
    can_improve: bool,
    goes_on: bool,
}

impl Search {
    fn new(frame: GenerationConfig, beams: BeamSearch, eos_id: u32) -> Self {
        let empty = |score| Generated { pieces: Vec::new(), score };
        // All beams begin alike: only the first counts.
        let running = (0..beams.n_beams).map(|at| empty(if at == 0 { 0.0 } else { NEVER }));
        let finished = vec![(empty(NEVER), false); beams.n_beams];
        let (running, length) = (running.collect(), 1);
        let goes_on = frame.longest > 1;
        Self { frame, beams, eos_id, length, running, finished, can_improve: true, goes_on }
    }

    /// Takes the scores of what follows each sequence; which of the sequences each new one goes on from.
    fn advance(&mut self, scores: &[f32]) -> Vec<usize> {
        let n = self.beams.n_beams;
        let continuations = self.continuations(scores);
        let mut ranked: Vec<_> = continuations
            .iter()
            .map(|one| one.score + if self.ends(one) { NEVER } else { 0.0 })
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
        let all_end = self.length >= self.frame.longest;
        self.goes_on = self.can_improve && !stops_full && !all_end;
        ranked.iter().map(|(at, _)| continuations[*at].from).collect()
    }

    /// Twice as many as there are beams, the best first.
    fn continuations(&self, scores: &[f32]) -> Vec<Continuation> {
        let vocab_size = scores.len() / self.running.len();
        let forced = self.frame.forced(self.length);
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
        one.piece == self.eos_id || self.length + 1 >= self.frame.longest
    }

    /// Takes in those of the best continuations that end.
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

    /// Whether the best sequence under way may still beat the worst finished one.
    fn may_improve(&self) -> bool {
        let is_never =
            self.beams.stopping == EarlyStopping::Never && self.beams.length_penalty > 0.0;
        let length = if is_never { self.frame.longest } else { self.length } - 1;
        let best = self.running[0].score / (length as f64).powf(self.beams.length_penalty);
        let worst =
            self.finished.iter().map(|(found, _)| found.score).fold(f64::INFINITY, f64::min);
        let is_full = self.finished.iter().all(|(_, is_finished)| *is_finished);
        best > if is_full { worst } else { NEVER }
    }
}

/// A sequence under way with one more piece.
struct Continuation {
    from: usize,
    piece: u32,
    score: f64,
}
