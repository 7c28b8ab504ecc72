//! What `melm augment` says at the end: the funnel, new mentions, examples side by side.

use std::collections::BTreeSet;
use std::ops::Range;
use std::path::PathBuf;
use std::time::Instant;

use melm::augment::{Augmented, DraftRecord, Funnel, Verdict};

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
    (job, augmented, funnel): (&Job, &Augmented, &Funnel),
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
    for line in crate::commands::train::cuts(augmented.judge_cuts) {
        terminal.say(&format!("the judge: {line}"));
    }
    say_funnel(funnel, terminal);
    for record in examples(&augmented.records) {
        show(job, record, terminal);
    }
    if funnel.judge_took_all() {
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
pub(crate) fn say_funnel(funnel: &Funnel, terminal: &Terminal) {
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

/// Kept drafts from all over the corpus, each of another sentence.
fn examples(records: &[DraftRecord]) -> Vec<&DraftRecord> {
    let mut seen = BTreeSet::new();
    let mut kept: Vec<_> = records.iter().filter(|r| r.verdict == Verdict::Kept).collect();
    kept.retain(|record| {
        record.source.is_none_or(|source| seen.insert((&record.language, source)))
    });
    let step = (kept.len() / N_EXAMPLES).max(1);
    kept.into_iter().step_by(step).take(N_EXAMPLES).collect()
}

/// The first replaced mention of a draft with what stands around it, in the source and in the draft; the whole draft if
/// it has no source.
fn show(job: &Job, record: &DraftRecord, terminal: &Terminal) {
    let Some(number) = record.source else { return terminal.say(&with_tags(record)) };
    let Some(replaced) = record.replaced.iter().find(|one| one.old != one.new) else { return };
    let corpus = job.train.corpus();
    let Some(source) = record.position(corpus).map(|at| &corpus.sentences()[at]) else { return };
    let Some(mention) = source.mentions().nth(replaced.mention) else { return };
    let before = around(source.tokens(), mention.tokens);
    let after = around(&record.tokens, replaced.start..replaced.end);
    let number = match &record.language {
        Some(code) => format!("{code} {number}"),
        None => number.to_string(),
    };
    terminal.say(&format!("{number:>5}  {before}"));
    terminal.say(&format!("    →  {after}  {}", replaced.entity_type));
}

/// A draft as one line, tags behind their tokens.
fn with_tags(record: &DraftRecord) -> String {
    let word = |(token, tag): (&String, &String)| match tag.as_str() {
        "O" => token.clone(),
        tag => format!("{token}/{tag}"),
    };
    let words: Vec<_> = record.tokens.iter().zip(&record.tags).map(word).collect();
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
