//! Compares the chosen pieces with the predictions of the model, and tests the options of generation.

use std::ops::Range;

use melm::draft::Draft;
use melm::generate::{Drafter, FillOrder, GenerateSettings};
use melm::linearize::{Linearized, LinearizedCorpus, linearize};
use melm::markers::Markers;
use melm::mask::{GenerationMask, Masker, Scope, Unit};
use melm::pieces::{PieceKind, PieceKinds, Tokenizer};
use melm::stage::Control;
use melm_nn::device::Device;
use melm_nn::mlm::{MaskedBatch, MaskedLm, MaskedLmTape, Predictions};
use melm_text::Corpus;

use crate::generate::{drafter, key, model, one_round};
use crate::support::{read, tokenizer};

const TEXT: &str = "the/O Partyelection/B-PER Soman/I-PER in/O Lander/B-ORG and/O |/O \
                    of/O Tarin/B-ORG Sonder/I-ORG Partis/I-ORG ,/O Anders/B-PER";

fn linearized(name: &str) -> (Corpus, Tokenizer, LinearizedCorpus) {
    let corpus = read(TEXT);
    let mut tokenizer = tokenizer(name);
    let markers = Markers::from_corpora(&[&corpus], &mut tokenizer).unwrap();
    let linearized = linearize(&corpus, &tokenizer, Some(&markers), 298).unwrap();
    (corpus, tokenizer, linearized)
}

/// Returns a drafter. Its random model is the same every time.
fn drafter_with(tokenizer: &Tokenizer, settings: &GenerateSettings) -> Drafter {
    drafter(model(tokenizer, 17), tokenizer, settings)
}

/// Computes by brute force which pieces are not `Unfit` at one masked position. The most probable piece comes first.
fn ranked(model: &MaskedLm, tokenizer: &Tokenizer, pieces: &[u32], position: usize) -> Vec<u32> {
    let mut batch = MaskedBatch::default();
    batch.sentences.push(pieces, 0);
    batch.positions.push(position);
    let mut tape = MaskedLmTape::for_prediction(model.config());
    let mut out = Predictions::default();
    let k = model.config().vocab_size;
    model.predict(&Device::cpu(1), &batch, k, &mut tape, &mut out).unwrap();
    let kinds = PieceKinds::new(tokenizer);
    let place = out.row(0).iter().map(|candidate| candidate.piece);
    place.filter(|piece| kinds.kind(*piece) != PieceKind::Unfit).collect()
}

/// A piece that was chosen.
struct Guess {
    position: usize,
    piece: u32,
    rank: usize,
    mention: usize,
}

/// Masks one window as the drafter does. With `whole_words`, each masked token becomes one `<mask>`. Returns the pieces, and
/// the place of each source position in them.
fn masked_pieces(
    window: &Linearized,
    tokenizer: &Tokenizer,
    settings: &GenerateSettings,
) -> (Vec<u32>, Vec<usize>) {
    let mut mask = settings.mask;
    if settings.whole_words {
        mask.unit = Unit::Token;
    }
    let key = key().at(1).then("mask");
    let masked = Masker::new(PieceKinds::new(tokenizer)).mask_for_generation(window, &mask, key);
    let is_masked = |range: &Range<usize>| masked.positions.iter().any(|at| range.contains(at));
    let token_at = |at: usize| window.piece_ranges.iter().find(|range| range.contains(&at));
    let (mut pieces, mut places) = (Vec::new(), Vec::new());
    for (at, piece) in masked.pieces.iter().enumerate() {
        places.push(pieces.len());
        match token_at(at).filter(|range| settings.whole_words && is_masked(range)) {
            Some(range) if at > range.start => *places.last_mut().unwrap() -= 1,
            Some(_) => pieces.push(tokenizer.specials().mask),
            None => pieces.push(*piece),
        }
    }
    (pieces, places)
}

