//! Finds replaced mentions that do not read well: they repeat the token beside them, or are unlikely.

use melm_text::Token;

use super::{Draft, Replacement, Verdict};

/// Returns true if a token repeats the token beside it. Case is ignored. A single letter without case, such as a Chinese
/// character, may be repeated.
pub(crate) fn is_repeat(token: &str, beside: &str) -> bool {
    let mut letters = token.chars();
    let has_no_case = |c: char| c.is_alphabetic() && !c.is_uppercase() && !c.is_lowercase();
    let may_repeat = letters.next().is_some_and(has_no_case) && letters.next().is_none();
    !may_repeat && token.to_lowercase() == beside.to_lowercase()
}

/// Rejects the new drafts in which a replaced mention repeats a token: two tokens of a guessed mention, or the first or
/// last token of any replaced mention and the token beside it. Repeats that the source has in the same place are allowed.
pub(crate) fn reject_repeats(drafts: &mut [Draft]) {
    // `lwtr` replaces single tokens at random: its mentions are not meant to read well.
    let is_checked = |draft: &Draft| draft.verdict == Verdict::New && draft.swaps.is_empty();
    for draft in drafts.iter_mut().filter(|draft| is_checked(draft)) {
        let tokens = draft.sentence.tokens();
        if draft.replacements.iter().any(|one| one.repeats_token(tokens)) {
            draft.verdict = Verdict::RepeatsToken;
        }
    }
}

/// Rejects the new drafts with a rewritten mention whose score is below minus `margin`.
pub(crate) fn reject_unlikely(drafts: &mut [Draft], margin: f64) {
    let is_unlikely = |one: &Replacement| one.score.is_some_and(|score| score < -margin);
    for draft in drafts.iter_mut().filter(|draft| draft.verdict == Verdict::New) {
        if draft.replacements.iter().any(is_unlikely) {
            draft.verdict = Verdict::UnlikelyMention;
        }
    }
}

impl Replacement {
    /// Returns true if the replacement repeats a token that its source does not repeat. `draft` are the tokens of the
    /// draft.
    fn repeats_token(&self, draft: &[Token]) -> bool {
        let differs = |token: &Token, beside: &Token| !is_repeat(token.as_str(), beside.as_str());
        let left = self.tokens.start.checked_sub(1).and_then(|at| draft.get(at));
        let right = draft.get(self.tokens.end);
        let first = (self.new.first(), self.old.first(), left);
        let last = (self.new.last(), self.old.last(), right);
        let repeats_outside = [first, last].into_iter().any(|edge| match edge {
            (Some(new), Some(old), Some(beside)) => !differs(new, beside) && differs(old, beside),
            _ => false,
        });
        // The tokens of a gold mention or of a name belong together.
        let repeats_inside = self.donor.is_none() && self.name.is_none() && {
            let (new, old) = (self.new.windows(2), self.old.windows(2));
            new.zip(old).any(|(new, old)| !differs(&new[0], &new[1]) && differs(&old[0], &old[1]))
        };
        repeats_outside || repeats_inside
    }
}

#[cfg(test)]
mod tests {
    use melm_text::{Corpus, ReadOptions, Source};

    use super::super::Donor;
    use super::*;

    /// Returns the verdict of a draft of `the Welfare Party party` in which the mention in the middle is replaced.
    fn verdict(old: &str, new: &str, is_guessed: bool) -> Verdict {
        let rows = |words: &str| -> String {
            let tag = |at| if at == 0 { "B-ORG" } else { "I-ORG" };
            words.split(' ').enumerate().map(|(at, word)| format!("{word} {}\n", tag(at))).collect()
        };
        let text = format!("the O\n{}party O\n", rows(new));
        let gold = Corpus::read(&Source::from_text("a", &*text), &ReadOptions::default()).unwrap();
        let sentence = gold.sentences()[0].clone();
        let mention = sentence.mentions().next().unwrap();
        let tokens = |text: &str| text.split(' ').map(|word| Token::new(word).unwrap()).collect();
        let donor = (!is_guessed).then(|| Donor { sentence: 0, tokens: mention.tokens.clone() });
        let replacement = Replacement {
            mention: 0,
            tokens: mention.tokens,
            entity_type: mention.entity_type,
            old: tokens(old),
            new: tokens(new),
            pieces: Vec::new(),
            donor,
            name: None,
            similarity: None,
            score: None,
        };
        let mut drafts = [Draft::new(sentence, 0, 1, vec![replacement])];
        reject_repeats(&mut drafts);
        drafts[0].verdict
    }

    #[test]
    fn only_new_repeats_are_rejected() {
        for (old, new, is_guessed, expected) in [
            ("Welfare Union", "Union Union", true, Verdict::RepeatsToken),
            ("Welfare Union", "union Union", true, Verdict::RepeatsToken),
            ("Welfare Union", "Union Welfare", true, Verdict::New),
            // The source repeats the token too.
            ("Duran Duran", "Boutros Boutros", true, Verdict::New),
            ("Duran Duran A", "A Boutros Boutros", true, Verdict::RepeatsToken),
            // A gold mention is not changed, but it may not fit its new place.
            ("Welfare", "Duran Duran", false, Verdict::New),
            ("Welfare", "The Union", false, Verdict::RepeatsToken),
            ("The Welfare", "The Union", false, Verdict::New),
            ("Welfare", "Union Party", false, Verdict::RepeatsToken),
            ("Welfare Party", "Union Party", true, Verdict::New),
            // Chinese given names repeat a character.
            ("李 明 华", "李 丽 丽", true, Verdict::New),
        ] {
            assert_eq!(verdict(old, new, is_guessed), expected, "{old} -> {new}");
        }
    }
}
