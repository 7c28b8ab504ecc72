//! Splits a chunk, which is a part of a text without white space, into tokens.

use std::ops::Range;

use super::affix::{clitic_len, is_abbreviation, is_apostrophe, is_currency, is_repeatable};
use super::choice::TokenizerChoice as Choice;
use super::rules::TokenizerRules;
use super::unit::{Class, Unit};
use crate::token::DOCUMENT_START;

/// A chunk and the rules that split it.
pub(super) struct Chunk<'a> {
    pub(super) text: &'a str,
    pub(super) units: &'a [Unit],
    pub(super) rules: &'a TokenizerRules,
    /// True if no other chunk follows in the text.
    pub(super) is_last: bool,
}

impl Chunk<'_> {
    /// Adds the byte ranges of the tokens to `spans`.
    pub(super) fn split(&self, spans: &mut Vec<Range<usize>>) {
        let mut at = 0;
        while at < self.units.len() {
            if self.units[at].class == Class::Invisible {
                at += 1;
                continue;
            }
            let end = self.token_end(at);
            spans.push(self.units[at].start..self.units[end - 1].end);
            at = end;
        }
    }

    /// Returns the unit after the token that starts at unit `at`.
    fn token_end(&self, at: usize) -> usize {
        if let Some(end) = self.address_end(at).or_else(|| self.exception_end(at)) {
            return end;
        }
        match self.units[at].class {
            Class::Letter | Class::Digit => self.word_end(at),
            Class::Unspaced(script) if self.rules.splits_characters(script) => at + 1,
            Class::Unspaced(_) => {
                let is_other = |unit: &Unit| !matches!(unit.class, Class::Unspaced(_));
                let rest = &self.units[at..];
                at + rest.iter().position(is_other).unwrap_or(rest.len())
            }
            Class::Symbol | Class::Gap | Class::Invisible => self.symbol_end(at),
        }
    }

    fn symbol_end(&self, at: usize) -> usize {
        let first = self.units[at].first;
        let after_word = at > 0 && self.units[at - 1].is_word();
        let next = self.units.get(at + 1);
        let is_next = |class: Class| next.is_some_and(|next| next.class == class);
        let is_prefix = match first {
            '.' => !after_word && is_next(Class::Digit) && self.joins(Choice::NumberPeriod),
            '@' | '#' => !after_word && is_next(Class::Letter) && self.joins(Choice::Handle),
            '-' => !after_word && self.is_word(at + 1) && self.joins(Choice::LeadingHyphen),
            _ => is_currency(first) && is_next(Class::Digit) && self.joins(Choice::Currency),
        };
        if is_prefix {
            let end = self.word_end(at + 1);
            if self.slice(at, end) != DOCUMENT_START {
                return end;
            }
        }
        if is_apostrophe(first)
            && let Some(n) = clitic_len(&self.units[at + 1..])
        {
            return at + 1 + n;
        }
        if is_repeatable(first) && self.joins(Choice::Repeat) {
            let rest = &self.units[at..];
            return at + rest.iter().position(|unit| unit.first != first).unwrap_or(rest.len());
        }
        at + 1
    }

    /// Returns the unit after the word that starts at unit `at`, with the marks that belong to it.
    fn word_end(&self, at: usize) -> usize {
        let mut end = at;
        loop {
            while self.is_word(end) {
                end += 1;
            }
            let Some(unit) = self.units.get(end) else { return end };
            let is_inner = self.is_word(end + 1);
            match unit.class {
                Class::Invisible if is_inner => end += 1,
                Class::Symbol if is_inner => match self.connect(at, end) {
                    Connection::Joined => end += 1,
                    Connection::SplitAt(split) => return split,
                },
                _ => return self.with_suffix(at, end),
            }
        }
    }

    /// Decides about the connector at unit `connector`, which has a word on both sides. The word before it starts at
    /// unit `at`.
    fn connect(&self, at: usize, connector: usize) -> Connection {
        let (left, right) = (&self.units[connector - 1], &self.units[connector + 1]);
        let mark = self.units[connector].first;
        if is_apostrophe(mark) {
            return self.connect_apostrophe(at, connector);
        }
        // A period between a small and a capital letter ends a sentence whose space is missing.
        let is_end = mark == '.'
            && connector >= at + 2
            && left.first.is_lowercase()
            && self.units[connector - 2].first.is_lowercase()
            && right.first.is_uppercase();
        match Choice::between(left, mark, right) {
            Some(choice) if !is_end && self.joins(choice) => Connection::Joined,
            _ => Connection::SplitAt(self.with_suffix(at, connector)),
        }
    }

    fn connect_apostrophe(&self, at: usize, apostrophe: usize) -> Connection {
        let rest = &self.units[apostrophe + 1..];
        if is_negation(&self.units[at..], apostrophe - at) {
            let is_alone = apostrophe - 1 == at;
            return Connection::join_if(is_alone || self.joins(Choice::Negation), apostrophe - 1);
        }
        if clitic_len(rest).is_some() && self.units[apostrophe - 1].class == Class::Letter {
            return Connection::join_if(self.joins(Choice::Clitic), apostrophe);
        }
        if is_elision(&self.units[at..], apostrophe - at) && !self.joins(Choice::Elision) {
            return Connection::SplitAt(apostrophe + 1);
        }
        Connection::join_if(self.joins(Choice::Apostrophe), apostrophe)
    }

    /// Returns the unit after the word `at..end` and a period, percent sign or hyphen that belongs to it.
    fn with_suffix(&self, at: usize, end: usize) -> usize {
        let Some(mark) = self.units.get(end) else { return end };
        let repeats = self.units.get(end + 1).is_some_and(|next| next.first == mark.first);
        let last = &self.units[end - 1];
        let choice = match mark.first {
            '.' if !repeats => period_choice(self.slice(at, end), &self.units[at..end]),
            '%' | '‰' if last.class == Class::Digit => Some(Choice::Percent),
            '-' if !repeats && last.class == Class::Letter && !self.is_word(end + 1) => {
                Some(Choice::FinalHyphen)
            }
            _ => None,
        };
        // The last period of a text ends the sentence, even after a number.
        let is_final = self.is_last && end + 1 == self.units.len();
        match choice {
            Some(Choice::Abbreviation) if self.rules.is_plain_word(self.slice(at, end)) => end,
            Some(Choice::Ordinal) if is_final || end + 1 < self.units.len() => end,
            Some(choice) if self.joins(choice) && self.slice(at, end + 1) != DOCUMENT_START => {
                end + 1
            }
            _ => end,
        }
    }

    /// Returns the end of a web or mail address that starts at unit `at`.
    fn address_end(&self, at: usize) -> Option<usize> {
        if !self.is_word(at) || at > 0 && self.is_word(at - 1) {
            return None;
        }
        let rest = self.slice(at, self.units.len());
        let has_prefix = |prefix: &str| {
            rest.get(..prefix.len()).is_some_and(|start| start.eq_ignore_ascii_case(prefix))
        };
        if ["http://", "https://", "ftp://", "www."].into_iter().any(has_prefix) {
            let is_inner =
                |unit: &Unit| unit.is_word() || matches!(unit.first, '/' | '=' | '&' | '-');
            let last = self.units.iter().rposition(is_inner)?;
            return Some(last.max(at) + 1);
        }
        let part_end = |from: usize| {
            let is_part = |unit: &Unit| unit.is_word() || matches!(unit.first, '.' | '-' | '+');
            let units = &self.units[from..self.units.len().min(from + MAX_MAIL)];
            from + units.iter().position(|unit| !is_part(unit)).unwrap_or(units.len())
        };
        let sign = part_end(at);
        if self.units.get(sign).is_none_or(|unit| unit.first != '@') || !self.is_word(sign + 1) {
            return None;
        }
        let domain = &self.units[sign + 1..part_end(sign + 1)];
        let last = domain.iter().rposition(Unit::is_word)?;
        domain[..last].iter().any(|unit| unit.first == '.').then_some(sign + 2 + last)
    }

    /// Returns the end of the longest exception that starts at unit `at`.
    fn exception_end(&self, at: usize) -> Option<usize> {
        if at > 0 && self.is_word(at - 1) {
            return None;
        }
        let longest = self.units.len().min(at + self.rules.longest_exception());
        (at + 2..=longest)
            .rev()
            .find(|&end| !self.is_word(end) && self.rules.is_exception(self.slice(at, end)))
    }

    fn joins(&self, choice: Choice) -> bool {
        self.rules.joins(choice)
    }

    fn is_word(&self, at: usize) -> bool {
        self.units.get(at).is_some_and(Unit::is_word)
    }

    fn slice(&self, at: usize, end: usize) -> &str {
        &self.text[self.units[at].start..self.units[end - 1].end]
    }
}

