//! Label-wise substitution (Dai and Adel 2020, "mention replacement"): replaces mentions by others of the same type.

use std::collections::{BTreeMap, BTreeSet};

use melm_text::{Corpus, EntityType, Language, Mention, Sentence, Token};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Augmenter;
use super::replace::{NewMention, replace_mentions};
use crate::Error;
use crate::draft::{Donor, Draft};
use crate::names::Names;
use crate::random::{Generator, StreamKey};
use crate::rate::Rate;
use crate::stage::Stage;

/// The settings of the methods that replace mentions (`label-wise`) or tokens (`lwtr`).
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SubstituteSettings {
    /// The probability that a mention or token is replaced.
    pub rate: Rate,
    /// If true, `label-wise` and `melm-both` replace a mention by one that follows the same token in gold (`the`, `in`),
    /// so that an article fits. A token counts if it precedes at least five different mentions of the type; all others are
    /// one group.
    #[serde(default)]
    pub match_before: bool,
}

/// The number of different mentions that a token must precede to be a group of its own. With fewer, the new mentions
/// would repeat each other.
const MIN_GROUP: usize = 5;

/// A mention and the index of its sentence.
struct MentionOccurrence {
    sentence: usize,
    mention: Mention,
}

/// The mentions that may replace each other.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
struct MentionGroup {
    /// The language, if the corpus has several.
    language: Option<Language>,
    entity_type: EntityType,
    /// The token before the mentions, in lower case. `None` stands for all tokens without a group of their own.
    before: Option<String>,
}

impl MentionGroup {
    fn new(sentence: &Sentence, mention: &Mention) -> Self {
        let before = mention.tokens.start.checked_sub(1).map(|at| &sentence.tokens()[at]);
        Self {
            language: sentence.language(),
            entity_type: mention.entity_type,
            before: before.map(|token| token.as_str().to_lowercase()),
        }
    }

    /// The group of mentions whose preceding token has no group of its own.
    fn rest(self) -> Self {
        Self { before: None, ..self }
    }
}

/// The names that a method may use, and the share of new mentions that are names.
#[derive(Clone, Copy)]
pub(crate) struct UsedNames<'a> {
    pub(crate) names: &'a Names,
    pub(crate) share: Rate,
}

/// Replaces mentions by other mentions of the same type and language from the same corpus, or by names of lists.
pub(crate) struct Substitute<'a> {
    corpus: &'a Corpus,
    settings: SubstituteSettings,
    names: Option<UsedNames<'a>>,
    /// All occurrences of mentions, by group.
    mentions: BTreeMap<MentionGroup, Vec<MentionOccurrence>>,
}

impl<'a> Substitute<'a> {
    /// Collects the mentions of a corpus.
    pub(crate) fn new(corpus: &'a Corpus, settings: SubstituteSettings) -> Self {
        let mut groups: BTreeMap<MentionGroup, Vec<MentionOccurrence>> = BTreeMap::new();
        let own = own_groups(corpus, settings);
        for (number, sentence) in corpus.sentences().iter().enumerate() {
            for mention in sentence.mentions() {
                let group = MentionGroup::new(sentence, &mention);
                let group = if own.contains(&group) { group } else { group.rest() };
                let occurrence = MentionOccurrence { sentence: number, mention };
                groups.entry(group).or_default().push(occurrence);
            }
        }
        Self { corpus, settings, names: None, mentions: groups }
    }

    /// Sets the names that may replace mentions.
    #[must_use]
    pub(crate) fn with_names(mut self, names: Option<UsedNames<'a>>) -> Self {
        self.names = names.filter(|used| used.share.value() > 0.0);
        self
    }

    /// Returns the mentions that may replace a mention.
    fn replacements_of(&self, sentence: &Sentence, mention: &Mention) -> &[MentionOccurrence] {
        let group = MentionGroup::new(sentence, mention);
        let own = self.mentions.get(&group).filter(|_| group.before.is_some());
        own.unwrap_or_else(|| &self.mentions[&group.rest()])
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
        let new = own.iter().zip(drawn).map(|(mention, is_drawn)| {
            is_drawn.then(|| self.draw(sentence, mention, &mut generator))
        });
        let new: Vec<_> = new.collect();
        replace_mentions(self.corpus, source, round, &new)
    }

    /// Draws a mention that replaces `mention`: a name, if the type has a list and the draw says so, or a gold mention.
    fn draw(
        &self,
        sentence: &Sentence,
        mention: &Mention,
        generator: &mut Generator,
    ) -> NewMention {
        if let Some(UsedNames { names, share }) = self.names {
            let own = names.of_type(mention.entity_type);
            if !own.is_empty() && generator.uniform() < share.value() {
                let tokens = own[generator.below(own.len())].clone();
                return NewMention::Name { tokens, origin: names.origin() };
            }
        }
        let others = self.replacements_of(sentence, mention);
        let other = &others[generator.below(others.len())];
        NewMention::Gold(Donor { sentence: other.sentence, tokens: other.mention.tokens.clone() })
    }
}

