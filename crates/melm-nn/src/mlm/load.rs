//! From a checkpoint to a model, and back to a folder.

use super::MaskedLm;
use crate::config::Config;
use crate::error::Error;
use crate::params::{Parameters, TABLE};
use crate::weights::Checkpoint;
use std::path::Path;

/// Tensors with one value a piece.
const BY_PIECE: [&str; 2] = [TABLE, "lm_head.bias"];

impl MaskedLm {
    /// The model of a checkpoint, with `n_added` pieces after its own.
    ///
    /// Added rows, and the head where the checkpoint has none, are drawn anew from `seed`, as Hugging Face draws them.
    pub fn open(checkpoint: &Checkpoint, n_added: usize, seed: u64) -> Result<Self, Error> {
        let mut config = checkpoint.config().clone();
        let n_stored = config.vocab_size;
        config.vocab_size = n_stored.saturating_add(n_added);
        let mut parameters = Parameters::zeros(&config)?;
        for index in 0..parameters.list().len() {
            let parameter = &parameters.list()[index];
            let (name, mut shape) = (parameter.name.clone(), parameter.shape.clone());
            let mut n_read = 0;
            if checkpoint.contains(&name) {
                if BY_PIECE.contains(&name.as_str()) {
                    shape[0] = n_stored;
                }
                n_read = shape.iter().product();
                checkpoint.read_into(&name, &shape, &mut parameters.get_mut(&name)?[..n_read])?;
            }
            parameters.draw(&config, &name, n_read, seed)?;
        }
        Ok(Self::new(&config, parameters))
    }

    /// A model drawn from `seed`, as Hugging Face draws a new one.
    pub fn random(config: &Config, seed: u64) -> Result<Self, Error> {
        let mut parameters = Parameters::zeros(config)?;
        for index in 0..parameters.list().len() {
            let name = parameters.list()[index].name.clone();
            parameters.draw(config, &name, 0, seed)?;
        }
        Ok(Self::new(config, parameters))
    }

    /// Writes `config.json` and `model.safetensors`, which Python's `from_pretrained` opens.
    pub fn save(&self, dir: &Path) -> Result<(), Error> {
        self.parameters().save(dir, self.config())
    }
}

impl Parameters {
    /// Draws the values of a tensor from index `from` on.
    pub(crate) fn draw(
        &mut self,
        config: &Config,
        name: &str,
        from: usize,
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
                    *value = config.initializer_range * normal(stream.wrapping_add(index));
                }
            }
        }
        Ok(())
    }
}

/// A nearly normal number from a counter: twelve uniform ones added, the same on every platform.
pub(crate) fn normal(counter: u64) -> f32 {
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
    fn drawn_weights_have_hugging_faces_spread() {
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
        // 200,000 draws: standard errors 4e-5 and, of the deviation, 3e-5.
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
