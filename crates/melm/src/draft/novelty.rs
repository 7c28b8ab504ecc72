//! Finds drafts that repeat a sentence.

use std::collections::HashSet;

use melm_text::{Corpus, Tag, Token};

use super::{Draft, Verdict};

/// Separates new drafts from drafts that repeat the tokens and tags of a gold sentence or of an earlier draft.
///
/// Drafts must be recorded round by round and, within a round, in the order of their sources. The verdicts of a round
/// then do not change if more rounds follow.
#[derive(Debug)]
pub struct Novelty<'a> {
    gold: &'a Corpus,
    gold_contents: HashSet<(&'a [Token], &'a [Tag])>,
    drafts: HashSet<(Vec<Token>, Vec<Tag>)>,
}

impl<'a> Novelty<'a> {
    /// Creates a value without recorded drafts. The drafts to record must be made from `gold`.
    pub fn new(gold: &'a Corpus) -> Self {
        let gold_contents = gold.sentences().iter().map(|s| (s.tokens(), s.tags())).collect();
        Self { gold, gold_contents, drafts: HashSet::new() }
    }

    /// Records the next draft and returns its verdict before judging: [`Verdict::New`], a copy, or a repetition.
    pub fn record(&mut self, draft: &Draft) -> Verdict {
        if draft.sentence.mentions().next().is_none() {
            return Verdict::Copied;
        }
        let content = (draft.sentence.tokens(), draft.sentence.tags());
        let source = draft.source.map(|source| &self.gold.sentences()[source]);
        if source.is_some_and(|source| content == (source.tokens(), source.tags())) {
            Verdict::RepeatsSource
        } else if self.gold_contents.contains(&content) {
            Verdict::RepeatsGold
        } else if !self.drafts.insert((content.0.to_vec(), content.1.to_vec())) {
            Verdict::RepeatsDraft
        } else {
            Verdict::New
        }
    }

    /// Sets the verdict of each draft before judging: new, a copy, or a repetition.
    pub(crate) fn mark(&mut self, drafts: &mut [Draft]) {
        for draft in drafts {
            draft.verdict = self.record(draft);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use melm_text::{ReadOptions, Source};

    #[test]
    fn repeated_drafts_are_found() {
        let text = "in O\nBonn B-LOC\n\nin O\nGhent B-LOC\n\nin O\nBath O\n";
        let source = Source::from_text("a.conll", text);
        let gold = Corpus::read(&source, &ReadOptions::default()).unwrap();
        let draft = |place: &str, round| {
            let sentence = gold.sentences()[0].with_tokens([(1, Token::new(place).unwrap())]);
            Draft::new(sentence, 0, round, Vec::new())
        };
        let mut novelty = Novelty::new(&gold);
        // The draft with Bath is new, because the gold sentence with Bath has other tags.
        let places = ["Bonn", "Ghent", "Bath", "Rome", "Bath", "Oslo"];
        let mut drafts = places.map(|place| draft(place, 1));
        novelty.mark(&mut drafts);
        let expected = [
            Verdict::RepeatsSource,
            Verdict::RepeatsGold,
            Verdict::New,
            Verdict::New,
            Verdict::RepeatsDraft,
            Verdict::New,
        ];
        assert_eq!(drafts.map(|draft| draft.verdict), expected);
        assert_eq!(novelty.record(&draft("Rome", 2)), Verdict::RepeatsDraft);
    }
}
