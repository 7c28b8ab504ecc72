//! `melm generate`: makes drafts with a fine-tuned model, without judging them.

use melm::augment::generate;
use melm::draft::to_lines;
use melm::entity_lm::EntityLm;
use melm::methods::Melm;
use melm::models::Pretrained;
use melm::random::Seed;
use melm::stage::{Event, Run};

use crate::args::Generate;
use crate::commands::augment::report;
use crate::commands::finetune::describe_left_out;
use crate::failure::Failure;
use crate::labelled;
use crate::machine;
use crate::observer::ProgressObserver;
use crate::output::Output;
use crate::settings;
use crate::terminal::{Terminal, count};

pub(crate) fn run(command: &Generate, terminal: &Terminal) -> Result<(), Failure> {
    let plan = settings::plan_from_model(&command.model, &command.overrides, command.rounds)?;
    if !plan.method.has_masked_lm() {
        return Err(Failure::Usage {
            message: format!("the method `{}` does not use a fine-tuned model", plan.method.name()),
            hint: "use `melm augment`, or set the plan's `method` to `melm`",
        });
    }
    let out = Output::create(&command.output.out, command.output.force)?;
    let corpus = &labelled::read(&command.files, &command.input, terminal)?;
    let pretrained = Pretrained::open(&command.model)?;
    let lm = EntityLm::open(&pretrained, corpus, plan.marker_settings().linearize)?;
    let (device, device_name) = machine::device(&command.device_options)?;
    let n_rounds = count(plan.generate.rounds.get() as usize, "round");
    let described = labelled::describe(corpus);
    terminal.info(&format!(
        "making drafts of {described} with {}: {n_rounds}; {device_name}",
        pretrained.name()
    ));
    let mut melm = Melm::new(lm, corpus, &plan, &device)?;
    let linearized = melm.linearized();
    let (n_windowed, n_left_out) = (linearized.n_windowed, linearized.n_left_out);
    for line in describe_left_out(n_windowed, n_left_out, melm.n_unmaskable()) {
        terminal.info(&line);
    }
    let mut observer = ProgressObserver::new(u64::MAX, terminal);
    let mut on_event = |stage: &'static str, event: Event<'_>| observer.on_event(stage, event);
    // There is no folder for saved states, so an interrupted command starts again.
    let mut run = Run { seed: Seed(plan.seed), folder: None, observer: &mut on_event };
    let drafts = generate(&mut melm, corpus, &plan, &mut run)?;
    drop(observer);
    out.write_and_finish(to_lines(&drafts, corpus))?;
    report::print_drafts(&drafts, corpus, terminal);
    Ok(())
}
