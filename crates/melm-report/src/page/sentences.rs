//! The lists of drafts and labelled sentences.
//!
//! With JavaScript, the list is made from the data of the page, with filters and decisions. Without it, the page shows
//! a part of the list.

use maud::{Markup, html};

use super::grouped;
use crate::candidate::{Candidate, Objection, Origin};
use crate::numbers::{Choices, describe_verdict, verdict_name};
use crate::{Report, Segment};

/// The number of sentences that are listed for readers without JavaScript, if the page has at most [`FEW`] sentences.
const N_STATIC: usize = 200;
/// The number of sentences that are listed for readers without JavaScript in a page with more sentences.
const N_STATIC_OF_MANY: usize = 50;
/// Up to this many sentences leave enough room for a long list.
const FEW: usize = 3_000;

/// The number of colours for entity types in the style of the page.
const N_TYPE_COLOURS: usize = 12;

/// A space between a mention and its type that is never broken.
const NARROW: &str = "\u{202f}";

/// At most this many reasons against a candidate are shown.
pub(super) const MAX_OBJECTIONS: usize = 4;

pub(super) fn section(report: &Report) -> Markup {
    html! {
        @if !report.candidates.is_empty() {
            (highlights(report))
            section #sentences aria-labelledby="h-sentences" {
                h2 #h-sentences { "Every draft and labelled sentence" }
                @if report.shown.shown < report.shown.total {
                    p.note role="note" {
                        "This page shows a sample of " (grouped(report.shown.shown)) " of " (grouped(report.shown.total))
                        " sentences, evenly spread. " code { "drafts.jsonl" } " has all."
                    }
                }
                p {
                    del { "Struck" } " text is the source, " ins { "underlined" }
                    " text replaces it, and the type is after each mention. The probability is the judge's (for unlabelled text the "
                    "mean of the panel's) of all tags together. Novelty is the share of mentions that gold does not have."
                }
                (controls(report))
                noscript { (static_list(report)) }
                ol #list .sentences {}
                p { button #more type="button" hidden { "Show more" } }
            }
        }
    }
}

/// The filters, sorting and decisions. They need the script, which shows them.
fn controls(report: &Report) -> Markup {
    html! {
        form #filters .controls hidden aria-label="Filter and sort the sentences" {
            (choices(report))
            label for="f-decision" {
                "Your decision"
                select #f-decision {
                    option value="" { "any" }
                    option value="none" { "undecided" }
                    option value="accept" { "accepted" }
                    option value="reject" { "rejected" }
                }
            }
            label for="sort" {
                "Sort by"
                select #sort {
                    option value="" { "file" }
                    option value="improbable" { "lowest probability" }
                    option value="probable" { "highest probability" }
                    option value="novel" { "novelty" }
                }
            }
            label.wide for="f-text" {
                "Text"
                input #f-text type="search" autocomplete="off" spellcheck="false" dir="auto";
            }
            button #reset type="reset" { "Reset" }
        }
        (status())
    }
}

/// The filters whose choices are the values that occur.
fn choices(report: &Report) -> Markup {
    let Choices { by_type, by_origin, by_verdict, by_round, .. } = &report.shown;
    let name = |verdict: &str| {
        let found = report.candidates.iter().find(|one| verdict_name(one.verdict) == verdict);
        found
            .map_or("", |one| describe_verdict(one.verdict, false))
            .replace("the judge", "judge or panel")
    };
    let description = |origin: &str| {
        Origin::ALL.into_iter().find(|one| one.name() == origin).map_or("", Origin::description)
    };
    html! {
        (select("f-type", "Type", by_type.iter().map(|(k, n)| (k.clone(), k.clone(), *n)).collect()))
        (select("f-origin", "Origin", by_origin.iter().map(|(k, n)| (k.clone(), description(k).to_owned(), *n)).collect()))
        (select("f-verdict", "Verdict", by_verdict.iter().map(|(k, n)| (k.clone(), name(k), *n)).collect()))
        (select("f-round", "Round", by_round.iter().map(|(k, n)| (k.to_string(), k.to_string(), *n)).collect()))
    }
}

/// The numbers of matching and decided sentences, the button that saves decisions, and the keys.
fn status() -> Markup {
    html! {
        div #status .status hidden {
            p #count role="status" aria-live="polite" {}
            p #decided role="status" aria-live="polite" {}
            button #download type="button" disabled { "Save decisions" }
            details {
                summary { "Keys" }
                p {
                    kbd { "j" } " or " kbd { "↓" } " next, " kbd { "k" } " or " kbd { "↑" } " previous, " kbd { "a" } " accept, "
                    kbd { "r" } " reject, " kbd { "u" } " undo, " kbd { "/" } " search. They work outside of the filters. Save the decisions and apply them: "
                    code { "melm filter drafts.jsonl TRAIN --decisions decisions.jsonl -o decided.jsonl" }
                }
            }
        }
    }
}

