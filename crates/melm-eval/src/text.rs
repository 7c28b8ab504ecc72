//! Unlabelled text as a coordinate of a grid.

use std::collections::HashMap;
use std::fmt;
use std::str::FromStr;

use melm::random::Seed;
use melm::self_training::{
    GivenTags, LabelledText, TaggerVotes, TextCandidate, TextSummary, VoteKey, VoteStore,
};
use melm_text::{Corpus, Mention, Sentence};
use serde::{Deserialize, Serialize};

use crate::Cell;
use crate::noise::Noise;

/// The unlabelled text of a cell: none, or at most a number of sentences of some languages. Written as `none`, `8000` (of the
/// languages that the tagger learns from) or `de+es 3000` (of each of these languages). `8000 noise 0.2` is silver: the
/// sentences have their true tags, except for a share of the mentions (`noise.rs`).
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct TextChoice {
    /// The maximum number of sentences of each language; 0 for none.
    pub size: usize,
    /// The languages. Empty for the languages that the tagger learns from.
    pub languages: Vec<String>,
    /// The share of wrong mentions in percent, if the sentences have tags.
    pub noise_percent: Option<u8>,
}

impl TextChoice {
    /// Returns true if the cell has no unlabelled text.
    pub fn is_none(&self) -> bool {
        self.size == 0
    }
}

impl fmt::Display for TextChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.languages[..] {
            _ if self.size == 0 => return f.write_str("none"),
            [] => write!(f, "{}", self.size)?,
            languages => write!(f, "{} {}", languages.join("+"), self.size)?,
        }
        match self.noise_percent {
            Some(percent) => write!(f, " noise {}", f64::from(percent) / 100.0),
            None => Ok(()),
        }
    }
}

impl FromStr for TextChoice {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "none" {
            return Ok(Self::default());
        }
        let wrong = || {
            format!(
                "`{text}` is not a choice of text: expected `none`, `3000`, `de+es 3000` or `3000 noise 0.2`"
            )
        };
        let (sentences, noise) = match text.split_once(" noise ") {
            Some((sentences, noise)) => (sentences, Some(noise)),
            None => (text, None),
        };
        let noise_percent =
            noise.map(|noise| parse_percent(noise).ok_or_else(wrong)).transpose()?;
        let (languages, size) = sentences.rsplit_once(' ').unwrap_or(("", sentences));
        let languages: Vec<String> = match languages {
            "" => Vec::new(),
            languages => languages.split('+').map(str::to_owned).collect(),
        };
        let size = size.parse().ok().filter(|size| *size > 0);
        let is_repeated = |at: usize| languages[..at].contains(&languages[at]);
        let is_valid = (0..languages.len()).all(|at| !languages[at].is_empty() && !is_repeated(at));
        let size = size.filter(|_| is_valid).ok_or_else(wrong)?;
        Ok(Self { size, languages, noise_percent })
    }
}

/// Parses a share from 0 to 1 with at most two decimals. Returns it in percent.
fn parse_percent(text: &str) -> Option<u8> {
    let percent = text.parse::<f64>().ok()? * 100.0;
    (0..=100).find(|whole| (f64::from(*whole) - percent).abs() < 1e-9)
}

impl TryFrom<String> for TextChoice {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl From<TextChoice> for String {
    fn from(choice: TextChoice) -> Self {
        choice.to_string()
    }
}

/// Stores the votes of taggers in memory, so that cells with the same gold share them.
#[derive(Default)]
pub(crate) struct MemoryVotes(HashMap<VoteKey, TaggerVotes>);

impl VoteStore for MemoryVotes {
    fn load(&mut self, key: &VoteKey) -> Option<TaggerVotes> {
        self.0.get(key).cloned()
    }

    fn save(&mut self, key: &VoteKey, votes: &TaggerVotes) -> Result<(), melm::Error> {
        self.0.insert(key.clone(), votes.clone());
        Ok(())
    }
}

/// The labelled text of a cell: how many sentences were kept, and how many of the labels are right.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TextResult {
    /// The counts of each pass.
    pub passes: Vec<TextSummary>,
    /// The number of sentences that could not be drawn, because they are in gold, a dev set or a test set, or repeat
    /// another.
    #[serde(default)]
    pub left_out: usize,
    /// Kept sentences, and how many of them have exactly the true tags. `None` if the text has no tags.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kept: Option<Accuracy>,
    /// The given tags of silver sentences, compared with the true ones.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub given: Option<Accuracy>,
    /// For each number of votes from 0, the sentences in which the panel found a mention and on which so many taggers
    /// agree.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub by_votes: Vec<Accuracy>,
}

