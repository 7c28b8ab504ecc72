//! What the tagging of a file found.

use std::collections::BTreeMap;

use melm_text::{EntityTypes, Tag, count, mentions, shown};

use super::Truncation;

/// The number of entity types that a summary lists.
const MAX_TYPES: usize = 30;

/// The numbers of sentences, tokens and mentions of a tagged file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TagSummary {
    /// The number of mentions of each entity type.
    pub mentions: BTreeMap<String, usize>,
    /// The numbers of sentences and tokens, and of those that were too long for the model.
    pub truncation: Truncation,
}

impl TagSummary {
    /// Adds the mentions of a sentence.
    pub(super) fn add(&mut self, tags: &[Tag], types: &EntityTypes) {
        for mention in mentions(tags) {
            let name = types.display_name(mention.entity_type);
            match self.mentions.get_mut(name) {
                Some(n) => *n += 1,
                None => {
                    self.mentions.insert(name.to_owned(), 1);
                }
            }
        }
    }

    /// Returns a line about the tagged file, without its time: `3 sentences, 12 tokens, 4 mentions (LOC 1, PER 3)`.
    pub fn line(&self) -> String {
        let n_mentions = self.mentions.values().sum();
        let listed = self.mentions.iter().take(MAX_TYPES);
        let mut types: Vec<_> = listed.map(|(name, n)| format!("{} {n}", shown(name))).collect();
        if let Some(n @ 1..) = self.mentions.len().checked_sub(MAX_TYPES) {
            types.push(format!("{} more", count(n, "type")));
        }
        let types =
            if types.is_empty() { String::new() } else { format!(" ({})", types.join(", ")) };
        format!(
            "{}, {}, {}{types}",
            count(self.truncation.n_sentences, "sentence"),
            count(self.truncation.n_tokens, "token"),
            count(n_mentions, "mention"),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mentions_are_counted_by_type() {
        let mut types = EntityTypes::default();
        let mut summary = TagSummary::default();
        assert_eq!(summary.line(), "0 sentences, 0 tokens, 0 mentions");
        for names in [&["B-PER", "I-PER", "O", "B-LOC"][..], &["B-PER"]] {
            let tags: Vec<_> = names.iter().map(|name| types.parse(name).unwrap()).collect();
            summary.add(&tags, &types);
            summary.truncation.n_sentences += 1;
            summary.truncation.n_tokens += tags.len();
        }
        assert_eq!(summary.line(), "2 sentences, 5 tokens, 3 mentions (LOC 1, PER 2)");
    }
}
