//! Tag schemes: IO, IOB1, IOB2, IOBES and its spelling BILOU, and the rarer IOE1 and IOE2.

use std::fmt;
use std::str::FromStr;

use crate::hash::FastMap;
use crate::tag::{EndLetters, Part, Tag};

/// How mentions are written as tags.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Scheme {
    /// `I` everywhere: touching mentions of one type cannot be told apart.
    Io,
    /// `I`, and `B` only where a mention touches the one before of the same type.
    Iob1,
    /// `B` at every start, `I` after it: what most files are.
    Iob2,
    /// `B I E`, and `S` for a mention of one token.
    Iobes,
    /// IOBES with `L` for `E` and `U` for `S`.
    Bilou,
    /// `I`, and `E` only where a mention touches the one after of the same type.
    Ioe1,
    /// `E` at every end, `I` before it.
    Ioe2,
}

impl Scheme {
    /// Every scheme, in the order in which detection prefers them.
    pub const ALL: [Scheme; 7] = [
        Scheme::Iob2,
        Scheme::Io,
        Scheme::Iob1,
        Scheme::Iobes,
        Scheme::Bilou,
        Scheme::Ioe2,
        Scheme::Ioe1,
    ];

    /// The name as options and reports write it.
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

    /// The letter of a part.
    pub fn letter(self, part: Part) -> char {
        match (part, self) {
            (Part::Begin, _) => 'B',
            (Part::Inside, _) => 'I',
            (Part::End, Scheme::Bilou) => 'L',
            (Part::End, _) => 'E',
            (Part::Single, Scheme::Bilou) => 'U',
            (Part::Single, _) => 'S',
        }
    }

    /// The part of a token in its mention; `touches`: the mention before it is of the same type
    /// and ends where this one starts. (IOE1 marks the earlier of the two: see `write_tags`.)
    pub(crate) fn part(self, first: bool, last: bool, touches: bool) -> Part {
        match self {
            Scheme::Iob1 if first && touches => Part::Begin,
            Scheme::Iob2 if first => Part::Begin,
            Scheme::Ioe2 if last => Part::End,
            Scheme::Io | Scheme::Iob1 | Scheme::Iob2 | Scheme::Ioe1 | Scheme::Ioe2 => Part::Inside,
            Scheme::Iobes | Scheme::Bilou => match (first, last) {
                (true, true) => Part::Single,
                (true, false) => Part::Begin,
                (false, true) => Part::End,
                (false, false) => Part::Inside,
            },
        }
    }

    /// Whether the scheme uses this part at all.
    pub fn has(self, part: Part) -> bool {
        match self {
            Scheme::Io => part == Part::Inside,
            Scheme::Iob1 | Scheme::Iob2 => matches!(part, Part::Begin | Part::Inside),
            Scheme::Ioe1 | Scheme::Ioe2 => matches!(part, Part::End | Part::Inside),
            Scheme::Iobes | Scheme::Bilou => true,
        }
    }

    /// Whether `tag` may follow `before`. A sentence is surrounded by `O` on both sides.
    pub fn allows(self, before: Tag, tag: Tag) -> bool {
        use Part::{Begin, End, Inside, Single};
        if let Tag::In(part, _) = tag
            && !self.has(part)
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

    /// The positions at which `tags` break the scheme: `tags.len()` if the end itself does.
    pub fn breaks(self, tags: &[Tag]) -> impl Iterator<Item = usize> {
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

/// The text names no scheme.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("unknown scheme: expected io, iob1, iob2 (bio), iobes (bioes), bilou, ioe1 or ioe2")]
pub struct UnknownScheme;

/// Which tag followed which, counted: all that is needed to tell the scheme of a file.
#[derive(Debug, Clone, Default)]
pub struct Transitions {
    counts: FastMap<u64, (Tag, Tag, u64)>,
}

/// What the transitions of a file say about its scheme.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Detected {
    /// The scheme with the fewest breaks, the more usual one in a tie.
    pub scheme: Scheme,
    /// How many transitions break it.
    pub n_breaks: u64,
    /// Other schemes in which the file is just as valid.
    pub also: Vec<Scheme>,
}

impl Transitions {
    /// Counts the transitions of one sentence, its two ends included.
    pub fn add(&mut self, tags: &[Tag]) {
        let mut before = Tag::Outside;
        for &tag in tags.iter().chain([&Tag::Outside]) {
            // Most tokens are outside, and no scheme objects to `O O`.
            if before != Tag::Outside || tag != Tag::Outside {
                let key = code(before) << 32 | code(tag);
                self.counts.entry(key).or_insert((before, tag, 0)).2 += 1;
            }
            before = tag;
        }
    }

    /// How many transitions break `scheme`.
    pub fn n_breaks(&self, scheme: Scheme) -> u64 {
        let broken = self.counts.values().filter(|(before, tag, _)| !scheme.allows(*before, *tag));
        broken.map(|(_, _, n)| n).sum()
    }

    /// Tells the scheme. `letters` separates IOBES from BILOU.
    pub fn detect(&self, letters: EndLetters) -> Detected {
        let mut best: Option<Detected> = None;
        for scheme in Scheme::ALL {
            let spelled_otherwise = match scheme {
                Scheme::Bilou => !letters.bilou,
                _ => letters.bilou && !letters.iobes,
            };
            let uses_ends = letters.bilou || letters.iobes;
            if uses_ends && spelled_otherwise || !uses_ends && scheme == Scheme::Bilou {
                continue;
            }
            let n_breaks = self.n_breaks(scheme);
            match &mut best {
                Some(b) if b.n_breaks < n_breaks => {}
                Some(b) if b.n_breaks == n_breaks => b.also.push(scheme),
                _ => best = Some(Detected { scheme, n_breaks, also: Vec::new() }),
            }
        }
        let mut best = best.expect("IOB2 or BILOU is always a candidate");
        if self.counts.is_empty() {
            // Nothing but `O` says nothing.
            best.also.clear();
        }
        best
    }
}

/// A tag as a number: 0 for `O`.
fn code(tag: Tag) -> u64 {
    match tag {
        Tag::Outside => 0,
        Tag::In(part, entity_type) => 1 + (entity_type.index() as u64) * 4 + part as u64,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tag::EntityTypes;

    fn detect(sentences: &[&str]) -> Detected {
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
    fn each_scheme_is_told_from_a_sentence_that_only_it_allows() {
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
            assert_eq!((detected.scheme, detected.n_breaks), (scheme, 0), "{text}");
        }
    }

    #[test]
    fn a_few_slips_do_not_change_the_scheme_but_are_counted() {
        let detected = detect(&["B-X I-X O B-Y", "B-X I-X", "O I-X"]);
        assert_eq!((detected.scheme, detected.n_breaks), (Scheme::Iob2, 1));
    }

    #[test]
    fn an_unfinished_iobes_mention_breaks_at_the_end_of_the_sentence() {
        let mut types = EntityTypes::default();
        let tags = ["O", "B-X"].map(|t| types.parse(t).unwrap());
        assert_eq!(Scheme::Iobes.breaks(&tags).collect::<Vec<_>>(), [2]);
    }

    #[test]
    fn names_are_read_as_people_write_them() {
        assert_eq!("BIO".parse(), Ok(Scheme::Iob2));
        assert_eq!("bioes".parse(), Ok(Scheme::Iobes));
        assert_eq!("xyz".parse::<Scheme>(), Err(UnknownScheme));
    }
}