/// Fills one window again. Each chosen piece must have its rank among the predictions that the model makes from the
/// visible pieces.
fn replay(
    window: &Linearized,
    model: &MaskedLm,
    tokenizer: &Tokenizer,
    settings: &GenerateSettings,
    guesses: &[Guess],
) {
    let (mut pieces, places) = masked_pieces(window, tokenizer, settings);
    let mask = tokenizer.specials().mask;
    let expected: Vec<_> = (0..pieces.len()).filter(|at| pieces[*at] == mask).collect();
    assert_eq!(expected, guesses.iter().map(|one| places[one.position]).collect::<Vec<_>>());
    let step = |at: usize| match settings.order {
        FillOrder::AtOnce => 0,
        FillOrder::LeftToRight => at,
        FillOrder::WithinMentions => {
            guesses[..at].iter().filter(|one| one.mention == guesses[at].mention).count()
        }
    };
    for now in 0..guesses.len() {
        let visible = pieces.clone();
        for (_, guess) in guesses.iter().enumerate().filter(|(at, _)| step(*at) == now) {
            let place = places[guess.position];
            let wanted = PieceKinds::new(tokenizer).kind(guess.piece);
            let mut ranked = ranked(model, tokenizer, &visible, place);
            ranked.retain(|piece| PieceKinds::new(tokenizer).kind(*piece) == wanted);
            assert_eq!(ranked[guess.rank - 1], guess.piece);
            assert!(!settings.whole_words || wanted == PieceKind::Initial);
            pieces[place] = guess.piece;
        }
    }
}

const ORDERS: [FillOrder; 3] =
    [FillOrder::AtOnce, FillOrder::LeftToRight, FillOrder::WithinMentions];

/// Compares the drafts of one round with a replay of their windows.
fn compare_with_replay(name: &str, settings: &GenerateSettings) {
    let (corpus, tokenizer, linearized) = linearized(name);
    let mut drafter = drafter_with(&tokenizer, settings);
    let round = one_round(&mut drafter, &corpus, &linearized, 1);
    assert_eq!(round.n_restored, 0);
    for (draft, window) in round.drafts.iter().zip(&linearized.windows) {
        let mut guesses = Vec::new();
        for replacement in &draft.replacements {
            guesses.extend(replacement.pieces.iter().map(|piece| {
                let place = &window.piece_ranges[piece.token - window.tokens.start];
                Guess {
                    position: place.start + piece.position,
                    piece: tokenizer.id(&piece.new).unwrap(),
                    rank: piece.rank,
                    mention: replacement.mention,
                }
            }));
        }
        replay(window, drafter.lm().model(), &tokenizer, settings, &guesses);
    }
}

#[test]
fn chosen_pieces_have_their_rank_in_each_fill_order() {
    for name in ["unigram", "byte_level"] {
        for order in ORDERS {
            for whole_words in [false, true] {
                let settings =
                    GenerateSettings { order, whole_words, ..GenerateSettings::default() };
                compare_with_replay(name, &settings);
            }
        }
    }
}

#[test]
fn whole_words_are_single_pieces_and_describe_the_old_token() {
    let (corpus, tokenizer, linearized) = linearized("unigram");
    let mask = GenerationMask { scope: Scope::Whole, ..GenerationMask::default() };
    let settings = GenerateSettings { mask, whole_words: true, ..GenerateSettings::default() };
    let mut drafter = drafter_with(&tokenizer, &settings);
    let round = one_round(&mut drafter, &corpus, &linearized, 1);
    let mut n_shorter = 0;
    for draft in &round.drafts {
        let source = &corpus.sentences()[draft.source.unwrap()];
        for piece in draft.replacements.iter().flat_map(|one| &one.pieces) {
            assert_eq!(piece.position, 0);
            assert_eq!(piece.old.replace('▁', ""), source.tokens()[piece.token].as_str());
            assert_eq!(piece.new.replace('▁', ""), draft.sentence.tokens()[piece.token].as_str());
            n_shorter += usize::from(tokenizer.id(&piece.old).is_none());
        }
    }
    assert!(n_shorter >= 3, "{n_shorter} tokens had several pieces");
}

#[test]
fn rounds_differ_and_do_not_depend_on_earlier_rounds() {
    let (corpus, tokenizer, linearized) = linearized("unigram");
    let settings = GenerateSettings::default();
    let device = Device::cpu(2);
    let mut drafter = drafter_with(&tokenizer, &settings);
    let mut go_on = |_, _| Control::Continue;
    let mut round = |n| drafter.round(&device, &corpus, &linearized, key(), n, &mut go_on).unwrap();
    let (first, second) = (round(1), round(2));
    assert_ne!(first.drafts[0].sentence, second.drafts[0].sentence);
    let mut another = drafter_with(&tokenizer, &settings);
    assert_eq!(second, one_round(&mut another, &corpus, &linearized, 2));
}

