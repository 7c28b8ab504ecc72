//! `melm trial`: whether augmentation helps on the user's own data.

use std::sync::{Mutex, PoisonError};

use melm::augment::Method;
use melm::files::Fingerprint;
use melm::training::Budget;
use melm_eval::{Ledger, Line, System, Trial};
use serde_json::{Map, json};

use crate::args::Try;
use crate::commands::reproduce::Workshop;
use crate::data::Data;
use crate::failure::Failure;
use crate::output;
use crate::terminal::{Terminal, count};

pub(crate) fn run(command: &Try, terminal: &Terminal) -> Result<(), Failure> {
    if !command.file.exists() && command.file.to_string_lossy().contains('=') {
        return Err(Failure::Usage {
            message: format!(
                "`{}` is no file, and a trial has one language",
                command.file.display()
            ),
            hint: "name the file alone",
        });
    }
    let train = Data::read(&command.file, &command.reading, terminal)?;
    let dev = command.dev.as_deref().map(|path| Data::read(path, &command.reading, terminal));
    let dev = dev.transpose()?;
    let n_folds = usize::from(command.folds);
    if train.corpus().sentences().len() < 2 * n_folds {
        return Err(Failure::Usage {
            message: format!("{} are too few for {n_folds} folds", train.described()),
            hint: "two sentences a fold at least: fewer `--folds`, or more gold",
        });
    }
    let mut methods = vec![System::GOLD];
    methods.extend(command.methods.iter().filter(|method| **method != System::GOLD));
    let Some(judged) = methods.last().copied().filter(|method| *method != System::GOLD) else {
        return Err(Failure::Usage {
            message: "there is nothing to compare gold with".into(),
            hint: "name a method, as in `--methods label-wise,melm-both`",
        });
    };
    if let Some(method) = methods.iter().find(|system| system.drafts().is_some_and(Method::mixes)) {
        return Err(Failure::Usage {
            message: format!("{method} mixes languages, and a trial has one"),
            hint: "compare it with `melm reproduce multi`",
        });
    }
    let trial = Trial {
        n_folds,
        seeds: (1..=u64::from(command.seeds)).collect(),
        budget: Budget::Updates(command.updates),
        methods,
    };
    let content = |data: &Data| {
        let mut fingerprint = Fingerprint::default();
        data.add_to(&mut fingerprint);
        fingerprint.finish()
    };
    let (train_content, dev_content) = (content(&train), dev.as_ref().map(content));
    let given = dev.as_ref().map(Data::corpus).zip(dev_content.as_deref());
    let (grid, folds) = trial.prepare((train.corpus(), &train_content), given);
    let workshop = Workshop::new((&command.comparing, "the trial"), &grid, folds, terminal)?;
    let bench = workshop.bench(None);
    let cells = grid.cells();
    let seeds = count(usize::from(command.seeds), "seed");
    terminal.say(&format!(
        "trying {} in {n_folds} folds, {seeds}, {} each: {}",
        train.described(),
        trial.budget,
        workshop.described(&cells),
    ));
    let ledger = match &command.out {
        Some(dir) => Ledger::open(dir, "ledger.jsonl")?,
        None => Ledger::in_memory(),
    };
    let ledger = Mutex::new(ledger);
    let kept = command.out.is_some();
    workshop.run(&bench, &cells, &ledger, terminal).map_err(|failure| {
        if kept { failure } else { failure.lost(": `-o DIR` would keep what is done") }
    })?;
    let ledger = ledger.into_inner().unwrap_or_else(PoisonError::into_inner);
    let is_current = |line: &&Line| cells.contains(&line.cell) && line.key == bench.key(&line.cell);
    let current = ledger.lines().iter().filter(is_current);
    let lines: Vec<_> = current.cloned().collect();
    let result = trial.result(&lines);
    let verdict = result.verdict(judged);
    if command.json {
        let mut record = Map::new();
        for method in trial.methods.iter().filter(|method| **method != System::GOLD) {
            let of = result.to_gold(*method).map(|found| {
                json!({"difference": found.mean, "margin": found.margin, "verdict": found.verdict.words()})
            });
            record.insert(method.to_string(), json!(of));
        }
        record.insert("verdict".to_owned(), verdict.into());
        return output::print_if(true, Some(&record.into()));
    }
    output::print(&format!(
        "{}\nMicro-F1 in percent over {n_folds} folds, seeds averaged. Differences are paired by fold, with their 95 % \
         interval (Student's t,\ncorrected for the overlap of training sets: Nadeau and Bengio 2003).\n\n{verdict}\n",
        result.markdown()
    ))
}
