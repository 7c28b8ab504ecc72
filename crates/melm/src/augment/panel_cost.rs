//! Estimates the cost of labelling unlabelled text: training the panels, and tagging the text.

use melm_nn::device::Device;

use super::cost::{BYTES, CorpusSize, Cost, EncoderSize, FORWARD, Markers};
use super::estimate::makes_two_drafts;
use super::text::TextToLabel;
use super::{AugmentJob, Estimate, Gold};
use crate::methods::Method;
use crate::models::Pretrained;
use crate::plan::Plan;
use crate::self_training::{PanelData, tagger_settings};

/// The assumed share of the drafts that are kept. Only the number of epochs and the length of a sentence depend on it.
const KEPT_DRAFTS: f64 = 0.6;
/// The assumed share of the sentences of a text that a panel agrees on and finds a mention in.
const AGREED: f64 = 0.4;

/// The bytes of a token of the text: about 80 in each of three copies, the last with its label.
const TOKEN_BYTES: f64 = 240.0;

/// Everything that the cost of a panel depends on, except the model.
pub(crate) struct PanelWork<'a> {
    pub(crate) plan: &'a Plan,
    pub(crate) gold: Gold<'a>,
    pub(crate) text: &'a TextToLabel,
    /// The expected number of kept drafts for each gold sentence.
    pub(crate) n_drafts: f64,
}

impl PanelWork<'_> {
    /// Estimates the time and memory of the panel alone. `seconds` is a clock.
    pub(crate) fn estimate(
        &self,
        model: &Pretrained,
        device: &Device,
        seconds: &dyn Fn() -> f64,
    ) -> Estimate {
        Estimate::measure(self.costs(model).into(), device, seconds)
    }

    /// Returns the stages of training all panels and of tagging the text with each of their taggers, with their costs.
    pub(super) fn costs(&self, model: &Pretrained) -> [(&'static str, Cost); 2] {
        let [training, labelling] = panel_costs(self, model);
        [("training the panel", training), ("labelling the text", labelling)]
    }
}

fn panel_costs(work: &PanelWork<'_>, model: &Pretrained) -> [Cost; 2] {
    let (settings, text) = (&work.plan.self_training, work.text);
    let size = EncoderSize::new(model);
    let gold = CorpusSize::new(model, Some(work.gold.train), Markers::Absent);
    let dev = CorpusSize::new(model, work.gold.dev, Markers::Absent);
    let n_tokens: usize = text.sentences.iter().map(|sentence| sentence.tokens().len()).sum();
    let text_bytes = TOKEN_BYTES * n_tokens as f64;
    let limit = model.checkpoint().config().max_pieces();
    let text = CorpusSize::from_sentences(model, &text.sentences, Markers::Absent, limit);
    let n_drafts = match settings.learns_from {
        PanelData::Gold => 0.0,
        PanelData::GoldAndDrafts => work.n_drafts,
    };
    let n_taggers = settings.panel.get() as f64;
    let training = tagger_settings(work.plan).training;
    let mut trained = Cost { operations: 0.0, bytes: 0.0 };
    // How often each sentence of the text is tagged.
    let mut n_readings = 0.0;
    for pass in 1..=settings.passes.get() {
        // With folds, a tagger of a later pass is not trained on the part of the text that it labels.
        let n_folds = if pass == 1 { 1.0 } else { settings.folds.get() as f64 };
        n_readings += n_taggers / n_folds;
        let n_kept = (AGREED * text.sentences).min(gold.sentences * settings.cap.get() as f64);
        let n_text = match (pass, settings.folds.get()) {
            (1, _) => 0.0,
            (_, 1) => n_kept,
            (_, n) => n_kept * (n - 1) as f64 / n_folds,
        };
        let train = gold.scaled(1.0 + n_drafts).plus(&text.with_sentences(n_text));
        let cost = size.training_cost(&training, &train, &dev, 0.0);
        trained.operations += n_taggers * cost.operations;
        trained.bytes = trained.bytes.max(cost.bytes + text_bytes);
    }
    let operations = n_readings * text.pieces * FORWARD * size.encoder;
    [trained, Cost { operations, bytes: BYTES * size.all + text_bytes }]
}

/// The expected number of kept drafts for each gold sentence.
pub(super) fn n_kept_drafts(job: &AugmentJob) -> f64 {
    let each = if makes_two_drafts(job) { 2.0 } else { 1.0 };
    let is_made = if job.plan.method == Method::Gold { 0.0 } else { 1.0 };
    KEPT_DRAFTS * is_made * each * f64::from(job.plan.generate.rounds.get())
}
