//! `melm.pick`: picks the sentences of a text that a person should label next.

use std::path::{Path, PathBuf};

use melm::{Pick, Picked};
use melm_cli::host::{self, ErrorReport};
use melm_text::{UnlabelledText, describe_losses, find_losses};
use pyo3::prelude::*;
use serde_json::json;

use crate::data::Data;
use crate::error::to_exception;
use crate::files::{Converted, parse_format};
use crate::run::{self, Reporter};
use crate::settings::Settings;

/// The sentences that were picked, the most useful one first.
#[pyclass(frozen, module = "melm._melm")]
pub(crate) struct PickResult {
    picked: Picked,
}

#[pymethods]
impl PickResult {
    /// A JSON line for each sentence with its rank, score, origin, suggested tags and votes.
    fn lines(&self) -> String {
        self.picked.to_lines()
    }

    /// The JSON of the numbers of sentences of the text by what became of them.
    fn summary(&self) -> String {
        json!(self.picked.summary()).to_string()
    }

    /// The sentences in the format `to`, or in the one with the ending of `path`, or in that of the training set: the
    /// endings and contents of the files, and lines about what the format cannot store.
    fn files(
        &self,
        py: Python<'_>,
        path: Option<PathBuf>,
        to: Option<&str>,
    ) -> PyResult<Converted> {
        let to = to.map(parse_format).transpose()?;
        py.detach(|| {
            let format = host::choose_format(to, path.as_deref(), self.picked.usual_format())?;
            let notes = describe_losses(&find_losses(&self.picked.documents(), format), format);
            let files = self.picked.to_files(format)?;
            let files = files.into_iter().map(|file| (file.extension.to_owned(), file.bytes));
            Ok((files.collect(), notes))
        })
        .map_err(|error: ErrorReport| to_exception(error))
    }

    /// The path of the file of scores and votes beside `path`.
    #[staticmethod]
    fn lines_path(path: PathBuf) -> PathBuf {
        Picked::lines_path(&path)
    }
}

/// Picks `n` sentences of a text. With `folder`, the votes of the panel are stored there: an interrupted run resumes, and
/// later runs with another `n` use them again.
#[pyfunction]
pub(crate) fn pick(
    py: Python<'_>,
    data: Data,
    n: usize,
    settings: &Settings,
    folder: Option<PathBuf>,
    on_message: &Bound<'_, PyAny>,
) -> PyResult<PickResult> {
    run::run(py, on_message, |mut reporter| {
        let text = data.text().cloned().unwrap_or_else(|| UnlabelledText::new(Vec::new()));
        let mut pick = Pick::new(data.train().clone(), text)
            .n(n)
            .settings(settings.plan.clone())
            .models(settings.models())
            .device(settings.open_device()?);
        pick = data.dev().into_iter().cloned().fold(pick, Pick::dev);
        pick = data.held_out().into_iter().fold(pick, Pick::held_out);
        let picked = pick_sentences(pick, folder.as_deref(), &mut reporter)?;
        Ok(PickResult { picked })
    })
}

fn pick_sentences(
    pick: Pick,
    folder: Option<&Path>,
    reporter: &mut Reporter,
) -> Result<Picked, ErrorReport> {
    let job = pick.prepare()?;
    match job.left_out().total() {
        0 => {}
        n => reporter.note(format!("sentences left out, known or repeated: {n}")),
    }
    let mut observer = |stage, event: melm::stage::Event<'_>| reporter.on_event(stage, event);
    let Some(folder) = folder else { return Ok(job.run(&mut observer)?) };
    Ok(job.open_folder(folder, false)?.run(&mut observer)?)
}
