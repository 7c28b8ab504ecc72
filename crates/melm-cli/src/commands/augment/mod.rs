//! `melm augment`: the whole method, from labelled sentences to more of them.

mod estimate;
pub(crate) mod report;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Instant;

use melm::augment::{Backbones, DraftSummary, Drafts, Gold, Method, Sources, augment, tune};
use melm::baselines::{NO_PRETRAINING, PretrainedSeq2Seq};
use melm::codemix::MentionVectors;
use melm::files::{Fingerprint, sha256, write_whole};
use melm::folder::{Found, RunFolder};
use melm::model::Pretrained;
use melm::plan::Plan;
use melm::random::Seed;
use melm::stage::{Event, Run};
use melm_nn::device::Device;
use serde_json::{Map, Value, json};
use toml::Value as Toml;

use crate::args::Augment;
use crate::failure::Failure;
use crate::interrupt::Deferred;
use crate::labelled::Labelled;
use crate::listener::Listener;
use crate::models;
use crate::output::{self, Output};
use crate::settings::{self, Flag, Needs};
use crate::terminal::Terminal;
use crate::vectors;

/// Where trained models and finished rounds stay, so that more rounds redo nothing.
const STAGES: &str = ".stages";
/// All drafts, with what became of them.
const DRAFTS: &str = "drafts.jsonl";

/// Everything that a run is made of.
pub(crate) struct Job {
    plan: Plan,
    train: Labelled,
    dev: Option<Labelled>,
    masked_lm: Option<Pretrained>,
    tagger: Option<Pretrained>,
    seq2seq: Option<PretrainedSeq2Seq>,
    vectors: Option<MentionVectors>,
    device: Device,
    machine: String,
}

pub(crate) fn run(command: &Augment, terminal: &Terminal) -> Result<(), Failure> {
    let started = Instant::now();
    let job = Job::new(command, terminal)?;
    let folder = RunFolder::open(&command.out, &job.key()?, command.force)?;
    let record = folder.record().filter(|_| folder.found == Found::Done);
    let rounds: Value = job.plan.generate.rounds.get().into();
    let is_done = record.as_ref().is_some_and(|record| record["rounds"] == rounds);
    let changed = record.as_ref().and_then(|record| changed(folder.dir(), record));
    if is_done && !command.keep_model && job.is_there(folder.dir())? {
        let but = changed.map(|name| format!("; `{name}` was changed since"));
        let but = but.unwrap_or_default();
        terminal.say(&format!("`{}` is done already{but}", command.out.display()));
        return output::print_if(command.json, record.as_ref());
    }
    let n_done = record.as_ref().and_then(|record| record["rounds"].as_u64()).unwrap_or(0);
    if n_done > u64::from(job.plan.generate.rounds.get()) {
        let (dir, found) = (command.out.clone(), "a run of more rounds");
        return Err(melm::Error::Occupied { dir, found }.into());
    }
    if let Some(name) = changed {
        let message =
            format!("`{}` was changed since it was written", folder.dir().join(name).display());
        let hint = "move it away to keep it, or pass `--force` to begin anew".to_owned();
        return Err(Failure::Impossible { message, hint });
    }
    terminal.say(&job.described());
    if command.keep_model && !job.plan.method.has_masked_lm() {
        terminal.say(&format!("the method {} has no model to keep", job.plan.method.name()));
    }
    if command.dry_run {
        estimate::say(&job, terminal);
        return Ok(());
    }
    let stages = folder.dir().join(STAGES);
    if folder.found == Found::Nothing && stages.exists() {
        std::fs::remove_dir_all(&stages)
            .map_err(|source| Output::failed(&stages.display().to_string(), source))?;
    }
    folder.begin()?;
    let deferred = Deferred::begin();
    let mut listener = Listener::new(command.planning.save_every, terminal);
    let mut hear = |stage: &'static str, event: Event<'_>| listener.hear(stage, event);
    let mut run = Run { seed: Seed(job.plan.seed), folder: Some(stages), observer: &mut hear };
    let augmented = augment(job.gold(), &job.plan, job.backbones(), &job.device, &mut run)?;
    if command.keep_model {
        job.save_model(&folder.dir().join("model"), &mut run)?;
    }
    drop(listener);
    let out = job.write(folder.dir(), &augmented)?;
    let funnel = augmented.summary(job.train.corpus());
    let mut record = job.record(&augmented, &funnel, started);
    record.insert("files".to_owned(), json!(fingerprints(folder.dir(), &out)?));
    folder.finish(record.clone())?;
    drop(deferred);
    report::say((&job, &augmented, &funnel), (&out, started), terminal);
    output::print_if(command.json, Some(&record.into()))
}

