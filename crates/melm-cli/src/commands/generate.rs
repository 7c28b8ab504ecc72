//! `melm generate`: makes drafts with a fine-tuned model, without judging them.

use melm::Corpus;
use melm::augment::generate;
use melm::draft::to_lines;
use melm::entity_lm::EntityLm;
use melm::files::sha256;
use melm::methods::Melm;
use melm::models::Pretrained;
use melm::random::Seed;
use melm::shard::{
    ShardContent, ShardFile, ShardHeader, ShardInput, ShardUnit, fingerprint_corpus,
};
use melm::stage::{Event, Run};

use crate::args::Generate;
use crate::command_line::CommandLine;
use crate::commands::augment::report;
use crate::failure::Failure;
use crate::labelled;
use crate::machine;
use crate::observer::ProgressObserver;
use crate::output::Output;
use crate::settings;
use crate::sharding::{report_shard, shard_path};
use crate::terminal::{Terminal, count};

pub(crate) fn run(
    command: &Generate,
    command_line: &CommandLine,
    terminal: &Terminal,
) -> Result<(), Failure> {
    let plan = settings::plan_from_model(&command.model, &command.overrides, command.rounds)?;
    if !plan.method.has_masked_lm() {
        return Err(Failure::Usage {
            message: format!("the method `{}` does not use a fine-tuned model", plan.method.name()),
            hint: "use `melm augment`, or set the plan's `method` to `melm`",
        });
    }
    if plan.method.mixes() {
        return Err(Failure::Usage {
            message: format!(
                "the method `{}` mixes languages, which `melm generate` does not do",
                plan.method.name()
            ),
            hint: "use `melm augment`, or set the plan's `method` to `melm`",
        });
    }
    let shard = command.shard.shard;
    let path = shard_path(&command.output.out, shard);
    let out = Output::create(&path, command.output.force)?;
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
    let n_sentences = corpus.sentences().len();
    let sentences = shard.map_or(0..n_sentences, |shard| shard.range(n_sentences));
    let mut melm = Melm::new(lm, corpus, &plan, &device)?.with_sentences(&sentences);
    terminal.info_all(melm.counts().notes());
    terminal.info_all(melm.fixed().notes());
    let mut observer = ProgressObserver::new(u64::MAX, terminal);
    let mut on_event = |stage: &'static str, event: Event<'_>| observer.on_event(stage, event);
    // There is no folder for saved states, so an interrupted command starts again.
    let mut run = Run { seed: Seed(plan.seed), folder: None, observer: &mut on_event };
    let drafts = generate(&mut melm, corpus, &sentences, &plan, &mut run)?;
    drop(observer);
    let lines = to_lines(&drafts, corpus);
    let Some(shard) = shard else {
        out.write_and_finish(lines)?;
        report::print_drafts(&drafts, corpus, terminal);
        return Ok(());
    };
    let input = describe_input(corpus);
    let (model, content) = (pretrained.fingerprint()?, ShardContent::Drafts);
    let plan = toml::to_string(&plan).expect("a plan is a table");
    let header = ShardHeader::new("generate", shard, input, model, device.arithmetic(), content)
        .with_setting("plan", sha256(plan.as_bytes()))
        .with_arguments(command_line.arguments());
    out.write_and_finish(ShardFile::to_bytes(header.clone(), lines.as_bytes()))?;
    report::print_drafts(&drafts, corpus, terminal);
    report_shard(&header, &command.output.out, terminal);
    Ok(())
}

/// Returns the entry of a corpus in the header of a shard.
fn describe_input(corpus: &Corpus) -> ShardInput {
    let names: Vec<_> = corpus.files().iter().map(|file| file.source().name()).collect();
    ShardInput {
        name: names.join(", "),
        sha256: fingerprint_corpus(corpus),
        n: corpus.sentences().len(),
        unit: ShardUnit::Sentence,
    }
}
