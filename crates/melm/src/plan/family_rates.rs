//! The learning rates of taggers for families other than XLM-R.
//!
//! The rates for small models were measured with `mini`. The rate of the paper, 2e-5, is that of XLM-R-large. No other
//! family was measured: its rates are among those that the authors of the family recommend for training a classifier. A
//! family without a row here has the rate of the paper. `docs/reference/models.md` has the table.

use melm_nn::config::ModelType;

use super::{ModelClass, ModelSize};

/// The rate of each class that differs from the rate of the paper.
const RATES: [(ModelType, ModelSize, f64); 3] = [
    // Devlin et al. 2019, appendix A.3: 5e-5, 3e-5 or 2e-5. BERT-large is unstable on small training sets (section 5.1),
    // so it gets the lowest of the three, which is that of the paper.
    (ModelType::Bert, ModelSize::Base, 3e-5),
    // Half the layers of BERT-base, and the highest of its rates, which is also the default of transformers.
    (ModelType::DistilBert, ModelSize::Base, 5e-5),
    // Clark et al. 2020, table 7: 3e-5, 5e-5, 1e-4 or 1.5e-4, lower by a factor of 0.8 in each layer below the last one.
    // There is one rate for all layers here, so that it must be among the lower ones.
    (ModelType::Electra, ModelSize::Base, 5e-5),
];

/// Returns the learning rate of a tagger that is not small, or `None` if it is that of the paper.
pub(super) fn tagger_rate(class: ModelClass) -> Option<f64> {
    let of_class =
        |(family, size, _): &&(_, _, f64)| (*family, *size) == (class.family, class.size);
    RATES.iter().find(of_class).map(|(_, _, rate)| *rate)
}
