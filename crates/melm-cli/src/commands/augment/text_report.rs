//! The report on unlabelled text at the end of `melm augment`: sentences by verdict, mentions, examples.

use melm::augment::{Augmented, SilverOutcome, TextOutcome};
use melm::draft::Verdict;
use melm::self_training::TextSummary;
use melm_text::LeftOut;

use super::report::{N_EXAMPLES, with_tags};
use crate::terminal::{Terminal, count};

/// Prints the report on the labelled sentences of the text.
pub(super) fn print(augmented: &Augmented, outcome: &TextOutcome, terminal: &Terminal) {
    let passes = &outcome.labelled.passes;
    for (number, pass) in passes.iter().enumerate().take(passes.len().saturating_sub(1)) {
        let (kept, of) = (pass.kept, count(pass.sentences, "sentence"));
        terminal.info(&format!("pass {} of {}: kept {kept} of {of}", number + 1, passes.len()));
    }
    let summary = outcome.summary();
    print_summary(summary, outcome.left_out, terminal);
    for silver in &outcome.silver {
        terminal.info(&describe_silver(silver));
    }
    let by_language = augmented.kept_text_by_language();
    if !by_language.is_empty() {
        let parts: Vec<_> = by_language.iter().map(|(code, n)| format!("{code} {n}")).collect();
        terminal.info(&format!("kept by language: {}", parts.join(", ")));
    }
    let kept = outcome.labelled.candidates.iter().filter(|one| one.verdict == Verdict::Kept);
    let step = (summary.kept / N_EXAMPLES).max(1);
    for one in kept.step_by(step).take(N_EXAMPLES) {
        terminal.info(&with_tags(&one.sentence, augmented.gold()));
    }
}

/// Says what became of the sentences of a silver source.
fn describe_silver(silver: &SilverOutcome) -> String {
    let SilverOutcome { name, left_out, n_dropped, summary } = silver;
    let reasons: Vec<String> = [
        (left_out.total(), "known or repeated"),
        (summary.too_long, "too long"),
        (summary.disagrees, "the panel disagrees"),
        (summary.no_mention, "without a mention"),
        (summary.over_cap, "over the cap"),
        (*n_dropped, "mentions of other types dropped"),
    ]
    .into_iter()
    .filter(|(n, _)| *n > 0)
    .map(|(n, what)| format!("{what} {n}"))
    .collect();
    let of = count(summary.sentences + left_out.total(), "sentence");
    let reasons =
        if reasons.is_empty() { String::new() } else { format!(" ({})", reasons.join(", ")) };
    format!("silver {name}: kept {} of {of}{reasons}", summary.kept)
}

/// Prints the number of sentences by verdict.
fn print_summary(summary: &TextSummary, left_out: LeftOut, terminal: &Terminal) {
    let n_sentences = summary.sentences + left_out.total();
    terminal.info(&format!("sentences of the text    {n_sentences:>6}"));
    for (n, what) in [
        (left_out.gold, "in the training set"),
        (left_out.dev, "in the dev set"),
        (left_out.held_out, "in a held-out file"),
        (left_out.repeated, "repeat another sentence"),
        (summary.too_long, "too long for the model"),
        (summary.disagrees, "the panel disagrees"),
        (summary.unlikely, "too improbable"),
        (summary.no_mention, "without a mention"),
        (summary.over_cap, "over the cap"),
    ] {
        if n > 0 {
            terminal.info(&format!("  {what:<23}{n:>6}"));
        }
    }
    terminal.info(&format!("kept                     {:>6}", summary.kept));
    let by_type: Vec<_> = summary.mentions.iter().map(|(t, n)| format!("{t} {n}")).collect();
    let n_mentions: usize = summary.mentions.values().sum();
    if n_mentions > 0 {
        terminal
            .info(&format!("mentions in them         {n_mentions:>6} ({})", by_type.join(", ")));
    }
}
