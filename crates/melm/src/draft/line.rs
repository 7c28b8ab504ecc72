//! Drafts as lines of `drafts.jsonl`.
//!
//! A line contains the text of its tokens, entity types and tags, so that it can be read without this program. To
//! read a line, its replacements are applied to the gold sentence again, and the result is compared with the line. A
//! line that does not match the gold corpus is an error.

use std::path::Path;

use melm_text::{Corpus, Language, LanguagePart, Mention, Sentence, Tag, Token};
use serde::{Deserialize, Serialize};

use super::origin::Origin;
use super::text_line::{TextLine, read_text_line};
use super::{Disagreement, Donor, Draft, GuessedPiece, Replacement, Swap, Verdict};
use crate::Error;
use crate::methods::{NewMention, replace_mentions, swap_tokens};
use crate::names::NameOrigin;

/// The candidates that [`read_lines`] reads.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CandidateLines {
    /// The drafts, in order.
    pub drafts: Vec<Draft>,
    /// The sentences of unlabelled text, in order.
    pub text: Vec<TextLine>,
}

/// The key that says which kind of candidate a line is.
#[derive(Deserialize)]
struct KindOfLine {
    #[serde(default)]
    origin: Origin,
}

/// The JSON form of a draft.
#[derive(Serialize, Deserialize)]
struct Line {
    #[serde(default)]
    origin: Origin,
    /// The number of the source sentence in the file of its language, from 1.
    source: Option<usize>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    language: Option<String>,
    round: u32,
    seed: u64,
    verdict: Verdict,
    tokens: Vec<String>,
    tags: Vec<String>,
    replaced: Vec<Replaced>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    mixed: Vec<Replaced>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    swapped: Vec<Swap>,
    #[serde(default, skip_serializing_if = "is_zero")]
    restored: usize,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    probability: Option<f64>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    disagreements: Vec<Disagreement>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    votes: Option<usize>,
}

/// The JSON form of a replaced mention.
#[derive(Serialize, Deserialize)]
struct Replaced {
    mention: usize,
    entity_type: String,
    start: usize,
    end: usize,
    old: Vec<String>,
    new: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pieces: Vec<GuessedPiece>,
    /// The mention that replaced the old one. The sentence index counts within the file of the donor's language, from
    /// 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    donor: Option<Donor>,
    /// The origin of the new tokens, if they are a name that was not taken from gold.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    from: Option<NameOrigin>,
    /// The language of the donor, if it is not the language of the source.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    language: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    similarity: Option<f32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    score: Option<f64>,
}

/// Returns true if a count is 0 and is therefore left out of the JSON form.
pub(crate) fn is_zero(n: &usize) -> bool {
    *n == 0
}

/// Writes drafts of `gold` as JSON lines.
pub fn to_lines<'d>(drafts: impl IntoIterator<Item = &'d Draft>, gold: &Corpus) -> String {
    let line = |draft| {
        serde_json::to_string(&Line::new(draft, gold)).expect("a draft has only JSON values") + "\n"
    };
    drafts.into_iter().map(line).collect()
}

/// Reads drafts of `gold` and sentences of unlabelled text from JSON lines; `path` is for messages.
///
/// # Errors
/// If a line is not JSON, or is neither a draft of this corpus nor a sentence with its tags.
pub fn read_lines(path: &Path, text: &str, gold: &Corpus) -> Result<CandidateLines, Error> {
    let mut all = CandidateLines::default();
    for (at, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        all.read(line, gold).map_err(|what| {
            let path = path.to_path_buf();
            Error::NotADraft { path, line: at + 1, what }
        })?;
    }
    Ok(all)
}

impl CandidateLines {
    fn read(&mut self, line: &str, gold: &Corpus) -> Result<(), String> {
        let failed = |error: serde_json::Error| error.to_string();
        let KindOfLine { origin } = serde_json::from_str(line).map_err(failed)?;
        match origin {
            Origin::Draft => {
                let parsed: Line = serde_json::from_str(line).map_err(failed)?;
                self.drafts.push(parsed.to_draft(gold)?);
            }
            Origin::Text | Origin::Silver(_) => self.text.push(read_text_line(line, gold)?),
        }
        Ok(())
    }
}

impl Line {
    fn new(draft: &Draft, gold: &Corpus) -> Self {
        let language = draft.language(gold);
        let replaced = |all: &[Replacement]| {
            all.iter().map(|one| Replaced::new(one, gold, language)).collect()
        };
        let swapped = |swap: &Swap| Swap { sentence: gold.locate(swap.sentence).1, ..swap.clone() };
        Self {
            origin: Origin::Draft,
            source: draft.source.map(|source| gold.locate(source).1 + 1),
            language: language.map(ToOwned::to_owned),
            round: draft.round,
            seed: draft.seed,
            verdict: draft.verdict,
            tokens: texts(draft.sentence.tokens()),
            tags: spell_tags(draft.sentence.tags(), gold),
            replaced: replaced(&draft.replacements),
            mixed: replaced(&draft.mixed),
            swapped: draft.swaps.iter().map(swapped).collect(),
            restored: draft.n_restored,
            probability: draft.probability,
            disagreements: draft.disagreements.clone(),
            votes: draft.votes,
        }
    }

