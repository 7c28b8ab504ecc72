//! Decisions of a person about drafts and labelled sentences: the file that the page of `melm report` saves.

use std::collections::{BTreeMap, HashSet};
use std::path::{Path, PathBuf};

use serde::Deserialize;

use super::{CandidateId, CandidateIds, CandidateLines, Verdict};
use crate::Error;

/// A decision about one candidate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Decision {
    /// The candidate is kept, whatever the filter says.
    Accept,
    /// The candidate is not kept.
    Reject,
}

/// A file of decisions, by the ids of the candidates.
#[derive(Clone, Debug)]
pub struct Decisions {
    path: PathBuf,
    by_id: BTreeMap<String, Entry>,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    decision: Decision,
    /// The line in the file, from 1.
    line: usize,
}

/// The numbers of decisions that were applied.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AppliedDecisions {
    /// The number of accepted candidates.
    pub accepted: usize,
    /// The number of accepted candidates that the filter had not kept.
    pub added: usize,
    /// The number of rejected candidates.
    pub rejected: usize,
    /// The number of rejected candidates that the filter had kept.
    pub removed: usize,
}

/// A line of the file. Other keys are for readers and are ignored.
#[derive(Deserialize)]
struct DecisionLine {
    id: String,
    decision: Decision,
}

impl Decisions {
    /// Reads decisions from JSON lines with the keys `id` and `decision` (`accept` or `reject`). `path` is for messages.
    ///
    /// # Errors
    /// If a line is not a decision, or if two lines contradict each other.
    pub fn read(path: &Path, text: &str) -> Result<Self, Error> {
        let mut by_id: BTreeMap<String, Entry> = BTreeMap::new();
        for (at, json) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
            let line = at + 1;
            let failed = |what: String| Error::NotADecision { path: path.into(), line, what };
            let DecisionLine { id, decision } =
                serde_json::from_str(json).map_err(|error| failed(error.to_string()))?;
            let old = by_id.insert(id, Entry { decision, line });
            if let Some(old) = old.filter(|old| old.decision != decision) {
                let what = format!("the decision contradicts line {}", old.line);
                return Err(failed(what));
            }
        }
        Ok(Self { path: path.to_owned(), by_id })
    }

    /// Sets the verdicts of the candidates to [`Verdict::Accepted`] and [`Verdict::Rejected`]. `json` is the text that
    /// `lines` were read from.
    ///
    /// # Errors
    /// If a decision has the id of no candidate. No verdict is changed in this case.
    pub fn apply(&self, lines: &mut CandidateLines, json: &str) -> Result<AppliedDecisions, Error> {
        let ids = read_ids(&self.path, json)?;
        self.require_known(&ids)?;
        let (text_ids, draft_ids): (Vec<_>, Vec<_>) = ids.into_iter().partition(|id| id.is_text);
        let mut applied = AppliedDecisions::default();
        for (draft, id) in lines.drafts.iter_mut().zip(&draft_ids) {
            if let Some(verdict) = self.decide(id, draft.verdict, &mut applied) {
                draft.verdict = verdict;
            }
        }
        for (line, id) in lines.text.iter_mut().zip(&text_ids) {
            if let Some(verdict) = self.decide(id, line.verdict, &mut applied) {
                *line = line.with_verdict(verdict);
            }
        }
        Ok(applied)
    }

    fn decide(
        &self,
        id: &CandidateId,
        old: Verdict,
        applied: &mut AppliedDecisions,
    ) -> Option<Verdict> {
        let entry = self.by_id.get(&id.id)?;
        Some(match entry.decision {
            Decision::Accept => {
                applied.accepted += 1;
                applied.added += usize::from(!old.is_kept());
                Verdict::Accepted
            }
            Decision::Reject => {
                applied.rejected += 1;
                applied.removed += usize::from(old.is_kept());
                Verdict::Rejected
            }
        })
    }

    fn require_known(&self, ids: &[CandidateId]) -> Result<(), Error> {
        let known: HashSet<&str> = ids.iter().map(|known| known.id.as_str()).collect();
        let is_unknown = |id: &&String| !known.contains(id.as_str());
        let unknown: Vec<&String> = self.by_id.keys().filter(is_unknown).collect();
        let Some(first) = unknown.iter().min_by_key(|id| self.by_id[**id].line) else {
            return Ok(());
        };
        Err(Error::UnknownCandidates {
            path: self.path.clone(),
            line: self.by_id[*first].line,
            id: (*first).clone(),
            n_unknown: unknown.len(),
        })
    }
}

