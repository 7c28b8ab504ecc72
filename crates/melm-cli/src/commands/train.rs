//! `melm train`: a tagger from labelled sentences.

use melm::tagger::{Tagger, Truncation};

use crate::args::Train;
use crate::failure::Failure;
use crate::terminal::{Terminal, count};
use crate::training::{Kind, Learned, Training};

pub(crate) fn run(command: &Train, terminal: &Terminal) -> Result<(), Failure> {
    let training = Training::new(Kind::Tagger, &command.learning, terminal)?;
    let (gold, pretrained) = (training.gold(), &training.pretrained);
    training.run(terminal, |run, dir| {
        let (settings, device) = (&training.plan.tagger, &training.device);
        let stage = &mut run.stage(Kind::Tagger.stage());
        let trained = Tagger::train(pretrained, gold.train, gold.dev, settings, device, stage)?;
        trained.tagger.save(dir)?;
        let counts = vec![
            ("windowed_sentences", trained.truncation.n_windowed),
            ("left_out_sentences", trained.truncation.n_left_out),
            ("cut_tokens", trained.truncation.n_cut_tokens),
        ];
        Ok(Learned { fitted: trained.outcome, lines: cuts(trained.truncation), counts })
    })
}

/// What did not fit the model, in words.
pub(crate) fn cuts(cuts: Truncation) -> Vec<String> {
    let lines = [
        (cuts.n_windowed, "sentence", "read in overlapping windows: longer than the model"),
        (cuts.n_left_out, "sentence", "left out: a mention is longer than the model"),
        (cuts.n_cut_tokens, "token", "read in part: more pieces than a quarter of the model"),
    ];
    let said = lines.into_iter().filter(|(n, ..)| *n > 0);
    said.map(|(n, noun, what)| format!("{} {what}", count(n, noun))).collect()
}
