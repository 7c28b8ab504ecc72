//! Tests section 2.3 with random and adversarial models: the tags of a draft always fit its tokens.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use melm::draft::Draft;
use melm::entity_lm::EntityLm;
use melm::generate::{Drafter, FillOrder, GenerateSettings, Round, Sampling};
use melm::linearize::{LinearizedCorpus, linearize};
use melm::markers::Markers;
use melm::mask::{GenerationMask, Scope, Unit};
use melm::pieces::{PieceKind, PieceKinds, Tokenizer};
use melm::random::{Seed, StreamKey};
use melm::rate::Rate;
use melm::stage::Control;
use melm_nn::config::Config;
use melm_nn::device::Device;
use melm_nn::mlm::MaskedLm;
use melm_text::{Corpus, ReadOptions, Sentence, Source, Token};
use proptest::prelude::*;

use crate::support::{TINY, corpus, mini, tokenizer};

static MINI: LazyLock<Tokenizer> = LazyLock::new(mini);

pub(crate) fn key() -> StreamKey {
    Seed(5).stream("generate")
}

/// A tiny random model. Its table is padded beyond the vocabulary, as in some published models.
pub(crate) fn model(tokenizer: &Tokenizer, seed: u64) -> MaskedLm {
    let config = Config {
        vocab_size: tokenizer.n_pieces() + 3,
        hidden_size: 8,
        n_layers: 1,
        n_heads: 2,
        intermediate_size: 8,
        max_position_embeddings: 300,
        // With large weights, predictions depend on all visible pieces.
        initializer_range: 0.8,
        ..Config::default()
    };
    MaskedLm::random(&config, seed).unwrap()
}

/// Gives the highest probabilities to pieces that must not occur in a draft: special pieces, markers, padding rows,
/// bare word starts, parts of characters, and the pieces that could spell a marker.
fn mislead(model: &mut MaskedLm, tokenizer: &Tokenizer) {
    let kinds = PieceKinds::new(tokenizer);
    let bias = model.parameters_mut().get_mut("lm_head.bias").unwrap();
    for (piece, bias) in (0..).zip(bias) {
        let spells_marker = (piece as usize) < tokenizer.n_pieces()
            && ["<", ">", "B", "-", "PER", "m", "as", "k"].contains(&tokenizer.piece(piece));
        match kinds.kind(piece) {
            PieceKind::Initial | PieceKind::Inner if !spells_marker => {}
            PieceKind::Initial | PieceKind::Inner => *bias = 20.0,
            PieceKind::Bare | PieceKind::Partial | PieceKind::Unfit => *bias = 60.0,
        }
    }
}

fn settings() -> impl Strategy<Value = GenerateSettings> {
    let mask =
        (0.0..=1.0, any::<bool>(), 0usize..3).prop_map(|(mean, piece, scope)| GenerationMask {
            mean: Rate::try_from(mean).unwrap(),
            unit: if piece { Unit::Piece } else { Unit::Token },
            scope: [Scope::Mention, Scope::Token, Scope::Whole][scope],
        });
    let ranks =
        (1usize..4, 0usize..5).prop_map(|(first, more)| (first, first + more).try_into().unwrap());
    let flags = any::<[bool; 6]>();
    (mask, ranks, 0usize..3, flags).prop_map(|(mask, ranks, order, flags)| {
        let [warm, keep_case, keep_script, whole_words, avoid_repeats, distinct_mentions] = flags;
        GenerateSettings {
            mask,
            ranks,
            sampling: if warm {
                Sampling::Temperature(0.7.try_into().unwrap())
            } else {
                Sampling::Uniform
            },
            order: [FillOrder::AtOnce, FillOrder::LeftToRight, FillOrder::WithinMentions][order],
            whole_words,
            keep_case,
            keep_script,
            avoid_repeats,
            distinct_mentions,
            banned: vec!["er".to_owned(), "a".to_owned()],
            pieces_per_batch: 64.try_into().unwrap(),
            ..GenerateSettings::default()
        }
    })
}

