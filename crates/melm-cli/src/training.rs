//! What `train` and `finetune` have in common: a model that learns from labelled files, in a folder of its own.

use std::path::Path;
use std::time::Instant;

use melm::augment::Gold;
use melm::files::{Fingerprint, write_whole};
use melm::folder::{Found, RunFolder};
use melm::model::Pretrained;
use melm::plan::Plan;
use melm::random::Seed;
use melm::stage::{Event, Run};
use melm::training::{BestEvaluation, TrainingOutcome, TrainingSettings};
use melm_nn::device::Device;
use serde_json::{Map, Value, json};
use toml::Value as Toml;

use crate::args::Learning;
use crate::failure::Failure;
use crate::interrupt::Deferred;
use crate::labelled::Labelled;
use crate::listener::Listener;
use crate::models;
use crate::output;
use crate::progress::duration;
use crate::settings::{self, Flag, Needs};
use crate::terminal::{Terminal, count};

/// What is trained.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Tagger,
    MaskedLm,
}

impl Kind {
    fn command(self) -> &'static str {
        match self {
            Self::Tagger => "train",
            Self::MaskedLm => "finetune",
        }
    }

    /// Its stage, which has the name of its section of the plan.
    pub(crate) fn stage(self) -> &'static str {
        match self {
            Self::Tagger => "tagger",
            Self::MaskedLm => "finetune",
        }
    }

    fn verb(self) -> &'static str {
        match self {
            Self::Tagger => "training",
            Self::MaskedLm => "fine-tuning",
        }
    }

    fn model(self, plan: &Plan) -> &str {
        match self {
            Self::Tagger => &plan.model.tagger,
            Self::MaskedLm => &plan.model.masked_lm,
        }
    }

    fn fit(self, plan: &Plan) -> &TrainingSettings {
        match self {
            Self::Tagger => &plan.tagger.training,
            Self::MaskedLm => &plan.finetune.training,
        }
    }

    fn budget(self) -> &'static str {
        match self {
            Self::Tagger => "tagger.budget",
            Self::MaskedLm => "finetune.budget",
        }
    }

    fn measured(self, best: BestEvaluation) -> String {
        match self {
            Self::Tagger => format!("dev F1 {:.2} in epoch {}", best.value * 100.0, best.epoch),
            Self::MaskedLm => format!("dev loss {:.3} in epoch {}", best.value, best.epoch),
        }
    }
}

/// A training that can begin.
pub(crate) struct Training<'a> {
    kind: Kind,
    options: &'a Learning,
    started: Instant,
    pub(crate) plan: Plan,
    train: Labelled,
    dev: Option<Labelled>,
    pub(crate) pretrained: Pretrained,
    pub(crate) device: Device,
    machine: String,
}

/// What a training did.
pub(crate) struct Learned {
    pub(crate) fitted: TrainingOutcome,
    /// What else is to be said, and to be put down.
    pub(crate) lines: Vec<String>,
    pub(crate) counts: Vec<(&'static str, usize)>,
}

impl<'a> Training<'a> {
    pub(crate) fn new(
        kind: Kind,
        options: &'a Learning,
        terminal: &Terminal,
    ) -> Result<Self, Failure> {
        let started = Instant::now();
        let needs =
            |_: &Plan| Needs { masked_lm: kind == Kind::MaskedLm, tagger: kind == Kind::Tagger };
        let plan = settings::plan(&options.planning, &flags(kind, options), needs, terminal)?;
        let train = Labelled::read(&options.files, &options.reading, terminal)?;
        let dev = train.read_dev(&options.dev, &options.reading, terminal)?;
        let pretrained = models::open(kind.model(&plan), terminal)?;
        let (device, machine) = models::device(&options.planning.machine)?;
        Ok(Self { kind, options, started, plan, train, dev, pretrained, device, machine })
    }

    pub(crate) fn gold(&self) -> Gold<'_> {
        Gold { train: self.train.corpus(), dev: self.dev.as_ref().map(Labelled::corpus) }
    }

