//! `MulDA` (Liu et al. 2021): an encoder-decoder goes on with the beginnings of linearized sentences.
//!
//! From the authors' code (ntunlp/mulda, `code/mbart`): the encoder reads the first tokens of a linearized sentence, one
//! `<mask>` for all that follows, and the language; the decoder writes the whole sentence (`Only B-ORG Seat and <mask>` →
//! `Only B-ORG Seat and B-ORG Porsche had fewer registrations …`). mBART is fine-tuned on that, and then goes on with
//! beginnings of gold sentences by a search with five beams; the NER filter behind it is ours.
//!
//! Where it differs: each tag is one added piece instead of its spelling in pieces; how many tokens are shown is drawn anew
//! every epoch; no label smoothing; no translated sentences. Beams are a setting: by default sentences are drawn, since a
//! search writes the same sentence for the same beginning again.
//!
//! Without a pretrained folder the model is small, starts at random and has rows only for the pieces that gold is made of:
//! that is [`NO_PRETRAINING`], not the baseline of the paper's tables.

mod learn;
mod pieces;
mod pretrained;
mod settings;

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
use crate::augment::{Augmenter, Gold};
use crate::draft::Draft;
use crate::free_generation::{RejectReason, RejectedCounts, WritingRound};
use crate::model::Pretrained;
use crate::random::{Generator, StreamKey};
use crate::stage::Stage;
use crate::training::{self, TrainingOutcome};
use learn::{Example, TrainingSet};
use pieces::{LinearizedSentence, Pieces};

/// What a model without pretraining is called wherever it is named.
pub const NO_PRETRAINING: &str = "MulDA architecture, no pretraining";

/// Sentences written side by side.
const CHUNK: usize = 32;
/// Rows inside the feed-forward part for each of the width, as in mBART.
const INNER: usize = 4;

/// Where a model comes from.
#[derive(Clone, Copy)]
pub enum MuldaModel<'a> {
    /// A pretrained mBART.
    Pretrained(&'a PretrainedSeq2Seq),
    /// None: a new model on this one's tokenizer.
    New(&'a Pretrained),
}

/// A trained encoder-decoder that writes sentences.
pub struct Mulda<'a> {
    model: Seq2Seq,
    pieces: Pieces,
    gold: &'a Corpus,
    /// The sentences whose beginnings are shown.
    bodies: Vec<LinearizedSentence>,
    settings: &'a MuldaSettings,
    n_rounds: u64,
    device: CpuDevice<'a>,
    rejected: RejectedCounts,
}

/// How a training went.
pub struct MuldaTraining {
    /// Its epochs, and which of them is kept.
    pub outcome: TrainingOutcome,
    /// Sentences too long for the model, from which it learnt nothing.
    pub n_too_long: usize,
}

impl<'a> Mulda<'a> {
    /// Trains the model on gold, and keeps the epoch with the lowest loss on dev; the last without a dev set.
    pub fn train(
        gold: Gold<'a>,
        model: MuldaModel<'_>,
        settings: &'a MuldaSettings,
        n_rounds: u32,
        device: &'a Device,
        stage: &mut Stage<'_>,
    ) -> Result<(Self, MuldaTraining), Error> {
        let seed = stage.key().then("weights").generator().bits();
        let (pieces, model) = open(gold.train, model, settings, seed)?;
        let longest = model.config().longest;
        let linearize = |corpus: &Corpus| -> Result<Vec<LinearizedSentence>, Error> {
            let sentences = corpus.sentences().iter();
            sentences.map(|sentence| pieces.linearize(corpus, sentence)).collect()
        };
        let fits = |body: &LinearizedSentence| body.n_rows() < longest;
        let (train, too_long): (Vec<_>, Vec<_>) =
            linearize(gold.train)?.into_iter().partition(fits);
        let mut dev = gold.dev.map_or(Ok(Vec::new()), linearize)?;
        dev.retain(fits);
        let key = stage.key().then("dev cut");
        let dev = dev.iter().enumerate().map(|(at, body)| Example::draw(&pieces, body, at, key));
        let dev = dev.collect();
        #[expect(clippy::cast_possible_truncation, reason = "the precision of the engine")]
        let rates = DropoutRates {
            hidden: settings.dropout.value() as f32,
            attention: settings.attention_dropout.value() as f32,
        };
        let (key, tape) = (stage.key(), Seq2SeqTape::default());
        let mut set = TrainingSet { model, pieces, train, dev, rates, key, tape };
        let device = device.to_cpu();
        let outcome = training::train(&mut set, &settings.training, &device, stage)?;
        let mulda = Self {
            model: set.model,
            pieces: set.pieces,
            gold: gold.train,
            bodies: set.train,
            settings,
            n_rounds: n_rounds.into(),
            device,
            rejected: RejectedCounts::default(),
        };
        Ok((mulda, MuldaTraining { outcome, n_too_long: too_long.len() }))
    }

