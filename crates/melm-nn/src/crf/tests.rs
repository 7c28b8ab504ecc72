//! Compares the CRF with an enumeration of all sequences, with difference quotients, and with a closed form.
#![expect(clippy::float_cmp, reason = "zeros and infinities are exact")]

use super::{AllowedTransitions, Chain, ChainGradient, Lattice, Scores};
use crate::dropout::mix;
use crate::error::Error;

/// A CRF with random scores. The scores lie on a grid of numbers that `f32` represents exactly, so that their sums are
/// exact too.
struct Case {
    n_tags: usize,
    start: Vec<f32>,
    transitions: Vec<f32>,
    end: Vec<f32>,
    emissions: Vec<f32>,
    allowed: Option<AllowedTransitions>,
}

fn grid(key: u64, n: usize, scale: f32) -> Vec<f32> {
    let steps = (0..n as u64).map(|index| mix(key.wrapping_mul(1_000_003) ^ mix(index)) % 129);
    steps.map(|step| (step as f32 - 64.0) / 64.0 * scale).collect()
}

impl Case {
    fn new(key: u64, n_tokens: usize, n_tags: usize, scale: f32, is_constrained: bool) -> Self {
        let allowed = AllowedTransitions::new(n_tags, |from, to| {
            let code = from.unwrap_or(n_tags) * (n_tags + 1) + to.unwrap_or(n_tags);
            !mix(key ^ mix(code as u64 + 77)).is_multiple_of(4)
        });
        Self {
            n_tags,
            start: grid(key ^ 1 << 40, n_tags, scale),
            transitions: grid(key ^ 2 << 40, n_tags * n_tags, scale),
            end: grid(key ^ 3 << 40, n_tags, scale),
            emissions: grid(key ^ 4 << 40, n_tokens * n_tags, scale),
            allowed: is_constrained.then_some(allowed),
        }
    }

    /// Returns several cases for each size, with small and large scores, with and without constraints.
    fn all() -> impl Iterator<Item = Self> {
        let sizes = [(1, 1), (4, 1), (1, 4), (2, 3), (6, 2), (5, 3), (3, 5)];
        (0..6).flat_map(move |round| {
            sizes.into_iter().flat_map(move |(n_tokens, n_tags)| {
                [(2.0, false), (2.0, true), (32.0, false), (32.0, true)].map(
                    |(scale, is_constrained)| {
                        Self::new(round, n_tokens, n_tags, scale, is_constrained)
                    },
                )
            })
        })
    }

    fn chain(&self) -> Chain {
        let mut chain = Chain::default();
        let (start, transitions, end) = (&self.start, &self.transitions, &self.end);
        chain.set(Scores { start, transitions, end }, self.allowed.as_ref());
        chain
    }

    fn n_tokens(&self) -> usize {
        self.emissions.len() / self.n_tags
    }

    /// Returns every allowed sequence with its score, computed from the definition.
    fn sequences(&self) -> Vec<(Vec<u32>, f64)> {
        let (n, n_tokens) = (self.n_tags, self.n_tokens());
        let all = (0..n.pow(u32::try_from(n_tokens).unwrap())).map(|code| {
            let digits = (0..n_tokens).map(|token| code / n.pow(u32::try_from(token).unwrap()) % n);
            digits.collect::<Vec<_>>()
        });
        let allowed = all.filter(|tags| {
            self.allowed.as_ref().is_none_or(|allowed| {
                allowed.starts(tags[0])
                    && tags.windows(2).all(|pair| allowed.follows(pair[0], pair[1]))
                    && allowed.ends(tags[n_tokens - 1])
            })
        });
        let scored = allowed.map(|tags| {
            let mut score =
                f64::from(self.start[tags[0]]) + f64::from(self.end[tags[n_tokens - 1]]);
            for token in 0..n_tokens {
                score += f64::from(self.emissions[token * n + tags[token]]);
                if token > 0 {
                    score += f64::from(self.transitions[tags[token - 1] * n + tags[token]]);
                }
            }
            (tags.iter().map(|tag| u32::try_from(*tag).unwrap()).collect(), score)
        });
        scored.collect()
    }
}

