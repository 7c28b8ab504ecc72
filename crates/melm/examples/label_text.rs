//! Augments a corpus with drafts and with sentences of an unlabelled text, and writes the result into a new folder.
//!
//!     cargo run --release -p melm --example label_text -- train.conll dev.conll text.txt more [key=value …]
//!
//! Each `key=value` sets a key of the plan, as in `self_training.panel=3`.
#![expect(clippy::print_stdout, reason = "an example prints its result")]

use melm::text::{TextOptions, Tokenizer, TokenizerRules, UnlabelledText};
use melm::{Augment, Corpus};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args().skip(1);
    let mut next = || args.next().ok_or("expected TRAIN DEV TEXT DIR");
    let (train, dev) = (Corpus::open(next()?)?, Corpus::open(next()?)?);
    // Split the text into tokens like those of the training set.
    let rules = TokenizerRules::from_corpus(&train);
    let options = TextOptions::with_tokenizer(Tokenizer::new(rules));
    let (text, dir) = (UnlabelledText::open(next()?, &options)?, next()?);
    let mut augment = Augment::new(train).dev(dev).unlabelled(text).seed(1);
    for edit in args {
        augment = augment.set(&edit);
    }
    let augmented = augment.run()?;
    augmented.write(dir)?;
    if let Some(text) = augmented.text() {
        let (summary, n_known) = (text.summary(), text.left_out.total());
        println!("{} sentences of text kept, {n_known} left out", summary.kept);
        println!("{} disagreed on, of {}", summary.disagrees, summary.sentences);
    }
    Ok(())
}
