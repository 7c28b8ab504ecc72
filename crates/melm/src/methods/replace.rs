//! Replaces mentions of a sentence by other mentions, which may have another length.

use std::borrow::Cow;
use std::ops::Range;

use melm_text::{Corpus, Language, Mention, Sentence, Splice, Token};

use crate::draft::{Donor, Draft, Replacement};
use crate::names::{NameOrigin, to_sentence};

/// A mention that replaces another.
pub(crate) enum NewMention {
    /// A mention of the gold corpus.
    Gold(Donor),
    /// A name that is not taken from gold.
    Name {
        /// The tokens.
        tokens: Vec<Token>,
        /// Where the name comes from.
        origin: NameOrigin,
    },
}

/// Makes the draft of sentence `source` in which mentions are replaced by their donors. `donors` has one entry for each
/// mention of the sentence; `None` keeps the mention.
pub fn substitute_mentions(
    corpus: &Corpus,
    source: usize,
    round: u32,
    donors: &[Option<Donor>],
) -> Draft {
    let gold = donors.iter().map(|donor| donor.clone().map(NewMention::Gold));
    replace_mentions(corpus, source, round, &gold.collect::<Vec<_>>())
}

impl NewMention {
    /// Returns the sentence that has the tokens of the mention, and their range in it. `language` is that of the sentence
    /// that they are put into.
    fn tokens<'c>(
        &self,
        corpus: &'c Corpus,
        language: Option<Language>,
    ) -> (Cow<'c, Sentence>, Range<usize>) {
        match self {
            Self::Gold(Donor { sentence, tokens }) => {
                (Cow::Borrowed(&corpus.sentences()[*sentence]), tokens.clone())
            }
            Self::Name { tokens, .. } => {
                let name = to_sentence(tokens);
                let name = match language {
                    Some(language) => name.with_language(language),
                    None => name,
                };
                (Cow::Owned(name), 0..tokens.len())
            }
        }
    }
}

/// Makes the draft of sentence `source` in which mentions are replaced. `new` has one entry for each mention of the
/// sentence; `None` keeps the mention.
pub(crate) fn replace_mentions(
    corpus: &Corpus,
    source: usize,
    round: u32,
    new: &[Option<NewMention>],
) -> Draft {
    let sentence = &corpus.sentences()[source];
    let new: Vec<_> = new
        .iter()
        .map(|new| new.as_ref().map(|new| (new, new.tokens(corpus, sentence.language()))))
        .collect();
    let (mut start, mut before) = (0, 0);
    let (mut mentions, mut replaced, mut replacements) = (Vec::new(), Vec::new(), Vec::new());
    for ((number, own), new) in sentence.mentions().enumerate().zip(&new) {
        start += own.tokens.start - before;
        before = own.tokens.end;
        let given = new.as_ref().map_or(own.tokens.len(), |(_, (_, tokens))| tokens.len());
        let tokens = start..start + given;
        start = tokens.end;
        if let Some((new, (donor, from))) = new {
            let splice = Splice { replaced: own.tokens.clone(), donor, tokens: from.clone() };
            replaced.push(splice);
            let (donor_mention, origin) = match new {
                NewMention::Gold(donor) => (Some(donor.clone()), None),
                NewMention::Name { origin, .. } => (None, Some(*origin)),
            };
            replacements.push(Replacement {
                mention: number,
                tokens: tokens.clone(),
                entity_type: own.entity_type,
                old: sentence.tokens()[own.tokens.clone()].to_vec(),
                new: donor.tokens()[from.clone()].to_vec(),
                pieces: Vec::new(),
                donor: donor_mention,
                name: origin,
                similarity: None,
                score: None,
            });
        }
        mentions.push(Mention { entity_type: own.entity_type, tokens });
    }
    let draft = sentence.splice(replaced, mentions, corpus.scheme());
    Draft::new(draft, source, round, replacements)
}

#[cfg(test)]
mod tests {
    use super::*;
    use melm_text::{ReadOptions, Source};

    #[test]
    fn names_get_the_columns_of_the_mention_they_replace() {
        let text = "Ada NE B-PER\nsaw V O\nNew NE B-LOC\nYork NE I-LOC\n\n";
        let corpus = Corpus::read(&Source::from_text("a", text), &ReadOptions::default()).unwrap();
        let token = |text: &str| Token::new(text).unwrap();
        let name = NewMention::Name {
            tokens: vec![token("Kap"), token("der"), token("Hoffnung")],
            origin: NameOrigin::Names,
        };
        let draft = replace_mentions(&corpus, 0, 1, &[None, Some(name)]);
        let all = Corpus::new(corpus.types().clone(), corpus.scheme(), vec![draft.sentence]);
        let mut out = Vec::new();
        all.unwrap().write_conll(&mut out).unwrap();
        let expected = "Ada NE B-PER\nsaw V O\nKap NE B-LOC\nder NE I-LOC\nHoffnung NE I-LOC\n\n";
        assert_eq!(String::from_utf8(out).unwrap(), expected);
    }
}
