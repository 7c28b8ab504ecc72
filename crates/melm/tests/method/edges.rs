//! Tokens that pieces cannot spell, or not alone: kept whole, restored, counted.

use melm::generate::{GenerateSettings, Round};
use melm::linearize::{LinearizedCorpus, linearize};
use melm::mask::{GenerationMask, Masker, Scope, Unit};
use melm::pieces::{PieceKinds, Tokenizer};
use melm_text::Corpus;

use crate::generate::{drafter, model, one_round};
use crate::support::{mini, read, tokenizer};

fn opened(text: &str, tokenizer: &Tokenizer) -> (Corpus, LinearizedCorpus) {
    let corpus = read(text);
    let linearized = linearize(&corpus, tokenizer, None, 298).unwrap();
    (corpus, linearized)
}

/// Twenty rounds in which every unit is guessed.
fn rounds(text: &str, tokenizer: &Tokenizer, settings: GenerateSettings) -> Vec<Round> {
    let mask = GenerationMask { scope: Scope::Whole, ..settings.mask };
    let settings = GenerateSettings { mask, ..settings };
    let (corpus, linearized) = opened(text, tokenizer);
    let mut drafter = drafter(model(tokenizer, 23), tokenizer, &settings);
    let round = |n| one_round(&mut drafter, &corpus, &linearized, n);
    (1..=20).map(round).collect()
}

fn news(rounds: &[Round]) -> Vec<String> {
    let drafts = rounds.iter().flat_map(|round| &round.drafts);
    let tokens = drafts.flat_map(|draft| &draft.replacements).flat_map(|r| &r.new);
    tokens.map(ToString::to_string).collect()
}

#[test]
fn a_token_that_guesses_would_split_is_restored_and_counted() {
    // A no-break space is one token in any file, and two words to the tokenizer.
    let rounds = rounds("in/O New\u{a0}York/B-LOC", &mini(), GenerateSettings::default());
    for round in &rounds {
        assert_eq!(round.n_restored, 1);
        assert_eq!(round.drafts[0].sentence.tokens()[1].as_str(), "New\u{a0}York");
        assert!(round.drafts[0].replacements.is_empty());
    }
}

#[test]
fn parts_of_a_character_stay_together() {
    let tokenizer = tokenizer("byte_level");
    let news = news(&rounds("in/O a日b/B-LOC", &tokenizer, GenerateSettings::default()));
    assert_eq!(news.len(), 20);
    assert!(news.iter().all(|new| new.contains('日')), "{news:?}");
    assert!(news.iter().any(|new| new != "a日b"));

    let mask = GenerationMask { unit: Unit::Token, ..GenerationMask::default() };
    let whole = GenerateSettings { mask, ..GenerateSettings::default() };
    let news = self::news(&rounds("in/O a日b/B-LOC", &tokenizer, whole));
    assert!(news.iter().all(|new| !new.contains('日')), "{news:?}");
}

#[test]
fn a_token_with_an_unknown_character_is_never_masked_and_counted() {
    let tokenizer = tokenizer("unigram");
    let text = "in/O Land\u{13000}/B-LOC Part/I-LOC";
    let (_, linearized) = opened(text, &tokenizer);
    let masker = Masker::new(PieceKinds::new(&tokenizer));
    for unit in [Unit::Piece, Unit::Token] {
        assert_eq!(masker.n_unmaskable(&linearized.windows, unit), 1);
    }
    let news = news(&rounds(text, &tokenizer, GenerateSettings::default()));
    assert!(news.iter().step_by(2).all(|new| new == "Land\u{13000}"));
    assert!(news.iter().skip(1).step_by(2).any(|new| new != "Part"));
}

#[test]
fn a_script_is_kept_where_that_is_asked_for() {
    let tokenizer = mini();
    let is_latin = |c: char| c.is_ascii_alphabetic() || ('\u{aa}'..='\u{2ff}').contains(&c);
    let is_foreign = |text: &str| text.chars().any(|c| c.is_alphabetic() && !is_latin(c));
    let foreign_model = || {
        let mut model = model(&tokenizer, 23);
        let bias = model.parameters_mut().get_mut("lm_head.bias").unwrap();
        for (piece, bias) in (0..).zip(bias).take(tokenizer.n_pieces()) {
            *bias = if is_foreign(tokenizer.piece(piece)) { 40.0 } else { 0.0 };
        }
        model
    };
    let (corpus, linearized) = opened("in/O Tarin/B-LOC ,/O 1996/B-LOC", &tokenizer);
    for keep_script in [true, false] {
        let settings = GenerateSettings { keep_script, ..GenerateSettings::default() };
        let mut drafter = drafter(foreign_model(), &tokenizer, &settings);
        let round = |n| one_round(&mut drafter, &corpus, &linearized, n);
        let news = news(&(1..=5).map(round).collect::<Vec<_>>());
        assert!(news.iter().all(|new| is_foreign(new) != keep_script), "{news:?}");
    }
}