/// Returns the groups of mentions after a token that precedes at least [`MIN_GROUP`] different mentions of a type. Empty if
/// the settings do not ask for them.
fn own_groups(corpus: &Corpus, settings: SubstituteSettings) -> BTreeSet<MentionGroup> {
    let mut texts: BTreeMap<MentionGroup, BTreeSet<&[Token]>> = BTreeMap::new();
    for sentence in corpus.sentences().iter().filter(|_| settings.match_before) {
        for mention in sentence.mentions() {
            let group = MentionGroup::new(sentence, &mention);
            texts.entry(group).or_default().insert(&sentence.tokens()[mention.tokens]);
        }
    }
    texts.retain(|group, texts| group.before.is_some() && texts.len() >= MIN_GROUP);
    texts.into_keys().collect()
}

impl Augmenter for Substitute<'_> {
    fn round(&mut self, round: u32, stage: &mut Stage<'_>) -> Result<Vec<Draft>, Error> {
        Ok(Substitute::round(self, stage.key(), round))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::draft::{read_lines, to_lines};
    use crate::names::NameList;
    use crate::random::Seed;
    use melm_text::{ReadOptions, Source, TextFormat, TextOptions, UnlabelledText};

    const TEXT: &str = "Ada NE B-PER\nsaw V O\nNew NE B-LOC\nYork NE I-LOC\n\n\
        Rio NE B-LOC\nand K O\nBonn NE B-LOC\nDr T B-PER\nNo NE I-PER\n\nso A O\n\n";

    #[test]
    fn replaced_mentions_bring_their_columns_and_nothing_else_changes() {
        let corpus = Corpus::read(&Source::from_text("a", TEXT), &ReadOptions::default()).unwrap();
        let settings = SubstituteSettings { rate: Rate::constant(0.5), match_before: false };
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

    #[test]
    fn mentions_after_an_article_are_replaced_by_others_after_it() {
        // Six countries after `the`, six after `in` or at the start, and `from` before one only.
        let after_the = ["Congo", "Gambia", "Netherlands", "Philippines", "Sudan", "Ukraine"];
        let others = ["Chad", "Chile", "Cuba", "Fiji", "Laos", "Mali"];
        let sentence = |before: &str, name: &str| format!("{before} O\n{name} B-LOC\n\n");
        let mut text: String = after_the.iter().map(|name| sentence("the", name)).collect();
        text += &others[..3].iter().map(|name| sentence("In", name)).collect::<String>();
        text += &others[3..5].iter().map(|name| format!("{name} B-LOC\n\n")).collect::<String>();
        text += &sentence("from", others[5]);
        let corpus = Corpus::read(&Source::from_text("a", text), &ReadOptions::default()).unwrap();
        let settings = SubstituteSettings { rate: Rate::constant(1.0), match_before: true };
        let substitute = Substitute::new(&corpus, settings);
        let mut seen = BTreeSet::new();
        for round in 1..100 {
            for draft in substitute.round(Seed(5).stream("test"), round) {
                let new = draft.replacements[0].new[0].to_string();
                let has_article = draft.sentence.tokens()[0].as_str() == "the";
                assert_eq!(after_the.contains(&new.as_str()), has_article, "{new}");
                seen.insert(new);
            }
        }
        assert_eq!(seen.len(), 12);
    }

    #[test]
    fn names_of_lists_replace_the_stated_share_of_mentions() {
        let corpus = Corpus::read(&Source::from_text("a", TEXT), &ReadOptions::default()).unwrap();
        let options = TextOptions { format: Some(TextFormat::Plain), ..TextOptions::default() };
        let text = "Kap der Guten Hoffnung\nOslo\n";
        let text = UnlabelledText::read("loc.txt", text.as_bytes(), &options).unwrap();
        let names = Names::new(&[NameList::from_text("LOC", &text)], &corpus).unwrap();
        let settings = SubstituteSettings { rate: Rate::constant(1.0), match_before: false };
        let used = UsedNames { names: &names, share: Rate::constant(0.25) };
        let substitute = Substitute::new(&corpus, settings).with_names(Some(used));
        let (mut n_names, mut n_places) = (0, 0);
        for round in 1..400 {
            let drafts = substitute.round(Seed(3).stream("test"), round);
            for replacement in drafts.iter().flat_map(|draft| &draft.replacements) {
                let is_place = corpus.types().name(replacement.entity_type) == "LOC";
                let words: Vec<_> = replacement.new.iter().map(Token::as_str).collect();
                let is_listed = ["Kap der Guten Hoffnung", "Oslo"].contains(&&*words.join(" "));
                assert_eq!(replacement.name.is_some(), is_listed, "{words:?}");
                assert_eq!(replacement.donor.is_none(), is_listed);
                assert!(is_place || !is_listed);
                n_places += i32::from(is_place);
                n_names += i32::from(is_listed);
            }
            // The lines of `drafts.jsonl` give the same drafts again.
            let lines = to_lines(&drafts, &corpus);
            let again = read_lines("drafts.jsonl".as_ref(), &lines, &corpus).unwrap().drafts;
            assert_eq!(again, drafts);
        }
        // Three standard deviations of a binomial count of about 1,200 places are 45.
        assert!((n_names - n_places / 4).abs() < 45, "{n_names} of {n_places}");
    }
}
