//! A draft as a line of `drafts.jsonl`: what it says, where it comes from, and what became of it.

use std::path::Path;

use melm_text::{Corpus, Mention, Token, mentions};
use serde::{Deserialize, Serialize};

use super::Judged;
use crate::Error;
use crate::draft::{Donor, Draft, GuessedPiece, Repeats, Replacement, Swap};
use crate::filter::{Disagreement, FilterMode, Opinion};

/// What became of a draft.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// It is in the augmented set.
    Kept,
    /// It repeats the sentence it was made from.
    RepeatsSource,
    /// It repeats another gold sentence.
    RepeatsGold,
    /// It repeats an earlier draft.
    RepeatsDraft,
    /// The judge's tags are others.
    Disagrees,
    /// The judge finds its tags too unlikely.
    Unlikely,
    /// It is a copy of a sentence without a mention, and in the augmented set since the plan wants copies.
    Copied,
    /// Nobody has judged it yet.
    New,
}

impl Verdict {
    /// Whether the draft is in the augmented set.
    pub fn is_kept(self) -> bool {
        matches!(self, Self::Kept | Self::Copied)
    }
}

/// A line of `drafts.jsonl`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DraftRecord {
    /// The number of its source among the gold sentences, of its language if there are several, from 1; none if it was
    /// written from nothing.
    pub source: Option<usize>,
    /// The language of its source, or its own if it has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub language: Option<String>,
    /// The round it was generated in, from 1.
    pub round: u32,
    /// The seed of the run.
    pub seed: u64,
    /// What became of it.
    pub verdict: Verdict,
    /// Its tokens.
    pub tokens: Vec<String>,
    /// Their tags.
    pub tags: Vec<String>,
    /// What was replaced.
    pub replaced: Vec<ReplacedRecord>,
    /// What was replaced before, by code-mixing.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub mixed: Vec<ReplacedRecord>,
    /// Tokens that gave way to others of their tag, by `lwtr`, and where those stand.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub swapped: Vec<Swap>,
    /// Tokens that stayed as they were, since the guessed pieces spelled nothing sound.
    #[serde(default, skip_serializing_if = "is_none")]
    pub restored: usize,
    /// The judge's probability of its tags, all together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub probability: Option<f64>,
    /// Where the judge's tags are others.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub disagreements: Vec<Disagreement>,
}

/// A replaced mention.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ReplacedRecord {
    /// Which of the source's mentions it is, from 0.
    pub mention: usize,
    /// Its entity type.
    pub entity_type: String,
    /// Its first token in the draft, from 0.
    pub start: usize,
    /// The token after its last.
    pub end: usize,
    /// What stood there.
    pub old: Vec<String>,
    /// What stands there now.
    pub new: Vec<String>,
    /// The guessed pieces with their ranks and probabilities.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pieces: Vec<GuessedPiece>,
    /// Where it was taken from, if nothing was guessed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub donor: Option<Donor>,
    /// The language it was taken from, if another.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub language: Option<String>,
    /// The cosine of both, if that is why it was taken.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub similarity: Option<f32>,
}

impl From<Repeats> for Verdict {
    fn from(repeats: Repeats) -> Self {
        match repeats {
            Repeats::Source => Self::RepeatsSource,
            Repeats::Gold => Self::RepeatsGold,
            Repeats::Draft => Self::RepeatsDraft,
        }
    }
}

impl DraftRecord {
    /// The line of a draft of a corpus.
    pub fn new(draft: &Draft, corpus: &Corpus, seed: u64, verdict: Verdict) -> Self {
        let spell = |tag: &_| corpus.types().spell(*tag, corpus.scheme()).to_string();
        let (language, number) = match draft.source.map(|source| corpus.locate(source)) {
            Some((language, number)) => (language, Some(number)),
            None => {
                (draft.sentence.language().map(|own| &*corpus.languages()[own.index()].code), None)
            }
        };
        let replaced = |all: &[Replacement]| {
            all.iter().map(|one| ReplacedRecord::new(one, corpus, language)).collect()
        };
        let swapped =
            |swap: &Swap| Swap { sentence: corpus.locate(swap.sentence).1, ..swap.clone() };
        Self {
            source: number.map(|number| number + 1),
            language: language.map(ToOwned::to_owned),
            round: draft.round,
            seed,
            verdict,
            tokens: texts(draft.sentence.tokens()),
            tags: draft.sentence.tags().iter().map(spell).collect(),
            replaced: replaced(&draft.replacements),
            mixed: replaced(&draft.mixed),
            swapped: draft.swaps.iter().map(swapped).collect(),
            restored: draft.n_restored,
            probability: None,
            disagreements: Vec::new(),
        }
    }

