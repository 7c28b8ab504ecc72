//! Small closed lists of the tokenizer: clitics, abbreviations and marks.

use super::unit::{Class, Unit};

/// The letters of clitics after an apostrophe: English `Ada's`, `they're`; Dutch `'t`, `'n`; English `'em`.
const CLITICS: [&str; 9] = ["s", "re", "ve", "ll", "d", "m", "t", "n", "em"];

/// Abbreviations that end in a period, without the period, in lower case. They are frequent in the languages of the
/// CoNLL shared tasks, and their period does not end a sentence. [`super::TokenizerRules`] add those of a corpus.
pub(super) const ABBREVIATIONS: [&str; 55] = [
    "adm", "bd", "bros", "bzw", "ca", "calif", "capt", "cf", "co", "corp", "dept", "dr", "dra",
    "etc", "fig", "gen", "gov", "hr", "inc", "ing", "jr", "lt", "ltd", "maj", "mr", "mrs", "ms",
    "mt", "nr", "pp", "pres", "prof", "pvt", "rep", "rev", "sen", "sgt", "sr", "sra", "st", "str",
    "tel", "usw", "vgl", "vol", "vs", "jan", "feb", "aug", "sept", "oct", "okt", "nov", "dec",
    "dez",
];

pub(super) fn is_apostrophe(c: char) -> bool {
    matches!(c, '\'' | '’')
}

pub(super) fn is_currency(c: char) -> bool {
    matches!(c, '$' | '£' | '¥' | '€' | '₹' | '₽' | '₩')
}

/// Returns true for marks that are one token when they are repeated, such as `...` and `--`.
pub(super) fn is_repeatable(c: char) -> bool {
    matches!(c, '.' | '-' | '=' | '*' | '!' | '?' | '~' | '+' | '#' | '\'' | '`' | '–' | '—' | '…')
}

/// Returns the number of units of the clitic that starts after an apostrophe: known letters, or two or four digits
/// (`'98`, `'2000`). The clitic must end there.
pub(super) fn clitic_len(rest: &[Unit]) -> Option<usize> {
    let n = rest.iter().take(5).take_while(|unit| unit.is_word()).count();
    let clitic = &rest[..n];
    let is_year = matches!(n, 2 | 4) && clitic.iter().all(|unit| unit.class == Class::Digit);
    let letters = || clitic.iter().map(|unit| unit.first.to_ascii_lowercase());
    let is_known = || CLITICS.iter().any(|known| letters().eq(known.chars()));
    (n > 0 && (is_year || is_known())).then_some(n)
}

/// Returns true if `word`, without its last period, is an abbreviation: a known one, or letters with inner periods, at
/// most three between two periods (`U.S`, `Ph.D`).
pub(super) fn is_abbreviation(word: &str) -> bool {
    let is_short = |part: &str| {
        let n = part.chars().count();
        (1..=3).contains(&n) && part.chars().all(char::is_alphabetic)
    };
    if word.contains('.') {
        return word.split('.').all(is_short);
    }
    let small = word.to_lowercase();
    ABBREVIATIONS.contains(&small.as_str())
}
