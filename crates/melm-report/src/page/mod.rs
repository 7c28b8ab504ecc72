//! The HTML page. Script and style are inside the page, and a content security policy allows nothing else.

mod data;
mod experiment;
mod overview;
mod sentences;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use maud::{DOCTYPE, Markup, PreEscaped, html};
use melm::files::sha256;

use crate::numbers;
use crate::{MAX_BYTES, Report, chart};

/// The style of the page.
const STYLE: &str = include_str!("../../assets/report.css");
/// The script of the page.
const SCRIPT: &str = include_str!("../../assets/report.js");

/// Returns the page. Leaves out candidates until it is short enough.
pub(crate) fn html(report: &Report) -> String {
    let mut page = render(report).into_string();
    let mut n = report.candidates.len();
    while page.len() > MAX_BYTES && n > 0 {
        // Candidates make up nearly all of a long page. The factor leaves room for the rest.
        n = (n * MAX_BYTES / page.len() * 95 / 100).min(n - 1);
        let all = report.candidates.clone();
        let candidates = numbers::sample(all, n, &report.highlights);
        let shown = numbers::Choices::new(&candidates, &report.types, report.shown.total);
        n = n.min(candidates.len());
        page = render(&Report { shown, candidates, ..report.clone() }).into_string();
    }
    page
}

fn render(report: &Report) -> Markup {
    let title = format!("melm {}: {}", report.kind.name(), report.folder);
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta http-equiv="Content-Security-Policy" content=(policy());
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                meta name="referrer" content="no-referrer";
                title { (title) }
                style { (PreEscaped(STYLE)) }
            }
            body {
                a.skip href="#main" { "Skip to the content" }
                (overview::header(report))
                main id="main" {
                    (overview::sections(report))
                    (experiment::section(&report.tables))
                    (sentences::section(report))
                    (charts(report))
                    (overview::repeat(report))
                }
                (data::element(report))
                script { (PreEscaped(SCRIPT)) }
            }
        }
    }
}

fn charts(report: &Report) -> Markup {
    html! {
        @if !report.charts.is_empty() {
            section #training aria-labelledby="h-training" {
                h2 #h-training { "Training" }
                div.charts { @for one in &report.charts { (chart::figure(one)) } }
            }
        }
    }
}

/// Allows the script and the style of this page by their hashes, and nothing else: no other script, no request.
fn policy() -> String {
    let [script, style] = [SCRIPT, STYLE].map(hash);
    format!(
        "default-src 'none'; script-src '{script}'; style-src '{style}'; base-uri 'none'; form-action 'none'"
    )
}

/// The SHA-256 of a text as a content security policy writes it.
fn hash(text: &str) -> String {
    let digits = sha256(text.as_bytes());
    let byte = |at: usize| u8::from_str_radix(&digits[at..at + 2], 16).expect("hexadecimal digits");
    let bytes: Vec<u8> = (0..digits.len()).step_by(2).map(byte).collect();
    format!("sha256-{}", STANDARD.encode(bytes))
}

/// A number with commas between thousands.
fn grouped(n: usize) -> String {
    let digits = n.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_policy_has_hashes_as_browsers_compute_them() {
        // `printf abc | openssl dgst -sha256 -binary | base64`
        assert_eq!(hash("abc"), "sha256-ungWv48Bz+pBQUDeXa4iI7ADYaOWF3qctBD/YfIAFa0=");
        assert!(!policy().contains("unsafe"));
    }

    #[test]
    fn style_and_script_cannot_end_their_elements_and_load_nothing() {
        assert!(!SCRIPT.contains("</") && !STYLE.contains("</"));
        for word in
            ["http://", "https://", "fetch(", "XMLHttpRequest", "innerHTML", "@import", "url("]
        {
            assert!(!SCRIPT.contains(word) && !STYLE.contains(word), "{word}");
        }
    }

    #[test]
    fn numbers_have_commas() {
        assert_eq!([0, 999, 1000, 1_234_567].map(grouped), ["0", "999", "1,000", "1,234,567"]);
    }
}
