//! Means, standard deviations, and intervals of paired differences.

/// A difference of less than this many points of F1 is too small to matter.
pub const SMALL_DIFFERENCE: f64 = 1.0;

/// The smallest number of pairs with a verdict. With fewer, the interval says almost nothing.
const MIN_PAIRS: usize = 3;

/// A mean and the standard deviation of its values.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Mean {
    /// The mean.
    pub mean: f64,
    /// The sample standard deviation; `None` for a single value.
    pub sd: Option<f64>,
    /// The number of values.
    pub n: usize,
}

impl Mean {
    /// Computes the mean of values. Returns `None` if there are no values.
    pub fn from_values(values: &[f64]) -> Option<Self> {
        let n = values.len();
        if n == 0 {
            return None;
        }
        let mean = values.iter().sum::<f64>() / n as f64;
        let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
        let sd = (n > 1).then(|| (squares / (n - 1) as f64).sqrt());
        Some(Self { mean, sd, n })
    }

    /// Half the width of the 95 % interval of the mean, by Student's t; `None` for a single value.
    pub fn margin(&self) -> Option<f64> {
        Some(t_quantile(0.975, self.n - 1) * self.sd? / (self.n as f64).sqrt())
    }

    /// Half the width of the 95 % interval for differences over the folds of one corpus.
    ///
    /// The training sets of folds overlap. The correction of Nadeau and Bengio (2003) adds the ratio of test set to
    /// training set to the variance.
    pub fn margin_of_folds(&self, n_folds: usize) -> Option<f64> {
        let overlap = 1.0 / (n_folds.max(2) - 1) as f64;
        let error = (1.0 / self.n as f64 + overlap).sqrt();
        Some(t_quantile(0.975, self.n - 1) * self.sd? * error)
    }

    /// Formats the mean and its 95 % interval, if it has one: `61.2 [59.0, 63.4]`.
    pub(crate) fn with_interval(&self, decimals: usize) -> String {
        self.spell(|value| format!("{value:.decimals$}"))
    }

    /// Formats a mean difference and its 95 % interval, if it has one: `+1.2 [-0.3, +2.7]`.
    pub(crate) fn difference_with_interval(&self, decimals: usize) -> String {
        self.spell(|value| format!("{value:+.decimals$}"))
    }

    fn spell(&self, number: impl Fn(f64) -> String) -> String {
        let mean = number(self.mean);
        match self.margin() {
            Some(margin) => {
                format!("{mean} [{}, {}]", number(self.mean - margin), number(self.mean + margin))
            }
            None => mean,
        }
    }

    /// Returns what the 95 % interval says about a mean difference.
    pub fn verdict(&self) -> Verdict {
        self.verdict_with(self.margin())
    }

    /// Returns what an interval of this half-width says about a mean difference.
    pub fn verdict_with(&self, margin: Option<f64>) -> Verdict {
        match margin {
            Some(margin) if self.n >= MIN_PAIRS => {
                if self.mean.abs() > margin {
                    if self.mean > 0.0 { Verdict::Better } else { Verdict::Worse }
                } else if self.mean.abs() + margin <= SMALL_DIFFERENCE {
                    Verdict::NoDifference
                } else {
                    Verdict::Inconclusive
                }
            }
            _ => Verdict::TooFewPairs,
        }
    }
}

/// The conclusion from the interval of a difference.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The interval lies above zero.
    Better,
    /// The interval lies below zero.
    Worse,
    /// The interval contains zero, and only differences below [`SMALL_DIFFERENCE`].
    NoDifference,
    /// The interval contains zero, and also differences that matter.
    Inconclusive,
    /// There are one or two pairs.
    TooFewPairs,
}

impl Verdict {
    /// The verdict in words, as in tables.
    pub fn words(self) -> &'static str {
        match self {
            Self::Better => "better",
            Self::Worse => "worse",
            Self::NoDifference => "no difference",
            Self::Inconclusive => "inconclusive",
            Self::TooFewPairs => "too few pairs",
        }
    }
}

/// Returns the quantile of Student's t distribution with `degrees` of freedom, for `p` between 0.5 and 1 (both excluded).
fn t_quantile(p: f64, degrees: usize) -> f64 {
    let (mut low, mut high) = (0.0, 1.0);
    while t_cdf(high, degrees) < p {
        high *= 2.0;
    }
    // 200 bisections reach the precision of f64.
    for _ in 0..200 {
        let middle = f64::midpoint(low, high);
        if t_cdf(middle, degrees) < p { low = middle } else { high = middle }
    }
    f64::midpoint(low, high)
}

/// The cumulative distribution function of Student's t. `t` must not be negative.
fn t_cdf(t: f64, degrees: usize) -> f64 {
    let v = degrees as f64;
    1.0 - 0.5 * incomplete_beta(v / 2.0, 0.5, v / (v + t * t))
}

