//! A sentence as a list of segments: plain text, mentions, and what was replaced.

use melm_text::{EntityTypes, Mention, Tag, mentions};
use serde::Serialize;

use crate::visible::visible;

/// A part of a sentence. Tokens are joined by spaces, and hidden characters are made visible.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Segment {
    /// Text outside mentions.
    Plain(String),
    /// A mention that is the same in the source, or of a sentence without a source.
    Mention {
        /// The index of the entity type.
        entity_type: usize,
        /// The text.
        text: String,
    },
    /// A mention that replaces a mention of the source.
    Replaced {
        /// The index of the entity type.
        entity_type: usize,
        /// The new text.
        text: String,
        /// The text in the source.
        old: String,
    },
    /// Text outside mentions that replaces other text of the source.
    Swapped {
        /// The new text.
        text: String,
        /// The text in the source.
        old: String,
    },
}

/// The tokens and mentions of a sentence.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct TaggedTokens {
    pub(crate) tokens: Vec<String>,
    pub(crate) mentions: Vec<Mention>,
}

impl TaggedTokens {
    /// Parses tags. New entity types are added to `types`. Fails if a tag is not valid, or if there are not as many
    /// tags as tokens.
    pub(crate) fn parse(
        tokens: Vec<String>,
        tags: &[String],
        types: &mut EntityTypes,
    ) -> Result<Self, String> {
        if tokens.len() != tags.len() {
            return Err(format!("{} tokens, but {} tags", tokens.len(), tags.len()));
        }
        let tags = tags.iter().map(|tag| types.parse(tag).map_err(|fault| fault.to_string()));
        let tags = tags.collect::<Result<Vec<Tag>, _>>()?;
        Ok(Self { mentions: mentions(&tags).collect(), tokens })
    }

    /// The text of some tokens.
    pub(crate) fn text(&self, tokens: std::ops::Range<usize>) -> String {
        visible(&self.tokens[tokens].join(" "))
    }

    /// The segments of the sentence by itself.
    pub(crate) fn segments(&self) -> Vec<Segment> {
        let mut all = Vec::new();
        let mut at = 0;
        for mention in &self.mentions {
            self.push_plain(at, mention.tokens.start, &mut all);
            all.push(Segment::Mention {
                entity_type: mention.entity_type.index(),
                text: self.text(mention.tokens.clone()),
            });
            at = mention.tokens.end;
        }
        self.push_plain(at, self.tokens.len(), &mut all);
        all
    }

    fn push_plain(&self, from: usize, to: usize, all: &mut Vec<Segment>) {
        if from < to {
            all.push(Segment::Plain(self.text(from..to)));
        }
    }

    /// The segments of the sentence as a difference to its source.
    ///
    /// The mentions are paired in order if both sentences have the same number of mentions with the same types, and the
    /// same text outside. Otherwise tokens are paired if both have the same number of tokens and the same mentions.
    /// Otherwise there is no difference to show.
    pub(crate) fn difference(&self, source: &Self) -> Vec<Segment> {
        if self.has_context_of(source) {
            self.paired_mentions(source)
        } else if self.has_positions_of(source) {
            self.paired_tokens(source)
        } else {
            self.segments()
        }
    }

    /// Returns true if the difference to this source can be shown.
    pub(crate) fn can_be_paired(&self, source: &Self) -> bool {
        self.has_context_of(source) || self.has_positions_of(source)
    }

    /// Returns true if both sentences have the same number of tokens, and mentions of the same types at the same places.
    fn has_positions_of(&self, source: &Self) -> bool {
        self.tokens.len() == source.tokens.len() && self.mentions == source.mentions
    }

    /// Returns true if both sentences differ only inside of mentions, and the types of these mentions are the same.
    fn has_context_of(&self, source: &Self) -> bool {
        let types = |one: &Self| -> Vec<_> { one.mentions.iter().map(|m| m.entity_type).collect() };
        types(self) == types(source) && self.context() == source.context()
    }

    /// The tokens before each mention and after the last one.
    fn context(&self) -> Vec<&[String]> {
        let starts = self.mentions.iter().map(|mention| mention.tokens.start);
        let ends = self.mentions.iter().map(|mention| mention.tokens.end);
        let starts = starts.chain([self.tokens.len()]);
        std::iter::once(0)
            .chain(ends)
            .zip(starts)
            .map(|(from, to)| &self.tokens[from..to])
            .collect()
    }

