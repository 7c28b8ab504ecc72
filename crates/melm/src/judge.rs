//! The filter (section 2.4): a tagger trained on gold predicts tags for each draft. The draft is kept if the
//! predicted tags are its own tags. Several taggers can vote on it.

use std::num::NonZeroUsize;

use melm_nn::device::Device;
use melm_text::{EntityTypes, Mention, Tag, mentions, write_tags};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Error;
use crate::draft::{Disagreement, Draft, Verdict};
use crate::plan::check_limits;
use crate::rate::Rate;
use crate::self_training::n_needed;
use crate::stage::{OnBatch, Stage};
use crate::tagger::{TagSet, TaggedSentence, TaggerModel};

/// The condition that a draft has to meet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum FilterMode {
    /// The judge predicts exactly the draft's tags (the paper).
    Agreement,
    /// The judge's probability of the draft's tags reaches the threshold.
    Probability,
    /// There is no condition: every new draft is kept, and no judge is trained.
    Off,
}

/// The settings of the filter.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FilterSettings {
    /// The condition: `"agreement"`, `"probability"` or `"off"`.
    pub mode: FilterMode,
    /// In the mode `"probability"`, a draft is kept if the joint probability of its tags is at least this value.
    pub threshold: Rate,
    /// The number of judges. They are trained on the same data with different random numbers.
    #[serde(default = "one_judge")]
    #[schemars(range(max = 20))]
    pub judges: NonZeroUsize,
    /// The share of the judges that must find that the draft meets the condition, rounded up to whole judges. 1 means all.
    #[serde(default = "all_judges")]
    pub votes: Rate,
}

/// The default for plans that were saved before the key existed.
fn one_judge() -> NonZeroUsize {
    NonZeroUsize::MIN
}

fn all_judges() -> Rate {
    Rate::constant(1.0)
}

/// Each judge takes as long to train as the first.
const MAX_JUDGES: usize = 20;

impl FilterSettings {
    /// Returns the first key whose value is not valid, and a description of the allowed values.
    pub(crate) fn first_invalid(&self) -> Option<(&'static str, String)> {
        check_limits(&[("judges", self.judges.get(), MAX_JUDGES)])
    }

    /// The number of judges of `n_judges` that must agree.
    fn n_needed(&self, n_judges: usize) -> usize {
        n_needed(self.votes, n_judges)
    }
}

/// The number of drafts judged between two progress reports.
const CHUNK: usize = 256;

/// What one tagger finds about a draft.
struct Opinion {
    /// The joint probability of the draft's tags.
    probability: f64,
    /// The tokens for which the tagger predicts another tag.
    disagreements: Vec<Disagreement>,
}

/// Taggers that decide which drafts are kept.
pub struct Judge<'a> {
    taggers: Vec<&'a TaggerModel>,
    settings: FilterSettings,
    types: &'a EntityTypes,
}

impl<'a> Judge<'a> {
    /// Creates a judge for drafts whose tags have the entity types `types`.
    pub fn new(tagger: &'a TaggerModel, settings: FilterSettings, types: &'a EntityTypes) -> Self {
        Self::from_taggers(vec![tagger], settings, types)
    }

    /// Creates a judge from several taggers, which vote. There must be at least one.
    pub(crate) fn from_taggers(
        taggers: Vec<&'a TaggerModel>,
        settings: FilterSettings,
        types: &'a EntityTypes,
    ) -> Self {
        Self { taggers, settings, types }
    }

    /// Gives every draft with the verdict [`Verdict::New`] its final verdict.
    pub(crate) fn assess(
        &self,
        drafts: &mut [Draft],
        device: &Device,
        stage: &mut Stage<'_>,
    ) -> Result<(), Error> {
        let mut new: Vec<_> =
            drafts.iter_mut().filter(|draft| draft.verdict == Verdict::New).collect();
        let (mut done, total) = (0, new.len() as u64);
        // A run judges each round by itself. With the same chunks, drafts that are judged again have the same batches, on
        // which the last bits of a probability can depend on a GPU.
        for round in new.chunk_by_mut(|a, b| a.round == b.round) {
            for chunk in round.chunks_mut(CHUNK) {
                self.assess_chunk(chunk, device, &mut || stage.batch())?;
                done += chunk.len() as u64;
                stage.progress(done, total)?;
            }
        }
        Ok(())
    }

