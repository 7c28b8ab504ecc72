//! The plan of each variant of a grid.

use std::collections::BTreeMap;

use melm::codemix::VectorKind;
use melm::files::sha256;
use melm::methods::Method;
use melm::models::{ModelStore, Pretrained};
use melm::plan::{ModelClass, ModelClasses, ModelNames, Plan, PlanTable, Preset};

use crate::{Cell, Error, Grid, System};

/// The plan of each variant of a grid. All of them name the same models.
#[derive(Clone, Debug)]
pub struct Plans(BTreeMap<String, Plan>);

/// The models and vectors that the methods of a grid need, in addition to the tagger's encoder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Needs {
    /// True if the masked language model is needed.
    pub masked_lm: bool,
    /// True if a method fine-tunes a pretrained encoder-decoder.
    pub seq2seq: bool,
    /// True if a method fills masks, so that the model must have a masked-LM head.
    pub masked_lm_head: bool,
    /// The kind of vectors that a method compares mentions by, if any method does.
    pub vectors: Option<VectorKind>,
}

impl Plans {
    /// Builds the plan of each variant from these settings, where later ones override earlier ones: the preset for
    /// models of these classes, the grid's `[plan]`, the edits of the caller, the settings of the variant.
    ///
    /// Fails if an edit is not valid, or if the variants have different models or vectors.
    pub fn new<E: From<Error>>(
        grid: &Grid,
        preset: Preset,
        classes: ModelClasses,
        edit: &dyn Fn(&mut PlanTable) -> Result<(), E>,
    ) -> Result<Self, E> {
        let text = |table: &toml::Table| toml::to_string(table).expect("a table is TOML");
        let name = &grid.name;
        let mut plans = BTreeMap::new();
        for variant in grid.variants() {
            let mut table = PlanTable::new(preset, classes);
            let place = format!("{name}, [plan]");
            table.merge_toml(&place, &text(&grid.plan)).map_err(Error::from)?;
            edit(&mut table)?;
            if let Some(edits) = grid.variants.get(&variant) {
                let place = format!("{name}, [variants.{variant}]");
                table.merge_toml(&place, &text(edits)).map_err(Error::from)?;
            }
            plans.insert(variant, table.plan().map_err(Error::from)?);
        }
        let plans = Self(plans);
        plans.check(name)?;
        Ok(plans)
    }

    /// Builds the plans as [`Self::new`] does, for the classes of the models that `store` opens.
    pub fn for_models<E: From<Error>>(
        grid: &Grid,
        preset: Preset,
        store: &ModelStore,
        edit: &dyn Fn(&mut PlanTable) -> Result<(), E>,
    ) -> Result<Self, E> {
        // The preset depends on the classes of the models, but the names of the models are only known from a plan. The
        // first plans are used only for these names.
        let first = Self::new(grid, preset, ModelClasses::both(ModelClass::XLM_R_BASE), edit)?;
        let class = |model: &str| -> Result<ModelClass, E> {
            Ok(store.class(model, true).map_err(Error::from)?.unwrap_or(ModelClass::XLM_R_BASE))
        };
        let names = first.models();
        let classes =
            ModelClasses { masked_lm: class(&names.masked_lm)?, tagger: class(&names.tagger)? };
        Self::new(grid, preset, classes, edit)
    }

    /// Opens the masked language model, if the methods of a grid need it. Fails if a method fills masks and the model has
    /// no masked-LM head.
    pub fn open_masked_lm(
        &self,
        grid: &Grid,
        store: &ModelStore,
    ) -> Result<Option<Pretrained>, Error> {
        let open = || store.open(&self.models().masked_lm);
        let model = self.needs(grid).masked_lm.then(open).transpose()?;
        self.check_head(grid, model.as_ref())?;
        Ok(model)
    }

    /// Fails if a method of the grid fills masks and the model has no masked-LM head.
    pub(crate) fn check_head(
        &self,
        grid: &Grid,
        masked_lm: Option<&Pretrained>,
    ) -> Result<(), Error> {
        match masked_lm.filter(|_| self.needs(grid).masked_lm_head) {
            Some(model) => {
                Ok(model.checkpoint().require_masked_lm_head().map_err(melm::Error::from)?)
            }
            None => Ok(()),
        }
    }

    /// Fails if the variants differ in a setting that must be the same for the whole run.
    fn check(&self, name: &str) -> Result<(), Error> {
        let first = self.first();
        let variants = |what, option| Error::Variants { name: name.to_owned(), what, option };
        if self.0.values().any(|other| other.model != first.model) {
            return Err(variants("models", "--model"));
        }
        if self.0.values().any(|other| other.codemix.vectors != first.codemix.vectors) {
            return Err(variants("vectors", "--vectors"));
        }
        Ok(())
    }

    fn first(&self) -> &Plan {
        self.0.values().next().expect("a grid has a variant")
    }

    /// The names of the models, which all variants share.
    pub fn models(&self) -> &ModelNames {
        &self.first().model
    }

    /// Returns the models and vectors that the methods of a grid need, in addition to the tagger's encoder.
    pub fn needs(&self, grid: &Grid) -> Needs {
        let systems = grid.grid.iter().flat_map(|block| &block.methods);
        let methods: Vec<Method> = systems.filter_map(|system| system.drafts()).collect();
        let kind = self.first().codemix.vectors;
        let vectors = methods.iter().any(|method| method.has_vectors()).then_some(kind);
        let seq2seq = methods.contains(&Method::Mulda) && !self.models().seq2seq.is_empty();
        // A pretrained encoder-decoder has a tokenizer of its own.
        let reads =
            |method: &&Method| method.reads_masked_lm() && !(seq2seq && **method == Method::Mulda);
        let reads = methods.iter().any(|method| reads(&method));
        Needs {
            seq2seq,
            masked_lm: reads || vectors == Some(VectorKind::Pieces),
            masked_lm_head: methods.iter().any(|method| method.has_masked_lm()),
            vectors,
        }
    }

    /// Returns the settings of a variant. The method and seed of a cell are not set: see [`Self::cell`].
    ///
    /// # Panics
    /// If the grid has no such variant.
    pub fn variant(&self, name: &str) -> &Plan {
        &self.0[name]
    }

    /// Returns the plan of a cell.
    ///
    /// # Panics
    /// If the cell is not one of the grid.
    pub fn cell(&self, cell: &Cell) -> Plan {
        let mut plan = self.variant(&cell.variant).clone();
        plan.seed = cell.seed;
        plan.method = match cell.method {
            System::Method(method) => method,
            System::GoldDuplicated
            | System::GoldEnsemble
            | System::Picked
            | System::AddEntity
            | System::AddContext => Method::Gold,
        };
        plan
    }
}

/// Returns the name of a plan: the beginning of its SHA-256. Ledgers and the files in the folder `plans` use this name.
pub(crate) fn plan_name(plan: &Plan) -> String {
    sha256(plan.to_toml().as_bytes())[..16].to_owned()
}