/// The longest input of the tiny models.
const LIMIT: usize = 298;

fn linearized(
    corpus: &Corpus,
    tokenizer: &mut Tokenizer,
    is_marked: bool,
    limit: usize,
) -> LinearizedCorpus {
    let markers = Markers::from_corpora(&[corpus], tokenizer).unwrap();
    linearize(corpus, tokenizer, is_marked.then_some(&markers), limit).unwrap()
}

pub(crate) fn drafter(
    model: MaskedLm,
    tokenizer: &Tokenizer,
    settings: &GenerateSettings,
) -> Drafter {
    Drafter::new(EntityLm::from_parts(model, tokenizer.clone(), None), settings.clone())
}

pub(crate) fn one_round(
    drafter: &mut Drafter,
    corpus: &Corpus,
    linearized: &LinearizedCorpus,
    round: u32,
) -> Round {
    let device = Device::cpu(1);
    let mut on_progress = |_, _| Control::Continue;
    drafter.round(&device, corpus, linearized, key(), round, &mut on_progress).unwrap()
}

/// Checks all guarantees about a draft, without using the code under test.
fn assert_valid(
    corpus: &Corpus,
    draft: &Draft,
    tokenizer: &Tokenizer,
    settings: &GenerateSettings,
) {
    let source = &corpus.sentences()[draft.source.unwrap()];
    assert_eq!(draft.sentence.tags(), source.tags());
    assert_eq!(draft.sentence.tokens().len(), source.tokens().len());
    assert!(draft.sentence.mentions().eq(source.mentions()));
    let guessed: BTreeSet<usize> =
        draft.replacements.iter().flat_map(|r| &r.pieces).map(|piece| piece.token).collect();
    for (at, (new, old)) in draft.sentence.tokens().iter().zip(source.tokens()).enumerate() {
        if new == old {
            continue;
        }
        assert!(source.tags()[at].entity_type().is_some(), "{old} is outside");
        assert!(guessed.contains(&at), "{old} had no masked piece");
        assert!(Token::new(new.as_str()).is_ok());
        let n_spaces = |token: &Token| token.as_str().matches(' ').count();
        assert_eq!(n_spaces(new), n_spaces(old), "{old} became {new}");
        let is_invisible =
            |c: char| c != ' ' && c.is_whitespace() || c.is_control() || c == '\u{fffd}';
        assert!(!new.as_str().contains(is_invisible), "{old} became {new:?}");
        for added in tokenizer.added() {
            assert!(!new.as_str().contains(tokenizer.piece(*added)), "{old} became {new}");
        }
        assert!(!settings.banned.iter().any(|banned| banned == new.as_str()));
    }
    assert_replacements_match(corpus, draft, tokenizer, settings);
}

/// Checks that the replacements of a draft describe the difference from its source.
fn assert_replacements_match(
    corpus: &Corpus,
    draft: &Draft,
    tokenizer: &Tokenizer,
    settings: &GenerateSettings,
) {
    let source = &corpus.sentences()[draft.source.unwrap()];
    for replacement in &draft.replacements {
        let tokens = replacement.tokens.clone();
        assert!(
            source
                .mentions()
                .any(|m| m.tokens == tokens && m.entity_type == replacement.entity_type)
        );
        assert_eq!(replacement.old, source.tokens()[tokens.clone()]);
        assert_eq!(replacement.new, draft.sentence.tokens()[tokens.clone()]);
        for piece in &replacement.pieces {
            assert!(tokens.contains(&piece.token));
            assert!(piece.rank <= settings.ranks.last());
            let begins = |text: &str| tokenizer.is_word_initial(tokenizer.id(text).unwrap());
            assert_eq!(begins(&piece.new), piece.position == 0 || begins(&piece.old));
            assert!(piece.log_probability <= 0.0);
        }
    }
}

