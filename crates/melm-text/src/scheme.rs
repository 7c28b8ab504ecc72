//! Tag schemes: IO, IOB1, IOB2, IOBES and its spelling BILOU, and the rarer IOE1 and IOE2.

use std::fmt;
use std::str::FromStr;

use rustc_hash::FxHashMap;

use crate::tag::{EndLetters, Tag, TagPrefix};

/// A rule for writing mentions as tags.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Scheme {
    /// `I` for every token of a mention. Adjacent mentions of the same type cannot be told apart.
    Io,
    /// `I`, but `B` for the first token of a mention that directly follows another one of the same type.
    Iob1,
    /// `B` for the first token, `I` for the others. Most files use it.
    Iob2,
    /// `B`, `I` and `E` for the first, inner and last tokens, `S` for a mention of one token.
    Iobes,
    /// IOBES with `L` for `E` and `U` for `S`.
    Bilou,
    /// `I`, but `E` for the last token of a mention that another one of the same type directly follows.
    Ioe1,
    /// `E` for the last token, `I` for the others.
    Ioe2,
}

impl Scheme {
    /// All schemes. If several fit a file equally well, detection chooses the first one in this list.
    pub const ALL: [Scheme; 7] = [
        Scheme::Iob2,
        Scheme::Io,
        Scheme::Iob1,
        Scheme::Iobes,
        Scheme::Bilou,
        Scheme::Ioe2,
        Scheme::Ioe1,
    ];

    /// The name that command-line options and reports use.
    pub fn name(self) -> &'static str {
        match self {
            Scheme::Io => "io",
            Scheme::Iob1 => "iob1",
            Scheme::Iob2 => "iob2",
            Scheme::Iobes => "iobes",
            Scheme::Bilou => "bilou",
            Scheme::Ioe1 => "ioe1",
            Scheme::Ioe2 => "ioe2",
        }
    }

    /// Returns the letter that the scheme uses for a prefix.
    pub fn letter(self, prefix: TagPrefix) -> char {
        match (prefix, self) {
            (TagPrefix::Begin, _) => 'B',
            (TagPrefix::Inside, _) => 'I',
            (TagPrefix::End, Scheme::Bilou) => 'L',
            (TagPrefix::End, _) => 'E',
            (TagPrefix::Single, Scheme::Bilou) => 'U',
            (TagPrefix::Single, _) => 'S',
        }
    }

    /// Returns the prefix of a token of a mention. `first` and `last` say whether the token is the first or last one of
    /// the mention. `touches` is true if another mention of the same type ends directly before this mention. (IOE1
    /// marks that other mention: see `write_tags`.)
    pub(crate) fn prefix(self, first: bool, last: bool, touches: bool) -> TagPrefix {
        match self {
            Scheme::Iob1 if first && touches => TagPrefix::Begin,
            Scheme::Iob2 if first => TagPrefix::Begin,
            Scheme::Ioe2 if last => TagPrefix::End,
            Scheme::Io | Scheme::Iob1 | Scheme::Iob2 | Scheme::Ioe1 | Scheme::Ioe2 => {
                TagPrefix::Inside
            }
            Scheme::Iobes | Scheme::Bilou => match (first, last) {
                (true, true) => TagPrefix::Single,
                (true, false) => TagPrefix::Begin,
                (false, true) => TagPrefix::End,
                (false, false) => TagPrefix::Inside,
            },
        }
    }

    /// Returns true if tags of this scheme can have the prefix.
    pub fn uses(self, prefix: TagPrefix) -> bool {
        match self {
            Scheme::Io => prefix == TagPrefix::Inside,
            Scheme::Iob1 | Scheme::Iob2 => matches!(prefix, TagPrefix::Begin | TagPrefix::Inside),
            Scheme::Ioe1 | Scheme::Ioe2 => matches!(prefix, TagPrefix::End | TagPrefix::Inside),
            Scheme::Iobes | Scheme::Bilou => true,
        }
    }

    /// Returns true if `tag` may follow `before`. The start and the end of a sentence count as `O`.
    pub fn allows(self, before: Tag, tag: Tag) -> bool {
        use TagPrefix::{Begin, End, Inside, Single};
        if let Tag::In(prefix, _) = tag
            && !self.uses(prefix)
        {
            return false;
        }
        let same = before.entity_type().is_some() && before.entity_type() == tag.entity_type();
        match (self, before, tag) {
            (Scheme::Iob1, _, Tag::In(Begin, _))
            | (Scheme::Iob2, _, Tag::In(Inside, _))
            | (Scheme::Ioe1, Tag::In(End, _), _)
            | (Scheme::Ioe2, Tag::In(Inside, _), _) => same,
            (Scheme::Iobes | Scheme::Bilou, Tag::In(Begin | Inside, _), _) => {
                same && matches!(tag, Tag::In(Inside | End, _))
            }
            (Scheme::Iobes | Scheme::Bilou, Tag::Outside | Tag::In(End | Single, _), _) => {
                matches!(tag, Tag::Outside | Tag::In(Begin | Single, _))
            }
            _ => true,
        }
    }

    /// Returns the positions of the tags that may not follow the previous tag. Includes `tags.len()` if the sentence
    /// may not end with its last tag. Returns no positions for valid tags.
    pub fn violations(self, tags: &[Tag]) -> impl Iterator<Item = usize> {
        (0..=tags.len()).filter(move |&at| {
            let before = if at == 0 { Tag::Outside } else { tags[at - 1] };
            !self.allows(before, tags.get(at).copied().unwrap_or(Tag::Outside))
        })
    }
}

