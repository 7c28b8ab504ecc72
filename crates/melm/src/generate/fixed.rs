//! The tokens of mentions that the model does not rewrite.

use std::collections::HashMap;

use melm_text::{Corpus, Mention, Sentence, count_of};

use super::GenerateSettings;
use crate::linearize::LinearizedCorpus;

/// The number of entity tokens and mentions that are not rewritten.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct FixedCounts {
    /// The number of function words, numbers and punctuation marks.
    pub n_tokens: usize,
    /// The number of mentions that are longer than `generate.longest_mention`.
    pub n_long_mentions: usize,
    /// The number of all entity tokens that the model can read.
    pub n_all_tokens: usize,
    /// The number of all mentions that the model can read.
    pub n_all_mentions: usize,
}

impl FixedCounts {
    /// Returns a line for each count that is not zero.
    pub fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        if self.n_tokens > 0 {
            let n = count_of(self.n_tokens, self.n_all_tokens, "entity token");
            notes.push(format!("{n} function words or numbers: not rewritten"));
        }
        if self.n_long_mentions > 0 {
            let n = count_of(self.n_long_mentions, self.n_all_mentions, "mention");
            notes.push(format!("{n} over `generate.longest_mention`: not rewritten"));
        }
        notes
    }
}

/// Removes the entity tokens that the settings do not allow to be rewritten from the windows, and windows without other
/// entity tokens. `corpus` is the linearized corpus. Returns the number of removed tokens and mentions, and of all.
pub(crate) fn fix_tokens(
    linearized: &mut LinearizedCorpus,
    corpus: &Corpus,
    settings: &GenerateSettings,
) -> FixedCounts {
    let mut counts = FixedCounts::default();
    let words = settings.keep_function_words.then(|| TokenCounts::new(corpus));
    for window in &mut linearized.windows {
        let sentence = &corpus.sentences()[window.sentence];
        let mentions: Vec<_> = sentence.mentions().collect();
        let (mut last, mut last_long) = (None, None);
        counts.n_all_tokens += window.entities.len();
        window.entities.retain(|entity| {
            let mention = &mentions[entity.mention];
            counts.n_all_mentions +=
                usize::from(last.replace(entity.mention) != Some(entity.mention));
            if settings.is_too_long(mention.tokens.len()) {
                counts.n_long_mentions += usize::from(last_long != Some(entity.mention));
                last_long = Some(entity.mention);
                return false;
            }
            let is_fixed =
                words.as_ref().is_some_and(|words| words.fixes(sentence, mention, entity.token));
            counts.n_tokens += usize::from(is_fixed);
            !is_fixed
        });
    }
    linearized.windows.retain(|window| !window.entities.is_empty());
    counts
}

/// How often each token occurs inside and outside mentions.
struct TokenCounts<'a> {
    by_token: HashMap<&'a str, Counts>,
}

#[derive(Clone, Copy, Default)]
struct Counts {
    inside: usize,
    outside: usize,
}

impl<'a> TokenCounts<'a> {
    fn new(corpus: &'a Corpus) -> Self {
        let mut by_token: HashMap<&str, Counts> = HashMap::new();
        for sentence in corpus.sentences() {
            let mut is_inside = vec![false; sentence.tokens().len()];
            for mention in sentence.mentions() {
                is_inside[mention.tokens].fill(true);
            }
            for (token, is_inside) in sentence.tokens().iter().zip(is_inside) {
                let counts = by_token.entry(token.as_str()).or_default();
                counts.inside += usize::from(is_inside);
                counts.outside += usize::from(!is_inside);
            }
        }
        Self { by_token }
    }

    /// Returns true if a token of a mention is a function word, a number or a punctuation mark. The only token of a
    /// mention never is.
    ///
    /// No list of words is needed, so the rule holds for every language. A function word is a lower-case token in a
    /// mention that has an upper-case letter (`of`, `van`, `election`), or a token that gold has at least as often
    /// outside mentions as inside (`El` in `El País`).
    fn fixes(&self, sentence: &Sentence, mention: &Mention, token: usize) -> bool {
        if mention.tokens.len() == 1 {
            return false;
        }
        let text = |at: usize| sentence.tokens()[at].as_str();
        let own = text(token);
        let has_upper = |text: &str| text.contains(char::is_uppercase);
        let is_lower = own.contains(char::is_lowercase) && !has_upper(own);
        let is_in_name = || mention.tokens.clone().any(|at| has_upper(text(at)));
        let counts = self.by_token.get(own).copied().unwrap_or_default();
        !own.contains(char::is_alphabetic)
            || (is_lower && is_in_name())
            || counts.outside >= counts.inside
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use melm_text::{ReadOptions, Source};

    /// Returns the tokens of the corpus that are fixed.
    fn fixed(text: &str) -> Vec<String> {
        let rows: String = text
            .split(' ')
            .map(|token| token.rsplit_once('/').unwrap())
            .map(|(word, tag)| format!("{word} {tag}\n"))
            .collect();
        let corpus =
            Corpus::read(&Source::from_text("a", &*rows), &ReadOptions::default()).unwrap();
        let words = TokenCounts::new(&corpus);
        let sentence = &corpus.sentences()[0];
        let mut found = Vec::new();
        for mention in sentence.mentions() {
            let fixed = mention.tokens.clone().filter(|at| words.fixes(sentence, &mention, *at));
            found.extend(fixed.map(|at| sentence.tokens()[at].to_string()));
        }
        found
    }

    #[test]
    fn notes_state_how_many_of_how_many() {
        let counts =
            FixedCounts { n_tokens: 3, n_long_mentions: 1, n_all_tokens: 20, n_all_mentions: 9 };
        assert_eq!(
            counts.notes(),
            [
                "3 of 20 entity tokens function words or numbers: not rewritten",
                "1 of 9 mentions over `generate.longest_mention`: not rewritten"
            ]
        );
        assert!(FixedCounts { n_all_tokens: 20, ..FixedCounts::default() }.notes().is_empty());
    }

    #[test]
    fn function_words_are_found_in_four_languages() {
        for (text, expected) in [
            ("1997/B-X Irish/I-X general/I-X election/I-X", &["1997", "general", "election"][..]),
            ("Guardia/B-X Civil/I-X de/I-X Tráfico/I-X", &["de"]),
            ("El/O ,/O El/B-X País/I-X", &["El"]),
            ("Universiteit/B-X van/I-X de/I-X Vrede/I-X", &["van", "de"]),
            ("Bund/B-X für/I-X Umwelt/I-X &/I-X Natur/I-X", &["für", "&"]),
            // Text without case: only tokens that are common outside mentions.
            ("of/O port/B-X of/I-X spain/I-X", &["of"]),
            ("北京/B-X 大学/I-X", &[]),
            // A mention of one token is rewritten, whatever the token is.
            ("The/O The/B-X 1997/B-X", &[]),
        ] {
            assert_eq!(fixed(text), expected, "{text}");
        }
    }
}