/// Returns true if a corpus does not change when it is written and read again: no row is read as a comment, split or
/// lost.
fn survives_round_trip(corpus: &Corpus) -> bool {
    let mut bytes = Vec::new();
    corpus.write_conll(&mut bytes).unwrap();
    let source = Source::from_text("drafts.conll", String::from_utf8(bytes).unwrap());
    let contents = |corpus: &Corpus| -> Vec<Vec<(Token, String)>> {
        let spell = |tag| corpus.types().spell(tag, corpus.scheme()).to_string();
        let rows = |s: &Sentence| {
            s.tokens().iter().cloned().zip(s.tags().iter().copied().map(spell)).collect()
        };
        corpus.sentences().iter().map(rows).collect()
    };
    Corpus::read(&source, &ReadOptions::default())
        .is_ok_and(|read| contents(&read) == contents(corpus))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn labels_never_shift_whatever_the_model_predicts(
        corpus in corpus(), settings in settings(), seed: u64,
        (misled, marked, short) in any::<(bool, bool, bool)>(),
    ) {
        let limit = if short { 24 } else { LIMIT };
        for name in TINY {
            let mut tokenizer = tokenizer(name);
            let linearized = linearized(&corpus, &mut tokenizer, marked, limit);
            let mut model = model(&tokenizer, seed);
            if misled {
                mislead(&mut model, &tokenizer);
            }
            let mut drafter = drafter(model, &tokenizer, &settings);
            let round = one_round(&mut drafter, &corpus, &linearized, 1);
            let sources: Vec<_> = round.drafts.iter().filter_map(|draft| draft.source).collect();
            let with: Vec<_> = (0..corpus.sentences().len())
                .filter(|at| corpus.sentences()[*at].mentions().count() > 0).collect();
            if linearized.n_left_out == 0 {
                prop_assert_eq!(sources, with);
            }
            for draft in &round.drafts {
                assert_valid(&corpus, draft, &tokenizer, &settings);
            }
            let sentences: Vec<_> = corpus.sentences().iter().cloned()
                .chain(round.drafts.into_iter().map(|draft| draft.sentence)).collect();
            let augmented = Corpus::new(corpus.types().clone(), corpus.scheme(), sentences).unwrap();
            prop_assert!(!survives_round_trip(&corpus) || survives_round_trip(&augmented));
        }
    }

    #[test]
    fn drafts_do_not_depend_on_batches_or_other_sentences(corpus in corpus(), settings in settings()) {
        let mut tokenizer = tokenizer("unigram");
        let all = linearized(&corpus, &mut tokenizer, true, LIMIT);
        let other = GenerateSettings { pieces_per_batch: 1.try_into().unwrap(), ..settings.clone() };
        let mut in_batches = drafter(model(&tokenizer, 3), &tokenizer, &settings);
        let mut one_by_one = drafter(model(&tokenizer, 3), &tokenizer, &other);
        let together = one_round(&mut in_batches, &corpus, &all, 2);
        for window in &all.windows {
            let alone = LinearizedCorpus { windows: vec![window.clone()], ..LinearizedCorpus::default() };
            let found = one_round(&mut one_by_one, &corpus, &alone, 2);
            let expected = together.drafts.iter().find(|d| d.source == Some(window.sentence)).unwrap();
            prop_assert_eq!(&found.drafts[0].sentence, &expected.sentence);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    /// The tokenizer of `mini` normalises text (NFKC) and has a large vocabulary. Tokens that are not masked must
    /// still be copied.
    #[test]
    fn labels_never_shift_with_the_vocabulary_of_mini(corpus in corpus(), settings in settings(), seed: u64, misled: bool) {
        let tokenizer = &*MINI;
        let linearized = linearize(&corpus, tokenizer, None, LIMIT).unwrap();
        let mut model = model(tokenizer, seed);
        if misled {
            mislead(&mut model, tokenizer);
        }
        let mut drafter = drafter(model, tokenizer, &settings);
        for draft in one_round(&mut drafter, &corpus, &linearized, 1).drafts {
            assert_valid(&corpus, &draft, tokenizer, &settings);
        }
    }
}
