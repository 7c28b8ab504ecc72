//! Tests sections 2.2 and 2.3: compares masks with the text of the paper and with their exact distributions.

use std::num::NonZeroU32;

use melm::linearize::{Linearized, linearize};
use melm::markers::Markers;
use melm::mask::{GenerationMask, Masked, Masker, Refresh, Scope, TrainingMask, Unit};
use melm::pieces::{PieceKinds, Tokenizer};
use melm::random::{Seed, StreamKey};
use melm::rate::Rate;
use melm_text::Corpus;
use proptest::prelude::*;

use crate::support::{TINY, corpus, read, tokenizer};

fn windows(corpus: &Corpus, tokenizer: &mut Tokenizer) -> (Vec<Linearized>, Masker) {
    let markers = Markers::from_corpora(&[corpus], tokenizer).unwrap();
    let windows = linearize(corpus, tokenizer, Some(&markers), 512).unwrap().windows;
    (windows, Masker::new(PieceKinds::new(tokenizer)))
}

/// Returns the pieces, with every mask replaced by the original piece.
fn restored(masked: &Masked) -> Vec<u32> {
    let mut pieces = masked.pieces.clone();
    for (position, original) in masked.positions.iter().zip(&masked.originals) {
        pieces[*position] = *original;
    }
    pieces
}

fn rate(value: f64) -> Rate {
    Rate::try_from(value).unwrap()
}

fn key() -> StreamKey {
    Seed(11).stream("mask")
}

/// Returns the positions of each mention that can be masked. Finds them by walking over tokens and markers.
fn maskable(corpus: &Corpus, window: &Linearized, tokenizer: &Tokenizer) -> Vec<Vec<usize>> {
    let sentence = &corpus.sentences()[window.sentence];
    let kinds = PieceKinds::new(tokenizer);
    let mut at = 1;
    let mut positions: Vec<Vec<usize>> = Vec::new();
    for (token, text) in sentence.tokens().iter().enumerate() {
        let encoded = tokenizer.encode(&[text]).unwrap();
        let pieces = &encoded.pieces[1..encoded.pieces.len() - 1];
        let is_entity = sentence.tags()[token].entity_type().is_some();
        at += usize::from(is_entity);
        let is_known = !pieces.contains(&tokenizer.specials().unk);
        let own =
            (at..).zip(pieces).filter(|(_, p)| is_entity && is_known && kinds.is_predictable(**p));
        positions.push(own.map(|(position, _)| position).collect());
        at += pieces.len() + usize::from(is_entity);
    }
    sentence.mentions().map(|mention| positions[mention.tokens].concat()).collect()
}

proptest! {
    #[test]
    fn training_masks_match_the_paper(corpus in corpus(), eta in 0.0..=1.0, epoch in 0u64..4) {
        for name in TINY {
            let mut tokenizer = tokenizer(name);
            let (windows, masker) = windows(&corpus, &mut tokenizer);
            for window in &windows {
                let settings = TrainingMask { rate: rate(eta), ..TrainingMask::default() };
                let masked = masker.mask_for_training(window, &settings, key(), epoch);
                // "randomly mask entity tokens in the linearized sentence X with masking ratio eta"
                let mut generator = key().at(epoch).at(window.sentence as u64).at(0).generator();
                let expected: Vec<_> = maskable(&corpus, window, &tokenizer).concat().into_iter()
                    .filter(|_| generator.uniform() < eta).collect();
                prop_assert_eq!(&masked.positions, &expected);
                prop_assert_eq!(restored(&masked), window.pieces.clone());
                let hidden = (0..).zip(&masked.pieces).filter(|(_, p)| **p == tokenizer.specials().mask);
                prop_assert!(hidden.map(|(at, _): (usize, _)| at).eq(expected));
            }
        }
    }

    #[test]
    fn generation_masks_match_the_paper(corpus in corpus(), mu in 0.0..=1.0) {
        for name in TINY {
            let mut tokenizer = tokenizer(name);
            let (windows, masker) = windows(&corpus, &mut tokenizer);
            for window in &windows {
                let settings = GenerationMask { mean: rate(mu), ..GenerationMask::default() };
                let masked = masker.mask_for_generation(window, &settings, key());
                let mut generator = key().at(window.sentence as u64).at(0).generator();
                let mut expected = Vec::new();
                // "For each entity mention comprising of n tokens, we randomly sample a dynamic masking rate epsilon
                // from N(mu, sigma^2), where sigma^2 is set as 1/n^2"; the source adds: a number in [1, n].
                for mention in maskable(&corpus, window, &tokenizer).iter().filter(|m| !m.is_empty()) {
                    let n = mention.len() as f64;
                    let count = std::iter::repeat_with(|| (mu * n + generator.normal()).round())
                        .find(|count| (1.0..=n).contains(count)).unwrap();
                    let chosen = generator.subset(mention.len(), (1..=mention.len()).find(|c| *c as f64 >= count).unwrap());
                    expected.extend(chosen.into_iter().map(|at| mention[at]));
                }
                prop_assert_eq!(&masked.positions, &expected);
                prop_assert_eq!(restored(&masked), window.pieces.clone());
            }
        }
    }

    #[test]
    fn tokens_as_units_are_masked_completely_or_not_at_all(corpus in corpus()) {
        for name in TINY {
            let mut tokenizer = tokenizer(name);
            let (windows, masker) = windows(&corpus, &mut tokenizer);
            let settings = GenerationMask { unit: Unit::Token, ..GenerationMask::default() };
            for window in &windows {
                let masked = masker.mask_for_generation(window, &settings, key());
                for entity in &window.entities {
                    let is_masked = |at: &usize| masked.positions.contains(at);
                    let is_bare = |at: &usize| ["▁", "Ġ"].contains(&tokenizer.piece(window.pieces[*at]));
                    let mut all = entity.piece_range.clone().filter(|at| !is_bare(at));
                    let n = all.clone().filter(is_masked).count();
                    prop_assert!(n == 0 || all.all(|at| is_masked(&at)));
                }
            }
        }
    }
}

