//! Grids: the cells of an experiment, and the settings they share.

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroU64;
use std::path::{Component, Path, PathBuf};

use melm::plan::describe_toml;
use melm::tagger::TaggerSettings;
use melm::training::{Budget, EvaluationInterval};
use melm_text::shown;
use serde::Deserialize;
use toml::Table;

use crate::table::Table as PaperTable;
use crate::{Cell, Error, Picking, System, TextChoice};

/// The name of the only variant of a grid that defines no variants.
pub(crate) const BASE: &str = "base";

/// Returns the path and the text of a grid file of the repository.
macro_rules! built_in {
    ($path:literal) => {
        ($path, include_str!(concat!("../", $path)))
    };
}

/// The largest number of cells of a grid. Each one takes minutes, and a short file can name more than fit into memory.
pub const MAX_CELLS: usize = 1_000_000;

/// A grid: the cells of an experiment, and the settings they share. Grids are TOML files.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Grid {
    /// The name of the file, for messages.
    #[serde(skip)]
    pub name: String,
    /// The path of a data file in the data folder. `{language}` and `{split}` (train, dev, test) are replaced.
    pub files: String,
    /// The data folder, unless the user gives another one.
    #[serde(default)]
    pub data: Option<PathBuf>,
    /// The number of dev evaluations of a training run whose budget is in updates. It does not depend on the size of
    /// the training set, so that all methods choose the best epoch among equally many evaluations.
    #[serde(default = "default_evaluations")]
    pub evaluations: NonZeroU64,
    /// The number of epochs between two dev evaluations of a training run whose budget is in epochs [default: that of the
    /// plan, `tagger.evaluate_every`].
    #[serde(default)]
    pub evaluate_every: Option<NonZeroU64>,
    /// The folder of lists of names in the data folder. `{language}` is replaced. It has a file `TYPE.txt` for each entity
    /// type with a list. Variants with `names.share = 0` do not use them.
    #[serde(default)]
    pub names: Option<String>,
    /// Languages whose taggers are also scored on other languages, each with the list of these other languages.
    #[serde(default)]
    pub transfer: BTreeMap<String, Vec<String>>,
    /// How cells of the system `picked` get their sentences.
    #[serde(default)]
    pub picking: Picking,
    /// Blocks of cells. The grid is their union.
    pub grid: Vec<Block>,
    /// Plan settings that replace those of the preset.
    #[serde(default)]
    pub plan: Table,
    /// Variants to compare: named settings that replace those of `plan`. Without any, the grid has one variant called
    /// `base`.
    #[serde(default)]
    pub variants: BTreeMap<String, Table>,
    /// The F1 of the paper by size, method and column.
    #[serde(default)]
    pub paper: PaperScores,
    /// The sentences of the table `predictions` [default: the first dev sentences of the draw that have mentions].
    #[serde(default)]
    pub sentences: Vec<ExampleSentence>,
}

/// A sentence whose entity tokens the table `predictions` shows.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExampleSentence {
    /// The tokens, separated by spaces.
    pub tokens: String,
    /// The tags of the tokens, separated by spaces.
    pub tags: String,
    /// The words in the paper: for each model, by the method that has it, the words of each entity token.
    #[serde(default)]
    pub paper: BTreeMap<String, Vec<String>>,
}

impl ExampleSentence {
    /// Returns a message if the sentence does not have one tag for each token.
    fn find_mistake(&self) -> Option<String> {
        let [n_tokens, n_tags] = [&self.tokens, &self.tags].map(|text| text.split(' ').count());
        (n_tokens != n_tags).then(|| format!("`{}` needs one tag for each token", self.tokens))
    }
}

/// The F1 of the paper by size, method and column.
pub type PaperScores = BTreeMap<String, BTreeMap<String, BTreeMap<String, f64>>>;

