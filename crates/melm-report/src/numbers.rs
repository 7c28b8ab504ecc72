//! Counts of candidates and mentions.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use melm::draft::Verdict;
use melm::methods::RejectedCounts;
use serde::Serialize;
use serde_json::Value;

use crate::candidate::{Candidate, Origin};
use crate::gold::GoldSentences;

/// The number of candidates in each list of [`Highlights`].
const N_HIGHLIGHTS: usize = 10;

/// How many candidates are left after each step.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Funnel {
    /// The title, for example `Drafts`.
    pub title: String,
    /// The steps, from all candidates to the kept ones.
    pub steps: Vec<FunnelStep>,
}

/// A step of a funnel.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FunnelStep {
    /// What the number counts.
    pub name: String,
    /// The number.
    pub count: usize,
    /// Whether the candidates go on or are lost.
    pub kind: StepKind,
}

/// What happens to the candidates of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum StepKind {
    /// All candidates at the start.
    Start,
    /// Candidates that are lost here.
    Lost,
    /// Candidates that are in the augmented set.
    Kept,
}

/// The mentions of one entity type.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct TypeCounts {
    /// The name of the type.
    pub entity_type: String,
    /// The number of mentions in gold.
    pub gold: usize,
    /// The number of mentions in kept drafts.
    pub drafts: usize,
    /// The number of mentions in kept sentences of unlabelled text.
    pub text: usize,
    /// The number of mentions in the augmented set.
    pub after: usize,
    /// The number of distinct mentions in gold.
    pub distinct_before: usize,
    /// The number of distinct mentions in the augmented set.
    pub distinct_after: usize,
}

/// The numbers of shown candidates, in total and by the values of the page's filters.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Choices {
    /// The number of candidates in the folder.
    pub total: usize,
    /// The number of candidates on the page.
    pub shown: usize,
    /// By entity type: candidates that have a mention of the type.
    pub by_type: BTreeMap<String, usize>,
    /// By origin.
    pub by_origin: BTreeMap<String, usize>,
    /// By verdict.
    pub by_verdict: BTreeMap<String, usize>,
    /// By round, or pass for unlabelled text.
    pub by_round: BTreeMap<u32, usize>,
}

/// The ids of candidates that are worth a look.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Highlights {
    /// Kept candidates with the lowest probability.
    pub least_probable: Vec<String>,
    /// Kept candidates with the most mentions that gold does not have.
    pub most_novel: Vec<String>,
}

/// The name of a verdict in the JSON form.
pub(crate) fn verdict_name(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Kept => "kept",
        Verdict::RepeatsSource => "repeats-source",
        Verdict::RepeatsGold => "repeats-gold",
        Verdict::RepeatsDraft => "repeats-draft",
        Verdict::RepeatsToken => "repeats-token",
        Verdict::UnlikelyMention => "unlikely-mention",
        Verdict::Disagrees => "disagrees",
        Verdict::Unlikely => "unlikely",
        Verdict::Copied => "copied",
        Verdict::TooLong => "too-long",
        Verdict::NoMention => "no-mention",
        Verdict::OverCap => "over-cap",
        Verdict::New => "new",
        Verdict::Accepted => "accepted",
        Verdict::Rejected => "rejected",
    }
}

/// A verdict in words. `is_text` is true for a sentence of unlabelled text.
pub(crate) fn describe_verdict(verdict: Verdict, is_text: bool) -> &'static str {
    match (verdict, is_text) {
        (Verdict::Kept, _) => "kept",
        (Verdict::RepeatsSource, _) => "repeats its source",
        (Verdict::RepeatsGold, _) => "repeats a gold sentence",
        (Verdict::RepeatsDraft, _) => "repeats another draft",
        (Verdict::RepeatsToken, _) => "repeats a word beside it",
        (Verdict::UnlikelyMention, _) => "unlikely mention",
        (Verdict::Disagrees, false) => "the judge disagrees",
        (Verdict::Disagrees, true) => "the panel disagrees",
        (Verdict::Unlikely, _) => "too improbable",
        (Verdict::Copied, _) => "copied, no mention",
        (Verdict::TooLong, _) => "too long for the model",
        (Verdict::NoMention, _) => "without a mention",
        (Verdict::OverCap, _) => "over the cap",
        (Verdict::New, _) => "not judged",
        (Verdict::Accepted, _) => "accepted by a person",
        (Verdict::Rejected, _) => "rejected by a person",
    }
}

const LOST: [Verdict; 11] = [
    Verdict::RepeatsSource,
    Verdict::RepeatsGold,
    Verdict::RepeatsDraft,
    Verdict::RepeatsToken,
    Verdict::UnlikelyMention,
    Verdict::TooLong,
    Verdict::Disagrees,
    Verdict::Unlikely,
    Verdict::NoMention,
    Verdict::OverCap,
    Verdict::Rejected,
];

