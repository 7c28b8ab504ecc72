//! Drafts and labelled sentences: the lines of `drafts.jsonl`.

use std::collections::BTreeSet;
use std::path::Path;

use melm::draft::{CandidateIds, Disagreement, Verdict};
use melm::files::MAX_RUN_FILE;
use melm::nn::files::read_text;
use melm_text::EntityTypes;
use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};

use crate::Error;
use crate::gold::GoldSentences;
use crate::segment::{Segment, TaggedTokens};
use crate::visible::visible;

/// How a candidate was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Origin {
    /// A model rewrote mentions of a gold sentence.
    Rewritten,
    /// Mentions of a gold sentence were replaced by mentions of other gold sentences.
    Substituted,
    /// Mentions of a gold sentence were replaced by mentions of another language.
    Mixed,
    /// Tokens of a gold sentence were replaced by tokens with the same tag.
    Swapped,
    /// A model wrote the whole sentence.
    Written,
    /// The candidate is a copy of a gold sentence without a mention.
    Copied,
    /// The candidate is a sentence of unlabelled text.
    Text,
}

impl Origin {
    /// All origins, in the order of the page.
    pub const ALL: [Self; 7] = [
        Self::Rewritten,
        Self::Substituted,
        Self::Mixed,
        Self::Swapped,
        Self::Written,
        Self::Copied,
        Self::Text,
    ];

    /// The name in the JSON form and in the page's filter.
    pub fn name(self) -> &'static str {
        match self {
            Self::Rewritten => "rewritten",
            Self::Substituted => "substituted",
            Self::Mixed => "mixed",
            Self::Swapped => "swapped",
            Self::Written => "written",
            Self::Copied => "copied",
            Self::Text => "text",
        }
    }

    /// A description for readers.
    pub fn description(self) -> &'static str {
        match self {
            Self::Rewritten => "mentions rewritten by the model",
            Self::Substituted => "mentions of other gold sentences",
            Self::Mixed => "mentions of another language",
            Self::Swapped => "tokens of other gold sentences",
            Self::Written => "whole sentence written by the model",
            Self::Copied => "copy of a gold sentence",
            Self::Text => "unlabelled text",
        }
    }
}

/// A reason against a candidate.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Objection {
    /// The judge predicts another tag for a token.
    Judge {
        /// The token.
        token: String,
        /// The tag of the draft.
        wanted: String,
        /// The tag that the judge predicts.
        found: String,
        /// The judge's probability of the draft's tag.
        probability: f64,
    },
    /// Only some taggers of the panel predict a mention.
    Panel {
        /// The text of the mention.
        text: String,
        /// The entity type.
        entity_type: String,
        /// The number of taggers that predict it.
        votes: usize,
        /// The number of taggers.
        panel: usize,
    },
}

/// A draft or a labelled sentence of unlabelled text.
#[derive(Clone, Debug, PartialEq)]
pub struct Candidate {
    /// The stable id, as in [`melm::draft::CandidateId`].
    pub id: String,
    /// How it was made.
    pub origin: Origin,
    /// Where it comes from: `sentence 12`, or a file and line.
    pub place: String,
    /// The round of a draft, or the pass of a sentence of unlabelled text, from 1.
    pub round: u32,
    /// The decision of the filter.
    pub verdict: Verdict,
    /// The judge's probability of all tags, or the mean of the panel's probabilities.
    pub probability: Option<f64>,
    /// The number of mentions.
    pub n_mentions: usize,
    /// The number of mentions that gold does not have.
    pub n_new: usize,
    /// The sentence as a difference to its source.
    pub segments: Vec<Segment>,
    /// The segments of the source, if it is a gold sentence.
    pub source: Option<Vec<Segment>>,
    /// The reasons against it.
    pub objections: Vec<Objection>,
    /// The entity type and the text of every mention.
    pub(crate) mentions: Vec<(usize, Vec<String>)>,
}

impl Candidate {
    /// The share of the mentions that gold does not have, from 0 to 1.
    pub fn novelty(&self) -> f64 {
        if self.n_mentions == 0 { 0.0 } else { self.n_new as f64 / self.n_mentions as f64 }
    }