/// A block of cells: every combination of these coordinates.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Block {
    /// Languages. For languages joined by `+`, one tagger is trained on all of them.
    pub languages: Vec<String>,
    /// Numbers of gold sentences for each language.
    pub sizes: Vec<usize>,
    /// Draws.
    pub draws: Vec<u64>,
    /// Seeds.
    pub seeds: Vec<u64>,
    /// Methods.
    pub methods: Vec<System>,
    /// Unlabelled texts [default: none].
    #[serde(default = "no_text")]
    pub texts: Vec<TextChoice>,
    /// Budgets.
    pub budgets: Vec<Budget>,
    /// Variants [default: all].
    #[serde(default)]
    pub variants: Option<Vec<String>>,
}

impl Block {
    /// Every combination of language, size, draw and seed.
    fn golds(&self) -> Vec<(String, usize, u64, u64)> {
        let mut all = vec![];
        for language in &self.languages {
            for &size in &self.sizes {
                for &draw in &self.draws {
                    all.extend(self.seeds.iter().map(|seed| (language.clone(), size, draw, *seed)));
                }
            }
        }
        all
    }

    /// The number of cells. `n_variants` is the number of variants of the grid.
    fn n_cells(&self, n_variants: usize) -> usize {
        let lengths = [
            self.languages.len(),
            self.sizes.len(),
            self.draws.len(),
            self.seeds.len(),
            self.methods.len(),
            self.texts.len(),
            self.budgets.len(),
            self.variants.as_ref().map_or(n_variants, Vec::len),
        ];
        lengths.into_iter().fold(1, usize::saturating_mul)
    }

    /// Returns a message if the block is not valid. `variants` are the names that the grid defines.
    fn find_mistake(&self, variants: &[String], picking: Picking) -> Option<String> {
        let lengths = [
            ("languages", self.languages.len()),
            ("sizes", self.sizes.len()),
            ("draws", self.draws.len()),
            ("seeds", self.seeds.len()),
            ("methods", self.methods.len()),
            ("texts", self.texts.len()),
            ("budgets", self.budgets.len()),
            ("variants", self.variants.as_ref().map_or(1, Vec::len)),
        ];
        if let Some((name, _)) = lengths.iter().find(|(_, n)| *n == 0) {
            return Some(format!("`{name}` of a block is empty: the block would have no cell"));
        }
        if self.sizes.contains(&0) {
            return Some("`sizes` has a 0: a tagger needs at least one sentence".to_owned());
        }
        for joined in &self.languages {
            let mut parts: Vec<_> = joined.split('+').collect();
            parts.sort_unstable();
            if parts.windows(2).any(|pair| pair[0] == pair[1]) || parts[0].is_empty() {
                return Some(format!("`{joined}` names a language twice, or has an empty name"));
            }
        }
        if let Some(mistake) = self.find_picking_mistake(picking) {
            return Some(mistake);
        }
        let unknown = self.variants.iter().flatten().find(|variant| !variants.contains(variant))?;
        Some(format!("there is no variant `{unknown}`"))
    }

    /// Returns a message if a cell of the system `picked` has several languages, unlabelled text or fewer sentences than
    /// the start.
    fn find_picking_mistake(&self, picking: Picking) -> Option<String> {
        if !self.methods.contains(&System::Picked) {
            return None;
        }
        let start = picking.start.get();
        if let Some(size) = self.sizes.iter().find(|size| **size < start) {
            return Some(format!(
                "`picked` begins with {start} sentences: the size {size} is below it"
            ));
        }
        let what = if self.languages.iter().any(|language| language.contains('+')) {
            "several languages"
        } else if self.texts.iter().any(|text| !text.is_none()) {
            "unlabelled text"
        } else {
            return None;
        };
        Some(format!("`picked` cannot be combined with {what}: use a block of its own"))
    }
}

/// The number of evaluations on dev, unless the grid sets another.
pub(crate) const DEFAULT_EVALUATIONS: NonZeroU64 = NonZeroU64::new(10).expect("ten is not zero");

pub(crate) fn no_text() -> Vec<TextChoice> {
    vec![TextChoice::default()]
}

fn default_evaluations() -> NonZeroU64 {
    DEFAULT_EVALUATIONS
}

/// Returns true for the code of a language. It becomes a part of a path.
fn is_name(language: &str) -> bool {
    !language.is_empty() && language.chars().all(|c| c.is_alphanumeric() || matches!(c, '-' | '_'))
}

