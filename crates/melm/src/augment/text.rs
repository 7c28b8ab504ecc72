//! Unlabelled text in a run: the sentences to label, and the result.

use melm_text::{
    Corpus, KnownSentences, Language, LeftOut, Sentence, SentenceRole, TextFile,
    UnlabelledSentence, UnlabelledText,
};
use serde_json::{Value, json};

use super::algorithm::{Drafts, Gold};
use super::job::AugmentJob;
use super::silver::{Silver, SilverOutcome, SilverTexts};
use crate::Error;
use crate::draft::text_to_lines;
use crate::files::Fingerprint;
use crate::self_training::{LabelledText, SelfTrainingData, TextSummary, label_text};
use crate::shard::Shard;
use crate::stage::Run;

/// Unlabelled text that is ready to be labelled.
pub(crate) struct TextToLabel {
    /// The sentences, without those that were left out.
    pub(crate) text: UnlabelledText,
    /// The numbers of sentences that were left out.
    pub(crate) left_out: LeftOut,
    /// The files whose sentences were left out.
    held_out: Vec<TextFile>,
    /// The gold corpus, with all languages of the text.
    pub(crate) gold: Corpus,
    /// The silver sources. Their sentences come first in `text` and `sentences`.
    pub(super) silver: SilverTexts,
    /// The sentences with the language indices of `gold`. All tags are `O`.
    pub(crate) sentences: Vec<Sentence>,
}

/// The labelled sentences of a run's unlabelled text.
pub struct TextOutcome {
    /// The numbers of sentences that were left out before labelling.
    pub left_out: LeftOut,
    /// The label and the verdict of each sentence, and the counts of each pass.
    pub labelled: LabelledText,
    /// The text of `drafts.jsonl` for these sentences: one line for each.
    pub lines: String,
    /// What became of the sentences of each silver source.
    pub silver: Vec<SilverOutcome>,
}

impl TextOutcome {
    /// The counts of the last pass, which decides what is kept.
    pub fn summary(&self) -> &TextSummary {
        self.labelled.passes.last().expect("a run has at least one pass")
    }
}

impl TextToLabel {
    /// Prepares a text, which is labelled with the tags of the training set. Leaves out repeated sentences, and those of
    /// `gold` and `held_out`. Fails if only one of the training set and the text has languages, if no sentence is left, or
    /// if the format of the training set cannot store a token.
    ///
    /// The sentences of `silver` come first. A sentence of the text that is also in `silver` is left out.
    pub(crate) fn new(
        text: &UnlabelledText,
        silver: &[Silver],
        gold: Gold<'_>,
        held_out: &[UnlabelledText],
    ) -> Result<Self, Error> {
        check_languages(text, gold.train)?;
        let known = KnownSentences::new(gold.train, gold.dev, held_out);
        let silver = SilverTexts::new(silver, gold.train, &known)?;
        let silver_text = UnlabelledText::new(silver.sentences.clone());
        let (kept, left_out) = text.without(&known.with_text(SentenceRole::Text, &silver_text));
        let left_out = left_out.plus(silver.left_out);
        let kept = UnlabelledText::join([silver_text, kept]);
        match (kept.sentences().len(), left_out.total()) {
            (0, 0) => return Err(Error::NoText),
            (0, _) => return Err(Error::KnownText),
            _ => {}
        }
        let gold = with_languages(gold.train, text);
        check_tokens(&kept, &gold)?;
        let sentences = kept.sentences().iter().map(|one| to_sentence(one, &gold)).collect();
        let held_out = held_out.iter().flat_map(|text| text.files().iter().cloned()).collect();
        Ok(Self { text: kept, left_out, held_out, gold, silver, sentences })
    }

    /// The entry of the text in `run.json`: its files, the held-out files, and the counts of each pass.
    pub(super) fn record(&self, outcome: &TextOutcome) -> Value {
        let mut record = json!({
            "files": self.text.files().iter().map(file_record).collect::<Vec<_>>(),
            "held_out": self.held_out.iter().map(file_record).collect::<Vec<_>>(),
            "sentences": self.text.sentences().len() + self.left_out.total(),
            "left_out": self.left_out,
            "passes": outcome.labelled.passes,
        });
        if !outcome.silver.is_empty() {
            record["silver"] = outcome.silver.iter().map(SilverOutcome::record).collect();
        }
        record
    }

