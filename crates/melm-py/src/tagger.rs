//! `melm.Tagger`.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use melm::stage::Event;
use melm::tagger::{TaggedSentence, TaggerTrainer};
use melm::training_job::{TrainedKind, TrainingJob};
use melm_cli::host::{ErrorKind, ErrorReport, OpenedDevice};
use melm_text::{Document, OffsetMap, OffsetUnit, Tokenizer, TokenizerRules, mentions};
use pyo3::prelude::*;

use crate::data::Data;
use crate::error::to_exception;
use crate::run::{self, Reporter};
use crate::settings::Settings;

/// A mention in a text: start and end as code points, entity type, and the lowest probability of its tags.
type Span = (usize, usize, String, f32);

/// A tagger and its device.
#[pyclass(frozen, module = "melm._melm")]
pub(crate) struct Tagger {
    tagger: melm::Tagger,
    /// What was too long for the model in the training.
    notes: Vec<String>,
}

#[pymethods]
impl Tagger {
    /// Opens a saved tagger.
    #[staticmethod]
    fn open(py: Python<'_>, folder: PathBuf, settings: &Settings) -> PyResult<Self> {
        py.detach(|| {
            let OpenedDevice { device, is_int8, .. } = settings.open_tagging_device()?;
            // A file that is missing or damaged is a problem of the model here, not of data.
            let opened = melm::Tagger::open(folder).map_err(|error| {
                let ErrorReport { message, .. } = error.into();
                ErrorReport { kind: ErrorKind::Model, message }
            });
            let tagger = opened?.with_device(device);
            let tagger = if is_int8 { tagger.with_int8()? } else { tagger };
            Ok(Self { tagger, notes: Vec::new() })
        })
        .map_err(|error: ErrorReport| to_exception(error))
    }

    /// Trains a tagger, in a folder if one is given. Resumes a training that was interrupted there, and opens a tagger
    /// that is finished.
    #[staticmethod]
    fn train(
        py: Python<'_>,
        data: Data,
        settings: &Settings,
        folder: Option<PathBuf>,
        on_message: &Bound<'_, PyAny>,
    ) -> PyResult<Self> {
        run::run(py, on_message, |reporter| match folder {
            Some(folder) => train_in_folder(&data, settings, &folder, reporter),
            None => train_in_memory(&data, settings, reporter),
        })
    }

    /// Writes a Hugging Face folder.
    fn save(&self, py: Python<'_>, folder: PathBuf) -> PyResult<()> {
        py.detach(|| self.tagger.save(folder)).map_err(to_exception)
    }

    /// The tags, in the order of their numbers.
    #[getter]
    fn tags(&self) -> Vec<String> {
        self.tagger.model().tags().names()
    }

    /// Lines about what was too long for the model in the training.
    #[getter]
    fn notes(&self) -> Vec<String> {
        self.notes.clone()
    }

    /// Micro-F1 on the dev set of the training, or `None`.
    #[getter]
    fn dev_f1(&self) -> Option<f64> {
        self.tagger.training().and_then(|training| Some(training.best?.value))
    }

    /// Tags sentences given as tokens. Returns the tags, and lines about what was too long.
    fn tag_tokens(
        &self,
        py: Python<'_>,
        sentences: Vec<Vec<String>>,
        on_message: &Bound<'_, PyAny>,
    ) -> PyResult<(Vec<Vec<String>>, Vec<String>)> {
        run::run(py, on_message, |reporter| {
            let (tagged, notes) = self.tag(&sentences, &reporter)?;
            let tags = self.tagger.model().tags();
            let spell = |tag: &_| tags.types().spell(*tag, tags.scheme()).to_string();
            let tags = tagged.iter().map(|one| one.tags.iter().map(spell).collect());
            Ok((tags.collect(), notes))
        })
    }

