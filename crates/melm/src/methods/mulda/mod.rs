//! `MulDA` (Liu et al. 2021): an encoder-decoder completes the beginnings of linearized sentences.
//!
//! As in the authors' code (ntunlp/mulda, `code/mbart`), the encoder reads the first tokens of a linearized sentence,
//! one `<mask>` for the rest, and the language. The decoder writes the whole sentence (`Only B-ORG Seat and <mask>` →
//! `Only B-ORG Seat and B-ORG Porsche had fewer registrations …`). mBART is fine-tuned on this task. It then
//! completes beginnings of gold sentences by a search with five beams. Drafts are filtered by our own judge.
//!
//! Differences from the authors' code: each tag is one added piece instead of being spelled in pieces; the number of
//! tokens that the encoder sees is drawn again in every epoch; there is no label smoothing, and there are no
//! translated sentences. The number of beams is a setting. By default sentences are sampled, because a beam search
//! always writes the same sentence for the same beginning.
//!
//! Without a pretrained folder, the model is small, is initialised at random and has rows only for the pieces that
//! occur in gold. Reports call such a model [`NO_PRETRAINING`], because it is not the baseline of the paper's tables.

mod learn;
mod pretrained;
mod settings;
mod vocabulary;

pub use pretrained::PretrainedSeq2Seq;
pub use settings::MuldaSettings;

use std::collections::BTreeSet;
use std::ops::Range;

use melm_nn::device::{CpuDevice, Device};
use melm_nn::dropout::DropoutRates;
use melm_nn::packed::Packed;
use melm_nn::seq2seq::{
    BeamSearch, EarlyStopping, Seq2Seq, Seq2SeqConfig, Seq2SeqTape, StackConfig,
};
use melm_text::{Corpus, Sentence};

use crate::Error;
use crate::augment::Gold;
use crate::methods::free_generation::{RejectReason, SentenceWriter};
use crate::models::Pretrained;
use crate::random::{Generator, StreamKey};
use crate::stage::Stage;
use crate::training::{self, TrainingOutcome};
use learn::{Example, TrainingSet};
use vocabulary::{LinearizedSentence, Vocabulary};

/// The name of a model without pretraining in reports and tables.
pub const NO_PRETRAINING: &str = "MulDA architecture, no pretraining";

/// The inner width of the feed-forward layers as a multiple of the model's width, as in mBART.
const INNER_FACTOR: usize = 4;

/// The initial model.
#[derive(Clone, Copy)]
pub(crate) enum MuldaModel<'a> {
    /// A pretrained mBART.
    Pretrained(&'a PretrainedSeq2Seq),
    /// A new model that uses the tokenizer of this masked language model.
    New(&'a Pretrained),
}

/// A trained encoder-decoder that writes sentences.
pub(crate) struct Mulda<'a> {
    model: Seq2Seq,
    vocabulary: Vocabulary,
    /// The linearized sentences whose beginnings are completed.
    sentences: Vec<LinearizedSentence>,
    settings: &'a MuldaSettings,
    device: CpuDevice<'a>,
}

/// The record of a training run.
pub(crate) struct MuldaTraining {
    /// The metrics of the epochs, and the epoch that was kept.
    pub(crate) outcome: TrainingOutcome,
    /// The number of sentences left out because they are too long for the model.
    pub(crate) n_too_long: usize,
}

impl<'a> Mulda<'a> {
    /// Trains the model on gold. Keeps the epoch with the lowest loss on dev, or the last epoch without a dev set.
    pub(crate) fn train(
        gold: Gold<'_>,
        model: MuldaModel<'_>,
        settings: &'a MuldaSettings,
        device: &'a Device,
        stage: &mut Stage<'_>,
    ) -> Result<(Self, MuldaTraining), Error> {
        let seed = stage.key().then("weights").generator().bits();
        let (vocabulary, model) = open(gold.train, model, settings, seed)?;
        let longest = model.config().max_pieces;
        let linearize = |corpus: &Corpus| -> Result<Vec<LinearizedSentence>, Error> {
            let sentences = corpus.sentences().iter();
            sentences.map(|sentence| vocabulary.linearize(corpus, sentence)).collect()
        };
        let fits = |body: &LinearizedSentence| body.n_rows() < longest;
        let (train, too_long): (Vec<_>, Vec<_>) =
            linearize(gold.train)?.into_iter().partition(fits);
        let mut dev = gold.dev.map_or(Ok(Vec::new()), linearize)?;
        dev.retain(fits);
        let key = stage.key().then("dev cut");
        let dev =
            dev.iter().enumerate().map(|(at, body)| Example::draw(&vocabulary, body, at, key));
        let dev = dev.collect();
        #[expect(clippy::cast_possible_truncation, reason = "the precision of the engine")]
        let rates = DropoutRates {
            hidden: settings.dropout.value() as f32,
            attention: settings.attention_dropout.value() as f32,
        };
        let (key, tape) = (stage.key(), Seq2SeqTape::default());
        let mut set = TrainingSet { model, vocabulary, train, dev, rates, key, tape };
        let device = device.to_cpu();
        let outcome = training::train(&mut set, &settings.training, &device, stage)?;
        let mulda = Self {
            model: set.model,
            vocabulary: set.vocabulary,
            sentences: set.train,
            settings,
            device,
        };
        Ok((mulda, MuldaTraining { outcome, n_too_long: too_long.len() }))
    }

