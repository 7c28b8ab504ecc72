//! Checks that the embedded weights are the values that torch reads from the same file.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

use melm_nn::weights::{Checkpoint, ModelPart};

fn read(checkpoint: &Checkpoint, name: &str) -> Vec<f32> {
    let shape = checkpoint.shape(name).unwrap();
    let mut out = vec![0.0; shape.iter().product()];
    checkpoint.read_into(name, shape, &mut out).unwrap();
    out
}

#[test]
fn mini_opens_whole_and_reads_as_torch_reads_it() {
    let mini = Checkpoint::from_bytes(melm_mini::CONFIG, melm_mini::WEIGHTS.unwrap()).unwrap();
    assert_eq!((mini.config().vocab_size, mini.config().hidden_size), (50_960, 512));
    assert_eq!(mini.missing(ModelPart::LmHead), [""; 0]);

    // The expected values are sums of absolute values, computed by torch with `(value.float() * scale[:,
    // None]).double().abs().sum()`.
    for (name, expected) in [
        ("roberta.embeddings.word_embeddings.weight", 1_508_995.828_832_710_9),
        ("roberta.encoder.layer.5.output.dense.weight", 39_288.996_506_743_366),
        ("lm_head.bias", 3_817.841_018_140_316),
    ] {
        let sum: f64 = read(&mini, name).iter().map(|&value| f64::from(value).abs()).sum();
        assert!((sum / expected - 1.0).abs() < 1e-12, "{name}: {sum}");
    }
    let table = read(&mini, "roberta.embeddings.word_embeddings.weight");
    let row = &table[12_345 * 512..][..4];
    let expected = [0.031_747_892_f32, -0.058_204_472, 0.028_220_35, 0.093_479_91];
    assert_eq!(row.iter().map(|v| v.to_bits()).collect::<Vec<_>>(), expected.map(f32::to_bits));
}
