//! What `melm augment` says at the end: the funnel, new mentions, examples side by side.

use std::collections::BTreeSet;
use std::ops::Range;
use std::path::PathBuf;
use std::time::Instant;

use melm::augment::{DraftSummary, Drafts};
use melm::draft::{Draft, Verdict};

use melm_text::{Corpus, Tag, Token};

use super::Job;
use crate::commands::finetune::{cuts, starts};
use crate::progress::duration;
use crate::terminal::{Terminal, count};
use crate::vectors;

/// How many drafts are shown.
const N_EXAMPLES: usize = 5;
/// Tokens shown on either side of what was replaced.
const AROUND: usize = 6;

pub(super) fn say(
    (job, augmented, funnel): (&Job, &Drafts, &DraftSummary),
    (out, started): (&[PathBuf], Instant),
    terminal: &Terminal,
) {
    if let Some(prepared) = &augmented.prepared {
        if prepared.n_without_mentions > 0 && funnel.copied == 0 {
            let n = count(prepared.n_without_mentions, "sentence");
            terminal.say(&format!("{n} without a mention: no drafts of them"));
        }
        if prepared.n_too_long > 0 {
            let n = count(prepared.n_too_long, "sentence");
            terminal
                .say(&format!("{n} too long for the encoder-decoder: nothing learnt from them"));
        }
        let cuts = cuts((prepared.n_windowed, prepared.n_left_out), prepared.n_unmaskable);
        let lacks = prepared.codemix.as_ref().map(vectors::lacks).unwrap_or_default();
        for line in starts(&prepared.markers).into_iter().chain(cuts).chain(lacks) {
            terminal.say(&line);
        }
    }
    for line in crate::commands::train::cuts(augmented.judge_truncation) {
        terminal.say(&format!("the judge: {line}"));
    }
    say_summary(funnel, terminal);
    for draft in examples(&augmented.drafts) {
        show(draft, job.train.corpus(), terminal);
    }
    if funnel.all_rejected() {
        terminal.say(
            "no draft was kept: the judge agrees with none. Train it longer with `--set 'tagger.budget=\"…\"'`, or take all \
             drafts with `--set filter.mode=off`",
        );
    }
    let gold = count(job.train.corpus().sentences().len(), "gold sentence");
    let names: Vec<_> = out.iter().map(|path| format!("`{}`", path.display())).collect();
    terminal.say(&format!(
        "wrote {}: {} and {} in {}",
        names.join(", "),
        if job.plan.union { gold } else { "no gold".to_owned() },
        count(funnel.kept + funnel.copied, "draft"),
        duration(started.elapsed().as_secs_f64()),
    ));
}

/// What became of the drafts.
pub(crate) fn say_summary(funnel: &DraftSummary, terminal: &Terminal) {
    if !funnel.dropped.is_empty() {
        let written = funnel.drafts + funnel.dropped.total();
        terminal.say(&format!("written                  {written:>6}"));
        for (fault, n) in funnel.dropped.iter() {
            terminal.say(&format!("  {:<23}{n:>6}", fault.description()));
        }
    }
    terminal.say(&format!("drafts                   {:>6}", funnel.drafts));
    for (n, what) in [
        (funnel.repeat_source, "repeat their source"),
        (funnel.repeat_gold, "repeat another sentence"),
        (funnel.repeat_draft, "repeat a draft"),
        (funnel.disagrees, "the judge disagrees"),
        (funnel.unlikely, "the judge doubts"),
        (funnel.copied, "have no mention: copied"),
    ] {
        if n > 0 {
            terminal.say(&format!("  {what:<23}{n:>6}"));
        }
    }
    match funnel.new {
        0 => terminal.say(&format!("kept                     {:>6}", funnel.kept)),
        n => terminal.say(&format!("new, not judged          {n:>6}")),
    }
    if funnel.restored_tokens > 0 {
        let n = count(funnel.restored_tokens, "token");
        terminal.say(&format!("{n} stayed as they were: the guessed pieces spelled nothing sound"));
    }
    if funnel.without_vector > 0 {
        let n = count(funnel.without_vector, "mention");
        terminal.say(&format!("{n} replaced by any of the type: no vector to compare by"));
    }
    let by_type: Vec<_> = funnel.new_mentions.iter().map(|(t, n)| format!("{t} {n}")).collect();
    let n_new: usize = funnel.new_mentions.values().sum();
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

/// A mention in brackets and the tokens around it.
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
