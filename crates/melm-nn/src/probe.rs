//! What this machine can do, for the bench to compare a step with: products at a step's shapes, optimiser's bytes.

use crate::buffer::Buffer;
use crate::device::Cpu;
use crate::ops::linear::{Accumulator, Linear};

/// Which of a linear map's three products.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Product {
    /// `x W^T`.
    Forward,
    /// `dy W`.
    Backward,
    /// `dy^T x`.
    Weights,
}

/// One linear map's memory, to run its products alone.
pub struct LinearProbe {
    linear: Linear,
    n_rows: usize,
    x: Buffer,
    weight: Buffer,
    y: Buffer,
}

impl LinearProbe {
    /// `n_rows` rows through a map of `inputs` to `outputs`.
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

    /// Floating-point operations of one product.
    pub fn n_operations(&self) -> f64 {
        2.0 * (self.n_rows * self.linear.inputs * self.linear.outputs) as f64
    }

    /// Runs one product.
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

/// The bytes of an optimiser's update: four streams read, three written.
pub struct StreamProbe {
    streams: [Buffer; 4],
}

impl StreamProbe {
    /// Streams of `len` numbers.
    pub fn new(len: usize) -> Self {
        let mut streams: [Buffer; 4] = Default::default();
        for stream in &mut streams {
            stream.reserve(len);
        }
        Self { streams }
    }

    /// Bytes of one pass, reads and writes.
    pub fn n_bytes(&self) -> f64 {
        (7 * size_of::<f32>() * self.streams[0].len()) as f64
    }

    /// One pass, with as little arithmetic as keeps every byte moving.
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
