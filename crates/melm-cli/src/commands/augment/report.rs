//! The report at the end of `melm augment`: drafts by verdict, new mentions, examples.

use std::collections::BTreeSet;
use std::ops::Range;

use melm::augment::{AugmentOutcome, Augmented, DraftSummary};
use melm::draft::{Draft, Verdict};
use melm::methods::RejectedCounts;
use melm_text::{Corpus, Sentence, Tag, Token, count_of, shown};

use super::text_report;
use crate::output::print_card;
use crate::progress::duration;
use crate::terminal::{Terminal, count};

/// The number of drafts that are shown.
pub(super) const N_EXAMPLES: usize = 5;
/// Smaller folders of saved stages are not mentioned.
const MIN_STAGES_BYTES: u64 = 1_000_000;
/// The number of tokens shown on each side of a replaced mention.
const CONTEXT: usize = 6;

/// Prints the report on a finished run.
pub(super) fn print(outcome: &AugmentOutcome, seconds: f64, terminal: &Terminal) {
    let augmented = &outcome.augmented;
    let (summary, gold) = (augmented.summary(), augmented.gold());
    terminal.info_all(augmented.notes());
    print_summary(summary, augmented.drafts(), terminal);
    for draft in examples(augmented.drafts()) {
        print_example(draft, gold, terminal);
    }
    if let Some(text) = augmented.text() {
        text_report::print(augmented, text, terminal);
    }
    terminal.warn_all(augmented.warnings());
    print_card(outcome.card, terminal);
    let names: Vec<_> = outcome.paths.iter().map(|path| format!("`{}`", path.display())).collect();
    let parts = describe_parts(augmented);
    terminal.info(&format!("wrote {}: {parts} in {}", names.join(", "), duration(seconds)));
    terminal.info_all(describe_stages(outcome));
}

/// Says how large the saved stages are, if they take more than a megabyte.
fn describe_stages(outcome: &AugmentOutcome) -> Option<String> {
    let (stages, n_bytes) = (&outcome.stages, outcome.stages_bytes);
    (n_bytes > MIN_STAGES_BYTES).then(|| {
        format!(
            "`{}` takes {:.0} MB: a run with more rounds reuses it; remove it if you need none",
            stages.display(),
            n_bytes as f64 / 1e6
        )
    })
}

/// Says how many sentences of each origin the augmented corpus has.
fn describe_parts(augmented: &Augmented) -> String {
    let n_gold = if augmented.plan().union {
        count(augmented.gold().sentences().len(), "gold sentence")
    } else {
        "no gold sentences".to_owned()
    };
    let summary = augmented.summary();
    let n_drafts = count(summary.kept + summary.copied, "draft");
    match augmented.text() {
        Some(text) => {
            let n_text = count(text.summary().kept, "sentence");
            format!("{n_gold}, {n_drafts} and {n_text} of the text")
        }
        None => format!("{n_gold} and {n_drafts}"),
    }
}

/// Prints the number of drafts by verdict, for commands that run only one stage of `augment`.
pub(crate) fn print_drafts(drafts: &[Draft], gold: &Corpus, terminal: &Terminal) {
    let summary = DraftSummary::new(drafts, &RejectedCounts::default(), gold);
    print_summary(&summary, drafts, terminal);
}

/// Prints the number of drafts by verdict, and of new mentions by type.
fn print_summary(summary: &DraftSummary, drafts: &[Draft], terminal: &Terminal) {
    if !summary.dropped.is_empty() {
        let written = summary.drafts.saturating_add(summary.dropped.total());
        terminal.info(&format!("written                  {written:>6}"));
        for (fault, n) in summary.dropped.iter() {
            terminal.info(&format!("  {:<23}{n:>6}", fault.description()));
        }
    }
    print_verdicts(summary, terminal);
    for line in describe_mentions(summary, drafts) {
        terminal.info(&line);
    }
    let by_type: Vec<_> =
        summary.new_mentions.iter().map(|(t, n)| format!("{} {n}", shown(t))).collect();
    let n_new: usize = summary.new_mentions.values().sum();
    if n_new > 0 {
        terminal.info(&format!("new mentions             {n_new:>6} ({})", by_type.join(", ")));
    }
}

/// Says how many tokens and mentions of the drafts were not replaced as the method intends, and how many drafts have names
/// of lists.
fn describe_mentions(summary: &DraftSummary, drafts: &[Draft]) -> Vec<String> {
    let replaced = || drafts.iter().flat_map(|draft| &draft.replacements);
    let mut lines = Vec::new();
    if summary.restored_tokens > 0 {
        let of = replaced().map(|one| one.tokens.len()).sum();
        let n = count_of(summary.restored_tokens, of, "entity token");
        lines.push(format!("{n} not replaced: the predicted pieces do not form a valid token"));
    }
    if summary.without_vector > 0 {
        let of = replaced().filter(|one| one.donor.is_some()).count();
        let n = count_of(summary.without_vector, of, "mention");
        lines.push(format!("{n} without a vector: replaced by any mention of the type"));
    }
    if summary.with_names > 0 {
        let of = drafts.iter().filter(|draft| draft.verdict.is_kept()).count();
        let n = count_of(summary.with_names, of, "kept draft");
        lines.push(format!("{n} with a name of a list or of the text"));
    }
    lines
}

