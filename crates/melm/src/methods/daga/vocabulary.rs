//! Linearizes sentences with one tag before each entity token, and parses them back.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use melm_text::{Corpus, Language, Scheme, Sentence, Tag, Token};

use super::UnknownTokens;
use crate::methods::free_generation::{RejectReason, checked_sentence};

/// The ids of the start of a sentence, its end, and an unknown token.
pub(super) const START: u32 = 0;
pub(super) const END: u32 = 1;
pub(super) const UNKNOWN: u32 = 2;
/// The text of an unknown token, as in the authors' code.
const UNKNOWN_TEXT: &str = "<unk>";

/// The words of linearized sentences: tokens, tags and languages. A tag and a token with the same text are different
/// words.
pub(super) struct Vocabulary {
    words: Vec<Word>,
    tokens: HashMap<Token, u32>,
    tags: BTreeMap<Tag, u32>,
    /// The language codes, if the corpus has several languages. Their ids follow those of the special words.
    languages: Vec<Box<str>>,
    scheme: Scheme,
    unknown: UnknownTokens,
}

enum Word {
    Start,
    End,
    Unknown,
    Language(Language),
    Tag(Tag),
    Token(Token),
}

impl Vocabulary {
    /// Collects the tags of a corpus and its tokens that occur at least `min_count` times.
    pub(super) fn from_corpus(corpus: &Corpus, min_count: usize, unknown: UnknownTokens) -> Self {
        let mut counts = BTreeMap::<&Token, usize>::new();
        let mut tags = BTreeSet::new();
        for sentence in corpus.sentences() {
            tags.extend(sentence.tags().iter().filter(|tag| **tag != Tag::Outside));
            for token in sentence.tokens() {
                *counts.entry(token).or_default() += 1;
            }
        }
        let known = counts.into_iter().filter(|(_, n)| *n >= min_count);
        let mut words = vec![Word::Start, Word::End, Word::Unknown];
        let languages: Vec<_> = corpus.languages().iter().map(|part| part.code.clone()).collect();
        words.extend((0..languages.len()).map(|index| Word::Language(Language::from_index(index))));
        words.extend(tags.into_iter().copied().map(Word::Tag));
        words.extend(known.map(|(token, _)| Word::Token(token.clone())));
        let (mut tokens, mut tags) = (HashMap::new(), BTreeMap::new());
        for (id, word) in (0..).zip(&words) {
            match word {
                Word::Tag(tag) => drop(tags.insert(*tag, id)),
                Word::Token(token) => drop(tokens.insert(token.clone(), id)),
                Word::Start | Word::End | Word::Unknown | Word::Language(_) => {}
            }
        }
        Self { words, tokens, tags, languages, scheme: corpus.scheme(), unknown }
    }

    pub(super) fn len(&self) -> usize {
        self.words.len()
    }

    /// Linearizes a sentence to: start, language (if the corpus has several), tokens, end. A tag precedes each entity
    /// token.
    ///
    /// Tags that are not in the vocabulary, which can occur in a dev set, are left out.
    pub(super) fn linearize(&self, corpus: &Corpus, sentence: &Sentence) -> Vec<u32> {
        let mut ids = vec![START];
        let code = sentence.language().map(|own| &corpus.languages()[own.index()].code);
        let language = code.and_then(|code| self.languages.iter().position(|own| own == code));
        let word = language.and_then(|index| u32::try_from(index).ok());
        ids.extend(word.map(|index| UNKNOWN + 1 + index));
        for (token, tag) in sentence.tokens().iter().zip(sentence.tags()) {
            ids.extend(self.tags.get(tag));
            ids.push(self.tokens.get(token).copied().unwrap_or(UNKNOWN));
        }
        ids.push(END);
        ids
    }

    /// Parses the words that were written between the start and the end of a sentence.
    pub(super) fn parse(&self, ids: &[u32]) -> Result<Sentence, RejectReason> {
        let (language, ids) = self.split_language(ids)?;
        let (mut tokens, mut tags, mut n_unknown) = (Vec::new(), Vec::new(), 0);
        let mut next_tag = Tag::Outside;
        for id in ids {
            let token = match &self.words[*id as usize] {
                Word::Tag(_) if next_tag != Tag::Outside => {
                    return Err(RejectReason::TagWithoutToken);
                }
                Word::Tag(tag) => {
                    next_tag = *tag;
                    continue;
                }
                Word::Token(token) => token.clone(),
                Word::Unknown => {
                    n_unknown += 1;
                    Token::new(UNKNOWN_TEXT).expect("`<unk>` is a valid token")
                }
                Word::Start | Word::End | Word::Language(_) => return Err(RejectReason::NotAToken),
            };
            tokens.push(token);
            tags.push(std::mem::replace(&mut next_tag, Tag::Outside));
        }
        if next_tag != Tag::Outside {
            return Err(RejectReason::TagWithoutToken);
        }
        let max_unknown = match self.unknown {
            UnknownTokens::Kept => tokens.len().saturating_sub(1),
            UnknownTokens::Dropped => 0,
        };
        if n_unknown > max_unknown {
            return Err(RejectReason::UnknownToken);
        }
        let sentence = checked_sentence(tokens, tags, self.scheme)?;
        Ok(match language {
            Some(language) => sentence.with_language(language),
            None => sentence,
        })
    }