    fn paired_mentions(&self, source: &Self) -> Vec<Segment> {
        let mut pairs = self.mentions.iter().zip(&source.mentions);
        let mut replace = |segment: Segment| match segment {
            Segment::Mention { entity_type, text } => {
                let (own, old) = pairs.next().expect("there is a segment for each mention");
                let is_same = self.tokens[own.tokens.clone()] == source.tokens[old.tokens.clone()];
                let old = source.text(old.tokens.clone());
                if is_same {
                    Segment::Mention { entity_type, text }
                } else {
                    Segment::Replaced { entity_type, text, old }
                }
            }
            other => other,
        };
        self.segments().into_iter().map(&mut replace).collect()
    }

    fn paired_tokens(&self, source: &Self) -> Vec<Segment> {
        let mut all = Vec::new();
        let mut at = 0;
        for mention in &self.mentions {
            self.push_swaps(source, at, mention.tokens.start, &mut all);
            let range = mention.tokens.clone();
            let (entity_type, text) = (mention.entity_type.index(), self.text(range.clone()));
            let old = source.text(range);
            all.push(if text == old {
                Segment::Mention { entity_type, text }
            } else {
                Segment::Replaced { entity_type, text, old }
            });
            at = mention.tokens.end;
        }
        self.push_swaps(source, at, self.tokens.len(), &mut all);
        all
    }

    /// Adds tokens outside mentions. Neighbouring tokens that both changed, or both did not, are one segment.
    fn push_swaps(&self, source: &Self, from: usize, to: usize, all: &mut Vec<Segment>) {
        let is_changed = |at: usize| self.tokens[at] != source.tokens[at];
        let mut start = from;
        while start < to {
            let changed = is_changed(start);
            let end = (start..to).find(|at| is_changed(*at) != changed).unwrap_or(to);
            let text = self.text(start..end);
            all.push(if changed {
                Segment::Swapped { text, old: source.text(start..end) }
            } else {
                Segment::Plain(text)
            });
            start = end;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(rows: &str, types: &mut EntityTypes) -> TaggedTokens {
        let pairs = rows.split(' ').map(|row| row.split_once('/').unwrap());
        let (tokens, tags): (Vec<_>, Vec<_>) =
            pairs.map(|(token, tag)| (token.to_owned(), tag.to_owned())).unzip();
        TaggedTokens::parse(tokens, &tags, types).unwrap()
    }

    fn plain(text: &str) -> Segment {
        Segment::Plain(text.to_owned())
    }

    #[test]
    fn a_replaced_mention_may_have_another_length() {
        let mut types = EntityTypes::default();
        let source = parse("in/O New/B-LOC York/I-LOC and/O Ada/B-PER", &mut types);
        let draft = parse("in/O Bonn/B-LOC and/O Ada/B-PER", &mut types);
        let replaced =
            Segment::Replaced { entity_type: 0, text: "Bonn".into(), old: "New York".into() };
        let ada = Segment::Mention { entity_type: 1, text: "Ada".into() };
        assert_eq!(draft.difference(&source), [plain("in"), replaced, plain("and"), ada.clone()]);
        let own = Segment::Mention { entity_type: 0, text: "Bonn".into() };
        assert_eq!(draft.segments(), [plain("in"), own, plain("and"), ada]);
    }

    #[test]
    fn swapped_tokens_are_shown_outside_and_inside_mentions() {
        let mut types = EntityTypes::default();
        let source = parse("he/O was/O in/O Old/B-LOC Bonn/I-LOC ./O", &mut types);
        let draft = parse("she/O is/O in/O New/B-LOC Bonn/I-LOC ./O", &mut types);
        let expected = [
            Segment::Swapped { text: "she is".into(), old: "he was".into() },
            plain("in"),
            Segment::Replaced { entity_type: 0, text: "New Bonn".into(), old: "Old Bonn".into() },
            plain("."),
        ];
        assert_eq!(draft.difference(&source), expected);
    }

    #[test]
    fn sentences_that_cannot_be_paired_have_no_difference() {
        let mut types = EntityTypes::default();
        let source = parse("in/O Bonn/B-LOC", &mut types);
        let other = parse("at/O Bonn/B-LOC now/O", &mut types);
        assert_eq!(other.difference(&source), other.segments());
        assert!(!other.can_be_paired(&source) && source.can_be_paired(&source));
        assert!(TaggedTokens::parse(vec!["a".into()], &[], &mut types).is_err());
    }
}