    /// Makes the draft again from its source, and fails if the result differs from the line.
    fn to_draft(&self, gold: &Corpus) -> Result<Draft, String> {
        let made = match self.source {
            None => self.whole_sentence(gold)?,
            Some(number) => self.apply_to(self.source_index(number, gold)?, gold)?,
        };
        let draft = Draft {
            seed: self.seed,
            n_restored: self.restored,
            verdict: self.verdict,
            probability: self.probability,
            disagreements: self.disagreements.clone(),
            votes: self.votes,
            ..made
        };
        let again = Self::new(&draft, gold);
        if (&again.tokens, &again.tags) != (&self.tokens, &self.tags) {
            return Err(
                "the tokens and tags are not those of the source with its mentions replaced".into(),
            );
        }
        let ranges = |line: &Self| -> Vec<_> {
            line.replaced.iter().map(|one| one.start..one.end).collect()
        };
        if ranges(&again) != ranges(self) {
            let (expected, found) = (ranges(&again), ranges(self));
            return Err(format!("the replaced mentions are at {found:?}, expected {expected:?}"));
        }
        Ok(draft)
    }

    fn source_index(&self, number: usize, gold: &Corpus) -> Result<usize, String> {
        let language = self.language.as_deref();
        let index = number.checked_sub(1).and_then(|number| gold.find(language, number));
        index.ok_or_else(|| match language {
            Some(language) => format!("there is no sentence {number} in `{language}`"),
            None => format!("there is no sentence {number}"),
        })
    }

    /// Applies the replacements of the line to the gold sentence at index `source`.
    fn apply_to(&self, source: usize, gold: &Corpus) -> Result<Draft, String> {
        let mixed = match &self.mixed[..] {
            [] => None,
            mixed => Some(self.substitute(mixed, source, gold)?),
        };
        let base = mixed.as_ref().map_or(&gold.sentences()[source], |draft| &draft.sentence);
        let draft = if self.replaced.iter().any(|one| one.donor.is_some() || one.from.is_some()) {
            self.substitute(&self.replaced, source, gold)?
        } else if self.swapped.is_empty() {
            self.guess(base, source, gold)?
        } else {
            swap_tokens(gold, source, self.round, self.swaps(source, gold)?)
        };
        Ok(Draft { mixed: mixed.map_or(Vec::new(), |draft| draft.replacements), ..draft })
    }

    /// Makes the draft of a line without a source.
    fn whole_sentence(&self, gold: &Corpus) -> Result<Draft, String> {
        if !(self.replaced.is_empty() && self.mixed.is_empty() && self.swapped.is_empty()) {
            return Err("the draft has replacements but no source".into());
        }
        let sentence = Sentence::new(parse_tokens(&self.tokens)?, parse_tags(&self.tags, gold)?);
        let mut sentence = sentence.map_err(|fault| fault.to_string())?;
        if self.language.is_some() || !gold.languages().is_empty() {
            let is_own = |part: &LanguagePart| Some(&*part.code) == self.language.as_deref();
            let own = gold.languages().iter().position(is_own);
            let own = own.ok_or("the draft's language is not a language of the corpus")?;
            sentence = sentence.with_language(Language::from_index(own));
        }
        if gold.scheme().violations(sentence.tags()).next().is_some() {
            return Err(format!("the tags are not valid in {}", gold.scheme()));
        }
        Ok(Draft::without_source(sentence, self.round))
    }

    /// Makes a draft of the source in which mentions are replaced by mentions of other sentences.
    fn substitute(
        &self,
        replaced: &[Replaced],
        source: usize,
        gold: &Corpus,
    ) -> Result<Draft, String> {
        let sentence = &gold.sentences()[source];
        let mut donors: Vec<Option<NewMention>> = sentence.mentions().map(|_| None).collect();
        for one in replaced {
            let mention = one.mention_of(sentence, gold)?;
            if let Some(origin) = one.from {
                let tokens = parse_tokens(&one.new)?;
                donors[one.mention] = Some(NewMention::Name { tokens, origin });
                continue;
            }
            let missing = || format!("mention {} has no replacement in the corpus", one.mention);
            let donor = one.donor.as_ref().ok_or_else(missing)?;
            let language = one.language.as_deref().or(self.language.as_deref());
            let from = gold.find(language, donor.sentence).ok_or_else(missing)?;
            let wanted = Mention { entity_type: mention.entity_type, tokens: donor.tokens.clone() };
            if !gold.sentences()[from].mentions().any(|other| other == wanted) {
                return Err(missing());
            }
            let donor = Donor { sentence: from, tokens: donor.tokens.clone() };
            donors[one.mention] = Some(NewMention::Gold(donor));
        }
        let mut draft = replace_mentions(gold, source, self.round, &donors);
        for (replacement, one) in draft.replacements.iter_mut().zip(replaced) {
            replacement.similarity = one.similarity;
        }
        Ok(draft)
    }

