//! Wrong tags at a stated rate, to measure how many of them a panel finds.

use melm::random::{Generator, StreamKey};
use melm_text::{EntityType, Mention};

/// Makes wrong mentions in a sentence.
pub(crate) struct Noise {
    /// The share of mentions that are made wrong.
    rate: f64,
    /// All entity types.
    types: Vec<EntityType>,
    generator: Generator,
}

impl Noise {
    /// Makes noise from a random stream. `types` are all entity types.
    pub(crate) fn new(rate: f64, types: Vec<EntityType>, key: StreamKey) -> Self {
        Self { rate, types, generator: key.generator() }
    }

    /// Returns the mentions of a sentence of `n_tokens` tokens with noise. Each mention is made wrong with the probability of
    /// the rate, in one of four ways, which are equally likely: it gets another type, it loses or gains a token at a border,
    /// it is removed, or it stays and a mention that does not exist is added. If a way is not possible, it is removed.
    pub(crate) fn apply(&mut self, mentions: &[Mention], n_tokens: usize) -> Vec<Mention> {
        let mut noisy: Vec<Mention> = Vec::new();
        for (at, mention) in mentions.iter().enumerate() {
            if self.generator.uniform() >= self.rate {
                noisy.push(mention.clone());
                continue;
            }
            let before = noisy.last().map_or(0, |one| one.tokens.end);
            let after = mentions.get(at + 1).map_or(n_tokens, |one| one.tokens.start);
            match self.generator.below(4) {
                0 => noisy.extend(self.retype(mention)),
                1 => noisy.extend(self.shift(mention, before, after)),
                2 => {}
                _ => {
                    noisy.push(mention.clone());
                    noisy.extend(self.invent(mention.tokens.end, after));
                }
            }
        }
        noisy
    }

    /// Returns the mention with another type.
    fn retype(&mut self, mention: &Mention) -> Option<Mention> {
        let others: Vec<_> =
            self.types.iter().copied().filter(|one| *one != mention.entity_type).collect();
        let entity_type =
            (!others.is_empty()).then(|| others[self.generator.below(others.len())])?;
        Some(Mention { entity_type, ..mention.clone() })
    }

    /// Returns the mention with one token more or less. It may grow from token `before` up to token `after`.
    fn shift(&mut self, mention: &Mention, before: usize, after: usize) -> Option<Mention> {
        let (start, end) = (mention.tokens.start, mention.tokens.end);
        let mut all = Vec::new();
        if end - start > 1 {
            all.extend([start + 1..end, start..end - 1]);
        }
        all.extend((start > before).then(|| start - 1..end));
        all.extend((end < after).then(|| start..end + 1));
        let tokens = (!all.is_empty()).then(|| all.swap_remove(self.generator.below(all.len())))?;
        Some(Mention { tokens, ..mention.clone() })
    }

    /// Returns a mention of one token between token `from` and token `to`, not next to `from`.
    fn invent(&mut self, from: usize, to: usize) -> Option<Mention> {
        let n_free = to.checked_sub(from + 1).filter(|n| *n > 0)?;
        let start = from + 1 + self.generator.below(n_free);
        let entity_type = self.types[self.generator.below(self.types.len())];
        Some(Mention { entity_type, tokens: start..start + 1 })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use melm::random::Seed;
    use melm_text::EntityTypes;

    #[test]
    fn the_stated_share_of_mentions_is_wrong_and_none_overlap() {
        let mut types = EntityTypes::default();
        let all: Vec<EntityType> = ["PER", "LOC", "ORG"].map(|name| types.intern(name)).to_vec();
        let mention =
            |start: usize, end: usize| Mention { entity_type: all[0], tokens: start..end };
        let truth = [mention(1, 3), mention(5, 6), mention(9, 12)];
        let mut noise = Noise::new(0.3, all.clone(), Seed(1).stream("test"));
        let (mut n_right, mut n_added, n) = (0, 0, 4_000);
        for _ in 0..n {
            let found = noise.apply(&truth, 14);
            assert!(found.windows(2).all(|pair| pair[0].tokens.end <= pair[1].tokens.start));
            assert!(found.iter().all(|one| one.tokens.end <= 14 && !one.tokens.is_empty()));
            n_right += found.iter().filter(|one| truth.contains(one)).count();
            let is_new = |one: &&Mention| {
                truth.iter().all(|true_one| {
                    one.tokens.end <= true_one.tokens.start
                        || true_one.tokens.end <= one.tokens.start
                })
            };
            n_added += found.iter().filter(is_new).count();
        }
        // Of the 30 %, three of four ways change the mention: 22.5 % are wrong. The fourth adds one. The tolerance is 5
        // standard deviations of a binomial count.
        let n = f64::from(n) * 3.0;
        let near = |found: usize, share: f64| {
            let deviation = (n * share * (1.0 - share)).sqrt();
            let found = found as f64;
            assert!(
                (found - n * share).abs() < 5.0 * deviation,
                "{found} of {n}, expected {share}"
            );
        };
        near(n_right, 1.0 - 0.225);
        near(n_added, 0.075);
        let mut none = Noise::new(0.0, all, Seed(1).stream("test"));
        assert_eq!(none.apply(&truth, 14), truth);
    }
}