#[test]
fn casing_and_bans_are_respected() {
    let (corpus, tokenizer, linearized) = linearized("unigram");
    let mask = GenerationMask { scope: Scope::Whole, ..GenerationMask::default() };
    let plain = GenerateSettings { mask, ..GenerateSettings::default() };
    let settings = GenerateSettings { keep_case: true, ..plain.clone() };
    let mut drafter = drafter_with(&tokenizer, &settings);
    for n in 1..20 {
        for draft in one_round(&mut drafter, &corpus, &linearized, n).drafts {
            for (old, new) in draft.replacements.iter().flat_map(|r| r.old.iter().zip(&r.new)) {
                let shape = |text: &str| {
                    let mut letters = text.chars().filter(|c| c.is_alphabetic());
                    (letters.next().map(char::is_uppercase), letters.any(char::is_uppercase))
                };
                assert_eq!(shape(old.as_str()), shape(new.as_str()), "{old} became {new}");
            }
        }
    }
    let mut drafter = drafter_with(&tokenizer, &plain);
    let first = one_round(&mut drafter, &corpus, &linearized, 1);
    let guess = &first.drafts[0].replacements[0].pieces[0].new;
    let banned = vec![guess.trim_start_matches('▁').to_owned()];
    let settings = GenerateSettings { banned: banned.clone(), ..plain };
    let mut drafter = drafter_with(&tokenizer, &settings);
    for n in 1..20 {
        let round = one_round(&mut drafter, &corpus, &linearized, n);
        let pieces = round.drafts.iter().flat_map(|d| &d.replacements).flat_map(|r| &r.pieces);
        assert!(pieces.map(|piece| &piece.new).all(|new| new.trim_start_matches('▁') != banned[0]));
    }
}

#[test]
fn progress_is_reported_for_every_window_and_can_stop_the_round() {
    let (corpus, tokenizer, linearized) = linearized("unigram");
    let settings =
        GenerateSettings { pieces_per_batch: 1.try_into().unwrap(), ..GenerateSettings::default() };
    let device = Device::cpu(1);
    let mut drafter = drafter_with(&tokenizer, &settings);
    let mut reported = Vec::new();
    let mut record = |done, total| {
        reported.push((done, total));
        Control::Continue
    };
    drafter.round(&device, &corpus, &linearized, key(), 1, &mut record).unwrap();
    // A batch of a window that is not done yet reports the same count again.
    reported.dedup();
    assert_eq!(reported, [(0, 2), (1, 2), (2, 2)]);
    let mut stop = |_, _| Control::Stop;
    let stopped = drafter.round(&device, &corpus, &linearized, key(), 1, &mut stop);
    assert!(matches!(stopped, Err(melm::Error::Interrupted)));
}

/// The number of equal tokens in drafts of 200 rounds.
#[derive(Debug, Default)]
struct Repeats {
    n_neighbours: usize,
    n_other_mentions: usize,
}

/// Counts the tokens of mentions that are equal in the drafts. In the source no two tokens are equal.
fn repeats(settings: &GenerateSettings) -> Repeats {
    // Single pieces in a row: the model often predicts the same piece for all of them.
    let corpus = read("the/O of/B-PER in/I-PER er/O a/B-ORG and/I-ORG s/O");
    let mut tokenizer = tokenizer("unigram");
    let markers = Markers::from_corpora(&[&corpus], &mut tokenizer).unwrap();
    let linearized = linearize(&corpus, &tokenizer, Some(&markers), 298).unwrap();
    let mut drafter = drafter_with(&tokenizer, settings);
    let mut n = Repeats::default();
    for round in 1..=200 {
        for draft in one_round(&mut drafter, &corpus, &linearized, round).drafts {
            let tokens: Vec<_> =
                draft.sentence.tokens().iter().map(|token| token.as_str().to_lowercase()).collect();
            n.n_neighbours += tokens.windows(2).filter(|pair| pair[0] == pair[1]).count();
            let others = tokens[1..3].iter().filter(|token| tokens[4..6].contains(token));
            n.n_other_mentions += others.count();
        }
    }
    n
}