/// The largest number of characters of each part of a mail address.
const MAX_MAIL: usize = 64;

/// The decision about a connector in a word.
enum Connection {
    /// The word continues after the connector.
    Joined,
    /// The token ends before this unit.
    SplitAt(usize),
}

impl Connection {
    fn join_if(is_joined: bool, split: usize) -> Self {
        if is_joined { Self::Joined } else { Self::SplitAt(split) }
    }
}

/// Returns the choice about a period after `word`, or `None` if the period is always split off.
pub(super) fn period_choice(word: &str, units: &[Unit]) -> Option<Choice> {
    match units {
        [only] if only.first.is_uppercase() => Some(Choice::Initial),
        _ if units.len() <= 2 && units.iter().all(|unit| unit.class == Class::Digit) => {
            Some(Choice::Ordinal)
        }
        _ => is_abbreviation(word).then_some(Choice::Abbreviation),
    }
}

/// Returns true if the apostrophe at unit `at` is that of `n't` at the end of a word.
pub(super) fn is_negation(units: &[Unit], at: usize) -> bool {
    let is_letter = |at: usize, small: char| {
        units.get(at).is_some_and(|unit| unit.first.eq_ignore_ascii_case(&small))
    };
    at > 0
        && units.get(at).is_some_and(|unit| is_apostrophe(unit.first))
        && is_letter(at - 1, 'n')
        && is_letter(at + 1, 't')
        && !units.get(at + 2).is_some_and(Unit::is_word)
}

/// The number of letters of the longest elided word, such as `quell'`.
const MAX_ELIDED: usize = 5;

/// Returns true if the apostrophe at unit `at` ends an elided word: a few letters before it, two or more after it.
pub(super) fn is_elision(units: &[Unit], at: usize) -> bool {
    let is_letter = |at: usize| units.get(at).is_some_and(|unit| unit.class == Class::Letter);
    (1..=MAX_ELIDED).contains(&at)
        && (0..at).all(is_letter)
        && is_letter(at + 1)
        && is_letter(at + 2)
}