/// Prints the number of drafts, of rejected drafts by reason, and of kept drafts.
fn print_verdicts(summary: &DraftSummary, terminal: &Terminal) {
    terminal.info(&format!("drafts                   {:>6}", summary.drafts));
    for (n, what) in [
        (summary.repeat_source, "repeat their source"),
        (summary.repeat_gold, "repeat a gold sentence"),
        (summary.repeat_draft, "repeat another draft"),
        (summary.repeat_token, "repeat a token beside"),
        (summary.unlikely_mention, "unlikely mention"),
        (summary.disagrees, "the judge disagrees"),
        (summary.unlikely, "too improbable"),
        (summary.copied, "copied, no mentions"),
        (summary.accepted, "accepted by you"),
        (summary.rejected, "rejected by you"),
    ] {
        if n > 0 {
            terminal.info(&format!("  {what:<23}{n:>6}"));
        }
    }
    match summary.new {
        0 => terminal
            .info(&format!("kept                     {:>6}", summary.kept + summary.accepted)),
        n => terminal.info(&format!("new, not judged          {n:>6}")),
    }
}

/// Selects kept drafts of different source sentences, spread over the corpus.
fn examples(drafts: &[Draft]) -> Vec<&Draft> {
    let mut seen = BTreeSet::new();
    let mut kept: Vec<_> = drafts.iter().filter(|draft| draft.verdict == Verdict::Kept).collect();
    kept.retain(|draft| draft.source.is_none_or(|source| seen.insert(source)));
    let step = (kept.len() / N_EXAMPLES).max(1);
    kept.into_iter().step_by(step).take(N_EXAMPLES).collect()
}

/// Prints the first replaced mention with its context, in the source and in the draft, with brackets around all replaced
/// mentions. Prints the whole draft if it has no source.
fn print_example(draft: &Draft, gold: &Corpus, terminal: &Terminal) {
    let Some(source) = draft.source else {
        return terminal.info(&with_tags(&draft.sentence, gold));
    };
    let sentence = &gold.sentences()[source];
    let mentions: Vec<_> = sentence.mentions().collect();
    let replaced: Vec<_> = draft
        .replacements
        .iter()
        .filter(|one| one.old != one.new && one.mention < mentions.len())
        .collect();
    let old: Vec<_> = replaced.iter().map(|one| mentions[one.mention].tokens.clone()).collect();
    let new: Vec<_> = replaced.iter().map(|one| one.tokens.clone()).collect();
    let (Some(before), Some(after)) =
        (Excerpt::new(sentence.tokens(), &old), Excerpt::new(draft.sentence.tokens(), &new))
    else {
        return;
    };
    let number = match gold.locate(source) {
        (Some(code), index) => format!("{code} {}", index + 1),
        (None, index) => (index + 1).to_string(),
    };
    let mut types: Vec<_> =
        replaced[..after.n_marked].iter().map(|one| gold.types().name(one.entity_type)).collect();
    types.dedup();
    terminal.info(&format!("{number:>5}  {}", before.text));
    terminal.info(&format!("    →  {}  {}", after.text, types.join(", ")));
}

/// Returns a sentence as one line, with each tag after its token.
pub(super) fn with_tags(sentence: &Sentence, gold: &Corpus) -> String {
    let word = |(token, tag): (&Token, &Tag)| match tag {
        Tag::Outside => token.to_string(),
        tag @ Tag::In(..) => format!("{token}/{}", gold.types().spell(*tag, gold.scheme())),
    };
    let words: Vec<_> = sentence.tokens().iter().zip(sentence.tags()).map(word).collect();
    format!("    +  {}", words.join(" "))
}

/// A part of a sentence, with some mentions in brackets.
struct Excerpt {
    text: String,
    /// The number of mentions that are in the part.
    n_marked: usize,
}

impl Excerpt {
    /// Shows the first of `mentions` and the tokens around it, with brackets around all mentions that are wholly shown.
    /// The mentions are in order and do not overlap. Returns `None` without mentions.
    fn new<T: AsRef<str>>(tokens: &[T], mentions: &[Range<usize>]) -> Option<Self> {
        let first = mentions.first()?;
        let start = first.start.saturating_sub(CONTEXT);
        let end = (first.end + CONTEXT).min(tokens.len());
        let shown: Vec<_> = mentions.iter().take_while(|mention| mention.end <= end).collect();
        let word = |(at, token): (usize, &T)| {
            let open = if shown.iter().any(|mention| mention.start == at) { "[" } else { "" };
            let close = if shown.iter().any(|mention| mention.end == at + 1) { "]" } else { "" };
            format!("{open}{}{close}", token.as_ref())
        };
        let words: Vec<_> = (start..end).zip(&tokens[start..end]).map(word).collect();
        let dots = if start > 0 { "… " } else { "" };
        Some(Self { text: format!("{dots}{}", words.join(" ")), n_marked: shown.len() })
    }
}

#[cfg(test)]
mod tests {
    use super::Excerpt;

    #[test]
    fn all_mentions_of_an_excerpt_have_brackets() {
        let tokens: Vec<_> = (0..40).map(|at| at.to_string()).collect();
        let found = Excerpt::new(&tokens, &[20..22, 24..25, 39..40]).unwrap();
        assert!(found.text.starts_with("… "), "{}", found.text);
        assert!(found.text.contains(" 19 [20 21] 22 23 [24] 25 "), "{}", found.text);
        assert_eq!(found.n_marked, 2);
        let found = Excerpt::new(&tokens, std::slice::from_ref(&(0..1))).unwrap();
        assert!(found.text.starts_with("[0] 1 "), "{}", found.text);
        assert!(Excerpt::new(&tokens, &[]).is_none());
    }
}