/// A list of choices, each with its value, its name and its number of sentences.
fn select(id: &str, title: &str, choices: Vec<(String, String, usize)>) -> Markup {
    html! {
        label for=(id) {
            (title)
            select id=(id) {
                option value="" { "all" }
                @for (value, name, n) in choices { option value=(value) { (name) " (" (grouped(n)) ")" } }
            }
        }
    }
}

/// Kept sentences with the lowest probability and with the most new mentions.
fn highlights(report: &Report) -> Markup {
    let find = |ids: &[String]| -> Vec<&Candidate> {
        ids.iter().filter_map(|id| report.candidates.iter().find(|one| one.id == *id)).collect()
    };
    let list = |title: &str, help: &str, ids: &[String]| {
        html! {
            div {
                h3 { (title) }
                p.small { (help) }
                ol.sentences { @for one in find(ids) { (row(one, &report.types, true)) } }
            }
        }
    };
    html! {
        section #worst aria-labelledby="h-worst" {
            h2 #h-worst { "The worst and the most novel" }
            div.pair {
                (list("Least probable", "Kept, but with the lowest probability. Look here for mistakes.", &report.highlights.least_probable))
                (list("Most novel", "Kept, with the largest share of mentions that gold does not have.", &report.highlights.most_novel))
            }
        }
    }
}

fn static_list(report: &Report) -> Markup {
    let n = report.candidates.len();
    let n_shown = if n <= FEW { N_STATIC } else { N_STATIC_OF_MANY };
    let step = n.div_ceil(n_shown).max(1);
    let shown: Vec<_> = report.candidates.iter().step_by(step).collect();
    html! {
        @if shown.len() < report.candidates.len() {
            p.note {
                "Without JavaScript, this page shows " (grouped(shown.len())) " of " (grouped(report.candidates.len()))
                " sentences, evenly spread, and no filters."
            }
        }
        ol.sentences { @for one in shown { (row(one, &report.types, false)) } }
    }
}

/// A sentence with what is known about it. With `has_link`, its place links to the sentence in the full list.
fn row(one: &Candidate, types: &[String], has_link: bool) -> Markup {
    let kept = if one.verdict.is_kept() { "kept" } else { "lost" };
    let round = if one.origin == Origin::Text { "pass" } else { "round" };
    html! {
        li.sentence.(kept) {
            p.meta {
                span.badge { (describe_verdict(one.verdict, one.origin == Origin::Text)) } " "
                @if has_link { a.place href=(format!("#s-{}", one.id)) data-id=(one.id) { (one.place) } }
                @else { span.place { (one.place) } }
                " " span { (round) " " (one.round) } " " span { (one.origin.description()) }
                @if let Some(p) = one.probability { " " span { "p " (format!("{p:.3}")) } }
                " " span { "novelty " (format!("{:.0} %", 100.0 * one.novelty())) }
            }
            p.text dir="auto" { (segments(&one.segments, types)) }
            @if !one.objections.is_empty() { (objections(one)) }
        }
    }
}

fn objections(one: &Candidate) -> Markup {
    let more = one.objections.len().saturating_sub(MAX_OBJECTIONS);
    html! {
        ul.objections {
            @for objection in one.objections.iter().take(MAX_OBJECTIONS) {
                li {
                    @match objection {
                        Objection::Judge { token, wanted, found, probability } => {
                            "judge: " bdi { (token) } " is " (found) ", not " (wanted) " (p " (format!("{probability:.2}")) ")"
                        }
                        Objection::Panel { text, entity_type, votes, panel } => {
                            "panel: " bdi { (text) } " is " (entity_type) " for " (votes) " of " (panel)
                        }
                    }
                }
            }
            @if more > 0 { li { "and " (more) " more" } }
        }
    }
}

/// The class of an entity type, which gives it a colour.
fn type_class(entity_type: usize) -> String {
    format!("t{}", entity_type % N_TYPE_COLOURS)
}

/// A sentence with its mentions marked and named.
pub(super) fn segments(all: &[Segment], types: &[String]) -> Markup {
    let name = |at: usize| types.get(at).map_or("", String::as_str);
    html! {
        @for (at, segment) in all.iter().enumerate() {
            @if at > 0 { " " }
            @match segment {
                Segment::Plain(text) => (text),
                Segment::Mention { entity_type, text } => {
                    mark.(type_class(*entity_type)) { (text) (NARROW) span.type { (name(*entity_type)) } }
                }
                Segment::Replaced { entity_type, text, old } => {
                    mark.(type_class(*entity_type)) {
                        del { (old) } " " ins { (text) } (NARROW) span.type { (name(*entity_type)) }
                    }
                }
                Segment::Swapped { text, old } => { del { (old) } " " ins { (text) } }
            }
        }
    }
}
