//! The labelled sentences of a grid, and the draws that cells learn from.

use std::collections::{BTreeMap, HashSet};

use melm::files::Fingerprint;
use melm::names::{NameList, Names};
use melm::random::Seed;
use melm::sample::draw;
use melm_text::{Corpus, EntityTypes, KnownSentences, Sentence, Tag, Token};

use crate::Error;

/// A corpus and its fingerprint.
pub struct Dataset {
    corpus: Corpus,
    fingerprint: String,
}

impl Dataset {
    /// Takes a corpus and computes its fingerprint: the SHA-256 of its scheme, tokens and tags.
    pub fn new(corpus: Corpus) -> Self {
        let mut fingerprint = Fingerprint::default();
        fingerprint.add(corpus.scheme().to_string().as_bytes());
        for sentence in corpus.sentences() {
            fingerprint.add(&(sentence.tokens().len() as u64).to_le_bytes());
            for (token, tag) in sentence.tokens().iter().zip(sentence.tags()) {
                fingerprint.add(AsRef::<str>::as_ref(token).as_bytes());
                fingerprint.add(corpus.types().spell(*tag, corpus.scheme()).to_string().as_bytes());
            }
        }
        Self { corpus, fingerprint: fingerprint.finish() }
    }

    /// The sentences.
    pub fn corpus(&self) -> &Corpus {
        &self.corpus
    }

    /// The fingerprint, in hexadecimal. Corpora with the same scheme, tokens and tags have the same fingerprint.
    pub fn fingerprint(&self) -> &str {
        &self.fingerprint
    }
}

/// The data of one language.
pub struct LanguageData {
    /// The sentences that training sets are drawn from.
    pub train: Dataset,
    /// The sentences on which the best epoch is chosen, drawn like the training set. Without a dev set, the last epoch
    /// is used.
    pub dev: Option<Dataset>,
    /// Unlabelled sentences; their tags are ignored. Without them, the text of a cell is drawn from the training set.
    pub text: Option<Dataset>,
    /// The sentences that taggers are scored on. Without a test set, no tagger is scored on this language.
    pub test: Option<Dataset>,
    /// Lists of names.
    pub names: Vec<NameList>,
}

/// The data of all languages, by name.
pub type Languages = BTreeMap<String, LanguageData>;

/// Joins the training sets of all languages into one corpus. Each sentence of this corpus stores its language.
pub fn joined_training_sets(languages: &Languages) -> Corpus {
    let corpora = languages.iter().map(|(code, one)| (code.as_str(), one.train.corpus()));
    Corpus::from_languages(corpora)
}

/// The gold sentences that a cell learns from.
pub(crate) struct Draw {
    pub(crate) train: Corpus,
    pub(crate) dev: Option<Corpus>,
    /// As many further sentences as `train` has. None of them is in `train`.
    pub(crate) extra: Corpus,
}

impl Draw {
    /// Draws `size` sentences of each language from the training set, and as many from the dev set (section 3.1 of the
    /// paper). `number` is the seed of the draw.
    ///
    /// If there are several languages, each sentence stores its language. Fails if the languages have different
    /// schemes.
    pub(crate) fn new<'d>(
        languages: impl Iterator<Item = (&'d str, &'d LanguageData)>,
        size: usize,
        number: u64,
    ) -> Result<Self, Error> {
        let cut = |corpus: &Corpus| {
            let positions = draw(corpus.sentences().len(), size, Seed(number));
            subset(corpus, &positions)
        };
        let (mut train, mut dev, mut extra) = (Vec::new(), Vec::new(), Vec::new());
        let mut codes = Vec::new();
        for (code, language) in languages {
            codes.push(code);
            train.push(cut(language.train.corpus()));
            extra.push(extra_sentences(language.train.corpus(), size, number));
            dev.extend(language.dev.as_ref().map(|dev| cut(dev.corpus())));
        }
        let join = |parts: &[Corpus]| match codes.len() {
            1 => concatenate(parts),
            _ => Ok(Corpus::from_languages(codes.iter().copied().zip(parts))),
        };
        let dev = (!dev.is_empty()).then(|| join(&dev)).transpose()?;
        Ok(Self { train: join(&train)?, dev, extra: join(&extra)? })
    }
}