impl Job {
    fn new(command: &Augment, terminal: &Terminal) -> Result<Self, Failure> {
        let needs =
            |plan: &Plan| Needs { masked_lm: plan.needs_masked_lm(), tagger: plan.has_judge() };
        let plan = settings::plan(&command.planning, &flags(command)?, needs, terminal)?;
        let train = Labelled::read(&command.files, &command.reading, terminal)?;
        let dev = train.read_dev(&command.dev, &command.reading, terminal)?;
        let open = |is_needed: bool, name: &str| {
            is_needed.then(|| models::open(name, terminal)).transpose()
        };
        let masked_lm = open(needs(&plan).masked_lm, &plan.model.masked_lm)?;
        let tagger = open(needs(&plan).tagger, &plan.model.tagger)?;
        let folder = Some(&plan.model.seq2seq).filter(|_| plan.method == Method::Mulda);
        let folder = folder.filter(|folder| !folder.is_empty());
        let seq2seq = folder.map(|dir| PretrainedSeq2Seq::open(dir.as_ref())).transpose()?;
        let mixed = (&plan, train.corpus());
        let vectors = vectors::read(&command.vectors, mixed, masked_lm.as_ref(), terminal)?;
        let (device, machine) = models::device(&command.planning.machine)?;
        Ok(Self { plan, train, dev, masked_lm, tagger, seq2seq, vectors, device, machine })
    }

    fn gold(&self) -> Gold<'_> {
        Gold { train: self.train.corpus(), dev: self.dev.as_ref().map(Labelled::corpus) }
    }

    fn backbones(&self) -> Backbones<'_> {
        Backbones {
            masked_lm: self.masked_lm.as_ref(),
            tagger: self.tagger.as_ref(),
            seq2seq: self.seq2seq.as_ref(),
            vectors: self.vectors.as_ref(),
            judge: None,
        }
    }

    fn described(&self) -> String {
        let name = |model: Option<&Pretrained>| model.map(|model| model.name().to_owned());
        let (lm, tagger) = (name(self.masked_lm.as_ref()), name(self.tagger.as_ref()));
        let lm = self.seq2seq_name().or(lm);
        let models = match (lm, tagger) {
            (Some(lm), Some(tagger)) if lm == tagger => format!(" with {lm}"),
            (Some(lm), Some(tagger)) => format!(" with {lm}, judged by {tagger}"),
            (Some(lm), None) => format!(" with {lm}, not judged"),
            (None, Some(tagger)) => format!(", judged by {tagger}"),
            (None, None) => ", not judged".to_owned(),
        };
        let dev = match &self.dev {
            Some(dev) => format!("best epochs by {}", dev.described()),
            None => "no dev set: last epochs are kept".to_owned(),
        };
        let rounds = crate::terminal::count(self.plan.generate.rounds.get() as usize, "round");
        let method = self.plan.method.name();
        let train = self.train.described();
        format!("augmenting {train} by {method}{models}: {rounds}, {dev}; {}", self.machine)
    }

    /// The encoder-decoder of the method, and whether it is pretrained.
    fn seq2seq_name(&self) -> Option<String> {
        let is_mulda = self.plan.method == Method::Mulda;
        let new = || NO_PRETRAINING.to_owned();
        is_mulda.then(|| self.seq2seq.as_ref().map_or_else(new, PretrainedSeq2Seq::name))
    }

    /// Stands for everything that can change the result; the number of rounds only adds to it.
    fn key(&self) -> Result<String, Failure> {
        let mut plan = self.plan.clone();
        plan.generate.rounds = std::num::NonZeroU32::MIN;
        plan.model.masked_lm.clear();
        plan.model.tagger.clear();
        plan.model.seq2seq.clear();
        let mut fingerprint = Fingerprint::default();
        let models = [self.masked_lm.as_ref(), self.tagger.as_ref()];
        for model in models {
            let model = model.map(Pretrained::fingerprint).transpose()?;
            fingerprint.add(model.unwrap_or_default().as_bytes());
        }
        if let Some(seq2seq) = &self.seq2seq {
            fingerprint.add(seq2seq.fingerprint()?.as_bytes());
        }
        let isa = self.device.arithmetic();
        for part in ["augment", env!("CARGO_PKG_VERSION"), isa, &plan.to_toml()] {
            fingerprint.add(part.as_bytes());
        }
        for data in std::iter::once(&self.train).chain(&self.dev) {
            data.add_to(&mut fingerprint);
        }
        if let Some(vectors) = &self.vectors {
            vectors.add_to(self.train.corpus(), &mut fingerprint);
        }
        Ok(fingerprint.finish())
    }

    /// Whether what others read is still there; it may have been taken away since.
    fn is_there(&self, dir: &Path) -> Result<bool, Failure> {
        let sets = self.train.extended(&[], self.plan.union)?;
        let mut names = sets.iter().map(|(suffix, _)| format!("train.augmented.{suffix}"));
        Ok(names.all(|name| dir.join(name).exists()) && dir.join(DRAFTS).exists())
    }

    /// Writes what others read; the names of the augmented sets, one a language.
    fn write(&self, dir: &Path, augmented: &Drafts) -> Result<Vec<PathBuf>, Failure> {
        let mut out = Vec::new();
        for (suffix, text) in
            self.train.extended(&augmented.kept().cloned().collect::<Vec<_>>(), self.plan.union)?
        {
            let path = dir.join(format!("train.augmented.{suffix}"));
            write_whole(&path, text.as_bytes())?;
            out.push(path);
        }
        write_whole(&dir.join(DRAFTS), augmented.lines.as_bytes())?;
        write_whole(&dir.join("plan.toml"), self.plan.to_toml().as_bytes())?;
        let metrics = ["finetune", "daga", "mulda", "judge"].map(|stage| {
            let path = dir.join(STAGES).join(stage).join("metrics.jsonl");
            std::fs::read_to_string(path).unwrap_or_default()
        });
        write_whole(&dir.join("metrics.jsonl"), metrics.concat().as_bytes())?;
        Ok(out)
    }

    fn save_model(&self, dir: &Path, run: &mut Run<'_>) -> Result<(), Failure> {
        let pretrained = self.masked_lm.as_ref().filter(|_| self.plan.method.has_masked_lm());
        let Some(pretrained) = pretrained else { return Ok(()) };
        let gold = self.gold();
        let sources = Sources::of(gold.train, &self.plan, self.vectors.as_ref(), run)?;
        let learnt = Gold { train: &sources.corpus, ..gold };
        let tuned = tune(learnt, &self.plan, pretrained, &self.device, run)?;
        tuned.lm.save(dir)?;
        // `melm generate` reads its settings there.
        Ok(write_whole(&dir.join("plan.toml"), self.plan.to_toml().as_bytes())?)
    }

    fn record(
        &self,
        augmented: &Drafts,
        funnel: &DraftSummary,
        started: Instant,
    ) -> Map<String, Value> {
        let mut record = Map::new();
        let mut put = |key: &str, value: Value| record.insert(key.to_owned(), value);
        put("melm", env!("CARGO_PKG_VERSION").into());
        put("command", "augment".into());
        put("method", self.plan.method.name().into());
        put("rounds", self.plan.generate.rounds.get().into());
        put("seed", self.plan.seed.into());
        put("train", self.train.record());
        put("dev", self.dev.as_ref().map_or(Value::Null, Labelled::record));
        put("masked_lm", json!(self.masked_lm.as_ref().map(Pretrained::name)));
        put("tagger", json!(self.tagger.as_ref().map(Pretrained::name)));
        if let Some(name) = self.seq2seq_name() {
            put("seq2seq", name.into());
        }
        put("device", self.machine.as_str().into());
        put("drafts", json!(funnel));
        if let Some(counts) = augmented.prepared.as_ref().and_then(|p| p.codemix.as_ref()) {
            put("codemix", json!(counts));
        }
        let best = augmented.judge.as_ref().and_then(|judge| judge.best);
        put("judge", json!(best));
        put("seconds", json!((started.elapsed().as_secs_f64() * 10.0).round() / 10.0));
        record
    }
}

