//! Compares the mentions chosen by code-mixing with a brute-force implementation of the paper.

use std::collections::{BTreeMap, BTreeSet};

use melm::Error;
use melm::codemix::{Codemix, CodemixSettings, DonorChoice, MentionVectors, VectorKind};
use melm::draft::Draft;
use melm::random::Seed;
use melm::rate::Rate;
use melm_text::{Corpus, Token};

use crate::support::{CODES, corpus, files, read, round, table};

fn settings(rate: f64) -> CodemixSettings {
    CodemixSettings { rate: Rate::constant(rate), vectors: VectorKind::Words }
}

/// The distinct mentions of a corpus by language and entity type.
fn sets(corpus: &Corpus) -> BTreeMap<(String, String), BTreeSet<Vec<String>>> {
    let mut sets: BTreeMap<_, BTreeSet<_>> = BTreeMap::new();
    for (at, sentence) in corpus.sentences().iter().enumerate() {
        for mention in sentence.mentions() {
            let code = corpus.locate(at).0.unwrap().to_owned();
            let name = corpus.types().name(mention.entity_type).to_owned();
            sets.entry((code, name)).or_default().insert(texts(&sentence.tokens()[mention.tokens]));
        }
    }
    sets
}

fn texts(tokens: &[Token]) -> Vec<String> {
    tokens.iter().map(ToString::to_string).collect()
}

/// A replaced mention: source language, type, old text, target language, new text, cosine.
type Taken = (String, String, Vec<String>, String, Vec<String>, Option<f32>);

fn taken(corpus: &Corpus, drafts: &[Draft]) -> Vec<Taken> {
    let one = |draft: &Draft| {
        let source = corpus.locate(draft.source.unwrap()).0.unwrap().to_owned();
        let taken = draft.replacements.iter().map(move |replaced| {
            let donor = replaced.donor.as_ref().unwrap();
            let target = corpus.locate(donor.sentence).0.unwrap().to_owned();
            let name = corpus.types().name(replaced.entity_type).to_owned();
            let (old, new) = (texts(&replaced.old), texts(&replaced.new));
            (source.clone(), name, old, target, new, replaced.similarity)
        });
        taken.collect::<Vec<_>>()
    };
    drafts.iter().flat_map(one).collect()
}

/// Equation 2: the mean over the tokens that have a vector. Words are looked up in lower case.
fn embedding(table: &BTreeMap<String, Vec<f32>>, mention: &[String]) -> Option<Vec<f64>> {
    let found: Vec<_> = mention.iter().filter_map(|word| table.get(&word.to_lowercase())).collect();
    let mean = |at: usize| found.iter().map(|v| f64::from(v[at])).sum::<f64>() / found.len() as f64;
    (!found.is_empty()).then(|| (0..found[0].len()).map(mean).collect())
}

fn cosine(a: &[f64], b: &[f64]) -> f64 {
    let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
    dot(a, b) / (dot(a, a).sqrt() * dot(b, b).sqrt())
}

#[test]
fn the_most_similar_mention_equals_that_of_a_brute_force_search() {
    let dir = tempfile::tempdir().unwrap();
    let corpus = corpus();
    let vectors = MentionVectors::read(&corpus, &files(dir.path()), &mut |_, _| {}).unwrap();
    let mut mix =
        Codemix::new(&corpus, DonorChoice::Similar, Some(&vectors), settings(1.0)).unwrap();
    let (sets, key) = (sets(&corpus), Seed(1).stream("test"));
    let tables: BTreeMap<_, _> =
        CODES.iter().map(|code| ((*code).to_owned(), table(code))).collect();
    let (mut n_searched, mut n_without) = (0, 0);
    for number in 1..=4 {
        for (source, name, old, target, new, similarity) in
            taken(&corpus, &round(&mut mix, key, number))
        {
            assert_ne!(source, target);
            let set = &sets[&(target.clone(), name)];
            assert!(set.contains(&new));
            let Some(own) = embedding(&tables[&source], &old) else {
                n_without += 1;
                assert_eq!(similarity, None);
                continue;
            };
            let score = |other: &Vec<String>| {
                embedding(&tables[&target], other).map(|other| cosine(&own, &other))
            };
            let best = set.iter().filter_map(score).fold(f64::MIN, f64::max);
            let found = score(&new).unwrap();
            // No other mention is more similar, up to rounding in single precision.
            assert!(best - found < 1e-6, "{old:?}: {new:?} has {found}, the best {best}");
            assert!((f64::from(similarity.unwrap()) - found).abs() < 1e-5);
            n_searched += 1;
        }
    }
    assert!(n_searched > 1_500 && n_without > 50, "{n_searched} {n_without}");
    let counts = mix.counts();
    for (code, one) in CODES.iter().zip(&counts.languages) {
        let own: BTreeSet<_> = sets
            .iter()
            .filter(|((of, _), _)| of == code)
            .flat_map(|((_, name), set)| {
                set.iter().map(move |mention| (name.clone(), mention.clone()))
            })
            .collect();
        let without = own.iter().filter(|(_, m)| embedding(&tables[*code], m).is_none()).count();
        assert_eq!((one.mentions, one.mentions_without_vector), (own.len(), without));
        let words: BTreeSet<_> = own.iter().flat_map(|(_, mention)| mention).collect();
        let unknown = words.iter().filter(|w| !tables[*code].contains_key(&w.to_lowercase()));
        assert_eq!((one.words, one.words_without_vector), (words.len(), unknown.count()));
    }
}