    /// Lets all taggers vote on some drafts, and sets their verdicts.
    fn assess_chunk(
        &self,
        drafts: &mut [&mut Draft],
        device: &Device,
        on_batch: OnBatch<'_>,
    ) -> Result<(), Error> {
        let mut votes: Vec<Vec<Opinion>> = drafts.iter().map(|_| Vec::new()).collect();
        for tagger in &self.taggers {
            let opinions = self.opinions(tagger, drafts, device, on_batch)?;
            for (votes, opinion) in votes.iter_mut().zip(opinions) {
                votes.push(opinion);
            }
        }
        for (draft, votes) in drafts.iter_mut().zip(votes) {
            self.decide(draft, votes);
        }
        Ok(())
    }

    /// Sets the verdict of a draft. If it is not kept, its verdict and disagreements are those of the first judge that
    /// does not want to keep it.
    fn decide(&self, draft: &mut Draft, opinions: Vec<Opinion>) {
        let n_judges = opinions.len();
        let is_for = |one: &Opinion| self.verdict(one) == Verdict::Kept;
        let n_for = opinions.iter().filter(|one| is_for(one)).count();
        let probability = opinions.iter().map(|one| one.probability).sum::<f64>();
        draft.probability = Some(probability / n_judges as f64);
        draft.votes = (n_judges > 1).then_some(n_for);
        let is_kept = n_for >= self.settings.n_needed(n_judges);
        let decisive = opinions.into_iter().find(|one| is_for(one) == is_kept);
        let decisive = decisive.expect("a judge agrees with the verdict");
        draft.verdict = self.verdict(&decisive);
        draft.disagreements = decisive.disagreements;
    }

    /// Returns the opinion of one tagger on each draft.
    fn opinions(
        &self,
        tagger: &TaggerModel,
        drafts: &[&mut Draft],
        device: &Device,
        on_batch: OnBatch<'_>,
    ) -> Result<Vec<Opinion>, Error> {
        let sentences: Vec<Vec<&str>> = drafts
            .iter()
            .map(|draft| draft.sentence.tokens().iter().map(AsRef::as_ref).collect())
            .collect();
        let set = tagger.tags();
        let wanted = drafts.iter().map(|draft| self.tag_numbers(draft.sentence.tags(), set));
        let wanted = wanted.collect::<Result<Vec<_>, _>>()?;
        let mut opinions: Vec<Option<Opinion>> = drafts.iter().map(|_| None).collect();
        let mut on_judged = |at: usize, tagged: TaggedSentence, likely: f64| {
            let found = tagged.tags.iter().map(|tag| set.number(*tag).unwrap_or_default());
            let pairs = found.zip(&wanted[at]).enumerate();
            let disagreements: Vec<_> = pairs
                .filter(|(_, (found, wanted))| found != *wanted)
                .map(|(token, (found, wanted))| Disagreement {
                    token,
                    wanted: spell(set, *wanted),
                    found: spell(set, found),
                    probability: tagged.probability(token, *wanted),
                })
                .collect();
            opinions[at] = Some(Opinion { probability: likely.exp(), disagreements });
        };
        tagger.judge_each(device, &sentences, &wanted, &mut on_judged, on_batch)?;
        let read = |opinion: Option<Opinion>| opinion.expect("the tagger reads every sentence");
        Ok(opinions.into_iter().map(read).collect())
    }

