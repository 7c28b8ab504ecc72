//! `melm finetune`: a masked entity language model from labelled sentences.

use melm::augment::tune;
use melm::markers::MarkerStart;

use crate::args::Finetune;
use crate::failure::Failure;
use crate::terminal::{Terminal, count};
use crate::training::{Kind, Learned, Training};

pub(crate) fn run(command: &Finetune, terminal: &Terminal) -> Result<(), Failure> {
    let training = Training::new(Kind::MaskedLm, &command.learning, terminal)?;
    let (plan, gold) = (&training.plan, training.gold());
    let method = plan.method;
    let nothing = || Failure::Usage {
        message: format!("the method `{}` fine-tunes nothing", method.name()),
        hint: "set the plan's `method` to `melm` or `melm-plain`, or use `melm augment`",
    };
    if !method.finetunes() {
        return Err(nothing());
    }
    if method.mixes() {
        return Err(Failure::Usage {
            message: format!("the method `{}` makes code-mixed sentences first", method.name()),
            hint: "use `melm augment`, with `--keep-model` for the fine-tuned model",
        });
    }
    training.run(terminal, |run, dir| {
        let tuned = tune(gold, plan, &training.pretrained, &training.device, run)?;
        tuned.lm.save(dir)?;
        let mut lines: Vec<_> = starts(&tuned.markers).into_iter().collect();
        let (n_windowed, n_left_out) = (tuned.linearized.n_windowed, tuned.linearized.n_left_out);
        lines.extend(cuts((n_windowed, n_left_out), 0));
        let counts = vec![("windowed_sentences", n_windowed), ("left_out_mentions", n_left_out)];
        Ok(Learned { fitted: tuned.outcome.ok_or_else(nothing)?, lines, counts })
    })
}

/// Where the rows of markers started, in words.
pub(crate) fn starts(markers: &[MarkerStart]) -> Option<String> {
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

/// What did not fit the masked language model, in words.
pub(crate) fn cuts(
    (n_windowed, n_left_out): (usize, usize),
    n_unmaskable: usize,
) -> impl Iterator<Item = String> {
    let lines = [
        (n_windowed, "sentence", "read in overlapping windows: longer than the model"),
        (n_left_out, "mention", "too long for the model: left as they are"),
        (n_unmaskable, "entity token", "unknown to the model: left as they are"),
    ];
    let said = lines.into_iter().filter(|(n, ..)| *n > 0);
    said.map(|(n, noun, what)| format!("{} {what}", count(n, noun)))
}