/// Returns true for a relative path that does not leave its folder.
fn is_inside(path: &Path) -> bool {
    path.components().all(|part| matches!(part, Component::Normal(_) | Component::CurDir))
}

impl Grid {
    /// Returns the paper's grid of a table.
    pub fn built_in(table: PaperTable) -> Self {
        let (name, text) = match table {
            PaperTable::Mono => built_in!("configs/paper/mono.toml"),
            PaperTable::Cross => built_in!("configs/paper/cross.toml"),
            PaperTable::Multi => built_in!("configs/paper/multi.toml"),
            PaperTable::AddEntity => built_in!("configs/paper/add-entity.toml"),
            PaperTable::Masking => built_in!("configs/paper/masking.toml"),
            PaperTable::Rounds => built_in!("configs/paper/rounds.toml"),
            PaperTable::Costs => built_in!("configs/paper/costs.toml"),
            PaperTable::CostsMulti => built_in!("configs/paper/costs-multi.toml"),
        };
        Self::parse(name, text).expect("the built-in grids are tested")
    }

    /// Returns the grid of the predictions of models (Table 3).
    pub fn predictions() -> Self {
        let (name, text) = built_in!("configs/paper/predictions.toml");
        Self::parse(name, text).expect("the built-in grids are tested")
    }

    /// Returns the grid of the valid entities (Figure 4).
    pub fn entities() -> Self {
        let (name, text) = built_in!("configs/paper/entities.toml");
        Self::parse(name, text).expect("the built-in grids are tested")
    }

    /// Returns a small grid for the example data of the repository.
    pub fn smoke() -> Self {
        let (name, text) = built_in!("configs/smoke.toml");
        Self::parse(name, text).expect("the built-in grids are tested")
    }

    /// Sets how often a tagger with this budget is evaluated on dev.
    ///
    /// If the budget is in updates, the number of evaluations does not depend on the size of the training set.
    pub(crate) fn set_evaluations(&self, settings: &mut TaggerSettings, budget: Budget) {
        settings.training.evaluate_every = match (budget, self.evaluate_every) {
            (Budget::Updates(updates), _) => {
                let between = NonZeroU64::new(updates.get() / self.evaluations);
                EvaluationInterval::updates(between.unwrap_or(NonZeroU64::MIN))
            }
            (Budget::Epochs(_), Some(epochs)) => EvaluationInterval::Epochs(epochs),
            (Budget::Epochs(_), None) => settings.training.evaluate_every,
        };
    }

    /// Replaces the seeds of all blocks.
    pub fn set_seeds(&mut self, seeds: &[u64]) {
        for block in &mut self.grid {
            block.seeds = seeds.to_vec();
        }
    }

    /// Parses a grid. `name` is the name of its file, for messages. Fails if the text is not a valid grid.
    pub fn parse(name: &str, text: &str) -> Result<Self, Error> {
        let wrong = |message: String| Error::Grid { name: name.to_owned(), message };
        let grid: Self = toml::from_str(text).map_err(|error| wrong(describe_toml(&error)))?;
        let grid = Self { name: name.to_owned(), ..grid };
        grid.find_mistake().map_or(Ok(grid), |mistake| Err(wrong(mistake)))
    }