/// Returns the names of all lists whose entity type `train` has; `None` if there are none.
pub(crate) fn find_names<'d>(
    lists: impl Iterator<Item = &'d NameList>,
    train: &Corpus,
) -> Result<Option<Names>, Error> {
    let is_known = |list: &&NameList| train.types().find(list.entity_type()).is_some();
    let lists: Vec<NameList> = lists.filter(is_known).cloned().collect();
    Ok((!lists.is_empty()).then(|| Names::new(&lists, train)).transpose()?)
}

/// The unlabelled text of a language, drawn for a cell.
pub(crate) struct DrawnText {
    /// The sentences. Their tags are those of the file.
    pub(crate) corpus: Corpus,
    /// The number of sentences that could not be drawn, because they are known or repeat another.
    pub(crate) n_left_out: usize,
}

/// Draws at most `n_text` sentences of a language's text, or of its training set if it has no text. Leaves out `known`
/// sentences, among them those that the cell learns from, and sentences that repeat another. `number` is the seed.
pub(crate) fn draw_text(
    language: &LanguageData,
    known: &KnownSentences,
    n_text: usize,
    number: u64,
) -> DrawnText {
    let source = language.text.as_ref().unwrap_or(&language.train).corpus();
    let mut seen: HashSet<&[Token]> = HashSet::new();
    let is_new = |tokens: &[Token]| known.role(tokens).is_none();
    let all = source.sentences().iter().enumerate();
    let new = all.filter(|(_, one)| is_new(one.tokens()) && seen.insert(one.tokens()));
    let new: Vec<usize> = new.map(|(at, _)| at).collect();
    let drawn = draw(new.len(), n_text.min(new.len()), Seed(number));
    let positions: Vec<usize> = drawn.into_iter().map(|at| new[at]).collect();
    let n_left_out = source.sentences().len() - new.len();
    DrawnText { corpus: subset(source, &positions), n_left_out }
}

/// Draws twice as many sentences, and returns those that the draw of `size` sentences does not contain. A draw contains
/// all smaller draws with the same number.
fn extra_sentences(corpus: &Corpus, size: usize, number: u64) -> Corpus {
    let n = corpus.sentences().len();
    let own = draw(n, size, Seed(number));
    let mut more = draw(n, 2 * size, Seed(number));
    more.retain(|position| own.binary_search(position).is_err());
    subset(corpus, &more)
}

/// Returns the sentences at these positions as a corpus, as if they had been read from a file of their own: the corpus
/// has only the entity types that occur, in the order in which they first occur.
pub(crate) fn subset(corpus: &Corpus, positions: &[usize]) -> Corpus {
    let sentences = positions.iter().map(|at| &corpus.sentences()[*at]);
    let mut types = EntityTypes::default();
    let sentences = sentences.map(|sentence| retype(sentence, corpus.types(), &mut types));
    let sentences = sentences.collect();
    Corpus::new(types, corpus.scheme(), sentences).expect("sentences of one scheme")
}

/// Concatenates corpora. Fails if they have different schemes.
///
/// # Panics
/// If `corpora` is empty.
pub(crate) fn concatenate(corpora: &[Corpus]) -> Result<Corpus, Error> {
    let mut types = EntityTypes::default();
    let scheme = corpora.first().expect("at least one corpus").scheme();
    if let Some(other) = corpora.iter().map(Corpus::scheme).find(|other| *other != scheme) {
        return Err(Error::Schemes { one: scheme, other });
    }
    let all = corpora.iter().flat_map(|c| c.sentences().iter().map(move |s| (s, c.types())));
    let all = all.map(|(sentence, from)| retype(sentence, from, &mut types)).collect();
    Ok(Corpus::new(types, scheme, all).expect("sentences of one scheme"))
}

/// Copies a sentence for use with another table of entity types. Adds types that `types` does not have.
fn retype(sentence: &Sentence, from: &EntityTypes, types: &mut EntityTypes) -> Sentence {
    let retyped = |tag: &Tag| match *tag {
        Tag::Outside => Tag::Outside,
        Tag::In(part, entity_type) => Tag::In(part, types.intern(from.name(entity_type))),
    };
    let tags = sentence.tags().iter().map(retyped).collect();
    Sentence::new(sentence.tokens().to_vec(), tags).expect("as many tags as before")
}
