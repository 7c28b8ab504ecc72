//! Label-wise substitution (Dai and Adel 2020, "mention replacement"): replaces mentions by others of the same type.

use std::collections::BTreeMap;
use std::ops::Range;

use melm_text::{Corpus, EntityType, Language, Mention, Sentence, Splice};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Augmenter;
use crate::Error;
use crate::draft::{Donor, Draft, Replacement};
use crate::random::StreamKey;
use crate::rate::Rate;
use crate::stage::Stage;

/// The settings of the methods that replace mentions (`label-wise`) or tokens (`lwtr`).
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SubstituteSettings {
    /// The probability that a mention or token is replaced.
    pub rate: Rate,
}

/// A mention and the index of its sentence.
struct MentionOccurrence {
    sentence: usize,
    mention: Mention,
}

/// Replaces mentions by other mentions of the same type and language from the same corpus.
pub(crate) struct Substitute<'a> {
    corpus: &'a Corpus,
    settings: SubstituteSettings,
    /// All occurrences of mentions, by language (if the corpus has several) and type.
    mentions: BTreeMap<(Option<Language>, EntityType), Vec<MentionOccurrence>>,
}

impl<'a> Substitute<'a> {
    /// Collects the mentions of a corpus.
    pub(crate) fn new(corpus: &'a Corpus, settings: SubstituteSettings) -> Self {
        let mut mentions: BTreeMap<_, Vec<_>> = BTreeMap::new();
        for (number, sentence) in corpus.sentences().iter().enumerate() {
            for mention in sentence.mentions() {
                let key = (sentence.language(), mention.entity_type);
                let occurrence = MentionOccurrence { sentence: number, mention };
                mentions.entry(key).or_default().push(occurrence);
            }
        }
        Self { corpus, settings, mentions }
    }

    /// Makes one draft of every sentence with a mention. At least one mention of each sentence is replaced, possibly
    /// by one with the same text.
    pub(crate) fn round(&self, key: StreamKey, round: u32) -> Vec<Draft> {
        let sentences = self.corpus.sentences().iter().enumerate();
        let key = key.at(u64::from(round));
        sentences
            .filter(|(_, sentence)| sentence.mentions().next().is_some())
            .map(|(source, sentence)| self.draft(sentence, key, source, round))
            .collect()
    }

    fn draft(&self, sentence: &Sentence, key: StreamKey, source: usize, round: u32) -> Draft {
        let mut generator = key.at(source as u64).generator();
        let own: Vec<_> = sentence.mentions().collect();
        let mut drawn: Vec<bool> =
            own.iter().map(|_| generator.uniform() < self.settings.rate.value()).collect();
        if !drawn.contains(&true) {
            drawn[generator.below(own.len())] = true;
        }
        let donors = own.iter().zip(drawn).map(|(mention, is_drawn)| {
            let others = &self.mentions[&(sentence.language(), mention.entity_type)];
            is_drawn.then(|| {
                let other = &others[generator.below(others.len())];
                Donor { sentence: other.sentence, tokens: other.mention.tokens.clone() }
            })
        });
        let donors: Vec<_> = donors.collect();
        substitute_mentions(self.corpus, source, round, &donors)
    }
}

/// Makes the draft of sentence `source` in which mentions are replaced by their donors. `donors` has one entry for each
/// mention of the sentence; `None` keeps the mention.
pub fn substitute_mentions(
    corpus: &Corpus,
    source: usize,
    round: u32,
    donors: &[Option<Donor>],
) -> Draft {
    let sentences = corpus.sentences();
    let tokens_of = |sentence: usize, tokens: &Range<usize>| {
        sentences[sentence].tokens()[tokens.clone()].to_vec()
    };
    let (mut start, mut before) = (0, 0);
    let (mut mentions, mut replaced, mut replacements) = (Vec::new(), Vec::new(), Vec::new());
    for ((number, own), donor) in sentences[source].mentions().enumerate().zip(donors) {
        start += own.tokens.start - before;
        before = own.tokens.end;
        let given = donor.as_ref().map_or(own.tokens.len(), |donor| donor.tokens.len());
        let tokens = start..start + given;
        start = tokens.end;
        if let Some(donor) = donor {
            replaced.push(Splice {
                replaced: own.tokens.clone(),
                donor: &sentences[donor.sentence],
                tokens: donor.tokens.clone(),
            });
            replacements.push(Replacement {
                mention: number,
                tokens: tokens.clone(),
                entity_type: own.entity_type,
                old: tokens_of(source, &own.tokens),
                new: tokens_of(donor.sentence, &donor.tokens),
                pieces: Vec::new(),
                donor: Some(donor.clone()),
                similarity: None,
            });
        }
        mentions.push(Mention { entity_type: own.entity_type, tokens });
    }
    let sentence = sentences[source].splice(replaced, mentions, corpus.scheme());
    Draft::new(sentence, source, round, replacements)
}

impl Augmenter for Substitute<'_> {
    fn round(&mut self, round: u32, stage: &mut Stage<'_>) -> Result<Vec<Draft>, Error> {
        Ok(Substitute::round(self, stage.key(), round))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Seed;
    use melm_text::{ReadOptions, Source};

    const TEXT: &str = "Ada NE B-PER\nsaw V O\nNew NE B-LOC\nYork NE I-LOC\n\n\
        Rio NE B-LOC\nand K O\nBonn NE B-LOC\nDr T B-PER\nNo NE I-PER\n\nso A O\n\n";

    #[test]
    fn replaced_mentions_bring_their_columns_and_nothing_else_changes() {
        let corpus = Corpus::read(&Source::from_text("a", TEXT), &ReadOptions::default()).unwrap();
        let settings = SubstituteSettings { rate: Rate::constant(0.5) };
        let substitute = Substitute::new(&corpus, settings);
        let mut n_longer = 0;
        for round in 1..200 {
            let drafts = substitute.round(Seed(3).stream("test"), round);
            assert_eq!(
                drafts.iter().map(|draft| draft.source).collect::<Vec<_>>(),
                [0, 1].map(Some)
            );
            for draft in drafts {
                assert!(!draft.replacements.is_empty());
                let source = &corpus.sentences()[draft.source.unwrap()];
                let types = |sentence: &Sentence| {
                    sentence.mentions().map(|m| m.entity_type).collect::<Vec<_>>()
                };
                assert_eq!(types(&draft.sentence), types(source));
                let outside = |sentence: &Sentence| {
                    let pairs = sentence.tokens().iter().zip(sentence.tags());
                    let outside = pairs.filter(|(_, tag)| **tag == melm_text::Tag::Outside);
                    outside.map(|(token, _)| token.to_string()).collect::<Vec<_>>()
                };
                assert_eq!(outside(&draft.sentence), outside(source));
                n_longer += usize::from(draft.sentence.tokens().len() > source.tokens().len());
                for replacement in &draft.replacements {
                    let found = &draft.sentence.tokens()[replacement.tokens.clone()];
                    assert_eq!(found, replacement.new);
                    if found[0].as_str() == "Dr" {
                        let all = Corpus::new(
                            corpus.types().clone(),
                            corpus.scheme(),
                            vec![draft.sentence.clone()],
                        );
                        let mut out = Vec::new();
                        all.unwrap().write_conll(&mut out).unwrap();
                        assert!(
                            String::from_utf8(out).unwrap().contains("Dr T B-PER\nNo NE I-PER")
                        );
                    }
                }
            }
        }
        assert!(n_longer > 0);
    }
}
