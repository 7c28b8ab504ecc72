//! Which tags may start, follow each other, and end.

/// A table of allowed transitions. What the tags mean is the caller's to know.
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
    /// `[n_tags + 1, n_tags + 1]`: the last row is the start, the last column the end.
    table: Vec<bool>,
}

impl AllowedTransitions {
    /// Asks `is_allowed(from, to)` for every pair of tags; `None` stands for the start before the first token and for
    /// the end after the last. The pair of start and end is not asked for.
    pub fn new(n_tags: usize, is_allowed: impl Fn(Option<usize>, Option<usize>) -> bool) -> Self {
        let place = |index| (index < n_tags).then_some(index);
        let pairs = (0..=n_tags).flat_map(|from| (0..=n_tags).map(move |to| (from, to)));
        let table = pairs
            .map(|(from, to)| (from, to) == (n_tags, n_tags) || is_allowed(place(from), place(to)))
            .collect();
        Self { n_tags, table }
    }

    /// The table as bytes, 1 where something is allowed.
    pub(crate) fn bytes(&self) -> impl Iterator<Item = u8> + '_ {
        self.table.iter().map(|is_allowed| u8::from(*is_allowed))
    }

    /// The first token whose tag is not allowed where it is.
    pub(crate) fn refused(&self, tags: &[u32]) -> Option<usize> {
        let tag = |at: usize| tags[at] as usize;
        let follows = |at: usize| match at.checked_sub(1) {
            None => self.starts(tag(at)),
            Some(before) => self.follows(tag(before), tag(at)),
        };
        let last = tags.len().checked_sub(1)?;
        (0..tags.len()).find(|at| !follows(*at)).or((!self.ends(tag(last))).then_some(last))
    }

    /// How many tags there are.
    pub fn n_tags(&self) -> usize {
        self.n_tags
    }

    /// Whether the tag may be the first.
    pub fn starts(&self, tag: usize) -> bool {
        self.follows(self.n_tags, tag)
    }

    /// Whether `to` may come right after `from`.
    pub fn follows(&self, from: usize, to: usize) -> bool {
        self.table[from * (self.n_tags + 1) + to]
    }

    /// Whether the tag may be the last.
    pub fn ends(&self, tag: usize) -> bool {
        self.follows(tag, self.n_tags)
    }
}
