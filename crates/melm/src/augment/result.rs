//! The result of a run.

use std::path::{Path, PathBuf};

use melm_text::jsonl::format_names;
use melm_text::{Corpus, LanguageText, Sentence};

use super::algorithm::Drafts;
use super::summary::DraftSummary;
use super::text::TextOutcome;
use crate::Error;
use crate::draft::Draft;
use crate::files::{create_folder, write_whole};
use crate::gold_check::{self, CheckedSentence, GoldCheckSummary};
use crate::plan::Plan;
use crate::run_folder::require_empty;

/// The name of the file with all drafts and all sentences of the unlabelled text.
pub(super) const DRAFTS: &str = "drafts.jsonl";

/// The name of the file with the gold sentences that were checked.
pub(super) const GOLD: &str = "gold.jsonl";

/// The augmented corpus, every draft and every sentence of the unlabelled text with its verdict, and counts.
pub struct Augmented {
    gold: Corpus,
    plan: Plan,
    drafts: Drafts,
    summary: DraftSummary,
    text: Option<TextOutcome>,
    checked: Option<Vec<CheckedSentence>>,
}

impl Augmented {
    pub(super) fn new(gold: Corpus, plan: Plan, drafts: Drafts, text: Option<TextOutcome>) -> Self {
        let summary = drafts.summary(&gold);
        Self { gold, plan, drafts, summary, text, checked: None }
    }

    pub(super) fn with_checked_gold(mut self, checked: Option<Vec<CheckedSentence>>) -> Self {
        self.checked = checked;
        self
    }

    /// The gold sentences, read by taggers that were not trained on them. `None` if the plan does not ask for this
    /// check.
    pub fn checked_gold(&self) -> Option<&[CheckedSentence]> {
        self.checked.as_deref()
    }

    /// The numbers of the check of gold. `None` if gold was not checked.
    pub fn gold_check(&self) -> Option<GoldCheckSummary> {
        let checked = self.checked.as_deref()?;
        Some(GoldCheckSummary::new(self.plan.gold_check.folds, checked))
    }

    /// Returns the gold sentences, the kept drafts and the kept sentences of the unlabelled text, in this order. If the
    /// plan's `union` is false, the gold sentences are left out. If the judge rejected every draft
    /// ([`DraftSummary::all_rejected`]), there are no kept drafts.
    pub fn corpus(&self) -> Corpus {
        let kept = self.kept().cloned();
        if self.plan.union { self.gold.with_more(kept) } else { self.gold.with_sentences(kept) }
    }

    /// The kept drafts, followed by the kept sentences of the unlabelled text.
    pub fn kept(&self) -> impl Iterator<Item = &Sentence> {
        let text = self.text.iter().flat_map(|text| text.labelled.kept());
        self.drafts.kept().chain(text)
    }

    /// The labelled sentences of the unlabelled text; `None` if the run had none.
    pub fn text(&self) -> Option<&TextOutcome> {
        self.text.as_ref()
    }

    /// The number of kept sentences of the unlabelled text by language code, in the order of the languages. Has all
    /// languages of the text. Empty if the corpus has no languages or the run has no text.
    pub fn kept_text_by_language(&self) -> Vec<(String, usize)> {
        let Some(text) = &self.text else { return Vec::new() };
        let parts = self.gold.languages().iter().enumerate().filter_map(|(index, part)| {
            let is_own = |sentence: &Sentence| {
                sentence.language().is_some_and(|language| language.index() == index)
            };
            let mut all = text.labelled.candidates.iter().map(|one| &one.sentence);
            let n_kept = text.labelled.kept().filter(|sentence| is_own(sentence)).count();
            all.any(is_own).then(|| (part.code.to_string(), n_kept))
        });
        parts.collect()
    }

    /// Every draft of every round, kept or not, in order.
    pub fn drafts(&self) -> &[Draft] {
        &self.drafts.drafts
    }

    /// The number of drafts by verdict, and the new mentions.
    pub fn summary(&self) -> &DraftSummary {
        &self.summary
    }

    /// The drafts, with reports on the preparation of the method and on the training of the judge.
    pub fn details(&self) -> &Drafts {
        &self.drafts
    }

    /// The gold corpus, with the languages of the unlabelled text.
    pub fn gold(&self) -> &Corpus {
        &self.gold
    }

    /// The plan of the run.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// The augmented corpus as text in the format of the gold file, one text for each language.
    pub(crate) fn texts(&self) -> Result<Vec<LanguageText>, Error> {
        let kept: Vec<Sentence> = self.kept().cloned().collect();
        Ok(self.gold.append_sentences(&kept, self.plan.union)?)
    }

    /// Writes `train.augmented.*`, `drafts.jsonl`, `plan.toml` and, if gold was checked, `gold.jsonl` into a folder that is new or empty. Returns the
    /// paths of the augmented corpora.
    pub fn write(&self, dir: impl AsRef<Path>) -> Result<Vec<PathBuf>, Error> {
        let dir = dir.as_ref();
        require_empty(dir)?;
        create_folder(dir)?;
        self.write_into(dir)
    }

    pub(super) fn write_into(&self, dir: &Path) -> Result<Vec<PathBuf>, Error> {
        let mut paths = Vec::new();
        for text in self.texts()? {
            for (name, file) in augmented_names(&text).zip(&text.files) {
                let path = dir.join(name);
                write_whole(&path, &file.bytes)?;
                paths.push(path);
            }
            if let (Some(names), Some(path)) = (&text.tag_names, paths.last()) {
                let beside = path.with_added_extension("names");
                write_whole(&beside, format_names(names).as_bytes())?;
            }
        }
        let text = self.text.as_ref().map_or("", |text| &text.lines);
        write_whole(&dir.join(DRAFTS), [&self.drafts.lines, text].concat().as_bytes())?;
        if let Some(checked) = &self.checked {
            write_whole(&dir.join(GOLD), gold_check::to_lines(checked).as_bytes())?;
        }
        write_whole(&dir.join("plan.toml"), self.plan.to_toml().as_bytes())?;
        Ok(paths)
    }
}

/// The file names of an augmented corpus.
pub(super) fn augmented_names(text: &LanguageText) -> impl Iterator<Item = String> {
    text.suffixes().map(|suffix| format!("train.augmented.{suffix}"))
}
