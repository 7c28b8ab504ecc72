//! Counts how a corpus tokenizes the text of each choice.

use super::affix::{clitic_len, is_apostrophe, is_currency, is_repeatable};
use super::choice::{ChoiceEvidence, TokenizerChoice as Choice};
use super::chunk::{is_elision, is_negation, period_choice};
use super::script::UnspacedScript;
use super::unit::{Class, Unit, units};

/// A token and its units.
struct Split<'t> {
    text: &'t str,
    units: Vec<Unit>,
}

impl Split<'_> {
    fn first(&self) -> &Unit {
        &self.units[0]
    }

    fn last(&self) -> &Unit {
        &self.units[self.units.len() - 1]
    }

    /// The mark, if the token is a single symbol.
    fn mark(&self) -> Option<char> {
        match self.units.as_slice() {
            [only] if only.class == Class::Symbol => Some(only.first),
            _ => None,
        }
    }
}

/// The counts for all choices.
#[derive(Debug, Clone, Default)]
pub(super) struct Evidence {
    pub(super) choices: [ChoiceEvidence; Choice::ALL.len()],
    /// For each script without spaces: the numbers of tokens of one character, and of more.
    pub(super) scripts: [ScriptEvidence; UnspacedScript::ALL.len()],
}

/// The lengths of the tokens in one script.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct ScriptEvidence {
    pub(super) n_single: usize,
    pub(super) n_longer: usize,
}

impl Evidence {
    /// Adds the tokens of one sentence.
    pub(super) fn add<'t>(&mut self, tokens: impl Iterator<Item = &'t str>) {
        let split = tokens.map(|text| Split { text, units: units(text) });
        let tokens: Vec<_> = split.filter(|token| !token.units.is_empty()).collect();
        for (at, token) in tokens.iter().enumerate() {
            self.add_script(token);
            self.add_joined(token);
            let before = at.checked_sub(1).map(|before| &tokens[before]);
            self.add_apart(before, token, tokens.get(at + 1));
        }
    }

    fn add_script(&mut self, token: &Split<'_>) {
        if let Class::Unspaced(script) = token.first().class {
            let counts = &mut self.scripts[script as usize];
            match token.units.len() {
                1 => counts.n_single += 1,
                _ => counts.n_longer += 1,
            }
        }
    }

    fn joined(&mut self, choice: impl Into<Option<Choice>>) {
        if let Some(choice) = choice.into() {
            self.choices[choice as usize].n_joined += 1;
        }
    }

    fn apart(&mut self, choice: impl Into<Option<Choice>>) {
        if let Some(choice) = choice.into() {
            self.choices[choice as usize].n_apart += 1;
        }
    }

    /// Adds the choices that one token shows.
    fn add_joined(&mut self, token: &Split<'_>) {
        self.add_inner_marks(&token.units);
        if token.units.len() > 1 {
            self.add_first_mark(&token.units);
            self.add_last_mark(token);
        }
    }

    /// Adds the choices that marks between two words of a token show.
    fn add_inner_marks(&mut self, units: &[Unit]) {
        for at in 1..units.len().saturating_sub(1) {
            let (left, mark, right) = (&units[at - 1], &units[at], &units[at + 1]);
            if mark.class != Class::Symbol || !left.is_word() || !right.is_word() {
                continue;
            }
            if !is_apostrophe(mark.first) {
                self.joined(Choice::between(left, mark.first, right));
            } else if is_negation(units, at) {
                // `n't` itself is not a word with a negation.
                if at > 1 {
                    self.joined(Choice::Negation);
                }
            } else if clitic_len(&units[at + 1..]).is_some() && left.class == Class::Letter {
                self.joined(Choice::Clitic);
            } else {
                self.joined(Choice::Apostrophe);
                if is_elision(units, at) {
                    self.joined(Choice::Elision);
                }
            }
        }
    }

    /// Adds the choice that the first mark of a token with two units or more shows.
    fn add_first_mark(&mut self, units: &[Unit]) {
        let (first, second) = (units[0].first, &units[1]);
        match first {
            '@' | '#' if second.class == Class::Letter => self.joined(Choice::Handle),
            '-' if second.is_word() => self.joined(Choice::LeadingHyphen),
            _ if is_currency(first) && second.class == Class::Digit => {
                self.joined(Choice::Currency);
            }
            _ if is_repeatable(first) && units.iter().all(|unit| unit.first == first) => {
                self.joined(Choice::Repeat);
            }
            _ => {}
        }
    }

    /// Adds the choice that the last mark of a token with two units or more shows.
    fn add_last_mark(&mut self, token: &Split<'_>) {
        let units = &token.units[..token.units.len() - 1];
        let before = &units[units.len() - 1];
        match token.last().first {
            '.' => self.joined(period_choice(&token.text[..token.last().start], units)),
            '%' | '‰' if before.class == Class::Digit => self.joined(Choice::Percent),
            '-' if before.class == Class::Letter => self.joined(Choice::FinalHyphen),
            _ => {}
        }
    }

    /// Adds the choices that a token and its neighbours show.
    fn add_apart(
        &mut self,
        before: Option<&Split<'_>>,
        token: &Split<'_>,
        after: Option<&Split<'_>>,
    ) {
        if let Some(before) = before.filter(|before| before.last().class == Class::Letter) {
            self.add_after_word(before, token);
        }
        if let Some(after) = after {
            self.add_elision(token, after);
            self.add_before(token, after);
        }
        let (Some(before), Some(mark)) = (before, token.mark()) else { return };
        if matches!(mark, '%' | '‰') && before.last().class == Class::Digit {
            self.apart(Choice::Percent);
        }
        if before.mark() == Some(mark) && is_repeatable(mark) {
            self.apart(Choice::Repeat);
        }
        // A period at the end says nothing: it may end the sentence.
        let Some(after) = after else { return };
        if before.last().is_word() && after.first().is_word() {
            self.apart(Choice::between(before.last(), mark, after.first()));
        }
        if mark == '.' {
            self.apart(period_choice(before.text, &before.units));
        }
    }

    /// Adds the choice that a token after a word shows.
    fn add_after_word(&mut self, before: &Split<'_>, token: &Split<'_>) {
        let rest = &token.units[1..];
        if is_apostrophe(token.first().first) && clitic_len(rest) == Some(rest.len()) {
            self.apart(Choice::Clitic);
        } else if token.units.len() == 3 && is_negation(&token.units, 1) {
            self.apart(Choice::Negation);
        } else if token.mark() == Some('-') && before.last().is_word() {
            self.apart(Choice::FinalHyphen);
        }
    }

    /// Adds the choice that a mark before another token shows.
    fn add_before(&mut self, token: &Split<'_>, after: &Split<'_>) {
        match token.mark() {
            Some('@' | '#') if after.first().class == Class::Letter => self.apart(Choice::Handle),
            Some('-') if after.first().is_word() => self.apart(Choice::LeadingHyphen),
            Some(mark) if is_currency(mark) && after.first().class == Class::Digit => {
                self.apart(Choice::Currency);
            }
            _ => {}
        }
    }

    /// Counts a token such as `l'` before a word.
    fn add_elision(&mut self, token: &Split<'_>, after: &Split<'_>) {
        let last = token.units.len() - 1;
        if last > 0 && is_apostrophe(token.last().first) {
            let joined: Vec<_> = token.units.iter().chain(&after.units).copied().collect();
            if is_elision(&joined, last) {
                self.apart(Choice::Elision);
            }
        }
    }
}
