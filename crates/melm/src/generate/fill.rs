//! Fills masked positions in batches of windows of similar length. Each step of the fill order is one forward pass.

use std::borrow::Cow;

use melm_nn::config::Config;
use melm_nn::device::Device;
use melm_nn::mlm::{
    AllowedPieces, Candidate, MaskedBatch, MaskedLm, MaskedLmTape, PieceSets, Predictions,
};

use super::repeats::RepeatCheck;
use super::settings::{FillOrder, GenerateSettings, Sampling};
use crate::Error;
use crate::linearize::Linearized;
use crate::mask::Masked;
use crate::pieces::Tokenizer;
use crate::random::Generator;
use crate::stage::Control;

/// A masked window that is being filled.
pub(super) struct FillTask<'a> {
    /// The window of the source sentence.
    pub(super) source: &'a Linearized,
    /// The window that is filled: the source's, or with `generate.whole_words` one in which each masked token has a single
    /// piece.
    pub(super) window: Cow<'a, Linearized>,
    /// The pieces of the window. Filling replaces each `<mask>` by the chosen piece.
    pub(super) masked: Masked,
    /// The index of the candidate set of each masked position.
    pub(super) set_of: Vec<usize>,
    /// The step in which each masked position is filled.
    pub(super) step_of: Vec<usize>,
    /// For each masked position, the tokens that the new token may not repeat. Empty if repeats are allowed.
    pub(super) repeat_checks: Vec<Option<RepeatCheck>>,
    pub(super) generator: Generator,
    /// The piece chosen at each masked position. `None` if no piece is allowed there; the original piece is then
    /// kept.
    pub(super) chosen: Vec<Option<ChosenPiece>>,
}

impl FillTask<'_> {
    /// Returns the indices of the masked positions that are filled in a step.
    fn indices_of_step(&self, step: usize) -> Vec<usize> {
        (0..self.step_of.len()).filter(|index| self.step_of[*index] == step).collect()
    }

    /// Leaves out the candidates that would make the token at the masked position `index` repeat a token that it may not
    /// repeat.
    fn without_repeats<'c>(
        &self,
        candidates: &'c [Candidate],
        index: usize,
        tokenizer: &Tokenizer,
    ) -> Cow<'c, [Candidate]> {
        let Some(check) = self.repeat_checks.get(index).and_then(Option::as_ref) else {
            return Cow::Borrowed(candidates);
        };
        let mut pieces = self.masked.pieces.clone();
        let position = self.masked.positions[index];
        let mut repeats = |candidate: &Candidate| {
            pieces[position] = candidate.piece;
            check.finds_repeat(&pieces, tokenizer)
        };
        Cow::Owned(candidates.iter().filter(|one| !repeats(one)).copied().collect())
    }
}

/// A candidate that was chosen, and its rank from 1.
#[derive(Clone, Copy)]
pub(super) struct ChosenPiece {
    pub(super) rank: usize,
    pub(super) candidate: Candidate,
}

/// The inputs that are the same for all windows of a round.
pub(super) struct FillContext<'a> {
    pub(super) device: &'a Device,
    pub(super) model: &'a MaskedLm,
    pub(super) tokenizer: &'a Tokenizer,
    pub(super) settings: &'a GenerateSettings,
    pub(super) sets: &'a PieceSets,
}

/// Working memory for filling, allocated once.
pub(super) struct Filler {
    tape: MaskedLmTape,
    batch: MaskedBatch,
    set_of: Vec<usize>,
    out: Predictions,
}

impl Filler {
    pub(super) fn new(config: &Config) -> Self {
        Self {
            tape: MaskedLmTape::for_prediction(config),
            batch: MaskedBatch::default(),
            set_of: Vec::new(),
            out: Predictions::default(),
        }
    }

