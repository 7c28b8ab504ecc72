//! The rules of the tokenizer: its choices, and the tokens that it keeps whole.

use std::fmt;

use rustc_hash::{FxHashMap, FxHashSet};

use super::affix::ABBREVIATIONS;
use super::choice::{ChoiceEvidence, TokenizerChoice as Choice};
use super::evidence::{Evidence, ScriptEvidence};
use super::script::UnspacedScript;
use super::unit::{Class, units};
use super::{Tokenizer, tokenize_units};
use crate::corpus::Corpus;
use crate::sentence::Sentence;

/// The choices of a tokenizer, with the evidence for each, and the tokens that it keeps whole.
///
/// The default rules are those of a corpus that says nothing. `Display` shows all choices on one line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TokenizerRules {
    joins: [bool; Choice::ALL.len()],
    evidence: [ChoiceEvidence; Choice::ALL.len()],
    exceptions: FxHashSet<Box<str>>,
    longest_exception: usize,
    /// Known abbreviations that the corpus writes more often without their period.
    plain_words: FxHashSet<&'static str>,
    /// The scripts without spaces that are split into single characters.
    by_character: [bool; UnspacedScript::ALL.len()],
}

/// A token must occur at least this often to be kept whole against the choices.
const MIN_EXCEPTION: usize = 2;
/// Longer tokens are never exceptions. The limit bounds the time that a text takes.
const MAX_EXCEPTION: usize = 30;
/// Characters are tokens if a script has at least this many tokens in the corpus...
const MIN_CHARACTERS: usize = 10;
/// ...and at most one in this number is longer.
const MAX_LONGER: usize = 20;

impl Default for TokenizerRules {
    fn default() -> Self {
        Self::from_evidence(&Evidence::default())
    }
}

impl TokenizerRules {
    /// Takes the choices from the tokens of `corpus`.
    ///
    /// ```
    /// use melm_text::{Corpus, ReadOptions, Source, Tokenizer, TokenizerChoice, TokenizerRules};
    /// let source = Source::from_text("a", "Ada B-PER\n's O\nwell-known O\n1/2 O\n");
    /// let corpus = Corpus::read(&source, &ReadOptions::default())?;
    /// let rules = TokenizerRules::from_corpus(&corpus);
    /// assert!(rules.joins(TokenizerChoice::Hyphen) && !rules.joins(TokenizerChoice::Clitic));
    /// let tokenizer = Tokenizer::new(rules);
    /// let tokens = tokenizer.tokenize("Bob's far-off cat.").unwrap();
    /// assert_eq!(tokens.tokens().collect::<Vec<_>>(), ["Bob", "'s", "far-off", "cat", "."]);
    /// # Ok::<(), melm_text::Error>(())
    /// ```
    pub fn from_corpus(corpus: &Corpus) -> Self {
        Self::from_sentences(corpus.sentences().iter())
    }

    /// Takes the choices from the tokens of one language of `corpus`. If the corpus has no sentences in this language,
    /// takes them from all sentences.
    pub fn for_language(corpus: &Corpus, code: &str) -> Self {
        let part = corpus.languages().iter().find(|part| &*part.code == code);
        match part.filter(|part| !part.sentences.is_empty()) {
            Some(part) => Self::from_sentences(corpus.sentences()[part.sentences.clone()].iter()),
            None => Self::from_corpus(corpus),
        }
    }

    fn from_sentences<'s>(sentences: impl Iterator<Item = &'s Sentence>) -> Self {
        let tokens = |sentence: &'s Sentence| {
            sentence.tokens().iter().map(AsRef::<str>::as_ref).collect::<Vec<_>>()
        };
        let sentences: Vec<Vec<&str>> = sentences.map(tokens).collect();
        let mut evidence = Evidence::default();
        for sentence in &sentences {
            evidence.add(sentence.iter().copied());
        }
        let mut rules = Self::from_evidence(&evidence);
        let mut counts: FxHashMap<&str, usize> = FxHashMap::default();
        for &token in sentences.iter().flatten() {
            *counts.entry(token).or_default() += 1;
        }
        rules.plain_words = find_plain_words(&counts);
        rules.exceptions = find_exceptions(&rules, &counts, &sentences);
        let lengths = rules.exceptions.iter().map(|exception| units(exception).len());
        rules.longest_exception = lengths.max().unwrap_or(0);
        rules
    }

    fn from_evidence(evidence: &Evidence) -> Self {
        let mut joins = [false; Choice::ALL.len()];
        for (choice, joins) in Choice::ALL.into_iter().zip(&mut joins) {
            *joins = choice.decide(evidence.choices[choice as usize]);
        }
        let by_character = evidence.scripts.map(|ScriptEvidence { n_single, n_longer }| {
            n_single >= MIN_CHARACTERS && n_longer * MAX_LONGER <= n_single + n_longer
        });
        Self {
            joins,
            evidence: evidence.choices,
            exceptions: FxHashSet::default(),
            longest_exception: 0,
            plain_words: FxHashSet::default(),
            by_character,
        }
    }

    /// Returns the rules with one choice set.
    #[must_use]
    pub fn with_choice(mut self, choice: Choice, joins: bool) -> Self {
        self.joins[choice as usize] = joins;
        self
    }

    /// Returns the rules with each character of every script without spaces as a token. No text is then refused.
    #[must_use]
    pub fn with_single_characters(mut self) -> Self {
        self.by_character = [true; UnspacedScript::ALL.len()];
        self
    }

    /// Returns true if the text of a choice is one token.
    pub fn joins(&self, choice: Choice) -> bool {
        self.joins[choice as usize]
    }

    /// Returns what the corpus says about a choice.
    pub fn evidence(&self, choice: Choice) -> ChoiceEvidence {
        self.evidence[choice as usize]
    }

    /// Returns true if each character of `script` is a token, as in the corpus. Otherwise text in this script is
    /// refused.
    pub fn splits_characters(&self, script: UnspacedScript) -> bool {
        self.by_character[script as usize]
    }

    /// The number of tokens of the corpus that are kept whole against the choices.
    pub fn n_exceptions(&self) -> usize {
        self.exceptions.len()
    }

    pub(super) fn is_exception(&self, text: &str) -> bool {
        self.exceptions.contains(text)
    }

    /// Returns true if the corpus does not use this known abbreviation with a period.
    pub(super) fn is_plain_word(&self, word: &str) -> bool {
        !self.plain_words.is_empty() && self.plain_words.contains(word.to_lowercase().as_str())
    }

    /// The number of grapheme clusters of the longest exception.
    pub(super) fn longest_exception(&self) -> usize {
        self.longest_exception
    }
}

