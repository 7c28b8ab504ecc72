//! Rotary positions: queries and keys are rotated by angles that grow with the position, so that their products depend
//! on the distance of two positions only.

use crate::config::Config;
use crate::isa::{Isa, per_isa};

/// The cosines and sines of the angles of all positions so far. Empty if the family has a position table.
#[derive(Default)]
pub(crate) struct Angles {
    n_positions: usize,
    /// One table for each base. Layers with global and local attention may have different bases.
    tables: Vec<Table>,
}

struct Table {
    theta: f64,
    angles: Vec<f32>,
}

impl Angles {
    /// Computes the angles of at least `n_positions` positions, unless they exist or the family has a position table.
    pub(crate) fn grow(&mut self, config: &Config, n_positions: usize) {
        if config.has_position_table() || n_positions <= self.n_positions {
            return;
        }
        // Room for longer sentences to come, so that few batches compute angles.
        self.n_positions = n_positions.next_power_of_two();
        self.tables.clear();
        let head_size = config.hidden_size / config.n_heads;
        for theta in (0..config.n_layers).filter_map(|layer| config.theta(layer)) {
            if self.find(theta).is_none() {
                let angles = angles(theta, head_size, self.n_positions);
                self.tables.push(Table { theta, angles });
            }
        }
    }

    /// Returns the angles of a layer as [`angles`] does, or `None` if the family has a position table.
    pub(crate) fn layer(&self, config: &Config, layer: usize) -> Option<&[f32]> {
        self.find(config.theta(layer)?)
    }

    fn find(&self, theta: f64) -> Option<&[f32]> {
        let table = self.tables.iter().find(|table| table.theta.to_bits() == theta.to_bits())?;
        Some(&table.angles)
    }
}

/// Returns the cosines and sines of the angles of positions, `[positions, head size]`. The first half of a row has the
/// cosines, the second half the sines. Angles are rounded to f32 where transformers rounds them.
#[expect(clippy::cast_possible_truncation, reason = "the precision of the engine")]
pub(crate) fn angles(theta: f64, head_size: usize, n_positions: usize) -> Vec<f32> {
    let half = head_size / 2;
    let frequencies: Vec<f32> =
        (0..half).map(|i| theta.powf(-2.0 * i as f64 / head_size as f64) as f32).collect();
    let mut table = Vec::with_capacity(n_positions * head_size);
    for position in 0..n_positions {
        let angle = |frequency: &f32| f64::from(position as f32 * frequency);
        table.extend(frequencies.iter().map(|frequency| angle(frequency).cos() as f32));
        table.extend(frequencies.iter().map(|frequency| angle(frequency).sin() as f32));
    }
    table
}

per_isa! {
    /// Rotates each pair of numbers `(x[i], x[i + half])` of a head.
    fn rotate_head(cosines: &[f32], sines: &[f32], first: &mut [f32], second: &mut [f32]) {
        for (((a, b), cos), sin) in first.iter_mut().zip(second).zip(cosines).zip(sines) {
            (*a, *b) = (*a * cos - *b * sin, *b * cos + *a * sin);
        }
    }
}

per_isa! {
    /// The inverse of [`rotate_head`], which is also its backward pass.
    fn rotate_head_back(cosines: &[f32], sines: &[f32], first: &mut [f32], second: &mut [f32]) {
        for (((a, b), cos), sin) in first.iter_mut().zip(second).zip(cosines).zip(sines) {
            (*a, *b) = (*a * cos + *b * sin, *b * cos - *a * sin);
        }
    }
}

/// A direction of rotation.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Direction {
    Forward,
    /// The inverse, for gradients.
    Back,
}

/// Rotates the queries and keys of one sentence in rows `[3 width]` that contain query, key and value side by side.
pub(crate) fn rotate_sentence(
    isa: Isa,
    direction: Direction,
    angles: &[f32],
    head_size: usize,
    width: usize,
    qkv: &mut [f32],
) {
    for (row, angles) in qkv.chunks_exact_mut(3 * width).zip(angles.chunks_exact(head_size)) {
        let (cosines, sines) = angles.split_at(head_size / 2);
        for head in row[..2 * width].chunks_exact_mut(head_size) {
            let (first, second) = head.split_at_mut(head_size / 2);
            match direction {
                Direction::Forward => rotate_head(isa, cosines, sines, first, second),
                Direction::Back => rotate_head_back(isa, cosines, sines, first, second),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn products_of_rotated_rows_depend_on_the_distance_only() {
        let (isa, size) = (Isa::detect(), 8);
        let table = angles(10_000.0, size, 40);
        let query: Vec<f32> = (0..3 * 8).map(|i| (i as f32 * 0.7).sin()).collect();
        let rotated = |position: usize| {
            let mut row = query.clone();
            let angles = &table[position * size..(position + 1) * size];
            rotate_sentence(isa, Direction::Forward, angles, size, size, &mut row);
            row
        };
        let product = |i: usize, j: usize| -> f32 {
            let (queries, keys) = (rotated(i), rotated(j));
            queries[..size].iter().zip(&keys[size..2 * size]).map(|(a, b)| a * b).sum()
        };
        assert!((product(3, 10) - product(30, 37)).abs() < 1e-5);
        assert!((product(3, 10) - product(3, 11)).abs() > 1e-3);
        // Values are not rotated, and the inverse restores the row.
        let mut row = rotated(17);
        assert_eq!(row[16..], query[16..]);
        let angles = &table[17 * size..18 * size];
        rotate_sentence(isa, Direction::Back, angles, size, size, &mut row);
        assert!(row.iter().zip(&query).all(|(a, b)| (a - b).abs() < 1e-6));
    }
}
