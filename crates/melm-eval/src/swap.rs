//! Gold with new entities, or in new contexts (Figure 1).

use std::collections::BTreeMap;

use melm::draft::Donor;
use melm::methods::substitute_mentions;
use melm::random::StreamKey;
use melm_text::{Corpus, EntityType, Mention};

use crate::Error;
use crate::data::concatenate;

/// The part of the added sentences that comes from extra gold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Added {
    /// Sentences of gold with entities of extra gold.
    Entities,
    /// Sentences of extra gold with entities of gold.
    Contexts,
}

/// Returns gold followed by new sentences, as many as gold has. In the new sentences, each mention is replaced by a
/// random mention of the same type.
///
/// A mention stays as it is if the other set has no mention of its type. Sentences without mentions also
/// stay as they are.
pub(crate) fn add_swapped(
    gold: &Corpus,
    extra: &Corpus,
    added: Added,
    key: StreamKey,
) -> Result<Corpus, Error> {
    let both = concatenate(&[gold.clone(), extra.clone()])?;
    let n_gold = gold.sentences().len();
    let all = 0..both.sentences().len();
    let (sources, donors) = match added {
        Added::Entities => (0..n_gold, n_gold..all.end),
        Added::Contexts => (n_gold..all.end, 0..n_gold),
    };
    let mut mentions: BTreeMap<EntityType, Vec<(usize, Mention)>> = BTreeMap::new();
    for at in donors {
        for mention in both.sentences()[at].mentions() {
            mentions.entry(mention.entity_type).or_default().push((at, mention));
        }
    }
    let draft = |source: usize| {
        let mut generator = key.at(source as u64).generator();
        let donors = both.sentences()[source].mentions().map(|own| {
            let of_type = mentions.get(&own.entity_type)?;
            let (sentence, mention) = &of_type[generator.below(of_type.len())];
            Some(Donor { sentence: *sentence, tokens: mention.tokens.clone() })
        });
        let donors: Vec<_> = donors.collect();
        substitute_mentions(&both, source, 1, &donors).sentence
    };
    let sentences = both.sentences()[..n_gold].iter().cloned().chain(sources.map(draft)).collect();
    Ok(Corpus::new(both.types().clone(), both.scheme(), sentences).expect("tags stay valid"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use melm::random::Seed;
    use melm_text::{ReadOptions, Source};

    #[test]
    fn mentions_are_replaced_by_mentions_of_the_other_half() {
        let read =
            |text: &str| Corpus::read(&Source::from_text("a", text), &ReadOptions::default());
        let gold = read("in O\nBonn B-LOC\n\nhi O\nAda B-PER\n\n").unwrap();
        let extra = read("near O\nNew B-LOC\nYork I-LOC\n\n").unwrap();
        let words = |added: Added| -> Vec<String> {
            let made = add_swapped(&gold, &extra, added, Seed(1).stream("test")).unwrap();
            let text = |s: &melm_text::Sentence| {
                s.tokens().iter().map(ToString::to_string).collect::<Vec<_>>().join(" ")
            };
            made.sentences().iter().map(text).collect()
        };
        // The extra sentences have no person, so Ada stays.
        let expected = ["in Bonn", "hi Ada", "in New York", "hi Ada"];
        assert_eq!(words(Added::Entities), expected);
        assert_eq!(words(Added::Contexts), ["in Bonn", "hi Ada", "near Bonn"]);
    }
}