    /// Begins the training or goes on with it, unless it is done already. `learn` trains, and saves into the folder.
    pub(crate) fn run(
        &self,
        terminal: &Terminal,
        learn: impl FnOnce(&mut Run<'_>, &Path) -> Result<Learned, Failure>,
    ) -> Result<(), Failure> {
        let out = &self.options.out;
        let folder = RunFolder::open(out, &self.key()?, self.options.force)?;
        if folder.found == Found::Done {
            terminal.say(&format!("`{}` is done already", out.display()));
            return output::print_if(self.options.json, folder.record().as_ref());
        }
        terminal.say(&self.described());
        folder.begin()?;
        let deferred = Deferred::begin();
        let mut listener = Listener::new(self.options.planning.save_every, terminal);
        let mut hear = |stage: &'static str, event: Event<'_>| listener.hear(stage, event);
        let seed = Seed(self.plan.seed);
        let mut run = Run { seed, folder: Some(folder.work()), observer: &mut hear };
        let learned = learn(&mut run, folder.dir())?;
        drop(listener);
        let metrics = folder.work().join(self.kind.stage()).join("metrics.jsonl");
        let metrics = std::fs::read(metrics).unwrap_or_default();
        write_whole(&folder.dir().join("metrics.jsonl"), &metrics)?;
        write_whole(&folder.dir().join("plan.toml"), self.plan.to_toml().as_bytes())?;
        let record = self.record(&learned);
        folder.finish(record.clone())?;
        drop(deferred);
        for line in &learned.lines {
            terminal.say(line);
        }
        terminal.say(&self.result(&learned.fitted));
        output::print_if(self.options.json, Some(&record.into()))
    }

    /// Stands for everything that can change the result.
    fn key(&self) -> Result<String, Failure> {
        let mut plan = self.plan.clone();
        // Where a model lies does not matter, what it is does.
        plan.model.masked_lm.clear();
        plan.model.tagger.clear();
        let mut fingerprint = Fingerprint::default();
        let (model, isa) = (self.pretrained.fingerprint()?, self.device.arithmetic());
        let command = self.kind.command();
        let parts = [command, env!("CARGO_PKG_VERSION"), isa, &model, &plan.to_toml()];
        for part in parts {
            fingerprint.add(part.as_bytes());
        }
        for data in std::iter::once(&self.train).chain(&self.dev) {
            data.add_to(&mut fingerprint);
        }
        Ok(fingerprint.finish())
    }

    fn described(&self) -> String {
        let dev = match &self.dev {
            Some(dev) => format!("the best epoch by {}", dev.described()),
            None => "no dev set: the last epoch is kept".to_owned(),
        };
        format!(
            "{} {} on {} for {}, {dev}; {}",
            self.kind.verb(),
            self.kind.model(&self.plan),
            self.train.described(),
            self.kind.fit(&self.plan).budget,
            self.machine,
        )
    }

    fn record(&self, learned: &Learned) -> Map<String, Value> {
        let fitted = &learned.fitted;
        let mut record = Map::new();
        let mut put = |key: &str, value: Value| record.insert(key.to_owned(), value);
        put("melm", env!("CARGO_PKG_VERSION").into());
        put("command", self.kind.command().into());
        put("seed", self.plan.seed.into());
        put("train", self.train.record());
        put("dev", self.dev.as_ref().map_or(Value::Null, Labelled::record));
        put("model", self.kind.model(&self.plan).into());
        put("device", self.machine.as_str().into());
        put("updates", fitted.n_steps.into());
        put("epochs", fitted.epochs.len().into());
        put("best", json!(fitted.best));
        for (key, n) in &learned.counts {
            put(key, (*n).into());
        }
        put("seconds", json!((self.started.elapsed().as_secs_f64() * 10.0).round() / 10.0));
        record
    }

    fn result(&self, fitted: &TrainingOutcome) -> String {
        let best = match fitted.best {
            Some(best) => self.kind.measured(best),
            None => "last epoch kept".to_owned(),
        };
        format!(
            "wrote `{}`: {best}, {} in {}",
            self.options.out.display(),
            count(usize::try_from(fitted.n_steps).unwrap_or(usize::MAX), "update"),
            duration(self.started.elapsed().as_secs_f64()),
        )
    }
}

fn flags(kind: Kind, options: &Learning) -> Vec<Flag> {
    let budget = |option: String, text: String| Flag {
        option,
        key: kind.budget(),
        value: Toml::String(text),
    };
    let epochs = options.epochs.map(|n| budget(format!("--epochs {n}"), format!("{n} epochs")));
    let updates = options.updates.map(|n| budget(format!("--updates {n}"), format!("{n} updates")));
    epochs.into_iter().chain(updates).collect()
}