    /// What is written in some tries at once; what one writes depends on its own stream alone.
    fn write(
        &self,
        key: StreamKey,
        tries: Range<usize>,
    ) -> Result<Vec<Result<Sentence, RejectReason>>, Error> {
        let mut written: Vec<_> = tries.clone().map(|_| Err(RejectReason::Unfinished)).collect();
        let body = |number: usize| &self.bodies[number % self.bodies.len()];
        let languages: BTreeSet<_> = tries.clone().map(|number| body(number).language).collect();
        for language in languages {
            let own = tries.clone().filter(|number| body(*number).language == language);
            let own: Vec<_> = own.collect();
            let mut generators: Vec<Generator> =
                own.iter().map(|number| key.at(*number as u64).generator()).collect();
            let mut sources = Packed::default();
            for (number, generator) in own.iter().zip(&mut generators) {
                let n_shown = generator.below(body(*number).n_tokens());
                sources.push(&self.pieces.source(body(*number), n_shown), *number as u64);
            }
            let rows = self.go_on(language, &sources, &mut generators)?;
            for (number, rows) in own.into_iter().zip(rows) {
                let rows = rows.ok_or(RejectReason::Unfinished);
                written[number - tries.start] =
                    rows.and_then(|rows| self.pieces.parse(language, &rows));
            }
        }
        Ok(written)
    }

    /// What the decoder writes for sources in one language; nothing where it does not end.
    fn go_on(
        &self,
        language: usize,
        sources: &Packed,
        generators: &mut [Generator],
    ) -> Result<Vec<Option<Vec<u32>>>, Error> {
        let longest = self.settings.longest.get().min(self.model.config().longest);
        let frame = self.pieces.frame(language, longest);
        if self.settings.beams == 0 {
            let share = &mut |at: usize| generators[at].uniform();
            let temperature = self.settings.temperature;
            return Ok(self.model.sample(&self.device, sources, &frame, temperature, share)?);
        }
        let beams = BeamSearch {
            n_beams: self.settings.beams,
            length_penalty: 1.0,
            stopping: EarlyStopping::Heuristic,
        };
        let best = |sentence: usize| {
            let source = &sources.pieces()[sources.rows(sentence)];
            let found = self.model.search(&self.device, source, &frame, &beams)?;
            Ok(found.into_iter().next().map(|found| found.pieces))
        };
        (0..sources.n_sentences()).map(best).collect()
    }
}

/// The model and its pieces.
fn open(
    corpus: &Corpus,
    model: MuldaModel<'_>,
    settings: &MuldaSettings,
    seed: u64,
) -> Result<(Pieces, Seq2Seq), Error> {
    match model {
        MuldaModel::Pretrained(pretrained) => {
            let (name, tokenizer) = (pretrained.name(), pretrained.tokenizer()?);
            let pieces = Pieces::pretrained(tokenizer, corpus, &name, &settings.language)?;
            let model = pretrained.model(pieces.n_rows(), seed)?;
            Ok((pieces, model))
        }
        MuldaModel::New(own) => {
            let pieces = Pieces::used(own.tokenizer(), corpus, &settings.language)?;
            let width = settings.width.get();
            let (n_layers, n_heads) = (settings.layers.get(), settings.heads.get());
            let stack = StackConfig { n_layers, n_heads, inner: width.saturating_mul(INNER) };
            let (pad_id, eos_id) = pieces.padding_and_end();
            let config = Seq2SeqConfig {
                vocab_size: pieces.n_rows(),
                width,
                encoder: stack,
                decoder: stack,
                longest: settings.longest.get(),
                dropout: 0.0,
                attention_dropout: 0.0,
                scales_embedding: true,
                init_std: 0.02,
                pad_id,
                eos_id,
            };
            Ok((pieces, Seq2Seq::random(&config, seed)?))
        }
    }
}

impl Augmenter for Mulda<'_> {
    fn round(&mut self, round: u32, stage: &mut Stage<'_>) -> Result<Vec<Draft>, Error> {
        let round = WritingRound {
            number: round,
            of: self.n_rounds,
            tries: self.settings.tries.get(),
            side_by_side: CHUNK,
        };
        let write = |key, tries| self.write(key, tries);
        let drafts;
        (drafts, self.rejected) = round.collect(self.gold, stage, write)?;
        Ok(drafts)
    }

    fn dropped(&self) -> RejectedCounts {
        self.rejected.clone()
    }
}
