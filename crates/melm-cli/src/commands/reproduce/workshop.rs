//! What a grid is run with: plans, models, data, a machine, and somebody who watches.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use melm::codemix::{MentionVectors, VectorKind};
use melm::files::Fingerprint;
use melm::model::Pretrained;
use melm::plan::{ModelSize, ModelSizes, Plan, PlanTable};
use melm::stage::{Control, Event};
use melm_eval::{Arithmetic, Bench, Cell, Grid, Languages, Ledger, Progress, Tally};
use melm_text::Corpus;

use crate::args::{Comparing, Machine};
use crate::failure::Failure;
use crate::interrupt::{self, Deferred};
use crate::models;
use crate::settings;
use crate::terminal::{Terminal, count};
use crate::vectors;

/// Everything that a [`Bench`] borrows.
pub(crate) struct Workshop<'a> {
    options: &'a Comparing,
    grid: &'a Grid,
    languages: Languages,
    plans: BTreeMap<String, Plan>,
    masked_lm: Option<Pretrained>,
    vectors: Option<MentionVectors>,
    tagger: Pretrained,
    arithmetic: Arithmetic,
    machine: String,
    started: Instant,
    clock: Box<dyn Fn() -> f64 + Sync>,
}

impl<'a> Workshop<'a> {
    /// Settles the plans and opens the models. `name` is that of the grid's file.
    pub(crate) fn new(
        (options, name): (&'a Comparing, &str),
        grid: &'a Grid,
        languages: Languages,
        terminal: &Terminal,
    ) -> Result<Self, Failure> {
        let plans = plans((options, name), grid, terminal)?;
        let plan = plans.values().next().expect("a grid has a variant");
        if plans.values().any(|other| other.model != plan.model) {
            return Err(Failure::Usage {
                message: format!("the variants of `{name}` have different models"),
                hint: "compare models with one run each, in folders of their own: `--model`",
            });
        }
        if !plan.model.seq2seq.is_empty() {
            return Err(Failure::Usage {
                message: format!("`{name}` names a model for MulDA: {}", plan.model.seq2seq),
                hint: "grids run MulDA without pretraining; leave `model.seq2seq` out",
            });
        }
        let drafts = grid.grid.iter().flat_map(|block| &block.methods);
        let methods: Vec<_> = drafts.filter_map(|system| system.drafts()).collect();
        if plans.values().any(|other| other.codemix.vectors != plan.codemix.vectors) {
            return Err(Failure::Usage {
                message: format!("the variants of `{name}` have different vectors"),
                hint: "compare vectors with one run each, in folders of their own: `--vectors`",
            });
        }
        let by_pieces = plan.codemix.vectors == VectorKind::Pieces;
        let needs_vectors = methods.iter().any(|method| method.has_vectors());
        let needs_lm = methods.iter().any(|method| method.reads_masked_lm());
        let needs_lm = needs_lm || needs_vectors && by_pieces;
        let open = |name: &str| models::open(name, terminal);
        let masked_lm = needs_lm.then(|| open(&plan.model.masked_lm)).transpose()?;
        let tagger = open(&plan.model.tagger)?;
        let corpora = languages.iter().map(|(code, one)| (code.as_str(), &one.train.corpus));
        let corpus = Corpus::from_languages(corpora);
        // Cells that need vectors say so if there are none.
        let vectors = if needs_vectors && (by_pieces || !options.vectors.is_empty()) {
            vectors::open(&options.vectors, (by_pieces, &corpus), masked_lm.as_ref(), terminal)?
        } else {
            None
        };
        let mut of_vectors = Fingerprint::default();
        if let Some(vectors) = &vectors {
            vectors.add_to(&corpus, &mut of_vectors);
        }
        let (device, machine) = models::device(&job_machine(options))?;
        let fingerprint = |model: &Pretrained| model.fingerprint();
        let arithmetic = Arithmetic {
            device: device.arithmetic().to_owned(),
            masked_lm: masked_lm.as_ref().map(fingerprint).transpose()?.unwrap_or_default(),
            tagger: fingerprint(&tagger)?,
            vectors: of_vectors.finish(),
        };
        let started = Instant::now();
        let clock = Box::new(move || started.elapsed().as_secs_f64());
        Ok(Self {
            options,
            grid,
            languages,
            plans,
            masked_lm,
            vectors,
            tagger,
            arithmetic,
            machine,
            started,
            clock,
        })
    }

    pub(crate) fn bench<'b>(&'b self, keep_taggers: Option<&'b Path>) -> Bench<'b> {
        Bench {
            grid: self.grid,
            evaluations: self.grid.evaluations,
            languages: &self.languages,
            plans: &self.plans,
            masked_lm: self.masked_lm.as_ref(),
            vectors: self.vectors.as_ref(),
            tagger: &self.tagger,
            arithmetic: self.arithmetic.clone(),
            keep_taggers,
            clock: &*self.clock,
        }
    }

    pub(crate) fn described(&self, cells: &[Cell]) -> String {
        let jobs = match self.options.jobs.get() {
            1 => String::new(),
            n => format!(", {n} at a time"),
        };
        let tests = self.languages.values().filter(|language| language.test.is_some()).count();
        let tests = match tests {
            0 => "dev sets only".to_owned(),
            n => count(n, "test set"),
        };
        let model = self.tagger.name();
        format!("{} with {model}, {tests}{jobs}; {}", count(cells.len(), "cell"), self.machine)
    }

    /// Runs the cells that the ledger lacks.
    pub(crate) fn run(
        &self,
        bench: &Bench<'_>,
        cells: &[Cell],
        ledger: &Mutex<Ledger>,
        terminal: &Terminal,
    ) -> Result<Tally, Failure> {
        let _deferred = Deferred::begin();
        let watch = Mutex::new(Watch::new(terminal));
        let machine = job_machine(self.options);
        let open = || {
            let (device, said) = models::device(&machine)?;
            // Its cells would stand in the ledger as another device's.
            if device.arithmetic() != self.arithmetic.device {
                return Err(Failure::Impossible {
                    message: format!(
                        "the first job computes on {}, this one on {said}",
                        self.machine
                    ),
                    hint: "run fewer at a time with `--jobs`, or all of them there with `--device cpu`".into(),
                });
            }
            Ok(device)
        };
        let hear = |cell: &Cell, at: (usize, usize), progress: Progress<'_>| {
            let mut watch = watch.lock().unwrap_or_else(PoisonError::into_inner);
            watch.see(cell, at, progress);
            if interrupt::is_requested() { Control::Stop } else { Control::Continue }
        };
        let tally = bench.run(cells, ledger, (self.options.jobs, &open), &hear)?;
        drop(watch);
        let passed = crate::progress::duration(self.started.elapsed().as_secs_f64());
        terminal.say(&format!("done in {passed}"));
        Ok(tally)
    }
}

