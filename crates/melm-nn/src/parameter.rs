//! One tensor of a model, and which of its rows are trained.

use std::ops::Range;

/// A tensor: its name, shape and position in the block.
#[derive(Clone, Debug)]
pub struct Parameter {
    /// The Hugging Face name.
    pub name: String,
    /// The name of the same tensor in RoBERTa, by which code and plans name a tensor of any family.
    pub role: String,
    /// The shape, outermost dimension first.
    pub shape: Vec<usize>,
    /// True if the tensor is frozen: only its added rows are trained.
    pub is_frozen: bool,
    /// The number of rows at the end of the tensor that were added for a task, such as the rows of new pieces. They
    /// have not been pretrained, so they are trained even if the tensor is frozen.
    pub n_added_rows: usize,
    pub(crate) range: Range<usize>,
}

impl Parameter {
    /// Returns the rows that are trained: all rows, or only the added rows if the tensor is frozen. Gradients, moments,
    /// the norm for clipping and weight decay cover these rows only.
    pub fn trained_rows(&self) -> Range<usize> {
        let n_rows = self.shape[0];
        let first = if self.is_frozen { n_rows - self.n_added_rows } else { 0 };
        first..n_rows
    }

    /// Returns the range of the trained rows in the block. It ends where the tensor ends.
    pub(crate) fn trained(&self) -> Range<usize> {
        let row_len: usize = self.shape[1..].iter().product();
        self.range.end - self.trained_rows().len() * row_len..self.range.end
    }

    /// Returns true if any row is trained.
    pub(crate) fn is_trained(&self) -> bool {
        !self.trained_rows().is_empty()
    }
}
