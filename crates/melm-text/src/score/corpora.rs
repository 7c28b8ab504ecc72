//! Scores of two corpora.

use super::{Reading, Scores};
use crate::corpus::Corpus;
use crate::error::Error;
use crate::tag::Tag;

/// Scores the mentions of `predicted` against those of `gold`, as conlleval and seqeval do.
///
/// The corpora may have different schemes. Entity types are compared by name. Fails with
/// [`Error::Mismatch`] if the corpora do not have the same sentences with the same tokens.
///
/// ```
/// use melm_text::{Corpus, ReadOptions, Source, score};
/// let read = |text| Corpus::read(&Source::from_text("a", text), &ReadOptions::default());
/// let gold = read("Ada B-PER\nin O\nBonn B-LOC\n")?;
/// let predicted = read("Ada S-PER\nin O\nBonn O\n")?;
/// let micro = score(&gold, &predicted)?.micro().rates();
/// assert_eq!((micro.precision, micro.recall), (1.0, 0.5));
/// # Ok::<(), melm_text::Error>(())
/// ```
pub fn score(gold: &Corpus, predicted: &Corpus) -> Result<Scores, Error> {
    let [n_gold, n_predicted] = [gold, predicted].map(|corpus| corpus.sentences().len());
    if n_gold != n_predicted {
        return Err(Error::Mismatch(format!(
            "the gold corpus has {n_gold} sentences, the predicted one has {n_predicted}"
        )));
    }
    let mut types = gold.types().clone();
    let translation = types.merge(predicted.types());
    let mut scores = Scores::new(Reading::Lenient, types);
    for (at, (gold, predicted)) in gold.sentences().iter().zip(predicted.sentences()).enumerate() {
        if gold.tokens() != predicted.tokens() {
            return Err(Error::Mismatch(format!(
                "the tokens of sentence {} are not the same in both corpora",
                at + 1
            )));
        }
        let tags = predicted.tags().iter().map(|tag| tag.with_type_from(&translation));
        scores.add(gold.tags(), &tags.collect::<Vec<Tag>>());
    }
    Ok(scores)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::ReadOptions;
    use crate::source::Source;

    fn read(text: &str) -> Corpus {
        Corpus::read(&Source::from_text("a", text), &ReadOptions::default()).unwrap()
    }

    #[test]
    fn types_are_compared_by_name_and_new_types_are_counted() {
        let gold = read("Ada B-PER\nBonn B-LOC\n\nOslo B-LOC\n");
        let predicted = read("Ada U-ORG\nBonn U-LOC\n\nOslo U-PER\n");
        let scores = score(&gold, &predicted).unwrap();
        let name = |t| scores.types().name(t).to_owned();
        let counts = scores.by_type().into_iter();
        let counts: Vec<_> =
            counts.map(|(t, c)| (name(t), [c.gold, c.predicted, c.correct])).collect();
        let expected = [("LOC", [2, 1, 1]), ("ORG", [0, 1, 0]), ("PER", [1, 1, 0])];
        assert_eq!(counts, expected.map(|(name, counts)| (name.to_owned(), counts)));
    }

    #[test]
    fn other_sentences_or_tokens_are_a_mismatch() {
        let gold = read("Ada B-PER\n\nBonn B-LOC\n");
        for text in ["Ada B-PER\n", "Ada B-PER\n\nBath B-LOC\n", "Ada B-PER\n\nBonn B-LOC\n. O\n"] {
            assert!(matches!(score(&gold, &read(text)), Err(Error::Mismatch(_))), "{text}");
        }
    }
}