#[test]
fn repeated_tokens_are_avoided_in_each_fill_order() {
    for order in ORDERS {
        let settings = GenerateSettings { order, ..GenerateSettings::default() };
        let n = repeats(&settings);
        assert!(n.n_neighbours > 10 && n.n_other_mentions > 10, "{order:?}: {n:?}");
        let neighbours = GenerateSettings { avoid_repeats: true, ..settings.clone() };
        let n = repeats(&neighbours);
        assert!(n.n_neighbours == 0 && n.n_other_mentions > 10, "{order:?}: {n:?}");
        let others = GenerateSettings { distinct_mentions: true, ..settings };
        let n = repeats(&others);
        assert!(n.n_neighbours > 10 && n.n_other_mentions == 0, "{order:?}: {n:?}");
    }
}

/// Computes the mean log-probability of a mention's pieces by brute force. Each piece is predicted while it and the later
/// pieces of its token are masked.
fn mean_log_probability(
    model: &MaskedLm,
    tokenizer: &Tokenizer,
    pieces: &[u32],
    tokens: &[Range<usize>],
) -> f64 {
    let (mut sum, mut n) = (0.0, 0.0);
    for token in tokens {
        for position in token.clone() {
            let mut masked = pieces.to_vec();
            masked[position..token.end].fill(tokenizer.specials().mask);
            let mut batch = MaskedBatch::default();
            batch.sentences.push(&masked, 0);
            batch.positions.push(position);
            let mut tape = MaskedLmTape::for_prediction(model.config());
            let mut out = Predictions::default();
            let k = model.config().vocab_size;
            model.predict(&Device::cpu(1), &batch, k, &mut tape, &mut out).unwrap();
            let found = out.row(0).iter().find(|one| one.piece == pieces[position]).unwrap();
            sum += f64::from(found.log_probability);
            n += 1.0;
        }
    }
    sum / n
}

/// Writes the chosen pieces of a draft into a window. Returns the pieces, and the range of each token of the window.
fn rewritten(
    window: &Linearized,
    tokenizer: &Tokenizer,
    draft: &Draft,
    whole_words: bool,
) -> (Vec<u32>, Vec<Range<usize>>) {
    let (mut pieces, mut ranges, mut copied) = (Vec::new(), Vec::new(), 0);
    for (token, range) in window.tokens.clone().zip(&window.piece_ranges) {
        pieces.extend(&window.pieces[copied..range.start]);
        copied = range.end;
        let start = pieces.len();
        let chosen = draft.replacements.iter().flat_map(|one| &one.pieces);
        let chosen: Vec<_> = chosen.filter(|piece| piece.token == token).collect();
        if chosen.is_empty() || !whole_words {
            pieces.extend(&window.pieces[range.clone()]);
        } else {
            pieces.push(tokenizer.specials().mask);
        }
        for piece in chosen {
            pieces[start + piece.position] = tokenizer.id(&piece.new).unwrap();
        }
        ranges.push(start..pieces.len());
    }
    pieces.extend(&window.pieces[copied..]);
    (pieces, ranges)
}

/// Compares the scores of two rounds with those computed by brute force. Returns their number.
fn compare_scores(whole_words: bool) -> usize {
    let (corpus, tokenizer, linearized) = linearized("unigram");
    let settings =
        GenerateSettings { score_margin: 1.0, whole_words, ..GenerateSettings::default() };
    let model = model(&tokenizer, 17);
    let mut drafter = drafter_with(&tokenizer, &settings);
    let mut n_scores = 0;
    for round in 1..=2 {
        let made = one_round(&mut drafter, &corpus, &linearized, round);
        for (draft, window) in made.drafts.iter().zip(&linearized.windows) {
            let (new, new_ranges) = rewritten(window, &tokenizer, draft, whole_words);
            for replacement in draft.replacements.iter().filter(|one| one.old != one.new) {
                let likely = |pieces, ranges: &[Range<usize>]| {
                    let own =
                        window.entities.iter().filter(|one| one.mention == replacement.mention);
                    let tokens: Vec<_> =
                        own.map(|one| ranges[one.token - window.tokens.start].clone()).collect();
                    mean_log_probability(&model, &tokenizer, pieces, &tokens)
                };
                let old = likely(&window.pieces, &window.piece_ranges);
                let expected = likely(&new, &new_ranges) - old;
                let score = replacement.score.unwrap();
                assert!((score - expected).abs() < 1e-4, "{score} {expected}");
                n_scores += 1;
            }
        }
    }
    n_scores
}

#[test]
fn the_score_of_a_mention_is_its_mean_log_probability_minus_that_of_the_source() {
    for whole_words in [false, true] {
        let n_scores = compare_scores(whole_words);
        assert!(n_scores >= 6, "{whole_words}: {n_scores}");
    }
}
