//! What can be wrong with a span.

use thiserror::Error;

use super::offsets::{OffsetFault, OffsetUnit};

/// The reason why a span of a file cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum SpanFault {
    /// An offset is not a place in the text.
    #[error(transparent)]
    Offset(#[from] OffsetFault),
    /// The span has no characters.
    #[error("the span {start} to {end} has no characters")]
    Empty {
        /// The first offset.
        start: usize,
        /// The second offset.
        end: usize,
    },
    /// The span contains only white space and invisible characters.
    #[error("the span contains only white space")]
    Blank,
    /// The file states another text for the span than the offsets select.
    #[error("the offsets select `{selected}`, but the file says `{stated}`{}", cause.describe())]
    Surface {
        /// The text that the offsets select.
        selected: String,
        /// The text that the file states.
        stated: String,
        /// The likely cause.
        cause: MismatchCause,
    },
    /// The span overlaps another one, and overlapping spans are refused.
    #[error("`{text}` overlaps `{other}`")]
    Overlap {
        /// The text of the span.
        text: String,
        /// The text of the longer span.
        other: String,
    },
    /// The span has no entity type.
    #[error("the span has no entity type")]
    NoType,
    /// The text is too long.
    #[error("the text is longer than 16 MiB")]
    LongText,
}

/// A likely reason why offsets do not select the text that the file states.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MismatchCause {
    /// The offsets are counted in another unit.
    Unit(OffsetUnit),
    /// The offsets count a carriage return and a line feed as one character.
    LineEnds,
    /// The stated text is at another place of the text.
    Elsewhere {
        /// The number of code points between the two places; positive if the stated text is later.
        distance: isize,
    },
    /// The stated text is not in the text.
    Missing,
    /// The cause was not looked for, because the file has many problems.
    Unknown,
}

impl MismatchCause {
    fn describe(self) -> String {
        match self {
            Self::Unit(unit) => format!(": they fit if they are counted in {unit}"),
            Self::LineEnds => {
                ": they fit if a carriage return and a line feed count as one character".into()
            }
            Self::Elsewhere { distance } => {
                let (n, side) =
                    (distance.unsigned_abs(), if distance > 0 { "after" } else { "before" });
                format!(", which is {n} characters {side} that place")
            }
            Self::Missing => ", which is not in the text".into(),
            Self::Unknown => String::new(),
        }
    }

    /// Finds the likely cause. `start` and `end` are the offsets, counted in `unit`.
    pub(super) fn find(
        text: &str,
        stated: &str,
        unit: OffsetUnit,
        start: usize,
        end: usize,
    ) -> Self {
        let selects = |text: &str, unit: OffsetUnit| {
            let map = super::offsets::OffsetMap::new(text, unit);
            let range = map.to_byte(start).ok().zip(map.to_byte(end).ok());
            range.and_then(|(start, end)| text.get(start..end)) == Some(stated)
        };
        let other =
            OffsetUnit::ALL.into_iter().find(|&other| other != unit && selects(text, other));
        // A carriage return and a line feed are also one grapheme cluster, but line ends are the more likely cause.
        if text.contains("\r\n") && selects(&text.replace("\r\n", "\n"), unit) {
            return Self::LineEnds;
        }
        if let Some(other) = other {
            return Self::Unit(other);
        }
        let here = super::offsets::OffsetMap::new(text, unit).to_byte(start).unwrap_or(text.len());
        let places = text.match_indices(stated).map(|(at, _)| at);
        match places.min_by_key(|&at| at.abs_diff(here)) {
            Some(at) if at >= here => {
                Self::Elsewhere { distance: text[here..at].chars().count().cast_signed() }
            }
            Some(at) => Self::Elsewhere { distance: -text[at..here].chars().count().cast_signed() },
            None => Self::Missing,
        }
    }
}

impl SpanFault {
    /// Returns advice for the user.
    pub fn cure(&self) -> &'static str {
        match self {
            Self::Surface { cause: MismatchCause::Unit(OffsetUnit::Utf16), .. } => {
                "pass `--offsets utf16`"
            }
            Self::Surface { cause: MismatchCause::Unit(OffsetUnit::CodePoint), .. } => {
                "pass `--offsets code-points`"
            }
            Self::Surface { cause: MismatchCause::Unit(OffsetUnit::Grapheme), .. } => {
                "pass `--offsets graphemes`"
            }
            Self::Surface { cause: MismatchCause::Unit(OffsetUnit::Byte), .. } => {
                "pass `--offsets bytes`"
            }
            Self::Surface { cause: MismatchCause::LineEnds, .. } => {
                "replace the line ends of the text by line feeds, and export again"
            }
            Self::Surface { .. } => {
                "export the file again: its text was changed after it was annotated"
            }
            Self::Offset(_) => {
                "the offsets may be counted in another unit: pass `--offsets code-points`, `utf16`, \
                 `graphemes` or `bytes`"
            }
            Self::Empty { .. } | Self::Blank => "remove the span, or correct its offsets",
            Self::Overlap { .. } => {
                "remove one of the spans, or keep the longest with `--overlaps longest`"
            }
            Self::NoType => "add the entity type of the span",
            Self::LongText => "split the text into shorter documents",
        }
    }
}
