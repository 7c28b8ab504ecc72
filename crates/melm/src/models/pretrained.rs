//! A pretrained model: weights and tokenizer, from a folder or embedded in the program.

use std::path::{Path, PathBuf};

use melm_nn::weights::Checkpoint;

use crate::Error;
use crate::files::Fingerprint;
use crate::pieces::{Tokenizer, TokenizerFiles};

/// The files of a model that is embedded in the program.
#[derive(Clone, Copy)]
pub struct EmbeddedFiles {
    /// `config.json`.
    pub config: &'static str,
    /// `tokenizer.json`.
    pub tokenizer: &'static str,
    /// `tokenizer_config.json`.
    pub tokenizer_config: &'static str,
    /// `special_tokens_map.json`.
    pub special_tokens_map: &'static str,
    /// `model.safetensors`.
    pub weights: &'static [u8],
}

/// An opened model. Its weights are not loaded yet.
pub struct Pretrained {
    name: String,
    checkpoint: Checkpoint,
    /// The text of `tokenizer.json`.
    tokenizer_json: String,
    /// The parsed tokenizer. It is parsed only once, because parsing takes longer than a short training run.
    tokenizer: Tokenizer,
    source: Source,
}

enum Source {
    Folder(PathBuf),
    Embedded(EmbeddedFiles),
}

impl Pretrained {
    /// Opens a Hugging Face folder.
    pub fn open(dir: &Path) -> Result<Self, Error> {
        Self::checked(Self {
            name: dir.display().to_string(),
            checkpoint: Checkpoint::open(dir)?,
            tokenizer_json: TokenizerFiles::read(dir)?.tokenizer,
            tokenizer: Tokenizer::open(dir)?,
            source: Source::Folder(dir.to_path_buf()),
        })
    }

    /// Opens a model that is embedded in the program.
    pub fn embedded(name: &str, embedded: EmbeddedFiles) -> Result<Self, Error> {
        let files = TokenizerFiles {
            tokenizer: embedded.tokenizer.to_owned(),
            tokenizer_config: Some(embedded.tokenizer_config.to_owned()),
            special_tokens_map: Some(embedded.special_tokens_map.to_owned()),
        };
        Self::checked(Self {
            name: name.to_owned(),
            checkpoint: Checkpoint::from_bytes(embedded.config, embedded.weights)?,
            tokenizer_json: files.tokenizer.clone(),
            tokenizer: Tokenizer::from_files(files)?,
            source: Source::Embedded(embedded),
        })
    }

    /// Sets the name of the model in messages and records.
    #[must_use]
    pub(crate) fn with_name(mut self, name: &str) -> Self {
        name.clone_into(&mut self.name);
        self
    }

    fn checked(self) -> Result<Self, Error> {
        let (n_pieces, n_rows) = (self.tokenizer.n_pieces(), self.checkpoint.config().vocab_size);
        if n_pieces > n_rows {
            return Err(Error::TooManyPieces { model: self.name, n_pieces, n_rows });
        }
        Ok(self)
    }

    /// The name of the model in messages.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The weights and the configuration.
    pub fn checkpoint(&self) -> &Checkpoint {
        &self.checkpoint
    }

    /// Returns a copy of the tokenizer, to which the caller may add markers.
    pub(crate) fn tokenizer(&self) -> Tokenizer {
        self.tokenizer.clone()
    }

    /// Returns a hash of all files that determine the output of the model.
    pub fn fingerprint(&self) -> Result<String, Error> {
        let mut fingerprint = Fingerprint::default();
        fingerprint.add(self.tokenizer_json.as_bytes());
        match &self.source {
            Source::Embedded(embedded) => {
                fingerprint.add_content(embedded.config.as_bytes());
                fingerprint.add_content(embedded.weights);
            }
            Source::Folder(dir) => {
                fingerprint.add_file(&dir.join("config.json"))?;
                for path in weight_files(dir)? {
                    fingerprint.add_file(&path)?;
                }
            }
        }
        Ok(fingerprint.finish())
    }
}

/// Returns the weight files of a folder, sorted by name.
pub(crate) fn weight_files(dir: &Path) -> Result<Vec<PathBuf>, Error> {
    let failed = |source| Error::Read { path: dir.to_path_buf(), source };
    let mut paths = Vec::new();
    for entry in std::fs::read_dir(dir).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        if path.extension().is_some_and(|extension| extension == "safetensors") {
            paths.push(path);
        }
    }
    paths.sort();
    Ok(paths)
}