/// Returns the known abbreviations that occur in the corpus more often without their period than with it, such as `co`
/// in a corpus that splits all periods off.
fn find_plain_words(counts: &FxHashMap<&str, usize>) -> FxHashSet<&'static str> {
    let mut balance: FxHashMap<&str, (usize, usize)> =
        ABBREVIATIONS.into_iter().map(|word| (word, (0, 0))).collect();
    for (token, n) in counts {
        let small = token.to_lowercase();
        let word = small.strip_suffix('.').unwrap_or(&small);
        if let Some((n_with, n_without)) = balance.get_mut(word) {
            *if word.len() < small.len() { n_with } else { n_without } += n;
        }
    }
    let is_plain = |word: &&str| balance[word].1 > balance[word].0;
    ABBREVIATIONS.into_iter().filter(is_plain).collect()
}

/// Returns the tokens that `rules` split, but that occur in the corpus at least twice and more often whole than split.
fn find_exceptions(
    rules: &TokenizerRules,
    counts: &FxHashMap<&str, usize>,
    sentences: &[Vec<&str>],
) -> FxHashSet<Box<str>> {
    // The candidates by the first token that the rules give.
    let mut by_first: FxHashMap<&str, Vec<Candidate<'_>>> = FxHashMap::default();
    for (&whole, &n_whole) in counts.iter().filter(|&(_, &n)| n >= MIN_EXCEPTION) {
        let units = units(whole);
        if units.len() > MAX_EXCEPTION
            || units.iter().any(|unit| matches!(unit.class, Class::Gap | Class::Unspaced(_)))
        {
            continue;
        }
        let spans = tokenize_units(rules, whole, &units);
        let parts: Vec<_> = spans.into_iter().map(|span| &whole[span]).collect();
        if let [first, _, ..] = parts.as_slice() {
            by_first.entry(first).or_default().push(Candidate {
                whole,
                n_whole,
                parts,
                n_split: 0,
            });
        }
    }
    for sentence in sentences {
        for (at, first) in sentence.iter().enumerate() {
            for candidate in by_first.get_mut(first).into_iter().flatten() {
                candidate.n_split += usize::from(sentence[at..].starts_with(&candidate.parts));
            }
        }
    }
    let candidates = by_first.into_values().flatten();
    let kept = candidates.filter(|candidate| candidate.n_whole > candidate.n_split);
    kept.map(|candidate| candidate.whole.into()).collect()
}

/// A token that the rules split.
struct Candidate<'t> {
    whole: &'t str,
    n_whole: usize,
    /// The tokens that the rules give.
    parts: Vec<&'t str>,
    /// The number of times that the corpus contains these tokens in a row.
    n_split: usize,
}

impl fmt::Display for TokenizerRules {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let examples = |joins: bool| {
            let chosen = Choice::ALL.into_iter().filter(move |&choice| self.joins(choice) == joins);
            chosen.map(|choice| format!("`{}`", choice.example())).collect::<Vec<_>>().join(" ")
        };
        write!(f, "keeps {}; splits {}", examples(true), examples(false))?;
        if !self.exceptions.is_empty() {
            write!(f, "; keeps {} tokens of the corpus whole", self.exceptions.len())?;
        }
        let scripts = UnspacedScript::ALL.into_iter().filter(|&one| self.splits_characters(one));
        let scripts: Vec<_> = scripts.map(|script| script.to_string()).collect();
        if !scripts.is_empty() {
            write!(f, "; every character of {} is a token", scripts.join(", "))?;
        }
        Ok(())
    }
}

impl From<TokenizerRules> for Tokenizer {
    fn from(rules: TokenizerRules) -> Self {
        Self::new(rules)
    }
}
