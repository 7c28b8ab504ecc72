//! Measures how well the tokenizer, with rules taken from TRAIN, finds the tokens of other labelled files again.
//!
//! ```text
//! cargo run --example tokenizer_fit -- TRAIN FILE…
//! ```
//!
//! The spaces of the original texts are not known. So the sentences are written twice: with a space between all tokens,
//! and without the spaces that text usually does not have around punctuation marks and clitics.

use std::collections::HashMap;
use std::io::{Write, stdout};

use melm_text::{Corpus, Sentence, Tokenizer, TokenizerChoice, TokenizerRules};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut files = std::env::args().skip(1);
    let train = Corpus::open(files.next().ok_or("usage: tokenizer_fit TRAIN FILE…")?)?;
    let rules = TokenizerRules::from_corpus(&train);
    let mut out = stdout().lock();
    writeln!(out, "{rules}")?;
    for choice in TokenizerChoice::ALL {
        let evidence = rules.evidence(choice);
        let (joined, apart) = (evidence.n_joined, evidence.n_apart);
        writeln!(
            out,
            "{:>12} {:<5} {joined} joined, {apart} apart",
            choice.example(),
            rules.joins(choice)
        )?;
    }
    let tokenizer = Tokenizer::new(rules);
    for file in files {
        let corpus = Corpus::open(&file)?;
        for (name, write) in
            [("spaces", with_spaces as fn(&[&str]) -> String), ("natural", naturally)]
        {
            let fit = Fit::measure(&tokenizer, corpus.sentences(), write)?;
            fit.print(&mut out, &format!("{file} {name}"))?;
        }
    }
    Ok(())
}

/// Counts of sentences and tokens that the tokenizer finds again.
#[derive(Default)]
struct Fit {
    n_sentences: usize,
    n_same: usize,
    n_tokens: usize,
    n_found: usize,
    /// The tokens that are not found, with their counts.
    missed: HashMap<String, usize>,
}

impl Fit {
    fn measure(
        tokenizer: &Tokenizer,
        sentences: &[Sentence],
        write: fn(&[&str]) -> String,
    ) -> Result<Self, melm_text::UnspacedText> {
        let mut fit = Self::default();
        for sentence in sentences {
            let gold: Vec<&str> = sentence.tokens().iter().map(AsRef::as_ref).collect();
            let text = write(&gold);
            let found = tokenizer.tokenize(&text)?;
            let same = found.tokens().eq(gold.iter().copied());
            fit.n_sentences += 1;
            fit.n_same += usize::from(same);
            fit.n_tokens += gold.len();
            // Spans of the text without spaces are the same in both.
            let starts = spans(found.tokens());
            for (span, token) in spans(gold.iter().copied()).into_iter().zip(&gold) {
                if starts.binary_search(&span).is_ok() {
                    fit.n_found += 1;
                } else {
                    *fit.missed.entry((*token).to_owned()).or_default() += 1;
                }
            }
        }
        Ok(fit)
    }

    fn print(&self, out: &mut impl Write, name: &str) -> std::io::Result<()> {
        let share = |n: usize, all: usize| 100.0 * n as f64 / all as f64;
        writeln!(
            out,
            "{name}: {:.1} % of {} sentences, {:.2} % of {} tokens",
            share(self.n_same, self.n_sentences),
            self.n_sentences,
            share(self.n_found, self.n_tokens),
            self.n_tokens
        )?;
        let mut missed: Vec<_> = self.missed.iter().collect();
        missed.sort_by_key(|&(token, &n)| (std::cmp::Reverse(n), token));
        let first: Vec<_> =
            missed.iter().take(20).map(|(token, n)| format!("{token} ({n})")).collect();
        writeln!(out, "  missed most: {}", first.join(" "))
    }
}

/// Returns the spans of tokens in a text without spaces.
fn spans<'t>(tokens: impl Iterator<Item = &'t str>) -> Vec<(usize, usize)> {
    let mut at = 0;
    let span = |token: &str| {
        let start = at;
        at += token.chars().filter(|c| !c.is_whitespace()).count();
        (start, at)
    };
    tokens.map(span).collect()
}

fn with_spaces(tokens: &[&str]) -> String {
    tokens.join(" ")
}

/// Joins tokens as text is usually written: no space before closing marks and clitics, none after opening marks, and
/// none inside a pair of quotes.
fn naturally(tokens: &[&str]) -> String {
    let mut text = String::new();
    let mut is_open = false;
    let mut sticks = true;
    for &token in tokens {
        let is_quote = token == "\"";
        let closes = match token {
            "." | "," | ";" | ":" | "!" | "?" | ")" | "]" | "%" | "..." | "n't" => true,
            "\"" => is_open,
            _ => ["'s", "'re", "'ve", "'ll", "'d", "'m"].contains(&token),
        };
        if !sticks && !closes {
            text.push(' ');
        }
        text.push_str(token);
        is_open ^= is_quote;
        sticks = matches!(token, "(" | "[" | "$" | "¿" | "¡") || is_quote && is_open;
    }
    text
}
