//! Lines about a finished run that every front end shows.

use melm_text::{count, count_of};

use super::result::Augmented;
use super::text::TextOutcome;
use crate::codemix::LexiconCounts;
use crate::linearize::LinearizedCounts;
use crate::notes::describe_markers;
use crate::self_training::{Agreement, TextSummary};

impl Augmented {
    /// Returns lines about the preparation of the run: what was left out, how markers were initialised, how good the judge
    /// is, and how many gold sentences may have wrong tags.
    pub fn notes(&self) -> Vec<String> {
        let (details, summary) = (self.details(), self.summary());
        let mut notes = Vec::new();
        if let Some(prepared) = &details.prepared {
            let sentences = |n: usize| count_of(n, self.gold().sentences().len(), "sentence");
            if prepared.n_without_mentions > 0 && summary.copied == 0 {
                let n = sentences(prepared.n_without_mentions);
                notes.push(format!("{n} without a mention: no drafts made"));
            }
            if prepared.n_too_long > 0 {
                let n = sentences(prepared.n_too_long);
                notes.push(format!("{n} too long for the encoder-decoder: not used for training"));
            }
            notes.extend(describe_markers(&prepared.markers));
            notes.extend(prepared.linearized.iter().flat_map(LinearizedCounts::notes));
            notes.extend(prepared.fixed.notes());
            notes.extend(prepared.codemix.iter().flat_map(LexiconCounts::notes));
        }
        notes.extend(
            details.judge_truncation.notes().iter().map(|note| format!("the judge: {note}")),
        );
        if let Some(best) = details.judge.as_ref().and_then(|judge| judge.best) {
            let f1 = 100.0 * best.value;
            notes.push(format!("the judge: dev F1 {f1:.2} in epoch {}", best.epoch));
        }
        let names = &self.plan().names;
        if names.harvest && self.text().is_some() && self.plan().method.has_names() {
            let n = count(details.n_harvested, "name");
            notes.push(format!("harvested {n} from the text for one more round of drafts"));
        }
        if let Some(check) = self.gold_check() {
            let n = count_of(check.suspect, check.sentences, "gold sentence");
            let f1 = 100.0 * check.f1;
            notes.push(format!(
                "{n} may have wrong tags, according to taggers with F1 {f1:.1}: see `gold.jsonl` or `melm report`"
            ));
        }
        notes
    }

    /// Returns a line for each reason why the result is probably not what the user wants, with advice.
    pub fn warnings(&self) -> Vec<String> {
        let mut warnings = Vec::new();
        if self.summary().all_rejected() {
            warnings.push(
                "no draft was kept: the judge rejects all of them. Train it longer with a larger `tagger.budget`, or keep \
                 all drafts with `filter.mode=off`"
                    .to_owned(),
            );
        }
        if let Some(text) = self.text().map(TextOutcome::summary).filter(|text| text.kept == 0) {
            let advice = explain_nothing_kept(text, self.plan().self_training.agreement);
            warnings.push(format!("no sentence of the text was kept: {advice}"));
        }
        warnings
    }
}

/// Returns the most frequent reason why no sentence was kept, and advice.
fn explain_nothing_kept(summary: &TextSummary, agreement: Agreement) -> &'static str {
    let most = [summary.too_long, summary.disagrees, summary.unlikely, summary.no_mention];
    let most = most.into_iter().max().unwrap_or_default();
    if most == summary.too_long {
        "most are too long for the model. Write one sentence on each line"
    } else if most == summary.unlikely {
        "their tags are too improbable. Lower `self_training.threshold`, or train the panel longer with a larger \
         `self_training.budget`"
    } else if most == summary.no_mention {
        "the panel finds no mentions in most. Use text of the same kind as the training set, or train the panel longer with \
         a larger `self_training.budget`"
    } else if agreement == Agreement::Sentence {
        "the panel disagrees on most. Keep the agreed parts of sentences with `self_training.agreement=part`, or train the \
         panel longer with a larger `self_training.budget`"
    } else {
        "the panel disagrees on most. Train it longer with a larger `self_training.budget`, or lower `self_training.votes`"
    }
}
