//! The report at the end of `melm augment`: drafts by verdict, new mentions, examples.

use std::collections::BTreeSet;
use std::ops::Range;

use melm::augment::{AugmentOutcome, DraftSummary};
use melm::draft::{Draft, Verdict};
use melm::methods::Prepared;

use melm_text::{Corpus, Tag, Token};

use crate::commands::finetune::{describe_left_out, describe_markers};
use crate::commands::train::describe_truncation;
use crate::progress::duration;
use crate::terminal::{Terminal, count};
use crate::vectors;

/// The number of drafts shown.
const N_EXAMPLES: usize = 5;
/// Tokens shown on either side of a replaced mention.
const AROUND: usize = 6;

pub(super) fn say(outcome: &AugmentOutcome, seconds: f64, terminal: &Terminal) {
    let augmented = &outcome.augmented;
    let (details, summary, gold) = (augmented.details(), augmented.summary(), augmented.gold());
    if let Some(prepared) = &details.prepared {
        say_prepared(prepared, summary, terminal);
    }
    for line in describe_truncation(details.judge_truncation) {
        terminal.say(&format!("the judge: {line}"));
    }
    say_summary(summary, terminal);
    for draft in examples(augmented.drafts()) {
        show(draft, gold, terminal);
    }
    if summary.all_rejected() {
        terminal.say(
            "no draft was kept: the judge agrees with none. Train it longer with `--set 'tagger.budget=\"…\"'`, or keep all \
             drafts with `--set filter.mode=off`",
        );
    }
    let n_gold = count(gold.sentences().len(), "gold sentence");
    let names: Vec<_> = outcome.paths.iter().map(|path| format!("`{}`", path.display())).collect();
    terminal.say(&format!(
        "wrote {}: {} and {} in {}",
        names.join(", "),
        if augmented.plan().union { n_gold } else { "no gold".to_owned() },
        count(summary.kept + summary.copied, "draft"),
        duration(seconds),
    ));
}

fn say_prepared(prepared: &Prepared, summary: &DraftSummary, terminal: &Terminal) {
    if prepared.n_without_mentions > 0 && summary.copied == 0 {
        let n = count(prepared.n_without_mentions, "sentence");
        terminal.say(&format!("{n} without a mention: no drafts of them"));
    }
    if prepared.n_too_long > 0 {
        let n = count(prepared.n_too_long, "sentence");
        terminal.say(&format!("{n} too long for the encoder-decoder: not used for training"));
    }
    let Prepared { n_windowed, n_left_out, n_unmaskable, .. } = *prepared;
    let left_out = describe_left_out(n_windowed, n_left_out, n_unmaskable);
    let missing = prepared.codemix.as_ref().map(vectors::describe_missing).unwrap_or_default();
    for line in describe_markers(&prepared.markers).into_iter().chain(left_out).chain(missing) {
        terminal.say(&line);
    }
}

/// Prints the number of drafts by verdict.
pub(crate) fn say_summary(summary: &DraftSummary, terminal: &Terminal) {
    if !summary.dropped.is_empty() {
        let written = summary.drafts + summary.dropped.total();
        terminal.say(&format!("written                  {written:>6}"));
        for (fault, n) in summary.dropped.iter() {
            terminal.say(&format!("  {:<23}{n:>6}", fault.description()));
        }
    }
    terminal.say(&format!("drafts                   {:>6}", summary.drafts));
    for (n, what) in [
        (summary.repeat_source, "repeat their source"),
        (summary.repeat_gold, "repeat another sentence"),
        (summary.repeat_draft, "repeat a draft"),
        (summary.disagrees, "the judge disagrees"),
        (summary.unlikely, "the judge doubts"),
        (summary.copied, "have no mention: copied"),
    ] {
        if n > 0 {
            terminal.say(&format!("  {what:<23}{n:>6}"));
        }
    }
    match summary.new {
        0 => terminal.say(&format!("kept                     {:>6}", summary.kept)),
        n => terminal.say(&format!("new, not judged          {n:>6}")),
    }
    if summary.restored_tokens > 0 {
        let n = count(summary.restored_tokens, "token");
        terminal.say(&format!("{n} kept as they were: the guessed pieces spelled no valid token"));
    }
    if summary.without_vector > 0 {
        let n = count(summary.without_vector, "mention");
        terminal.say(&format!("{n} replaced by any mention of the type: no vector to compare by"));
    }
    let by_type: Vec<_> = summary.new_mentions.iter().map(|(t, n)| format!("{t} {n}")).collect();
    let n_new: usize = summary.new_mentions.values().sum();
    if n_new > 0 {
        terminal.say(&format!("new mentions             {n_new:>6} ({})", by_type.join(", ")));
    }
}

/// Kept drafts of different sentences, spread over the corpus.
fn examples(drafts: &[Draft]) -> Vec<&Draft> {
    let mut seen = BTreeSet::new();
    let mut kept: Vec<_> = drafts.iter().filter(|draft| draft.verdict == Verdict::Kept).collect();
    kept.retain(|draft| draft.source.is_none_or(|source| seen.insert(source)));
    let step = (kept.len() / N_EXAMPLES).max(1);
    kept.into_iter().step_by(step).take(N_EXAMPLES).collect()
}

/// Prints the first replaced mention with its context, in the source and in the draft; the whole draft if it has no source.
fn show(draft: &Draft, gold: &Corpus, terminal: &Terminal) {
    let Some(source) = draft.source else { return terminal.say(&with_tags(draft, gold)) };
    let Some(replaced) = draft.replacements.iter().find(|one| one.old != one.new) else { return };
    let sentence = &gold.sentences()[source];
    let Some(mention) = sentence.mentions().nth(replaced.mention) else { return };
    let before = around(sentence.tokens(), mention.tokens);
    let after = around(draft.sentence.tokens(), replaced.tokens.clone());
    let number = match gold.locate(source) {
        (Some(code), index) => format!("{code} {}", index + 1),
        (None, index) => (index + 1).to_string(),
    };
    terminal.say(&format!("{number:>5}  {before}"));
    terminal.say(&format!("    →  {after}  {}", gold.types().name(replaced.entity_type)));
}

/// A draft as one line, with each tag after its token.
fn with_tags(draft: &Draft, gold: &Corpus) -> String {
    let word = |(token, tag): (&Token, &Tag)| match tag {
        Tag::Outside => token.to_string(),
        tag @ Tag::In(..) => format!("{token}/{}", gold.types().spell(*tag, gold.scheme())),
    };
    let sentence = &draft.sentence;
    let words: Vec<_> = sentence.tokens().iter().zip(sentence.tags()).map(word).collect();
    format!("    +  {}", words.join(" "))
}

/// A mention in brackets with the tokens around it.
fn around<T: AsRef<str>>(tokens: &[T], mention: Range<usize>) -> String {
    let join = |range: Range<usize>| {
        let texts: Vec<_> = tokens[range].iter().map(AsRef::as_ref).collect();
        texts.join(" ")
    };
    let start = mention.start.saturating_sub(AROUND);
    let end = (mention.end + AROUND).min(tokens.len());
    let dots = if start > 0 { "…" } else { "" };
    let parts = [
        dots.to_owned(),
        join(start..mention.start),
        format!("[{}]", join(mention.clone())),
        join(mention.end..end),
    ];
    let parts: Vec<_> = parts.into_iter().filter(|part| !part.is_empty()).collect();
    parts.join(" ")
}