    /// The indices of the entity types that occur.
    pub fn entity_types(&self) -> BTreeSet<usize> {
        self.mentions.iter().map(|(entity_type, _)| *entity_type).collect()
    }
}

/// The keys of a line that the report reads. Others are ignored.
#[derive(Deserialize)]
struct Line {
    #[serde(default)]
    origin: LineOrigin,
    source: Option<usize>,
    language: Option<String>,
    #[serde(default)]
    round: u32,
    #[serde(default)]
    pass: u32,
    verdict: Verdict,
    tokens: Vec<String>,
    tags: Vec<String>,
    #[serde(default)]
    replaced: Vec<ReplacedLine>,
    #[serde(default)]
    mixed: Vec<IgnoredAny>,
    #[serde(default)]
    swapped: Vec<IgnoredAny>,
    probability: Option<f64>,
    #[serde(default)]
    disagreements: Vec<Disagreement>,
    #[serde(default)]
    file: String,
    #[serde(default, rename = "line")]
    number: usize,
    #[serde(default)]
    first_token: usize,
    #[serde(default)]
    panel: usize,
    #[serde(default)]
    probabilities: Vec<f64>,
    #[serde(default)]
    mentions: Vec<ProposedLine>,
}

/// Whether a line is a draft or a sentence of a text. Sentences that somebody else labelled are text too.
#[derive(Clone, Copy, Default, Deserialize, PartialEq)]
#[serde(try_from = "String")]
enum LineOrigin {
    #[default]
    Draft,
    Text,
}

impl TryFrom<String> for LineOrigin {
    type Error = String;

    fn try_from(origin: String) -> Result<Self, String> {
        match origin.as_str() {
            "draft" => Ok(Self::Draft),
            text if text == "text" || text.starts_with("silver:") => Ok(Self::Text),
            _ => Err(format!("unknown origin `{origin}`")),
        }
    }
}

#[derive(Deserialize)]
struct ReplacedLine {
    start: usize,
    end: usize,
    old: Vec<String>,
    donor: Option<IgnoredAny>,
}

#[derive(Deserialize)]
struct ProposedLine {
    entity_type: String,
    start: usize,
    end: usize,
    votes: usize,
}

/// Reads `drafts.jsonl`. Sources that `gold` does not have are made from the drafts. New entity types are added to
/// `types`.
///
/// # Errors
/// If a line is not valid.
pub(crate) fn read(
    path: &Path,
    gold: &mut GoldSentences,
    types: &mut EntityTypes,
) -> Result<Vec<Candidate>, Error> {
    let text = read_text(path, MAX_RUN_FILE)
        .map_err(|source| Error::Read { path: path.to_path_buf(), source })?;
    let mut ids = CandidateIds::default();
    let mut all = Vec::new();
    for (at, json) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        let failed = |what| Error::Line { path: path.to_path_buf(), line: at + 1, what };
        let line: Line = serde_json::from_str(json).map_err(|error| failed(error.to_string()))?;
        let id = ids.next_id(json).map_err(failed)?.id;
        all.push(line.into_candidate(id, gold, types).map_err(failed)?);
    }
    Ok(all)
}

impl Line {
    fn into_candidate(
        self,
        id: String,
        gold: &mut GoldSentences,
        types: &mut EntityTypes,
    ) -> Result<Candidate, String> {
        let tagged = TaggedTokens::parse(self.tokens.clone(), &self.tags, types)?;
        let source = self.find_source(&tagged, gold, types)?;
        let segments =
            source.as_ref().map_or_else(|| tagged.segments(), |old| tagged.difference(old));
        let mentions: Vec<(usize, Vec<String>)> = tagged
            .mentions
            .iter()
            .map(|one| (one.entity_type.index(), tagged.tokens[one.tokens.clone()].to_vec()))
            .collect();
        let is_new =
            |(entity_type, tokens): &&(usize, Vec<String>)| !gold.has_mention(*entity_type, tokens);
        Ok(Candidate {
            id,
            origin: self.origin(),
            place: self.place(),
            round: self.round.max(self.pass),
            verdict: self.verdict,
            probability: self.probability(),
            n_mentions: mentions.len(),
            n_new: mentions.iter().filter(is_new).count(),
            segments,
            source: source.as_ref().map(TaggedTokens::segments),
            objections: self.objections(),
            mentions,
        })
    }

