//! Makes the drafts of one round of code-mixing.

use std::collections::HashMap;

use melm_text::{Corpus, EntityType, Language, Sentence, Token};

use super::{CodemixSettings, Lexicon, LexiconCounts, MentionVectors, NearestMention};
use crate::Error;
use crate::draft::{Donor, Draft, Novelty, Verdict};
use crate::methods::substitute_mentions;
use crate::random::{Generator, Seed, StreamKey};
use crate::stage::OnProgress;

/// How the mention that replaces another is chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DonorChoice {
    /// A random mention. All mentions are equally likely.
    Random,
    /// The mention with the highest cosine similarity, or a random mention if there is no vector to compare by.
    Similar,
}

/// The number of sentences between two progress reports.
const PROGRESS_STRIDE: usize = 32;

/// Returns the drafts whose verdict is [`Verdict::New`] as a corpus. Each sentence has only the columns token and
/// tag, and a comment `# language = …`.
pub fn new_sentences(corpus: &Corpus, drafts: &[Draft]) -> Corpus {
    let new = drafts.iter().filter(|draft| draft.verdict == Verdict::New).map(|draft| {
        let sentence = draft.sentence.clone().without_columns();
        let language = sentence.language().map(|language| &corpus.languages()[language.index()]);
        let comment = language.map(|part| format!("# language = {}", part.code).into());
        sentence.with_comments(comment.into_iter().collect())
    });
    Corpus::new(corpus.types().clone(), corpus.scheme(), new.collect())
        .expect("drafts are valid in the scheme of their corpus")
}

/// Makes code-mixed drafts of a corpus of several languages.
pub struct Codemix<'a> {
    corpus: &'a Corpus,
    lexicon: Lexicon,
    choice: DonorChoice,
    settings: CodemixSettings,
    /// Caches the results of searches, because the same mention may be drawn in many sentences and rounds.
    searched: HashMap<(Language, EntityType, usize, Language), Option<NearestMention>>,
}

impl<'a> Codemix<'a> {
    /// Collects the mentions of a corpus. `vectors` are used only if donors are chosen by similarity.
    ///
    /// Fails if the corpus has fewer than two languages.
    pub fn new(
        corpus: &'a Corpus,
        choice: DonorChoice,
        vectors: Option<&MentionVectors>,
        settings: CodemixSettings,
    ) -> Result<Self, Error> {
        if corpus.languages().len() < 2 {
            return Err(Error::OneLanguage);
        }
        let vectors = vectors.filter(|_| choice == DonorChoice::Similar);
        let lexicon = Lexicon::new(corpus, vectors);
        Ok(Self { corpus, lexicon, choice, settings, searched: HashMap::new() })
    }

    /// The number of words and mentions without vectors.
    pub fn counts(&self) -> &LexiconCounts {
        self.lexicon.counts()
    }

    /// Makes the drafts of several rounds. Marks the drafts that repeat a sentence of the corpus or an earlier draft.
    ///
    /// `on_progress` receives the number of sentences done and their total, over all rounds. Fails with
    /// [`Error::Interrupted`] if `on_progress` asks to stop.
    pub fn rounds(
        &mut self,
        seed: Seed,
        n_rounds: u32,
        on_progress: OnProgress<'_>,
    ) -> Result<Vec<Draft>, Error> {
        let key = seed.stream("codemix");
        let mut novelty = Novelty::new(self.corpus);
        let mut all = Vec::new();
        for round in 1..=n_rounds {
            let drafts = self.round(key, round, &mut |done, n_sentences| {
                let before = u64::from(round - 1) * n_sentences;
                on_progress(before + done, u64::from(n_rounds) * n_sentences)
            })?;
            for mut draft in drafts {
                draft.seed = seed.0;
                draft.verdict = novelty.record(&draft);
                all.push(draft);
            }
        }
        Ok(all)
    }

    /// Makes one draft of every sentence with a mention that can be replaced, in the order of the corpus.
    ///
    /// `on_progress` receives the number of sentences done and their total. Fails with [`Error::Interrupted`] if
    /// `on_progress` asks to stop.
    pub fn round(
        &mut self,
        key: StreamKey,
        round: u32,
        on_progress: OnProgress<'_>,
    ) -> Result<Vec<Draft>, Error> {
        let key = key.at(u64::from(round));
        let corpus = self.corpus;
        let mut drafts = Vec::new();
        for (source, sentence) in corpus.sentences().iter().enumerate() {
            if source % PROGRESS_STRIDE == 0 {
                on_progress(source as u64, corpus.sentences().len() as u64).or_interrupted()?;
            }
            let Some(language) = sentence.language() else { continue };
            let mut generator = key.at(source as u64).generator();
            let chosen = self.choose(sentence, language, &mut generator);
            if chosen.iter().any(Option::is_some) {
                let donors: Vec<_> =
                    chosen.iter().map(|one| one.as_ref().map(|(donor, _)| donor.clone())).collect();
                let mut draft = substitute_mentions(corpus, source, round, &donors);
                let cosines = chosen.into_iter().flatten().map(|(_, cosine)| cosine);
                for (replacement, cosine) in draft.replacements.iter_mut().zip(cosines) {
                    replacement.similarity = cosine;
                }
                drafts.push(draft);
            }
        }
        Ok(drafts)
    }

    /// Chooses a replacement for each mention of a sentence. `None` keeps the mention. A replacement that was chosen
    /// by similarity comes with its cosine.
    fn choose(
        &mut self,
        sentence: &Sentence,
        language: Language,
        generator: &mut Generator,
    ) -> Vec<Option<(Donor, Option<f32>)>> {
        let mentions: Vec<_> = sentence.mentions().collect();
        let others: Vec<_> =
            mentions.iter().map(|m| self.lexicon.others(language, m.entity_type)).collect();
        let can: Vec<usize> = (0..mentions.len()).filter(|at| !others[*at].is_empty()).collect();
        let mut drawn: Vec<usize> = can.clone();
        drawn.retain(|_| generator.uniform() < self.settings.rate.value());
        if drawn.is_empty() && !can.is_empty() {
            drawn.push(can[generator.below(can.len())]);
        }
        let mut chosen = vec![None; mentions.len()];
        for at in drawn {
            let entity_type = mentions[at].entity_type;
            let target = others[at][generator.below(others[at].len())];
            let tokens = &sentence.tokens()[mentions[at].tokens.clone()];
            let similar = self.search(language, entity_type, tokens, target);
            let entries = self.lexicon.entries(target, entity_type);
            let entry = similar.map_or_else(|| generator.below(entries.len()), |found| found.entry);
            let donor =
                Donor { sentence: entries[entry].sentence, tokens: entries[entry].tokens.clone() };
            chosen[at] = Some((donor, similar.map(|found| found.cosine)));
        }
        chosen
    }

    fn search(
        &mut self,
        language: Language,
        entity_type: EntityType,
        tokens: &[Token],
        target: Language,
    ) -> Option<NearestMention> {
        if self.choice == DonorChoice::Random {
            return None;
        }
        let lexicon = &self.lexicon;
        let entry = lexicon.find(language, entity_type, tokens)?;
        let search = || lexicon.nearest(language, entity_type, entry, target);
        *self.searched.entry((language, entity_type, entry, target)).or_insert_with(search)
    }
}
