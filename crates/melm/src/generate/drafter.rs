//! One round of generation: masks pieces, fills them, and spells the new tokens.

use std::borrow::Cow;
use std::collections::HashMap;

use melm_nn::device::Device;
use melm_text::{Corpus, Sentence, Token};

use super::GenerateSettings;
use super::candidates::{Candidates, MaskedPiece};
use super::fill::{FillContext, FillTask, Filler, steps};
use super::repeats::repeat_checks;
use super::score::{MentionScorer, ScoreContext};
use super::script::Scripts;
use super::spell::{FilledToken, spell_token};
use super::whole_words::collapse;
use crate::Error;
use crate::draft::{Draft, GuessedPiece, Replacement};
use crate::entity_lm::EntityLm;
use crate::linearize::{EntityToken, Linearized, LinearizedCorpus};
use crate::pieces::Tokenizer;
use crate::random::StreamKey;
use crate::stage::OnProgress;

/// The result of a round.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Round {
    /// One draft for each linearized sentence, in the order of the sources. Duplicates are not removed.
    pub drafts: Vec<Draft>,
    /// The number of tokens that kept their source text because the chosen pieces did not spell a valid token.
    pub n_restored: usize,
}

/// Generates drafts with a fine-tuned model.
///
/// Contains the model and everything that is derived from its vocabulary, so that the tables are built once for all
/// rounds.
pub struct Drafter {
    lm: EntityLm,
    settings: GenerateSettings,
    candidates: Candidates,
    filler: Filler,
    scorer: MentionScorer,
}

impl Drafter {
    /// Creates a drafter and builds its tables over the vocabulary of `lm`.
    pub fn new(lm: EntityLm, settings: GenerateSettings) -> Self {
        let candidates = Candidates::new(&lm, &settings);
        let filler = Filler::new(lm.model().config());
        let scorer = MentionScorer::new(lm.model().config());
        Self { lm, settings, candidates, filler, scorer }
    }

    /// The model.
    pub fn lm(&self) -> &EntityLm {
        &self.lm
    }

    /// The settings.
    pub(crate) fn settings(&self) -> &GenerateSettings {
        &self.settings
    }

    /// Returns the number of entity tokens that no round can mask, because the model has no pieces for them.
    pub(crate) fn n_unmaskable(&self, linearized: &LinearizedCorpus) -> usize {
        self.lm.masker().n_unmaskable(&linearized.windows, self.settings.effective_mask().unit)
    }

    /// Generates one draft for each linearized sentence of `corpus`. Fails with [`Error::Interrupted`] if
    /// `on_progress` asks to stop.
    ///
    /// `linearized` must be `corpus` as linearized by this drafter's model. The random draws for a sentence depend
    /// only on `key`, the round and the position of the sentence.
    pub fn round(
        &mut self,
        device: &Device,
        corpus: &Corpus,
        linearized: &LinearizedCorpus,
        key: StreamKey,
        round: u32,
        on_progress: OnProgress<'_>,
    ) -> Result<Round, Error> {
        let key = key.at(u64::from(round));
        let windows = linearized.windows.iter();
        let mut tasks: Vec<_> = windows
            .map(|window| self.mask(&corpus.sentences()[window.sentence], window, key))
            .collect();
        let total = tasks.iter().filter(|task| !task.chosen.is_empty()).count() as u64;
        let mut done = 0;
        let mut count = |n: usize| {
            done += n as u64;
            on_progress(done, total)
        };
        let context = FillContext {
            device,
            model: self.lm.model(),
            tokenizer: self.lm.tokenizer(),
            settings: &self.settings,
            sets: self.candidates.sets(),
        };
        self.filler.fill(&context, &mut tasks, &mut count)?;
        let scores = self.score(device, &tasks)?;
        let mut result = Round::default();
        let mut first = 0;
        for windows in tasks.chunk_by(|a, b| a.window.sentence == b.window.sentence) {
            let source = windows[0].window.sentence;
            let (sentence, mut replacements, n_restored) =
                self.compose(&corpus.sentences()[source], windows);
            for replacement in &mut replacements {
                let mut own = first..first + windows.len();
                replacement.score =
                    own.find_map(|task| scores.get(&(task, replacement.mention)).copied());
            }
            first += windows.len();
            result.n_restored += n_restored;
            let draft = Draft::new(sentence, source, round, replacements);
            result.drafts.push(Draft { n_restored, ..draft });
        }
        Ok(result)
    }

