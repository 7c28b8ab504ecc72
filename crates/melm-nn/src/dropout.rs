//! Counter-based dropout.
//!
//! A hash of the position of an element decides if the element is dropped. No mask has to be stored, and the result
//! depends neither on the number of threads nor on the order of the sentences in a batch.
#![expect(
    clippy::inline_always,
    reason = "only what is inlined is compiled for the caller's instruction set"
)]

use crate::architecture::DropoutPlaces;
use crate::config::Config;

/// The place in a layer where dropout is applied.
#[derive(Clone, Copy)]
pub(crate) enum Site {
    Embedding,
    Attention,
    AttentionOutput,
    Output,
    /// Before a tagger's linear layer.
    Classifier,
    /// On the inner rows of a feed-forward part.
    Inner,
}

/// The rates of dropout of a model, each in `[0, 1)`.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct DropoutRates {
    /// The rate on hidden rows.
    pub hidden: f32,
    /// The rate on attention weights.
    pub attention: f32,
}

/// The dropout of one training step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Dropout {
    key: u64,
    hidden: f32,
    attention: f32,
    attention_output: f32,
    inner: f32,
    output: f32,
    classifier: f32,
}

impl Dropout {
    /// No dropout: for prediction.
    pub const NONE: Self = Self {
        key: 0,
        hidden: 0.0,
        attention: 0.0,
        attention_output: 0.0,
        inner: 0.0,
        output: 0.0,
        classifier: 0.0,
    };

    /// Returns the dropout of training step `step` with the rates of `config`. `seed` and `step` determine which
    /// elements are dropped.
    pub fn new(config: &Config, seed: u64, step: u64) -> Self {
        let (hidden, attention) = (config.hidden_dropout, config.attention_dropout);
        let [attention_output, inner, output] = match config.architecture().dropout {
            DropoutPlaces::BothOutputs => [hidden, 0.0, hidden],
            DropoutPlaces::FeedForwardOutput => [0.0, 0.0, hidden],
            DropoutPlaces::AttentionOutputAndInner => [attention, config.inner_dropout, 0.0],
        };
        Self {
            key: mix(mix(seed).wrapping_add(step)),
            hidden,
            attention,
            attention_output,
            inner,
            output,
            classifier: config.classifier_dropout(),
        }
    }

    /// Returns the dropout of training step `step` with the given rates, for models without a [`Config`]. `seed` and `step`
    /// determine which elements are dropped.
    pub fn with_rates(rates: DropoutRates, seed: u64, step: u64) -> Self {
        let DropoutRates { hidden, attention } = rates;
        let key = mix(mix(seed).wrapping_add(step));
        Self {
            key,
            hidden,
            attention,
            attention_output: hidden,
            inner: 0.0,
            output: hidden,
            classifier: hidden,
        }
    }

    /// Returns the key of the training step. The hash of a site is `mix(key ^ (layer << 8 | site))`.
    #[cfg(feature = "cuda")]
    pub(crate) fn key(&self) -> u64 {
        self.key
    }

    /// Returns three values for a site of a layer: the hash of the site, the threshold below which the hash of an
    /// element means that it is dropped, and the factor that the other elements are multiplied by.
    pub(crate) fn site(&self, layer: usize, site: Site) -> (u64, u32, f32) {
        let place = (layer as u64) << 8 | site as u64;
        let rate = match site {
            Site::Attention => self.attention,
            Site::Classifier => self.classifier,
            Site::AttentionOutput => self.attention_output,
            Site::Inner => self.inner,
            Site::Output => self.output,
            Site::Embedding => self.hidden,
        };
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a rate in [0, 1) of 2^32"
        )]
        let threshold = (f64::from(rate) * 4_294_967_296.0) as u32;
        (mix(self.key ^ place), threshold, 1.0 / (1.0 - rate))
    }

    /// Returns the mask of the row at `position` of a sentence, at a site of a layer. In attention, `position` also
    /// encodes the head.
    pub(crate) fn row(&self, layer: usize, site: Site, sentence: u64, position: usize) -> RowMask {
        let (site, threshold, scale) = self.site(layer, site);
        let key = mix(mix(site ^ sentence) ^ position as u64);
        #[expect(clippy::cast_possible_truncation, reason = "halves of the key")]
        RowMask { low: key as u32, high: (key >> 32) as u32, threshold, scale }
    }
}

