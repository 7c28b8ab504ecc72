//! The parameters of a model: all tensors in one block of memory, found by their Hugging Face names or by their roles.

use crate::buffer::{Buffer, zeroed_vec};
use crate::config::{Config, MOST_LAYERS};
use crate::cuda::GpuWeights;
#[cfg(feature = "cuda")]
use crate::cuda::{Cuda, Kernels};
use crate::error::Error;
pub use crate::parameter::Parameter;
use crate::weights::{ModelPart, TensorShape, tensor_shapes};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

/// The role of the piece table (input embeddings), which is also the output matrix of the masked-LM head. Every function
/// that takes the name of a tensor finds the table of any family by this role.
pub const TABLE: &str = "roberta.embeddings.word_embeddings.weight";

/// Tensors start at multiples of this many numbers: one cache line.
const ALIGNMENT: usize = 16;

/// All parameters of a model.
///
/// The piece table is the last tensor. The block of gradients has the same layout without the table. The weights of
/// query, key and value are adjacent, so that one matrix product computes all three.
pub struct Parameters {
    values: Buffer,
    list: Vec<Parameter>,
    by_name: BTreeMap<String, usize>,
    table: usize,
    /// A copy of the values in GPU memory, if a GPU has used them.
    on_gpu: Mutex<Option<Arc<GpuWeights>>>,
    /// True if the GPU copy is newer than `values`.
    is_newer_on_gpu: bool,
}

impl Parameters {
    /// Allocates zeros for the tensors of the masked language model.
    ///
    /// # Errors
    /// As [`Self::with_head`].
    pub(crate) fn zeros(config: &Config) -> Result<Self, Error> {
        Self::with_head(config, tensor_shapes(config, ModelPart::LmHead))
    }

    /// Allocates zeros for the tensors of the encoder and of some head.
    ///
    /// # Errors
    /// [`Error::Limit`] if the encoder has too many layers, [`Error::OutOfMemory`] if the memory cannot be allocated.
    pub(crate) fn with_head(config: &Config, head: Vec<TensorShape>) -> Result<Self, Error> {
        Error::check_limit("num_hidden_layers", config.n_layers, MOST_LAYERS)?;
        let mut shapes = tensor_shapes(config, ModelPart::Encoder);
        shapes.extend(head);
        join_attention(&mut shapes);
        if let Some(at) = shapes.iter().position(|tensor| tensor.role == TABLE) {
            let table = shapes.remove(at);
            shapes.push(table);
        }
        Self::from_shapes(shapes)
    }

    /// Allocates zeros for the tensors of any model, in the order of `shapes`. The last tensor must be the piece table.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`] if the sum of the sizes overflows or the memory cannot be allocated.
    pub(crate) fn from_shapes(shapes: Vec<TensorShape>) -> Result<Self, Error> {
        let list = lay_out(shapes).ok_or(Error::OutOfMemory { wanted: usize::MAX })?;
        let names = |(i, p): (usize, &Parameter)| [(p.role.clone(), i), (p.name.clone(), i)];
        let by_name = list.iter().enumerate().flat_map(names).collect();
        Ok(Self {
            values: Buffer::zeros(list.last().map_or(0, |last| last.range.end))?,
            table: list.len() - 1,
            list,
            by_name,
            on_gpu: Mutex::default(),
            is_newer_on_gpu: false,
        })
    }

    /// Returns the tensors in the order of their positions in the block. The last is the piece table.
    pub fn list(&self) -> &[Parameter] {
        &self.list
    }

    /// Returns the values of a tensor.
    ///
    /// # Errors
    /// [`Error::NoParameter`] if no tensor has this name.
    ///
    /// # Panics
    /// If a GPU has changed the values and [`Self::fetch`] has not been called since then.
    pub fn get(&self, name: &str) -> Result<&[f32], Error> {
        Ok(self.at(&self.find(name)?.range))
    }

    /// Returns the values of a tensor for writing. Values that were trained on a GPU are fetched first.
    ///
    /// # Errors
    /// [`Error::NoParameter`] if no tensor has this name, or an error of the GPU.
    pub fn get_mut(&mut self, name: &str) -> Result<&mut [f32], Error> {
        let range = self.find(name)?.range.clone();
        self.fetch()?;
        Ok(&mut self.values_mut()[range])
    }

    /// Returns the name, shape and state of a tensor.
    ///
    /// # Errors
    /// [`Error::NoParameter`] if no tensor has this name.
    pub(crate) fn find(&self, name: &str) -> Result<&Parameter, Error> {
        let index =
            self.by_name.get(name).ok_or_else(|| Error::NoParameter { name: name.to_owned() })?;
        Ok(&self.list[*index])
    }

    /// Freezes the tensors for whose name or role `is_frozen` returns true, and unfreezes the others. Returns the number
    /// of frozen tensors. Added rows of frozen tensors are still trained; see [`Parameter::n_added_rows`].
    ///
    /// Freeze tensors before an optimiser is created, because it has moments for the trained rows only.
    pub fn freeze(&mut self, is_frozen: impl Fn(&str) -> bool) -> usize {
        for parameter in &mut self.list {
            parameter.is_frozen = is_frozen(&parameter.name) || is_frozen(&parameter.role);
        }
        self.list.iter().filter(|parameter| parameter.is_frozen).count()
    }

