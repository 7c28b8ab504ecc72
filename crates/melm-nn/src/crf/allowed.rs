//! Which tags may start a sentence, which may follow each other, and which may end a sentence.

/// A table of allowed transitions between tags. Tags are numbers whose meaning is defined by the caller.
///
/// ```
/// use melm_nn::crf::AllowedTransitions;
/// // 0 = O, 1 = B, 2 = I: an I needs a B or an I before it.
/// let allowed = AllowedTransitions::new(3, |from, to| to != Some(2) || matches!(from, Some(1 | 2)));
/// assert!(allowed.follows(1, 2) && !allowed.follows(0, 2) && !allowed.starts(2) && allowed.ends(2));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AllowedTransitions {
    n_tags: usize,
    /// `[n_tags + 1, n_tags + 1]`. The last row stands for the start of the sentence, the last column for its end.
    table: Vec<bool>,
}

impl AllowedTransitions {
    /// Creates the table by calling `is_allowed(from, to)` for every pair of tags. `None` for `from` means the start of
    /// the sentence, and `None` for `to` its end. The transition from start to end is always allowed.
    pub fn new(n_tags: usize, is_allowed: impl Fn(Option<usize>, Option<usize>) -> bool) -> Self {
        let tag = |index| (index < n_tags).then_some(index);
        let pairs = (0..=n_tags).flat_map(|from| (0..=n_tags).map(move |to| (from, to)));
        let table = pairs
            .map(|(from, to)| (from, to) == (n_tags, n_tags) || is_allowed(tag(from), tag(to)))
            .collect();
        Self { n_tags, table }
    }

    /// Returns the table as bytes: 1 for an allowed transition, otherwise 0.
    #[cfg(feature = "cuda")]
    pub(crate) fn bytes(&self) -> impl Iterator<Item = u8> + '_ {
        self.table.iter().map(|is_allowed| u8::from(*is_allowed))
    }

    /// Returns the index of the first token whose tag is not allowed there.
    pub(crate) fn first_violation(&self, tags: &[u32]) -> Option<usize> {
        let tag = |at: usize| tags[at] as usize;
        let follows = |at: usize| match at.checked_sub(1) {
            None => self.starts(tag(at)),
            Some(before) => self.follows(tag(before), tag(at)),
        };
        let last = tags.len().checked_sub(1)?;
        (0..tags.len()).find(|at| !follows(*at)).or((!self.ends(tag(last))).then_some(last))
    }

    /// Returns the number of tags.
    pub fn n_tags(&self) -> usize {
        self.n_tags
    }

    /// Returns true if the tag may be the first tag of a sentence.
    pub fn starts(&self, tag: usize) -> bool {
        self.follows(self.n_tags, tag)
    }

    /// Returns true if `to` may directly follow `from`.
    pub fn follows(&self, from: usize, to: usize) -> bool {
        self.table[from * (self.n_tags + 1) + to]
    }

    /// Returns true if the tag may be the last tag of a sentence.
    pub fn ends(&self, tag: usize) -> bool {
        self.follows(tag, self.n_tags)
    }
}