/// Sebastiano Vigna's splitmix64 finaliser.
pub(crate) fn mix(x: u64) -> u64 {
    let x = x.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

/// The dropout mask of one row.
#[derive(Clone, Copy)]
pub(crate) struct RowMask {
    low: u32,
    high: u32,
    threshold: u32,
    scale: f32,
}

impl RowMask {
    /// Returns true if no element is dropped, so that the caller can skip the hashing.
    #[inline(always)]
    pub(crate) fn keeps_all(&self) -> bool {
        self.threshold == 0
    }

    /// Returns the factor of one element: 0 if it is dropped, otherwise 1 / (1 - rate).
    #[inline(always)]
    pub(crate) fn factor(&self, column: u32) -> f32 {
        // Two rounds of a multiply-xorshift hash with the constants of Chris Wellons' lowbias32. It uses 32 bits, so
        // that the loop is vectorised.
        let x = self.low ^ column.wrapping_mul(0x9e37_79b9);
        let x = (x ^ (x >> 16)).wrapping_mul(0x7feb_352d) ^ self.high;
        let x = (x ^ (x >> 15)).wrapping_mul(0x846c_a68b);
        let x = x ^ (x >> 16);
        if x >= self.threshold { self.scale } else { 0.0 }
    }
}

#[cfg(test)]
mod tests {
    use super::{Dropout, Site};
    use crate::config::Config;

    fn dropped(
        dropout: &Dropout,
        layer: usize,
        site: Site,
        sentence: u64,
        position: usize,
    ) -> Vec<bool> {
        let row = dropout.row(layer, site, sentence, position);
        (0..768).map(|column| row.factor(column) == 0.0).collect()
    }

    #[test]
    fn the_rate_is_the_configured_one_and_kept_elements_are_scaled_up() {
        let dropout = Dropout::new(&Config::default(), 1, 0);
        let rows: Vec<_> = (0..400).map(|p| dropped(&dropout, 3, Site::Output, 9, p)).collect();
        let rate = rows.iter().flatten().filter(|d| **d).count() as f64 / (400.0 * 768.0);
        // The tolerance is three standard deviations for 307,200 elements at rate 0.1.
        assert!((rate - 0.1).abs() < 3.0 * (0.09_f64 / 307_200.0).sqrt(), "{rate}");
        let row = dropout.row(0, Site::Output, 0, 0);
        assert!((0..768).all(|c| [0.0, 1.0 / 0.9].contains(&row.factor(c))));
    }

    #[test]
    fn rows_layers_sites_sentences_steps_and_seeds_differ() {
        let config = Config::default();
        let first = Dropout::new(&config, 1, 0);
        let base = dropped(&first, 3, Site::Output, 9, 4);
        for other in [
            dropped(&first, 3, Site::Output, 9, 5),
            dropped(&first, 4, Site::Output, 9, 4),
            dropped(&first, 3, Site::AttentionOutput, 9, 4),
            dropped(&first, 3, Site::Output, 8, 4),
            dropped(&Dropout::new(&config, 1, 1), 3, Site::Output, 9, 4),
            dropped(&Dropout::new(&config, 2, 0), 3, Site::Output, 9, 4),
        ] {
            let same = base.iter().zip(&other).filter(|(a, b)| a == b).count();
            // Two independent masks at rate 0.1 agree in 82 % of the elements. The tolerance is five standard
            // deviations for 768 elements.
            assert!(
                (f64::from(u32::try_from(same).unwrap()) / 768.0 - 0.82).abs() < 0.07,
                "{same}"
            );
        }
    }
}
