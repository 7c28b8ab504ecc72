//! `melm train`: a tagger from labelled sentences.

use melm::tagger::{Cuts, Tagger};

use crate::args::Train;
use crate::failure::Failure;
use crate::terminal::{Terminal, count};
use crate::training::{Kind, Learned, Training};

pub(crate) fn run(command: &Train, terminal: &Terminal) -> Result<(), Failure> {
    let training = Training::new(Kind::Tagger, &command.learning, terminal)?;
    let (gold, pretrained) = (training.gold(), &training.pretrained);
    training.run(terminal, |run, dir| {
        let settings = (&training.plan.tagger, &training.device);
        let stage = &mut run.stage(Kind::Tagger.stage());
        let trained = Tagger::train(pretrained, (gold.train, gold.dev), settings, stage)?;
        trained.tagger.save(dir)?;
        let counts = vec![
            ("windowed_sentences", trained.cuts.n_windowed),
            ("left_out_sentences", trained.cuts.n_left_out),
            ("cut_tokens", trained.cuts.n_cut_tokens),
        ];
        Ok(Learned { fitted: trained.fitted, lines: cuts(trained.cuts), counts })
    })
}

/// What did not fit the model, in words.
pub(crate) fn cuts(cuts: Cuts) -> Vec<String> {
    let lines = [
        (cuts.n_windowed, "sentence", "read in overlapping windows: longer than the model"),
        (cuts.n_left_out, "sentence", "left out: a mention is longer than the model"),
        (cuts.n_cut_tokens, "token", "read in part: more pieces than a quarter of the model"),
    ];
    let said = lines.into_iter().filter(|(n, ..)| *n > 0);
    said.map(|(n, noun, what)| format!("{} {what}", count(n, noun))).collect()
}
