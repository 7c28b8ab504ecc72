//! The mentions of every language by type, and the one most like another.

use std::collections::HashMap;
use std::ops::Range;

use melm_text::{Corpus, EntityType, Language, Token};
use serde::Serialize;

use super::MentionVectors;

/// The label-wise mention sets of a corpus's languages: every mention once, where it occurs first.
pub struct Lexicon {
    /// By language, then by entity type.
    sets: Vec<Vec<MentionSet>>,
    counts: LexiconCounts,
}

#[derive(Default)]
struct MentionSet {
    entries: Vec<Entry>,
    by_text: HashMap<Vec<Token>, usize>,
}

/// A mention of a set.
pub(super) struct Entry {
    pub(super) sentence: usize,
    pub(super) tokens: Range<usize>,
    /// Its vector, of length 1; none if no word of it has one.
    unit: Option<Vec<f32>>,
}

/// The mention of a language that is most like another.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct NearestMention {
    /// Its place in its set, in the order of first occurrence.
    pub entry: usize,
    /// The cosine.
    pub cosine: f32,
}

/// What the lexicon lacks, counted.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct LexiconCounts {
    /// For each language.
    pub languages: Vec<LanguageCounts>,
    /// Mentions of a type that no other language has: they stay as they are.
    pub alone: usize,
}

/// What the lexicon of a language lacks.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct LanguageCounts {
    /// Its code.
    pub language: String,
    /// Different words of its mentions.
    pub words: usize,
    /// Those without a vector.
    pub words_without_vector: usize,
    /// Different mentions.
    pub mentions: usize,
    /// Those without a vector, since none of their words has one.
    pub mentions_without_vector: usize,
}

impl Lexicon {
    /// Collects the mentions, with their vectors if there are any.
    pub fn new(corpus: &Corpus, vectors: Option<&MentionVectors>) -> Self {
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
                    let unit = vectors.and_then(|vectors| unit(vectors, code, &text));
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
            let mentions = sentence.mentions();
            self.counts.alone +=
                mentions.filter(|m| self.others(language, m.entity_type).is_empty()).count();
        }
    }

    /// What it lacks.
    pub fn counts(&self) -> &LexiconCounts {
        &self.counts
    }

    /// The other languages that have mentions of a type.
    pub fn others(&self, language: Language, entity_type: EntityType) -> Vec<Language> {
        let languages = (0..self.sets.len()).map(Language::from_index);
        let others = languages.filter(|other| *other != language);
        others.filter(|other| !self.entries(*other, entity_type).is_empty()).collect()
    }

    pub(super) fn entries(&self, language: Language, entity_type: EntityType) -> &[Entry] {
        &self.sets[language.index()][entity_type.index()].entries
    }

    /// The place of a mention in its set.
    pub fn find(
        &self,
        language: Language,
        entity_type: EntityType,
        tokens: &[Token],
    ) -> Option<usize> {
        self.sets[language.index()][entity_type.index()].by_text.get(tokens).copied()
    }

    /// Entity similarity search (equation 3): of a set the mention with the highest cosine to one of another language,
    /// the first of equals; `None` if either side has no vector.
    pub fn nearest(
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

/// The mean of the words' vectors (equation 2), scaled to length 1, which no cosine sees. Words without a vector are left
/// out of the mean.
fn unit(vectors: &MentionVectors, language: &str, tokens: &[Token]) -> Option<Vec<f32>> {
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

/// Lanes of a sum, so that the compiler can add eight at once; the result depends on nothing but the numbers.
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
