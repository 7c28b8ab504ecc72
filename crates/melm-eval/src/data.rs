//! The labelled sentences of a grid, and the draws of them.

use std::collections::BTreeMap;

use melm_text::{Corpus, EntityTypes, Sentence, Tag};

use crate::Error;
use melm::random::Seed;
use melm::sample::draw;

/// A file that was read, and what stands for its content.
pub struct Split {
    /// Its sentences.
    pub corpus: Corpus,
    /// The fingerprint of everything that decides what was read.
    pub fingerprint: String,
}

/// The data of one language. Without a test set nothing can be scored on it.
pub struct Language {
    /// What is drawn from.
    pub train: Split,
    /// What chooses the best epoch, cut as the training set is; without it the last is kept.
    pub dev: Option<Split>,
    /// What is scored at the end.
    pub test: Option<Split>,
}

/// All languages by their names.
pub type Languages = BTreeMap<String, Language>;

/// The gold of a cell.
pub(crate) struct Drawn {
    pub(crate) train: Corpus,
    pub(crate) dev: Option<Corpus>,
    /// As much gold again that is not in `train`.
    pub(crate) extra: Corpus,
}

impl Drawn {
    /// Draw `number` of `size` sentences of each language, train and dev alike (section 4.1). Of several, sentences know
    /// theirs.
    pub(crate) fn new<'d>(
        languages: impl Iterator<Item = (&'d str, &'d Language)>,
        (size, number): (usize, u64),
    ) -> Result<Self, Error> {
        let cut = |corpus: &Corpus| {
            let drawn = draw(corpus.sentences().len(), size, Seed(number));
            subset(corpus, &drawn)
        };
        let (mut train, mut dev, mut extra) = (Vec::new(), Vec::new(), Vec::new());
        let mut codes = Vec::new();
        for (code, language) in languages {
            codes.push(code);
            train.push(cut(&language.train.corpus));
            extra.push(beyond(&language.train.corpus, (size, number)));
            dev.extend(language.dev.as_ref().map(|dev| cut(&dev.corpus)));
        }
        let join = |parts: &[Corpus]| match codes.len() {
            1 => gathered(parts),
            _ => Ok(Corpus::from_languages(codes.iter().copied().zip(parts))),
        };
        let dev = (!dev.is_empty()).then(|| join(&dev)).transpose()?;
        Ok(Self { train: join(&train)?, dev, extra: join(&extra)? })
    }
}

/// The sentences that a draw of twice the size has more: draws are nested.
fn beyond(corpus: &Corpus, (size, number): (usize, u64)) -> Corpus {
    let n = corpus.sentences().len();
    let own = draw(n, size, Seed(number));
    let mut more = draw(n, 2 * size, Seed(number));
    more.retain(|position| own.binary_search(position).is_err());
    subset(corpus, &more)
}

/// The corpus that a file of these sentences would be read as: it has only the entity types that occur, in the order in
/// which they do.
pub fn subset(corpus: &Corpus, positions: &[usize]) -> Corpus {
    let sentences = positions.iter().map(|at| &corpus.sentences()[*at]);
    let mut types = EntityTypes::default();
    let sentences = sentences.map(|sentence| retyped(sentence, corpus.types(), &mut types));
    let sentences = sentences.collect();
    Corpus::new(types, corpus.scheme(), sentences).expect("sentences of one scheme")
}

/// Corpora one after the other. They have to be in one scheme.
///
/// # Panics
/// If there is none.
pub fn gathered(corpora: &[Corpus]) -> Result<Corpus, Error> {
    let mut types = EntityTypes::default();
    let scheme = corpora.first().expect("there is something to gather").scheme();
    let all = corpora.iter().flat_map(|c| c.sentences().iter().map(move |s| (s, c.types())));
    let all = all.map(|(sentence, from)| retyped(sentence, from, &mut types)).collect();
    if let Some(other) = corpora.iter().map(Corpus::scheme).find(|other| *other != scheme) {
        return Err(Error::Schemes { one: scheme, other });
    }
    Ok(Corpus::new(types, scheme, all).expect("sentences of one scheme"))
}

fn retyped(sentence: &Sentence, from: &EntityTypes, types: &mut EntityTypes) -> Sentence {
    let retype = |tag: &Tag| match *tag {
        Tag::Outside => Tag::Outside,
        Tag::In(part, entity_type) => Tag::In(part, types.intern(from.name(entity_type))),
    };
    let tags = sentence.tags().iter().map(retype).collect();
    Sentence::new(sentence.tokens().to_vec(), tags).expect("as many tags as before")
}