/// Returns the funnels of drafts and of unlabelled text. `run` is the content of `run.json`, which counts what never
/// became a candidate.
pub(crate) fn funnels(candidates: &[Candidate], run: &Value) -> Vec<Funnel> {
    let (text, drafts): (Vec<_>, Vec<_>) =
        candidates.iter().partition(|one| one.origin == Origin::Text);
    let dropped: RejectedCounts =
        serde_json::from_value(run["drafts"]["dropped"].clone()).unwrap_or_default();
    let dropped = dropped.iter().map(|(reason, n)| (reason.description().to_owned(), n));
    let reasons = [
        ("gold", "in the training set"),
        ("dev", "in the dev set"),
        ("held_out", "in a held-out file"),
        ("repeated", "repeats another sentence"),
    ];
    let left_out = &run["text"]["left_out"];
    let left_out = reasons.map(|(key, name)| {
        let n = left_out[key].as_u64().and_then(|n| usize::try_from(n).ok());
        (name.to_owned(), n.unwrap_or(0))
    });
    [
        funnel("Drafts", "sentences written", dropped.collect(), &drafts, false),
        funnel("Unlabelled text", "sentences of the text", left_out.into(), &text, true),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// Returns a funnel, or `None` if there are no candidates. `before` counts what never became a candidate, by reason.
fn funnel(
    title: &str,
    start: &str,
    before: Vec<(String, usize)>,
    candidates: &[&Candidate],
    is_text: bool,
) -> Option<Funnel> {
    let lost = |name: String, count: usize| FunnelStep { name, count, kind: StepKind::Lost };
    let before = before.into_iter().map(|(name, n)| lost(name, n));
    let before: Vec<_> = before.filter(|step| step.count > 0).collect();
    let n_before: usize = before.iter().map(|step| step.count).sum();
    if candidates.is_empty() && n_before == 0 {
        return None;
    }
    let n_all = candidates.len() + n_before;
    let name = if is_text || n_before > 0 { start } else { "drafts" };
    let mut steps = vec![FunnelStep { name: name.to_owned(), count: n_all, kind: StepKind::Start }];
    steps.extend(before);
    let count = |verdict| candidates.iter().filter(|one| one.verdict == verdict).count();
    let reasons =
        LOST.map(|verdict| lost(describe_verdict(verdict, is_text).into(), count(verdict)));
    steps.extend(reasons.into_iter().filter(|step| step.count > 0));
    if count(Verdict::New) > 0 {
        steps.push(lost("not judged".to_owned(), count(Verdict::New)));
    }
    let n_kept = candidates.iter().filter(|one| one.verdict.is_kept()).count();
    let kind = StepKind::Kept;
    steps.push(FunnelStep { name: "kept".to_owned(), count: n_kept, kind });
    Some(Funnel { title: title.to_owned(), steps })
}

/// Counts the mentions of each entity type. `names` are the names of the types by index.
pub(crate) fn count_types(
    names: &[String],
    gold: &GoldSentences,
    candidates: &[Candidate],
) -> Vec<TypeCounts> {
    type Mentions<'a> = Vec<(usize, &'a [String])>;
    let before: Mentions<'_> = gold
        .sentences()
        .flat_map(|one| one.mentions.iter().map(move |m| (one, m)))
        .map(|(one, m)| (m.entity_type.index(), &one.tokens[m.tokens.clone()]))
        .collect();
    let kept = candidates.iter().filter(|one| one.verdict.is_kept());
    let (text, drafts): (Vec<_>, Vec<_>) = kept.partition(|one| one.origin == Origin::Text);
    let of = |all: &[&'_ Candidate], at: usize| -> usize {
        all.iter().flat_map(|one| &one.mentions).filter(|(t, _)| *t == at).count()
    };
    let added = || drafts.iter().chain(&text).flat_map(|one| &one.mentions);
    let mut all: Vec<TypeCounts> = (0..names.len())
        .map(|at| {
            let own = before.iter().filter(|(t, _)| *t == at).map(|(_, tokens)| *tokens);
            let old: HashSet<&[String]> = own.clone().collect();
            let new = added().filter(|(t, _)| *t == at).map(|(_, tokens)| tokens.as_slice());
            let (gold, drafts, text) = (own.count(), of(&drafts, at), of(&text, at));
            TypeCounts {
                entity_type: names[at].clone(),
                gold,
                drafts,
                text,
                after: gold + drafts + text,
                distinct_before: old.len(),
                distinct_after: old.iter().copied().chain(new).collect::<HashSet<_>>().len(),
            }
        })
        .collect();
    all.sort_by(|a, b| b.gold.cmp(&a.gold).then_with(|| a.entity_type.cmp(&b.entity_type)));
    all
}

impl Choices {
    /// Counts the candidates that the page shows. `total` is the number of candidates in the folder.
    pub(crate) fn new(candidates: &[Candidate], names: &[String], total: usize) -> Self {
        let mut all = Self { total, shown: candidates.len(), ..Self::default() };
        for one in candidates {
            for at in one.entity_types() {
                *all.by_type.entry(names[at].clone()).or_default() += 1;
            }
            *all.by_origin.entry(one.origin.name().to_owned()).or_default() += 1;
            *all.by_verdict.entry(verdict_name(one.verdict).to_owned()).or_default() += 1;
            *all.by_round.entry(one.round).or_default() += 1;
        }
        all
    }
}

impl Highlights {
    /// Chooses kept candidates. Each source has at most one candidate in each list.
    pub(crate) fn new(candidates: &[Candidate]) -> Self {
        let kept = || candidates.iter().filter(|one| one.verdict.is_kept());
        let mut improbable: Vec<_> = kept().filter(|one| one.probability.is_some()).collect();
        improbable.sort_by(|a, b| a.probability.partial_cmp(&b.probability).expect("finite"));
        let mut novel: Vec<_> = kept().filter(|one| one.n_new > 0).collect();
        novel.sort_by(|a, b| {
            b.novelty().total_cmp(&a.novelty()).then_with(|| b.n_new.cmp(&a.n_new))
        });
        Self { least_probable: first_of_each(&improbable), most_novel: first_of_each(&novel) }
    }
}

fn first_of_each(candidates: &[&Candidate]) -> Vec<String> {
    let mut seen = BTreeSet::new();
    let new = candidates.iter().filter(|one| one.source.is_none() || seen.insert(&one.place));
    new.take(N_HIGHLIGHTS).map(|one| one.id.clone()).collect()
}

/// Returns `n` of the candidates, evenly spread over their order. The candidates of `always` are among them.
pub(crate) fn sample(candidates: Vec<Candidate>, n: usize, always: &Highlights) -> Vec<Candidate> {
    let total = candidates.len();
    if total <= n {
        return candidates;
    }
    let must: HashSet<&String> = always.least_probable.iter().chain(&always.most_novel).collect();
    let n_must = candidates.iter().filter(|one| must.contains(&one.id)).count();
    let (n_other, n_free) = (total - n_must, n.saturating_sub(n_must));
    let (mut taken, mut n_seen) = (Vec::with_capacity(n), 0);
    for one in candidates {
        let is_must = must.contains(&one.id);
        n_seen += usize::from(!is_must);
        // Takes a candidate whenever the share of seen candidates reaches the next place.
        if is_must || n_seen * n_free / n_other > (n_seen - 1) * n_free / n_other {
            taken.push(one);
        }
    }
    taken
}

#[cfg(test)]
mod tests {
    use super::*;

    fn candidate(id: usize) -> Candidate {
        Candidate {
            id: id.to_string(),
            origin: Origin::Rewritten,
            place: format!("sentence {}", id / 2),
            round: 1,
            verdict: if id.is_multiple_of(3) { Verdict::Disagrees } else { Verdict::Kept },
            probability: Some(1.0 / (id + 1) as f64),
            n_mentions: 4,
            n_new: id % 5,
            segments: Vec::new(),
            source: Some(Vec::new()),
            objections: Vec::new(),
            mentions: Vec::new(),
        }
    }

    #[test]
    fn a_sample_is_spread_and_contains_the_highlights() {
        let all: Vec<_> = (0..100).map(candidate).collect();
        let highlights = Highlights::new(&all);
        // The least probable candidates are the last ones, one of each pair, and none of the rejected ones.
        assert_eq!(highlights.least_probable[..3], ["98", "97", "95"]);
        assert_eq!(highlights.most_novel.len(), 10);
        let taken = sample(all.clone(), 40, &highlights);
        assert_eq!(taken.len(), 40);
        let has = |id: &String| taken.iter().any(|one| one.id == *id);
        assert!(highlights.least_probable.iter().chain(&highlights.most_novel).all(has));
        assert!(taken.iter().take(20).any(|one| one.id.parse::<usize>().unwrap() > 35));
        assert_eq!(sample(all.clone(), 100, &highlights), all);
    }

    #[test]
    fn a_funnel_adds_up() {
        let all: Vec<_> = (0..10).map(candidate).collect();
        let run = serde_json::json!({ "drafts": { "dropped": { "no-mention": 3 } } });
        let funnels = funnels(&all, &run);
        let [funnel] = &funnels[..] else { panic!("one funnel") };
        let sum = |kind| -> usize {
            funnel.steps.iter().filter(|step| step.kind == kind).map(|step| step.count).sum()
        };
        assert_eq!(sum(StepKind::Start), 13);
        assert_eq!((sum(StepKind::Lost), sum(StepKind::Kept)), (7, 6));
    }
}