    /// Records that the rows from `first` on of the tensors with these `roles` were added for a task.
    pub(crate) fn set_added_rows(&mut self, roles: &[&str], first: usize) {
        for parameter in self.list.iter_mut().filter(|p| roles.contains(&p.role.as_str())) {
            parameter.n_added_rows = parameter.shape[0].saturating_sub(first);
        }
    }

    /// Returns the piece table.
    pub(crate) fn table(&self) -> &Parameter {
        &self.list[self.table]
    }

    pub(crate) fn at(&self, range: &Range<usize>) -> &[f32] {
        &self.values()[range.clone()]
    }

    pub(crate) fn values(&self) -> &[f32] {
        assert!(
            !self.is_newer_on_gpu,
            "parameters trained on a GPU are fetched before they are read"
        );
        &self.values
    }

    pub(crate) fn values_mut(&mut self) -> &mut [f32] {
        assert!(
            !self.is_newer_on_gpu,
            "parameters trained on a GPU are fetched before they are changed"
        );
        *self.on_gpu.get_mut().unwrap_or_else(PoisonError::into_inner) = None;
        &mut self.values
    }

    /// Returns a range of the values, read from GPU memory if that copy is newer.
    pub(crate) fn read(&self, range: &Range<usize>) -> Result<Cow<'_, [f32]>, Error> {
        if !self.is_newer_on_gpu {
            return Ok(Cow::Borrowed(&self.values[range.clone()]));
        }
        let mut values = zeroed_vec(range.len())?;
        let on_gpu = self.on_gpu.lock().unwrap_or_else(PoisonError::into_inner);
        on_gpu
            .as_ref()
            .expect("parameters that are newer on a GPU have weights there")
            .download(range, &mut values)?;
        Ok(Cow::Owned(values))
    }

    /// Copies the parameters from GPU memory if that copy is newer. The copy in GPU memory stays valid.
    pub fn fetch(&mut self) -> Result<(), Error> {
        if self.is_newer_on_gpu {
            let range = 0..self.values.len();
            let on_gpu = self.on_gpu.get_mut().unwrap_or_else(PoisonError::into_inner);
            let weights =
                on_gpu.as_ref().expect("parameters that are newer on a GPU have weights there");
            weights.download(&range, &mut self.values)?;
            self.is_newer_on_gpu = false;
        }
        Ok(())
    }

    /// If the GPU copy is newer, copies it to `copy`, which is also in GPU memory. Returns false if the GPU copy is not
    /// newer or GPU memory does not suffice.
    pub(crate) fn keep_on_gpu(&self, copy: &mut Option<GpuWeights>) -> Result<bool, Error> {
        if !self.is_newer_on_gpu {
            return Ok(false);
        }
        let on_gpu = self.on_gpu.lock().unwrap_or_else(PoisonError::into_inner);
        let weights =
            on_gpu.as_ref().expect("parameters that are newer on a GPU have weights there");
        if let Some(copy) = copy.as_ref().filter(|copy| copy.has_layout_of(weights)) {
            copy.copy_from(weights)?;
            return Ok(true);
        }
        *copy = weights.duplicate()?;
        Ok(copy.is_some())
    }

    /// Restores the parameters from `copy`: in GPU memory if the parameters are still on the same GPU, otherwise on the
    /// CPU.
    pub(crate) fn restore_on_gpu(&mut self, copy: &GpuWeights) -> Result<(), Error> {
        let on_gpu = self.on_gpu.get_mut().unwrap_or_else(PoisonError::into_inner);
        if let Some(weights) = on_gpu.as_ref().filter(|weights| weights.has_layout_of(copy)) {
            self.is_newer_on_gpu = true;
            return weights.copy_from(copy);
        }
        *on_gpu = None;
        self.is_newer_on_gpu = false;
        copy.download(&(0..self.values.len()), &mut self.values)
    }

    /// Returns the copy in GPU memory. Uploads it on first use.
    #[cfg(feature = "cuda")]
    pub(crate) fn gpu_weights(
        &self,
        cuda: &Cuda,
        kernels: &Kernels,
    ) -> Result<Arc<GpuWeights>, Error> {
        let mut on_gpu = self.on_gpu.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(weights) = &*on_gpu
            && weights.is_on(cuda)
        {
            return Ok(Arc::clone(weights));
        }
        assert!(
            !self.is_newer_on_gpu,
            "parameters trained on one GPU are fetched before another GPU uses them"
        );
        let weights = Arc::new(GpuWeights::upload(cuda, kernels, self)?);
        *on_gpu = Some(Arc::clone(&weights));
        Ok(weights)
    }

    /// Records that the GPU has changed its copy.
    pub(crate) fn mark_changed_on_gpu(&mut self) {
        self.is_newer_on_gpu = true;
    }

    /// Returns true if any row of any tensor inside `range` is trained.
    pub(crate) fn trains(&self, range: &Range<usize>) -> bool {
        let first = self.list.partition_point(|p| p.range.end <= range.start);
        self.list[first..]
            .iter()
            .take_while(|p| p.range.start < range.end)
            .any(Parameter::is_trained)
    }

    /// Returns the range from the start of tensor `first` to the end of tensor `last`.
    pub(crate) fn span(&self, first: &str, last: &str) -> Range<usize> {
        let range = |name: &str| {
            let index =
                self.by_name.get(name).expect("the layout has every name of the architecture");
            self.list[*index].range.clone()
        };
        range(first).start..range(last).end
    }
}

