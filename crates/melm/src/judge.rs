//! The filter (section 2.4): a tagger trained on gold predicts tags for each draft. The draft is kept if the
//! predicted tags are its own tags.

use melm_nn::device::Device;
use melm_text::{EntityTypes, Mention, Tag, mentions, write_tags};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Error;
use crate::draft::{Disagreement, Draft, Verdict};
use crate::rate::Rate;
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
}

/// The number of drafts judged between two progress reports.
const CHUNK: usize = 256;

/// A tagger that decides which drafts are kept.
pub struct Judge<'a> {
    tagger: &'a TaggerModel,
    settings: FilterSettings,
    types: &'a EntityTypes,
}

impl<'a> Judge<'a> {
    /// Creates a judge for drafts whose tags have the entity types `types`.
    pub fn new(tagger: &'a TaggerModel, settings: FilterSettings, types: &'a EntityTypes) -> Self {
        Self { tagger, settings, types }
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
        for chunk in new.chunks_mut(CHUNK) {
            self.assess_chunk(chunk, device, &mut || stage.batch())?;
            done += chunk.len() as u64;
            stage.progress(done, total)?;
        }
        Ok(())
    }

    fn assess_chunk(
        &self,
        drafts: &mut [&mut Draft],
        device: &Device,
        on_batch: OnBatch<'_>,
    ) -> Result<(), Error> {
        let sentences: Vec<Vec<&str>> = drafts
            .iter()
            .map(|draft| draft.sentence.tokens().iter().map(AsRef::as_ref).collect())
            .collect();
        let wanted = drafts.iter().map(|draft| self.tag_numbers(draft.sentence.tags()));
        let wanted = wanted.collect::<Result<Vec<_>, _>>()?;
        let set = self.tagger.tags();
        let mut opinions = vec![None; drafts.len()];
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
            opinions[at] = Some((likely.exp(), disagreements));
        };
        self.tagger.judge_each(device, &sentences, &wanted, &mut on_judged, on_batch)?;
        for (draft, opinion) in drafts.iter_mut().zip(opinions) {
            let (probability, disagreements) = opinion.expect("the tagger reads every sentence");
            draft.verdict = self.verdict(probability, &disagreements);
            draft.probability = Some(probability);
            draft.disagreements = disagreements;
        }
        Ok(())
    }

    fn verdict(&self, probability: f64, disagreements: &[Disagreement]) -> Verdict {
        match self.settings.mode {
            FilterMode::Agreement if disagreements.is_empty() => Verdict::Kept,
            FilterMode::Agreement => Verdict::Disagrees,
            FilterMode::Probability if probability >= self.settings.threshold.value() => {
                Verdict::Kept
            }
            FilterMode::Probability => Verdict::Unlikely,
            FilterMode::Off => Verdict::Kept,
        }
    }

    /// Returns the numbers of a draft's tags in the tag set of the tagger. Types are matched by name, and tags are
    /// converted to the tagger's scheme, because a tagger from a folder may have another order of types and another
    /// scheme.
    fn tag_numbers(&self, tags: &[Tag]) -> Result<Vec<u32>, Error> {
        let set = self.tagger.tags();
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
