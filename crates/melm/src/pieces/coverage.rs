//! How well a tokenizer knows a text: whether the text has a script or a language that the model was not made for.

use std::ops::Add;

use melm_text::count;
use unicode_script::{Script, UnicodeScript};

use super::Tokenizer;
use crate::Error;
use crate::parallel::map_in_order;

/// The number of sentences of a text that are read. They are spread over the text.
const MAX_SENTENCES: usize = 1_000;
/// A text with fewer pieces is not judged.
const MIN_PIECES: usize = 20;
/// If a larger share of the pieces is unknown or a single letter, the model does not know the script or the language. With
/// `mini`, the share is 7 % for the English of `examples/politics`, and at least 97 % for Thai, Greek, Russian and Arabic. A
/// segmenter in Python, written for this, counts the same pieces.
const MAX_SHARE: f64 = 0.4;
/// If a larger share of the pieces is unknown, the model does not know the script, even if its vocabulary has a few frequent
/// letters of it. With `mini`, the share is 0 % for the CoNLL training and dev files of its languages, 0.1 % for
/// `examples/politics`, and 19 % for two sentences of Japanese.
const MAX_UNKNOWN: f64 = 0.1;
/// If the pieces of plain tokens have fewer letters on average, the model does not know the language. Names are left out,
/// because they are rare in every language.
///
/// With `mini`, the average is 3.6 (Dutch) to 4.4 (English) for the CoNLL files of its languages, and 4.5 for
/// `examples/politics`. The lowest of all groups of five consecutive CoNLL sentences with [`MIN_PLAIN`] plain tokens is 2.86.
/// For three sentences of news in languages that `mini` was not trained on, it is 1.2 in Vietnamese, 1.8 to 2.1 in Icelandic,
/// Welsh, Polish, Czech, Albanian and Turkish, 2.2 to 2.5 in Croatian, Hungarian, Lithuanian, Romanian, Basque, Finnish,
/// Estonian, Swahili and Swedish, and 2.7 to 3.5 in Catalan, Danish, Italian, Indonesian, French, Afrikaans and Portuguese.
/// The pieces of the four languages fit the last group too well to tell them apart. Other models were not measured.
const MIN_LETTERS: f64 = 2.6;
/// A text with fewer plain tokens is not judged by the length of its pieces.
const MIN_PLAIN: usize = 50;

/// The numbers of pieces of a text by how much they tell the model. Only tokens with letters are counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PieceCoverage {
    /// The number of all pieces.
    pub n_pieces: usize,
    /// The number of unknown pieces, and of bytes of unknown characters.
    pub n_unknown: usize,
    /// The number of pieces that are a single letter of a longer token. A letter of a script whose letters are words or
    /// syllables is not counted.
    pub n_single: usize,
    /// The number of plain tokens: tokens of two or more lower-case letters in Latin script.
    pub n_plain: usize,
    /// The number of letters of plain tokens.
    pub n_plain_letters: usize,
    /// The number of pieces of plain tokens.
    pub n_plain_pieces: usize,
}

impl PieceCoverage {
    /// Counts the pieces of sentences, on `n_threads` threads. Reads at most 1,000 of them, spread over all.
    ///
    /// # Errors
    /// If the rules of the tokenizer fail on a token.
    pub fn new<S, T>(
        tokenizer: &Tokenizer,
        sentences: &[S],
        n_threads: usize,
    ) -> Result<Self, Error>
    where
        S: AsRef<[T]> + Sync,
        T: AsRef<str>,
    {
        let step = sentences.len().div_ceil(MAX_SENTENCES).max(1);
        let sample: Vec<&S> = sentences.iter().step_by(step).collect();
        let counts = map_in_order(n_threads, &sample, |_, sentence| {
            let mut own = Self::default();
            own.count(tokenizer, sentence.as_ref()).map(|()| own)
        });
        counts.into_iter().try_fold(Self::default(), |all, own| Ok(all + own?))
    }

