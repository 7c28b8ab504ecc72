//! A draft as a line of `drafts.jsonl`: what it says, where it comes from, and what became of it.

use std::path::Path;

use melm_text::{Corpus, Mention, Sentence, Tag, Token, mentions};
use serde::{Deserialize, Serialize};

use super::Judged;
use crate::Error;
use crate::baselines::substituted;
use crate::draft::{Donor, Draft, GuessedPiece, Repeats, Replacement};
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
    /// The number of its source among the gold sentences, from 1; none if it was written from nothing.
    pub source: Option<usize>,
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
        let texts = |tokens: &[Token]| tokens.iter().map(ToString::to_string).collect();
        let spell = |tag: &_| corpus.types().spell(*tag, corpus.scheme()).to_string();
        let replaced = |one: &Replacement| ReplacedRecord {
            mention: one.mention,
            entity_type: corpus.types().name(one.entity_type).to_owned(),
            start: one.tokens.start,
            end: one.tokens.end,
            old: texts(&one.old),
            new: texts(&one.new),
            pieces: one.pieces.clone(),
            donor: one.donor.clone(),
        };
        Self {
            source: draft.source.map(|source| source + 1),
            round: draft.round,
            seed,
            verdict,
            tokens: texts(draft.sentence.tokens()),
            tags: draft.sentence.tags().iter().map(spell).collect(),
            replaced: draft.replacements.iter().map(replaced).collect(),
            restored: draft.n_restored,
            probability: None,
            disagreements: Vec::new(),
        }
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

    /// The draft of this line; what is wrong if it is none of this corpus.
    pub fn draft(&self, corpus: &Corpus) -> Result<Draft, String> {
        let Some(number) = self.source else { return self.written(corpus) };
        let source = number.checked_sub(1).filter(|at| *at < corpus.sentences().len());
        let source = source.ok_or(format!("there is no sentence {number}"))?;
        let sentence = &corpus.sentences()[source];
        let mentions: Vec<_> = sentence.mentions().collect();
        let mut donors = vec![None; mentions.len()];
        let (mut tokens, mut replacements) = (Vec::new(), Vec::new());
        for one in &self.replaced {
            let wrong = || format!("mention {} of sentence {number} is another", one.mention);
            let mention = mentions.get(one.mention).ok_or_else(wrong)?;
            let new: Result<Vec<_>, _> = one.new.iter().map(|text| Token::new(text)).collect();
            let new = new.map_err(|fault| fault.to_string())?;
            let old = sentence.tokens()[mention.tokens.clone()].to_vec();
            let is_same =
                old.iter().map(AsRef::<str>::as_ref).eq(one.old.iter().map(String::as_str))
                    && corpus.types().name(mention.entity_type) == one.entity_type;
            if !is_same {
                return Err(wrong());
            }
            if let Some(donor) = &one.donor {
                let from = corpus.sentences().get(donor.sentence).ok_or_else(wrong)?;
                let given =
                    Mention { entity_type: mention.entity_type, tokens: donor.tokens.clone() };
                if !from.mentions().any(|other| other == given) {
                    return Err(format!("what takes the place of mention {} is none", one.mention));
                }
                donors[one.mention] = Some(donor.clone());
            } else if new.len() == mention.tokens.len() && one.start == mention.tokens.start {
                let place = mention.tokens.clone();
                tokens.extend(place.zip(new.iter().cloned()));
            } else {
                return Err(wrong());
            }
            let (range, pieces) = (one.start..one.start + new.len(), one.pieces.clone());
            let (mention, entity_type) = (one.mention, mention.entity_type);
            let donor = one.donor.clone();
            replacements.push(Replacement {
                mention,
                tokens: range,
                entity_type,
                old,
                new,
                pieces,
                donor,
            });
        }
        let draft = if donors.iter().any(Option::is_some) {
            substituted(corpus, (source, self.round), &donors)
        } else {
            let sentence = sentence.with_tokens(tokens);
            let (source, round) = (Some(source), self.round);
            Draft { sentence, source, round, replacements, n_restored: self.restored }
        };
        let again = Self::new(&draft, corpus, self.seed, self.verdict);
        let places = |record: &Self| -> Vec<(usize, usize)> {
            record.replaced.iter().map(|one| (one.start, one.end)).collect()
        };
        if (&again.tokens, &again.tags) != (&self.tokens, &self.tags) {
            Err("its tokens and tags are not its source's with the mentions replaced".to_owned())
        } else if places(&again) != places(self) {
            Err("its mentions are elsewhere".to_owned())
        } else {
            Ok(draft)
        }
    }

    /// The draft of a line without a source.
    fn written(&self, corpus: &Corpus) -> Result<Draft, String> {
        if !self.replaced.is_empty() {
            return Err("it replaces mentions, but has no source".to_owned());
        }
        let tokens: Result<Vec<_>, _> = self.tokens.iter().map(|text| Token::new(text)).collect();
        let tokens = tokens.map_err(|fault| fault.to_string())?;
        let sentence = Sentence::new(tokens, self.tags_of(corpus)?);
        let sentence = sentence.map_err(|fault| fault.to_string())?;
        if corpus.scheme().breaks(sentence.tags()).next().is_some() {
            return Err(format!("its tags are not valid in {}", corpus.scheme()));
        }
        let (source, round, replacements) = (None, self.round, Vec::new());
        Ok(Draft { sentence, source, round, replacements, n_restored: 0 })
    }

    /// Its tags, all of whose types the corpus has.
    fn tags_of(&self, corpus: &Corpus) -> Result<Vec<Tag>, String> {
        let mut types = corpus.types().clone();
        let n_types = types.iter().count();
        let mut parse = |text: &String| {
            let tag = types.parse(text).map_err(|fault| fault.to_string())?;
            match tag.entity_type() {
                Some(new) if new.index() >= n_types => Err(format!("the corpus has no `{text}`")),
                _ => Ok(tag),
            }
        };
        self.tags.iter().map(&mut parse).collect()
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