/// The SHA-256 of what others read, by name.
fn fingerprints(dir: &Path, out: &[PathBuf]) -> Result<BTreeMap<String, String>, Failure> {
    let drafts = dir.join(DRAFTS);
    let of = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let bytes = std::fs::read(path);
        bytes.map(|bytes| (name.clone(), sha256(&bytes))).map_err(|e| Output::failed(&name, e))
    };
    out.iter().chain([&drafts]).map(of).collect()
}

/// A result that is there and is not what was written: somebody's work, not to be lost.
fn changed(dir: &Path, record: &Value) -> Option<String> {
    let files = record["files"].as_object()?;
    let is_changed = |(name, wanted): &(&String, &Value)| {
        std::fs::read(dir.join(name)).is_ok_and(|bytes| wanted.as_str() != Some(&sha256(&bytes)))
    };
    files.iter().find(is_changed).map(|(name, _)| name.clone())
}

fn flags(command: &Augment) -> Result<Vec<Flag>, Failure> {
    let mut flags = Vec::new();
    flags.extend(command.rounds.map(Flag::rounds));
    flags.extend(vectors::flag(&command.vectors)?);
    if let Some(method) = command.method {
        let name = method.name();
        let value = Toml::String(name.to_owned());
        flags.push(Flag { option: format!("--method {name}"), key: "method", value });
    }
    Ok(flags)
}
