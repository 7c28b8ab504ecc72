//! The first sections of the page: what was done, the verdict, the funnel, mentions by type, suspect gold.

use maud::{Markup, html};

use super::{grouped, sentences};
use crate::numbers::{Funnel, StepKind, TypeCounts};
use crate::suspect::{GoldCheck, Suspect};
use crate::{Kind, Report};

/// The header with the title and links to the sections.
pub(super) fn header(report: &Report) -> Markup {
    let is_augment = report.kind == Kind::Augment;
    html! {
        header {
            h1 { "melm " (report.kind.name()) " " span.folder { (report.folder) } }
            nav aria-label="Sections" {
                ul {
                    li { a href="#summary" { "Summary" } }
                    @if !report.funnels.is_empty() { li { a href="#funnel" { "Funnel" } } }
                    @if !report.mentions.is_empty() { li { a href="#mentions" { "Mentions" } } }
                    @if is_augment { li { a href="#gold" { "Gold" } } }
                    @if !report.tables.is_empty() { li { a href="#scores" { "Scores" } } }
                    @if !report.candidates.is_empty() {
                        li { a href="#worst" { "Worst and most novel" } }
                        li { a href="#sentences" { "Sentences" } }
                    }
                    @if !report.charts.is_empty() { li { a href="#training" { "Training" } } }
                    li { a href="#repeat" { "Repeat" } }
                }
            }
        }
    }
}

pub(super) fn sections(report: &Report) -> Markup {
    html! {
        section #summary aria-labelledby="h-summary" {
            h2 #h-summary { "What was done" }
            p.verdict { (code_spans(&report.verdict)) }
            @for note in &report.notes { p.note role="note" { (code_spans(note)) } }
            dl.facts {
                @for fact in &report.facts { div { dt { (fact.name) } dd dir="auto" { (fact.value) } } }
            }
        }
        @if !report.funnels.is_empty() {
            section #funnel aria-labelledby="h-funnel" {
                h2 #h-funnel { "From candidates to kept sentences" }
                div.funnels { @for one in &report.funnels { (funnel(one)) } }
            }
        }
        @if !report.mentions.is_empty() { (mentions(&report.mentions)) }
        @if report.kind == Kind::Augment { (gold(report.gold_check.as_ref(), &report.types)) }
    }
}

/// Text in which back-ticks mark code.
fn code_spans(text: &str) -> Markup {
    html! {
        @for (at, part) in text.split('`').enumerate() {
            @if at % 2 == 1 { code { (part) } } @else { (part) }
        }
    }
}

fn funnel(funnel: &Funnel) -> Markup {
    let all = funnel.steps.first().map_or(0, |step| step.count).max(1);
    html! {
        table.funnel {
            caption { (funnel.title) }
            thead.hidden { tr { th scope="col" { "step" } th scope="col" { "number" } th scope="col" { "share" } } }
            tbody {
                @for step in &funnel.steps {
                    @let share = 100.0 * step.count as f64 / all as f64;
                    tr.(kind_class(step.kind)) {
                        th scope="row" { @if step.kind == StepKind::Lost { span.minus aria-hidden="true" { "− " } } (step.name) }
                        td.n { (grouped(step.count)) }
                        td.bar { div { (bar(&[share])) span.share { (format!("{share:.0} %")) } } }
                    }
                }
            }
        }
    }
}

fn kind_class(kind: StepKind) -> &'static str {
    match kind {
        StepKind::Start => "start",
        StepKind::Lost => "lost",
        StepKind::Kept => "kept",
    }
}

/// A bar of parts, each in percent of the whole width.
fn bar(parts: &[f64]) -> Markup {
    let left = |at: usize| -> f64 { parts[..at].iter().sum() };
    html! {
        svg.bar viewBox="0 0 100 8" preserveAspectRatio="none" aria-hidden="true" {
            rect.rail width="100" height="8" {}
            @for (at, part) in parts.iter().enumerate() {
                rect.(format!("part{at}")) x=(format!("{:.2}", left(at))) width=(format!("{part:.2}")) height="8" {}
            }
        }
    }
}

