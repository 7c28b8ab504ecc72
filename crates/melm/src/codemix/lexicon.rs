//! The mentions of every language by type, and the search for the most similar mention.

use std::collections::HashMap;
use std::ops::Range;

use melm_text::{Corpus, EntityType, Language, Token, count_of};
use serde::Serialize;

use super::MentionVectors;

/// The mentions of a corpus by language and entity type. Each distinct mention is listed once, at its first occurrence.
pub(super) struct Lexicon {
    /// The mentions by language, then by entity type.
    sets: Vec<Vec<MentionSet>>,
    counts: LexiconCounts,
}

#[derive(Default)]
struct MentionSet {
    entries: Vec<Entry>,
    by_text: HashMap<Vec<Token>, usize>,
}

/// One distinct mention.
pub(super) struct Entry {
    pub(super) sentence: usize,
    pub(super) tokens: Range<usize>,
    /// The vector of the mention, scaled to length 1. `None` if none of its words has a vector.
    unit: Option<Vec<f32>>,
}

/// The result of a similarity search.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct NearestMention {
    /// The index of the mention among those of its language and type, in the order of first occurrence.
    pub(super) entry: usize,
    /// The cosine similarity.
    pub(super) cosine: f32,
}

/// The number of words and mentions without vectors.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct LexiconCounts {
    /// The counts of each language.
    pub languages: Vec<LanguageCounts>,
    /// The number of mentions whose type occurs in no other language. They are never replaced.
    pub alone: usize,
    /// The number of all mentions.
    pub mentions: usize,
}

impl LexiconCounts {
    /// Returns lines about the words and mentions that have no vector.
    pub fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        for one in self.languages.iter().filter(|one| one.words_without_vector > 0) {
            notes.push(format!(
                "{} in the mentions of {} have no vector; {} have no word with a vector and are replaced by any mention \
                 of their type",
                count_of(one.words_without_vector, one.words, "word"),
                one.language,
                count_of(one.mentions_without_vector, one.mentions, "mention"),
            ));
        }
        if self.alone > 0 {
            let n = count_of(self.alone, self.mentions, "mention");
            notes.push(format!("{n} unchanged: no other language has their type"));
        }
        notes
    }
}

/// The counts of one language.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct LanguageCounts {
    /// The code of the language.
    pub language: String,
    /// The number of distinct words in its mentions.
    pub words: usize,
    /// The number of these words without a vector.
    pub words_without_vector: usize,
    /// The number of distinct mentions.
    pub mentions: usize,
    /// The number of these mentions that have no vector, because none of their words has a vector.
    pub mentions_without_vector: usize,
}

impl Lexicon {
    /// Collects the mentions of a corpus, with their vectors if `vectors` is given.
    pub(super) fn new(corpus: &Corpus, vectors: Option<&MentionVectors>) -> Self {
        let n_types = corpus.types().iter().count();
        let empty = || (0..n_types).map(|_| MentionSet::default()).collect::<Vec<_>>();
        let sets = corpus.languages().iter().map(|_| empty()).collect();
        let mut lexicon = Self { sets, counts: LexiconCounts::default() };
        for (number, sentence) in corpus.sentences().iter().enumerate() {
            let Some(language) = sentence.language() else { continue };
            for mention in sentence.mentions() {
                let text = sentence.tokens()[mention.tokens.clone()].to_vec();
                let set = &mut lexicon.sets[language.index()][mention.entity_type.index()];
                if !set.by_text.contains_key(&text) {
                    let code = &corpus.languages()[language.index()].code;
                    let unit = vectors.and_then(|vectors| unit_vector(vectors, code, &text));
                    set.by_text.insert(text, set.entries.len());
                    set.entries.push(Entry { sentence: number, tokens: mention.tokens, unit });
                }
            }
        }
        lexicon.count(corpus, vectors);
        lexicon
    }

