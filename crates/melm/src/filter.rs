//! The filter (section 2.4): a tagger trained on gold reads every draft, and says whether its labels hold.

use melm_nn::device::Device;
use melm_text::{EntityTypes, Mention, Tag, mentions, write_tags};
use serde::{Deserialize, Serialize};

use crate::Error;
use crate::draft::Draft;
use crate::rate::Rate;
use crate::tagger::{TagSet, Tagger, Truncation};

/// What a draft must pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FilterMode {
    /// The judge's tags are exactly the draft's (the paper).
    Agreement,
    /// The judge finds the draft's tags at least as likely as the threshold.
    Probability,
    /// Nothing: there is no judge.
    Off,
}

/// How drafts are filtered.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FilterSettings {
    /// What a draft must pass: `"agreement"`, `"probability"` or `"off"`.
    pub mode: FilterMode,
    /// The least probability of a draft's tags, all together, in the mode `"probability"`.
    pub threshold: Rate,
}

/// What the judge says of a draft.
#[derive(Clone, Debug, PartialEq)]
pub struct Opinion {
    /// Whether it passes.
    pub passes: bool,
    /// The probability of the draft's tags, all together.
    pub probability: f64,
    /// Where the judge's tags are others.
    pub disagreements: Vec<Disagreement>,
}

/// A token whose tag the judge does not believe.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Disagreement {
    /// The token, from 0.
    pub token: usize,
    /// The draft's tag.
    pub wanted: String,
    /// The judge's.
    pub found: String,
    /// How likely the judge finds the draft's tag.
    pub probability: f32,
}

/// A tagger trained on gold only, reading drafts whose tags are in `types`.
pub struct Judge<'a> {
    tagger: &'a Tagger,
    settings: FilterSettings,
    types: &'a EntityTypes,
}

impl<'a> Judge<'a> {
    /// A judge for drafts with these entity types.
    pub fn new(tagger: &'a Tagger, settings: FilterSettings, types: &'a EntityTypes) -> Self {
        Self { tagger, settings, types }
    }

    /// The judge's opinion of each draft, in their order, and what had to be cut to read them.
    pub fn read(
        &self,
        device: &Device,
        drafts: &[&Draft],
    ) -> Result<(Vec<Opinion>, Truncation), Error> {
        let tokens: Vec<Vec<&str>> = drafts
            .iter()
            .map(|draft| draft.sentence.tokens().iter().map(AsRef::as_ref).collect())
            .collect();
        let wanted = drafts.iter().map(|draft| self.numbers(draft.sentence.tags()));
        let wanted = wanted.collect::<Result<Vec<_>, _>>()?;
        let set = self.tagger.tags();
        let mut opinions: Vec<Option<Opinion>> = vec![None; drafts.len()];
        let cuts =
            self.tagger.judge_each(device, &tokens, &wanted, &mut |at, tagged, likely| {
                let found = tagged.tags.iter().map(|tag| set.number(*tag).unwrap_or_default());
                let pairs = found.zip(&wanted[at]).enumerate();
                let disagreements: Vec<_> = pairs
                    .filter(|(_, (found, wanted))| found != *wanted)
                    .map(|(token, (found, wanted))| Disagreement {
                        token,
                        wanted: name(set, *wanted),
                        found: name(set, found),
                        probability: tagged.probability(token, *wanted),
                    })
                    .collect();
                let probability = likely.exp();
                let passes = match self.settings.mode {
                    FilterMode::Agreement => disagreements.is_empty(),
                    FilterMode::Probability => probability >= self.settings.threshold.value(),
                    FilterMode::Off => true,
                };
                opinions[at] = Some(Opinion { passes, probability, disagreements });
            })?;
        let opinions = opinions.into_iter().map(|one| one.expect("every sentence is read"));
        Ok((opinions.collect(), cuts))
    }

    /// The judge's numbers of a draft's tags: types go by name, and mentions are spelt in the judge's scheme, since a
    /// judge from a file has its own.
    fn numbers(&self, tags: &[Tag]) -> Result<Vec<u32>, Error> {
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

fn name(set: &TagSet, number: u32) -> String {
    set.types().spell(set.tag(number), set.scheme()).to_string()
}
