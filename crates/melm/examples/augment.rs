//! Augments a corpus and writes the result into a new folder.
//!
//!     cargo run --release -p melm --example augment -- train.conll dev.conll more [key=value …]
//!
//! Each `key=value` sets a key of the plan, as in `generate.rounds=1`.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "an example prints its result")]

use melm::stage::{Control, Event};
use melm::{Augment, Corpus};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args().skip(1);
    let mut next = || args.next().ok_or("expected TRAIN DEV DIR");
    let (train, dev, dir) = (Corpus::open(next()?)?, Corpus::open(next()?)?, next()?);
    let mut augment = Augment::new(train).dev(dev).seed(1).on_event(|stage, event| {
        if let Event::Epoch(epoch) = event {
            eprintln!("{stage}: epoch {}, loss {:.3}", epoch.epoch, epoch.loss);
        }
        Control::Continue
    });
    for edit in args {
        augment = augment.set(&edit);
    }
    let augmented = augment.run()?;
    let paths = augmented.write(dir)?;
    let summary = augmented.summary();
    println!("{} drafts, {} kept: {}", summary.drafts, summary.kept, paths[0].display());
    Ok(())
}