    /// Returns the source of a draft. Makes it from the draft if gold does not have it, or has other tokens, as a file
    /// without tokens may have.
    fn find_source(
        &self,
        tagged: &TaggedTokens,
        gold: &mut GoldSentences,
        types: &mut EntityTypes,
    ) -> Result<Option<TaggedTokens>, String> {
        let (Some(number), LineOrigin::Draft) = (self.source, self.origin) else { return Ok(None) };
        let language = self.language.as_deref();
        let known = gold.find(language, number).cloned();
        if known.as_ref().is_some_and(|known| tagged.can_be_paired(known)) {
            return Ok(known);
        }
        if !self.swapped.is_empty() {
            return Ok(known);
        }
        let made = self.undo(types)?;
        gold.insert_missing(language, number, made.clone());
        Ok(Some(made))
    }

    /// Returns the source of a draft, made by undoing the replacements. Fails if they do not fit.
    fn undo(&self, types: &mut EntityTypes) -> Result<TaggedTokens, String> {
        let (mut tokens, mut tags) = (self.tokens.clone(), self.tags.clone());
        let mut replaced: Vec<_> = self.replaced.iter().collect();
        replaced.sort_by_key(|one| std::cmp::Reverse(one.start));
        for one in replaced {
            let is_inside = one.start < one.end && one.end <= tokens.len() && !one.old.is_empty();
            if !is_inside || tags.len() != tokens.len() {
                return Err("a replaced mention is not inside of the sentence".into());
            }
            let tag = tags[one.start].clone();
            let inside = match tag.split_once('-') {
                Some((_, name)) => format!("I-{name}"),
                None => tag.clone(),
            };
            let new_tags = (0..one.old.len()).map(|at| if at == 0 { &tag } else { &inside });
            tags.splice(one.start..one.end, new_tags.cloned());
            tokens.splice(one.start..one.end, one.old.iter().cloned());
        }
        TaggedTokens::parse(tokens, &tags, types)
    }

    fn origin(&self) -> Origin {
        if self.origin == LineOrigin::Text {
            Origin::Text
        } else if self.source.is_none() {
            Origin::Written
        } else if self.verdict == Verdict::Copied {
            Origin::Copied
        } else if !self.mixed.is_empty() {
            Origin::Mixed
        } else if !self.swapped.is_empty() {
            Origin::Swapped
        } else if self.replaced.iter().any(|one| one.donor.is_some()) {
            Origin::Substituted
        } else {
            Origin::Rewritten
        }
    }

    fn place(&self) -> String {
        let language = self.language.as_ref().map(|code| format!("{code} "));
        let language = language.unwrap_or_default();
        let place = match (self.origin, self.source) {
            (LineOrigin::Text, _) => format!("{}:{}", self.file, self.number),
            (LineOrigin::Draft, Some(number)) => format!("{language}sentence {number}"),
            (LineOrigin::Draft, None) => format!("{language}no source"),
        };
        visible(&place)
    }

    fn probability(&self) -> Option<f64> {
        let n = self.probabilities.len();
        let mean = (n > 0).then(|| self.probabilities.iter().sum::<f64>() / n as f64);
        self.probability.or(mean).filter(|value| value.is_finite())
    }

    fn objections(&self) -> Vec<Objection> {
        let judge = self.disagreements.iter().map(|one| Objection::Judge {
            token: visible(self.tokens.get(one.token).map_or("", String::as_str)),
            wanted: visible(&one.wanted),
            found: visible(&one.found),
            probability: f64::from(one.probability),
        });
        // The tokens of a proposed mention count from the start of the sentence in the text.
        let part = |one: &ProposedLine| {
            let start = one.start.checked_sub(self.first_token)?;
            let end = one.end.checked_sub(self.first_token)?;
            Some(visible(&self.tokens.get(start..end)?.join(" ")))
        };
        let disputed = self.mentions.iter().filter(|one| one.votes < self.panel);
        let panel = disputed.filter_map(|one| {
            Some(Objection::Panel {
                text: part(one)?,
                entity_type: visible(&one.entity_type),
                votes: one.votes,
                panel: self.panel,
            })
        });
        judge.chain(panel).collect()
    }
}
