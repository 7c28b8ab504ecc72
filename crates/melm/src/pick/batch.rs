//! Chooses a batch of sentences with high scores that are not similar to each other.

use super::score::Scores;
use super::similarity::SentenceVectors;
use crate::Error;
use crate::stage::Stage;

/// Sentences that are at least this similar to a picked one are never picked.
const NEAR_DUPLICATE: f64 = 0.8;

/// A sentence of a batch.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Chosen {
    /// The index among the sentences that were scored.
    pub(super) at: usize,
    /// The similarity to the most similar sentence that was chosen before it.
    pub(super) similarity: f64,
}

/// A batch of sentences, in the order in which they were chosen.
pub(super) struct Batch {
    pub(super) chosen: Vec<Chosen>,
    /// The number of sentences that were not chosen because a chosen one is almost the same.
    pub(super) n_near_duplicates: usize,
}

/// Chooses up to `n` sentences one by one, each time the one with the highest score after `diversity` times its similarity
/// to the sentences chosen so far is taken off. Of sentences with the same score the first is chosen.
pub(super) fn choose(
    scores: &[Scores],
    vectors: &SentenceVectors,
    n: usize,
    diversity: f64,
    stage: &mut Stage<'_>,
) -> Result<Batch, Error> {
    let mut similarity = vec![0.0; scores.len()];
    let mut is_chosen = vec![false; scores.len()];
    let mut chosen = Vec::new();
    let is_free = |at: &usize, is_chosen: &[bool], similarity: &[f64]| {
        !is_chosen[*at] && similarity[*at] < NEAR_DUPLICATE
    };
    while chosen.len() < n {
        let value = |at: usize| scores[at].scaled(1.0 - diversity * similarity[at]);
        let free = (0..scores.len()).filter(|at| is_free(at, &is_chosen, &similarity));
        let best = free.reduce(|best, at| if value(at) > value(best) { at } else { best });
        let Some(at) = best else { break };
        is_chosen[at] = true;
        chosen.push(Chosen { at, similarity: similarity[at] });
        vectors.raise_to_similarity(at, &mut similarity);
        stage.progress(chosen.len() as u64, n.min(scores.len()) as u64)?;
    }
    let is_near = |at: &usize| !is_chosen[*at] && similarity[*at] >= NEAR_DUPLICATE;
    let n_near_duplicates = (0..scores.len()).filter(is_near).count();
    Ok(Batch { chosen, n_near_duplicates })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Seed;
    use crate::stage::{Run, ignore_events};
    use melm_text::Token;

    fn batch(sentences: &[(&str, f64)], n: usize, diversity: f64) -> (Vec<usize>, usize) {
        let tokens = |(text, _): &(&str, f64)| -> Vec<Token> {
            text.split(' ').map(|word| Token::new(word).unwrap()).collect()
        };
        let tokens: Vec<_> = sentences.iter().map(tokens).collect();
        let vectors = SentenceVectors::new(tokens.iter().map(Vec::as_slice));
        let scores: Vec<_> =
            sentences.iter().map(|(_, score)| Scores { score: *score, doubt: 0.5 }).collect();
        let mut observer = ignore_events;
        let mut run = Run { seed: Seed(1), folder: None, observer: &mut observer };
        let batch = choose(&scores, &vectors, n, diversity, &mut run.stage("pick")).unwrap();
        (batch.chosen.iter().map(|one| one.at).collect(), batch.n_near_duplicates)
    }

    #[test]
    fn similar_sentences_give_way_and_near_duplicates_are_never_chosen() {
        let sentences = [
            ("the welfare party won the vote in ankara today", 0.9),
            ("the welfare party won the vote in ankara again", 0.8),
            ("rome fell to the goths", 0.5),
            ("The welfare party won the vote in ankara today", 0.7),
        ];
        // The weights of words depend on the number of other sentences.
        let others: Vec<String> = (0..20).map(|n| format!("a{n} b{n} c{n}")).collect();
        let others = others.iter().map(|text| (text.as_str(), 0.0));
        let sentences: Vec<_> = sentences.into_iter().chain(others).collect();
        // Without diversity the order is that of the scores, but sentence 3 differs from the first in one letter only.
        assert_eq!(batch(&sentences, 3, 0.0), (vec![0, 1, 2], 1));
        assert_eq!(batch(&sentences, 3, 1.0).0, [0, 2, 1]);
        let (all, n_near) = batch(&sentences, 99, 1.0);
        assert_eq!((all.len(), n_near), (23, 1));
    }

    #[test]
    fn equal_scores_are_ordered_by_doubt_and_then_by_position() {
        let sentences = [("a b", 0.0), ("c d", 0.0), ("e f", 0.1)];
        assert_eq!(batch(&sentences, 2, 1.0).0, [2, 0]);
    }
}