fn mentions(all: &[TypeCounts]) -> Markup {
    let most = all.iter().map(|one| one.after).max().unwrap_or(1).max(1);
    let has_text = all.iter().any(|one| one.text > 0);
    html! {
        section #mentions aria-labelledby="h-mentions" {
            h2 #h-mentions { "Mentions by type, before and after" }
            div.scroll {
                table {
                    thead {
                        tr {
                            th scope="col" { "type" }
                            th.n scope="col" { "gold" }
                            th.n scope="col" { "+ drafts" }
                            @if has_text { th.n scope="col" { "+ text" } }
                            th.n scope="col" { "after" }
                            th.n scope="col" { "distinct before" }
                            th.n scope="col" { "distinct after" }
                            th scope="col" {
                                span.key.part0 {} "gold " span.key.part1 {} "drafts"
                                @if has_text { " " span.key.part2 {} "text" }
                            }
                        }
                    }
                    tbody { @for one in all { (type_row(one, most, has_text)) } }
                }
            }
        }
    }
}

/// The counts of one type. `most` is the largest number of mentions that a type has after the run.
fn type_row(one: &TypeCounts, most: usize, has_text: bool) -> Markup {
    let parts = [one.gold, one.drafts, one.text].map(|n| 100.0 * n as f64 / most as f64);
    html! {
        tr {
            th scope="row" dir="auto" { (one.entity_type) }
            td.n { (grouped(one.gold)) }
            td.n { (grouped(one.drafts)) }
            @if has_text { td.n { (grouped(one.text)) } }
            td.n { strong { (grouped(one.after)) } }
            td.n { (grouped(one.distinct_before)) }
            td.n { strong { (grouped(one.distinct_after)) } }
            td.bar { (bar(&parts)) }
        }
    }
}

/// Suspect gold sentences, each with both readings.
fn gold(check: Option<&GoldCheck>, types: &[String]) -> Markup {
    html! {
        section #gold aria-labelledby="h-gold" {
            h2 #h-gold { "Gold sentences that may be wrong" }
            @match check {
                None => p {
                    "Gold was not checked. Run " code { "melm augment" } " with " code { "--check-gold" }
                    " to compare your tags with those of taggers that were not trained on the sentence."
                }
                Some(check) => {
                    (gold_summary(check))
                    ol.sentences { @for one in &check.suspects { (suspect(one, types)) } }
                }
            }
        }
    }
}

fn gold_summary(check: &GoldCheck) -> Markup {
    let n = check.summary;
    html! {
        p {
            (grouped(n.suspect)) " of " (grouped(n.sentences)) " sentences: a tagger that was trained on the other "
            (n.folds.saturating_sub(1)) " of " (n.folds) " folds gives a gold tag a probability of at most "
            (format!("{:.0} %", 100.0 - 100.0 * check.certain)) ". In " (grouped(n.contradicted))
            " sentences it predicts other tags. Against gold, the taggers reach F1 "
            (format!("{:.1}", 100.0 * n.f1)) ": the lower it is, the less their contradictions mean. Either "
            "reading can be right: correct gold only where it is wrong."
        }
        @if check.suspects.len() < n.suspect {
            p.note { "The first " (check.suspects.len()) " are shown. " code { "gold.jsonl" } " has all." }
        }
    }
}

fn suspect(one: &Suspect, types: &[String]) -> Markup {
    html! {
        li.sentence {
            p.meta {
                span.place { (one.place) } " "
                span { "contradicted with " (format!("{:.1} %", 100.0 * one.contradiction)) }
            }
            p.text dir="auto" {
                span.reading { "gold " (probability(one.probability)) } " "
                (sentences::segments(&one.gold, types))
            }
            p.text dir="auto" {
                span.reading { "tagger " (probability(one.found_probability)) } " "
                (sentences::segments(&one.found, types))
            }
        }
    }
}

/// A joint probability, which may be very small.
fn probability(value: f64) -> String {
    if value >= 0.0005 { format!("p {value:.3}") } else { format!("p {value:.0e}") }
}

/// The command that repeats the run.
pub(super) fn repeat(report: &Report) -> Markup {
    html! {
        section #repeat aria-labelledby="h-repeat" {
            h2 #h-repeat { "Repeat it" }
            pre tabindex="0" { code { (report.command) } }
            @if !report.is_recorded_command {
                p {
                    "The folder does not record its command. This one was put together from its files; options for the format of "
                    "the data are not known."
                }
            }
            p.small { "Made by " code { "melm report" } " from a folder of melm " (report.melm) "." }
        }
    }
}
