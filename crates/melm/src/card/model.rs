//! The card of a model that `melm train` or `melm finetune` writes.

use melm_text::Corpus;

use super::{Card, count_mentions, count_tokens, languages};
use crate::plan::Plan;
use crate::training::TrainingOutcome;
use crate::training_job::{TrainedKind, TrainingDetails};

/// What the card of a model says.
pub(crate) struct ModelCard<'a> {
    pub(crate) kind: TrainedKind,
    pub(crate) plan: &'a Plan,
    pub(crate) train: &'a Corpus,
    pub(crate) dev: Option<&'a Corpus>,
    pub(crate) outcome: &'a TrainingOutcome,
    pub(crate) details: &'a TrainingDetails,
    /// The arguments of the command. Empty if a program called the library.
    pub(crate) arguments: &'a [String],
}

/// Returns the card of a trained model.
pub(crate) fn model_card(model: &ModelCard<'_>) -> String {
    let mut card = Card::default();
    write_header(&mut card, model);
    let (title, purpose) = match model.kind {
        TrainedKind::Tagger => (
            "# Tagger for named-entity recognition",
            "It finds mentions of the entity types below. `melm tag` opens it.",
        ),
        TrainedKind::MaskedLm => (
            "# Masked entity language model",
            "It fills masked mentions of the entity types below. `melm generate` opens it.",
        ),
    };
    let base = model.kind.model(model.plan);
    card.heading(title);
    card.line(purpose);
    card.line(&format!(
        "It was trained by melm {}, starting from `{base}`.",
        env!("CARGO_PKG_VERSION")
    ));
    write_data(&mut card, model);
    write_scores(&mut card, model);
    card.repetition(model.arguments, model.plan.seed);
    write_limits(&mut card, model);
    card.0
}

fn write_header(card: &mut Card, model: &ModelCard<'_>) {
    let task = match model.kind {
        TrainedKind::Tagger => "token-classification",
        TrainedKind::MaskedLm => "fill-mask",
    };
    card.line("---");
    card.yaml_list("language", languages(model.train));
    card.line(&format!("pipeline_tag: {task}"));
    card.line("library_name: melm");
    // The hub knows names of the form `owner/name`. A folder is known on one machine only.
    let base = model.kind.model(model.plan);
    if is_hub_name(base) {
        card.yaml_list("base_model", [base]);
    }
    card.yaml_list("entity_types", count_mentions(model.train).into_iter().map(|(name, _)| name));
    card.yaml_list("tags", ["melm", "named-entity-recognition"]);
    card.line("---");
}

/// Returns true if a name can be that of a model with an owner on the Hugging Face hub.
fn is_hub_name(name: &str) -> bool {
    let is_part = |part: &str| {
        let is_allowed = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
        !part.is_empty() && !part.starts_with('.') && part.chars().all(is_allowed)
    };
    let is_pair = name.split_once('/').is_some_and(|(owner, name)| is_part(owner) && is_part(name));
    is_pair && !std::path::Path::new(name).exists()
}

fn write_data(card: &mut Card, model: &ModelCard<'_>) {
    card.heading("## Data");
    card.table(&["part", "sentences", "tokens"]);
    let parts = std::iter::once(("training set", model.train));
    for (part, corpus) in parts.chain(model.dev.map(|dev| ("dev set", dev))) {
        let (n, n_tokens) = (corpus.sentences().len(), count_tokens(corpus));
        card.row(&[part, &n.to_string(), &n_tokens.to_string()]);
    }
    card.line("");
    card.table(&["entity type", "mentions in the training set"]);
    for (name, n) in count_mentions(model.train) {
        card.row(&[&format!("`{name}`"), &n.to_string()]);
    }
    card.line("");
    card.line(&format!("Tags are written in {}.", model.train.scheme()));
}

fn write_scores(card: &mut Card, model: &ModelCard<'_>) {
    card.heading("## Scores");
    let outcome = model.outcome;
    let (n_epochs, n_steps) = (outcome.epochs.len(), outcome.n_steps);
    card.line(&format!("The model was trained for {n_epochs} epochs ({n_steps} updates)."));
    match outcome.best {
        Some(best) => {
            let value = match model.kind {
                TrainedKind::Tagger => format!("micro-F1 {:.2} %", best.value * 100.0),
                TrainedKind::MaskedLm => format!("mean loss {:.4}", best.value),
            };
            let epoch = best.epoch;
            card.line(&format!(
                "The parameters are those of epoch {epoch}, the best on the dev set: {value}."
            ));
            card.line("The dev set selected the epoch. Expect worse values on other data.");
        }
        None => {
            card.line(
                "The parameters are those of the last epoch. They were not evaluated on a dev set.",
            );
        }
    }
}

fn write_limits(card: &mut Card, model: &ModelCard<'_>) {
    card.heading("## Limits");
    card.line("- The model knows only the entity types above, as the training set uses them.");
    card.line("- Text of other kinds or languages than the training set gives lower scores.");
    let n_left_out = match model.details {
        TrainingDetails::Tagger(truncation) => truncation.n_left_out,
        TrainingDetails::MaskedLm { linearized, .. } => linearized.n_left_out,
    };
    if n_left_out > 0 {
        let what = match model.kind {
            TrainedKind::Tagger => "sentences",
            TrainedKind::MaskedLm => "mentions",
        };
        card.line(&format!("- {n_left_out} {what} were too long for the model and were left out."));
    }
    if model.kind == TrainedKind::MaskedLm {
        card.line("- The text that it writes can be untrue, and can contain names of real people.");
    }
    card.line("- Licence: none is stated. The licences of the base model and of the data apply. Add `license:` to the");
    card.line("  header if you publish the model.");
}
