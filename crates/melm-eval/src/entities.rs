//! Unique valid entities (Figure 4): how many different mentions a training set has that an oracle agrees with.

use std::collections::BTreeSet;

use melm_nn::device::Device;
use melm_text::{Corpus, mentions};
use serde::Serialize;

use crate::Error;
use melm::tagger::Tagger;

/// Different mentions of a training set, by their words and type.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Entities {
    /// All of them.
    pub unique: usize,
    /// Those that the oracle finds too, somewhere: their labels hold.
    pub valid: usize,
    /// Those of them that gold does not have.
    pub valid_new: usize,
}

impl Entities {
    /// Counts the mentions of a training set that was made from `gold`.
    pub fn count(
        train: &Corpus,
        gold: &Corpus,
        oracle: &Tagger,
        device: &Device,
    ) -> Result<Self, Error> {
        let texts: Vec<Vec<&str>> = train
            .sentences()
            .iter()
            .map(|sentence| sentence.tokens().iter().map(AsRef::as_ref).collect())
            .collect();
        let mut valid = BTreeSet::new();
        oracle.tag_each(device, &texts, &mut |at, tagged| {
            let found: Vec<_> = mentions(&tagged.tags)
                .map(|m| (m.tokens, oracle.tags().types().name(m.entity_type)))
                .collect();
            let own = train.sentences()[at].mentions();
            let own = own.map(|m| (m.tokens, train.types().name(m.entity_type)));
            for (tokens, name) in own.filter(|mention| found.contains(mention)) {
                valid.insert((name, texts[at][tokens].to_vec()));
            }
        })?;
        let (all, gold) = (unique(train), unique(gold));
        let is_new = |(name, words): &&(&str, Vec<&str>)| !gold.contains(&(*name, words.clone()));
        Ok(Self {
            unique: all.len(),
            valid: valid.len(),
            valid_new: valid.iter().filter(is_new).count(),
        })
    }
}

fn unique(corpus: &Corpus) -> BTreeSet<(&str, Vec<&str>)> {
    let of = |sentence: &'_ melm_text::Sentence| -> Vec<(usize, std::ops::Range<usize>)> {
        sentence.mentions().map(|m| (m.entity_type.index(), m.tokens)).collect()
    };
    let names: Vec<_> = corpus.types().iter().map(|t| corpus.types().name(t)).collect();
    let mut all = BTreeSet::new();
    for sentence in corpus.sentences() {
        for (entity_type, tokens) in of(sentence) {
            let words = sentence.tokens()[tokens].iter().map(AsRef::as_ref).collect();
            all.insert((names[entity_type], words));
        }
    }
    all
}
