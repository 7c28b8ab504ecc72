//! Tests section 2.2: fine-tuning of the embedded model with the preset `best`, which freezes the embedding table.

use melm::Error;
use melm::augment::Gold;
use melm::entity_lm::EntityLm;
use melm::methods::tune;
use melm::models::{ModelStore, Pretrained};
use melm::plan::{ModelClass, ModelClasses, Plan, PlanTable, Preset};
use melm::random::Seed;
use melm::stage::{Control, Event, Run, ignore_events};
use melm_nn::device::Device;
use melm_nn::params::TABLE;
use melm_text::Corpus;

use crate::support::read;

fn corpus() -> Corpus {
    read(
        "Angela/B-PER Merkel/I-PER visited/O Paris/B-LOC ./O |/O \
         The/O mayor/O of/O New/B-LOC York/I-LOC met/O John/B-PER Smith/I-PER ./O |/O \
         Mary/B-PER lives/O in/O San/B-LOC Marino/I-LOC ./O",
    )
}

/// The plan of the preset `best` for `mini`, with edits.
fn plan(edits: &[&str]) -> Plan {
    let mut table = PlanTable::new(Preset::Best, ModelClasses::both(ModelClass::MINI));
    for edit in edits {
        table.set(edit).unwrap();
    }
    table.plan().unwrap()
}

fn finetune(plan: &Plan, pretrained: &Pretrained, run: &mut Run<'_>) -> Result<EntityLm, Error> {
    let train = corpus();
    let gold = Gold { train: &train, dev: None };
    Ok(tune(gold, plan, pretrained, &Device::cpu(2), run)?.lm)
}

/// The embedding row of a piece.
fn row(lm: &EntityLm, piece: &str) -> Vec<f32> {
    let (id, width) = (lm.tokenizer().id(piece).unwrap() as usize, lm.model().config().hidden_size);
    lm.model().parameters().get(TABLE).unwrap()[id * width..(id + 1) * width].to_vec()
}

/// Returns the model before fine-tuning.
fn initialise(plan: &Plan, pretrained: &Pretrained) -> EntityLm {
    let gold = Gold { train: &corpus(), dev: None };
    EntityLm::new(pretrained, gold, &plan.markers, 1).unwrap().0
}

fn pretrained_rows<'a>(lm: &'a EntityLm, pretrained: &Pretrained) -> &'a [f32] {
    let config = pretrained.checkpoint().config();
    &lm.model().parameters().get(TABLE).unwrap()[..config.vocab_size * config.hidden_size]
}

/// Trains the rows of markers while pretrained rows stay the same, bit by bit, with weight decay too.
#[test]
fn markers_are_trained_and_pretrained_rows_stay() {
    let pretrained = ModelStore::new().open("mini").unwrap();
    let plan = plan(&["finetune.budget=3 updates", "finetune.weight_decay=0.1"]);
    assert_eq!(plan.finetune.training.freeze.0, ["roberta.embeddings.word_embeddings"]);
    let start = initialise(&plan, &pretrained);
    let mut run = Run { seed: Seed(1), folder: None, observer: &mut ignore_events };
    let tuned = finetune(&plan, &pretrained, &mut run).unwrap();
    for name in ["PER", "LOC"] {
        let markers = ["B", "I"].map(|prefix| format!("<{prefix}-{name}>"));
        let [begin, inside] = markers.each_ref().map(|marker| row(&start, marker));
        assert!(begin == inside, "{name}: both start at the mean of the same words");
        let [trained_begin, trained_inside] = markers.each_ref().map(|marker| row(&tuned, marker));
        assert!(trained_begin != begin && trained_inside != inside, "{name}");
        let differs = |a: &[f32], b: &[f32]| {
            a.iter().zip(b).filter(|(a, b)| a.to_bits() != b.to_bits()).count()
        };
        assert!(differs(&trained_begin, &trained_inside) > begin.len() / 2, "{name}");
    }
    assert!(pretrained_rows(&tuned, &pretrained) == pretrained_rows(&start, &pretrained));
}

#[test]
fn markers_can_be_frozen_with_the_table() {
    let pretrained = ModelStore::new().open("mini").unwrap();
    let plan = plan(&["finetune.budget=1 updates", "markers.train=false"]);
    let start = initialise(&plan, &pretrained);
    let mut run = Run { seed: Seed(1), folder: None, observer: &mut ignore_events };
    let tuned = finetune(&plan, &pretrained, &mut run).unwrap();
    let table = |lm: &EntityLm| lm.model().parameters().get(TABLE).unwrap().to_vec();
    assert!(table(&tuned) == table(&start));
}

#[test]
fn interrupted_fine_tuning_resumes_with_the_rows_of_markers() {
    let pretrained = ModelStore::new().open("mini").unwrap();
    let plan = plan(&["finetune.budget=3 updates"]);
    let mut run = Run { seed: Seed(1), folder: None, observer: &mut ignore_events };
    let whole = finetune(&plan, &pretrained, &mut run).unwrap();

    let folder = tempfile::tempdir().unwrap();
    let mut stop = |_: &'static str, event: Event<'_>| match event {
        Event::Progress { done: 2, .. } => Control::Stop,
        _ => Control::Continue,
    };
    let path = Some(folder.path().to_path_buf());
    let mut run = Run { seed: Seed(1), folder: path.clone(), observer: &mut stop };
    assert!(matches!(finetune(&plan, &pretrained, &mut run), Err(Error::Interrupted)));
    let mut run = Run { seed: Seed(1), folder: path, observer: &mut ignore_events };
    let resumed = finetune(&plan, &pretrained, &mut run).unwrap();
    for marker in ["<B-PER>", "<I-PER>", "<B-LOC>", "<I-LOC>"] {
        assert!(row(&resumed, marker) == row(&whole, marker), "{marker}");
    }
}

/// A model that was fine-tuned before already has the rows of the markers. They are trained again.
#[test]
fn markers_of_a_fine_tuned_model_are_trained_again() {
    let pretrained = ModelStore::new().open("mini").unwrap();
    let plan = plan(&["finetune.budget=1 updates"]);
    let start = initialise(&plan, &pretrained);
    let folder = tempfile::tempdir().unwrap();
    start.model().save(folder.path()).unwrap();
    start.tokenizer().save(folder.path()).unwrap();
    let again = Pretrained::open(folder.path()).unwrap();
    let mut run = Run { seed: Seed(1), folder: None, observer: &mut ignore_events };
    let tuned = finetune(&plan, &again, &mut run).unwrap();
    assert!(row(&tuned, "<B-PER>") != row(&start, "<B-PER>"));
    assert!(pretrained_rows(&tuned, &pretrained) == pretrained_rows(&start, &pretrained));
}