/// The regularised incomplete beta function, by its continued fraction (Press et al., Numerical Recipes, 6.4).
fn incomplete_beta(a: f64, b: f64, x: f64) -> f64 {
    if x <= 0.0 || x >= 1.0 {
        return x.clamp(0.0, 1.0);
    }
    let logarithm = libm::lgamma(a + b) - libm::lgamma(a) - libm::lgamma(b)
        + a * libm::log(x)
        + b * libm::log1p(-x);
    let front = libm::exp(logarithm);
    // The fraction converges quickly only for x below the mean of the distribution.
    if x < (a + 1.0) / (a + b + 2.0) {
        front * fraction(a, b, x) / a
    } else {
        1.0 - front * fraction(b, a, 1.0 - x) / b
    }
}

/// The continued fraction of the incomplete beta function, by Lentz's method.
#[expect(clippy::many_single_char_names, reason = "the names of the formula")]
fn fraction(a: f64, b: f64, x: f64) -> f64 {
    const TINY: f64 = 1e-300;
    let nonzero = |value: f64| if value.abs() < TINY { TINY } else { value };
    let (mut c, mut d) = (1.0, 1.0 / nonzero(1.0 - (a + b) * x / (a + 1.0)));
    let mut result = d;
    for m in 1..500 {
        let m = f64::from(m);
        let even = m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m));
        let odd = -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0));
        let mut last = 0.0;
        for step in [even, odd] {
            d = 1.0 / nonzero(1.0 + step * d);
            c = nonzero(1.0 + step / c);
            last = c * d;
            result *= last;
        }
        if (last - 1.0).abs() < 1e-15 {
            break;
        }
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `scipy.stats.t.ppf` of scipy 1.17.1, with `p` and degrees of freedom as given.
    #[test]
    fn quantiles_match_scipy() {
        for (p, degrees, expected) in QUANTILES {
            let found = t_quantile(p, degrees);
            assert!((found - expected).abs() < 1e-9 * expected, "{p} {degrees}: {found}");
        }
    }

    const QUANTILES: [(f64, usize, f64); 11] = [
        (0.975, 1, 12.706_204_736_174_694),
        (0.975, 2, 4.302_652_729_749_462),
        (0.975, 3, 3.182_446_305_283_707_8),
        (0.975, 4, 2.776_445_105_197_793_4),
        (0.975, 9, 2.262_157_162_798_205),
        (0.975, 11, 2.200_985_160_091_639),
        (0.975, 23, 2.068_657_610_419_048_6),
        (0.975, 59, 2.000_995_378_088_267),
        (0.975, 1000, 1.962_339_080_826_408_3),
        (0.9, 5, 1.475_884_048_824_481_5),
        (0.995, 7, 3.499_483_297_350_492_4),
    ];

    #[test]
    fn intervals_match_a_calculation_by_hand() {
        // Mean 2, squares 1 + 0 + 1, sd 1, margin 4.302_652_729_749 / sqrt(3).
        let mean = Mean::from_values(&[1.0, 2.0, 3.0]).unwrap();
        assert_eq!((mean.mean, mean.sd, mean.n), (2.0, Some(1.0), 3));
        assert!((mean.margin().unwrap() - 2.484_137_7).abs() < 1e-6);
        assert_eq!(mean.verdict(), Verdict::Inconclusive);
        assert_eq!(Mean::from_values(&[1.9, 2.0, 2.1]).unwrap().verdict(), Verdict::Better);
        assert_eq!(Mean::from_values(&[-1.9, -2.0, -2.1]).unwrap().verdict(), Verdict::Worse);
        // The margins are 0.50 and 0.99: the second interval, up to 1.19, also contains a difference that matters.
        assert_eq!(Mean::from_values(&[0.0, 0.2, 0.4]).unwrap().verdict(), Verdict::NoDifference);
        assert_eq!(Mean::from_values(&[-0.2, 0.2, 0.6]).unwrap().verdict(), Verdict::Inconclusive);
        // Two pairs have an interval, but a verdict from it would mean nothing.
        assert_eq!(Mean::from_values(&[5.0, 5.001]).unwrap().verdict(), Verdict::TooFewPairs);
        assert_eq!(Mean::from_values(&[5.0]).unwrap().verdict(), Verdict::TooFewPairs);
        assert_eq!(Mean::from_values(&[]), None);
        // Five folds: 1/5 + 1/4 under the root; t(0.975, 4) = 2.776445105198.
        let folds = Mean::from_values(&[0.0, 1.0, 2.0, 3.0, 4.0]).unwrap();
        let expected = 2.776_445_105_198 * 2.5_f64.sqrt() * 0.45_f64.sqrt();
        assert!((folds.margin_of_folds(5).unwrap() - expected).abs() < 1e-9);
    }
}
