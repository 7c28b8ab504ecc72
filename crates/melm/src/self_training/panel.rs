//! A panel of taggers: trains them and collects their votes.

use std::num::NonZeroU64;

use melm_nn::device::Device;
use melm_text::{Corpus, Mention, Sentence, Tag, mentions};

use super::folds::Folds;
use super::metrics::save_metrics;
use super::vote::{TaggerVotes, Vote, VoteKey, VoteStore};
use super::{
    Decision, LabelledText, SelfTrainingData, TextCandidate, decide, decide_given, training_set,
};
use crate::Error;
use crate::draft::Verdict;
use crate::files::{Fingerprint, remove};
use crate::models::Pretrained;
use crate::plan::Plan;
use crate::stage::{Run, observe_part};
use crate::tagger::{TaggedSentence, TaggerModel, TaggerSettings};
use crate::training::{Budget, EvaluationInterval};

/// The number of dev evaluations of a tagger whose budget is in updates.
const EVALUATIONS: u64 = 10;

/// The number of sentences that a tagger labels between two progress reports.
const CHUNK: usize = 256;

/// The votes of one tagger.
pub(super) struct Ballot {
    /// The indices of the sentences that the tagger votes on.
    sentences: Vec<usize>,
    /// The vote for each of these sentences.
    votes: TaggerVotes,
}

/// Trains panels and lets them vote on a text.
pub(super) struct Panel<'a, 's> {
    data: SelfTrainingData<'a>,
    plan: &'a Plan,
    tagger: &'a Pretrained,
    device: &'a Device,
    store: &'s mut dyn VoteStore,
    settings: TaggerSettings,
    /// The indices of the sentences that fit into the model.
    fitting: Vec<usize>,
    /// The hash of everything except the training set that the votes depend on.
    fingerprint: Fingerprint,
}

impl<'a, 's> Panel<'a, 's> {
    pub(super) fn new(
        data: SelfTrainingData<'a>,
        plan: &'a Plan,
        tagger: &'a Pretrained,
        device: &'a Device,
        store: &'s mut dyn VoteStore,
    ) -> Result<Self, Error> {
        let settings = tagger_settings(plan);
        let fitting = find_fitting(data.text, tagger)?;
        let mut fingerprint = Fingerprint::default();
        let described = toml::to_string(&settings).expect("settings are a table");
        fingerprint.add(described.as_bytes());
        for sentence in data.gold.dev.iter().flat_map(|dev| dev.sentences()) {
            add_tokens(sentence, &mut fingerprint);
            add_mentions(sentence, &mut fingerprint);
        }
        Ok(Self { data, plan, tagger, device, store, settings, fitting, fingerprint })
    }

    /// Trains the panel of a pass and lets it vote on the sentences that fit. `labelled` are the labels of the pass
    /// before.
    pub(super) fn vote(
        &mut self,
        pass: u32,
        labelled: &LabelledText,
        run: &mut Run<'_>,
    ) -> Result<Vec<Ballot>, Error> {
        let settings = &self.plan.self_training;
        let n_panel = settings.panel.get();
        let folds = self.folds(pass);
        let (mut ballots, mut missing) = (Vec::new(), Vec::new());
        for fold in 0..folds.count {
            let is_held_out = |number: usize| folds.is_held_out(number, fold);
            let train = training_set(self.data, settings, labelled, &is_held_out);
            let mut sentences = self.fitting.clone();
            sentences.retain(|number| folds.votes_on(*number, fold));
            let content = self.hash_with(&train, &sentences);
            for tagger in (1..=n_panel).filter(|number| (number - 1) % folds.count == fold) {
                let key = VoteKey { pass, tagger, content: content.clone() };
                let known = self.store.load(&key).filter(|votes| self.fit(votes, &sentences));
                let votes = if let Some(votes) = known {
                    votes
                } else if !self.store.is_own(&key) {
                    missing.push(tagger);
                    continue;
                } else {
                    let n_before = u64::from(pass - 1) * n_panel as u64 + ballots.len() as u64;
                    let votes = self.train_and_vote(&key, &train, &sentences, n_before, run)?;
                    self.store.save(&key, &votes)?;
                    votes
                };
                ballots.push(Ballot { sentences: sentences.clone(), votes });
            }
        }
        if !missing.is_empty() {
            return Err(Error::VotesMissing { pass, taggers: missing });
        }
        Ok(ballots)
    }

    /// Returns how the text is cut into parts in a pass.
    fn folds(&self, pass: u32) -> Folds {
        Folds::new(self.plan, pass, self.data.given.len(), self.data.text.len())
    }