    /// The position of its source in its corpus, if there is such a sentence.
    pub fn position(&self, corpus: &Corpus) -> Option<usize> {
        corpus.find(self.language.as_deref(), self.source?.checked_sub(1)?)
    }

    /// What it says that its source does not: type and tokens of every replaced mention; of every mention at all, if it
    /// was written from nothing.
    pub fn new_mentions(&self, corpus: &Corpus) -> Vec<(String, Vec<String>)> {
        if self.source.is_some() {
            let replaced = self.replaced.iter();
            return replaced.map(|one| (one.entity_type.clone(), one.new.clone())).collect();
        }
        let tags = self.tags_of(corpus).unwrap_or_default();
        let mention = |mention: Mention| {
            let name = corpus.types().name(mention.entity_type).to_owned();
            (name, self.tokens[mention.tokens].to_vec())
        };
        mentions(&tags).map(mention).collect()
    }

    /// Forgets what a judge said.
    pub fn reopen(&mut self, verdict: Verdict) {
        self.verdict = verdict;
        self.probability = None;
        self.disagreements.clear();
    }

    /// Writes down what the judge says.
    pub fn judge(&mut self, opinion: Opinion, mode: FilterMode) {
        self.verdict = match (opinion.passes, mode) {
            (true, _) => Verdict::Kept,
            (false, FilterMode::Probability) => Verdict::Unlikely,
            (false, _) => Verdict::Disagrees,
        };
        self.probability = Some(opinion.probability);
        self.disagreements = opinion.disagreements;
    }
}

impl ReplacedRecord {
    /// What became of a mention of a sentence in `language`.
    fn new(one: &Replacement, corpus: &Corpus, language: Option<&str>) -> Self {
        let place = one.donor.as_ref().map(|donor| corpus.locate(donor.sentence));
        let donor = one.donor.clone().zip(place);
        Self {
            mention: one.mention,
            entity_type: corpus.types().name(one.entity_type).to_owned(),
            start: one.tokens.start,
            end: one.tokens.end,
            old: texts(&one.old),
            new: texts(&one.new),
            pieces: one.pieces.clone(),
            donor: donor.map(|(donor, (_, sentence))| Donor { sentence, ..donor }),
            language: place.and_then(|(from, _)| from.filter(|_| from != language)).map(Into::into),
            similarity: one.similarity,
        }
    }
}

fn texts(tokens: &[Token]) -> Vec<String> {
    tokens.iter().map(ToString::to_string).collect()
}

/// Whether a count need not be written.
pub(super) fn is_none(n: &usize) -> bool {
    *n == 0
}

/// Lines of drafts as text.
pub fn to_lines<'r>(records: impl IntoIterator<Item = &'r DraftRecord>) -> String {
    let line = |record| serde_json::to_string(record).expect("a record is JSON") + "\n";
    records.into_iter().map(line).collect()
}

/// Reads lines of drafts of a corpus; `path` is for messages.
pub fn read_lines(path: &Path, text: &str, corpus: &Corpus) -> Result<Vec<Judged>, Error> {
    let read = |(at, line): (usize, &str)| {
        let record: Result<DraftRecord, _> = serde_json::from_str(line);
        let record = record.map_err(|error| error.to_string());
        let both = record.and_then(|record| {
            let draft = record.draft(corpus)?;
            Ok((record, draft))
        });
        both.map_err(|what| Error::NotADraft { path: path.to_path_buf(), line: at + 1, what })
    };
    text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()).map(read).collect()
}
