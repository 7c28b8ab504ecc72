//! `melm generate`: drafts from a fine-tuned model, which nobody has judged.

use std::io::Write as _;

use melm::augment::{DraftSummary, Melm, generate};
use melm::draft::to_lines;
use melm::entity_lm::EntityLm;
use melm::free_generation::RejectedCounts;
use melm::model::Pretrained;
use melm::random::Seed;
use melm::stage::{Event, Run};

use crate::args::Generate;
use crate::commands::augment::report;
use crate::commands::finetune::cuts;
use crate::failure::Failure;
use crate::labelled::Labelled;
use crate::listener::Listener;
use crate::models;
use crate::output::Output;
use crate::settings::{self, Flag};
use crate::terminal::{Terminal, count};

pub(crate) fn run(command: &Generate, terminal: &Terminal) -> Result<(), Failure> {
    let rounds = command.rounds.map(Flag::rounds);
    let plan = settings::plan_of_model(&command.model, &command.layers, rounds.as_slice())?;
    if !plan.method.has_masked_lm() {
        return Err(Failure::Usage {
            message: format!("the method `{}` makes drafts without a model", plan.method.name()),
            hint: "use `melm augment`, or set the plan's `method` to `melm`",
        });
    }
    let mut out = Output::create(&command.output.out, command.output.force)?;
    let train = Labelled::read(&command.files, &command.reading, terminal)?;
    let corpus = train.corpus();
    let pretrained = Pretrained::open(&command.model)?;
    let lm = EntityLm::open(&pretrained, corpus, plan.marker_settings().linearize)?;
    let (device, machine) = models::device(&command.machine)?;
    let n_rounds = count(plan.generate.rounds.get() as usize, "round");
    let described = train.described();
    terminal.say(&format!(
        "making drafts of {described} with {}: {n_rounds}; {machine}",
        pretrained.name()
    ));
    let mut melm = Melm::new(lm, corpus, &plan, &device)?;
    let linearized = melm.linearized();
    for line in cuts((linearized.n_windowed, linearized.n_left_out), melm.n_unmaskable()) {
        terminal.say(&line);
    }
    let mut listener = Listener::new(u64::MAX, terminal);
    let mut hear = |stage: &'static str, event: Event<'_>| listener.hear(stage, event);
    // Generating keeps nothing on disk before it is done.
    let mut run = Run { seed: Seed(plan.seed), folder: None, observer: &mut hear };
    let drafts = generate(&mut melm, corpus, &plan, &mut run)?;
    drop(listener);
    let name = out.name().to_owned();
    out.write_all(to_lines(&drafts, corpus).as_bytes())
        .map_err(|error| Output::failed(&name, error))?;
    out.finish()?;
    report::say_summary(&DraftSummary::new(&drafts, &RejectedCounts::default(), corpus), terminal);
    Ok(())
}