/// Returns the ids of all lines of `json`, in order.
fn read_ids(path: &Path, json: &str) -> Result<Vec<CandidateId>, Error> {
    let mut ids = CandidateIds::default();
    let lines = json.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    let id = |(at, line): (usize, &str)| {
        let failed = |what| Error::NotADraft { path: path.to_owned(), line: at + 1, what };
        ids.next_id(line).map_err(failed)
    };
    lines.map(id).collect()
}

#[cfg(test)]
mod tests {
    use melm_text::{Corpus, ReadOptions, Source};

    use super::*;
    use crate::draft::read_lines;

    const DRAFT: &str = r#"{"source":1,"round":1,"seed":1,"verdict":"disagrees","tokens":["in","Rome"],"tags":["O","B-LOC"],"replaced":[{"mention":0,"entity_type":"LOC","start":1,"end":2,"old":["Bonn"],"new":["Rome"]}]}"#;
    const TEXT: &str = r#"{"origin":"text","file":"a.txt","line":7,"pass":1,"verdict":"kept","tokens":["Oslo"],"tags":["B-LOC"],"votes":3,"panel":3,"probabilities":[0.5],"mentions":[]}"#;

    fn lines(json: &str) -> CandidateLines {
        let source = Source::from_text("a.conll", "in O\nBonn B-LOC\n\n");
        let gold = Corpus::read(&source, &ReadOptions::default()).unwrap();
        read_lines(Path::new("drafts.jsonl"), json, &gold).unwrap()
    }

    fn decisions(text: &str) -> Result<Decisions, Error> {
        Decisions::read(Path::new("decisions.jsonl"), text)
    }

    #[test]
    fn drafts_and_text_get_the_verdicts_of_a_person() {
        // The second draft is the same as the first one, so its id ends in `-2`.
        let json = format!("{DRAFT}\n{TEXT}\n{DRAFT}\n");
        let ids = read_ids(Path::new("x"), &json).unwrap();
        let [first, text, second] = &ids[..] else { panic!("three ids") };
        assert_eq!(second.id, format!("{}-2", first.id));
        let file = format!(
            "{{\"id\":\"{}\",\"decision\":\"accept\"}}\n\n{{\"id\":\"{}\",\"decision\":\"reject\",\"more\":1}}\n",
            second.id, text.id
        );
        let mut all = lines(&json);
        let applied = decisions(&file).unwrap().apply(&mut all, &json).unwrap();
        let expected = AppliedDecisions { accepted: 1, added: 1, rejected: 1, removed: 1 };
        assert_eq!(applied, expected);
        let verdicts: Vec<_> = all.drafts.iter().map(|draft| draft.verdict).collect();
        assert_eq!(verdicts, [Verdict::Disagrees, Verdict::Accepted]);
        assert_eq!(all.text[0].verdict, Verdict::Rejected);
        assert_eq!(all.text[0].json, TEXT.replace("kept", "rejected"));
    }

    #[test]
    fn unknown_ids_and_contradictions_are_refused() {
        let line =
            |id: &str, decision: &str| format!("{{\"id\":\"{id}\",\"decision\":\"{decision}\"}}\n");
        let mut all = lines(DRAFT);
        let unknown = decisions(&(line("b", "accept") + &line("a", "accept"))).unwrap();
        let error = unknown.apply(&mut all, DRAFT).unwrap_err();
        assert!(matches!(error, Error::UnknownCandidates { line: 1, n_unknown: 2, .. }), "{error}");
        assert_eq!(all.drafts[0].verdict, Verdict::Disagrees);
        let error = decisions(&(line("a", "accept") + &line("a", "reject"))).unwrap_err();
        assert!(matches!(error, Error::NotADecision { line: 2, .. }), "{error}");
        assert!(decisions(&line("a", "accept").repeat(2)).is_ok());
        assert!(decisions(&line("a", "maybe")).is_err());
    }
}