fn log_total(sequences: &[(Vec<u32>, f64)]) -> f64 {
    let largest = sequences.iter().fold(f64::NEG_INFINITY, |most, (_, score)| most.max(*score));
    largest + sequences.iter().map(|(_, score)| (score - largest).exp()).sum::<f64>().ln()
}

/// Selects one kind of scores of a case.
type Selector = fn(&mut Case) -> &mut Vec<f32>;

fn gradient_of(case: &Case, tags: &[u32], weight: f64) -> (f64, Vec<f32>, ChainGradient) {
    let mut gradient = ChainGradient::default();
    gradient.clear(case.n_tags);
    let mut d_emissions = vec![f32::NAN; case.emissions.len()];
    let lattice = &mut Lattice::default();
    let loss = case
        .chain()
        .accumulate(&case.emissions, tags, weight, lattice, &mut d_emissions, &mut gradient)
        .unwrap();
    (loss, d_emissions, gradient)
}

fn assert_near(what: &str, found: impl IntoIterator<Item = f64>, wanted: &[f64], tolerance: f64) {
    let found: Vec<_> = found.into_iter().collect();
    assert_eq!(found.len(), wanted.len(), "{what}");
    for (index, (found, wanted)) in found.iter().zip(wanted).enumerate() {
        // This form of the comparison also fails for NaN.
        let is_near = (found - wanted).abs() <= tolerance;
        assert!(is_near, "{what}[{index}]: {found}, expected {wanted}");
    }
}

/// Two tags and two tokens. Repeating a tag scores 2, changing it scores 0.
#[test]
fn a_small_chain_equals_the_sum_by_hand() {
    let scores = Scores { start: &[0.0; 2], transitions: &[2.0, 0.0, 0.0, 2.0], end: &[0.0; 2] };
    let (mut chain, mut lattice) = (Chain::default(), Lattice::default());
    chain.set(scores, None);
    let emissions = [3.0, 0.0, /* second token */ 0.0, 1.0];
    let mut tags = Vec::new();
    chain.best_sequence(&emissions, &mut lattice, &mut tags).unwrap();
    assert_eq!(tags, [0, 0]);
    let log_probability = chain.log_probability(&emissions, &tags, &mut lattice).unwrap();
    let total = [3.0 + 2.0, 3.0 + 1.0, 0.0, 1.0 + 2.0_f64].map(f64::exp).iter().sum::<f64>();
    assert!((log_probability - (5.0 - total.ln())).abs() < 1e-12);
}

#[test]
fn likelihood_and_marginals_equal_enumeration() {
    let (mut lattice, mut n_impossible, mut n_checked) = (Lattice::default(), 0, 0);
    for case in Case::all() {
        let (n, chain, sequences) = (case.n_tags, case.chain(), case.sequences());
        let partition = chain.log_partition(&case.emissions, &mut lattice);
        if sequences.is_empty() {
            assert!(matches!(partition, Err(Error::NoTagSequence { .. })));
            assert!(chain.marginals(&case.emissions, &mut lattice).is_err());
            n_impossible += 1;
            continue;
        }
        let total = log_total(&sequences);
        assert_near("partition", [partition.unwrap()], &[total], 1e-10);
        let mut wanted = vec![0.0; case.emissions.len()];
        for (tags, score) in &sequences {
            let found = chain.log_probability(&case.emissions, tags, &mut lattice).unwrap();
            assert_near("log-probability", [found], &[score - total], 1e-10);
            for (token, tag) in tags.iter().enumerate() {
                wanted[token * n + *tag as usize] += (score - total).exp();
            }
        }
        let (found, _) = chain.marginals(&case.emissions, &mut lattice).unwrap();
        assert_near("marginals", found.iter().copied(), &wanted, 1e-10);
        n_checked += 1;
    }
    assert!(n_checked > 100 && n_impossible > 0, "{n_checked} {n_impossible}");
}

#[test]
fn viterbi_finds_the_best_sequence() {
    let (mut lattice, mut tags, mut n_checked) = (Lattice::default(), vec![9], 0);
    for case in Case::all() {
        let sequences = case.sequences();
        let found = case.chain().best_sequence(&case.emissions, &mut lattice, &mut tags);
        let Some(best) = sequences.iter().map(|(_, score)| *score).reduce(f64::max) else {
            assert!(matches!(found, Err(Error::NoTagSequence { .. })));
            continue;
        };
        // Sums of numbers on the grid are exact, so any sequence with the best score is correct.
        assert_eq!(found.unwrap(), best);
        assert!(sequences.contains(&(tags.clone(), best)), "{tags:?}");
        n_checked += 1;
    }
    assert!(n_checked > 100);
}

