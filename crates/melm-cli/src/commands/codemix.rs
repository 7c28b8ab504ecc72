//! `melm codemix`: replaces mentions by mentions of other languages.

use std::io::Write as _;

use melm::augment::DraftSummary;
use melm::codemix::{Codemix as Mixer, DonorChoice, MentionVectors};
use melm::draft::{Novelty, Verdict, to_lines};
use melm::methods::RejectedCounts;
use melm::plan::PlanBuilder;
use melm::random::Seed;
use melm::stage::Control;
use melm_text::{Corpus, Sentence};

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
    let beside = || (!output::is_stream_output(out)).then(|| output::with_suffix(out, ".jsonl"));
    let drafts = command.drafts.clone().or_else(beside);
    let drafts = drafts.map(|path| Output::create(&path, force)).transpose()?;
    let mut out = Output::create(out, force)?;

    let corpus = &labelled::read(&command.files, &command.input, terminal)?;
    let mut read = vectors::read(&command.vectors, &plan, corpus, terminal)?;
    if plan.needs_masked_lm() {
        let model = machine::models(terminal).open(&command.model)?;
        read = Some(MentionVectors::from_piece_embeddings(corpus, &model)?);
    }
    let mut mixer = Mixer::new(corpus, choice, read.as_ref(), plan.codemix)?;
    terminal.info(&format!("mixing {} by {method}", labelled::describe(corpus)));
    for line in vectors::describe_missing(mixer.counts()) {
        terminal.info(&line);
    }
    let key = Seed(plan.seed).stream("codemix");
    let (mut novelty, mut new, mut all) = (Novelty::new(corpus), Vec::new(), Vec::new());
    for round in 1..=command.rounds.get() {
        let mut progress = Progress::for_steps("mixing languages", terminal);
        let drafts = mixer.round(key, round, &mut |done, of| {
            progress.set_step(done, of);
            Control::Continue
        })?;
        for mut draft in drafts {
            draft.seed = plan.seed;
            draft.verdict = novelty.record(&draft);
            if draft.verdict == Verdict::New {
                new.push(named(corpus, draft.sentence.clone()));
            }
            all.push(draft);
        }
    }
    let result = Corpus::new(corpus.types().clone(), corpus.scheme(), new)
        .expect("drafts are valid in the scheme of their corpus");
    let name = out.name().to_owned();
    result.write_conll(&mut out).map_err(|error| Output::failed(&name, error))?;
    out.finish()?;
    if let Some(mut drafts) = drafts {
        let name = drafts.name().to_owned();
        let lines = to_lines(&all, corpus);
        drafts.write_all(lines.as_bytes()).map_err(|error| Output::failed(&name, error))?;
        drafts.finish()?;
    }
    report::print_summary(&DraftSummary::new(&all, &RejectedCounts::default(), corpus), terminal);
    Ok(())
}

/// The sentence in two columns, whatever its file has, under a comment that names its language.
fn named(corpus: &Corpus, sentence: Sentence) -> Sentence {
    let code = sentence.language().map(|language| &corpus.languages()[language.index()].code);
    let comment = code.map(|code| format!("# language = {code}").into());
    sentence.without_columns().with_comments(comment.into_iter().collect())
}