    /// Scores the rewritten mentions, by the index of their task and of the mention. Empty if the settings ask for no
    /// scores.
    fn score(
        &mut self,
        device: &Device,
        tasks: &[FillTask<'_>],
    ) -> Result<HashMap<(usize, usize), f64>, Error> {
        if !self.settings.has_scores() {
            return Ok(HashMap::new());
        }
        let context = ScoreContext {
            device,
            model: self.lm.model(),
            mask: self.lm.tokenizer().specials().mask,
            pieces_per_batch: self.settings.pieces_per_batch.get(),
        };
        self.scorer.score(&context, tasks)
    }

    /// Masks a window and finds the candidates of each masked position.
    fn mask<'w>(
        &mut self,
        sentence: &Sentence,
        source: &'w Linearized,
        key: StreamKey,
    ) -> FillTask<'w> {
        let tokenizer = self.lm.tokenizer();
        let settings = self.settings.effective_mask();
        let masked = self.lm.masker().mask_for_generation(source, &settings, key.then("mask"));
        let (window, masked) = if self.settings.whole_words {
            let (window, masked) = collapse(source, &masked, tokenizer.specials().mask);
            (Cow::Owned(window), masked)
        } else {
            (Cow::Borrowed(source), masked)
        };
        let mut entities = window.entities.iter().peekable();
        let mut set_of = Vec::with_capacity(masked.positions.len());
        for (position, original) in masked.positions.iter().zip(&masked.originals) {
            while entities.next_if(|entity| entity.piece_range.end <= *position).is_some() {}
            let entity = entities.peek().expect("masked positions are in entity tokens, in order");
            let begins_word =
                *position == entity.piece_range.start || tokenizer.is_word_initial(*original);
            let stands_alone = match entity.piece_range.len() {
                1 => None,
                _ => tokenizer.stands_alone(*original),
            };
            let token = sentence.tokens()[entity.token].as_str();
            let text = if self.settings.whole_words {
                Some(Cow::Borrowed(token))
            } else {
                tokenizer.text(*original).map(Cow::Owned)
            };
            let piece = MaskedPiece { begins_word, stands_alone, text: text.as_deref() };
            let sentence_scripts = || Scripts::from_sentence(sentence);
            let constraint = self.candidates.constraint(&piece, token, sentence_scripts);
            set_of.push(self.candidates.set_for(constraint));
        }
        let chosen = vec![None; set_of.len()];
        let step_of = steps(&window, &masked, self.settings.order);
        let repeat_checks = repeat_checks(sentence, &window, &masked, &self.settings);
        let generator = source.stream(key.then("choose")).generator();
        FillTask { source, window, masked, set_of, step_of, repeat_checks, generator, chosen }
    }

    /// Builds a draft from the filled windows of one source sentence. Returns the sentence, its replacements, and the
    /// number of tokens that were restored from the source.
    fn compose(
        &self,
        source: &Sentence,
        windows: &[FillTask<'_>],
    ) -> (Sentence, Vec<Replacement>, usize) {
        let (mut new_tokens, mut n_restored) = (Vec::new(), 0);
        let mut guessed: Vec<(usize, GuessedPiece)> = Vec::new();
        for task in windows {
            for entity in &task.window.entities {
                match self.spell(task, entity, &source.tokens()[entity.token]) {
                    SpelledToken::Unchanged => {}
                    SpelledToken::New(token) => new_tokens.push((entity.token, token)),
                    SpelledToken::Invalid => {
                        n_restored += 1;
                        continue;
                    }
                }
                let pieces = guessed_pieces(self.lm.tokenizer(), task, entity);
                guessed.extend(pieces.map(|piece| (entity.mention, piece)));
            }
        }
        let sentence = source.with_tokens(new_tokens);
        let replacements = group_by_mention(source, &sentence, guessed);
        (sentence, replacements, n_restored)
    }

    fn spell(&self, task: &FillTask<'_>, entity: &EntityToken, old: &Token) -> SpelledToken {
        let filled = FilledToken {
            source: old,
            old_pieces: &task.window.pieces[entity.piece_range.clone()],
            new_pieces: &task.masked.pieces[entity.piece_range.clone()],
        };
        // The pieces of an unchanged token may spell it in another Unicode normal form. Such a token is copied
        // instead.
        if filled.new_pieces == filled.old_pieces {
            return SpelledToken::Unchanged;
        }
        spell_token(self.lm.tokenizer(), &filled, &self.settings.banned)
            .map_or(SpelledToken::Invalid, SpelledToken::New)
    }
}

/// The result of spelling an entity token from its filled pieces.
enum SpelledToken {
    /// All pieces are those of the source.
    Unchanged,
    New(Token),
    /// The pieces do not spell a valid token.
    Invalid,
}

/// Returns the pieces that were chosen for one token.
fn guessed_pieces<'t>(
    tokenizer: &'t Tokenizer,
    task: &'t FillTask<'_>,
    entity: &'t EntityToken,
) -> impl Iterator<Item = GuessedPiece> + 't {
    let masked = task.masked.positions.iter().zip(&task.masked.originals).zip(&task.chosen);
    masked.filter_map(move |((position, original), chosen)| {
        let chosen = chosen.as_ref().filter(|_| entity.piece_range.contains(position))?;
        Some(GuessedPiece {
            token: entity.token,
            position: position - entity.piece_range.start,
            old: old_pieces(tokenizer, task, entity.token, *original),
            new: tokenizer.piece(chosen.candidate.piece).to_owned(),
            rank: chosen.rank,
            log_probability: chosen.candidate.log_probability,
        })
    })
}

/// Returns the masked piece of a token, as the vocabulary writes it, or all pieces of the token if they became one `<mask>`.
fn old_pieces(tokenizer: &Tokenizer, task: &FillTask<'_>, token: usize, original: u32) -> String {
    if original != tokenizer.specials().mask {
        return tokenizer.piece(original).to_owned();
    }
    let range = task.source.piece_ranges[token - task.source.tokens.start].clone();
    task.source.pieces[range].iter().map(|piece| tokenizer.piece(*piece)).collect()
}

/// Groups the chosen pieces of a draft into one replacement for each mention. Each piece comes with the index of its
/// mention.
fn group_by_mention(
    source: &Sentence,
    draft: &Sentence,
    mut guessed: Vec<(usize, GuessedPiece)>,
) -> Vec<Replacement> {
    let mut replacements = Vec::new();
    for (number, mention) in source.mentions().enumerate() {
        let pieces: Vec<_> =
            guessed.extract_if(.., |(of, _)| *of == number).map(|(_, piece)| piece).collect();
        if !pieces.is_empty() {
            replacements.push(Replacement {
                mention: number,
                old: source.tokens()[mention.tokens.clone()].to_vec(),
                new: draft.tokens()[mention.tokens.clone()].to_vec(),
                tokens: mention.tokens,
                entity_type: mention.entity_type,
                pieces,
                donor: None,
                name: None,
                similarity: None,
                score: None,
            });
        }
    }
    replacements
}
