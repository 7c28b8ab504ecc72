//! Finds gold sentences whose tags may be wrong.
//!
//! A tagger that was trained on a sentence agrees with its tags even if they are wrong. Gold is therefore cut into
//! folds, as in cross-validation: a tagger with the settings of the judge is trained on all folds but one, and tags
//! the sentences of that fold. A sentence is suspect if the tagger's reading differs from gold, and at one token the
//! tagger gives the gold tag a probability of at most 1 - [`CERTAIN`] (Northcutt et al. 2021, "Confident Learning",
//! estimate label errors from such out-of-sample probabilities).

use std::path::{Path, PathBuf};

use melm_nn::device::Device;
use melm_text::score::Counts;
use melm_text::{EntityTypes, Mention, Sentence, mentions};
use schemars::JsonSchema;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::Error;
use crate::augment::Gold;
use crate::draft::{Disagreement, spell_tags, texts};
use crate::files::{create_folder, read_sealed, remove, write_sealed};
use crate::models::Pretrained;
use crate::stage::{OnBatch, Run, observe_part};
use crate::tagger::{TaggedSentence, TaggerModel, TaggerSettings};

/// A sentence is suspect if the tagger contradicts a gold tag with at least this probability. With 0.9, more than two
/// thirds of the sentences of the example were suspect (`docs/log.md`).
pub const CERTAIN: f64 = 0.99;

/// The largest `folds`.
const MOST_FOLDS: usize = 20;

/// The settings of the check: the section `gold_check` of the plan.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GoldCheckSettings {
    /// The number of folds, which is also the number of taggers that are trained. 0 means that gold is not checked. 1 is
    /// not allowed.
    #[schemars(range(max = MOST_FOLDS))]
    pub folds: usize,
}

impl GoldCheckSettings {
    /// Returns the key with an invalid value and a description of the allowed values, if there is one.
    pub(crate) fn first_invalid(self) -> Option<(&'static str, String)> {
        let is_valid = self.folds == 0 || (2..=MOST_FOLDS).contains(&self.folds);
        (!is_valid).then(|| ("folds", format!("0, or from 2 to {MOST_FOLDS}")))
    }
}

/// A gold sentence and how a tagger reads it that was not trained on it: a line of `gold.jsonl`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CheckedSentence {
    /// The number of the sentence in the file of its language, from 1.
    pub source: usize,
    /// The language code, if the corpus has languages.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub language: Option<String>,
    /// The fold that the sentence is in, from 1.
    pub fold: usize,
    /// The tokens.
    pub tokens: Vec<String>,
    /// The gold tags.
    pub tags: Vec<String>,
    /// The tags that the tagger predicts.
    pub found: Vec<String>,
    /// The joint probability of the gold tags.
    #[serde(deserialize_with = "read_exactly")]
    pub probability: f64,
    /// The joint probability of the tags that the tagger predicts.
    #[serde(deserialize_with = "read_exactly")]
    pub found_probability: f64,
    /// The tokens for which the tagger predicts another tag.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub disagreements: Vec<Disagreement>,
}

/// Reads a number exactly as it was written. `serde_json` itself may change the last bit, and a resumed run would then
/// write another `gold.jsonl`.
fn read_exactly<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
    let text = Box::<RawValue>::deserialize(deserializer)?;
    text.get().parse().map_err(|_| D::Error::custom(format!("`{}` is not a number", text.get())))
}

impl CheckedSentence {
    /// The probability with which the tagger contradicts gold at its most certain token. 0 if it agrees everywhere.
    pub fn contradiction(&self) -> f64 {
        let against = |one: &Disagreement| 1.0 - f64::from(one.probability);
        self.disagreements.iter().map(against).fold(0.0, f64::max)
    }

    /// Returns true if the tags may be wrong.
    pub fn is_suspect(&self) -> bool {
        self.contradiction() >= CERTAIN
    }
}

/// The numbers of the check, as in `run.json`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct GoldCheckSummary {
    /// The number of folds.
    pub folds: usize,
    /// The number of checked sentences.
    pub sentences: usize,
    /// The number of sentences that the taggers read differently.
    pub contradicted: usize,
    /// The number of suspect sentences.
    #[serde(default)]
    pub suspect: usize,
    /// Micro-F1 of the taggers' tags against gold, from 0 to 1. If it is low, the taggers know little, and their
    /// contradictions mean little.
    #[serde(default)]
    pub f1: f64,
}