/// Returns a window with one mention of `n` tokens. Each token has one piece.
fn mention_of(n: usize) -> (Linearized, Masker) {
    let text = "a/B-X ".to_owned() + &"a/I-X ".repeat(n - 1) + "a/O";
    let mut tokenizer = tokenizer("byte_level");
    let (windows, masker) = windows(&read(&text), &mut tokenizer);
    assert_eq!(windows[0].entities.iter().map(|e| e.piece_range.len()).sum::<usize>(), n);
    (windows[0].clone(), masker)
}

/// The distribution function of the standard normal distribution.
fn phi(x: f64) -> f64 {
    0.5 * (1.0 + libm::erf(x / std::f64::consts::SQRT_2))
}

#[test]
fn numbers_of_masked_units_have_the_exact_distribution() {
    // These are the mean masking rates in `docs/fidelity.md` row 4.
    let known = [1.00, 0.69, 0.58, 0.53, 0.51, 0.50];
    for (n, known) in (1..).zip(known) {
        let (window, masker) = mention_of(n);
        let n_draws = 20_000_u32;
        let (mut counts, mut places) = (vec![0.0; n + 1], vec![0.0; n]);
        for round in 0..n_draws {
            let key = key().at(u64::from(round));
            let drawn = masker.mask_for_generation(&window, &GenerationMask::default(), key);
            counts[drawn.positions.len()] += 1.0;
            for position in drawn.positions {
                places[window
                    .entities
                    .iter()
                    .position(|e| e.piece_range.start == position)
                    .unwrap()] += 1.0;
            }
        }
        let middle = n as f64 / 2.0;
        let share = |m: usize| phi(m as f64 + 0.5 - middle) - phi(m as f64 - 0.5 - middle);
        let total: f64 = (1..=n).map(share).sum();
        let chi_square: f64 = (1..=n)
            .map(|m| (m, f64::from(n_draws) * share(m) / total))
            .map(|(m, expected)| (counts[m] - expected).powi(2) / expected)
            .sum();
        // The 99.99 % quantile of the chi-square distribution is at most 25.7 for up to 5 degrees of freedom.
        assert!(chi_square < 25.7, "n = {n}: {chi_square}");
        let mean: f64 = (1..=n).map(|m| m as f64 * share(m) / total).sum::<f64>() / n as f64;
        assert!((mean - known).abs() < 0.005, "n = {n}: {mean}");
        for place in places {
            assert!((place / f64::from(n_draws) - mean).abs() < 0.02, "n = {n}: {place}");
        }
    }
}

#[test]
fn every_unit_is_masked_at_the_training_rate() {
    let (window, masker) = mention_of(10);
    let mut counts = [0.0; 10];
    for epoch in 0..10_000 {
        let drawn = masker.mask_for_training(&window, &TrainingMask::default(), key(), epoch);
        for position in drawn.positions {
            counts
                [window.entities.iter().position(|e| e.piece_range.start == position).unwrap()] +=
                1.0;
        }
    }
    // The tolerance is 5 standard deviations of a binomial share.
    assert!(counts.iter().all(|n: &f64| (n / 10_000.0 - 0.7).abs() < 0.023), "{counts:?}");
}

#[test]
fn cycled_masks_repeat_and_others_do_not() {
    let (window, masker) = mention_of(40);
    let cycled = Refresh::Cycled(NonZeroU32::new(30).unwrap());
    let draw = |refresh, epoch| {
        let settings = TrainingMask { refresh, ..TrainingMask::default() };
        masker.mask_for_training(&window, &settings, key(), epoch).positions
    };
    assert_eq!(draw(cycled, 3), draw(cycled, 33));
    assert_ne!(draw(cycled, 3), draw(cycled, 4));
    assert_ne!(draw(Refresh::EveryEpoch, 3), draw(Refresh::EveryEpoch, 33));
}

#[test]
fn scopes_draw_from_different_groups() {
    let corpus = read("Partyelection/B-X a/I-X the/O");
    let mut tokenizer = tokenizer("unigram");
    let (windows, masker) = windows(&corpus, &mut tokenizer);
    let window = &windows[0];
    let draw = |scope, round| {
        let settings = GenerationMask { scope, ..GenerationMask::default() };
        masker.mask_for_generation(window, &settings, key().at(round)).positions
    };
    let all = draw(Scope::Whole, 0);
    assert_eq!(all, maskable(&corpus, window, &tokenizer).concat());
    let last = window.entities[1].piece_range.end - 1;
    assert!((0..50).all(|round| draw(Scope::Token, round).contains(&last)));
    assert!((0..50).any(|round| !draw(Scope::Mention, round).contains(&last)));
}
