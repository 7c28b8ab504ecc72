//! Opens a model from a checkpoint, initialises a new model, and saves a model.

use super::MaskedLm;
use crate::config::Config;
use crate::error::Error;
use crate::params::{Parameters, TABLE};
use crate::weights::Checkpoint;
use std::path::Path;

/// The roles of the tensors whose first dimension is the size of the vocabulary.
const BY_PIECE: [&str; 2] = [TABLE, "lm_head.bias"];

impl MaskedLm {
    /// Opens the model of a checkpoint and appends `n_added` pieces to its vocabulary.
    ///
    /// The embeddings of added pieces are random, with the distribution that Hugging Face uses. `seed` determines them.
    /// They are trained even if the tensor that contains them is frozen; see [`Self::set_first_added_piece`].
    ///
    /// # Errors
    /// [`Error::NoMaskedLmHead`] if the checkpoint has no masked-LM head. Also fails if a tensor has the wrong shape or
    /// type, or cannot be read.
    pub fn open(checkpoint: &Checkpoint, n_added: usize, seed: u64) -> Result<Self, Error> {
        checkpoint.require_masked_lm_head()?;
        let mut config = checkpoint.config().clone();
        let n_stored = config.vocab_size;
        config.vocab_size = n_stored.saturating_add(n_added);
        let mut parameters = Parameters::zeros(&config)?;
        for index in 0..parameters.list().len() {
            let parameter = &parameters.list()[index];
            let (name, mut shape) = (parameter.name.clone(), parameter.shape.clone());
            if BY_PIECE.contains(&parameter.role.as_str()) {
                shape[0] = n_stored;
            }
            let n_read = shape.iter().product();
            checkpoint.read_into(&name, &shape, &mut parameters.get_mut(&name)?[..n_read])?;
            parameters.draw(&name, n_read, config.initializer_range, seed)?;
        }
        let mut model = Self::new(&config, parameters);
        model.set_first_added_piece(n_stored);
        Ok(model)
    }

    /// Records that the pieces from `first` on were added for a task. Their embeddings and output biases are trained
    /// even if the tensors that contain them are frozen. [`Self::open`] does this for the pieces that it adds; call
    /// this method if a task uses pieces that the checkpoint already contains.
    pub fn set_first_added_piece(&mut self, first: usize) {
        self.parameters_mut().set_added_rows(&BY_PIECE, first);
    }

    /// Creates a model with random parameters, with the distribution that Hugging Face uses. `seed` determines them.
    ///
    /// # Errors
    /// [`Error::NoMaskedLmHead`] if the family has no masked-LM head, [`Error::OutOfMemory`] or [`Error::Limit`] if the
    /// model is too large.
    pub fn random(config: &Config, seed: u64) -> Result<Self, Error> {
        if !config.model_type.has_masked_lm_head() {
            let path = config.model_type.name().into();
            return Err(Error::NoMaskedLmHead { path, tensors: Vec::new() });
        }
        let mut parameters = Parameters::zeros(config)?;
        for index in 0..parameters.list().len() {
            let name = parameters.list()[index].name.clone();
            parameters.draw(&name, 0, config.initializer_range, seed)?;
        }
        Ok(Self::new(config, parameters))
    }

    /// Writes `config.json` and `model.safetensors` to a folder that `from_pretrained` in Python can open.
    ///
    /// # Errors
    /// Fails if a file cannot be written.
    pub fn save(&self, dir: &Path) -> Result<(), Error> {
        self.parameters().save(dir, self.config())
    }
}

impl Parameters {
    /// Initialises the values of a tensor from index `from` on: zeros for a bias, ones for the weight of a norm,
    /// otherwise normally distributed random numbers with the given standard deviation.
    pub(crate) fn draw(
        &mut self,
        name: &str,
        from: usize,
        standard_deviation: f32,
        seed: u64,
    ) -> Result<(), Error> {
        let n_dimensions = self.find(name)?.shape.len();
        let values = &mut self.get_mut(name)?[from..];
        match (n_dimensions, name.rsplit('.').next() == Some("bias")) {
            (_, true) => values.fill(0.0),
            (1, false) => values.fill(1.0),
            _ => {
                let stream =
                    name.bytes().fold(seed, |key, byte| crate::dropout::mix(key ^ u64::from(byte)));
                for (index, value) in (from as u64..).zip(values) {
                    *value = standard_deviation * normal(stream.wrapping_add(index));
                }
            }
        }
        Ok(())
    }
}

/// Returns an approximately normal random number for a counter: the sum of twelve uniform numbers. It is the same on
/// every platform.
fn normal(counter: u64) -> f32 {
    let bits = [
        crate::dropout::mix(counter),
        crate::dropout::mix(counter ^ 1 << 63),
        crate::dropout::mix(counter ^ 1 << 62),
    ];
    let sixteenths =
        bits.iter().flat_map(|bits| (0..4).map(move |part| (bits >> (16 * part)) & 0xffff));
    let sum: u64 = sixteenths.sum();
    sum as f32 / 65_536.0 - 6.0
}

#[cfg(test)]
mod tests {
    use super::MaskedLm;
    use crate::config::Config;

    #[test]
    fn drawn_weights_have_the_standard_deviation_of_hugging_face() {
        let config = Config {
            vocab_size: 5_000,
            hidden_size: 40,
            n_heads: 4,
            n_layers: 1,
            intermediate_size: 8,
            ..Config::default()
        };
        let model = MaskedLm::random(&config, 3).unwrap();
        let table = model.parameters().get(super::TABLE).unwrap();
        let mean = table.iter().sum::<f32>() / table.len() as f32;
        let square = table.iter().map(|x| x * x).sum::<f32>() / table.len() as f32;
        // For 200,000 numbers, the standard error of the mean is 4e-5, and that of the standard deviation is 3e-5.
        assert!(mean.abs() < 2e-4 && (square.sqrt() - 0.02).abs() < 2e-4, "{mean} {square}");
        assert!(
            model
                .parameters()
                .get("lm_head.layer_norm.weight")
                .unwrap()
                .iter()
                .all(|w| w.to_bits() == 1.0_f32.to_bits())
        );
    }
}
