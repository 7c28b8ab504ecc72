//! Dropout from counters: whether an element survives is a hash of where it is, so nothing has to be stored, and
//! neither threads nor the order of a batch can change it.
#![expect(
    clippy::inline_always,
    reason = "only what is inlined is compiled for the caller's instruction set"
)]

use crate::config::Config;

/// Where in a layer an element is dropped.
#[derive(Clone, Copy)]
pub(crate) enum Site {
    Embedding,
    Attention,
    AttentionOutput,
    Output,
    /// Before a tagger's linear layer.
    Classifier,
}

/// The dropout of one training step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Dropout {
    key: u64,
    hidden: f32,
    attention: f32,
    classifier: f32,
}

impl Dropout {
    /// Nothing is dropped: prediction.
    pub const NONE: Self = Self { key: 0, hidden: 0.0, attention: 0.0, classifier: 0.0 };

    /// The model's rates, on the stream of `seed` at `step`.
    pub fn new(config: &Config, seed: u64, step: u64) -> Self {
        Self {
            key: mix(mix(seed).wrapping_add(step)),
            hidden: config.hidden_dropout,
            attention: config.attention_dropout,
            classifier: config.classifier_dropout(),
        }
    }

    /// Other rates than an XLM-R's, on hidden rows and on attention weights, on the stream of `seed` at `step`.
    pub fn with_rates((hidden, attention): (f32, f32), seed: u64, step: u64) -> Self {
        Self { key: mix(mix(seed).wrapping_add(step)), hidden, attention, classifier: hidden }
    }

    /// The hash of a site of a layer, the bound below which elements fall, and the factor of those that survive.
    pub(crate) fn site(&self, layer: usize, site: Site) -> (u64, u32, f32) {
        let place = (layer as u64) << 8 | site as u64;
        let rate = match site {
            Site::Attention => self.attention,
            Site::Classifier => self.classifier,
            Site::Embedding | Site::AttentionOutput | Site::Output => self.hidden,
        };
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a rate in [0, 1) of 2^32"
        )]
        let threshold = (f64::from(rate) * 4_294_967_296.0) as u32;
        (mix(self.key ^ place), threshold, 1.0 / (1.0 - rate))
    }

    /// The elements of one row: at a site of a layer, at a position (for attention: of a head) of a sentence.
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

/// What survives in one row.
#[derive(Clone, Copy)]
pub(crate) struct RowMask {
    low: u32,
    high: u32,
    threshold: u32,
    scale: f32,
}

impl RowMask {
    /// Whether everything survives, so that the caller can skip the hashing.
    #[inline(always)]
    pub(crate) fn keeps_all(&self) -> bool {
        self.threshold == 0
    }

    /// The factor of one element: 0, or 1 over the share that survives.
    #[inline(always)]
    pub(crate) fn factor(&self, column: u32) -> f32 {
        // Two rounds of a multiply-xorshift hash (constants of Chris Wellons' lowbias32), 32 bits wide to vectorise.
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
    fn the_rate_is_the_configured_one_and_survivors_make_up_for_it() {
        let dropout = Dropout::new(&Config::default(), 1, 0);
        let rows: Vec<_> = (0..400).map(|p| dropped(&dropout, 3, Site::Output, 9, p)).collect();
        let rate = rows.iter().flatten().filter(|d| **d).count() as f64 / (400.0 * 768.0);
        // Three standard deviations of 307,200 draws at 0.1.
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
            // Independent rows at 0.1 agree in 82 % of places; 768 draws, five standard deviations.
            assert!(
                (f64::from(u32::try_from(same).unwrap()) / 768.0 - 0.82).abs() < 0.07,
                "{same}"
            );
        }
    }
}
