//! One more round of drafts, with names that the panel found in unlabelled text.

use melm_nn::device::Device;

use super::algorithm::{Backbones, Drafts, Gold, check_mentions, judge_drafts, train_judges};
use crate::Error;
use crate::draft::{Draft, Novelty, to_lines};
use crate::methods::{Substitute, UsedNames};
use crate::names::Names;
use crate::plan::Plan;
use crate::rate::Rate;
use crate::stage::Run;
use crate::tagger::TaggerModel;

/// Makes a draft of each gold sentence with a mention of a harvested type. The new mentions of these types are harvested
/// names. The drafts are judged and added to `drafts` as a round of their own.
pub(super) fn add_harvest_round(
    gold: Gold<'_>,
    plan: &Plan,
    backbones: Backbones<'_>,
    device: &Device,
    names: &Names,
    drafts: &mut Drafts,
    run: &mut Run<'_>,
) -> Result<(), Error> {
    let used = UsedNames { names, share: Rate::constant(1.0) };
    let substitute = Substitute::new(gold.train, plan.substitute).with_names(Some(used));
    let round = plan.generate.rounds.get() + 1;
    let mut new = substitute.round(run.stage("harvest").key(), round);
    new.retain(|draft: &Draft| draft.replacements.iter().any(|one| one.name.is_some()));
    for draft in &mut new {
        draft.seed = plan.seed;
    }
    let mut novelty = Novelty::new(gold.train);
    for draft in &drafts.drafts {
        novelty.record(draft);
    }
    novelty.mark(&mut new);
    check_mentions(&mut new, plan);
    // With a folder, the judges were saved there and are not trained again.
    let trained = train_judges(gold, plan, backbones, device, run)?;
    let own = trained.iter().map(|trained| &trained.tagger);
    let taggers: Vec<&TaggerModel> = backbones.judge.into_iter().chain(own).collect();
    judge_drafts(&mut new, &taggers, gold.train, plan, device, &mut run.stage("filter"))?;
    drafts.lines.push_str(&to_lines(&new, gold.train));
    drafts.drafts.extend(new);
    Ok(())
}