    /// Returns what the first panel may learn from: the sentences with given mentions, if they are cut into parts.
    pub(super) fn given_labels(&self) -> LabelledText {
        if self.folds(1).count == 1 {
            return LabelledText::default();
        }
        let scheme = self.data.gold.train.scheme();
        let given = self.data.given.iter().zip(self.data.text).enumerate();
        let given = given.filter(|(_, (given, _))| !given.mentions.is_empty());
        let candidates = given.map(|(number, (given, sentence))| TextCandidate {
            sentence: sentence.clone().with_mentions(given.mentions.clone(), scheme),
            number,
            pass: 0,
            first_token: 0,
            votes: 0,
            n_taggers: 0,
            probabilities: Vec::new(),
            proposed: Vec::new(),
            verdict: Verdict::Kept,
        });
        LabelledText { candidates: candidates.collect(), passes: Vec::new() }
    }

    /// Returns true if stored votes can be votes on these sentences.
    fn fit(&self, votes: &TaggerVotes, sentences: &[usize]) -> bool {
        let n_tokens = |at: &usize| self.data.text[*at].tokens().len();
        votes.len() == sentences.len()
            && sentences.iter().zip(votes).all(|(at, vote)| vote.fits(n_tokens(at)))
    }

    /// Returns the hash of everything that the votes of a tagger depend on, except its seed.
    fn hash_with(&self, train: &Corpus, sentences: &[usize]) -> String {
        let mut fingerprint = self.fingerprint.clone();
        for at in sentences {
            add_tokens(&self.data.text[*at], &mut fingerprint);
        }
        for sentence in train.sentences() {
            add_tokens(sentence, &mut fingerprint);
            add_mentions(sentence, &mut fingerprint);
        }
        fingerprint.finish()
    }

    /// Trains one tagger and returns its votes. `n_before` taggers were trained before it, in all passes. Its saved training
    /// state is removed afterwards, because only the votes are needed.
    fn train_and_vote(
        &self,
        key: &VoteKey,
        train: &Corpus,
        sentences: &[usize],
        n_before: u64,
        run: &mut Run<'_>,
    ) -> Result<TaggerVotes, Error> {
        let settings = &self.plan.self_training;
        let n_all = u64::from(settings.passes.get()) * settings.panel.get() as u64;
        let stream = format!("panel {} {}", key.pass, key.tagger);
        let all = run.folder.as_ref().map(|folder| folder.join("panel"));
        // The name contains the hash of the training set, so that the state of another training is never resumed.
        let name = format!("{}-{}-{}", key.pass, key.tagger, key.content);
        let folder = all.as_ref().map(|all| all.join(name));
        let trained = {
            let mut observer = observe_part(&mut *run.observer, n_before, n_all);
            let mut own = Run { seed: run.seed, folder, observer: &mut observer };
            let stage = &mut own.stage_as("panel", &stream);
            let dev = self.data.gold.dev;
            TaggerModel::train(self.tagger, train, dev, &self.settings, self.device, stage)?
        };
        let votes = self.collect_votes(&trained.tagger, sentences, run)?;
        if let Some(stages) = run.folder.as_deref() {
            save_metrics(stages, key, &trained.outcome.epochs)?;
        }
        all.map_or(Ok(()), |path| remove(&path))?;
        Ok(votes)
    }

    fn collect_votes(
        &self,
        tagger: &TaggerModel,
        sentences: &[usize],
        run: &mut Run<'_>,
    ) -> Result<TaggerVotes, Error> {
        let stage = &mut run.stage("label");
        let types = self.data.gold.train.types();
        let (mut done, total) = (0, sentences.len() as u64);
        let mut votes = Vec::with_capacity(sentences.len());
        for chunk in sentences.chunks(CHUNK) {
            let tokens: Vec<Vec<&str>> = chunk
                .iter()
                .map(|at| self.data.text[*at].tokens().iter().map(AsRef::as_ref).collect())
                .collect();
            let mut found = vec![None; chunk.len()];
            let mut on_tagged = |at: usize, tagged: TaggedSentence| {
                let known = tagger.tags().types();
                let own = |mention: Mention| {
                    let name = known.name(mention.entity_type);
                    let entity_type = types.find(name).expect("it was trained with these types");
                    Mention { entity_type, ..mention }
                };
                let mentions = mentions(&tagged.tags).map(own).collect();
                found[at] = Some(Vote { mentions, log_probability: tagged.log_probability });
            };
            tagger
                .tag_batches(self.device.into(), &tokens, &mut on_tagged, &mut || stage.batch())?;
            votes.extend(found.into_iter().map(|vote| vote.expect("every sentence is tagged")));
            done += chunk.len() as u64;
            stage.progress(done, total)?;
        }
        Ok(votes)
    }

