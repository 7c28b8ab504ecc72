//! Samples a piece according to the scores. The caller supplies the random number; the engine itself has no random
//! generator.

/// Returns the piece at which the cumulative probability of `softmax(scores / temperature)` exceeds `share`, a number in
/// `[0, 1)`.
///
/// The sum is computed in f64 and in the order of the pieces, so that the result depends only on the arguments.
///
/// ```
/// use melm_nn::draw::draw;
/// let scores = [0.0, 1.0_f32.ln(), 2.0_f32.ln()]; // probabilities 1/4, 1/4, 1/2
/// assert_eq!([0.0, 0.2, 0.3, 0.6, 0.99].map(|share| draw(&scores, 1.0, share)), [0, 0, 1, 2, 2]);
/// ```
///
/// # Panics
/// If there are no scores.
pub fn draw(scores: &[f32], temperature: f64, share: f64) -> usize {
    let largest = scores.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let weight = |score: &f32| ((f64::from(*score) - f64::from(largest)) / temperature).exp();
    let mut left = share * scores.iter().map(weight).sum::<f64>();
    let passed = scores.iter().position(|score| {
        left -= weight(score);
        left < 0.0
    });
    // Because of rounding, the probabilities can sum to less than the share. Then the last piece with a probability
    // above 0 is returned.
    let last = || scores.iter().rposition(|score| *score > f32::NEG_INFINITY);
    passed.or_else(last).expect("there are scores to draw from")
}

#[cfg(test)]
mod tests {
    use super::draw;

    #[test]
    fn pieces_are_drawn_with_their_probabilities() {
        let scores = [0.3_f32, -1.0, 2.0, f32::NEG_INFINITY, 1.0];
        for temperature in [0.5, 1.0, 3.0] {
            let weights = scores.map(|score| (f64::from(score) / temperature).exp());
            let total: f64 = weights.iter().sum();
            let n = 100_000;
            let mut counts = [0_u32; 5];
            for step in 0..n {
                counts[draw(&scores, temperature, (f64::from(step) + 0.5) / f64::from(n))] += 1;
            }
            for (count, weight) in counts.iter().zip(weights) {
                assert!((f64::from(*count) / f64::from(n) - weight / total).abs() < 2e-5);
            }
        }
    }

    #[test]
    fn a_piece_of_probability_zero_is_never_drawn() {
        let scores = [f32::NEG_INFINITY, 0.0, f32::NEG_INFINITY];
        assert_eq!([0.0, 0.5, 1.0 - f64::EPSILON].map(|share| draw(&scores, 1.0, share)), [1; 3]);
    }
}
