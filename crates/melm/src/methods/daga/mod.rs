//! DAGA (Ding et al. 2020): a language model of linearized sentences is trained from scratch and writes new sentences.
//!
//! A sentence becomes one sequence of words in which each entity token follows its tag (`B-PER Ada saw B-LOC Rome`).
//! An LSTM learns to predict the next word. New sentences are then sampled word by word from the LSTM. They have no
//! source: context and entities are new. Sentences that are invalid or not new are rejected and counted.
//!
//! Differences from the authors' code (ntunlp/daga): the optimizer is Adam instead of SGD; numbers are kept instead
//! of being replaced by `N`; a sentence that does not end within the maximum length is rejected instead of cut off; a
//! sentence that has a tag without a token is rejected, while the authors ignore the tag.

mod learn;
mod settings;
mod vocabulary;

pub use settings::{DagaSettings, UnknownTokens};

use std::ops::Range;

use melm_nn::device::{CpuDevice, Device};
use melm_nn::draw::draw;
use melm_nn::lstm::{LstmConfig, LstmLm, LstmTape};
use melm_text::{Corpus, Sentence};

use crate::Error;
use crate::augment::Gold;
use crate::methods::free_generation::{RejectReason, SentenceWriter};
use crate::random::{Generator, StreamKey};
use crate::stage::Stage;
use crate::training::{self, TrainingOutcome};
use learn::TrainingSet;
use vocabulary::{END, START, UNKNOWN, Vocabulary};

/// A trained language model that writes sentences.
pub(crate) struct Daga<'a> {
    model: LstmLm,
    vocabulary: Vocabulary,
    settings: &'a DagaSettings,
    device: CpuDevice<'a>,
}

impl<'a> Daga<'a> {
    /// Trains the language model on gold. Keeps the epoch with the lowest loss on dev, or the last epoch without a
    /// dev set.
    pub(crate) fn train(
        gold: Gold<'_>,
        settings: &'a DagaSettings,
        device: &'a Device,
        stage: &mut Stage<'_>,
    ) -> Result<(Self, TrainingOutcome), Error> {
        let min_count = settings.min_count.get();
        let vocabulary = Vocabulary::from_corpus(gold.train, min_count, settings.unknown);
        let linearize = |corpus: &Corpus| -> Vec<_> {
            let sentences = corpus.sentences().iter();
            sentences.map(|sentence| vocabulary.linearize(corpus, sentence)).collect()
        };
        #[expect(clippy::cast_possible_truncation, reason = "the precision of the engine")]
        let config = LstmConfig {
            vocab_size: vocabulary.len(),
            embedding_size: settings.embedding_size.get(),
            hidden_size: settings.hidden_size.get(),
            n_layers: settings.layers.get(),
            dropout: settings.dropout.value() as f32,
        };
        let seed = stage.key().then("weights").generator().bits();
        let train = linearize(gold.train);
        let mut set = TrainingSet {
            model: LstmLm::random(&config, seed)?,
            learns_unknown: train.iter().flatten().any(|id| *id == UNKNOWN),
            train,
            dev: gold.dev.map_or(Vec::new(), linearize),
            tape: LstmTape::default(),
        };
        let device = device.to_cpu();
        let outcome = training::train(&mut set, &settings.training, &device, stage)?;
        let daga = Self { model: set.model, vocabulary, settings, device };
        Ok((daga, outcome))
    }
}

impl SentenceWriter for Daga<'_> {
    const BATCH_SIZE: usize = 64;

    fn max_tries(&self) -> usize {
        self.settings.tries.get()
    }

    fn write(
        &self,
        key: StreamKey,
        tries: Range<usize>,
    ) -> Result<Vec<Result<Sentence, RejectReason>>, Error> {
        let n = tries.len();
        let mut generators: Vec<Generator> =
            tries.map(|number| key.at(number as u64).generator()).collect();
        let mut written = vec![Err(RejectReason::Unfinished); n];
        let (mut running, mut texts): (Vec<usize>, Vec<Vec<u32>>) =
            ((0..n).collect(), vec![Vec::new(); n]);
        let (mut state, mut scores) = (self.model.start(n), Vec::new());
        let mut words = vec![START; n];
        for _ in 0..=self.settings.longest.get() {
            self.model.next(&self.device, &words, &mut state, &mut scores)?;
            let rows = scores.chunks_exact(self.vocabulary.len());
            let drawn = running.iter().zip(rows).map(|(at, row)| {
                let word = draw(row, self.settings.temperature, generators[*at].uniform());
                u32::try_from(word).expect("ids are u32")
            });
            words = drawn.collect();
            for (at, word) in running.iter().zip(&words) {
                match *word {
                    END => written[*at] = Ok(std::mem::take(&mut texts[*at])),
                    word => texts[*at].push(word),
                }
            }
            let going_on: Vec<_> = (0..running.len()).filter(|at| words[*at] != END).collect();
            if going_on.is_empty() {
                break;
            }
            state.keep(&going_on);
            running = going_on.iter().map(|at| running[*at]).collect();
            words = going_on.iter().map(|at| words[*at]).collect();
        }
        let parse = |written: Result<Vec<u32>, RejectReason>| {
            written.and_then(|ids| self.vocabulary.parse(&ids))
        };
        Ok(written.into_iter().map(parse).collect())
    }
}