    fn count<T: AsRef<str>>(&mut self, tokenizer: &Tokenizer, tokens: &[T]) -> Result<(), Error> {
        let encoded = tokenizer.encode(tokens)?;
        for (token, range) in tokens.iter().zip(&encoded.tokens) {
            let token = token.as_ref();
            if !token.chars().any(char::is_alphabetic) {
                continue;
            }
            let is_short = token.chars().nth(1).is_none();
            let n_before = self.n_pieces;
            let pieces = &encoded.pieces[range.start as usize..range.end as usize];
            for piece in pieces {
                let text = tokenizer.text(*piece).filter(|_| *piece != tokenizer.specials().unk);
                // A piece that only begins a word has no text.
                self.n_pieces += usize::from(text.as_ref().is_none_or(|text| !text.is_empty()));
                match text {
                    None => self.n_unknown += 1,
                    Some(text) => self.n_single += usize::from(!is_short && is_letter(&text)),
                }
            }
            if !is_short && token.chars().all(is_plain) {
                self.n_plain += 1;
                self.n_plain_letters += token.chars().count();
                self.n_plain_pieces += self.n_pieces - n_before;
            }
        }
        Ok(())
    }

    /// The share of pieces that are unknown or a single letter, from 0 to 1.
    pub fn unknown_share(&self) -> f64 {
        (self.n_unknown + self.n_single) as f64 / self.n_pieces.max(1) as f64
    }

    /// The average number of letters of the pieces of plain tokens. `None` if there are too few to judge.
    pub fn letters_per_piece(&self) -> Option<f64> {
        (self.n_plain >= MIN_PLAIN)
            .then(|| self.n_plain_letters as f64 / self.n_plain_pieces.max(1) as f64)
    }

    /// Returns a warning if the model does not know the script or the language of a text. `what` and `model` name them, as in
    /// ``the text `a.txt` `` and ``` `mini` ```.
    pub fn warning(&self, what: &str, model: &str) -> Option<String> {
        let reason = self.unknown_pieces().or_else(|| self.short_pieces())?;
        Some(format!(
            "{model} does not seem to know the script or the language of {what}: {reason}; results will be poor; use a \
             model that was made for this language, for example `--model xlm-roberta-base`"
        ))
    }

    /// Says how many pieces are unknown or single letters, if these are too many.
    fn unknown_pieces(&self) -> Option<String> {
        let Self { n_pieces, n_unknown, n_single, .. } = *self;
        let is_unknown = n_unknown as f64 > MAX_UNKNOWN * n_pieces as f64;
        let is_much = is_unknown || self.unknown_share() > MAX_SHARE;
        (n_pieces >= MIN_PIECES && is_much).then(|| {
            format!(
                "{:.0} % of its pieces say little (of {}, {n_unknown} are unknown and {n_single} are single letters)",
                100.0 * self.unknown_share(),
                count(n_pieces, "piece"),
            )
        })
    }

    /// Says how short the pieces of plain tokens are, if they are too short.
    fn short_pieces(&self) -> Option<String> {
        let letters = self.letters_per_piece().filter(|letters| *letters < MIN_LETTERS)?;
        let (tokens, pieces) =
            (count(self.n_plain, "lower-case token"), count(self.n_plain_pieces, "piece"));
        Some(format!(
            "its {tokens} become {pieces} of {letters:.1} letters on average; with `mini`, at least {MIN_LETTERS} are usual in a \
             language that it knows"
        ))
    }
}

impl Add for PieceCoverage {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            n_pieces: self.n_pieces + other.n_pieces,
            n_unknown: self.n_unknown + other.n_unknown,
            n_single: self.n_single + other.n_single,
            n_plain: self.n_plain + other.n_plain,
            n_plain_letters: self.n_plain_letters + other.n_plain_letters,
            n_plain_pieces: self.n_plain_pieces + other.n_plain_pieces,
        }
    }
}

/// Returns true for a lower-case letter in Latin script.
fn is_plain(c: char) -> bool {
    c.is_lowercase() && c.script() == Script::Latin
}

/// Returns true if the text is one letter of an alphabet, or one sign of a script that writes vowels as signs.
fn is_letter(text: &str) -> bool {
    let mut chars = text.chars();
    match (chars.next(), chars.next()) {
        (Some(c), None) => !c.is_numeric() && !c.is_ascii_punctuation() && !is_syllable(c),
        _ => false,
    }
}

/// Returns true for scripts in which one character is often a word or a syllable.
fn is_syllable(c: char) -> bool {
    matches!(
        c.script(),
        Script::Han
            | Script::Hiragana
            | Script::Katakana
            | Script::Hangul
            | Script::Bopomofo
            | Script::Yi
    )
}
