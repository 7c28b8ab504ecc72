//! The tags that a tagger chooses from.

use melm_nn::crf::AllowedTransitions;
use melm_nn::tagger::MAX_TAGS;
use melm_text::{Corpus, EntityTypes, Scheme, Tag, TagPrefix};

/// A numbered set of tags: the tags of a scheme for some entity types. In a set made from a corpus, `O` comes first,
/// followed by the tags of each type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TagSet {
    types: EntityTypes,
    scheme: Scheme,
    tags: Vec<Tag>,
}

impl TagSet {
    /// Returns all tags of the corpus's scheme for the corpus's entity types. Types are sorted by name.
    pub(super) fn from_corpus(corpus: &Corpus) -> Self {
        let (types, scheme) = (corpus.types().clone(), corpus.scheme());
        let parts = [TagPrefix::Begin, TagPrefix::Inside, TagPrefix::End, TagPrefix::Single];
        let parts: Vec<_> = parts.into_iter().filter(|part| scheme.uses(*part)).collect();
        let mut tags = vec![Tag::Outside];
        for entity_type in types.sorted_by_name() {
            tags.extend(parts.iter().map(|part| Tag::In(*part, entity_type)));
        }
        Self { types, scheme, tags }
    }

    /// Parses the names of tags and numbers the tags in this order. Guesses the scheme if `scheme` is `None`.
    ///
    /// Fails with a description of the problem if a name is not a tag of the scheme or occurs twice.
    pub(super) fn from_names(names: &[String], scheme: Option<Scheme>) -> Result<Self, String> {
        if names.len() > MAX_TAGS {
            return Err(format!("there are {} tags, the limit is {MAX_TAGS}", names.len()));
        }
        let mut types = EntityTypes::default();
        let mut tags = Vec::new();
        for name in names {
            let tag = types.parse(name).map_err(|fault| fault.to_string())?;
            if tags.contains(&tag) {
                return Err(format!("tag `{name}` occurs twice"));
            }
            tags.push(tag);
        }
        let scheme = scheme.unwrap_or_else(|| guess_scheme(&tags, &types));
        match tags.iter().find(|tag| matches!(tag, Tag::In(part, _) if !scheme.uses(*part))) {
            Some(tag) => Err(format!("`{}` is not a tag of {scheme}", types.spell(*tag, scheme))),
            None => Ok(Self { types, scheme, tags }),
        }
    }

    /// The number of tags.
    pub(crate) fn len(&self) -> usize {
        self.tags.len()
    }

    /// The entity types of the tags.
    pub fn types(&self) -> &EntityTypes {
        &self.types
    }

    /// The scheme of the tags.
    pub fn scheme(&self) -> Scheme {
        self.scheme
    }

    /// Returns the tag with this number.
    ///
    /// # Panics
    /// If there is no tag with this number.
    pub(crate) fn tag(&self, number: u32) -> Tag {
        self.tags[number as usize]
    }

    /// Returns the number of a tag, or `None` if the set does not contain the tag. The tag's type must be one of
    /// [`Self::types`].
    pub fn number(&self, tag: Tag) -> Option<u32> {
        let at = self.tags.iter().position(|other| *other == tag)?;
        u32::try_from(at).ok()
    }

    /// The tags as text, in the order of their numbers.
    pub fn names(&self) -> Vec<String> {
        self.tags.iter().map(|tag| self.types.spell(*tag, self.scheme).to_string()).collect()
    }

    /// The transitions between tags that the scheme allows.
    pub(crate) fn allowed(&self) -> AllowedTransitions {
        let tag = |at: Option<usize>| at.map_or(Tag::Outside, |at| self.tags[at]);
        AllowedTransitions::new(self.tags.len(), |from, to| self.scheme.allows(tag(from), tag(to)))
    }
}

/// Guesses the scheme from the tags' prefixes, for a model trained elsewhere that does not name its scheme.
fn guess_scheme(tags: &[Tag], types: &EntityTypes) -> Scheme {
    let has = |wanted| tags.iter().any(|tag| matches!(tag, Tag::In(part, _) if *part == wanted));
    match (has(TagPrefix::Begin), has(TagPrefix::End), has(TagPrefix::Single)) {
        (_, _, true) | (true, true, false) => types.input_spelling(),
        (false, true, false) => Scheme::Ioe2,
        (false, false, false) => Scheme::Io,
        (true, false, false) => Scheme::Iob2,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use melm_text::{ReadOptions, Source};

    #[test]
    fn the_set_has_every_tag_of_the_scheme_even_if_the_corpus_lacks_it() {
        let source = Source::from_text("a", "Bonn B-LOC\nis O\nAda B-PER\n");
        let corpus = Corpus::read(&source, &ReadOptions::default()).unwrap();
        let set = TagSet::from_corpus(&corpus);
        assert_eq!(set.names(), ["O", "B-LOC", "I-LOC", "B-PER", "I-PER"]);
        let tag = corpus.sentences()[0].tags()[2];
        assert_eq!(set.number(tag).map(|n| set.tag(n)), Some(tag));
        let allowed = set.allowed();
        assert!(allowed.follows(3, 4) && !allowed.follows(1, 4) && !allowed.starts(2));
    }

    #[test]
    fn tag_names_of_a_model_are_parsed_and_the_scheme_is_guessed() {
        let names = |texts: &[&str]| texts.iter().map(ToString::to_string).collect::<Vec<_>>();
        for (texts, scheme) in [
            (&["O", "B-PER", "I-PER"][..], Scheme::Iob2),
            (&["I-PER", "O"], Scheme::Io),
            (&["O", "B-X", "I-X", "E-X", "S-X"], Scheme::Iobes),
            (&["O", "B-X", "I-X", "L-X", "U-X"], Scheme::Bilou),
        ] {
            let set = TagSet::from_names(&names(texts), None).unwrap();
            assert_eq!((set.scheme(), set.names()), (scheme, names(texts)));
        }
        assert!(TagSet::from_names(&names(&["O", "LABEL_1"]), None).is_err());
        assert!(TagSet::from_names(&names(&["O", "O"]), None).is_err());
        assert!(TagSet::from_names(&names(&["O", "S-X"]), Some(Scheme::Iob2)).is_err());
    }
}
