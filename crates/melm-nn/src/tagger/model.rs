//! The tagger: parameters, encoder, classifier and loss.

use super::decoder::Decoder;
use super::head::Classifier;
use super::loss::TagLoss;
use super::{TaggedBatch, TaggerTape};
use crate::config::Config;
use crate::crf::AllowedTransitions;
use crate::cuda::TaggerView;
use crate::device::{Cpu, Device};
use crate::dropout::Dropout;
use crate::encoder::{Encoder, Int8Encoder};
use crate::error::Error;
use crate::gradients::Gradients;
use crate::int8::Kernel;
use crate::isa::Isa;
use crate::params::Parameters;

/// How probabilities are computed from the emissions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeadKind {
    /// A softmax for each token.
    Linear,
    /// A linear-chain CRF over each sentence.
    Crf,
}

/// The settings of a tagger in addition to the configuration of its encoder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaggerSettings {
    /// The number of tags.
    pub n_tags: usize,
    /// How probabilities are computed from the emissions.
    pub kind: HeadKind,
    /// The allowed transitions, or `None` to allow all. A CRF is also trained with these constraints and rejects gold
    /// tags that violate them. A linear head uses them only in decoding.
    pub allowed: Option<AllowedTransitions>,
}

/// The tags of one sentence.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Tagging {
    /// The most likely allowed sequence.
    pub tags: Vec<u32>,
    /// The logarithm of the probability of `tags`.
    pub log_probability: f64,
    /// The probability of each tag at each token, `[tokens, tags]`.
    pub probabilities: Vec<f32>,
}

/// The weights of an encoder in 8 bits; see [`Tagger::quantize`].
pub struct Int8Weights(Int8Encoder);

impl Int8Weights {
    /// Returns true if this machine computes with 8-bit weights much faster than in f32: if the CPU has AVX-512 VNNI.
    pub fn are_fast(isa: Isa) -> bool {
        Kernel::detect(isa).is_fast()
    }
}

/// XLM-R with a linear layer at the first piece of each token, and optionally a CRF.
pub struct Tagger {
    parameters: Parameters,
    encoder: Encoder,
    classifier: Classifier,
    loss: TagLoss,
}

impl Tagger {
    /// Creates the tagger from parameters that are laid out for `config` and `settings`.
    pub(super) fn new(config: &Config, settings: TaggerSettings, parameters: Parameters) -> Self {
        let encoder = Encoder::new(config, &parameters);
        let classifier = Classifier::new(config, &settings, &parameters);
        let loss = TagLoss::new(settings, &parameters);
        Self { parameters, encoder, classifier, loss }
    }

    /// Returns the sizes and dropout rates.
    pub fn config(&self) -> &Config {
        self.encoder.config()
    }

    /// Returns the settings that the tagger has in addition to the configuration of its encoder.
    pub fn settings(&self) -> &TaggerSettings {
        self.loss.settings()
    }

    /// Returns the parameters.
    pub fn parameters(&self) -> &Parameters {
        &self.parameters
    }

    /// Returns the parameters for modification.
    pub fn parameters_mut(&mut self) -> &mut Parameters {
        &mut self.parameters
    }

