//! Label-wise token replacement (Dai and Adel 2020, "LwTR"): replaces tokens by others with the same tag.

use std::collections::BTreeMap;

use melm_text::{Corpus, Language, Sentence, Splice, Tag};

use super::Augmenter;
use super::SubstituteSettings;
use crate::Error;
use crate::draft::{Draft, Replacement, Swap};
use crate::random::StreamKey;
use crate::stage::Stage;

/// The position of a token in the corpus: the index of its sentence, and its index in the sentence.
struct TokenOccurrence {
    sentence: usize,
    token: usize,
}

/// Replaces tokens by other tokens with the same tag and language from the same corpus.
pub(crate) struct ReplaceTokens<'a> {
    corpus: &'a Corpus,
    settings: SubstituteSettings,
    /// All occurrences of tokens, by language (if the corpus has several) and tag. Drawing an occurrence uniformly
    /// therefore draws a token in proportion to its frequency with the tag.
    occurrences: BTreeMap<(Option<Language>, Tag), Vec<TokenOccurrence>>,
}

impl<'a> ReplaceTokens<'a> {
    /// Collects the tokens of a corpus.
    pub(crate) fn new(corpus: &'a Corpus, settings: SubstituteSettings) -> Self {
        let mut occurrences: BTreeMap<_, Vec<_>> = BTreeMap::new();
        for (number, sentence) in corpus.sentences().iter().enumerate() {
            for (token, tag) in sentence.tags().iter().enumerate() {
                let key = (sentence.language(), *tag);
                let occurrence = TokenOccurrence { sentence: number, token };
                occurrences.entry(key).or_default().push(occurrence);
            }
        }
        Self { corpus, settings, occurrences }
    }

    /// Makes one draft of every sentence with a mention. `rate` of the settings is the probability that a token,
    /// inside or outside a mention, is replaced. The tags stay the same.
    pub(crate) fn round(&self, key: StreamKey, round: u32) -> Vec<Draft> {
        let key = key.at(u64::from(round));
        let sentences = self.corpus.sentences().iter().enumerate();
        sentences
            .filter(|(_, sentence)| sentence.mentions().next().is_some())
            .map(|(source, sentence)| {
                let swaps = self.draw(sentence, key.at(source as u64));
                swap_tokens(self.corpus, source, round, swaps)
            })
            .collect()
    }

    fn draw(&self, sentence: &Sentence, key: StreamKey) -> Vec<Swap> {
        let mut generator = key.generator();
        let mut swaps = Vec::new();
        for (token, tag) in sentence.tags().iter().enumerate() {
            if generator.uniform() < self.settings.rate.value() {
                let same = &self.occurrences[&(sentence.language(), *tag)];
                let donor = &same[generator.below(same.len())];
                swaps.push(Swap { token, sentence: donor.sentence, from: donor.token });
            }
        }
        swaps
    }
}

/// Makes the draft of sentence `source` in which some tokens and their other columns are replaced.
pub(crate) fn swap_tokens(corpus: &Corpus, source: usize, round: u32, swaps: Vec<Swap>) -> Draft {
    let (sentences, own) = (corpus.sentences(), &corpus.sentences()[source]);
    let stretches = swaps.iter().map(|swap| {
        let Swap { token, sentence, from } = *swap;
        Splice { replaced: token..token + 1, donor: &sentences[sentence], tokens: from..from + 1 }
    });
    let sentence = own.splice(stretches, own.mentions(), corpus.scheme());
    let replaced = own.mentions().enumerate().filter_map(|(number, mention)| {
        let is_swapped = swaps.iter().any(|swap| mention.tokens.contains(&swap.token));
        is_swapped.then(|| Replacement {
            mention: number,
            old: own.tokens()[mention.tokens.clone()].to_vec(),
            new: sentence.tokens()[mention.tokens.clone()].to_vec(),
            entity_type: mention.entity_type,
            tokens: mention.tokens,
            pieces: Vec::new(),
            donor: None,
            name: None,
            similarity: None,
            score: None,
        })
    });
    let replacements = replaced.collect();
    Draft { swaps, ..Draft::new(sentence, source, round, replacements) }
}

