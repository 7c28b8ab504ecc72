//! The choices in which tokenizations differ, and what a corpus says about each.

use super::unit::{Class, Unit};

/// A place in a text where some corpora split tokens and others do not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum TokenizerChoice {
    /// A hyphen in a word: `well-known`, `F-16`.
    Hyphen,
    /// A hyphen between numbers: `3-1`.
    NumberHyphen,
    /// An en dash or em dash without spaces: `Paris–Nice`.
    Dash,
    /// A slash in a word: `and/or`.
    Slash,
    /// A slash between numbers: `1/2`.
    NumberSlash,
    /// An apostrophe in a word: `O'Brien`.
    Apostrophe,
    /// A period in a word: `bbc.com`.
    Period,
    /// A period between numbers: `3.5`.
    NumberPeriod,
    /// A comma between numbers: `1,000`.
    NumberComma,
    /// A colon between numbers: `10:30`.
    NumberColon,
    /// An ampersand in a word: `AT&T`.
    Ampersand,
    /// A clitic at the end of a word: `Ada's`, `they're`.
    Clitic,
    /// A negation at the end of a word: `don't`.
    Negation,
    /// An elision at the start of a word: `l'Italie`.
    Elision,
    /// The period of an abbreviation: `U.S.`, `Mr.`.
    Abbreviation,
    /// The period of an initial: `J.`.
    Initial,
    /// The period of a number of one or two digits: `3. Oktober`.
    Ordinal,
    /// A percent sign after a number: `5%`.
    Percent,
    /// A currency sign before a number: `$5`.
    Currency,
    /// `@` or `#` before a word: `@ada`.
    Handle,
    /// A hyphen at the end of a word: `Ein- und Ausgang`.
    FinalHyphen,
    /// A hyphen at the start of a word or number: `-5`.
    LeadingHyphen,
    /// The same mark repeated: `...`, `--`, `!!`.
    Repeat,
}

/// How often a corpus writes the text of a choice as one token, and how often as several.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ChoiceEvidence {
    /// The number of tokens that contain the text.
    pub n_joined: usize,
    /// The number of places where the text is several tokens.
    pub n_apart: usize,
}

impl TokenizerChoice {
    /// All choices.
    pub const ALL: [Self; 23] = [
        Self::Hyphen,
        Self::NumberHyphen,
        Self::Dash,
        Self::Slash,
        Self::NumberSlash,
        Self::Apostrophe,
        Self::Period,
        Self::NumberPeriod,
        Self::NumberComma,
        Self::NumberColon,
        Self::Ampersand,
        Self::Clitic,
        Self::Negation,
        Self::Elision,
        Self::Abbreviation,
        Self::Initial,
        Self::Ordinal,
        Self::Percent,
        Self::Currency,
        Self::Handle,
        Self::FinalHyphen,
        Self::LeadingHyphen,
        Self::Repeat,
    ];

    /// An example for messages.
    pub fn example(self) -> &'static str {
        match self {
            Self::Hyphen => "well-known",
            Self::NumberHyphen => "3-1",
            Self::Dash => "Paris–Nice",
            Self::Slash => "and/or",
            Self::NumberSlash => "1/2",
            Self::Apostrophe => "O'Brien",
            Self::Period => "bbc.com",
            Self::NumberPeriod => "3.5",
            Self::NumberComma => "1,000",
            Self::NumberColon => "10:30",
            Self::Ampersand => "AT&T",
            Self::Clitic => "Ada's",
            Self::Negation => "don't",
            Self::Elision => "l'Italie",
            Self::Abbreviation => "U.S.",
            Self::Initial => "J.",
            Self::Ordinal => "3.",
            Self::Percent => "5%",
            Self::Currency => "$5",
            Self::Handle => "@ada",
            Self::FinalHyphen => "Ein-",
            Self::LeadingHyphen => "-5",
            Self::Repeat => "...",
        }
    }

    /// Returns true if the text is one token when the corpus says nothing about it.
    pub(super) fn joins_by_default(self) -> bool {
        !matches!(
            self,
            Self::Dash
                | Self::Slash
                | Self::Clitic
                | Self::Negation
                | Self::Percent
                | Self::Currency
                | Self::LeadingHyphen
        )
    }

    /// Returns true if the text is one token, as far as the evidence of a corpus says.
    ///
    /// A corpus was tokenized by one rule, so a corpus that splits hyphens has almost no token with a hyphen. A corpus
    /// that does not split them can still have any number of separate hyphens, because they were separate in the
    /// original text. So a small share of joined tokens is enough. Clitics and elisions are different: they are never
    /// separate in a text, so the majority decides.
    pub(super) fn decide(self, evidence: ChoiceEvidence) -> bool {
        let ChoiceEvidence { n_joined, n_apart } = evidence;
        match self {
            _ if n_joined + n_apart == 0 => self.joins_by_default(),
            Self::Clitic | Self::Negation | Self::Elision => n_joined >= n_apart,
            _ if n_joined == 0 && n_apart < FEW => self.joins_by_default(),
            _ => n_joined * ENOUGH >= n_joined + n_apart,
        }
    }

    /// Returns the choice for a connector between two units, or `None` if it is always split.
    pub(super) fn between(left: &Unit, connector: char, right: &Unit) -> Option<Self> {
        let are_digits = left.class == Class::Digit && right.class == Class::Digit;
        match connector {
            '-' | '\u{2010}' | '\u{2011}' if are_digits => Some(Self::NumberHyphen),
            '-' | '\u{2010}' | '\u{2011}' => Some(Self::Hyphen),
            '–' | '—' => Some(Self::Dash),
            '/' if are_digits => Some(Self::NumberSlash),
            '/' => Some(Self::Slash),
            '\'' | '’' => Some(Self::Apostrophe),
            '.' if are_digits => Some(Self::NumberPeriod),
            '.' => Some(Self::Period),
            ',' if are_digits => Some(Self::NumberComma),
            ':' if are_digits => Some(Self::NumberColon),
            '&' => Some(Self::Ampersand),
            _ => None,
        }
    }
}

/// If a text is never joined and fewer places than this are apart, the corpus says nothing about it.
const FEW: usize = 3;
/// A text is joined if at least one in this number of places is joined.
const ENOUGH: usize = 20;