    /// Fills every task. After each batch, calls `on_filled` with the number of tasks in the batch, and after each step
    /// with 0. `on_filled` may stop the work.
    pub(super) fn fill(
        &mut self,
        context: &FillContext<'_>,
        tasks: &mut [FillTask<'_>],
        on_filled: &mut dyn FnMut(usize) -> Control,
    ) -> Result<(), Error> {
        for batch in batches(tasks, context.settings.pieces_per_batch.get()) {
            let last_step = batch.iter().flat_map(|at| &tasks[*at].step_of).max();
            for step in 0..=*last_step.expect("a batch has masked positions") {
                self.step(context, tasks, &batch, step)?;
                // No window is complete yet, but a user who waits can stop here.
                on_filled(0).or_interrupted()?;
            }
            on_filled(batch.len()).or_interrupted()?;
        }
        Ok(())
    }

    /// Runs the model once over a batch and chooses a piece at each position of this step.
    fn step(
        &mut self,
        context: &FillContext<'_>,
        tasks: &mut [FillTask<'_>],
        batch: &[usize],
        step: usize,
    ) -> Result<(), Error> {
        let FillContext { device, model, tokenizer, settings, sets } = *context;
        self.batch.clear();
        self.set_of.clear();
        for task in batch.iter().map(|at| &tasks[*at]) {
            let indices = task.indices_of_step(step);
            if indices.is_empty() {
                continue;
            }
            let start = self.batch.sentences.n_rows();
            self.batch.sentences.push(&task.masked.pieces, 0);
            for index in indices {
                self.batch.positions.push(start + task.masked.positions[index]);
                self.set_of.push(task.set_of[index]);
            }
        }
        let allowed = AllowedPieces { sets, set_of: &self.set_of };
        let k = settings.ranks.last();
        model.predict_allowed(device, &self.batch, k, allowed, &mut self.tape, &mut self.out)?;
        let mut row = 0;
        for at in batch {
            let task = &mut tasks[*at];
            for index in task.indices_of_step(step) {
                let candidates = task.without_repeats(self.out.row(row), index, tokenizer);
                let chosen = choose(&candidates, settings, &mut task.generator);
                let original = task.masked.originals[index];
                task.masked.pieces[task.masked.positions[index]] =
                    chosen.map_or(original, |chosen| chosen.candidate.piece);
                task.chosen[index] = chosen;
                row += 1;
            }
        }
        Ok(())
    }
}

/// Returns the step in which each masked position of a window is filled.
pub(super) fn steps(window: &Linearized, masked: &Masked, order: FillOrder) -> Vec<usize> {
    let mention_of = |position: &usize| {
        let own = window.entities.iter().find(|entity| entity.piece_range.contains(position));
        own.expect("masked positions are in entity tokens").mention
    };
    let n = masked.positions.len();
    match order {
        FillOrder::AtOnce => vec![0; n],
        FillOrder::LeftToRight => (0..n).collect(),
        FillOrder::WithinMentions => {
            let mentions = masked.positions.chunk_by(|a, b| mention_of(a) == mention_of(b));
            mentions.flat_map(|positions| 0..positions.len()).collect()
        }
    }
}

/// Groups the tasks that have a masked position into batches of similar length. A batch has at most `budget` pieces,
/// unless a single task is longer. Returns indices of `tasks`.
fn batches(tasks: &[FillTask<'_>], budget: usize) -> Vec<Vec<usize>> {
    let length = |at: usize| tasks[at].masked.pieces.len();
    let mut order: Vec<_> = (0..tasks.len()).filter(|at| !tasks[*at].chosen.is_empty()).collect();
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

/// Chooses one of the candidates whose rank is in the range of the settings. If there are fewer candidates than the
/// first rank of the range, takes the last candidate. Returns `None` if there are no candidates.
fn choose(
    candidates: &[Candidate],
    settings: &GenerateSettings,
    generator: &mut Generator,
) -> Option<ChosenPiece> {
    let last = candidates.len().min(settings.ranks.last());
    let before = (settings.ranks.first() - 1).min(last.checked_sub(1)?);
    let eligible = &candidates[before..last];
    let at = match settings.sampling {
        Sampling::Uniform => generator.below(eligible.len()),
        Sampling::Temperature(temperature) => {
            draw_weighted(eligible, temperature.into(), generator)
        }
    };
    Some(ChosenPiece { rank: before + at + 1, candidate: eligible[at] })
}

/// Draws the index of a candidate. A candidate of probability p has a weight of p^(1/T), where T is the temperature.
fn draw_weighted(eligible: &[Candidate], temperature: f64, generator: &mut Generator) -> usize {
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
    use crate::random::Seed;

    fn candidates(n: u16) -> Vec<Candidate> {
        let likely = |rank: u16| -f32::from(rank) * std::f32::consts::LN_2;
        (0..n).map(|rank| Candidate { piece: rank.into(), log_probability: likely(rank) }).collect()
    }

    /// Counts how often each rank is chosen in 32,000 draws.
    fn counts(settings: &GenerateSettings, n: u16) -> Vec<i32> {
        let mut generator = Seed(9).stream("choose").generator();
        let mut counts = vec![0; 8];
        for _ in 0..32_000 {
            let chosen = choose(&candidates(n), settings, &mut generator).unwrap();
            assert_eq!(chosen.candidate.piece as usize + 1, chosen.rank);
            counts[chosen.rank - 1] += 1;
        }
        counts
    }

    fn assert_near(counts: &[i32], expected: &[i32]) {
        for (count, expected) in counts.iter().zip(expected) {
            // The tolerance is at most 5 standard deviations of a binomial count.
            assert!((count - expected).abs() <= 450.min(*expected), "{counts:?}");
        }
    }

    #[test]
    fn chosen_ranks_follow_the_settings() {
        let paper = GenerateSettings::default();
        assert_near(&counts(&paper, 8), &[6_400, 6_400, 6_400, 6_400, 6_400, 0, 0, 0]);
        let code = GenerateSettings { ranks: (2, 5).try_into().unwrap(), ..paper.clone() };
        assert_near(&counts(&code, 8), &[0, 8_000, 8_000, 8_000, 8_000, 0, 0, 0]);
        assert_near(&counts(&code, 3), &[0, 16_000, 16_000, 0]);
        assert_near(&counts(&code, 1), &[32_000, 0]);
    }

    #[test]
    fn a_temperature_of_one_draws_from_the_models_distribution() {
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
    fn nothing_is_chosen_without_candidates() {
        let mut generator = Seed(9).stream("choose").generator();
        assert!(choose(&[], &GenerateSettings::default(), &mut generator).is_none());
    }
}
