//! Compares soft tags with an enumeration of all sequences, and their loss with the losses of single sequences.

use super::{Case, assert_near, gradient_of, log_total};
use crate::crf::{AllowedTransitions, ChainGradient, Lattice, SoftTags};
use crate::error::Error;

/// Selects numbers of a loss and its gradients.
type Values<'a> = &'a dyn Fn(&(f64, Vec<f32>, ChainGradient)) -> Vec<f64>;

#[test]
fn soft_tags_equal_an_enumeration() {
    for case in Case::all() {
        let (sequences, n) = (case.sequences(), case.n_tags);
        if sequences.is_empty() {
            continue;
        }
        let total = log_total(&sequences);
        let (mut tags, mut pairs) = (vec![0.0; case.emissions.len()], vec![0.0; n * n]);
        for (sequence, score) in &sequences {
            let probability = (score - total).exp();
            for (token, tag) in sequence.iter().enumerate() {
                tags[token * n + *tag as usize] += probability;
            }
            for pair in sequence.windows(2) {
                pairs[pair[0] as usize * n + pair[1] as usize] += probability;
            }
        }
        let soft = case.chain().soft_tags(&case.emissions, &mut Lattice::default()).unwrap();
        assert_near("tags", soft.tags.into_iter().map(f64::from), &tags, 1e-6);
        assert_near("pairs", soft.pairs.into_iter().map(f64::from), &pairs, 1e-6);
    }
}

#[test]
fn the_loss_of_a_mixture_is_the_mean_of_the_losses_of_its_sequences() {
    for case in Case::all() {
        let sequences = case.sequences();
        let n = case.n_tags;
        // Sequences far apart in the list, so that they differ at the start, inside and at the end.
        let step = sequences.len().div_ceil(4).max(1);
        let chosen: Vec<_> = sequences.iter().step_by(step).map(|(tags, _)| tags).collect();
        if chosen.is_empty() {
            continue;
        }
        let soft: Vec<_> = chosen.iter().map(|tags| SoftTags::from_tags(tags, n)).collect();
        let mixture = SoftTags::mean(&soft.iter().collect::<Vec<_>>());
        let mut gradient = ChainGradient::default();
        gradient.clear(n);
        let mut d_emissions = vec![f32::NAN; case.emissions.len()];
        let loss = case
            .chain()
            .accumulate_soft(
                &case.emissions,
                &mixture,
                0.5,
                &mut Lattice::default(),
                &mut d_emissions,
                &mut gradient,
            )
            .unwrap();
        let hard: Vec<_> = chosen.iter().map(|tags| gradient_of(&case, tags, 0.5)).collect();
        let mean = |values: Values<'_>| -> Vec<f64> {
            let all: Vec<_> = hard.iter().map(values).collect();
            (0..all[0].len())
                .map(|at| all.iter().map(|one| one[at]).sum::<f64>() / all.len() as f64)
                .collect()
        };
        // The shares of the mixture are f32, so large scores cost some digits.
        let tolerance = 1e-4;
        assert_near("loss", [loss], &mean(&|one| vec![one.0]), tolerance);
        let wanted = mean(&|one| one.1.iter().map(|d| f64::from(*d)).collect());
        assert_near("emissions", d_emissions.into_iter().map(f64::from), &wanted, 1e-6);
        assert_near("start", gradient.start, &mean(&|one| one.2.start.clone()), 1e-6);
        let wanted = mean(&|one| one.2.transitions.clone());
        assert_near("transitions", gradient.transitions, &wanted, 1e-6);
        assert_near("end", gradient.end, &mean(&|one| one.2.end.clone()), 1e-6);
    }
}

#[test]
fn soft_tags_with_a_forbidden_transition_are_refused() {
    // Tag 1 may not follow tag 0.
    let allowed = AllowedTransitions::new(2, |from, to| (from, to) != (Some(0), Some(1)));
    let case = Case { allowed: Some(allowed), ..Case::new(3, 2, 2, 2.0, false) };
    let soft =
        SoftTags::mean(&[&SoftTags::from_tags(&[0, 0], 2), &SoftTags::from_tags(&[0, 1], 2)]);
    let mut gradient = ChainGradient::default();
    gradient.clear(2);
    let result = case.chain().accumulate_soft(
        &case.emissions,
        &soft,
        1.0,
        &mut Lattice::default(),
        &mut [0.0; 4],
        &mut gradient,
    );
    assert!(matches!(result, Err(Error::ForbiddenSoftTags)));
    assert!(gradient.transitions.iter().all(|value| *value == 0.0));
}
