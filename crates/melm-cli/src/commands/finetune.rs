//! `melm finetune`: fine-tunes a masked language model on labelled sentences.

use melm::markers::MarkerStart;
use melm::training_job::TrainedKind;

use crate::args::Finetune;
use crate::failure::Failure;
use crate::terminal::{Terminal, count};
use crate::training;

pub(crate) fn run(command: &Finetune, terminal: &Terminal) -> Result<(), Failure> {
    let (job, device_name) = training::prepare(TrainedKind::MaskedLm, &command.training, terminal)?;
    let method = job.plan().method;
    if !method.finetunes() {
        return Err(Failure::Usage {
            message: format!("the method `{}` does not fine-tune a model", method.name()),
            hint: "set the plan's `method` to `melm` or `melm-plain`, or use `melm augment`",
        });
    }
    if method.mixes() {
        return Err(Failure::Usage {
            message: format!(
                "the method `{}` needs code-mixed sentences, which only `melm augment` makes",
                method.name()
            ),
            hint: "use `melm augment --keep-model`, which also writes the fine-tuned model",
        });
    }
    training::run(TrainedKind::MaskedLm, &job, &device_name, &command.training, terminal)
}

/// Describes how the embeddings of the markers were initialised.
pub(crate) fn describe_markers(markers: &[MarkerStart]) -> Option<String> {
    let mut starts: Vec<String> = Vec::new();
    for start in markers {
        let tag = start.marker.trim_matches(['<', '>']);
        let entity_type = tag.split_once('-').map_or(tag, |(_, entity_type)| entity_type);
        let start = match start.n_pieces {
            0 => format!("{entity_type} at random"),
            _ => format!("{entity_type} as `{}`", start.words.join(" ")),
        };
        if !starts.contains(&start) {
            starts.push(start);
        }
    }
    (!starts.is_empty()).then(|| format!("markers initialised: {}", starts.join(", ")))
}

/// Returns lines about sentences and mentions that are too long for the model, and tokens that it cannot mask.
pub(crate) fn describe_left_out(
    n_windowed: usize,
    n_left_out: usize,
    n_unmaskable: usize,
) -> impl Iterator<Item = String> {
    let lines = [
        (n_windowed, "sentence", "longer than the model's input: split into overlapping windows"),
        (n_left_out, "mention", "too long for the model: not replaced"),
        (n_unmaskable, "entity token", "unknown to the model: not replaced"),
    ];
    let lines = lines.into_iter().filter(|(n, ..)| *n > 0);
    lines.map(|(n, noun, what)| format!("{} {what}", count(n, noun)))
}