/// The machine of one job: its share of the threads, unless they were named.
fn job_machine(options: &Comparing) -> Machine {
    let available = std::thread::available_parallelism().map_or(1, usize::from);
    let share = std::num::NonZeroUsize::new(available / options.jobs.get());
    let share = share.unwrap_or(std::num::NonZeroUsize::MIN);
    let Machine { device, threads, precision } = options.machine;
    Machine { device, threads: Some(threads.unwrap_or(share)), precision }
}

/// The plan of each variant: preset < grid < `--set` and models < variant.
fn plans(
    (options, name): (&Comparing, &str),
    grid: &Grid,
    terminal: &Terminal,
) -> Result<BTreeMap<String, Plan>, Failure> {
    let text = |table: &toml::Table| toml::to_string(table).expect("a table is TOML");
    let layers = |sizes, variant: &str| -> Result<Plan, Failure> {
        let mut table = PlanTable::new(options.preset, sizes);
        table.merge_toml(&format!("{name}, [plan]"), &text(&grid.plan))?;
        for edit in &options.set {
            table.set(edit)?;
        }
        settings::put(&mut table, vectors::flag(&options.vectors)?.as_slice())?;
        let models = settings::models_of(options.model.as_ref(), options.tagger_model.as_ref());
        settings::put(&mut table, &models)?;
        if let Some(edits) = grid.variants.get(variant) {
            table.merge_toml(&format!("{name}, [variants.{variant}]"), &text(edits))?;
        }
        Ok(table.plan()?)
    };
    let variants = grid.variants();
    let first = layers(ModelSizes::both(ModelSize::Full), &variants[0])?;
    let sizes = ModelSizes {
        masked_lm: models::size(&first.model.masked_lm, Some(terminal))?,
        tagger: models::size(&first.model.tagger, Some(terminal))?,
    };
    variants.into_iter().map(|name| Ok((name.clone(), layers(sizes, &name)?))).collect()
}

/// Shows how far the cells are, all together.
struct Watch {
    progress: crate::progress::Progress,
    terminal: Terminal,
    /// The share of each cell under way, in percent.
    under_way: BTreeMap<String, u64>,
}

impl Watch {
    fn new(terminal: &Terminal) -> Self {
        let progress = crate::progress::Progress::of_steps("cells", terminal);
        Self { progress, terminal: *terminal, under_way: BTreeMap::new() }
    }

    fn see(&mut self, cell: &Cell, (done, of): (usize, usize), progress: Progress<'_>) {
        let name = cell.to_string();
        match progress {
            Progress::Stage(stage, Event::Progress { done, of }) => {
                // Half of a cell is its drafts, if it has any, the rest its tagger.
                let drafts = if cell.method.drafts().is_some() { 50 } else { 0 };
                let (begun, part) = match stage {
                    "tagger" => (drafts, 100 - drafts),
                    _ => (0, drafts),
                };
                self.under_way.insert(name, begun + part * done / of.max(1));
            }
            Progress::Stage(..) => return,
            Progress::Done(dev) => {
                self.under_way.remove(&name);
                let dev = dev.map(|dev| format!(": dev F1 {dev:.2}")).unwrap_or_default();
                self.tell(format!("{name}{dev}"), self.terminal.is_verbose());
            }
            Progress::Diverged(error) => {
                self.under_way.remove(&name);
                self.tell(format!("{name}: {error}"), true);
            }
        }
        let position = done as u64 * 100 + self.under_way.values().sum::<u64>();
        self.progress.at_step(position, of as u64 * 100);
    }

    fn tell(&mut self, note: String, aloud: bool) {
        if aloud {
            self.progress.clear();
            self.terminal.say(&note);
        }
        self.progress.note(note);
    }
}
