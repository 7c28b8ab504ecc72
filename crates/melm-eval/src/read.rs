//! Reads the files that the cells of a grid need.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use melm::names::NameList;
use melm_text::{Corpus, TextOptions};

use crate::{Cell, Dataset, Error, Grid, LanguageData, Languages};

/// The data of some cells.
pub struct GridData {
    /// The data by language.
    pub languages: Languages,
    /// Files of which several draws take every sentence, so that these draws are all the same.
    pub whole_files: Vec<WholeFile>,
}

/// A file of which several draws take every sentence. Intervals over these draws have no meaning.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WholeFile {
    /// The file.
    pub path: PathBuf,
    /// The number of its sentences.
    pub n_sentences: usize,
    /// The number of draws.
    pub n_draws: usize,
}

impl Grid {
    /// Reads the train and dev files of the cells' languages. If `with_test` is true, also reads the test files that
    /// the taggers are scored on. Otherwise no test file is opened.
    ///
    /// `folder` replaces the data folder of the grid. `read` reads one file. Fails if a file does not exist, cannot be
    /// read, or has fewer sentences than a cell draws.
    pub fn read_data<E: From<Error>>(
        &self,
        cells: &[Cell],
        folder: Option<&Path>,
        with_test: bool,
        read: &mut dyn FnMut(&Path) -> Result<Corpus, E>,
    ) -> Result<GridData, E> {
        let folder = folder.or(self.data.as_deref());
        let folder = folder.ok_or_else(|| Error::NoDataFolder { name: self.name.clone() })?;
        let mut dataset = |language: &str, split: &str| -> Result<Dataset, E> {
            let path = self.file(folder, language, split);
            if path.try_exists().is_ok_and(|exists| !exists) {
                return Err(Error::NoDataFile { path }.into());
            }
            Ok(Dataset::new(read(&path)?))
        };
        let tests: BTreeSet<&str> = if with_test {
            cells.iter().flat_map(|cell| self.test_languages(cell)).collect()
        } else {
            BTreeSet::new()
        };
        let learnt = cells.iter().flat_map(|cell| cell.languages().chain(cell.text_languages()));
        let own: BTreeSet<&str> = learnt.collect();
        let (mut languages, mut whole_files) = (Languages::new(), Vec::new());
        for language in own.union(&tests) {
            let test = tests.contains(language).then(|| dataset(language, "test")).transpose()?;
            let (train, dev) = (dataset(language, "train")?, Some(dataset(language, "dev")?));
            let own = cells.iter().filter(|cell| cell.languages().any(|one| one == *language));
            let path = self.file(folder, language, "train");
            let n_sentences = train.corpus().sentences().len();
            whole_files.extend(check_sizes(path, n_sentences, &own.collect::<Vec<_>>())?);
            let names = self.read_names(folder, language, train.corpus())?;
            let data = LanguageData { train, dev, text: None, test, names };
            languages.insert((*language).to_owned(), data);
        }
        Ok(GridData { languages, whole_files })
    }

    /// Reads the lists of names of a language. Fails if the grid names a folder that has no list.
    fn read_names(
        &self,
        folder: &Path,
        language: &str,
        train: &Corpus,
    ) -> Result<Vec<NameList>, Error> {
        let Some(pattern) = &self.names else { return Ok(Vec::new()) };
        let folder = folder.join(pattern.replace("{language}", language));
        let mut lists = Vec::new();
        for entity_type in train.types().iter().map(|one| train.types().name(one)) {
            let path = folder.join(format!("{entity_type}.txt"));
            if path.exists() {
                lists.push(NameList::open(entity_type, &path, train, TextOptions::default())?);
            }
        }
        if lists.is_empty() { Err(Error::NoDataFile { path: folder }) } else { Ok(lists) }
    }
}

/// Fails if a cell draws more sentences than the file has. Returns the file if several draws take every sentence of it.
fn check_sizes(
    path: PathBuf,
    n_sentences: usize,
    cells: &[&Cell],
) -> Result<Option<WholeFile>, Error> {
    let mut sizes = cells.iter().map(|cell| cell.method.n_drawn(cell.size));
    if let Some(size) = sizes.find(|size| *size > n_sentences) {
        return Err(Error::TooFewSentences { path, size, found: n_sentences });
    }
    let whole = cells.iter().filter(|cell| cell.size == n_sentences);
    let n_draws = whole.map(|cell| cell.draw).collect::<BTreeSet<_>>().len();
    Ok((n_draws > 1).then_some(WholeFile { path, n_sentences, n_draws }))
}
