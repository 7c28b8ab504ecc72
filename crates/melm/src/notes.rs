//! Lines that tell a user what to know about the data and the models of a run. Every front end shows them.

use std::collections::{BTreeSet, HashSet};

use melm_text::check::{Suspicion, has_joined_tags};
use melm_text::{Corpus, Sentence, Token, count, count_of, shown};

use crate::markers::MarkerStart;
use crate::models::Pretrained;
use crate::pieces::PieceCoverage;

/// Returns a warning for each reason why the scores on a dev set mislead: it has sentences of the training set, entity
/// types that the training set does not have, or another scheme.
pub fn dev_warnings(train: &Corpus, dev: &Corpus) -> Vec<String> {
    let mut warnings = Vec::new();
    let known: HashSet<&[Token]> = train.sentences().iter().map(Sentence::tokens).collect();
    let n = dev.sentences().iter().filter(|one| known.contains(one.tokens())).count();
    if n > 0 {
        let sentences = count_of(n, dev.sentences().len(), "sentence");
        let are = if n == 1 { "is" } else { "are" };
        warnings.push(format!(
            "{sentences} of the dev set {are} in the training set too, so that scores on it are too high"
        ));
    }
    let (in_train, in_dev) = (used_types(train), used_types(dev));
    let unknown: Vec<_> =
        in_dev.difference(&in_train).map(|name| format!("`{}`", shown(name))).collect();
    if !unknown.is_empty() {
        warnings.push(format!(
            "the dev set has entity types that the training set does not have: {}",
            unknown.join(", ")
        ));
    }
    if train.scheme() != dev.scheme() {
        warnings.push(format!(
            "the training set has the scheme {}, the dev set {}: is one of them wrong?",
            train.scheme(),
            dev.scheme()
        ));
    }
    warnings
}

/// The number of entity types that a warning names.
const N_NAMED: usize = 5;

/// Returns a warning if entity types of a training set look like several tags in one column, as in `B-PER|B-ORG`.
/// `melm check` reports them in the same words.
pub fn type_warnings(train: &Corpus) -> Vec<String> {
    let joined: Vec<_> =
        used_types(train).into_iter().filter(|name| has_joined_tags(name)).collect();
    if joined.is_empty() {
        return Vec::new();
    }
    let names: Vec<_> =
        joined.iter().take(N_NAMED).map(|name| format!("`{}`", shown(name))).collect();
    let more = if joined.len() > N_NAMED { ", …" } else { "" };
    let (n, text, names) = (joined.len(), Suspicion::JoinedTags.text(), names.join(", "));
    vec![format!("the training set has {n} × {text}: {names}{more}")]
}

/// Returns a warning for each language of a corpus whose script or language a model does not know. `what` names the corpus.
pub(crate) fn coverage_warnings(model: &Pretrained, what: &str, corpus: &Corpus) -> Vec<String> {
    let of = |sentences: &[Sentence], what: &str| {
        let tokens: Vec<&[Token]> = sentences.iter().map(Sentence::tokens).collect();
        coverage_warning(model, what, &tokens)
    };
    if corpus.languages().is_empty() {
        return of(corpus.sentences(), what).into_iter().collect();
    }
    let parts = corpus.languages().iter();
    parts
        .filter_map(|part| {
            of(&corpus.sentences()[part.sentences.clone()], &format!("{what} in `{}`", part.code))
        })
        .collect()
}

/// Returns a warning if a model does not know the script or the language of sentences. `what` names the sentences. Tokens
/// that the tokenizer refuses are an error of a later stage.
pub(crate) fn coverage_warning(
    model: &Pretrained,
    what: &str,
    sentences: &[&[Token]],
) -> Option<String> {
    // One thread is enough: a training takes much longer.
    let coverage = PieceCoverage::new(&model.tokenizer(), sentences, 1).ok()?;
    coverage.warning(what, &format!("`{}`", model.name()))
}

/// The names of the entity types that have a mention.
fn used_types(corpus: &Corpus) -> BTreeSet<&str> {
    let mentions = corpus.sentences().iter().flat_map(Sentence::mentions);
    mentions.map(|mention| corpus.types().name(mention.entity_type)).collect()
}

