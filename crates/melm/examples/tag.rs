//! Tags a file with a trained tagger and writes CoNLL rows to standard output.
//!
//!     cargo run --release -p melm --example tag -- tagger new.conll

use melm::{Corpus, Tagger};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args().skip(1);
    let mut next = || args.next().ok_or("expected TAGGER FILE");
    let tagger = Tagger::open(next()?)?;
    let corpus = tagger.tag(&Corpus::open(next()?)?)?;
    corpus.write_conll(std::io::stdout().lock())?;
    Ok(())
}
