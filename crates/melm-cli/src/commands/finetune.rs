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

/// Describes how the embeddings of the markers were initialised. Markers that start from related words alone are
/// grouped by entity type, because all tags of a type start from the same words.
pub(crate) fn describe_markers(markers: &[MarkerStart]) -> Option<String> {
    let mut starts: Vec<String> = Vec::new();
    for start in markers {
        let tag = start.marker.trim_matches(['<', '>']);
        let entity_type = tag.split_once('-').map_or(tag, |(_, entity_type)| entity_type);
        let (words, tokens) = (start.words.join(" "), count(start.n_tokens, "training token"));
        let start = match (start.n_pieces, start.n_tokens) {
            (0, 0) => format!("{entity_type} at random"),
            (_, 0) => format!("{entity_type} as `{words}`"),
            (0, _) => format!("{tag} as {tokens}"),
            (_, _) => format!("{tag} as `{words}` and {tokens}"),
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

#[cfg(test)]
mod tests {
    use super::*;

    fn start(marker: &str, words: &[&str], n_tokens: usize) -> MarkerStart {
        MarkerStart {
            marker: marker.to_owned(),
            words: words.iter().map(ToString::to_string).collect(),
            n_pieces: words.len(),
            n_tokens,
        }
    }

    #[test]
    fn every_start_of_a_marker_is_described() {
        let starts = [
            start("<B-LOC>", &["location"], 0),
            start("<I-LOC>", &["location"], 0),
            start("<B-PER>", &[], 12),
            start("<I-PER>", &[], 1),
            start("<B-ORG>", &["organization"], 3),
            start("<B-X>", &[], 0),
        ];
        assert_eq!(
            describe_markers(&starts).unwrap(),
            "markers initialised: LOC as `location`, B-PER as 12 training tokens, I-PER as 1 training token, \
             B-ORG as `organization` and 3 training tokens, X at random"
        );
        assert_eq!(describe_markers(&[]), None);
    }
}