/// Describes how the embeddings of markers were initialised. Markers that start from related words alone are grouped by
/// entity type, because all tags of a type start from the same words. Returns `None` if there are no markers.
pub fn describe_markers(markers: &[MarkerStart]) -> Option<String> {
    let mut starts: Vec<String> = Vec::new();
    for start in markers {
        let tag = start.marker.trim_matches(['<', '>']);
        let entity_type = tag.split_once('-').map_or(tag, |(_, entity_type)| entity_type);
        let (tag, entity_type) = (shown(tag), shown(entity_type));
        let (words, tokens) = (start.words.join(" "), count(start.n_tokens, "training token"));
        let start = match (start.n_pieces, start.n_tokens) {
            (0, 0) => format!("{entity_type} at random"),
            (_, 0) => format!("{entity_type} as `{words}`"),
            (0, _) => format!("{tag} as {tokens}"),
            (_, _) => format!("{tag} as `{words}` and {tokens}"),
        };
        if !starts.contains(&start) {
            starts.push(start);
        }
    }
    (!starts.is_empty()).then(|| format!("markers initialised: {}", starts.join(", ")))
}

#[cfg(test)]
mod tests {
    use melm_text::{ReadOptions, Source};

    use super::*;

    fn start(marker: &str, words: &[&str], n_tokens: usize) -> MarkerStart {
        MarkerStart {
            marker: marker.to_owned(),
            words: words.iter().map(ToString::to_string).collect(),
            n_pieces: words.len(),
            n_tokens,
        }
    }

    #[test]
    fn every_start_of_a_marker_is_described() {
        let starts = [
            start("<B-LOC>", &["location"], 0),
            start("<I-LOC>", &["location"], 0),
            start("<B-PER>", &[], 12),
            start("<I-PER>", &[], 1),
            start("<B-ORG>", &["organization"], 3),
            start("<B-X>", &[], 0),
        ];
        assert_eq!(
            describe_markers(&starts).unwrap(),
            "markers initialised: LOC as `location`, B-PER as 12 training tokens, I-PER as 1 training token, \
             B-ORG as `organization` and 3 training tokens, X at random"
        );
        assert_eq!(describe_markers(&[]), None);
    }

    fn read(text: &str) -> Corpus {
        Corpus::read(&Source::from_text("a", text), &ReadOptions::default()).unwrap()
    }

    #[test]
    fn joined_tags_have_a_warning_and_other_types_have_none() {
        let plain = read("Ada B-PER/LOC\nsang O\n\nBonn B-A+B\nis O\n\nRom B-A-B\n");
        assert!(type_warnings(&plain).is_empty());
        let joined: String = ["|", "+", ",", "/", ";", "&", "+E-"]
            .map(|by| format!("Ada B-PER{by}B-ORG\n\n"))
            .concat();
        let found = type_warnings(&read(&joined));
        assert_eq!(
            found,
            [
                "the training set has 7 × entity type that looks like several tags: melm reads one tag for each token, and \
              takes this as one type: `PER&B-ORG`, `PER+B-ORG`, `PER+E-B-ORG`, `PER,B-ORG`, `PER/B-ORG`, …"
            ]
        );
    }

    #[test]
    fn a_dev_set_that_misleads_has_a_warning_for_each_reason() {
        let train = read("Ada B-PER\nKing I-PER\nsang O\n\nBonn B-LOC\nis O\n");
        let other = read("Zuse B-PER\nspoke O\n\nRom B-LOC\n");
        assert!(dev_warnings(&train, &other).is_empty());
        let misleading = read("Bonn S-LOC\nis O\n\nAcme B-ORG\nInc E-ORG\n");
        let found = dev_warnings(&train, &misleading);
        let wanted =
            ["1 of 2 sentences", "does not have: `ORG`", "the scheme IOB2, the dev set IOBES"];
        assert_eq!(found.len(), wanted.len(), "{found:?}");
        for (warning, wanted) in found.iter().zip(wanted) {
            assert!(warning.contains(wanted), "{warning} / {wanted}");
        }
    }
}
