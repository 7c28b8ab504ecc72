//! The products that compute the gradients of weights. Those of all layers run together at the end of the backward pass.

use super::backward::GradientSink;
use super::forward::widths;
use super::kernels::Kernels;
use super::product::{Operand, Product, ProductSize};
use super::span::FloatSpan;
use crate::encoder::LinearParams;
use crate::error::Error;

/// The products that compute the gradients of the weights of layers. They run at the end of the backward pass, those of
/// one kind together.
#[derive(Default)]
pub(super) struct WeightProducts {
    pub(super) qkv: Vec<Product>,
    pub(super) attention_output: Vec<Product>,
    pub(super) inner: Vec<Product>,
    pub(super) output: Vec<Product>,
}

impl WeightProducts {
    /// Computes the gradients.
    pub(super) fn compute(mut self, kernels: &Kernels) -> Result<(), Error> {
        for list in [&mut self.qkv, &mut self.attention_output, &mut self.inner, &mut self.output] {
            // The backward pass begins with the last layer, whose buffers have the highest addresses.
            list.reverse();
            for product in Product::join(list) {
                kernels.product(&product)?;
            }
        }
        Ok(())
    }
}

/// Returns the product `dW = dy^T x`, or one that is added to `dW`; `None` if the weight is not trained.
pub(super) fn weight_product(
    dy: FloatSpan,
    x: FloatSpan,
    params: &LinearParams,
    sink: &mut GradientSink<'_>,
) -> Option<Product> {
    if !sink.parameters.trains(&params.weight) {
        return None;
    }
    let accumulates = sink.gradients.mark(&params.weight);
    let out = sink.gradients.gpu_mut().at(&params.weight);
    let (n_inputs, n_outputs) = widths(params);
    let size = ProductSize { m: n_outputs, n: n_inputs, k: dy.len / n_outputs };
    let dy = Operand::new(dy, n_outputs).transposed();
    let product = Product::new(size, dy, Operand::new(x, n_inputs), out);
    Some(product.accumulating(accumulates))
}
