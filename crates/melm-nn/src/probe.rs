//! Measures the speed of this machine: matrix products at the shapes of a training step, and memory traffic of an
//! optimiser. Benchmarks compare a step with it, and the command line estimates run times from it.

use crate::buffer::Buffer;
use crate::device::Cpu;
use crate::ops::linear::{Accumulator, Linear};

/// One of the three products of a linear layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Product {
    /// The output, `x W^T`.
    Forward,
    /// The gradient of the input, `dy W`.
    Backward,
    /// The gradient of the weights, `dy^T x`.
    Weights,
}

/// The matrices of one linear layer, to time its products.
pub struct LinearProbe {
    linear: Linear,
    n_rows: usize,
    x: Buffer,
    weight: Buffer,
    y: Buffer,
}

impl LinearProbe {
    /// Allocates a layer from `inputs` to `outputs` and a batch of `n_rows` rows.
    ///
    /// # Panics
    /// If the memory cannot be had.
    pub fn new(n_rows: usize, inputs: usize, outputs: usize) -> Self {
        let filled = |len: usize| {
            let mut buffer = Buffer::default();
            buffer.reserve(len);
            buffer.fill(0.01);
            buffer
        };
        Self {
            linear: Linear { inputs, outputs },
            n_rows,
            x: filled(n_rows * inputs),
            weight: filled(outputs * inputs),
            y: filled(n_rows * outputs),
        }
    }

    /// Returns the number of floating-point operations of one product.
    pub fn n_operations(&self) -> f64 {
        2.0 * (self.n_rows * self.linear.inputs * self.linear.outputs) as f64
    }

    /// Computes one product.
    pub fn run(&mut self, cpu: &Cpu, product: Product) {
        let (linear, n) = (self.linear, self.n_rows);
        let accumulates = false;
        match product {
            Product::Forward => linear.forward(cpu, n, (&self.x, &self.weight), &mut self.y),
            Product::Backward => {
                let data = &mut self.x;
                linear.backward(cpu, n, (&self.y, &self.weight), Accumulator { data, accumulates });
            }
            Product::Weights => {
                let data = &mut self.weight;
                linear.weight_gradient(
                    cpu,
                    n,
                    (&self.y, &self.x),
                    Accumulator { data, accumulates },
                );
            }
        }
    }
}

/// The arrays of an optimiser's update, to time its memory traffic: four arrays are read, three written.
pub struct StreamProbe {
    streams: [Buffer; 4],
}

impl StreamProbe {
    /// Allocates arrays of `len` numbers.
    ///
    /// # Panics
    /// If the memory cannot be had.
    pub fn new(len: usize) -> Self {
        let mut streams: [Buffer; 4] = Default::default();
        for stream in &mut streams {
            stream.reserve(len);
        }
        Self { streams }
    }

    /// Returns the number of bytes that one pass reads and writes.
    pub fn n_bytes(&self) -> f64 {
        (7 * size_of::<f32>() * self.streams[0].len()) as f64
    }

    /// Runs one pass, with as little arithmetic as possible.
    pub fn run(&mut self, cpu: &Cpu) {
        const BLOCK: usize = 1 << 16;
        let [gradient, values, mean, square] = &mut self.streams;
        let n_tasks = gradient.len().div_ceil(BLOCK);
        let parts = (
            crate::split::Split::every(values, BLOCK),
            crate::split::Split::every(mean, BLOCK),
            crate::split::Split::every(square, BLOCK),
        );
        let gradient = &*gradient;
        cpu.each(n_tasks, parts, |task, _, (values, mean, square)| {
            stream(cpu.isa(), &gradient[task * BLOCK..], values, mean, square);
        });
    }
}

crate::isa::per_isa! {
    fn stream(gradient: &[f32], values: &mut [f32], mean: &mut [f32], square: &mut [f32]) {
        for (((p, m), v), g) in values.iter_mut().zip(mean).zip(square).zip(gradient) {
            *m += g;
            *v += g * g;
            *p -= *m * *v;
        }
    }
}
