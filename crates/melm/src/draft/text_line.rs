//! Labelled sentences of unlabelled text as lines of `drafts.jsonl`.

use melm_text::{Corpus, EntityTypes, Sentence, UnlabelledText};
use serde::{Deserialize, Serialize};

use super::Verdict;
use super::line::{is_zero, parse_tags, parse_tokens, spell_tags, texts};
use super::origin::Origin;
use crate::self_training::{GivenTags, ProposedMention, TextCandidate};

/// A sentence of unlabelled text that was read from a line of `drafts.jsonl`.
#[derive(Clone, Debug, PartialEq)]
pub struct TextLine {
    /// The sentence with the tags that the panel chose. Its language is not set: see [`Self::language`].
    pub sentence: Sentence,
    /// The language code, if the text has one.
    pub language: Option<String>,
    /// The decision about the sentence.
    pub verdict: Verdict,
    /// The line, without its line break.
    pub json: String,
}

/// The JSON form of a sentence of unlabelled text.
#[derive(Serialize, Deserialize)]
struct TextJson {
    origin: Origin,
    /// The file and the line that the sentence comes from.
    file: String,
    line: usize,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    language: Option<String>,
    pass: u32,
    verdict: Verdict,
    tokens: Vec<String>,
    tags: Vec<String>,
    /// The first token of the sentence in the text, if only a part of it was kept.
    #[serde(default, skip_serializing_if = "is_zero")]
    first_token: usize,
    /// The number of taggers that predict exactly these tags.
    votes: usize,
    /// The number of taggers.
    panel: usize,
    /// The probability that each tagger gives to its own tags.
    probabilities: Vec<f64>,
    mentions: Vec<ProposedLine>,
    /// The tags that the source of a silver sentence gave.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    given: Option<Vec<String>>,
}

/// The JSON form of a mention that a tagger predicts. The tokens count from the start of the sentence in the text.
#[derive(Serialize, Deserialize)]
pub(crate) struct ProposedLine {
    entity_type: String,
    start: usize,
    end: usize,
    votes: usize,
}

impl ProposedLine {
    /// Returns the JSON form of a mention whose type is one of `types`.
    pub(crate) fn new(one: &ProposedMention, types: &EntityTypes) -> Self {
        Self {
            entity_type: types.name(one.mention.entity_type).to_owned(),
            start: one.mention.tokens.start,
            end: one.mention.tokens.end,
            votes: one.votes,
        }
    }
}

/// Writes sentences of `text` that were labelled with the types and the scheme of `gold` as JSON lines. `given` are the
/// tags that somebody else gave to the first sentences of the text.
pub fn text_to_lines(
    candidates: &[TextCandidate],
    text: &UnlabelledText,
    given: &[GivenTags],
    gold: &Corpus,
) -> String {
    let line = |candidate: &TextCandidate| {
        let line = TextJson::new(candidate, text, given.get(candidate.number), gold);
        serde_json::to_string(&line).expect("a candidate has only JSON values") + "\n"
    };
    candidates.iter().map(line).collect()
}

impl TextLine {
    /// Returns the line with another verdict.
    #[must_use]
    pub(super) fn with_verdict(&self, verdict: Verdict) -> Self {
        let line: TextJson = serde_json::from_str(&self.json).expect("the line was read before");
        let line = TextJson { verdict, ..line };
        let json = serde_json::to_string(&line).expect("a candidate has only JSON values");
        Self { verdict, json, ..self.clone() }
    }
}

impl TextJson {
    fn new(
        candidate: &TextCandidate,
        text: &UnlabelledText,
        given: Option<&GivenTags>,
        gold: &Corpus,
    ) -> Self {
        let source = &text.sentences()[candidate.number];
        let proposed = |one: &ProposedMention| ProposedLine::new(one, gold.types());
        Self {
            origin: given.map_or(Origin::Text, |given| Origin::Silver(given.source.clone())),
            file: source.file().to_owned(),
            line: source.line(),
            language: source.language().map(ToOwned::to_owned),
            pass: candidate.pass,
            verdict: candidate.verdict,
            tokens: texts(candidate.sentence.tokens()),
            tags: spell_tags(candidate.sentence.tags(), gold),
            first_token: candidate.first_token,
            votes: candidate.votes,
            panel: candidate.n_taggers,
            probabilities: candidate.probabilities.clone(),
            mentions: candidate.proposed.iter().map(proposed).collect(),
            given: given.map(|given| {
                let tagged =
                    source.to_sentence().with_mentions(given.mentions.clone(), gold.scheme());
                spell_tags(tagged.tags(), gold)
            }),
        }
    }
}

/// Reads a sentence of unlabelled text from its line. Fails with the reason if the line is not valid, or if its tags
/// are not tags of `gold`.
pub(super) fn read_text_line(json: &str, gold: &Corpus) -> Result<TextLine, String> {
    let line: TextJson = serde_json::from_str(json).map_err(|error| error.to_string())?;
    let sentence = Sentence::new(parse_tokens(&line.tokens)?, parse_tags(&line.tags, gold)?);
    let sentence = sentence.map_err(|fault| fault.to_string())?;
    if gold.scheme().violations(sentence.tags()).next().is_some() {
        return Err(format!("the tags are not valid in {}", gold.scheme()));
    }
    let (language, verdict) = (line.language, line.verdict);
    Ok(TextLine { sentence, language, verdict, json: json.to_owned() })
}
