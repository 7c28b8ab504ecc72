//! Mentions: entity occurrences as spans, and the conversion between spans and tags.

use std::ops::Range;

use crate::scheme::Scheme;
use crate::tag::{EntityType, Tag, TagPrefix};

/// One entity occurrence: an entity type and the tokens it covers.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Mention {
    /// The entity type.
    pub entity_type: EntityType,
    /// The tokens. The range is never empty.
    pub tokens: Range<usize>,
}

/// Returns the mentions of a tag sequence, in order.
///
/// All schemes are read by the rule of conlleval and seqeval: a mention starts at `B` or `S`, after `O`, after `E` or
/// `S`, and where the type changes. For tags that are valid in their scheme, this rule gives exactly the mentions that
/// the scheme defines. Invalid tags are read leniently.
///
/// ```
/// use melm_text::{EntityTypes, mentions};
/// let mut types = EntityTypes::default();
/// let tags = ["B-PER", "I-PER", "O", "I-LOC"].map(|t| types.parse(t).unwrap());
/// let spans: Vec<_> = mentions(&tags).map(|m| m.tokens).collect();
/// assert_eq!(spans, [0..2, 3..4]);
/// ```
pub fn mentions(tags: &[Tag]) -> impl Iterator<Item = Mention> {
    let mut at = 0;
    std::iter::from_fn(move || {
        while let Some(&tag) = tags.get(at) {
            let start = at;
            at += 1;
            let Tag::In(_, entity_type) = tag else { continue };
            while at < tags.len() && continues(tags[at - 1], tags[at]) {
                at += 1;
            }
            return Some(Mention { entity_type, tokens: start..at });
        }
        None
    })
}

/// Returns true if `tag` continues the mention that `before` is part of.
fn continues(before: Tag, tag: Tag) -> bool {
    use TagPrefix::{Begin, End, Inside};
    matches!((before, tag), (Tag::In(Begin | Inside, a), Tag::In(Inside | End, b)) if a == b)
}

/// Replaces `tags` by the tags of `mentions` in `scheme`. Tokens outside of all mentions become `O`.
///
/// The mentions must be in order and must not overlap, as [`mentions()`] returns them.
///
/// # Panics
/// If a mention ends after the end of `tags`.
pub fn write_tags(mentions: impl IntoIterator<Item = Mention>, scheme: Scheme, tags: &mut [Tag]) {
    tags.fill(Tag::Outside);
    let mut before: Option<Mention> = None;
    for mention in mentions {
        let Range { start, end } = mention.tokens;
        let entity_type = mention.entity_type;
        let touches =
            before.as_ref().is_some_and(|b| b.tokens.end == start && b.entity_type == entity_type);
        if touches && scheme == Scheme::Ioe1 {
            tags[start - 1] = Tag::In(TagPrefix::End, entity_type);
        }
        for (at, tag) in (start..end).zip(&mut tags[start..end]) {
            let prefix = scheme.prefix(at == start, at + 1 == end, touches);
            *tag = Tag::In(prefix, entity_type);
        }
        before = Some(mention);
    }
}

/// Makes any tag sequence valid in `scheme`, with the same mentions ([`mentions()`]). Returns the
/// number of tags that changed.
pub fn repair(tags: &mut [Tag], scheme: Scheme) -> usize {
    let old = tags.to_vec();
    write_tags(mentions(&old), scheme, tags);
    old.iter().zip(tags.iter()).filter(|(a, b)| a != b).count()
}