    fn count(&mut self, corpus: &Corpus, vectors: Option<&MentionVectors>) {
        for (at, part) in corpus.languages().iter().enumerate() {
            let entries = || self.sets[at].iter().flat_map(|set| &set.entries);
            let words = |entry: &Entry| {
                corpus.sentences()[entry.sentence].tokens()[entry.tokens.clone()].to_vec()
            };
            let words: std::collections::BTreeSet<_> = entries().flat_map(words).collect();
            let has_none =
                |word: &&Token| vectors.is_some_and(|v| v.get(&part.code, word.as_str()).is_none());
            self.counts.languages.push(LanguageCounts {
                language: part.code.to_string(),
                words: words.len(),
                words_without_vector: words.iter().filter(has_none).count(),
                mentions: entries().count(),
                mentions_without_vector: entries()
                    .filter(|entry| vectors.is_some() && entry.unit.is_none())
                    .count(),
            });
        }
        for sentence in corpus.sentences() {
            let Some(language) = sentence.language() else { continue };
            for mention in sentence.mentions() {
                self.counts.mentions += 1;
                let is_alone = self.others(language, mention.entity_type).is_empty();
                self.counts.alone += usize::from(is_alone);
            }
        }
    }

    /// The number of words and mentions without vectors.
    pub(super) fn counts(&self) -> &LexiconCounts {
        &self.counts
    }

    /// The languages other than `language` that have mentions of a type.
    pub(super) fn others(&self, language: Language, entity_type: EntityType) -> Vec<Language> {
        let languages = (0..self.sets.len()).map(Language::from_index);
        let others = languages.filter(|other| *other != language);
        others.filter(|other| !self.entries(*other, entity_type).is_empty()).collect()
    }

    pub(super) fn entries(&self, language: Language, entity_type: EntityType) -> &[Entry] {
        &self.sets[language.index()][entity_type.index()].entries
    }

    /// Returns the index of a mention among those of its language and type.
    pub(super) fn find(
        &self,
        language: Language,
        entity_type: EntityType,
        tokens: &[Token],
    ) -> Option<usize> {
        self.sets[language.index()][entity_type.index()].by_text.get(tokens).copied()
    }

    /// Entity similarity search (equation 3): finds the mention of language `target` with the highest cosine
    /// similarity to mention `entry` of `language`. If several are equally similar, takes the first. Returns `None`
    /// if `entry` or all mentions of `target` have no vector.
    pub(super) fn nearest(
        &self,
        language: Language,
        entity_type: EntityType,
        entry: usize,
        target: Language,
    ) -> Option<NearestMention> {
        let own = self.entries(language, entity_type)[entry].unit.as_ref()?;
        let mut best: Option<NearestMention> = None;
        for (at, other) in self.entries(target, entity_type).iter().enumerate() {
            let Some(unit) = &other.unit else { continue };
            let cosine = dot(own, unit);
            if best.is_none_or(|best| cosine > best.cosine) {
                best = Some(NearestMention { entry: at, cosine });
            }
        }
        best
    }
}

/// Returns the mean of the words' vectors (equation 2), scaled to length 1. The scaling does not change cosines.
/// Words without a vector are left out of the mean.
fn unit_vector(vectors: &MentionVectors, language: &str, tokens: &[Token]) -> Option<Vec<f32>> {
    let mut sum = vec![0.0_f64; vectors.dimension()];
    for token in tokens {
        if let Some(vector) = vectors.get(language, token.as_str()) {
            sum.iter_mut().zip(vector).for_each(|(s, v)| *s += f64::from(*v));
        }
    }
    let length = sum.iter().map(|s| s * s).sum::<f64>().sqrt();
    #[expect(clippy::cast_possible_truncation, reason = "they are at most 1")]
    let unit = sum.iter().map(|s| (s / length) as f32).collect();
    (length > 0.0 && length.is_finite()).then_some(unit)
}

/// The number of partial sums in a dot product. They are independent of each other, so that the compiler can use
/// SIMD. They are added in a fixed order, so that the result is the same on every machine.
const LANES: usize = 8;

fn dot(a: &[f32], b: &[f32]) -> f32 {
    let ((a, a_rest), (b, b_rest)) = (a.as_chunks::<LANES>(), b.as_chunks::<LANES>());
    let mut sums = [0.0_f32; LANES];
    for (a, b) in a.iter().zip(b) {
        for lane in 0..LANES {
            sums[lane] += a[lane] * b[lane];
        }
    }
    let rest: f32 = a_rest.iter().zip(b_rest).map(|(a, b)| a * b).sum();
    sums.iter().sum::<f32>() + rest
}

#[cfg(test)]
mod tests {
    use super::LexiconCounts;

    #[test]
    fn mentions_without_a_type_in_other_languages_are_counted_among_all() {
        let counts = LexiconCounts { languages: Vec::new(), alone: 2, mentions: 9 };
        let expected = "2 of 9 mentions unchanged: no other language has their type";
        assert_eq!(counts.notes(), [expected]);
    }
}