impl fmt::Display for Scheme {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name().to_uppercase())
    }
}

impl FromStr for Scheme {
    type Err = UnknownScheme;

    fn from_str(name: &str) -> Result<Self, UnknownScheme> {
        let wanted = name.to_lowercase();
        match wanted.as_str() {
            "bio" | "iob" => Ok(Scheme::Iob2),
            "bioes" | "iobes" => Ok(Scheme::Iobes),
            _ => Scheme::ALL.into_iter().find(|s| s.name() == wanted).ok_or(UnknownScheme),
        }
    }
}

/// The error for a text that is not the name of a scheme.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("unknown scheme: expected io, iob1, iob2 (bio), iobes (bioes), bilou, ioe1 or ioe2")]
pub struct UnknownScheme;

/// How often each tag follows each other tag in a file. The scheme is detected from these counts.
#[derive(Debug, Clone, Default)]
pub(crate) struct Transitions {
    counts: FxHashMap<u64, (Tag, Tag, u64)>,
}

/// The scheme of a file, detected or given.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DetectedScheme {
    /// The scheme with the fewest violations. On a tie, the first one of [`Scheme::ALL`].
    pub scheme: Scheme,
    /// The number of tags that violate the scheme.
    pub n_violations: u64,
    /// Other schemes that all tags fit too. Empty if a tag violates the scheme.
    pub also_valid: Vec<Scheme>,
}

impl Transitions {
    /// Counts the transitions of one sentence, including its start and its end.
    pub(crate) fn add(&mut self, tags: &[Tag]) {
        let mut before = Tag::Outside;
        for &tag in tags.iter().chain([&Tag::Outside]) {
            // Skip `O O`: every scheme allows it, and it is the most frequent transition by far.
            if before != Tag::Outside || tag != Tag::Outside {
                let key = code(before) << 32 | code(tag);
                self.counts.entry(key).or_insert((before, tag, 0)).2 += 1;
            }
            before = tag;
        }
    }

    /// The number of transitions that violate `scheme`.
    pub(crate) fn n_violations(&self, scheme: Scheme) -> u64 {
        let broken = self.counts.values().filter(|(before, tag, _)| !scheme.allows(*before, *tag));
        broken.map(|(_, _, n)| n).sum()
    }