/// The gradient is the expected count minus the actual count.
#[test]
fn gradient_equals_enumeration() {
    for case in Case::all() {
        let (n, sequences) = (case.n_tags, case.sequences());
        let Some((gold, gold_score)) = sequences.get(sequences.len() / 2) else { continue };
        let total = log_total(&sequences);
        let (mut start, mut end) = (vec![0.0; n], vec![0.0; n]);
        let (mut pairs, mut emitted) = (vec![0.0; n * n], vec![0.0; case.emissions.len()]);
        let minus_one = -1.0;
        let expected = sequences.iter().map(|(tags, score)| (tags, (score - total).exp()));
        for (tags, times) in expected.chain([(gold, minus_one)]) {
            let tags: Vec<_> = tags.iter().map(|tag| *tag as usize).collect();
            start[tags[0]] += 0.5 * times;
            end[tags[tags.len() - 1]] += 0.5 * times;
            tags.windows(2).for_each(|pair| pairs[pair[0] * n + pair[1]] += 0.5 * times);
            (0..).zip(&tags).for_each(|(token, tag)| emitted[token * n + tag] += 0.5 * times);
        }
        let (loss, d_emissions, gradient) = gradient_of(&case, gold, 0.5);
        assert_near("loss", [loss], &[total - gold_score], 1e-10);
        assert_near("emissions", d_emissions.into_iter().map(f64::from), &emitted, 1e-7);
        assert_near("start", gradient.start, &start, 1e-10);
        assert_near("transitions", gradient.transitions, &pairs, 1e-10);
        assert_near("end", gradient.end, &end, 1e-10);
    }
}

#[test]
fn gradient_equals_difference_quotients() {
    const STEP: f32 = 1.0 / 512.0;
    for is_constrained in [false, true] {
        let mut case = Case::new(5, 7, 4, 2.0, is_constrained);
        let mut gold = Vec::new();
        case.chain().best_sequence(&case.emissions, &mut Lattice::default(), &mut gold).unwrap();
        let (_, d_emissions, gradient) = gradient_of(&case, &gold, 1.0);
        let kinds: [(Selector, Vec<f64>); 4] = [
            (|case| &mut case.start, gradient.start),
            (|case| &mut case.transitions, gradient.transitions),
            (|case| &mut case.end, gradient.end),
            (|case| &mut case.emissions, d_emissions.into_iter().map(f64::from).collect()),
        ];
        for (select, gradient) in kinds {
            for (index, wanted) in gradient.into_iter().enumerate() {
                let mut loss_at = |step: f32| {
                    select(&mut case)[index] += step;
                    let found = gradient_of(&case, &gold, 1.0).0;
                    select(&mut case)[index] -= step;
                    found
                };
                let quotient = (loss_at(STEP) - loss_at(-STEP)) / f64::from(2.0 * STEP);
                assert_near("gradient", [wanted], &[quotient], 1e-5);
            }
        }
    }
}

