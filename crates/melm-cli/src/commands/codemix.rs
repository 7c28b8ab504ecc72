//! `melm codemix`: replaces mentions by mentions from other languages.

use melm::codemix::{Codemix as Mixer, DonorChoice, MentionVectors, new_sentences};
use melm::draft::to_lines;
use melm::plan::PlanBuilder;
use melm::random::Seed;
use melm::stage::Control;
use melm_text::Format;

use crate::args::Codemix;
use crate::commands::augment::report;
use crate::failure::Failure;
use crate::labelled;
use crate::machine;
use crate::output::{self, Output};
use crate::progress::Progress;
use crate::settings;
use crate::terminal::Terminal;
use crate::vectors;

pub(crate) fn run(command: &Codemix, terminal: &Terminal) -> Result<(), Failure> {
    let choice = if command.random { DonorChoice::Random } else { DonorChoice::Similar };
    let method = if command.random { "codemix-random" } else { "codemix-ess" };
    let mut builder = settings::add_overrides(PlanBuilder::default(), &command.overrides)?;
    builder = vectors::set_kind(builder, &command.vectors)?;
    builder = builder.set_value(&format!("--method {method}"), "method", method);
    let plan = settings::plan_without_models(&builder)?;

    let (out, force) = (&command.output.out, command.output.force);
    let default = || (!output::is_stream_output(out)).then(|| output::with_suffix(out, ".jsonl"));
    let drafts_path = command.drafts.clone().or_else(default);
    output::refuse_other_ending(out, Format::CONLL)?;
    if let Some(path) = &drafts_path {
        output::refuse_same_output(out, "--drafts", path)?;
    }
    let drafts_file = drafts_path.map(|path| Output::create(&path, force)).transpose()?;
    let out = Output::create(out, force)?;

    let corpus = &labelled::read(&command.files, &command.input, terminal)?;
    let mut vectors = vectors::read(&command.vectors, &plan, corpus, terminal)?;
    if plan.needs_masked_lm() {
        let model = machine::models(terminal).open(&command.model)?;
        vectors = Some(MentionVectors::from_piece_embeddings(corpus, &model)?);
    }
    let mut mixer = Mixer::new(corpus, choice, vectors.as_ref(), plan.codemix)?;
    terminal.info(&format!("mixing {} by {method}", labelled::describe(corpus)));
    terminal.info_all(mixer.counts().notes());
    let mut progress = Progress::for_steps("mixing languages", terminal);
    let all = mixer.rounds(Seed(plan.seed), command.rounds.get(), &mut |done, total| {
        progress.set_step(done, total);
        Control::Continue
    })?;
    drop(progress);
    let mut text = Vec::new();
    new_sentences(corpus, &all).write_conll(&mut text).expect("writing to memory does not fail");
    out.write_and_finish(&text)?;
    if let Some(file) = drafts_file {
        file.write_and_finish(to_lines(&all, corpus))?;
    }
    report::print_drafts(&all, corpus, terminal);
    Ok(())
}
