//! Scores predicted tags against gold tags, as conlleval and seqeval do.
//!
//!     cargo run --release -p melm --example score -- gold.conll predicted.conll
#![expect(clippy::print_stdout, reason = "an example prints its result")]

use melm::{Corpus, score};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args().skip(1);
    let mut next = || args.next().ok_or("expected GOLD PREDICTED");
    let (gold, predicted) = (Corpus::open(next()?)?, Corpus::open(next()?)?);
    let scores = score(&gold, &predicted)?;
    let rates = scores.micro().rates();
    println!("precision {:.2}", 100.0 * rates.precision);
    println!("recall    {:.2}", 100.0 * rates.recall);
    println!("F1        {:.2}", 100.0 * rates.f1);
    Ok(())
}