/// If every transition score is the sum of a score for the first tag and a score for the second tag, the tokens are
/// independent, and the probabilities of each token are a softmax.
#[test]
fn long_sentences_with_large_scores_equal_the_closed_form() {
    let (n, n_tokens) = (9, 2000);
    for scale in [4.0, 128.0, 10_048.0] {
        let (leaving, arriving) = (grid(1, n, scale), grid(2, n, scale));
        let mut case = Case::new(3, n_tokens, n, scale, false);
        case.transitions =
            leaving.iter().flat_map(|l| arriving.iter().map(move |a| l + a)).collect();
        let (mut total, mut marginals, mut best, mut gold_score) = (0.0, Vec::new(), 0.0, 0.0);
        let gold: Vec<u32> =
            (0..n_tokens as u64).map(|t| u32::try_from(mix(t) % 9).unwrap()).collect();
        for (token, emissions) in case.emissions.chunks_exact(n).enumerate() {
            let before = if token == 0 { &case.start } else { &arriving };
            let after = if token == n_tokens - 1 { &case.end } else { &leaving };
            let sum = |tag: usize| {
                [emissions[tag], before[tag], after[tag]].map(f64::from).iter().sum::<f64>()
            };
            let scores: Vec<f64> = (0..n).map(sum).collect();
            let largest = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            let sum: f64 = scores.iter().map(|score| (score - largest).exp()).sum();
            total += largest + sum.ln();
            best += largest;
            gold_score += scores[gold[token] as usize];
            marginals.extend(scores.iter().map(|score| (score - largest).exp() / sum));
        }
        let (chain, mut lattice, mut tags) = (case.chain(), Lattice::default(), Vec::new());
        let found = chain.best_sequence(&case.emissions, &mut lattice, &mut tags).unwrap();
        assert_near("best", [found, chain.score(&case.emissions, &tags)], &[best; 2], 1e-12 * best);
        let (found, _) = chain.marginals(&case.emissions, &mut lattice).unwrap();
        assert_near("marginals", found.iter().copied(), &marginals, 1e-7);
        let (loss, d_emissions, gradient) = gradient_of(&case, &gold, 1.0);
        assert_near("loss", [loss], &[total - gold_score], 1e-11 * total);
        assert!(d_emissions.iter().all(|d| d.is_finite()));
        assert!(gradient.transitions.iter().all(|d| d.is_finite()));
    }
}

/// A forbidden transition has probability zero and gradient zero, even if its score is by far the largest.
#[test]
fn forbidden_transitions_have_no_probability_and_no_gradient() {
    let mut case = Case::new(1, 300, 3, 10_048.0, false);
    case.allowed =
        Some(AllowedTransitions::new(3, |from, to| to != Some(2) || matches!(from, Some(1 | 2))));
    case.start[2] = 1e5;
    case.transitions[2] = 1e5; // from 0 to 2
    let mut tags = Vec::new();
    case.chain().best_sequence(&case.emissions, &mut Lattice::default(), &mut tags).unwrap();
    assert_ne!(tags[0], 2);
    assert!(tags.contains(&2) && tags.windows(2).all(|pair| pair != [0, 2]));
    let (loss, d_emissions, gradient) = gradient_of(&case, &vec![0; 300], 1.0);
    assert!(loss.is_finite() && d_emissions.iter().all(|d| d.is_finite()));
    assert_eq!((gradient.start[2], gradient.transitions[2], d_emissions[2]), (0.0, 0.0, 0.0));

    assert_eq!(rejection(&case, &tags), None);
    tags[7..9].copy_from_slice(&[0, 2]);
    let mut lattice = Lattice::default();
    assert_eq!(
        case.chain().log_probability(&case.emissions, &tags, &mut lattice).unwrap(),
        f64::NEG_INFINITY
    );
    assert_eq!(rejection(&case, &tags), Some((8, 2)));
    tags[0] = 2;
    assert_eq!(rejection(&case, &tags), Some((0, 2)));
    case.allowed = Some(AllowedTransitions::new(3, |from, to| from != Some(1) || to.is_some()));
    assert_eq!(rejection(&case, &vec![1; 300]), Some((299, 1)));
}

/// Returns the token and the tag for which a gold sequence is rejected.
fn rejection(case: &Case, tags: &[u32]) -> Option<(usize, u32)> {
    let mut gradient = ChainGradient::default();
    gradient.clear(case.n_tags);
    let mut d_emissions = vec![0.0; case.emissions.len()];
    let lattice = &mut Lattice::default();
    match case.chain().accumulate(
        &case.emissions,
        tags,
        1.0,
        lattice,
        &mut d_emissions,
        &mut gradient,
    ) {
        Ok(_) => None,
        Err(Error::ForbiddenTag { token, tag }) => Some((token, tag)),
        Err(other) => panic!("{other}"),
    }
}

#[test]
fn an_empty_sentence_has_zero_loss_and_no_gradient() {
    let case = Case::new(1, 0, 3, 1.0, true);
    let mut tags = vec![1];
    assert_eq!(case.chain().best_sequence(&[], &mut Lattice::default(), &mut tags).unwrap(), 0.0);
    assert!(tags.is_empty());
    let (loss, _, gradient) = gradient_of(&case, &[], 1.0);
    assert!(loss == 0.0 && gradient.start.iter().chain(&gradient.transitions).all(|d| *d == 0.0));
}
