//! Adds markers to a model and saves it, for `tools/check_saved_model.py`. New rows of the piece table are zero.
//!
//! usage: `resave_model MODEL_FOLDER OUT_FOLDER MARKER...`

use std::error::Error;
use std::path::Path;

use melm::pieces::Tokenizer;
use melm_nn::weights::{Checkpoint, Tensor, save};

const ROW_PER_PIECE: [&str; 2] = ["roberta.embeddings.word_embeddings.weight", "lm_head.bias"];

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [model, out, markers @ ..] = arguments.as_slice() else {
        return Err("usage: resave_model MODEL_FOLDER OUT_FOLDER MARKER...".into());
    };
    let checkpoint = Checkpoint::open(Path::new(model))?;
    let mut tokenizer = Tokenizer::open(Path::new(model))?;
    tokenizer.add_markers(markers)?;
    let mut config = checkpoint.config().clone();
    config.vocab_size = config.vocab_size.max(tokenizer.n_pieces());

    let mut values = Vec::new();
    for name in checkpoint.names() {
        let stored = checkpoint.shape(name).unwrap_or_default();
        let mut data = vec![0.0; stored.iter().product()];
        checkpoint.read_into(name, stored, &mut data)?;
        let mut shape = stored.to_vec();
        if ROW_PER_PIECE.contains(&name) {
            shape[0] = config.vocab_size;
            data.resize(shape.iter().product(), 0.0);
        }
        values.push((name, shape, data));
    }
    let tensors: Vec<_> =
        values.iter().map(|(name, shape, data)| Tensor { name, shape, data }).collect();
    save(Path::new(out), &config, &tensors)?;
    Ok(tokenizer.save(Path::new(out))?)
}
