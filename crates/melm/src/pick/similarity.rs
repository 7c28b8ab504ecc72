//! The similarity of sentences, so that a batch has no near-duplicates.
//!
//! A sentence is a vector of its words and of the pairs of neighbouring word shapes, weighted by their inverse document
//! frequency. Rare words, such as names, count most. Shapes find sentences of one form, such as lines of a table, that
//! share no word. The similarity of two sentences is the cosine of their vectors.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use melm_text::Token;

/// A word of a text, or a pair of shapes.
#[derive(Clone, Copy)]
struct Entry {
    /// The feature in a row, the sentence in a posting.
    at: usize,
    weight: f64,
}

/// The vectors of the sentences of a text.
pub(super) struct SentenceVectors {
    /// The features of each sentence. Features of one sentence only are left out: they count in the length of the vector.
    rows: Vec<Vec<Entry>>,
    /// The sentences of each feature.
    postings: Vec<Vec<Entry>>,
}

impl SentenceVectors {
    /// Computes the vectors of sentences.
    pub(super) fn new<'t>(sentences: impl Iterator<Item = &'t [Token]>) -> Self {
        let mut ids: HashMap<u64, usize> = HashMap::new();
        let mut counts: Vec<usize> = Vec::new();
        let mut features: Vec<Vec<usize>> = Vec::new();
        for tokens in sentences {
            let mut own: Vec<usize> = Vec::new();
            for hash in hash_features(tokens) {
                let next = ids.len();
                own.push(*ids.entry(hash).or_insert(next));
            }
            own.sort_unstable();
            own.dedup();
            counts.resize(ids.len(), 0);
            for id in &own {
                counts[*id] += 1;
            }
            features.push(own);
        }
        let n = features.len() as f64;
        // One more than the number of sentences, so that a feature of all sentences has a weight above 0.
        let weight = |id: usize| ((n + 1.0) / counts[id] as f64).ln();
        let mut vectors = Self { rows: Vec::new(), postings: vec![Vec::new(); counts.len()] };
        for (sentence, own) in features.iter().enumerate() {
            let length = own.iter().map(|id| weight(*id).powi(2)).sum::<f64>().sqrt();
            let shared = own.iter().copied().filter(|id| counts[*id] > 1);
            let row: Vec<Entry> =
                shared.map(|id| Entry { at: id, weight: weight(id) / length }).collect();
            for entry in &row {
                vectors.postings[entry.at].push(Entry { at: sentence, weight: entry.weight });
            }
            vectors.rows.push(row);
        }
        vectors
    }

    /// Raises `largest[other]` to the similarity of `sentence` and `other`, for every other sentence.
    pub(super) fn raise_to_similarity(&self, sentence: usize, largest: &mut [f64]) {
        let mut products: HashMap<usize, f64> = HashMap::new();
        for Entry { at, weight } in &self.rows[sentence] {
            for other in &self.postings[*at] {
                *products.entry(other.at).or_default() += weight * other.weight;
            }
        }
        products.remove(&sentence);
        for (other, product) in products {
            largest[other] = largest[other].max(product.min(1.0));
        }
    }
}

/// Returns a hash of each word, in lower case, and of each pair of neighbouring shapes.
fn hash_features(tokens: &[Token]) -> impl Iterator<Item = u64> {
    let hash = |kind: u8, parts: &[&str]| {
        let mut hasher = DefaultHasher::new();
        (kind, parts).hash(&mut hasher);
        hasher.finish()
    };
    let shapes: Vec<String> = tokens.iter().map(|token| shape(token.as_str())).collect();
    let words = tokens.iter().map(move |token| hash(0, &[&token.as_str().to_lowercase()]));
    let pairs = shapes.windows(2).map(|pair| hash(1, &[&pair[0], &pair[1]]));
    words.chain(pairs.collect::<Vec<_>>())
}

/// Returns the shape of a word: a lower-case word or punctuation stands for itself; in other words each run of upper-case
/// letters, of lower-case letters and of digits becomes one character.
fn shape(word: &str) -> String {
    if !word.chars().any(|c| c.is_uppercase() || c.is_numeric()) {
        return word.to_owned();
    }
    let kind = |c: char| match c {
        c if c.is_uppercase() => 'X',
        c if c.is_numeric() => '0',
        c if c.is_alphabetic() => 'x',
        c => c,
    };
    let mut shape: Vec<char> = word.chars().map(kind).collect();
    shape.dedup();
    shape.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn similarities(sentences: &[&str]) -> Vec<f64> {
        let tokens = |text: &&str| -> Vec<Token> {
            text.split(' ').map(|word| Token::new(word).unwrap()).collect()
        };
        let sentences: Vec<_> = sentences.iter().map(tokens).collect();
        let vectors = SentenceVectors::new(sentences.iter().map(Vec::as_slice));
        let mut largest = vec![0.0; sentences.len()];
        vectors.raise_to_similarity(0, &mut largest);
        largest
    }

    #[test]
    fn similarity_is_the_cosine_of_weighted_words_and_shapes() {
        // Words and pairs of the first: a b, (a b). Of the second: a c, (a c). Only `a` is shared.
        let found = similarities(&["a b", "a c"]);
        let (shared, own) = (f64::ln(3.0 / 2.0), f64::ln(3.0));
        let expected = shared * shared / (shared * shared + 2.0 * own * own);
        assert!((found[1] - expected).abs() < 1e-12, "{found:?}, expected {expected}");
        assert!(found[0] < 1e-12, "a sentence is not compared with itself");
    }

    #[test]
    fn sentences_of_one_form_are_similar_without_a_common_word() {
        let lines = [
            "Johnson ( USA ) 20.12",
            "Fredericks ( NAM ) 19.8",
            "he left the town early",
            "she came home late again",
        ];
        let found = similarities(&lines);
        assert!(found[1] > 0.3 && found[2] < 1e-12, "{found:?}");
        let repeated = similarities(&["Bonn is a town .", "Bonn is a town !", "Rome fell ."]);
        assert!(repeated[1] > 0.5 && repeated[2] < 0.2, "{repeated:?}");
        assert_eq!(shape("McDonald-1997"), "XxXx-0");
        assert_eq!(shape("town"), "town");
    }
}
