//! The tagger: parameters, encoder, head.

use super::head::{Head, HeadTape};
use super::loss::Loss;
use super::{TaggedBatch, TaggerTape};
use crate::config::Config;
use crate::crf::AllowedTransitions;
use crate::cuda::TaggerView;
use crate::device::Device;
use crate::dropout::Dropout;
use crate::encoder::Encoder;
use crate::error::Error;
use crate::gradients::Gradients;
use crate::params::Parameters;

/// What turns emissions into probabilities.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeadKind {
    /// A softmax for each token.
    Linear,
    /// A linear-chain CRF over each sentence.
    Crf,
}

/// What a tagger has beyond its encoder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaggerSettings {
    /// How many tags there are.
    pub n_tags: usize,
    /// What turns emissions into probabilities.
    pub kind: HeadKind,
    /// The transitions to choose from. A CRF is trained under it too, and refuses gold tags that violate it; a linear
    /// head only decodes with it.
    pub allowed: Option<AllowedTransitions>,
}

/// The tags of one sentence.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Tagging {
    /// The likeliest allowed sequence.
    pub tags: Vec<u32>,
    /// The logarithm of its probability.
    pub log_probability: f64,
    /// The probability of each tag at each token, `[tokens, tags]`.
    pub probabilities: Vec<f32>,
}

/// XLM-R with a linear layer at the first pieces, and perhaps a CRF.
pub struct Tagger {
    parameters: Parameters,
    encoder: Encoder,
    head: Head,
    loss: Loss,
}

impl Tagger {
    /// The tagger over these parameters, which are laid out for `config` and `settings`.
    pub(super) fn new(config: &Config, settings: TaggerSettings, parameters: Parameters) -> Self {
        let encoder = Encoder::new(config, &parameters);
        let head = Head::new(config, &settings, &parameters);
        let loss = Loss::new(settings, &parameters);
        Self { parameters, encoder, head, loss }
    }

    /// The sizes and rates.
    pub fn config(&self) -> &Config {
        self.encoder.config()
    }

    /// What it has beyond its encoder.
    pub fn settings(&self) -> &TaggerSettings {
        self.loss.settings()
    }

    /// The parameters.
    pub fn parameters(&self) -> &Parameters {
        &self.parameters
    }

    /// The parameters, to be changed.
    pub fn parameters_mut(&mut self) -> &mut Parameters {
        &mut self.parameters
    }

    /// The parts of the tagger that a GPU pass reads.
    fn view(&self) -> TaggerView<'_> {
        TaggerView {
            parameters: &self.parameters,
            encoder: &self.encoder,
            classifier: &self.head.classifier,
            chain: self.loss.places.as_ref(),
            allowed: self.settings().allowed.as_ref(),
            n_tags: self.settings().n_tags,
        }
    }

    /// Refuses gold tags that a chain gives no probability.
    fn refuse_forbidden(&self, batch: &TaggedBatch) -> Result<(), Error> {
        let (Some(allowed), HeadKind::Crf) = (&self.settings().allowed, self.settings().kind)
        else {
            return Ok(());
        };
        for sentence in 0..batch.sentences().n_sentences() {
            let tags = &batch.tags()[batch.tokens(sentence)];
            if let Some(token) = allowed.refused(tags) {
                return Err(Error::ForbiddenTag { token, tag: tags[token] });
            }
        }
        Ok(())
    }

    /// Adds the gradient of one micro-batch: of `weight` times the sum of the negative log-likelihoods, of every token
    /// with a linear head, of every sentence with a CRF. Returns that sum, unweighted. With `weight` one over the
    /// tokens (sentences) of the whole step, the gradient is that of the mean.
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
        batch.sentences().check(self.config())?;
        if batch.n_tokens() == 0 {
            return Ok(0.0);
        }
        let cpu = match device {
            Device::Cpu(cpu) => cpu,
            Device::Cuda(cuda) => {
                self.refuse_forbidden(batch)?;
                return cuda.train_tagger(self.view(), batch, weight, dropout, gradients);
            }
        };
        let parameters = &self.parameters;
        let TaggerTape { encoder, head } = tape;
        self.encoder.forward(cpu, parameters, (batch.sentences(), dropout), encoder)?;
        self.head.forward(cpu, parameters, batch.rows(), (encoder, head));
        let loss = self.loss.train(parameters, (batch, weight), (head, gradients))?;
        self.head.backward(cpu, parameters, batch.rows(), (encoder, head, gradients));
        self.encoder.backward(cpu, parameters, batch.sentences(), (encoder, gradients));
        Ok(loss)
    }

    /// Writes the emissions of every token of the batch to `out`, `[tokens, tags]`.
    ///
    /// They are handed out rather than decoded, so that a sentence longer than the model can be put together from the
    /// emissions of its windows.
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
                batch.sentences().check(self.config())?;
                out.clear();
                return cuda.tagger_emissions(self.view(), batch, out);
            }
        };
        let TaggerTape { encoder, head } = tape;
        self.encoder.forward(cpu, &self.parameters, (batch.sentences(), Dropout::NONE), encoder)?;
        self.head.forward(cpu, &self.parameters, batch.rows(), (encoder, head));
        out.clear();
        out.extend_from_slice(&head.emissions[..batch.n_tokens() * self.settings().n_tags]);
        Ok(())
    }

    /// The likeliest allowed tags of one sentence, and how likely all are.
    ///
    /// # Panics
    /// If `emissions` is not whole rows.
    pub fn decode(
        &self,
        emissions: &[f32],
        tape: &mut TaggerTape,
        out: &mut Tagging,
    ) -> Result<(), Error> {
        let HeadTape { chain, lattice, .. } = &mut tape.head;
        self.loss.set(&self.parameters, chain)?;
        let score = chain.best(emissions, lattice, &mut out.tags)?;
        let (probabilities, total) = chain.marginals(emissions, lattice)?;
        out.log_probability = score - total;
        out.probabilities.clear();
        #[expect(clippy::cast_possible_truncation, reason = "the precision of the engine")]
        out.probabilities.extend(probabilities.iter().map(|p| *p as f32));
        Ok(())
    }

    /// The logarithm of the probability of these tags of one sentence.
    ///
    /// # Panics
    /// If `emissions` is not a whole row for each tag.
    pub fn log_probability(
        &self,
        emissions: &[f32],
        tags: &[u32],
        tape: &mut TaggerTape,
    ) -> Result<f64, Error> {
        let HeadTape { chain, lattice, .. } = &mut tape.head;
        self.loss.set(&self.parameters, chain)?;
        chain.log_probability(emissions, tags, lattice)
    }
}
