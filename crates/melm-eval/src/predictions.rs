//! What a model puts in the place of an entity (Table 3): the likeliest five, side by side for three models.

use melm_nn::device::Device;
use melm_nn::mlm::{MaskedBatch, MaskedLmTape, Predictions as Found};
use melm_text::Corpus;

use crate::Error;
use melm::augment::{Gold, Method, tune};
use melm::entity_lm::EntityLm;
use melm::model::Pretrained;
use melm::plan::Plan;
use melm::random::Seed;
use melm::stage::{Observer, Run};

/// The models of the table.
pub const MODELS: [Method; 3] = [Method::MlmEntity, Method::MelmPlain, Method::Melm];

/// How many predictions are shown.
const N_BEST: usize = 5;

/// An entity token of one piece, and what the models would put there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Prediction {
    /// Its sentence, among those shown.
    pub sentence: usize,
    /// Its position in it.
    pub token: usize,
    /// The likeliest words of each of [`MODELS`].
    pub words: Vec<Vec<String>>,
}

/// The predictions of the three models, fine-tuned on `gold` as the plan says, for every entity token of `shown` that
/// is one piece. The tags of `shown` must occur in gold.
pub fn predictions(
    gold: Gold<'_>,
    shown: &Corpus,
    plan: &Plan,
    (pretrained, device, listener): (&Pretrained, &Device, Observer<'_>),
) -> Result<Vec<Prediction>, Error> {
    let mut all: Vec<Prediction> = Vec::new();
    let mut run = Run { seed: Seed(plan.seed), folder: None, observer: listener };
    for method in MODELS {
        let plan = Plan { method, ..plan.clone() };
        let tuned = tune(gold, &plan, pretrained, device, &mut run)?;
        for (sentence, token, words) in of_model(&tuned.lm, shown, device)? {
            let is_it = |one: &&mut Prediction| (one.sentence, one.token) == (sentence, token);
            match all.iter_mut().find(is_it) {
                Some(known) => known.words.push(words),
                None => all.push(Prediction { sentence, token, words: vec![words] }),
            }
        }
    }
    Ok(all)
}

fn of_model(
    lm: &EntityLm,
    shown: &Corpus,
    device: &Device,
) -> Result<Vec<(usize, usize, Vec<String>)>, Error> {
    let (model, tokenizer) = (lm.model(), lm.tokenizer());
    let mut tape = MaskedLmTape::for_prediction(model.config());
    let mut found = Found::default();
    let mut all = Vec::new();
    for window in lm.linearize(shown)?.windows {
        for entity in window.entities.iter().filter(|entity| entity.piece_range.len() == 1) {
            let mut pieces = window.pieces.clone();
            pieces[entity.piece_range.start] = tokenizer.specials().mask;
            let mut batch = MaskedBatch::default();
            batch.sentences.push(&pieces, 0);
            batch.positions.push(entity.piece_range.start);
            model
                .predict(device, &batch, N_BEST, &mut tape, &mut found)
                .map_err(melm::Error::from)?;
            let words = found.row(0).iter().map(|best| tokenizer.decode(&[best.piece])).collect();
            all.push((window.sentence, entity.token, words));
        }
    }
    Ok(all)
}