#[test]
fn target_languages_and_random_mentions_are_drawn_uniformly() {
    let texts = [
        "in O\nAix B-LOC\n",
        "in O\nBonn B-LOC\n\nin O\nBonn B-LOC\n\nin O\nBad B-LOC\nEms I-LOC\n",
        "in O\nCadiz B-LOC\n\nin O\nToledo B-LOC\n\nin O\nJaca B-LOC\n",
    ];
    let parts = texts.map(read);
    let corpus = Corpus::from_languages(CODES.into_iter().zip(&parts));
    let mut mix = Codemix::new(&corpus, DonorChoice::Random, None, settings(1.0)).unwrap();
    let (mut counts, n) = (BTreeMap::<String, i32>::new(), 12_000);
    for number in 1..=n {
        let drafts = round(&mut mix, Seed(2).stream("test"), number);
        assert_eq!(drafts.len(), 7);
        let first: Vec<_> = drafts[0].sentence.tokens()[1..].iter().map(Token::as_str).collect();
        *counts.entry(first.join(" ")).or_default() += 1;
    }
    // Each of the two other languages gets half of the draws. Within a language, all distinct mentions have equal
    // shares.
    let n = i32::try_from(n).unwrap();
    let expected =
        [("Bonn", n / 4), ("Bad Ems", n / 4), ("Cadiz", n / 6), ("Toledo", n / 6), ("Jaca", n / 6)];
    for (mention, expected) in expected {
        let found = counts.remove(mention).unwrap_or_default();
        // The tolerance is at most 5 standard deviations of a binomial count.
        assert!((found - expected).abs() < 240, "{mention}: {found}, expected {expected}");
    }
    assert!(counts.is_empty(), "{counts:?}");
}

#[test]
fn only_mentions_change_and_at_the_given_rate() {
    let corpus = corpus();
    let mut mix = Codemix::new(&corpus, DonorChoice::Random, None, settings(0.3)).unwrap();
    let (mut n_replaced, mut n_could) = (0.0, 0.0);
    for number in 1..30 {
        for draft in round(&mut mix, Seed(3).stream("test"), number) {
            let source = &corpus.sentences()[draft.source.unwrap()];
            let types =
                |s: &melm_text::Sentence| s.mentions().map(|m| m.entity_type).collect::<Vec<_>>();
            assert_eq!(types(&draft.sentence), types(source));
            assert!(corpus.scheme().violations(draft.sentence.tags()).next().is_none());
            let tokens = draft.sentence.tokens();
            let outside =
                tokens.iter().zip(draft.sentence.tags()).filter(|(t, _)| t.as_str() == "so");
            assert!(outside.clone().all(|(_, tag)| *tag == melm_text::Tag::Outside));
            assert_eq!(outside.count(), source.mentions().count() + 1);
            for replaced in &draft.replacements {
                assert_ne!(corpus.types().name(replaced.entity_type), "ODD");
                assert_eq!(tokens[replaced.tokens.clone()], replaced.new[..]);
                for at in replaced.tokens.clone() {
                    assert_ne!(draft.sentence.token_language(at), source.language());
                }
            }
            let could =
                source.mentions().filter(|m| corpus.types().name(m.entity_type) != "ODD").count();
            if could > 1 {
                n_replaced += draft.replacements.len() as f64;
                // If no mention is drawn, one of them is replaced anyway.
                let none = 0.7_f64.powi(i32::try_from(could).unwrap());
                n_could += 0.3 * could as f64 + none;
            }
        }
    }
    assert!((n_replaced / n_could - 1.0_f64).abs() < 0.03, "{n_replaced} of {n_could}");
}

#[test]
fn a_corpus_with_one_language_is_refused() {
    let part = read("in O\nBonn B-LOC\n");
    for corpus in [part.clone(), Corpus::from_languages([("de", &part)])] {
        let made = Codemix::new(&corpus, DonorChoice::Random, None, settings(1.0));
        assert!(matches!(made.map(drop), Err(Error::OneLanguage)));
    }
}

#[test]
fn a_mention_from_a_file_with_other_columns_takes_the_columns_of_its_new_sentence() {
    let parts = [
        read("in P x O\nNew N y B-LOC\nYork N z I-LOC\n"),
        read("in O\nBad B-LOC\nBelzig I-LOC\nMark I-LOC\n"),
    ];
    let corpus = Corpus::from_languages(["en", "de"].into_iter().zip(&parts));
    let mut mix = Codemix::new(&corpus, DonorChoice::Random, None, settings(1.0)).unwrap();
    let drafts = round(&mut mix, Seed(1).stream("test"), 1);
    let write = |draft: &Draft| {
        let corpus =
            Corpus::new(corpus.types().clone(), corpus.scheme(), vec![draft.sentence.clone()]);
        let mut out = Vec::new();
        corpus.unwrap().write_conll(&mut out).unwrap();
        String::from_utf8(out).unwrap()
    };
    assert_eq!(write(&drafts[0]), "in P x O\nBad N y B-LOC\nBelzig N z I-LOC\nMark N z I-LOC\n\n");
    assert_eq!(write(&drafts[1]), "in O\nNew B-LOC\nYork I-LOC\n\n");
}
