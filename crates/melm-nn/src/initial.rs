//! The values of new tensors, with the distributions that Hugging Face uses.

use crate::architecture::InitialWeights;
use crate::config::Config;
use crate::dropout::mix;
use crate::error::Error;
use crate::params::Parameters;

/// The distribution of the weights of a new tensor.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Normal {
    pub(crate) standard_deviation: f32,
    /// The number of standard deviations beyond which values are redrawn.
    pub(crate) cutoff: f32,
}

impl Normal {
    pub(crate) fn new(standard_deviation: f32) -> Self {
        Self { standard_deviation, cutoff: f32::INFINITY }
    }

    /// Returns the value for a counter. It is the same on every platform.
    fn value(self, counter: u64) -> f32 {
        let mut counter = counter;
        let mut value = standard_normal(counter);
        while value.abs() > self.cutoff {
            counter = mix(counter);
            value = standard_normal(counter);
        }
        self.standard_deviation * value
    }
}

impl Config {
    /// Returns the distribution of the weights of the tensor with this role.
    pub(crate) fn initial(&self, role: &str) -> Normal {
        let range = self.initializer_range;
        if self.architecture().initial == InitialWeights::Normal {
            return Normal::new(range);
        }
        let outputs = [".output.dense.weight", "lm_head.dense.weight"];
        let standard_deviation = if role == "classifier.weight" {
            1.0 / (self.hidden_size as f32).sqrt()
        } else if outputs.iter().any(|end| role.ends_with(end)) {
            range / (2.0 * self.n_layers as f32).sqrt()
        } else {
            range
        };
        Normal { standard_deviation, cutoff: self.initial_cutoff() }
    }

    /// Returns `initializer_cutoff_factor`. Below 1, most values would be redrawn; such a value is not used.
    fn initial_cutoff(&self) -> f32 {
        let given = self.extra.get("initializer_cutoff_factor").and_then(serde_json::Value::as_f64);
        #[expect(clippy::cast_possible_truncation, reason = "the precision of the engine")]
        let cutoff = given.unwrap_or(2.0) as f32;
        if cutoff >= 1.0 { cutoff } else { 2.0 }
    }
}

impl Parameters {
    /// Initialises the values of a tensor from index `from` on: zeros for a bias, ones for the weight of a norm,
    /// otherwise random numbers of `distribution`. `seed` determines them.
    pub(crate) fn draw(
        &mut self,
        name: &str,
        from: usize,
        distribution: Normal,
        seed: u64,
    ) -> Result<(), Error> {
        let n_dimensions = self.find(name)?.shape.len();
        let values = &mut self.get_mut(name)?[from..];
        match (n_dimensions, name.rsplit('.').next() == Some("bias")) {
            (_, true) => values.fill(0.0),
            (1, false) => values.fill(1.0),
            _ => {
                let stream = name.bytes().fold(seed, |key, byte| mix(key ^ u64::from(byte)));
                for (index, value) in (from as u64..).zip(values) {
                    *value = distribution.value(stream.wrapping_add(index));
                }
            }
        }
        Ok(())
    }
}

/// Returns an approximately normal random number for a counter: the sum of twelve uniform numbers. It is the same on
/// every platform.
fn standard_normal(counter: u64) -> f32 {
    let bits = [mix(counter), mix(counter ^ 1 << 63), mix(counter ^ 1 << 62)];
    let sixteenths =
        bits.iter().flat_map(|bits| (0..4).map(move |part| (bits >> (16 * part)) & 0xffff));
    let sum: u64 = sixteenths.sum();
    sum as f32 / 65_536.0 - 6.0
}

#[cfg(test)]
mod tests {
    use crate::config::{Config, ModelType};
    use crate::mlm::MaskedLm;
    use crate::params::TABLE;
    use crate::tagger::{HeadKind, Tagger, TaggerSettings};

    fn config() -> Config {
        Config {
            vocab_size: 5_000,
            hidden_size: 40,
            n_heads: 4,
            n_layers: 1,
            intermediate_size: 8,
            ..Config::default()
        }
    }

    /// Returns the mean and the standard deviation.
    fn moments(values: &[f32]) -> (f32, f32) {
        let mean = values.iter().sum::<f32>() / values.len() as f32;
        let square = values.iter().map(|x| x * x).sum::<f32>() / values.len() as f32;
        (mean, square.sqrt())
    }

    #[test]
    fn drawn_weights_have_the_standard_deviation_of_hugging_face() {
        let model = MaskedLm::random(&config(), 3).unwrap();
        let (mean, deviation) = moments(model.parameters().get(TABLE).unwrap());
        // For 200,000 numbers, the standard error of the mean is 4e-5, and that of the standard deviation is 3e-5.
        assert!(mean.abs() < 2e-4 && (deviation - 0.02).abs() < 2e-4, "{mean} {deviation}");
        let norm = model.parameters().get("lm_head.layer_norm.weight").unwrap();
        assert!(norm.iter().all(|w| w.to_bits() == 1.0_f32.to_bits()));
    }

    /// A normal distribution that is cut off at two standard deviations has 0.8796 times its standard deviation.
    #[test]
    fn weights_of_modernbert_are_cut_off_and_depend_on_their_role() {
        let config = Config { model_type: ModelType::ModernBert, hidden_size: 400, ..config() };
        let settings = TaggerSettings { n_tags: 50, kind: HeadKind::Linear, allowed: None };
        let tagger = Tagger::random(&config, settings, 3).unwrap();
        for (name, wanted) in [
            (TABLE, 0.02),
            ("model.layers.0.attn.Wqkv.weight", 0.02),
            ("model.layers.0.attn.Wo.weight", 0.02 / 2.0_f32.sqrt()),
            ("head.dense.weight", 0.02 / 2.0_f32.sqrt()),
            ("classifier.weight", 0.05),
        ] {
            let values = tagger.parameters().get(name).unwrap();
            let (mean, deviation) = moments(values);
            // The smallest tensor has 20,000 numbers. Five standard errors of the standard deviation are 2.5 %.
            assert!(mean.abs() < 0.05 * wanted, "{name}: {mean}");
            assert!((deviation / (0.8796 * wanted) - 1.0).abs() < 0.025, "{name}: {deviation}");
            assert!(values.iter().all(|w| w.abs() <= 2.0 * wanted), "{name}");
        }
    }
}
