//! `melm train`: trains a tagger on labelled sentences.

use melm::tagger::Truncation;
use melm::training_job::TrainedKind;

use crate::args::Train;
use crate::failure::Failure;
use crate::terminal::{Terminal, count};
use crate::training;

pub(crate) fn run(command: &Train, terminal: &Terminal) -> Result<(), Failure> {
    let (job, device_name) = training::prepare(TrainedKind::Tagger, &command.training, terminal)?;
    training::run(TrainedKind::Tagger, &job, &device_name, &command.training, terminal)
}

/// Returns lines about sentences and tokens that are too long for the model.
pub(crate) fn describe_truncation(truncation: Truncation) -> Vec<String> {
    let Truncation { n_windowed, n_left_out, n_cut_tokens } = truncation;
    let lines = [
        (n_windowed, "sentence", "longer than the model's input: split into overlapping windows"),
        (n_left_out, "sentence", "left out: a mention is longer than the model's input"),
        (n_cut_tokens, "token", "truncated: more pieces than a quarter of the model's input"),
    ];
    let lines = lines.into_iter().filter(|(n, ..)| *n > 0);
    lines.map(|(n, noun, what)| format!("{} {what}", count(n, noun))).collect()
}
