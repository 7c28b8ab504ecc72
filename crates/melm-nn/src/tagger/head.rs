//! The linear layer at the first piece of each token, with its backward pass. In some families, a dense layer and a norm
//! precede it.

use super::TaggerSettings;
use super::decoder::Decoder;
use crate::buffer::Buffer;
use crate::config::Config;
use crate::crf::ChainGradient;
use crate::device::Cpu;
use crate::dropout::Site;
use crate::encoder::{EncoderTape, LinearParams};
use crate::error::Error;
use crate::gradients::Gradients;
use crate::ops::linear::Accumulator;
use crate::ops::norm::drop_row;
use crate::ops::{ColumnSums, ROWS_PER_TASK};
use crate::params::Parameters;
use crate::split::Split;
use crate::transform::{HeadTransform, TransformTape};

/// Working memory of a [`super::Tagger`]: results of the forward pass that the backward pass needs.
///
/// Buffers grow to the largest batch so far and are reused.
pub struct TaggerTape {
    pub(super) encoder: EncoderTape,
    pub(super) head: HeadTape,
}

impl TaggerTape {
    /// Creates a tape that stores the results of every layer, for training and prediction.
    pub fn for_training(config: &Config) -> Self {
        Self { encoder: EncoderTape::for_training(config), head: HeadTape::default() }
    }

    /// Creates a tape that stores only what the next layer needs, for prediction only.
    pub fn for_prediction(config: &Config) -> Self {
        Self { encoder: EncoderTape::for_prediction(config), head: HeadTape::default() }
    }

    /// Returns the hidden states of the last forward pass on a CPU at the first piece of each token, `[tokens, hidden]`.
    pub fn hidden(&self) -> &[f32] {
        self.encoder.hidden()
    }
}

/// Working memory of the classifier.
#[derive(Default)]
pub(super) struct HeadTape {
    transform: TransformTape,
    /// The hidden states at the first piece of each token, after the transform and dropout, `[tokens, hidden]`.
    gathered: Buffer,
    /// The scores of the tags at each token, `[tokens, tags]`.
    pub(super) emissions: Buffer,
    pub(super) d_emissions: Buffer,
    d_gathered: Buffer,
    sums: ColumnSums,
    pub(super) decoder: Decoder,
    pub(super) chain_gradient: ChainGradient,
}

/// The layer number that the dropout before the classifier uses. This dropout belongs to no layer of the encoder.
const LAYER: usize = 0;

/// The ranges of the parameters of the linear layer.
pub(super) struct Classifier {
    /// The dense layer and the norm before the linear layer, or `None` if the family has none.
    pub(super) transform: Option<HeadTransform>,
    pub(super) params: LinearParams,
    width: usize,
    n_tags: usize,
}

impl Classifier {
    pub(super) fn new(config: &Config, settings: &TaggerSettings, parameters: &Parameters) -> Self {
        Self {
            transform: config
                .architecture()
                .has_tagger_transform
                .then(|| HeadTransform::new(config, parameters)),
            params: LinearParams::new(parameters, "classifier"),
            width: config.hidden_size,
            n_tags: settings.n_tags,
        }
    }

    /// Computes the emissions from the hidden states. Writes them to the tape of the head.
    pub(super) fn forward(
        &self,
        cpu: &Cpu,
        parameters: &Parameters,
        encoder: &EncoderTape,
        head: &mut HeadTape,
    ) -> Result<(), Error> {
        let (hidden, dropout) = (encoder.hidden(), encoder.head_dropout());
        let (n, width, n_tags) = (hidden.len() / self.width, self.width, self.n_tags);
        head.gathered.try_reserve(n * width)?;
        head.emissions.try_reserve(n * n_tags)?;
        let gathered = &mut head.gathered[..n * width];
        if let Some(transform) = &self.transform {
            transform.forward(cpu, parameters, hidden, &mut head.transform, gathered)?;
        }
        if self.transform.is_none() {
            gathered.copy_from_slice(hidden);
        }
        let parts = Split::every(gathered, ROWS_PER_TASK * width);
        cpu.each(n.div_ceil(ROWS_PER_TASK), parts, |task, _, out| {
            for (out, row) in out.chunks_exact_mut(width).zip(task * ROWS_PER_TASK..) {
                drop_row(cpu.isa(), dropout.mask(LAYER, Site::Classifier, row), out);
            }
        });
        let x = &head.gathered[..n * width];
        let (weight, bias) = (parameters.at(&self.params.weight), parameters.at(&self.params.bias));
        let emissions = &mut head.emissions[..n * n_tags];
        self.params.linear().forward_with_bias(cpu, x, weight, bias, emissions);
        Ok(())
    }

    /// Reads the gradient of the emissions from the tape of the head. Adds the gradients of the linear layer to
    /// `gradients`, and writes the gradient of the hidden states to [`EncoderTape::d_hidden`].
    pub(super) fn backward(
        &self,
        cpu: &Cpu,
        parameters: &Parameters,
        tape: &mut TaggerTape,
        gradients: &mut Gradients,
    ) -> Result<(), Error> {
        let TaggerTape { encoder, head } = tape;
        let (width, linear) = (self.width, self.params.linear());
        let n = encoder.hidden().len() / width;
        let d = &head.d_emissions[..n * self.n_tags];
        head.sums.sum_rows(cpu, d, self.n_tags);
        head.sums.finish_into(cpu, 0, gradients.slot(&self.params.bias));
        if parameters.trains(&self.params.weight) {
            let slot = gradients.slot(&self.params.weight);
            linear.weight_gradient(cpu, d, &head.gathered[..n * width], slot);
        }
        head.d_gathered.try_reserve(n * width)?;
        let d_gathered = &mut head.d_gathered[..n * width];
        let out = Accumulator::overwrite(d_gathered);
        linear.backward(cpu, d, parameters.at(&self.params.weight), out);
        let dropout = encoder.head_dropout();
        dropout.drop_rows(cpu.isa(), LAYER, Site::Classifier, d_gathered, width);
        let d_gathered = match &self.transform {
            Some(transform) => {
                let tape = &mut head.transform;
                let hidden = encoder.hidden();
                transform.backward(cpu, parameters, hidden, d_gathered, tape, gradients)?;
                tape.d_hidden(n, width)
            }
            None => d_gathered,
        };
        encoder.d_hidden().copy_from_slice(d_gathered);
        Ok(())
    }
}