    /// Splits the language off the start of a written sentence. Returns `None` as the language if the corpus has no
    /// languages.
    fn split_language<'i>(
        &self,
        ids: &'i [u32],
    ) -> Result<(Option<Language>, &'i [u32]), RejectReason> {
        match ids.split_first().map(|(id, rest)| (&self.words[*id as usize], rest)) {
            Some((Word::Language(language), rest)) => Ok((Some(*language), rest)),
            _ if !self.languages.is_empty() => Err(RejectReason::NoLanguage),
            _ => Ok((None, ids)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use melm_text::{ReadOptions, Source};

    /// One token is spelled like a tag, and one token occurs only once.
    const TEXT: &str = "Ada B-PER\nof O\nNew B-LOC\nYork I-LOC\n\nB-LOC B-PER\nof O\nAda B-PER\n\n\
        New B-LOC\nYork I-LOC\n\nB-LOC O\nso O\n";

    fn corpus() -> Corpus {
        Corpus::read(&Source::from_text("a", TEXT), &ReadOptions::default()).unwrap()
    }

    #[test]
    fn linearized_sentences_have_one_tag_per_entity_token_and_parse_back() {
        let corpus = corpus();
        let vocabulary = Vocabulary::from_corpus(&corpus, 1, UnknownTokens::Dropped);
        for sentence in &corpus.sentences()[..3] {
            let ids = vocabulary.linearize(&corpus, sentence);
            let n_entity = sentence.tags().iter().filter(|tag| **tag != Tag::Outside).count();
            assert_eq!(ids.len(), sentence.tokens().len() + n_entity + 2);
            let again = vocabulary.parse(&ids[1..ids.len() - 1]).unwrap();
            assert_eq!((again.tokens(), again.tags()), (sentence.tokens(), sentence.tags()));
        }
        let last = vocabulary.linearize(&corpus, &corpus.sentences()[3]);
        assert_eq!(vocabulary.parse(&last[1..last.len() - 1]), Err(RejectReason::NoMention));
    }

    #[test]
    fn sentences_of_several_languages_begin_with_their_language() {
        let corpus = corpus();
        let both = Corpus::from_languages([("en", &corpus), ("de", &corpus)]);
        let vocabulary = Vocabulary::from_corpus(&both, 1, UnknownTokens::Dropped);
        let n = corpus.sentences().len();
        let german = &both.sentences()[n];
        let ids = vocabulary.linearize(&both, german);
        assert_ne!(ids, vocabulary.linearize(&both, &both.sentences()[0]));
        let again = vocabulary.parse(&ids[1..ids.len() - 1]).unwrap();
        assert_eq!((again.tokens(), again.language()), (german.tokens(), german.language()));
        assert_eq!(vocabulary.parse(&ids[2..ids.len() - 1]), Err(RejectReason::NoLanguage));
    }

    #[test]
    fn invalid_sentences_are_rejected_with_a_reason() {
        let corpus = corpus();
        let vocabulary = Vocabulary::from_corpus(&corpus, 2, UnknownTokens::Kept);
        let id = |text: &str| vocabulary.tokens[&Token::new(text).unwrap()];
        let tag = |text: &str| vocabulary.tags[&corpus.types().clone().parse(text).unwrap()];
        let (person, place, inside) = (tag("B-PER"), tag("B-LOC"), tag("I-LOC"));
        for (ids, reason) in [
            (vec![], RejectReason::Empty),
            (vec![person, place, id("York")], RejectReason::TagWithoutToken),
            (vec![id("of"), person], RejectReason::TagWithoutToken),
            (vec![inside, id("York")], RejectReason::BrokenTags),
            (vec![person, id("Ada"), inside, id("York")], RejectReason::BrokenTags),
            (vec![id("of"), id("Ada")], RejectReason::NoMention),
            (vec![person, UNKNOWN, UNKNOWN], RejectReason::UnknownToken),
            (vec![person, START], RejectReason::NotAToken),
        ] {
            assert_eq!(vocabulary.parse(&ids), Err(reason), "{ids:?}");
        }
        assert!(!vocabulary.tokens.contains_key(&Token::new("so").unwrap()));
        let mixed = vocabulary.parse(&[person, id("Ada"), UNKNOWN]).unwrap();
        assert_eq!(mixed.tokens()[1].as_str(), "<unk>");
        let strict = Vocabulary::from_corpus(&corpus, 2, UnknownTokens::Dropped);
        assert_eq!(strict.parse(&[person, id("Ada"), UNKNOWN]), Err(RejectReason::UnknownToken));
    }
}