    /// Returns the parts of the tagger that a GPU pass reads.
    fn view(&self) -> TaggerView<'_> {
        TaggerView {
            parameters: &self.parameters,
            encoder: &self.encoder,
            transform: self.classifier.transform.as_ref(),
            classifier: &self.classifier.params,
            chain: self.loss.crf.as_ref(),
            allowed: self.settings().allowed.as_ref(),
            n_tags: self.settings().n_tags,
        }
    }

    /// Fails if the tagger has a CRF that does not allow the gold tags of the batch.
    fn check_allowed(&self, batch: &TaggedBatch) -> Result<(), Error> {
        let (Some(allowed), HeadKind::Crf) = (&self.settings().allowed, self.settings().kind)
        else {
            return Ok(());
        };
        for sentence in 0..batch.sentences().n_sentences() {
            let tags = &batch.tags()[batch.tokens(sentence)];
            if let Some(token) = allowed.first_violation(tags) {
                return Err(Error::ForbiddenTag { token, tag: tags[token] });
            }
        }
        Ok(())
    }

    /// Adds the gradient of one micro-batch to `gradients`. Returns the sum of the negative log-likelihoods of all
    /// tokens (with a linear head) or of all sentences (with a CRF).
    ///
    /// The added gradient is that of `weight` times this sum. If `weight` is one over the number of tokens (with a CRF:
    /// sentences) of the whole step, the gradient is that of the mean.
    ///
    /// # Errors
    /// Fails if the batch does not fit the model, if a CRF does not allow the tags of the batch, or if the device
    /// fails. In the first two cases, `gradients` is unchanged.
    ///
    /// # Panics
    /// Panics if `tape` is for prediction.
    pub fn accumulate(
        &self,
        device: &Device,
        batch: &TaggedBatch,
        weight: f32,
        dropout: Dropout,
        tape: &mut TaggerTape,
        gradients: &mut Gradients,
    ) -> Result<f64, Error> {
        batch.check(self.settings(), true)?;
        self.encoder.check(batch.sentences())?;
        if batch.n_tokens() == 0 {
            return Ok(0.0);
        }
        let cpu = match device {
            Device::Cpu(cpu) => cpu,
            Device::Cuda(cuda) => {
                self.check_allowed(batch)?;
                return cuda.train_tagger(self.view(), batch, weight, dropout, gradients);
            }
        };
        let parameters = &self.parameters;
        let (sentences, rows) = (batch.sentences(), batch.rows());
        self.encoder.forward(cpu, parameters, sentences, rows, dropout, &mut tape.encoder)?;
        self.classifier.forward(cpu, parameters, &tape.encoder, &mut tape.head)?;
        let loss = self.loss.train(parameters, batch, weight, &mut tape.head, gradients)?;
        self.classifier.backward(cpu, parameters, tape, gradients)?;
        self.encoder.backward(cpu, parameters, sentences, &mut tape.encoder, gradients)?;
        Ok(loss)
    }

    /// Writes the emissions of every token of the batch to `out`, `[tokens, tags]`.
    ///
    /// The emissions are not decoded here, because the caller may first have to join the windows of a sentence that is
    /// too long for the model.
    ///
    /// # Errors
    /// Fails if the batch does not fit the model, or if the device fails.
    pub fn emissions(
        &self,
        device: &Device,
        batch: &TaggedBatch,
        tape: &mut TaggerTape,
        out: &mut Vec<f32>,
    ) -> Result<(), Error> {
        batch.check(self.settings(), false)?;
        let cpu = match device {
            Device::Cpu(cpu) => cpu,
            Device::Cuda(cuda) => {
                self.encoder.check(batch.sentences())?;
                out.clear();
                return cuda.tagger_emissions(self.view(), batch, out);
            }
        };
        let (parameters, sentences, rows) = (&self.parameters, batch.sentences(), batch.rows());
        self.encoder.forward(cpu, parameters, sentences, rows, Dropout::NONE, &mut tape.encoder)?;
        self.classify(cpu, batch, tape, out)
    }

    /// Quantizes the weights of the encoder, for [`Self::emissions_int8`]. They are a copy, which does not follow later
    /// changes of the parameters.
    ///
    /// # Errors
    /// Fails if there is not enough memory.
    ///
    /// # Panics
    /// Panics if the parameters were trained on a GPU and not fetched.
    pub fn quantize(&self) -> Result<Int8Weights, Error> {
        Ok(Int8Weights(Int8Encoder::new(&self.encoder, &self.parameters)?))
    }

    /// Like [`Self::emissions`], with 8-bit weights on the CPU. The emissions differ slightly from those in f32.
    ///
    /// # Errors
    /// As [`Self::emissions`].
    pub fn emissions_int8(
        &self,
        cpu: &Cpu,
        weights: &Int8Weights,
        batch: &TaggedBatch,
        tape: &mut TaggerTape,
        out: &mut Vec<f32>,
    ) -> Result<(), Error> {
        batch.check(self.settings(), false)?;
        let Int8Weights(int8) = weights;
        let (parameters, sentences, rows) = (&self.parameters, batch.sentences(), batch.rows());
        self.encoder.forward_int8(cpu, parameters, int8, sentences, rows, &mut tape.encoder)?;
        self.classify(cpu, batch, tape, out)
    }

    /// Computes the emissions from the hidden states of the tape.
    fn classify(
        &self,
        cpu: &Cpu,
        batch: &TaggedBatch,
        tape: &mut TaggerTape,
        out: &mut Vec<f32>,
    ) -> Result<(), Error> {
        let TaggerTape { encoder, head } = tape;
        self.classifier.forward(cpu, &self.parameters, encoder, head)?;
        out.clear();
        out.extend_from_slice(&head.emissions[..batch.n_tokens() * self.settings().n_tags]);
        Ok(())
    }

    /// Finds the most likely allowed tags of one sentence, and the probability of every tag at every token.
    ///
    /// # Errors
    /// Fails if no sequence of tags is allowed.
    ///
    /// # Panics
    /// Panics if the length of `emissions` is not a multiple of the number of tags.
    pub fn decode(
        &self,
        emissions: &[f32],
        tape: &mut TaggerTape,
        out: &mut Tagging,
    ) -> Result<(), Error> {
        let decoder = &mut tape.head.decoder;
        self.set_scores(decoder)?;
        decoder.decode(emissions, out)
    }

    /// Copies the scores of the CRF to a decoder.
    pub(super) fn set_scores(&self, decoder: &mut Decoder) -> Result<(), Error> {
        self.loss.set_chain(&self.parameters, &mut decoder.chain)
    }
}
