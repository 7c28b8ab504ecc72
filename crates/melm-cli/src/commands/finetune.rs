//! `melm finetune`: a masked entity language model from labelled sentences.

use melm::markers::MarkerStart;
use melm::training_job::TrainedKind;

use crate::args::Finetune;
use crate::failure::Failure;
use crate::terminal::{Terminal, count};
use crate::training;

pub(crate) fn run(command: &Finetune, terminal: &Terminal) -> Result<(), Failure> {
    let (job, machine) = training::prepare(TrainedKind::MaskedLm, &command.learning, terminal)?;
    let method = job.plan().method;
    if !method.finetunes() {
        return Err(Failure::Usage {
            message: format!("the method `{}` fine-tunes nothing", method.name()),
            hint: "set the plan's `method` to `melm` or `melm-plain`, or use `melm augment`",
        });
    }
    if method.mixes() {
        return Err(Failure::Usage {
            message: format!("the method `{}` makes code-mixed sentences first", method.name()),
            hint: "use `melm augment`, with `--keep-model` for the fine-tuned model",
        });
    }
    training::run(TrainedKind::MaskedLm, &job, &machine, &command.learning, terminal)
}

/// Describes how the rows of the markers were initialised.
pub(crate) fn describe_markers(markers: &[MarkerStart]) -> Option<String> {
    let mut starts: Vec<String> = Vec::new();
    for start in markers {
        let tag = start.marker.trim_matches(['<', '>']);
        let entity_type = tag.split_once('-').map_or(tag, |(_, entity_type)| entity_type);
        let start = match start.n_pieces {
            0 => format!("{entity_type} at random"),
            _ => format!("{entity_type} at {}", start.words.join(" ")),
        };
        if !starts.contains(&start) {
            starts.push(start);
        }
    }
    (!starts.is_empty()).then(|| format!("markers start: {}", starts.join(", ")))
}

/// Describes what the masked language model could not read as a whole or could not mask.
pub(crate) fn describe_left_out(
    n_windowed: usize,
    n_left_out: usize,
    n_unmaskable: usize,
) -> impl Iterator<Item = String> {
    let lines = [
        (n_windowed, "sentence", "longer than the model: read in overlapping windows"),
        (n_left_out, "mention", "too long for the model: left as they are"),
        (n_unmaskable, "entity token", "unknown to the model: left as they are"),
    ];
    let lines = lines.into_iter().filter(|(n, ..)| *n > 0);
    lines.map(|(n, noun, what)| format!("{} {what}", count(n, noun)))
}