impl GoldCheckSummary {
    /// Counts checked sentences.
    pub fn new(folds: usize, checked: &[CheckedSentence]) -> Self {
        let count =
            |is: &dyn Fn(&CheckedSentence) -> bool| checked.iter().filter(|s| is(s)).count();
        Self {
            folds,
            sentences: checked.len(),
            contradicted: count(&|one| !one.disagreements.is_empty()),
            suspect: count(&CheckedSentence::is_suspect),
            f1: micro_f1(checked),
        }
    }
}

/// Micro-F1 of exact mentions, from 0 to 1. Tags that cannot be parsed count as `O`.
fn micro_f1(checked: &[CheckedSentence]) -> f64 {
    let mut types = EntityTypes::default();
    let mut read = |tags: &[String]| -> Vec<Mention> {
        let parsed: Vec<_> =
            tags.iter().map(|tag| types.parse(tag).unwrap_or(melm_text::Tag::Outside)).collect();
        mentions(&parsed).collect()
    };
    let mut counts = Counts::default();
    for one in checked {
        let (gold, found) = (read(&one.tags), read(&one.found));
        counts.gold += gold.len() as u64;
        counts.predicted += found.len() as u64;
        counts.correct += found.iter().filter(|mention| gold.contains(mention)).count() as u64;
    }
    counts.rates().f1
}

/// Trains the taggers and lets them read the gold sentences.
pub(crate) struct GoldCheck<'a> {
    pub(crate) gold: Gold<'a>,
    pub(crate) settings: &'a TaggerSettings,
    /// The number of folds, 2 or more.
    pub(crate) n_folds: usize,
    pub(crate) tagger: &'a Pretrained,
    pub(crate) device: &'a Device,
}

impl GoldCheck<'_> {
    /// Checks all sentences and returns them in the order of the corpus. Folds that are complete in the folder of the
    /// run are read from there. Fails if there are fewer than two sentences for each fold.
    pub(crate) fn run(&self, run: &mut Run<'_>) -> Result<Vec<CheckedSentence>, Error> {
        let n = self.gold.train.sentences().len();
        if n < 2 * self.n_folds {
            return Err(Error::TooFewToCheck { n_sentences: n, n_folds: self.n_folds });
        }
        let order = run.seed.stream("gold check").generator().permutation(n);
        let folder = run.folder.as_ref().map(|folder| folder.join(FOLDER));
        let mut checked = vec![None; n];
        for fold in 1..=self.n_folds {
            let is_own = |rank: &usize| rank % self.n_folds == fold - 1;
            let mut own: Vec<usize> = (0..n).filter(is_own).map(|rank| order[rank]).collect();
            own.sort_unstable();
            let saved = folder.as_ref().and_then(|folder| read_fold(folder, fold, own.len()));
            let found = match saved {
                Some(found) => {
                    // The earlier process may have been killed before it removed the state of the training.
                    folder
                        .as_ref()
                        .map_or(Ok(()), |folder| remove(&training_path(folder, fold)))?;
                    found
                }
                None => self.check_fold(fold, &own, folder.as_deref(), run)?,
            };
            for (at, one) in own.into_iter().zip(found) {
                checked[at] = Some(one);
            }
        }
        Ok(checked.into_iter().map(|one| one.expect("every sentence is in one fold")).collect())
    }

    /// Trains the tagger of one fold and reads the sentences with the indices `own`.
    fn check_fold(
        &self,
        fold: usize,
        own: &[usize],
        folder: Option<&Path>,
        run: &mut Run<'_>,
    ) -> Result<Vec<CheckedSentence>, Error> {
        let train = self.gold.train;
        let is_other = |at: &usize| own.binary_search(at).is_err();
        let others = (0..train.sentences().len()).filter(is_other);
        let others = train.with_sentences(others.map(|at| train.sentences()[at].clone()));
        let (n_before, n_all) = (fold as u64 - 1, self.n_folds as u64);
        let training = folder.map(|folder| training_path(folder, fold));
        let mut scaled = observe_part(&mut *run.observer, n_before, n_all);
        let mut own_run = Run { seed: run.seed, folder: training.clone(), observer: &mut scaled };
        let stage = &mut own_run.stage_as("gold-check", &format!("gold check {fold}"));
        let (dev, device) = (self.gold.dev, self.device);
        let trained = TaggerModel::train(self.tagger, &others, dev, self.settings, device, stage)?;
        let found = self.read(fold, own, &trained.tagger, &mut || stage.batch())?;
        if let Some(folder) = folder {
            save_fold(folder, fold, &found, &json!(trained.outcome.epochs))?;
        }
        training.map_or(Ok(()), |path| remove(&path))?;
        Ok(found)
    }

    /// Returns how a tagger reads the sentences with the indices `own`.
    fn read(
        &self,
        fold: usize,
        own: &[usize],
        tagger: &TaggerModel,
        on_batch: OnBatch<'_>,
    ) -> Result<Vec<CheckedSentence>, Error> {
        let gold = self.gold.train;
        let sentences: Vec<&Sentence> = own.iter().map(|at| &gold.sentences()[*at]).collect();
        let tokens: Vec<Vec<&str>> = sentences
            .iter()
            .map(|sentence| sentence.tokens().iter().map(AsRef::as_ref).collect())
            .collect();
        let set = tagger.tags();
        let number = |tag: &_| set.number(*tag).expect("the tagger has all tags of the corpus");
        let wanted: Vec<Vec<u32>> =
            sentences.iter().map(|one| one.tags().iter().map(number).collect()).collect();
        let mut checked = vec![None; own.len()];
        let mut on_judged = |at: usize, tagged: TaggedSentence, likely: f64| {
            let found = spell_tags(&tagged.tags, gold);
            let tags = spell_tags(sentences[at].tags(), gold);
            let probability = |token: usize| tagged.probability(token, wanted[at][token]);
            let disagreements = find_disagreements(&tags, &found, probability);
            let (language, index) = gold.locate(own[at]);
            checked[at] = Some(CheckedSentence {
                source: index + 1,
                language: language.map(ToOwned::to_owned),
                fold,
                tokens: texts(sentences[at].tokens()),
                tags,
                found,
                probability: likely.exp(),
                found_probability: tagged.log_probability.exp(),
                disagreements,
            });
        };
        tagger.judge_each(self.device, &tokens, &wanted, &mut on_judged, on_batch)?;
        Ok(checked.into_iter().map(|one| one.expect("the tagger reads every sentence")).collect())
    }
}