impl Augmenter for ReplaceTokens<'_> {
    fn round(&mut self, round: u32, stage: &mut Stage<'_>) -> Result<Vec<Draft>, Error> {
        Ok(ReplaceTokens::round(self, stage.key(), round))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Seed;
    use crate::rate::Rate;
    use melm_text::{ReadOptions, Source};

    const TEXT: &str = "Ada NE B-PER\nsaw V O\nNew NE B-LOC\nYork NE I-LOC\n\n\
        Rio NE B-LOC\nand K O\nRio NE B-LOC\nDr T B-PER\nNo NE I-PER\n\nso A O\nsaw V O\n\n";

    fn corpus() -> Corpus {
        Corpus::read(&Source::from_text("a", TEXT), &ReadOptions::default()).unwrap()
    }

    /// Computes the probability of each token at each position of a draft, from the definition in the paper: `rate`
    /// is the probability that a token is replaced by a token with the same tag, drawn in proportion to its frequency
    /// with this tag.
    fn expected(text: &str, rate: f64) -> Vec<Vec<BTreeMap<String, f64>>> {
        let sentences: Vec<Vec<(&str, &str)>> = text
            .split("\n\n")
            .filter(|block| !block.is_empty())
            .map(|block| {
                let cells = block.lines().map(|line| line.split(' ').collect::<Vec<_>>());
                cells.map(|cells| (cells[0], cells[2])).collect()
            })
            .collect();
        let all: Vec<_> = sentences.iter().flatten().collect();
        let at = |(token, tag): &(&str, &str)| {
            let same: Vec<_> = all.iter().filter(|(_, other)| other == tag).collect();
            let mut likely = BTreeMap::new();
            for (other, _) in &same {
                *likely.entry((*other).to_owned()).or_default() += rate / same.len() as f64;
            }
            *likely.entry((*token).to_owned()).or_default() += 1.0 - rate;
            likely
        };
        sentences.iter().map(|sentence| sentence.iter().map(at).collect()).collect()
    }

    #[test]
    fn tokens_are_drawn_with_the_probabilities_of_the_paper() {
        let (corpus, rate, n) = (corpus(), 0.3, 20_000);
        let settings = SubstituteSettings { rate: Rate::constant(rate), match_before: false };
        let method = ReplaceTokens::new(&corpus, settings);
        let mut counts: BTreeMap<(usize, usize, String), u32> = BTreeMap::new();
        for round in 1..=n {
            for draft in method.round(Seed(3).stream("test"), round) {
                for (at, token) in draft.sentence.tokens().iter().enumerate() {
                    *counts.entry((draft.source.unwrap(), at, token.to_string())).or_default() += 1;
                }
            }
        }
        for (source, sentence) in expected(TEXT, rate).into_iter().enumerate().take(2) {
            for (at, likely) in sentence.into_iter().enumerate() {
                for (token, p) in likely {
                    let n = f64::from(n);
                    let found = counts.remove(&(source, at, token)).unwrap_or_default();
                    // The tolerance is 5 standard deviations of a binomial count.
                    let apart = (f64::from(found) - n * p).abs();
                    assert!(apart <= 5.0 * (n * p * (1.0 - p)).sqrt(), "{source} {at}: {found}");
                }
            }
        }
        // The loop removed the counts of all tokens that the paper allows. No other token may have been drawn.
        assert!(counts.is_empty(), "{counts:?}");
    }

    #[test]
    fn tags_stay_and_replaced_tokens_bring_their_columns() {
        let corpus = corpus();
        let settings = SubstituteSettings { rate: Rate::constant(1.0), match_before: false };
        let method = ReplaceTokens::new(&corpus, settings);
        let mut seen = String::new();
        for round in 1..50 {
            for draft in method.round(Seed(1).stream("test"), round) {
                let source = &corpus.sentences()[draft.source.unwrap()];
                assert_eq!(draft.sentence.tags(), source.tags());
                assert_eq!(draft.swaps.len(), source.tokens().len());
                assert_eq!(draft.replacements.len(), source.mentions().count());
                let (types, sentences) = (corpus.types().clone(), vec![draft.sentence.clone()]);
                let mut out = Vec::new();
                let one = Corpus::new(types, corpus.scheme(), sentences).unwrap();
                one.write_conll(&mut out).unwrap();
                seen += &String::from_utf8(out).unwrap();
            }
        }
        assert!(seen.contains("Dr T B-PER") && seen.contains("so A O") && seen.contains("and K O"));
    }
}
