//! Filling masked positions: batches of similar length, one forward pass for each step of the fill order.

use std::ops::{ControlFlow, Range};

use melm_nn::device::Device;
use melm_nn::encoder::Tape;
use melm_nn::mlm::{Allowed, Candidate, HeadTape, MaskedBatch, MaskedLm, PieceSets, Predictions};

use super::settings::{FillOrder, GenerateSettings, Sampling};
use crate::Error;
use crate::linearize::Linearized;
use crate::mask::Masked;
use crate::run::Generator;

/// A masked window on its way to a filled one.
pub(super) struct Task<'a> {
    pub(super) window: &'a Linearized,
    /// Its pieces: masks give way to guesses.
    pub(super) masked: Masked,
    /// The set of candidates at each masked position.
    pub(super) set_of: Vec<usize>,
    pub(super) generator: Generator,
    /// What was guessed at each masked position; none where no piece is allowed, and the original stands.
    pub(super) guesses: Vec<Option<Guess>>,
}

/// A chosen candidate.
#[derive(Clone, Copy)]
pub(super) struct Guess {
    pub(super) rank: usize,
    pub(super) candidate: Candidate,
}

/// The model, and working memory that is allocated once.
pub(super) struct Filler<'a> {
    device: &'a Device,
    model: &'a MaskedLm,
    settings: &'a GenerateSettings,
    tape: Tape,
    head: HeadTape,
    batch: MaskedBatch,
    set_of: Vec<usize>,
    out: Predictions,
}

impl<'a> Filler<'a> {
    pub(super) fn new(
        device: &'a Device,
        model: &'a MaskedLm,
        settings: &'a GenerateSettings,
    ) -> Self {
        Self {
            device,
            model,
            settings,
            tape: Tape::for_prediction(model.config()),
            head: HeadTape::default(),
            batch: MaskedBatch::default(),
            set_of: Vec::new(),
            out: Predictions::default(),
        }
    }

