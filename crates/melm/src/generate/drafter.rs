//! One round of generation: mask, guess, spell.

use std::ops::ControlFlow;

use melm_nn::device::Device;
use melm_nn::mlm::MaskedLm;
use melm_text::{Corpus, Sentence, Token};

use super::GenerateSettings;
use super::candidates::Candidates;
use super::fill::{Filler, Task};
use super::look::Scripts;
use super::spell::Speller;
use crate::Error;
use crate::draft::{Draft, GuessedPiece, Replacement};
use crate::linearize::{EntityToken, Linearized, LinearizedCorpus};
use crate::mask::Masker;
use crate::pieces::{PieceKinds, Tokenizer};
use crate::run::Key;

/// How far a round is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// Windows filled by now.
    pub done: usize,
    /// Windows of the round that have something to fill.
    pub of: usize,
}

/// What a round brought forth.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Round {
    /// One draft for each linearized sentence, in the order of their sources, repetitions included.
    pub drafts: Vec<Draft>,
    /// Tokens whose guessed pieces spelled nothing sound, and that stayed as they were.
    pub n_restored: usize,
}

/// Generates drafts with a fine-tuned model.
pub struct Drafter<'a> {
    tokenizer: &'a Tokenizer,
    settings: &'a GenerateSettings,
    masker: Masker,
    candidates: Candidates,
    filler: Filler<'a>,
    speller: Speller<'a>,
}

impl<'a> Drafter<'a> {
    /// A drafter for a model and its tokenizer, which has the markers already.
    pub fn new(
        device: &'a Device,
        model: &'a MaskedLm,
        tokenizer: &'a Tokenizer,
        settings: &'a GenerateSettings,
    ) -> Self {
        let kinds = PieceKinds::of(tokenizer);
        let n_rows = model.config().vocab_size;
        Self {
            tokenizer,
            settings,
            candidates: Candidates::new(tokenizer, &kinds, settings, n_rows),
            masker: Masker::new(kinds),
            filler: Filler::new(device, model, settings),
            speller: Speller::new(tokenizer, &settings.banned),
        }
    }

    /// Generates one draft for each linearized sentence of `corpus`; `None` if `on_progress` stops it.
    ///
    /// What a sentence draws depends on `key`, the round and the sentence alone.
    pub fn round(
        &mut self,
        corpus: &Corpus,
        linearized: &LinearizedCorpus,
        key: Key,
        round: u32,
        on_progress: &mut dyn FnMut(Progress) -> ControlFlow<()>,
    ) -> Result<Option<Round>, Error> {
        let key = key.at(u64::from(round));
        let windows = linearized.windows.iter();
        let mut tasks: Vec<_> = windows
            .map(|window| self.task(&corpus.sentences()[window.sentence], window, key))
            .collect();
        let of = tasks.iter().filter(|task| !task.guesses.is_empty()).count();
        let mut done = 0;
        let mut count = |n: usize| {
            done += n;
            on_progress(Progress { done, of })
        };
        if self.filler.fill(&mut tasks, self.candidates.sets(), &mut count)?.is_break() {
            return Ok(None);
        }
        let mut result = Round::default();
        for windows in tasks.chunk_by(|a, b| a.window.sentence == b.window.sentence) {
            let source = windows[0].window.sentence;
            let (sentence, replacements, n_restored) =
                self.compose(&corpus.sentences()[source], windows);
            result.n_restored += n_restored;
            let draft = Draft::new(sentence, (source, round), replacements);
            result.drafts.push(Draft { n_restored, ..draft });
        }
        Ok(Some(result))
    }

    fn task<'w>(&mut self, sentence: &Sentence, window: &'w Linearized, key: Key) -> Task<'w> {
        let mask = &self.settings.mask;
        let masked = self.masker.for_generation(window, mask, key.then("mask"));
        let mut entities = window.entities.iter().peekable();
        let mut set_of = Vec::with_capacity(masked.positions.len());
        for (position, original) in masked.positions.iter().zip(&masked.originals) {
            while entities.next_if(|entity| entity.place.end <= *position).is_some() {}
            let entity = entities.peek().expect("masked positions are in entity tokens, in order");
            let begins_word =
                *position == entity.place.start || self.tokenizer.is_word_initial(*original);
            let text = self.tokenizer.text(*original);
            let token = sentence.tokens()[entity.token].as_str();
            let place =
                self.candidates.place(begins_word, text.as_deref(), token, || scripts(sentence));
            set_of.push(self.candidates.set_at(place));
        }
        let guesses = vec![None; set_of.len()];
        let generator = window.stream(key.then("choose")).generator();
        Task { window, masked, set_of, generator, guesses }
    }

    /// The source with its filled tokens, what was replaced, and how many tokens could not be spelled.
    fn compose(
        &self,
        source: &Sentence,
        windows: &[Task<'_>],
    ) -> (Sentence, Vec<Replacement>, usize) {
        let (mut new_tokens, mut n_restored) = (Vec::new(), 0);
        let mut guessed: Vec<(usize, GuessedPiece)> = Vec::new();
        for task in windows {
            for entity in &task.window.entities {
                let old = &source.tokens()[entity.token];
                let pieces = guessed_pieces(self.tokenizer, task, entity);
                match self.refill(task, entity, old) {
                    Filled::AsBefore => {}
                    Filled::With(token) => new_tokens.push((entity.token, token)),
                    Filled::Unsound => {
                        n_restored += 1;
                        continue;
                    }
                }
                guessed.extend(pieces.map(|piece| (entity.mention, piece)));
            }
        }
        let sentence = source.with_tokens(new_tokens);
        let replacements = replacements(source, &sentence, guessed);
        (sentence, replacements, n_restored)
    }

    fn refill(&self, task: &Task<'_>, entity: &EntityToken, old: &Token) -> Filled {
        let pieces = &task.masked.pieces[entity.place.clone()];
        // Pieces may spell their token in another normal form: what did not change is copied.
        if *pieces == task.window.pieces[entity.place.clone()] {
            return Filled::AsBefore;
        }
        self.speller.spell(pieces, old).map_or(Filled::Unsound, Filled::With)
    }
}

/// What became of an entity token.
enum Filled {
    AsBefore,
    With(Token),
    Unsound,
}

fn scripts(sentence: &Sentence) -> Scripts {
    let texts: Vec<_> = sentence.tokens().iter().map(Token::as_str).collect();
    Scripts::of(&texts.concat())
}

/// The guesses in one token.
fn guessed_pieces<'t>(
    tokenizer: &'t Tokenizer,
    task: &'t Task<'_>,
    entity: &'t EntityToken,
) -> impl Iterator<Item = GuessedPiece> + 't {
    let masked = task.masked.positions.iter().zip(&task.masked.originals).zip(&task.guesses);
    masked.filter_map(move |((position, original), guess)| {
        let guess = guess.as_ref().filter(|_| entity.place.contains(position))?;
        Some(GuessedPiece {
            token: entity.token,
            position: position - entity.place.start,
            old: tokenizer.piece(*original).to_owned(),
            new: tokenizer.piece(guess.candidate.piece).to_owned(),
            rank: guess.rank,
            log_probability: guess.candidate.log_probability,
        })
    })
}

/// The guesses of a draft by mention.
fn replacements(
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
                similarity: None,
            });
        }
    }
    replacements
}