    /// Tags texts. They are split into tokens and sentences. Returns the mentions of each text, and lines about what was
    /// too long.
    fn tag_texts(
        &self,
        py: Python<'_>,
        texts: Vec<String>,
        on_message: &Bound<'_, PyAny>,
    ) -> PyResult<(Vec<Vec<Span>>, Vec<String>)> {
        run::run(py, on_message, |reporter| {
            let tokenizer = Tokenizer::new(TokenizerRules::default().with_single_characters());
            let new = |text| Document::new(text, Vec::new(), &tokenizer);
            let documents: Vec<Document> = texts.into_iter().map(new).collect();
            let sentences: Vec<Vec<&str>> = documents.iter().flat_map(sentence_tokens).collect();
            let (tagged, notes) = self.tag(&sentences, &reporter)?;
            let mut rest = &tagged[..];
            let spans = documents.iter().map(|document| {
                let (own, after) = rest.split_at(document.sentences().len());
                rest = after;
                self.spans(document, own)
            });
            Ok((spans.collect(), notes))
        })
    }
}

impl Tagger {
    fn tag<T: AsRef<str> + Sync>(
        &self,
        sentences: &[Vec<T>],
        reporter: &Reporter,
    ) -> Result<(Vec<TaggedSentence>, Vec<String>), ErrorReport> {
        let mut on_progress = |done, of| reporter.on_progress("tagging", done, of);
        let (tagged, truncation) = self.tagger.tag_in_chunks(sentences, &mut on_progress)?;
        Ok((tagged, truncation.notes()))
    }

    /// Returns the mentions of a document, given the tags of its sentences.
    fn spans(&self, document: &Document, tagged: &[TaggedSentence]) -> Vec<Span> {
        let offsets = OffsetMap::new(document.text(), OffsetUnit::CodePoint);
        let tags = self.tagger.model().tags();
        let mut spans = Vec::new();
        for (sentence, tagged) in document.sentences().iter().zip(tagged) {
            let tokens = &document.tokens()[sentence.clone()];
            for mention in mentions(&tagged.tags) {
                let probability = |at: usize| {
                    tags.number(tagged.tags[at]).map_or(0.0, |tag| tagged.probability(at, tag))
                };
                let score = mention.tokens.clone().map(probability).fold(1.0, f32::min);
                let start = offsets.offset(tokens[mention.tokens.start].start);
                let end = offsets.offset(tokens[mention.tokens.end - 1].end);
                let name = tags.types().name(mention.entity_type).to_owned();
                spans.push((start, end, name, score));
            }
        }
        spans
    }
}

fn train_in_memory(
    data: &Data,
    settings: &Settings,
    mut reporter: Reporter,
) -> Result<Tagger, ErrorReport> {
    let trainer = melm::Tagger::trainer(data.train().clone()).settings(settings.plan.clone());
    let trainer = trainer.models(settings.models()).device(settings.open_device()?);
    let trainer = data.dev().into_iter().cloned().fold(trainer, TaggerTrainer::dev);
    let trainer = trainer.on_event(move |stage, event| reporter.on_event(stage, event));
    let tagger = trainer.train()?;
    Ok(Tagger { notes: tagger.truncation().notes(), tagger })
}

fn train_in_folder(
    data: &Data,
    settings: &Settings,
    folder: &Path,
    mut reporter: Reporter,
) -> Result<Tagger, ErrorReport> {
    let (kind, models, device) = (TrainedKind::Tagger, settings.models(), settings.open_device()?);
    let plan = models.plan(&settings.plan, |_| kind.needed_models())?;
    let (train, dev) = (data.train().clone(), data.dev().cloned());
    let job = TrainingJob::new(kind, train, dev, plan, &models, Arc::clone(&device))?;
    let force = false;
    let opened = job.open_folder(folder, force)?;
    let mut notes = Vec::new();
    if let Some(finished) = opened.finished()? {
        notes.extend(finished.warning(folder));
    } else {
        let started = Instant::now();
        let seconds = || started.elapsed().as_secs_f64();
        let mut on_event = |stage: &'static str, event: Event<'_>| reporter.on_event(stage, event);
        notes.extend(job.warnings());
        notes.extend(opened.run(&mut on_event, &seconds)?.details.notes());
    }
    Ok(Tagger { tagger: melm::Tagger::open(folder)?.with_device(device), notes })
}

fn sentence_tokens(document: &Document) -> Vec<Vec<&str>> {
    let sentences = document.sentences().iter();
    sentences.map(|sentence| document.sentence_tokens(sentence).collect()).collect()
}
