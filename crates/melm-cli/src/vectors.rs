//! Reads the word vectors by which mentions are compared.

use melm::Error;
use melm::codemix::{MentionVectors, VectorKind};
use melm::plan::{Plan, PlanBuilder};
use melm_text::Corpus;

use crate::args::VectorInput;
use crate::failure::Failure;
use crate::progress::Progress;
use crate::terminal::{Terminal, count};

/// Sets `codemix.vectors` for `--vectors pieces`. Fails if vector files are given too.
pub(crate) fn set_kind(
    builder: PlanBuilder,
    given: &[VectorInput],
) -> Result<PlanBuilder, Failure> {
    let is_pieces = |one: &VectorInput| *one == VectorInput::Pieces;
    if !given.iter().any(is_pieces) {
        return Ok(builder);
    }
    if !given.iter().all(is_pieces) {
        return Err(Failure::Usage {
            message: "`--vectors pieces` cannot be combined with vector files".into(),
            hint: "pass `--vectors LANG=FILE` for every language, or `--vectors pieces` alone",
        });
    }
    Ok(builder.set_value("--vectors pieces", "codemix.vectors", "pieces"))
}

/// Reads the vector files that the method of a plan needs. Returns `None` if it needs none or compares mentions by
/// pieces.
pub(crate) fn read(
    given: &[VectorInput],
    plan: &Plan,
    corpus: &Corpus,
    terminal: &Terminal,
) -> Result<Option<MentionVectors>, Failure> {
    if plan.method.mixes() && corpus.languages().len() < 2 {
        return Err(Error::OneLanguage.into());
    }
    if !plan.method.has_vectors() {
        if !given.is_empty() {
            let method = plan.method.name();
            terminal.info(&format!(
                "ignoring `--vectors`: the method {method} does not compare mentions"
            ));
        }
        return Ok(None);
    }
    match plan.codemix.vectors {
        VectorKind::Pieces => Ok(None),
        VectorKind::Words => read_files(given, corpus, terminal).map(Some),
    }
}

/// Reads vector files for the mentions of a corpus.
pub(crate) fn read_files(
    given: &[VectorInput],
    corpus: &Corpus,
    terminal: &Terminal,
) -> Result<MentionVectors, Failure> {
    let mut files = Vec::new();
    for one in given {
        let VectorInput::File(code, path) = one else { continue };
        if corpus.languages().iter().all(|part| *part.code != **code) {
            return Err(Failure::Usage {
                message: format!("vectors are given for `{code}`, but no TRAIN in that language"),
                hint: "use the same language for both: `en=a.conll --vectors en=a.vec`",
            });
        }
        if files.iter().any(|(known, _)| known == code) {
            return Err(Failure::Usage {
                message: format!("the vectors of `{code}` are given twice"),
                hint: "pass one file for each language",
            });
        }
        files.push((code.clone(), path.clone()));
    }
    let mut progress = Progress::for_steps("reading vectors", terminal);
    let vectors = MentionVectors::read(corpus, &files, &mut |done, of| progress.set_step(done, of));
    drop(progress);
    let vectors = vectors?;
    for (code, path) in &files {
        let Some(read) = vectors.by_language().get(code) else { continue };
        let path = path.display();
        if let Some(promised) = read.n_promised.filter(|n| *n != read.n_words) {
            let n = count(read.n_words, "word");
            terminal.info(&format!("`{path}` contains {n}, but its first line says {promised}"));
        }
        if read.n_repeated > 0 {
            let n = count(read.n_repeated, "word");
            terminal.info(&format!("`{path}` repeats {n}; the first vector of each is used"));
        }
    }
    Ok(vectors)
}