/// Assigns consecutive positions to the tensors. Returns `None` if the total size overflows.
fn lay_out(shapes: Vec<TensorShape>) -> Option<Vec<Parameter>> {
    let mut end: usize = 0;
    let mut list = Vec::with_capacity(shapes.len());
    for TensorShape { name, role, shape } in shapes {
        let continues = [".key.", ".value.", ".query.bias"].iter().any(|part| role.contains(part));
        let is_new_block = !continues || role.ends_with(".query.bias");
        let start = if is_new_block { end.checked_next_multiple_of(ALIGNMENT)? } else { end };
        let len = shape.iter().try_fold(1_usize, |len, size| len.checked_mul(*size))?;
        end = start.checked_add(len)?;
        let range = start..end;
        list.push(Parameter { name, role, shape, is_frozen: false, n_added_rows: 0, range });
    }
    Some(list)
}

/// Reorders the tensors of query, key and value: first the three weights, then the three biases.
fn join_attention(shapes: &mut [TensorShape]) {
    let Some(first) = shapes.iter().position(|t| t.role.contains(".attention.self.")) else {
        return;
    };
    for at in first..shapes.len() {
        if shapes[at].role.ends_with(".attention.self.query.weight") {
            shapes[at..at + 6].sort_by_key(|tensor| tensor.shape.len() == 1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Parameters, TABLE};
    use crate::config::Config;
    use crate::error::Error;
    use crate::weights::TensorShape;

    fn tiny() -> Config {
        Config {
            vocab_size: 31,
            hidden_size: 10,
            n_layers: 2,
            n_heads: 2,
            intermediate_size: 7,
            ..Config::default()
        }
    }

    #[test]
    fn query_key_and_value_are_one_matrix_and_the_table_is_last() {
        let parameters = Parameters::zeros(&tiny()).unwrap();
        for layer in 0..2 {
            let name = |part: &str| format!("roberta.encoder.layer.{layer}.attention.self.{part}");
            for (kind, size) in [("weight", 300), ("bias", 30)] {
                let span = parameters
                    .span(&name(&format!("query.{kind}")), &name(&format!("value.{kind}")));
                assert_eq!(span.len(), size);
            }
        }
        assert_eq!(parameters.list().last().unwrap().name, TABLE);
        assert!(parameters.list().windows(2).all(|p| p[0].range.end <= p[1].range.start));
    }

    #[test]
    fn freezing_goes_by_name() {
        let mut parameters = Parameters::zeros(&tiny()).unwrap();
        assert_eq!(parameters.freeze(|name| name == TABLE), 1);
        let table = parameters.table().range.clone();
        assert!(!parameters.trains(&table) && parameters.trains(&(0..table.start)));
        assert!(parameters.get("lm_head.bais").is_err());
    }

    #[test]
    fn added_rows_of_a_frozen_table_are_trained() {
        let mut parameters = Parameters::zeros(&tiny()).unwrap();
        parameters.set_added_rows(&[TABLE], 28);
        assert_eq!(parameters.table().trained_rows(), 0..31, "not frozen");
        parameters.freeze(|name| name == TABLE);
        let table = parameters.table();
        assert_eq!(table.trained_rows(), 28..31);
        assert_eq!(table.trained(), table.range.start + 280..table.range.start + 310);
        assert!(parameters.trains(&table.range));
    }

    #[test]
    fn sizes_that_overflow_are_out_of_memory() {
        let shape = |shape: &[usize]| TensorShape::new("weight", shape);
        let hostile = [
            vec![shape(&[1 << 32, 1 << 32])],
            vec![shape(&[1 << 63]), shape(&[1 << 63]), shape(&[16])],
            vec![shape(&[usize::MAX - 3]), shape(&[16])],
            vec![shape(&[1 << 62]), shape(&[64])],
        ];
        for shapes in hostile {
            let error = Parameters::from_shapes(shapes).err().expect("the size overflows");
            assert!(matches!(error, Error::OutOfMemory { .. }), "{error}");
        }
    }

    #[test]
    fn a_configuration_without_bounds_is_an_error() {
        for config in [
            Config { n_layers: usize::MAX, ..tiny() },
            Config { hidden_size: usize::MAX, n_heads: 1, ..tiny() },
            Config { vocab_size: 1 << 62, ..tiny() },
        ] {
            assert!(Parameters::zeros(&config).is_err(), "{config:?}");
        }
    }
}