    /// Fills every task. Reports the number of tasks filled by each batch to `on_filled`, which may stop the work.
    pub(super) fn fill(
        &mut self,
        tasks: &mut [Task<'_>],
        sets: &PieceSets,
        on_filled: &mut dyn FnMut(usize) -> ControlFlow<()>,
    ) -> Result<ControlFlow<()>, Error> {
        for batch in batches(tasks, self.settings.pieces_per_batch.get()) {
            let n_steps = match self.settings.order {
                FillOrder::AtOnce => 1,
                FillOrder::LeftToRight => {
                    batch.iter().map(|at| tasks[*at].guesses.len()).max().unwrap_or(0)
                }
            };
            for step in 0..n_steps {
                self.step(tasks, &batch, sets, step)?;
            }
            if on_filled(batch.len()).is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    /// Asks the model once about a batch, and chooses.
    fn step(
        &mut self,
        tasks: &mut [Task<'_>],
        batch: &[usize],
        sets: &PieceSets,
        step: usize,
    ) -> Result<(), Error> {
        let order = self.settings.order;
        self.batch.clear();
        self.set_of.clear();
        for task in batch.iter().map(|at| &tasks[*at]) {
            let asked = asked(task, order, step);
            if asked.is_empty() {
                continue;
            }
            let start = self.batch.sentences.n_rows();
            self.batch.sentences.push(&task.masked.pieces, 0);
            let positions = task.masked.positions[asked.clone()].iter();
            self.batch.positions.extend(positions.map(|position| start + position));
            self.set_of.extend(&task.set_of[asked]);
        }
        let allowed = Allowed { sets, set_of: &self.set_of };
        let question = (&self.batch, self.settings.ranks.last(), allowed);
        let tapes = (&mut self.tape, &mut self.head);
        self.model.predict_allowed(self.device, question, tapes, &mut self.out)?;
        let mut row = 0;
        for at in batch {
            let task = &mut tasks[*at];
            for index in asked(task, order, step) {
                let guess = choose(self.out.row(row), self.settings, &mut task.generator);
                let original = task.masked.originals[index];
                task.masked.pieces[task.masked.positions[index]] =
                    guess.map_or(original, |guess| guess.candidate.piece);
                task.guesses[index] = guess;
                row += 1;
            }
        }
        Ok(())
    }
}

/// The masked positions that a step asks about, by number.
fn asked(task: &Task<'_>, order: FillOrder, step: usize) -> Range<usize> {
    let n = task.guesses.len();
    match order {
        FillOrder::AtOnce => 0..n,
        FillOrder::LeftToRight => step.min(n)..(step + 1).min(n),
    }
}

/// Tasks with something to fill, those of similar length together, up to a number of pieces.
fn batches(tasks: &[Task<'_>], budget: usize) -> Vec<Vec<usize>> {
    let length = |at: usize| tasks[at].masked.pieces.len();
    let mut order: Vec<_> = (0..tasks.len()).filter(|at| !tasks[*at].guesses.is_empty()).collect();
    order.sort_by_key(|at| length(*at));
    let mut batches: Vec<Vec<usize>> = Vec::new();
    let mut n_pieces = 0;
    for at in order {
        n_pieces += length(at);
        match batches.last_mut() {
            Some(batch) if n_pieces <= budget => batch.push(at),
            _ => {
                batches.push(vec![at]);
                n_pieces = length(at);
            }
        }
    }
    batches
}

/// One of the candidates within the ranks; the last one where there are fewer.
fn choose(
    candidates: &[Candidate],
    settings: &GenerateSettings,
    generator: &mut Generator,
) -> Option<Guess> {
    let last = candidates.len().min(settings.ranks.last());
    let before = (settings.ranks.first() - 1).min(last.checked_sub(1)?);
    let eligible = &candidates[before..last];
    let at = match settings.sampling {
        Sampling::Uniform => generator.below(eligible.len()),
        Sampling::Temperature(temperature) => weighted(eligible, temperature.into(), generator),
    };
    Some(Guess { rank: before + at + 1, candidate: eligible[at] })
}

/// A draw in proportion to p^(1/T).
fn weighted(eligible: &[Candidate], temperature: f64, generator: &mut Generator) -> usize {
    let log = |candidate: &Candidate| f64::from(candidate.log_probability) / temperature;
    let best = log(&eligible[0]);
    let weights: Vec<f64> = eligible.iter().map(|c| libm::exp(log(c) - best)).collect();
    let mut left = generator.uniform() * weights.iter().sum::<f64>();
    for (at, weight) in weights.iter().enumerate() {
        left -= weight;
        if left < 0.0 {
            return at;
        }
    }
    weights.len() - 1
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::Seed;

    fn candidates(n: u16) -> Vec<Candidate> {
        let likely = |rank: u16| -f32::from(rank) * std::f32::consts::LN_2;
        (0..n).map(|rank| Candidate { piece: rank.into(), log_probability: likely(rank) }).collect()
    }

    /// How often each rank is chosen in 32,000 draws.
    fn counts(settings: &GenerateSettings, n: u16) -> Vec<i32> {
        let mut generator = Seed(9).stream("choose").generator();
        let mut counts = vec![0; 8];
        for _ in 0..32_000 {
            let guess = choose(&candidates(n), settings, &mut generator).unwrap();
            assert_eq!(guess.candidate.piece as usize + 1, guess.rank);
            counts[guess.rank - 1] += 1;
        }
        counts
    }

    fn assert_near(counts: &[i32], expected: &[i32]) {
        for (count, expected) in counts.iter().zip(expected) {
            // 5 standard deviations of a binomial count, at most.
            assert!((count - expected).abs() <= 450.min(*expected), "{counts:?}");
        }
    }

    #[test]
    fn ranks_are_chosen_as_the_settings_say() {
        let paper = GenerateSettings::default();
        assert_near(&counts(&paper, 8), &[6_400, 6_400, 6_400, 6_400, 6_400, 0, 0, 0]);
        let code = GenerateSettings { ranks: (2, 5).try_into().unwrap(), ..paper.clone() };
        assert_near(&counts(&code, 8), &[0, 8_000, 8_000, 8_000, 8_000, 0, 0, 0]);
        assert_near(&counts(&code, 3), &[0, 16_000, 16_000, 0]);
        assert_near(&counts(&code, 1), &[32_000, 0]);
    }

    #[test]
    fn a_temperature_of_one_is_the_models_own_distribution() {
        let sampling = Sampling::Temperature(1.0.try_into().unwrap());
        let ranks = (1, 3).try_into().unwrap();
        let settings = GenerateSettings { ranks, sampling, ..GenerateSettings::default() };
        assert_near(&counts(&settings, 8), &[18_286, 9_143, 4_571, 0]);
        let sampling = Sampling::Temperature(0.5.try_into().unwrap());
        assert_near(
            &counts(&GenerateSettings { sampling, ..settings }, 8),
            &[24_381, 6_095, 1_524, 0],
        );
    }

    #[test]
    fn without_candidates_there_is_no_choice() {
        let mut generator = Seed(9).stream("choose").generator();
        assert!(choose(&[], &GenerateSettings::default(), &mut generator).is_none());
    }
}
