//! Labels from elsewhere in a run: sentences that somebody else labelled.

use std::collections::BTreeSet;
use std::ops::Range;

use melm_text::{
    Corpus, KnownSentences, LeftOut, Mention, SentenceRole, UnlabelledSentence, UnlabelledText,
};
use serde_json::{Value, json};

use crate::Error;
use crate::self_training::{GivenTags, LabelledText, TextSummary};

/// Sentences that somebody else labelled: a large language model, another tagger, or rules. The panel decides which of
/// them are kept (section `silver` of the plan).
#[derive(Clone, Debug)]
pub struct Silver {
    name: String,
    corpus: Corpus,
    drops_other_types: bool,
}

impl Silver {
    /// Names a source of labels. `drafts.jsonl` says `silver:NAME` for its sentences.
    pub fn new(name: &str, corpus: Corpus) -> Self {
        Self { name: name.to_owned(), corpus, drops_other_types: false }
    }

    /// Drops and counts mentions of entity types that the training set does not have. Without it, such types are an error.
    #[must_use]
    pub fn dropping_other_types(mut self) -> Self {
        self.drops_other_types = true;
        self
    }
}

/// Why silver sentences cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SilverError {
    /// The training set or the source has languages.
    #[error(
        "the silver source `{name}` cannot be used with languages; augment each language by itself, without `LANG=`"
    )]
    Languages {
        /// The name of the source.
        name: String,
    },
    /// A mention has a type that the training set does not have.
    #[error(
        "the silver source `{name}` has the entity type `{entity_type}`, but TRAIN has only {known}; rename the type, or pass `--silver-drop-types` to drop such mentions"
    )]
    OtherType {
        /// The name of the source.
        name: String,
        /// The type.
        entity_type: String,
        /// The types of the training set.
        known: String,
    },
}

/// What became of the sentences of one silver source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SilverOutcome {
    /// The name of the source.
    pub name: String,
    /// The numbers of sentences that were left out before the panel voted.
    pub left_out: LeftOut,
    /// The number of mentions that were dropped because the training set does not have their type.
    pub n_dropped: usize,
    /// The counts of the last pass.
    pub summary: TextSummary,
}

impl SilverOutcome {
    /// The entry of the source in `run.json`.
    pub(super) fn record(&self) -> Value {
        json!({
            "name": self.name,
            "sentences": self.summary.sentences + self.left_out.total(),
            "left_out": self.left_out,
            "dropped_mentions": self.n_dropped,
            "counts": self.summary,
        })
    }
}

/// A silver source without the sentences that were left out.
pub(crate) struct PreparedSilver {
    name: String,
    /// The indices of its sentences in the text.
    sentences: Range<usize>,
    left_out: LeftOut,
    n_dropped: usize,
}

/// The sentences of all silver sources, ready to be labelled.
#[derive(Default)]
pub(crate) struct SilverTexts {
    pub(super) sources: Vec<PreparedSilver>,
    /// The sentences, in the order of the sources.
    pub(super) sentences: Vec<UnlabelledSentence>,
    /// The given tags of each sentence.
    pub(super) given: Vec<GivenTags>,
    /// The numbers of sentences that were left out of all sources.
    pub(super) left_out: LeftOut,
}

impl SilverTexts {
    /// Prepares silver sources. Leaves out the sentences of `known` and those of an earlier source.
    ///
    /// Fails if the training set or a source has languages, or if a source has a type that the training set does not have
    /// and does not drop it.
    pub(super) fn new(
        sources: &[Silver],
        train: &Corpus,
        known: &KnownSentences,
    ) -> Result<Self, Error> {
        let mut all = Self::default();
        let mut known = known.clone();
        for source in sources {
            if !train.languages().is_empty() || !source.corpus.languages().is_empty() {
                return Err(SilverError::Languages { name: source.name.clone() }.into());
            }
            let text = UnlabelledText::from_corpus(&source.corpus);
            let (kept, left_out) = text.find_new(&known);
            let start = all.sentences.len();
            let mut n_dropped = 0;
            for at in kept {
                let (mentions, n) = source.given_mentions(at, train)?;
                n_dropped += n;
                all.given.push(GivenTags { source: source.name.clone(), mentions });
                all.sentences.push(text.sentences()[at].clone());
            }
            let sentences = start..all.sentences.len();
            let own = UnlabelledText::new(all.sentences[sentences.clone()].to_vec());
            known = known.with_text(SentenceRole::Text, &own);
            all.left_out = all.left_out.plus(left_out);
            let name = source.name.clone();
            all.sources.push(PreparedSilver { name, sentences, left_out, n_dropped });
        }
        Ok(all)
    }

    /// Counts what became of the sentences of each source.
    pub(super) fn outcomes(&self, labelled: &LabelledText, train: &Corpus) -> Vec<SilverOutcome> {
        let outcome = |source: &PreparedSilver| SilverOutcome {
            name: source.name.clone(),
            left_out: source.left_out,
            n_dropped: source.n_dropped,
            summary: labelled.summary(source.sentences.clone(), train.types()),
        };
        self.sources.iter().map(outcome).collect()
    }
}

impl Silver {
    /// Checks that the labels can be used with a training set. Returns the number of mentions that will be dropped because
    /// the training set does not have their type.
    ///
    /// # Errors
    /// As [`SilverError`] says.
    pub fn check(&self, train: &Corpus) -> Result<usize, Error> {
        let texts =
            SilverTexts::new(std::slice::from_ref(self), train, &KnownSentences::default())?;
        Ok(texts.sources.iter().map(|source| source.n_dropped).sum())
    }

    /// Returns the mentions of a sentence with the types of `train`, and the number of mentions of other types.
    fn given_mentions(
        &self,
        at: usize,
        train: &Corpus,
    ) -> Result<(Vec<Mention>, usize), SilverError> {
        let types = self.corpus.types();
        let (mut mentions, mut n_dropped) = (Vec::new(), 0);
        for mention in self.corpus.sentences()[at].mentions() {
            let name = types.name(mention.entity_type);
            match train.types().find(name) {
                Some(entity_type) => mentions.push(Mention { entity_type, ..mention }),
                None if self.drops_other_types => n_dropped += 1,
                None => {
                    let known: BTreeSet<&str> =
                        train.types().iter().map(|known| train.types().name(known)).collect();
                    return Err(SilverError::OtherType {
                        name: self.name.clone(),
                        entity_type: name.to_owned(),
                        known: known.into_iter().collect::<Vec<_>>().join(", "),
                    });
                }
            }
        }
        Ok((mentions, n_dropped))
    }
}