    /// Returns a message if the grid is not valid.
    fn find_mistake(&self) -> Option<String> {
        let languages: BTreeSet<&str> = self
            .grid
            .iter()
            .flat_map(|block| &block.languages)
            .flat_map(|l| l.split('+'))
            .collect();
        let texts = self.grid.iter().flat_map(|block| &block.texts);
        let texts = texts.flat_map(|text| &text.languages);
        let named = self.transfer.values().flatten().chain(texts).map(String::as_str);
        let scored: BTreeSet<&str> = named.chain(languages).collect();
        let rest = self.files.replace("{language}", "").replace("{split}", "");
        if !self.files.contains("{split}") {
            return Some("`files` must contain `{split}`".to_owned());
        }
        if rest.contains(['{', '}']) {
            return Some(format!(
                "`files = {:?}`: only `{{language}}` and `{{split}}` can be used",
                self.files
            ));
        }
        if let Some(language) = scored.iter().find(|language| !is_name(language)) {
            return Some(format!(
                "the language `{}` is not a name: use letters, digits, `-` and `_`",
                shown(language)
            ));
        }
        let paths = [("files", Some(&self.files)), ("names", self.names.as_ref())];
        let leaves = |path: Option<&String>| path.is_some_and(|path| !is_inside(Path::new(path)));
        if let Some((key, _)) = paths.into_iter().find(|(_, path)| leaves(*path)) {
            return Some(format!("`{key}` must be a path inside of the data folder, without `..`"));
        }
        if scored.len() > 1 && !self.files.contains("{language}") {
            return Some("`files` must contain `{language}`: the grid has several".to_owned());
        }
        if self.grid.is_empty() {
            return Some("it has no block of cells: add `[[grid]]` with languages, sizes, draws, seeds, methods and budgets".to_owned());
        }
        let known = self.variants();
        let n_cells = self.grid.iter().map(|block| block.n_cells(known.len()));
        if n_cells.fold(0, usize::saturating_add) > MAX_CELLS {
            return Some(format!("it has more than {MAX_CELLS} cells: make several grids"));
        }
        if let Some(mistake) =
            self.grid.iter().find_map(|block| block.find_mistake(&known, self.picking))
        {
            return Some(mistake);
        }
        if let Some(mistake) = self.sentences.iter().find_map(ExampleSentence::find_mistake) {
            return Some(mistake);
        }
        let is_trained =
            |from: &&String| self.grid.iter().any(|block| block.languages.contains(*from));
        let from = self.transfer.keys().find(|from| !is_trained(from))?;
        Some(format!("`transfer.{from}`: no block has a tagger for {from}"))
    }

    /// The names of the variants. `base` comes first if it is one of them.
    pub fn variants(&self) -> Vec<String> {
        let mut names: Vec<_> = self.variants.keys().cloned().collect();
        names.sort_by_key(|name| name != BASE);
        if names.is_empty() { vec![BASE.to_owned()] } else { names }
    }

    /// The path of a language's train, dev or test file.
    pub fn file(&self, folder: &Path, language: &str, split: &str) -> PathBuf {
        folder.join(self.files.replace("{language}", language).replace("{split}", split))
    }

    /// The languages whose test sets the tagger of a cell is scored on.
    pub fn test_languages<'g>(&'g self, cell: &'g Cell) -> impl Iterator<Item = &'g str> {
        let others = self.transfer.get(&cell.language).into_iter().flatten();
        cell.languages().chain(others.map(String::as_str))
    }

    /// Returns all cells, each once. Cells with the same gold and seed are next to each other, and the system `gold` is
    /// the first of them.
    pub fn cells(&self) -> Vec<Cell> {
        let mut cells: Vec<Cell> =
            self.grid.iter().flat_map(|block| self.block_cells(block)).collect();
        let variants = self.variants();
        // Sort by draw before language, so that an interrupted run has cells of every language.
        cells.sort_by_cached_key(|cell| {
            let variant = variants.iter().position(|name| *name == cell.variant);
            let gold = (cell.draw, cell.seed, cell.size, cell.language.clone());
            (gold, variant, cell.method.rank(), cell.text.clone(), cell.budget.to_string())
        });
        cells.dedup();
        cells
    }

    fn block_cells(&self, block: &Block) -> Vec<Cell> {
        let variants = block.variants.clone().unwrap_or_else(|| self.variants());
        let mut cells = vec![];
        for (language, size, draw, seed) in block.golds() {
            for &method in &block.methods {
                for text in &block.texts {
                    for &budget in &block.budgets {
                        for variant in &variants {
                            cells.push(Cell {
                                language: language.clone(),
                                size,
                                draw,
                                seed,
                                method,
                                text: text.clone(),
                                budget,
                                variant: variant.clone(),
                            });
                        }
                    }
                }
            }
        }
        cells
    }
}