    /// Completes sources in one language, by sampling or by beam search. Returns `None` for a sentence that did not
    /// end.
    fn complete(
        &self,
        language: usize,
        sources: &Packed,
        generators: &mut [Generator],
    ) -> Result<Vec<Option<Vec<u32>>>, Error> {
        let longest = self.settings.longest.get().min(self.model.config().max_pieces);
        let config = self.vocabulary.generation_config(language, longest);
        if self.settings.beams == 0 {
            let share = &mut |at: usize| generators[at].uniform();
            let temperature = self.settings.temperature;
            return Ok(self.model.sample(&self.device, sources, &config, temperature, share)?);
        }
        let beams = BeamSearch {
            n_beams: self.settings.beams,
            length_penalty: 1.0,
            stopping: EarlyStopping::Heuristic,
        };
        let best = |sentence: usize| {
            let source = &sources.pieces()[sources.rows(sentence)];
            let found = self.model.search(&self.device, source, &config, &beams)?;
            Ok(found.into_iter().next().map(|found| found.pieces))
        };
        (0..sources.n_sentences()).map(best).collect()
    }
}

impl SentenceWriter for Mulda<'_> {
    const BATCH_SIZE: usize = 32;

    fn max_tries(&self) -> usize {
        self.settings.tries.get()
    }

    fn write(
        &self,
        key: StreamKey,
        tries: Range<usize>,
    ) -> Result<Vec<Result<Sentence, RejectReason>>, Error> {
        let mut written: Vec<_> = tries.clone().map(|_| Err(RejectReason::Unfinished)).collect();
        let sentence = |number: usize| &self.sentences[number % self.sentences.len()];
        let languages: BTreeSet<_> =
            tries.clone().map(|number| sentence(number).language).collect();
        for language in languages {
            let own = tries.clone().filter(|number| sentence(*number).language == language);
            let own: Vec<_> = own.collect();
            let mut generators: Vec<Generator> =
                own.iter().map(|number| key.at(*number as u64).generator()).collect();
            let mut sources = Packed::default();
            for (number, generator) in own.iter().zip(&mut generators) {
                let n_shown = generator.below(sentence(*number).n_tokens());
                sources.push(&self.vocabulary.source(sentence(*number), n_shown), *number as u64);
            }
            let rows = self.complete(language, &sources, &mut generators)?;
            for (number, rows) in own.into_iter().zip(rows) {
                let rows = rows.ok_or(RejectReason::Unfinished);
                written[number - tries.start] =
                    rows.and_then(|rows| self.vocabulary.parse(language, &rows));
            }
        }
        Ok(written)
    }
}

/// Opens or creates the model and its vocabulary.
fn open(
    corpus: &Corpus,
    model: MuldaModel<'_>,
    settings: &MuldaSettings,
    seed: u64,
) -> Result<(Vocabulary, Seq2Seq), Error> {
    match model {
        MuldaModel::Pretrained(pretrained) => {
            let (name, tokenizer) = (pretrained.name(), pretrained.tokenizer()?);
            let vocabulary =
                Vocabulary::from_pretrained(tokenizer, corpus, &name, &settings.language)?;
            let model = pretrained.model(vocabulary.n_rows(), seed)?;
            Ok((vocabulary, model))
        }
        MuldaModel::New(own) => {
            let vocabulary = Vocabulary::from_corpus(own.tokenizer(), corpus, &settings.language)?;
            let width = settings.width.get();
            let (n_layers, n_heads) = (settings.layers.get(), settings.heads.get());
            let stack =
                StackConfig { n_layers, n_heads, inner: width.saturating_mul(INNER_FACTOR) };
            let (pad_id, eos_id) = vocabulary.padding_and_end();
            let config = Seq2SeqConfig {
                vocab_size: vocabulary.n_rows(),
                width,
                encoder: stack,
                decoder: stack,
                max_pieces: settings.longest.get(),
                dropout: 0.0,
                attention_dropout: 0.0,
                scales_embedding: true,
                init_std: 0.02,
                pad_id,
                eos_id,
            };
            Ok((vocabulary, Seq2Seq::random(&config, seed)?))
        }
    }
}
