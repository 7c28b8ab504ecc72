//! Where the moments of the optimiser are stored.

use crate::params::Parameters;
use std::ops::Range;

/// The layout of the moments. It is the layout of the parameters without the frozen rows of the piece table, which is
/// by far the largest tensor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MomentLayout {
    /// Where the piece table starts, in the parameters and in the moments.
    table_start: usize,
    /// The number of values in the frozen rows of the table.
    n_frozen: usize,
    /// The number of values of each moment.
    pub(crate) len: usize,
}

impl MomentLayout {
    pub(crate) fn new(parameters: &Parameters) -> Self {
        let table = parameters.table();
        let (table_start, trained) = (table.range.start, table.trained());
        let n_frozen = trained.start - table_start;
        Self { table_start, n_frozen, len: table_start + trained.len() }
    }

    /// Returns the range of the moments of some trained parameters.
    pub(crate) fn range(&self, parameters: &Range<usize>) -> Range<usize> {
        let shift = if parameters.start < self.table_start { 0 } else { self.n_frozen };
        parameters.start - shift..parameters.end - shift
    }
}