/// Returns the tokens whose tags differ. `probability` returns the probability of the gold tag of a token.
fn find_disagreements(
    tags: &[String],
    found: &[String],
    probability: impl Fn(usize) -> f32,
) -> Vec<Disagreement> {
    let pairs = tags.iter().zip(found).enumerate().filter(|(_, (tag, found))| tag != found);
    let disagreements = pairs.map(|(token, (tag, found))| Disagreement {
        token,
        wanted: tag.clone(),
        found: found.clone(),
        probability: probability(token),
    });
    disagreements.collect()
}

/// The subfolder of the stages with the results of finished folds.
const FOLDER: &str = "gold-check";

/// The folder of the state of a fold's training.
fn training_path(folder: &Path, fold: usize) -> PathBuf {
    folder.join(format!("fold-{fold}"))
}

fn fold_path(folder: &Path, fold: usize) -> PathBuf {
    folder.join(format!("fold-{fold}.jsonl"))
}

fn metrics_path(folder: &Path, fold: usize) -> PathBuf {
    folder.join(format!("fold-{fold}.metrics.jsonl"))
}

/// Writes checked sentences as JSON lines.
pub(crate) fn to_lines(checked: &[CheckedSentence]) -> String {
    let line = |one| serde_json::to_string(one).expect("a sentence has only JSON values") + "\n";
    checked.iter().map(line).collect()
}

/// Reads a line of `gold.jsonl`. Fails with the reason if the line is not valid.
pub fn read_line(json: &str) -> Result<CheckedSentence, String> {
    let one: CheckedSentence = serde_json::from_str(json).map_err(|error| error.to_string())?;
    let n = one.tokens.len();
    if one.tags.len() != n || one.found.len() != n {
        return Err(format!("{n} tokens, but {} and {} tags", one.tags.len(), one.found.len()));
    }
    Ok(one)
}

/// Saves the result of a fold and the metrics of its training, which is a list with an object for each epoch.
fn save_fold(
    folder: &Path,
    fold: usize,
    checked: &[CheckedSentence],
    epochs: &Value,
) -> Result<(), Error> {
    create_folder(folder)?;
    let line = |epoch: &Value| {
        let mut line = json!({ "stage": "gold-check", "fold": fold });
        if let (Some(line), Some(values)) = (line.as_object_mut(), epoch.as_object()) {
            line.extend(values.clone());
        }
        format!("{line}\n")
    };
    let metrics: String = epochs.as_array().into_iter().flatten().map(line).collect();
    write_sealed(&metrics_path(folder, fold), &metrics)?;
    write_sealed(&fold_path(folder, fold), &to_lines(checked))
}

