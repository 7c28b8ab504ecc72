//! Trains a tagger and saves it as a Hugging Face folder.
//!
//!     cargo run --release -p melm --example train_tagger -- train.conll dev.conll tagger [key=value …]
#![expect(clippy::print_stdout, reason = "an example prints its result")]

use melm::{Corpus, Tagger};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args().skip(1);
    let mut next = || args.next().ok_or("expected TRAIN DEV DIR");
    let (train, dev, dir) = (Corpus::open(next()?)?, Corpus::open(next()?)?, next()?);
    let mut trainer = Tagger::trainer(train).dev(dev).seed(1);
    for edit in args {
        trainer = trainer.set(&edit);
    }
    let tagger = trainer.train()?;
    tagger.save(&dir)?;
    if let Some(best) = tagger.training().and_then(|training| training.best) {
        println!("dev F1 {:.2} in epoch {}", 100.0 * best.value, best.epoch);
    }
    Ok(())
}
