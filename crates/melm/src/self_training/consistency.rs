//! Compares the labels that the same words get in different sentences of a text.

use std::collections::HashMap;

use melm_text::{EntityType, Token};

use super::TextCandidate;
use crate::draft::Verdict;
use crate::rate::Rate;

/// How often a sequence of tokens has each label. `None` is the label of tokens that are no mention.
type LabelCounts = HashMap<Option<EntityType>, usize>;

/// Rejects sentences in which words have a label that the same words rarely have in the other sentences that the panel
/// agrees on. The words are those that are a mention in at least one of these sentences. A label is rare if its share
/// is below `share`.
pub(super) fn reject_inconsistent(candidates: &mut [TextCandidate], share: Rate) {
    if share.value() <= 0.0 {
        return;
    }
    let inconsistent = find_inconsistent(candidates, share.value());
    for at in inconsistent {
        candidates[at].verdict = Verdict::Inconsistent;
    }
}

fn find_inconsistent(candidates: &[TextCandidate], share: f64) -> Vec<usize> {
    let agreed: Vec<usize> =
        (0..candidates.len()).filter(|at| candidates[*at].verdict == Verdict::New).collect();
    let mut counts: HashMap<&[Token], LabelCounts> = HashMap::new();
    for at in &agreed {
        let sentence = &candidates[*at].sentence;
        for mention in sentence.mentions() {
            counts.entry(&sentence.tokens()[mention.tokens]).or_default();
        }
    }
    let longest = counts.keys().map(|tokens| tokens.len()).max().unwrap_or(0);
    for at in &agreed {
        for (tokens, label) in occurrences(&candidates[*at], longest) {
            if let Some(labels) = counts.get_mut(tokens) {
                *labels.entry(label).or_default() += 1;
            }
        }
    }
    let is_rare = |tokens: &[Token], label: Option<EntityType>| {
        counts.get(tokens).is_some_and(|labels| {
            let total: usize = labels.values().sum();
            let own = labels.get(&label).copied().unwrap_or(0);
            (own as f64) < share * total as f64
        })
    };
    let has_rare = |at: &usize| {
        let mut all = occurrences(&candidates[*at], longest);
        all.any(|(tokens, label)| is_rare(tokens, label))
    };
    agreed.into_iter().filter(has_rare).collect()
}

/// Returns the mentions of a sentence, and all sequences of up to `longest` tokens outside mentions, with their labels.
fn occurrences(
    candidate: &TextCandidate,
    longest: usize,
) -> impl Iterator<Item = (&[Token], Option<EntityType>)> {
    let sentence = &candidate.sentence;
    let tokens = sentence.tokens();
    let mut is_free = vec![true; tokens.len()];
    let mut all = Vec::new();
    for mention in sentence.mentions() {
        is_free[mention.tokens.clone()].fill(false);
        all.push((&tokens[mention.tokens], Some(mention.entity_type)));
    }
    for start in 0..tokens.len() {
        let n_free = is_free[start..].iter().take(longest).take_while(|free| **free).count();
        all.extend((1..=n_free).map(|n| (&tokens[start..start + n], None)));
    }
    all.into_iter()
}

#[cfg(test)]
mod tests {
    use super::*;
    use melm_text::{Corpus, ReadOptions, Source};

    #[test]
    fn a_label_that_the_same_words_rarely_have_is_rejected() {
        // Paris: three times a place, once a person, once no mention. `New York` is a place; `New` alone is not.
        let text = "Paris B-LOC\n\nin O\nParis B-LOC\n\nParis B-LOC\nis O\n\nParis B-PER\nHilton I-PER\nand O\nParis B-PER\n\n\
                    Paris O\nMatch O\n\nNew B-LOC\nYork I-LOC\n\nNew O\nnews O\n";
        let corpus = Corpus::read(&Source::from_text("a", text), &ReadOptions::default()).unwrap();
        let mut all: Vec<_> = corpus
            .sentences()
            .iter()
            .enumerate()
            .map(|(number, sentence)| TextCandidate {
                sentence: sentence.clone(),
                number,
                pass: 1,
                first_token: 0,
                votes: 1,
                n_taggers: 1,
                probabilities: vec![1.0],
                proposed: Vec::new(),
                verdict: Verdict::New,
            })
            .collect();
        let rejected = |all: &[TextCandidate]| -> Vec<usize> {
            let is_rejected = |at: &usize| all[*at].verdict == Verdict::Inconsistent;
            (0..all.len()).filter(is_rejected).collect()
        };
        reject_inconsistent(&mut all, Rate::constant(0.0));
        assert!(rejected(&all).is_empty());
        // A place in 3 of 5 sentences, a person and no mention in 1 of 5 each.
        reject_inconsistent(&mut all, Rate::constant(0.5));
        assert_eq!(rejected(&all), [3, 4]);
    }
}
