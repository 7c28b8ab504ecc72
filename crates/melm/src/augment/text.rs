//! Unlabelled text in a run: the sentences to label, and the result.

use melm_text::{Corpus, Language, Sentence, Tag, UnlabelledSentence, UnlabelledText};
use serde_json::{Value, json};

use super::algorithm::{Drafts, Gold};
use super::job::AugmentJob;
use crate::Error;
use crate::draft::text_to_lines;
use crate::files::Fingerprint;
use crate::self_training::{LabelledText, SelfTrainingData, TextSummary, label_text};
use crate::stage::Run;

/// Unlabelled text that is ready to be labelled.
pub(super) struct TextToLabel {
    /// The sentences, without those that were left out.
    pub(super) text: UnlabelledText,
    /// The gold corpus, with all languages of the text.
    pub(super) gold: Corpus,
    /// The sentences with the language indices of `gold`. All tags are `O`.
    pub(super) sentences: Vec<Sentence>,
}

/// The labelled sentences of a run's unlabelled text.
pub struct TextOutcome {
    /// The label and the verdict of each sentence, and the counts of each pass.
    pub labelled: LabelledText,
    /// The text of `drafts.jsonl` for these sentences: one line for each.
    pub lines: String,
}

impl TextOutcome {
    /// The counts of the last pass, which decides what is kept.
    pub fn summary(&self) -> &TextSummary {
        self.labelled.passes.last().expect("a run has at least one pass")
    }
}

impl TextToLabel {
    /// Prepares a text, which is labelled with the tags of `train`. Fails if only one of `train` and the text has
    /// languages, or if the text has no sentences.
    pub(super) fn new(text: UnlabelledText, train: &Corpus) -> Result<Self, Error> {
        check_languages(&text, train)?;
        if text.sentences().is_empty() {
            return Err(Error::NoText);
        }
        let gold = with_languages(train, &text);
        let sentences = text.sentences().iter().map(|one| to_sentence(one, &gold)).collect();
        Ok(Self { text, gold, sentences })
    }

    /// The entry of the text in `run.json`: its files, and the counts of each pass.
    pub(super) fn record(&self, labelled: &LabelledText) -> Value {
        json!({
            "files": count_by_file(&self.text),
            "sentences": self.text.sentences().len(),
            "passes": labelled.passes,
        })
    }

    /// Adds everything that can change the result to a hash. The names of the files are left out.
    pub(super) fn add_to(&self, fingerprint: &mut Fingerprint) {
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
}

impl AugmentJob {
    /// Labels the unlabelled text of the run. `drafts` are the drafts of the run. Returns `None` if there is no text.
    pub(super) fn label_text(
        &self,
        drafts: &Drafts,
        run: &mut Run<'_>,
    ) -> Result<Option<TextOutcome>, Error> {
        let Some(text) = &self.text else { return Ok(None) };
        let tagger = self.tagger.as_ref().expect("a run with text opens the model of the tagger");
        let kept: Vec<Sentence> = drafts.kept().cloned().collect();
        let gold = Gold { train: &text.gold, dev: self.dev.as_ref() };
        let data = SelfTrainingData { gold, drafts: &kept, text: &text.sentences };
        let labelled = label_text(data, &self.plan, tagger, &self.device, run, None)?;
        let lines = text_to_lines(&labelled.candidates, &text.text, &text.gold);
        Ok(Some(TextOutcome { labelled, lines }))
    }
}

/// Returns an entry with the number of sentences for each file and language, in the order of the text.
fn count_by_file(text: &UnlabelledText) -> Vec<Value> {
    let mut files: Vec<(&str, Option<&str>, usize)> = Vec::new();
    for sentence in text.sentences() {
        let (file, language) = (sentence.file(), sentence.language());
        match files.iter_mut().rev().find(|one| one.0 == file && one.1 == language) {
            Some((_, _, n)) => *n += 1,
            None => files.push((file, language, 1)),
        }
    }
    let entry = |one: (&str, Option<&str>, usize)| {
        let mut entry = json!({ "file": one.0, "sentences": one.2 });
        if let Some(language) = one.1 {
            entry["language"] = language.into();
        }
        entry
    };
    files.into_iter().map(entry).collect()
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
    let tokens = sentence.tokens().to_vec();
    let tags = vec![Tag::Outside; tokens.len()];
    let own = Sentence::new(tokens, tags).expect("an unlabelled sentence has tokens");
    let index = sentence.language().map(|code| {
        let found = gold.languages().iter().position(|part| &*part.code == code);
        found.expect("the corpus has all languages of the text")
    });
    match index {
        Some(index) => own.with_language(Language::from_index(index)),
        None => own,
    }
}