    /// Adds everything that can change the result to a hash. The names of the files are left out.
    pub(crate) fn add_to(&self, fingerprint: &mut Fingerprint) {
        for sentence in self.text.sentences() {
            fingerprint.add(sentence.language().unwrap_or_default().as_bytes());
            let numbers = [sentence.line(), sentence.tokens().len()];
            for n in numbers {
                fingerprint.add(&(n as u64).to_le_bytes());
            }
            for token in sentence.tokens() {
                fingerprint.add(token.as_str().as_bytes());
            }
        }
    }

    /// Adds the labels of the silver sentences to a hash.
    pub(super) fn add_silver_to(&self, fingerprint: &mut Fingerprint) {
        for given in &self.silver.given {
            fingerprint.add(given.source.as_bytes());
            for mention in &given.mentions {
                let numbers =
                    [mention.tokens.start, mention.tokens.end, mention.entity_type.index()];
                for n in numbers {
                    fingerprint.add(&(n as u64).to_le_bytes());
                }
            }
        }
    }
}

impl AugmentJob {
    /// Labels the unlabelled text of the run. `drafts` are the drafts of the run. With a shard, trains only a share of the
    /// taggers. Returns `None` if there is no text.
    pub(super) fn label_text(
        &self,
        drafts: &Drafts,
        shard: Option<Shard>,
        run: &mut Run<'_>,
    ) -> Result<Option<TextOutcome>, Error> {
        let Some(text) = &self.text else { return Ok(None) };
        let tagger = self.tagger.as_ref().expect("a run with text opens the model of the tagger");
        let kept: Vec<Sentence> = drafts.kept().cloned().collect();
        let gold = Gold { train: &text.gold, dev: self.dev.as_ref() };
        let given = &text.silver.given;
        let data = SelfTrainingData { gold, drafts: &kept, text: &text.sentences, given, shard };
        let labelled = label_text(data, &self.plan, tagger, &self.device, run, None)?;
        let lines = text_to_lines(&labelled.candidates, &text.text, given, &text.gold);
        let silver = text.silver.outcomes(&labelled, &text.gold);
        Ok(Some(TextOutcome { left_out: text.left_out, labelled, lines, silver }))
    }
}

/// The entry of a file in `run.json`.
fn file_record(file: &TextFile) -> Value {
    let mut record = json!({
        "file": file.name,
        "format": file.format.name(),
        "gzip": file.is_gzip,
        "sentences": file.n_sentences,
        "unspaced_lines": file.n_unspaced,
    });
    if let Some(tokenizer) = &file.tokenizer {
        record["tokenizer"] = tokenizer.as_str().into();
    }
    record
}

/// Fails if only one of the two has languages, because the file of a kept sentence is then not known.
fn check_languages(text: &UnlabelledText, train: &Corpus) -> Result<(), Error> {
    for sentence in text.sentences() {
        let file = || sentence.file().to_owned();
        match (sentence.language(), train.languages().is_empty()) {
            (Some(language), true) => {
                return Err(Error::GoldWithoutLanguage {
                    file: file(),
                    language: language.to_owned(),
                });
            }
            (None, false) => return Err(Error::TextWithoutLanguage { file: file() }),
            _ => {}
        }
    }
    Ok(())
}

/// Fails if a sentence has a token that cannot be written in the format of `gold`.
fn check_tokens(text: &UnlabelledText, gold: &Corpus) -> Result<(), Error> {
    for sentence in text.sentences() {
        let found = gold.find_unwritable(sentence.tokens(), sentence.language());
        if let Some((token, train)) = found {
            return Err(Error::TokenWithSpace {
                file: sentence.file().to_owned(),
                line: sentence.line(),
                token: token.to_string(),
                train: train.source().name().to_owned(),
            });
        }
    }
    Ok(())
}

/// Returns `train` with the languages of `text` that it does not have, in the order of the text.
fn with_languages(train: &Corpus, text: &UnlabelledText) -> Corpus {
    if train.languages().is_empty() {
        return train.clone();
    }
    let mut codes: Vec<&str> = Vec::new();
    for code in text.sentences().iter().filter_map(UnlabelledSentence::language) {
        if !codes.contains(&code) {
            codes.push(code);
        }
    }
    train.with_language_codes(&codes)
}

/// Returns a sentence of `gold`'s languages in which all tags are `O`.
fn to_sentence(sentence: &UnlabelledSentence, gold: &Corpus) -> Sentence {
    let own = sentence.to_sentence();
    let index = sentence.language().map(|code| {
        let found = gold.languages().iter().position(|part| &*part.code == code);
        found.expect("the corpus has all languages of the text")
    });
    match index {
        Some(index) => own.with_language(Language::from_index(index)),
        None => own,
    }
}