/// Returns the number of mentions that are lost if `tags` are written in IO, where adjacent mentions of the same type
/// become one mention.
pub fn count_merged_by_io(tags: &[Tag]) -> usize {
    let mut before: Option<Mention> = None;
    let mut merged = 0;
    for mention in mentions(tags) {
        if let Some(b) = before
            && b.tokens.end == mention.tokens.start
            && b.entity_type == mention.entity_type
        {
            merged += 1;
        }
        before = Some(mention);
    }
    merged
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tag::EntityTypes;
    use proptest::prelude::*;

    /// Generates random mentions with random gaps. Adjacent mentions of the same type are common.
    fn sentence() -> impl Strategy<Value = (usize, Vec<Mention>)> {
        let piece = (0usize..3, 1usize..4, 0usize..2);
        prop::collection::vec(piece, 0..8).prop_map(|pieces| {
            let mut types = EntityTypes::default();
            let names = ["PER", "LOC"].map(|n| types.intern(n));
            let mut at = 0;
            let mut mentions = Vec::new();
            for (gap, length, kind) in pieces {
                let start = at + gap;
                at = start + length;
                mentions.push(Mention { entity_type: names[kind], tokens: start..at });
            }
            (at + 1, mentions)
        })
    }

    fn spell(n: usize, wanted: &[Mention], scheme: Scheme) -> Vec<Tag> {
        let mut tags = vec![Tag::Outside; n];
        write_tags(wanted.iter().cloned(), scheme, &mut tags);
        tags
    }

    proptest! {
        #[test]
        fn mentions_to_tags_to_mentions_is_the_identity_but_in_io((n, wanted) in sentence()) {
            for scheme in Scheme::ALL {
                let tags = spell(n, &wanted, scheme);
                prop_assert_eq!(scheme.violations(&tags).count(), 0, "{}", scheme);
                let read: Vec<_> = mentions(&tags).collect();
                if scheme == Scheme::Io {
                    let iob2 = spell(n, &wanted, Scheme::Iob2);
                    prop_assert_eq!(read.len() + count_merged_by_io(&iob2), wanted.len());
                } else {
                    prop_assert_eq!(&read, &wanted, "{}", scheme);
                }
            }
        }

        #[test]
        fn valid_tags_to_mentions_to_tags_is_the_identity(codes in prop::collection::vec(0usize..9, 0..12)) {
            let tags = from_codes(&codes);
            for scheme in Scheme::ALL {
                if scheme.violations(&tags).next().is_none() {
                    let mut again = tags.clone();
                    prop_assert_eq!(repair(&mut again, scheme), 0, "{}", scheme);
                    prop_assert_eq!(&again, &tags);
                }
            }
        }

        #[test]
        fn repair_makes_any_sequence_valid_and_keeps_its_mentions(codes in prop::collection::vec(0usize..9, 0..12)) {
            let tags = from_codes(&codes);
            for scheme in Scheme::ALL {
                let mut repaired = tags.clone();
                repair(&mut repaired, scheme);
                prop_assert_eq!(scheme.violations(&repaired).count(), 0);
                if scheme != Scheme::Io {
                    prop_assert!(mentions(&repaired).eq(mentions(&tags)));
                }
                prop_assert_eq!(repair(&mut repaired, scheme), 0);
            }
        }
    }

    fn from_codes(codes: &[usize]) -> Vec<Tag> {
        let mut types = EntityTypes::default();
        let all = ["O", "B-X", "I-X", "E-X", "S-X", "B-Y", "I-Y", "E-Y", "S-Y"];
        codes.iter().map(|&c| types.parse(all[c]).unwrap()).collect()
    }

    #[test]
    fn touching_mentions_of_one_type_in_every_scheme() {
        let mut types = EntityTypes::default();
        let loc = types.intern("LOC");
        let two = [0..2, 2..3].map(|tokens| Mention { entity_type: loc, tokens });
        for (scheme, wanted) in [
            (Scheme::Io, "I-LOC I-LOC I-LOC"),
            (Scheme::Iob1, "I-LOC I-LOC B-LOC"),
            (Scheme::Iob2, "B-LOC I-LOC B-LOC"),
            (Scheme::Iobes, "B-LOC E-LOC S-LOC"),
            (Scheme::Bilou, "B-LOC L-LOC U-LOC"),
            (Scheme::Ioe1, "I-LOC E-LOC I-LOC"),
            (Scheme::Ioe2, "I-LOC E-LOC E-LOC"),
        ] {
            let tags = spell(3, &two, scheme);
            let text: Vec<_> = tags.iter().map(|&t| types.spell(t, scheme).to_string()).collect();
            assert_eq!(text.join(" "), wanted, "{scheme}");
        }
    }
}