    /// Makes a draft of `base` with guessed tokens in its mentions. `base` is the source or its code-mixed version.
    fn guess(&self, base: &Sentence, source: usize, gold: &Corpus) -> Result<Draft, String> {
        let (mut guessed, mut replacements) = (Vec::new(), Vec::new());
        for one in &self.replaced {
            let mention = one.mention_of(base, gold)?;
            let new = parse_tokens(&one.new)?;
            if new.len() != mention.tokens.len() {
                return Err(format!("mention {} has another number of tokens", one.mention));
            }
            guessed.extend(mention.tokens.clone().zip(new.iter().cloned()));
            replacements.push(Replacement {
                mention: one.mention,
                old: base.tokens()[mention.tokens.clone()].to_vec(),
                tokens: mention.tokens,
                entity_type: mention.entity_type,
                new,
                pieces: one.pieces.clone(),
                donor: None,
                name: None,
                similarity: None,
                score: one.score,
            });
        }
        Ok(Draft::new(base.with_tokens(guessed), source, self.round, replacements))
    }

    /// Returns the swaps. Fails unless they are in the order of the tokens and each new token has the same tag and
    /// language as the old one.
    fn swaps(&self, source: usize, gold: &Corpus) -> Result<Vec<Swap>, String> {
        let tag = |sentence: usize, at: usize| gold.sentences().get(sentence)?.tags().get(at);
        let (mut swaps, mut next) = (Vec::new(), 0);
        for swap in &self.swapped {
            let missing = || format!("token {} has no replacement in the corpus", swap.token);
            let sentence =
                gold.find(self.language.as_deref(), swap.sentence).ok_or_else(missing)?;
            let own = tag(source, swap.token).filter(|_| swap.token >= next);
            if own.is_none() || own != tag(sentence, swap.from) {
                return Err(missing());
            }
            next = swap.token + 1;
            swaps.push(Swap { sentence, ..swap.clone() });
        }
        Ok(swaps)
    }
}

impl Replaced {
    /// Returns the JSON form of a replaced mention. `language` is the language of its sentence.
    fn new(one: &Replacement, gold: &Corpus, language: Option<&str>) -> Self {
        let place = one.donor.as_ref().map(|donor| gold.locate(donor.sentence));
        let donor = one.donor.clone().zip(place);
        Self {
            mention: one.mention,
            entity_type: gold.types().name(one.entity_type).to_owned(),
            start: one.tokens.start,
            end: one.tokens.end,
            old: texts(&one.old),
            new: texts(&one.new),
            pieces: one.pieces.clone(),
            donor: donor.map(|(donor, (_, sentence))| Donor { sentence, ..donor }),
            language: place.and_then(|(from, _)| from.filter(|_| from != language)).map(Into::into),
            from: one.name,
            similarity: one.similarity,
            score: one.score,
        }
    }

    /// Returns the replaced mention of `sentence`. Fails if its text or type differs from the line.
    fn mention_of(&self, sentence: &Sentence, gold: &Corpus) -> Result<Mention, String> {
        let is_same = |mention: &Mention| {
            let old = sentence.tokens()[mention.tokens.clone()].iter().map(Token::as_str);
            old.eq(self.old.iter().map(String::as_str))
                && gold.types().name(mention.entity_type) == self.entity_type
        };
        let mention = sentence.mentions().nth(self.mention).filter(is_same);
        mention.ok_or_else(|| {
            let (old, name) = (self.old.join(" "), &self.entity_type);
            format!("mention {} of the source is not the {name} `{old}`", self.mention)
        })
    }
}

pub(crate) fn texts(tokens: &[Token]) -> Vec<String> {
    tokens.iter().map(ToString::to_string).collect()
}

/// Returns the texts of tags in the scheme of `gold`.
pub(crate) fn spell_tags(tags: &[Tag], gold: &Corpus) -> Vec<String> {
    tags.iter().map(|tag| gold.types().spell(*tag, gold.scheme()).to_string()).collect()
}

pub(super) fn parse_tokens(texts: &[String]) -> Result<Vec<Token>, String> {
    let tokens = texts.iter().map(|text| Token::new(text).map_err(|fault| fault.to_string()));
    tokens.collect()
}

/// Parses tags. Fails if a type is not a type of `gold`.
pub(super) fn parse_tags(texts: &[String], gold: &Corpus) -> Result<Vec<Tag>, String> {
    let mut types = gold.types().clone();
    let n_types = types.iter().count();
    let mut parse = |text: &String| {
        let tag = types.parse(text).map_err(|fault| fault.to_string())?;
        match tag.entity_type() {
            Some(new) if new.index() >= n_types => Err(format!("the corpus has no tag `{text}`")),
            _ => Ok(tag),
        }
    };
    texts.iter().map(&mut parse).collect()
}