/// Reads the result of a fold. Returns `None` if it is not complete or damaged: the fold is then checked again.
fn read_fold(folder: &Path, fold: usize, n_sentences: usize) -> Option<Vec<CheckedSentence>> {
    let text = read_sealed(&fold_path(folder, fold)).ok().flatten()?;
    let lines = text.lines().map(|line| read_line(line).ok()).collect::<Option<Vec<_>>>()?;
    (lines.len() == n_sentences).then_some(lines)
}

/// Returns the saved metrics of all folds, in order. `stages` is the folder of the run's stages.
pub(crate) fn fold_metrics(stages: &Path, settings: GoldCheckSettings) -> Result<String, Error> {
    let folder = stages.join(FOLDER);
    let read = |fold| Ok(read_sealed(&metrics_path(&folder, fold))?.unwrap_or_default());
    (1..=settings.folds).map(read).collect()
}

/// Returns the share of `gold` that a tagger of the check is trained on.
pub(crate) fn training_share(settings: GoldCheckSettings) -> f64 {
    if settings.folds == 0 { 0.0 } else { 1.0 - 1.0 / settings.folds as f64 }
}

/// Returns the suspect sentences of a corpus, the most certain contradiction first.
pub fn rank(checked: &[CheckedSentence]) -> Vec<&CheckedSentence> {
    let mut suspect: Vec<_> = checked.iter().filter(|one| one.is_suspect()).collect();
    suspect.sort_by(|a, b| b.contradiction().total_cmp(&a.contradiction()));
    suspect
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checked(probabilities: &[f32]) -> CheckedSentence {
        let disagreement = |(token, probability): (usize, &f32)| Disagreement {
            token,
            wanted: "B-PER".to_owned(),
            found: "O".to_owned(),
            probability: *probability,
        };
        CheckedSentence {
            source: 1,
            language: None,
            fold: 1,
            tokens: vec!["Ada".to_owned(); 3],
            tags: vec!["B-PER".to_owned(); 3],
            found: vec!["O".to_owned(); 3],
            probability: 0.01,
            found_probability: 0.9,
            disagreements: probabilities.iter().enumerate().map(disagreement).collect(),
        }
    }

    #[test]
    fn the_most_certain_contradiction_decides() {
        assert!(checked(&[0.4, 0.005]).is_suspect());
        assert!(!checked(&[0.4, 0.02]).is_suspect());
        assert!(!checked(&[]).is_suspect());
        let all = [checked(&[0.008]), checked(&[]), checked(&[0.5, 0.001])];
        let ranked = rank(&all);
        assert_eq!(ranked, [&all[2], &all[0]]);
        let summary = GoldCheckSummary::new(4, &all);
        assert_eq!((summary.sentences, summary.contradicted, summary.suspect), (3, 2, 2));
        // By hand: gold has two mentions in this sentence, one tagger finds one of them and another one.
        let tags = |tags: [&str; 3]| tags.map(str::to_owned).to_vec();
        let one = CheckedSentence {
            tags: tags(["B-PER", "O", "B-LOC"]),
            found: tags(["B-PER", "B-LOC", "O"]),
            ..checked(&[])
        };
        assert!((GoldCheckSummary::new(4, &[one]).f1 - 0.5).abs() < 1e-12);
    }

    #[test]
    fn a_saved_fold_is_read_back_if_it_is_complete() {
        let dir = tempfile::tempdir().unwrap();
        let all = [checked(&[0.25]), checked(&[])];
        save_fold(dir.path(), 2, &all, &json!([{ "epoch": 1, "loss": 2.0 }])).unwrap();
        assert_eq!(read_fold(dir.path(), 2, 2).unwrap(), all);
        assert!(read_fold(dir.path(), 2, 3).is_none());
        assert!(read_fold(dir.path(), 1, 2).is_none());
        assert!(read_line("{\"source\":1}").is_err());
    }

    #[test]
    fn one_fold_is_refused() {
        let invalid = |folds| GoldCheckSettings { folds }.first_invalid().is_some();
        assert_eq!([0, 1, 2, 20, 21].map(invalid), [false, true, false, false, true]);
    }
}