/// The number of labelled sentences and mentions, and how many are right.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Accuracy {
    /// Sentences.
    pub sentences: usize,
    /// Sentences with exactly the true tags.
    pub right_sentences: usize,
    /// True mentions in these sentences.
    pub true_mentions: usize,
    /// Labelled mentions.
    pub mentions: usize,
    /// Labelled mentions that are true mentions.
    pub right_mentions: usize,
}

impl Accuracy {
    /// Adds the counts of other sentences.
    pub(crate) fn merge(&mut self, other: &Self) {
        self.sentences += other.sentences;
        self.right_sentences += other.right_sentences;
        self.true_mentions += other.true_mentions;
        self.mentions += other.mentions;
        self.right_mentions += other.right_mentions;
    }

    /// Adds a sentence with its labelled and its true mentions.
    pub(crate) fn add(&mut self, labelled: &[NamedMention<'_>], truth: &[NamedMention<'_>]) {
        self.sentences += 1;
        self.right_sentences += usize::from(labelled == truth);
        self.true_mentions += truth.len();
        self.mentions += labelled.len();
        self.right_mentions += labelled.iter().filter(|one| truth.contains(one)).count();
    }
}

/// The name of a mention's entity type, its first token in the sentence of the text and the token after its last.
pub(crate) type NamedMention<'a> = (&'a str, usize, usize);

impl TextResult {
    /// Counts the labels of a text. The labels have the types of `gold`. `truth` is the text with its true tags, if
    /// they are known.
    pub(crate) fn new(
        labelled: &LabelledText,
        n_left_out: usize,
        gold: &Corpus,
        truth: Option<&Corpus>,
    ) -> Self {
        let passes = labelled.passes.clone();
        let Some(truth) = truth else {
            return Self { passes, left_out: n_left_out, ..Self::default() };
        };
        let mut kept = Accuracy::default();
        let mut by_votes: Vec<Accuracy> = Vec::new();
        for candidate in &labelled.candidates {
            let found = named(&candidate.sentence, gold, candidate.first_token);
            let wanted = true_mentions(candidate, truth);
            if candidate.verdict.is_kept() {
                kept.add(&found, &wanted);
            }
            if !found.is_empty() {
                let n = by_votes.len().max(candidate.votes + 1);
                by_votes.resize(n, Accuracy::default());
                by_votes[candidate.votes].add(&found, &wanted);
            }
        }
        Self { passes, left_out: n_left_out, kept: Some(kept), given: None, by_votes }
    }
}

/// Returns the true tags of the text of a cell with noise, and how right they are. Returns nothing if the text has no tags.
/// Mentions of types that `gold` does not have are left out, as `--silver-drop-types` does.
pub(crate) fn give_tags(
    cell: &Cell,
    text: &Corpus,
    gold: &Corpus,
) -> (Vec<GivenTags>, Option<Accuracy>) {
    let Some(percent) = cell.text.noise_percent else { return (Vec::new(), None) };
    let types = gold.types();
    let key = Seed(cell.draw).stream("noise");
    let mut noise = Noise::new(f64::from(percent) / 100.0, types.iter().collect(), key);
    let mut accuracy = Accuracy::default();
    let mut all = Vec::new();
    for sentence in text.sentences() {
        let own = |mention: Mention| {
            let entity_type = types.find(text.types().name(mention.entity_type))?;
            Some(Mention { entity_type, ..mention })
        };
        let truth: Vec<Mention> = sentence.mentions().filter_map(own).collect();
        let mentions = noise.apply(&truth, sentence.tokens().len());
        let given = sentence.clone().with_mentions(mentions.clone(), gold.scheme());
        accuracy.add(&named(&given, gold, 0), &named(sentence, text, 0));
        all.push(GivenTags { source: "noisy".to_owned(), mentions });
    }
    (all, Some(accuracy))
}

/// Returns the true mentions of the tokens of a candidate. A mention that is only partly inside is one of them: no label
/// of the candidate can be equal to it.
fn true_mentions<'t>(candidate: &TextCandidate, truth: &'t Corpus) -> Vec<NamedMention<'t>> {
    let first = candidate.first_token;
    let end = first + candidate.sentence.tokens().len();
    let mut all = named(&truth.sentences()[candidate.number], truth, 0);
    all.retain(|(_, start, stop)| *start < end && *stop > first);
    all
}

/// Returns the mentions of a sentence that begins at token `first` of the sentence of the text.
pub(crate) fn named<'c>(
    sentence: &Sentence,
    corpus: &'c Corpus,
    first: usize,
) -> Vec<NamedMention<'c>> {
    let named = |mention: Mention| {
        let name = corpus.types().name(mention.entity_type);
        (name, first + mention.tokens.start, first + mention.tokens.end)
    };
    sentence.mentions().map(named).collect()
}
