//! Tokens that pieces cannot spell are not masked. Tokens whose new pieces do not spell a valid token are restored.
//! Both are counted.

use melm::generate::{GenerateSettings, Round};
use melm::linearize::{LinearizedCorpus, linearize};
use melm::mask::{GenerationMask, Masker, Scope, Unit};
use melm::pieces::{PieceKinds, Tokenizer};
use melm_text::Corpus;

use crate::generate::{drafter, model, one_round};
use crate::support::{mini, read, tokenizer};

fn linearized(text: &str, tokenizer: &Tokenizer) -> (Corpus, LinearizedCorpus) {
    let corpus = read(text);
    let linearized = linearize(&corpus, tokenizer, None, 298).unwrap();
    (corpus, linearized)
}

/// Generates twenty rounds in which every unit is masked.
fn rounds(text: &str, tokenizer: &Tokenizer, settings: GenerateSettings) -> Vec<Round> {
    let mask = GenerationMask { scope: Scope::Whole, ..settings.mask };
    let settings = GenerateSettings { mask, ..settings };
    let (corpus, linearized) = linearized(text, tokenizer);
    let mut drafter = drafter(model(tokenizer, 23), tokenizer, &settings);
    let round = |n| one_round(&mut drafter, &corpus, &linearized, n);
    (1..=20).map(round).collect()
}

fn new_tokens(rounds: &[Round]) -> Vec<String> {
    let drafts = rounds.iter().flat_map(|round| &round.drafts);
    let tokens = drafts.flat_map(|draft| &draft.replacements).flat_map(|r| &r.new);
    tokens.map(ToString::to_string).collect()
}

#[test]
fn a_token_that_would_be_split_is_restored_and_counted() {
    // The token with a no-break space is one token in a file, but two words for the tokenizer.
    let rounds = rounds("in/O New\u{a0}York/B-LOC", &mini(), GenerateSettings::default());
    for round in &rounds {
        assert_eq!(round.n_restored, 1);
        assert_eq!(round.drafts[0].sentence.tokens()[1].as_str(), "New\u{a0}York");
        assert!(round.drafts[0].replacements.is_empty());
    }
}

#[test]
fn pieces_of_one_character_are_not_replaced_separately() {
    let tokenizer = tokenizer("byte_level");
    let replaced = new_tokens(&rounds("in/O a日b/B-LOC", &tokenizer, GenerateSettings::default()));
    assert_eq!(replaced.len(), 20);
    assert!(replaced.iter().all(|new| new.contains('日')), "{replaced:?}");
    assert!(replaced.iter().any(|new| new != "a日b"));

    let mask = GenerationMask { unit: Unit::Token, ..GenerationMask::default() };
    let whole = GenerateSettings { mask, ..GenerateSettings::default() };
    let replaced = self::new_tokens(&rounds("in/O a日b/B-LOC", &tokenizer, whole));
    assert!(replaced.iter().all(|new| !new.contains('日')), "{replaced:?}");
}

#[test]
fn a_token_with_an_unknown_character_is_counted_and_never_masked() {
    let tokenizer = tokenizer("unigram");
    let text = "in/O Land\u{13000}/B-LOC Part/I-LOC";
    let (_, linearized) = linearized(text, &tokenizer);
    let masker = Masker::new(PieceKinds::new(&tokenizer));
    for unit in [Unit::Piece, Unit::Token] {
        assert_eq!(masker.n_unmaskable(&linearized.windows, unit), 1);
    }
    let replaced = new_tokens(&rounds(text, &tokenizer, GenerateSettings::default()));
    assert!(replaced.iter().step_by(2).all(|new| new == "Land\u{13000}"));
    assert!(replaced.iter().skip(1).step_by(2).any(|new| new != "Part"));
}

#[test]
fn keep_script_allows_no_letters_of_other_scripts() {
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
    let (corpus, linearized) = linearized("in/O Tarin/B-LOC ,/O 1996/B-LOC", &tokenizer);
    for keep_script in [true, false] {
        let settings = GenerateSettings { keep_script, ..GenerateSettings::default() };
        let mut drafter = drafter(foreign_model(), &tokenizer, &settings);
        let round = |n| one_round(&mut drafter, &corpus, &linearized, n);
        let replaced = new_tokens(&(1..=5).map(round).collect::<Vec<_>>());
        assert!(replaced.iter().all(|new| is_foreign(new) != keep_script), "{replaced:?}");
    }
}
