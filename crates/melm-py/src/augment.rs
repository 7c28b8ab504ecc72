//! `melm.augment`.

use std::path::{Path, PathBuf};
use std::time::Instant;

use melm::Augment;
use melm::augment::AugmentJob;
use melm::draft::{CandidateLines, read_lines};
use melm::files::MAX_RUN_FILE;
use melm_cli::host::{self, ErrorReport};
use melm_nn::files::read_text;
use melm_text::{Language, Sentence};
use pyo3::prelude::*;

use crate::corpus::{Corpus, Row, row};
use crate::data::Data;
use crate::error::to_exception;
use crate::run::{self, Reporter};
use crate::settings::Settings;

/// The result of a run in a folder. The files of the folder have the details.
#[pyclass(frozen, module = "melm._melm")]
pub(crate) struct AugmentResult {
    /// The gold corpus, with the languages of the unlabelled text.
    gold: melm_text::Corpus,
    /// The kept drafts, then the kept sentences of the unlabelled text.
    kept: Vec<Sentence>,
    has_gold: bool,
    folder: PathBuf,
    notes: Vec<String>,
    warnings: Vec<String>,
}

#[pymethods]
impl AugmentResult {
    /// The kept drafts, then the kept sentences of the unlabelled text. Each has its language code, if there is one. Tags
    /// are written in the scheme of the language's own data.
    fn kept(&self) -> Vec<(Option<String>, Row)> {
        let spelled = |sentence: &Sentence| {
            let part = sentence.language().map(|one| &self.gold.languages()[one.index()]);
            let scheme = part.map_or(self.gold.scheme(), |part| part.scheme);
            let mentions: Vec<_> = sentence.mentions().collect();
            let sentence = sentence.clone().with_mentions(mentions, scheme);
            (part.map(|part| part.code.to_string()), row(&sentence, self.gold.types(), scheme))
        };
        self.kept.iter().map(spelled).collect()
    }

    /// The gold sentences, unless the plan's `union` is false, and the kept sentences. It has the languages of the data and
    /// of the unlabelled text.
    fn corpus(&self) -> Corpus {
        let kept = self.kept.iter().cloned();
        let all =
            if self.has_gold { self.gold.with_more(kept) } else { self.gold.with_sentences(kept) };
        if all.languages().is_empty() {
            return all.into();
        }
        let parts = all.split_languages();
        melm_text::Corpus::from_languages(parts.iter().map(|(code, part)| (*code, part))).into()
    }

    /// False if the plan's `union` is false: the result then has no gold sentences.
    #[getter]
    fn has_gold(&self) -> bool {
        self.has_gold
    }

    /// Lines about the run, such as what was left out.
    #[getter]
    fn notes(&self) -> Vec<String> {
        self.notes.clone()
    }

    /// Reasons why the result is probably not what the user wants.
    #[getter]
    fn warnings(&self) -> Vec<String> {
        self.warnings.clone()
    }

    /// The folder of the run.
    #[getter]
    fn folder(&self) -> PathBuf {
        self.folder.clone()
    }
}

/// Augments a corpus in a folder. Resumes a run that was interrupted there, and reads a run that is finished.
#[pyfunction]
pub(crate) fn augment(
    py: Python<'_>,
    data: Data,
    settings: &Settings,
    folder: PathBuf,
    on_message: &Bound<'_, PyAny>,
) -> PyResult<AugmentResult> {
    let limits = host::limits().map_err(to_exception)?;
    run::run(py, on_message, |mut reporter| {
        let mut augment = Augment::new(data.train().clone());
        augment = data.dev().into_iter().cloned().fold(augment, Augment::dev);
        augment = data.text().into_iter().cloned().fold(augment, Augment::unlabelled);
        augment = data.silver().fold(augment, Augment::silver);
        augment = data.held_out().into_iter().fold(augment, Augment::held_out);
        augment = data.names(limits)?.into_iter().fold(augment, Augment::names);
        let needs = |plan: &_| AugmentJob::needed_models(plan, data.has_text());
        let models = settings.models();
        let plan = models.plan(&settings.plan, needs)?;
        let augment = augment.plan(plan).models(models).device(settings.open_device()?);
        run_in_folder(&augment.prepare()?, folder, &mut reporter)
    })
}

fn run_in_folder(
    job: &AugmentJob,
    folder: PathBuf,
    reporter: &mut Reporter,
) -> Result<AugmentResult, ErrorReport> {
    let (force, keep_model) = (false, false);
    let opened = job.open_folder(&folder, force, keep_model)?;
    let has_gold = job.plan().union;
    if let Some(finished) = opened.finished()? {
        let kept = read_kept(&folder, job.output_gold())?;
        let gold = job.output_gold().clone();
        let notes = vec![format!("`{}` is already finished", folder.display())];
        let warnings = finished.warning(&folder).into_iter().collect();
        return Ok(AugmentResult { gold, kept, has_gold, folder, notes, warnings });
    }
    let started = Instant::now();
    let seconds = || started.elapsed().as_secs_f64();
    let outcome = opened.run(&mut |stage, event| reporter.on_event(stage, event), &seconds)?;
    let augmented = outcome.augmented;
    let kept = augmented.kept().cloned().collect();
    let notes = job.notes().into_iter().chain(augmented.notes()).collect();
    let warnings = job.warnings().into_iter().chain(augmented.warnings()).collect();
    let gold = augmented.gold().clone();
    Ok(AugmentResult { gold, kept, has_gold, folder, notes, warnings })
}

/// Reads the kept sentences of a finished run.
fn read_kept(folder: &Path, gold: &melm_text::Corpus) -> Result<Vec<Sentence>, ErrorReport> {
    let path = folder.join("drafts.jsonl");
    let text = read_text(&path, MAX_RUN_FILE)
        .map_err(|source| melm::Error::Read { path: path.clone(), source })?;
    let CandidateLines { drafts, text } = read_lines(&path, &text, gold)?;
    let drafts = drafts.into_iter().filter(|draft| draft.verdict.is_kept());
    let with_language = |sentence: Sentence, code: Option<&str>| {
        let own = gold.languages().iter().position(|part| Some(&*part.code) == code);
        match own {
            Some(index) => sentence.with_language(Language::from_index(index)),
            None => sentence,
        }
    };
    let text = text.into_iter().filter(|line| line.verdict.is_kept());
    let text = text.map(|line| with_language(line.sentence, line.language.as_deref()));
    Ok(drafts.map(|draft| draft.sentence).chain(text).collect())
}