    /// The verdict of one tagger.
    fn verdict(&self, opinion: &Opinion) -> Verdict {
        let is_likely = opinion.probability >= self.settings.threshold.value();
        match self.settings.mode {
            FilterMode::Agreement if opinion.disagreements.is_empty() => Verdict::Kept,
            FilterMode::Agreement => Verdict::Disagrees,
            FilterMode::Probability if is_likely => Verdict::Kept,
            FilterMode::Probability => Verdict::Unlikely,
            FilterMode::Off => Verdict::Kept,
        }
    }

    /// Returns the numbers of a draft's tags in the tag set of a tagger. Types are matched by name, and tags are
    /// converted to the tagger's scheme, because a tagger from a folder may have another order of types and another
    /// scheme.
    fn tag_numbers(&self, tags: &[Tag], set: &TagSet) -> Result<Vec<u32>, Error> {
        let translate = |mention: Mention| {
            let name = self.types.name(mention.entity_type);
            let unknown = || Error::UnknownTag { tag: name.to_owned() };
            let entity_type = set.types().find(name).ok_or_else(unknown)?;
            Ok(Mention { entity_type, ..mention })
        };
        let mentions = mentions(tags).map(translate).collect::<Result<Vec<_>, Error>>()?;
        let mut spelt = vec![Tag::Outside; tags.len()];
        write_tags(mentions, set.scheme(), &mut spelt);
        let number = |tag: &Tag| {
            set.number(*tag).ok_or_else(|| Error::UnknownTag {
                tag: set.types().spell(*tag, set.scheme()).to_string(),
            })
        };
        spelt.iter().map(number).collect()
    }
}

fn spell(set: &TagSet, number: u32) -> String {
    set.types().spell(set.tag(number), set.scheme()).to_string()
}

#[cfg(test)]
mod tests {
    use melm_text::{Corpus, ReadOptions, Source};

    use super::*;

    /// Returns a draft after judges that agree with its tags or do not have voted on it. `votes` is the needed share.
    fn judged(agree: &[bool], mode: FilterMode, votes: f64) -> Draft {
        let source = Source::from_text("a.conll", "in O\nBonn B-LOC\n");
        let gold = Corpus::read(&source, &ReadOptions::default()).unwrap();
        let settings = FilterSettings {
            mode,
            threshold: Rate::constant(0.5),
            judges: NonZeroUsize::new(agree.len()).unwrap(),
            votes: Rate::try_from(votes).unwrap(),
        };
        let judge = Judge::from_taggers(Vec::new(), settings, gold.types());
        let opinions = agree.iter().enumerate().map(|(at, agrees)| {
            let other = Disagreement {
                token: at,
                wanted: "B-LOC".to_owned(),
                found: "O".to_owned(),
                probability: 0.1,
            };
            let disagreements = if *agrees { Vec::new() } else { vec![other] };
            Opinion { probability: if *agrees { 0.9 } else { 0.1 }, disagreements }
        });
        let mut draft = Draft::new(gold.sentences()[0].clone(), 0, 1, Vec::new());
        judge.decide(&mut draft, opinions.collect());
        draft
    }

    #[test]
    fn the_needed_share_of_the_judges_decides() {
        let draft = judged(&[true, false, true], FilterMode::Agreement, 1.0);
        assert_eq!((draft.verdict, draft.votes), (Verdict::Disagrees, Some(2)));
        // The disagreement is that of the second judge.
        assert_eq!(draft.disagreements[0].token, 1);
        assert!((draft.probability.unwrap() - (0.9 + 0.1 + 0.9) / 3.0).abs() < 1e-12);
        let draft = judged(&[false, true, true], FilterMode::Agreement, 0.6);
        assert_eq!((draft.verdict, draft.votes), (Verdict::Kept, Some(2)));
        assert!(draft.disagreements.is_empty());
        let draft = judged(&[true, false, false], FilterMode::Probability, 0.6);
        assert_eq!((draft.verdict, draft.votes), (Verdict::Unlikely, Some(1)));
        let draft = judged(&[true], FilterMode::Agreement, 1.0);
        assert_eq!((draft.verdict, draft.votes), (Verdict::Kept, None));
    }
}
