//! Encodes sentences for `tools/check_tokenizer.py`. Each input line is a JSON array of tokens, each output line a
//! JSON object.
//!
//! usage: `encode_lines MODEL_FOLDER < SENTENCES`

use std::error::Error;
use std::io::{BufRead, Write};

use melm::pieces::Tokenizer;

fn main() -> Result<(), Box<dyn Error>> {
    let folder = std::env::args().nth(1).ok_or("usage: encode_lines MODEL_FOLDER < SENTENCES")?;
    let tokenizer = Tokenizer::open(folder.as_ref())?;
    let mut out = std::io::BufWriter::new(std::io::stdout().lock());
    for line in std::io::stdin().lock().lines() {
        let tokens: Vec<String> = serde_json::from_str(&line?)?;
        let encoded = tokenizer.encode(&tokens)?;
        let words: Vec<_> = encoded.tokens.iter().map(|word| (word.start, word.end)).collect();
        let line = serde_json::json!({
            "pieces": encoded.pieces, "words": words, "n_invisible": encoded.n_invisible,
        });
        writeln!(out, "{line}")?;
    }
    Ok(out.flush()?)
}
