//! A pretrained encoder-decoder on disk. Its weights are not loaded until training starts.

use std::path::{Path, PathBuf};

use melm_nn::files::{MAX_CONFIG_BYTES, read_text};
use melm_nn::seq2seq::{Seq2Seq, Seq2SeqConfig};

use crate::Error;
use crate::files::Fingerprint;
use crate::models::weight_files;
use crate::pieces::Tokenizer;

/// A Hugging Face folder of mBART or mBART-50.
pub struct PretrainedSeq2Seq {
    dir: PathBuf,
    config: Seq2SeqConfig,
}

impl PretrainedSeq2Seq {
    /// Opens a folder with a model and its tokenizer. Fails if the tokenizer has more pieces than the model has rows.
    pub fn open(dir: &Path) -> Result<Self, Error> {
        let path = dir.join("config.json");
        let text = read_text(&path, MAX_CONFIG_BYTES)
            .map_err(|source| Error::Read { path: path.clone(), source })?;
        let config = Seq2SeqConfig::parse(&path, &text)?;
        let opened = Self { dir: dir.to_path_buf(), config };
        let (n_pieces, n_rows) = (opened.tokenizer()?.n_pieces(), opened.config.vocab_size);
        if n_pieces > n_rows {
            return Err(Error::TooManyPieces { model: opened.name(), n_pieces, n_rows });
        }
        Ok(opened)
    }

    /// The path of the folder, which is the name of the model in messages.
    pub fn name(&self) -> String {
        self.dir.display().to_string()
    }

    /// The configuration of the model.
    pub(crate) fn config(&self) -> &Seq2SeqConfig {
        &self.config
    }

    pub(super) fn tokenizer(&self) -> Result<Tokenizer, Error> {
        Tokenizer::open(&self.dir)
    }

    /// Loads the model and adds rows, drawn from `seed`, if `n_pieces` is above its vocabulary size.
    pub(super) fn model(&self, n_pieces: usize, seed: u64) -> Result<Seq2Seq, Error> {
        let n_added = n_pieces.saturating_sub(self.config.vocab_size);
        Ok(Seq2Seq::open(&self.dir, n_added, seed)?)
    }

    /// The fingerprint of all files that determine the output of the model.
    pub fn fingerprint(&self) -> Result<String, Error> {
        let mut fingerprint = Fingerprint::default();
        for name in ["tokenizer.json", "config.json"] {
            fingerprint.add_file(&self.dir.join(name))?;
        }
        for path in weight_files(&self.dir)? {
            fingerprint.add_file(&path)?;
        }
        Ok(fingerprint.finish())
    }
}