    /// Detects the scheme. `letters` decides between IOBES and BILOU.
    pub(crate) fn detect(&self, letters: EndLetters) -> DetectedScheme {
        let mut best: Option<DetectedScheme> = None;
        for scheme in Scheme::ALL {
            let spelled_otherwise = match scheme {
                Scheme::Bilou => !letters.bilou,
                _ => letters.bilou && !letters.iobes,
            };
            let uses_ends = letters.bilou || letters.iobes;
            if uses_ends && spelled_otherwise || !uses_ends && scheme == Scheme::Bilou {
                continue;
            }
            let n_violations = self.n_violations(scheme);
            match &mut best {
                Some(b) if b.n_violations < n_violations => {}
                Some(b) if b.n_violations == n_violations => b.also_valid.push(scheme),
                _ => best = Some(DetectedScheme { scheme, n_violations, also_valid: Vec::new() }),
            }
        }
        let mut best = best.expect("IOB2 or BILOU is always a candidate");
        if self.counts.is_empty() || best.n_violations > 0 {
            // If all tags are `O`, every scheme is valid, and a list of all schemes would not help. If a tag violates
            // the best scheme, no scheme is valid.
            best.also_valid.clear();
        }
        best
    }
}

/// Encodes a tag as a number, which is 0 for `O`.
fn code(tag: Tag) -> u64 {
    match tag {
        Tag::Outside => 0,
        Tag::In(prefix, entity_type) => 1 + (entity_type.index() as u64) * 4 + prefix as u64,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tag::EntityTypes;

    fn detect(sentences: &[&str]) -> DetectedScheme {
        let mut types = EntityTypes::default();
        let mut transitions = Transitions::default();
        for sentence in sentences {
            let tags: Vec<_> =
                sentence.split_whitespace().map(|t| types.parse(t).unwrap()).collect();
            transitions.add(&tags);
        }
        transitions.detect(types.end_letters())
    }

    #[test]
    fn each_scheme_is_detected_from_a_sentence_that_only_it_allows() {
        for (text, scheme) in [
            ("B-X I-X O B-X", Scheme::Iob2),
            ("I-X I-X O I-Y", Scheme::Io),
            ("I-X I-X B-X O I-Y", Scheme::Iob1),
            ("B-X E-X O S-Y", Scheme::Iobes),
            ("B-X L-X O U-Y", Scheme::Bilou),
            ("I-X E-X O E-Y", Scheme::Ioe2),
            ("I-X E-X I-X O I-Y", Scheme::Ioe1),
            ("O O", Scheme::Iob2),
            ("B-X O B-Y", Scheme::Iob2),
        ] {
            let detected = detect(&[text]);
            assert_eq!((detected.scheme, detected.n_violations), (scheme, 0), "{text}");
        }
    }

    #[test]
    fn a_few_violations_do_not_change_the_scheme_but_are_counted() {
        let detected = detect(&["B-X I-X O B-Y", "B-X I-X", "O I-X"]);
        assert_eq!((detected.scheme, detected.n_violations), (Scheme::Iob2, 1));
    }

    #[test]
    fn only_valid_schemes_are_listed() {
        let detected = detect(&["B-PER I-LOC I-LOC"]);
        assert_eq!((detected.n_violations, detected.also_valid), (1, vec![]));
        assert_eq!(detect(&["B-X O B-Y"]).also_valid, []);
        assert_eq!(detect(&["I-X I-X"]).also_valid, [Scheme::Iob1, Scheme::Ioe1]);
    }

    #[test]
    fn an_unfinished_iobes_mention_is_a_violation_at_the_end_of_the_sentence() {
        let mut types = EntityTypes::default();
        let tags = ["O", "B-X"].map(|t| types.parse(t).unwrap());
        assert_eq!(Scheme::Iobes.violations(&tags).collect::<Vec<_>>(), [2]);
    }

    #[test]
    fn other_names_of_schemes_are_understood() {
        assert_eq!("BIO".parse(), Ok(Scheme::Iob2));
        assert_eq!("bioes".parse(), Ok(Scheme::Iobes));
        assert_eq!("xyz".parse::<Scheme>(), Err(UnknownScheme));
    }
}
