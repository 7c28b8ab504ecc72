//! Measures how fast this machine computes matrix products with the shapes of a training step, and how fast it reads
//! and writes the memory of an optimiser. Benchmarks compare the time of a step with these speeds, and the command line
//! estimates run times from them.

use crate::buffer::Buffer;
use crate::device::Cpu;
use crate::dropout::mix;
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

/// The matrices of one linear layer, used to measure the speed of its products.
pub struct LinearProbe {
    linear: Linear,
    n_rows: usize,
    /// `[n_rows, inputs]`.
    x: Buffer,
    /// `[outputs, inputs]`.
    weight: Buffer,
    /// `[n_rows, outputs]`.
    dy: Buffer,
    result: Buffer,
}

impl LinearProbe {
    /// Allocates a layer from `inputs` to `outputs` and a batch of `n_rows` rows, and fills them with fixed numbers.
    ///
    /// # Panics
    /// If the memory cannot be allocated.
    pub fn new(n_rows: usize, inputs: usize, outputs: usize) -> Self {
        let filled = |len: usize, seed: u64| {
            let mut buffer = Buffer::default();
            buffer.reserve(len);
            for (index, value) in (0_u64..).zip(&mut *buffer) {
                *value = (mix(seed ^ index) >> 40) as f32 / (1_u64 << 23) as f32 - 1.0;
            }
            buffer
        };
        Self {
            linear: Linear { inputs, outputs },
            n_rows,
            x: filled(n_rows * inputs, 1 << 60),
            weight: filled(outputs * inputs, 2 << 60),
            dy: filled(n_rows * outputs, 3 << 60),
            result: Buffer::default(),
        }
    }

    /// Returns the number of floating-point operations of one product.
    pub fn n_operations(&self) -> f64 {
        2.0 * (self.n_rows * self.linear.inputs * self.linear.outputs) as f64
    }

    /// Returns the input `[n_rows, inputs]`.
    pub fn input(&self) -> &[f32] {
        &self.x
    }

    /// Returns the weights `[outputs, inputs]`.
    pub fn weight(&self) -> &[f32] {
        &self.weight
    }

    /// Returns the gradient of the output `[n_rows, outputs]`.
    pub fn output_gradient(&self) -> &[f32] {
        &self.dy
    }

    /// Computes one product and returns the result.
    pub fn run(&mut self, cpu: &Cpu, product: Product) -> &[f32] {
        let (linear, n) = (self.linear, self.n_rows);
        let len = match product {
            Product::Forward => n * linear.outputs,
            Product::Backward => n * linear.inputs,
            Product::Weights => linear.outputs * linear.inputs,
        };
        self.result.reserve(len);
        let data = &mut self.result[..len];
        match product {
            Product::Forward => linear.forward(cpu, &self.x, &self.weight, data),
            Product::Backward => {
                let out = Accumulator::overwrite(data);
                linear.backward(cpu, &self.dy, &self.weight, out);
            }
            Product::Weights => {
                let out = Accumulator::overwrite(data);
                linear.weight_gradient(cpu, &self.dy, &self.x, out);
            }
        }
        &self.result[..len]
    }
}

/// The arrays of an optimiser update, used to measure memory traffic. One pass reads four arrays and writes three.
pub struct StreamProbe {
    streams: [Buffer; 4],
}

impl StreamProbe {
    /// Allocates arrays of `len` numbers.
    ///
    /// # Panics
    /// If the memory cannot be allocated.
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

    /// Runs one pass with as little arithmetic as possible.
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