    /// Combines the votes into one candidate for each sentence of the text.
    pub(super) fn candidates(&self, pass: u32, ballots: &[Ballot]) -> Vec<TextCandidate> {
        let mut by_sentence: Vec<Vec<&Vote>> = vec![Vec::new(); self.data.text.len()];
        for ballot in ballots {
            for (at, vote) in ballot.sentences.iter().zip(&ballot.votes) {
                by_sentence[*at].push(vote);
            }
        }
        let numbered = by_sentence.iter().enumerate();
        numbered.map(|(number, votes)| self.candidate(pass, number, votes)).collect()
    }

    fn candidate(&self, pass: u32, number: usize, votes: &[&Vote]) -> TextCandidate {
        let sentence = &self.data.text[number];
        let scheme = self.data.gold.train.scheme();
        let n_tokens = sentence.tokens().len();
        let (settings, silver) = (&self.plan.self_training, self.plan.silver);
        let decision = match self.data.given.get(number) {
            _ if votes.is_empty() => Decision::too_long(n_tokens),
            Some(given) => decide_given(votes, n_tokens, &given.mentions, settings, silver),
            None => decide(votes, n_tokens, settings),
        };
        let Decision { mentions, tokens, votes: n_votes, proposed, verdict } = decision;
        let first_token = tokens.start;
        let part = if tokens.len() == n_tokens || tokens.is_empty() {
            sentence.clone()
        } else {
            take_part(sentence, tokens)
        };
        let moved = mentions.into_iter().map(|mention| Mention {
            tokens: mention.tokens.start - first_token..mention.tokens.end - first_token,
            ..mention
        });
        TextCandidate {
            sentence: part.with_mentions(moved.collect::<Vec<_>>(), scheme),
            number,
            pass,
            first_token,
            votes: n_votes,
            n_taggers: votes.len(),
            probabilities: votes.iter().map(|vote| vote.log_probability.exp()).collect(),
            proposed,
            verdict,
        }
    }
}

/// Returns some tokens of a sentence, without tags.
fn take_part(sentence: &Sentence, tokens: std::ops::Range<usize>) -> Sentence {
    let tags = vec![Tag::Outside; tokens.len()];
    let part = Sentence::new(sentence.tokens()[tokens].to_vec(), tags).expect("it has tokens");
    match sentence.language() {
        Some(language) => part.with_language(language),
        None => part,
    }
}

/// The settings of the taggers of a panel.
pub(crate) fn tagger_settings(plan: &Plan) -> TaggerSettings {
    let mut settings = plan.tagger.clone();
    settings.training.budget = plan.self_training.budget;
    if let Budget::Updates(updates) = settings.training.budget {
        let interval = NonZeroU64::new(updates.get() / EVALUATIONS).unwrap_or(NonZeroU64::MIN);
        settings.training.evaluate_every = EvaluationInterval::updates(interval);
    }
    settings
}

/// Returns the indices of the sentences that fit into one window of the model. Longer ones are not labelled.
fn find_fitting(text: &[Sentence], pretrained: &Pretrained) -> Result<Vec<usize>, Error> {
    let tokenizer = pretrained.tokenizer();
    // Both numbers include the pieces that begin and end a sentence.
    let limit = pretrained.checkpoint().config().max_pieces();
    let mut fitting = Vec::new();
    for (at, sentence) in text.iter().enumerate() {
        if tokenizer.encode(sentence.tokens())?.pieces.len() <= limit {
            fitting.push(at);
        }
    }
    Ok(fitting)
}

fn add_tokens(sentence: &Sentence, fingerprint: &mut Fingerprint) {
    fingerprint.add(&(sentence.tokens().len() as u64).to_le_bytes());
    for token in sentence.tokens() {
        fingerprint.add(token.as_str().as_bytes());
    }
}

fn add_mentions(sentence: &Sentence, fingerprint: &mut Fingerprint) {
    for Mention { entity_type, tokens } in sentence.mentions() {
        let numbers = [tokens.start, tokens.end, entity_type.index()];
        for n in numbers {
            fingerprint.add(&(n as u64).to_le_bytes());
        }
    }
}

impl Decision {
    /// The decision about a sentence that is too long for the model.
    fn too_long(n_tokens: usize) -> Self {
        let (mentions, proposed) = (Vec::new(), Vec::new());
        Self { mentions, tokens: 0..n_tokens, votes: 0, proposed, verdict: Verdict::TooLong }
    }
}
