//! Mentions as the strict mode of seqeval reads them.
//!
//! For each scheme, tables of neighbouring prefixes say where a mention may start, continue and end
//! (seqeval 1.2.2, `scheme.py`).

use crate::mention::Mention;
use crate::scheme::Scheme;
use crate::tag::{Tag, TagPrefix};

/// The prefixes of tags as bits, so that a pattern can allow several prefixes.
const O: u8 = 1;
const B: u8 = 2;
const I: u8 = 4;
const E: u8 = 8;
const S: u8 = 16;
const ALL: u8 = O | B | I | E | S;

/// The condition of a pattern on the entity types of two neighbouring tags.
#[derive(Clone, Copy)]
enum Types {
    Same,
    Differ,
    Any,
}
use Types::{Any, Differ, Same};

/// The prefixes allowed for the previous tag and for the current tag, and the condition on their entity types.
type Pattern = (u8, u8, Types);

struct Table {
    start: &'static [Pattern],
    inside: &'static [Pattern],
    end: &'static [Pattern],
}

const IOB1: Table = Table {
    start: &[(O, I, Any), (I, I, Differ), (B, I, Any), (I | B, B, Same)],
    inside: &[(B | I, I, Same)],
    end: &[(I | B, I, Differ), (I | B, O, Any), (I, B, Any), (B, B, Same)],
};
const IOB2: Table = Table {
    start: &[(ALL, B, Any)],
    inside: &[(B | I, I, Same)],
    end: &[(I | B, O | B, Any), (I | B, I, Differ)],
};
const IOE1: Table = Table {
    start: &[(O, I, Any), (I, I, Differ), (E, I, Any), (E, E, Same)],
    inside: &[(I, I | E, Same)],
    end: &[(I, I | E, Differ), (I, O, Any), (E, I | E, Same)],
};
const IOE2: Table = Table {
    start: &[(O | E, I | E, Any), (I, I | E, Differ)],
    inside: &[(I, I | E, Same)],
    end: &[(E, ALL, Any)],
};
const IOBES: Table = Table {
    start: &[(ALL, B | S, Any)],
    inside: &[(B | I, I | E, Same)],
    end: &[(S | E, ALL, Any)],
};

fn table(scheme: Scheme) -> &'static Table {
    match scheme {
        Scheme::Iob1 => &IOB1,
        Scheme::Io | Scheme::Iob2 => &IOB2,
        Scheme::Ioe1 => &IOE1,
        Scheme::Ioe2 => &IOE2,
        Scheme::Iobes | Scheme::Bilou => &IOBES,
    }
}

fn bit(tag: Tag) -> u8 {
    match tag {
        Tag::Outside => O,
        Tag::In(TagPrefix::Begin, _) => B,
        Tag::In(TagPrefix::Inside, _) => I,
        Tag::In(TagPrefix::End, _) => E,
        Tag::In(TagPrefix::Single, _) => S,
    }
}

fn fits(patterns: &[Pattern], before: Tag, tag: Tag) -> bool {
    patterns.iter().any(|&(b, t, types)| {
        bit(before) & b != 0
            && bit(tag) & t != 0
            && match types {
                Any => true,
                Same => before.entity_type() == tag.entity_type(),
                Differ => before.entity_type() != tag.entity_type(),
            }
    })
}

/// Appends the well-formed mentions of `tags` to `out`.
pub(super) fn push_mentions(tags: &[Tag], scheme: Scheme, out: &mut Vec<Mention>) {
    let table = table(scheme);
    let at_or_outside = |at: usize| tags.get(at).copied().unwrap_or(Tag::Outside);
    let mut before = Tag::Outside;
    let mut at = 0;
    while at < tags.len() {
        let tag = tags[at];
        let mut end = at + 1;
        if fits(table.start, before, tag) {
            while fits(table.inside, tags[end - 1], at_or_outside(end)) {
                end += 1;
            }
            if let Some(entity_type) = tag.entity_type()
                && fits(table.end, tags[end - 1], at_or_outside(end))
            {
                out.push(Mention { entity_type, tokens: at..end });
            }
        }
        at = end;
        before = tags[at - 1];
    }
}
