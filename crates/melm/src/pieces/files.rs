//! The files of a tokenizer. Their text is stored unchanged, so that it can be written beside a saved model.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use melm_nn::files::read_text;
use serde_json::value::RawValue;

use super::vocab_txt::{self, BuiltFiles};
use crate::Error;
use crate::files::{create_folder, write_whole};

/// The maximum size of a file. The largest published ones, for 256,000 pieces, have 35 MB.
const MAX_BYTES: u64 = 128 << 20;

const TOKENIZER: &str = "tokenizer.json";
const VOCABULARY: &str = "vocab.txt";

/// The texts of a tokenizer's files.
#[derive(Clone, Debug, Default)]
pub struct TokenizerFiles {
    /// `tokenizer.json`, from which this crate reads the rules.
    pub tokenizer: String,
    /// `tokenizer_config.json`, which Python's transformers reads.
    pub tokenizer_config: Option<String>,
    /// `special_tokens_map.json`, which older versions of transformers read.
    pub special_tokens_map: Option<String>,
}

impl TokenizerFiles {
    /// Reads the files of a model folder. If there is no `tokenizer.json` but the `vocab.txt` of an old BERT model, the
    /// same rules are built from it.
    ///
    /// # Errors
    /// If there is neither file, or a file cannot be read, is too large, or is not a regular file.
    pub(crate) fn read(dir: &Path) -> Result<Self, Error> {
        let tokenizer_config = read_if_exists(&dir.join("tokenizer_config.json"))?;
        let special_tokens_map = read_if_exists(&dir.join("special_tokens_map.json"))?;
        if let Some(tokenizer) = read_if_exists(&dir.join(TOKENIZER))? {
            return Ok(Self { tokenizer, tokenizer_config, special_tokens_map });
        }
        let path = dir.join(VOCABULARY);
        let Some(vocab) = read_if_exists(&path)? else {
            return Err(Error::NoTokenizer { dir: dir.to_path_buf() });
        };
        let built = vocab_txt::build(&vocab, tokenizer_config.as_deref());
        let BuiltFiles { tokenizer, tokenizer_config } =
            built.map_err(|error| error.in_file(&path))?;
        Ok(Self { tokenizer, tokenizer_config: Some(tokenizer_config), special_tokens_map })
    }

    /// Returns the file of a folder from which the rules are read, for messages.
    pub(super) fn path(dir: &Path) -> PathBuf {
        let tokenizer = dir.join(TOKENIZER);
        if tokenizer.exists() { tokenizer } else { dir.join(VOCABULARY) }
    }

    /// Writes the files into a model folder. Each file atomically replaces the existing one.
    pub(super) fn write(&self, dir: &Path) -> Result<(), Error> {
        create_folder(dir)?;
        let files = [
            (TOKENIZER, Some(&self.tokenizer)),
            ("tokenizer_config.json", self.tokenizer_config.as_ref()),
            ("special_tokens_map.json", self.special_tokens_map.as_ref()),
        ];
        for (name, text) in files {
            if let Some(text) = text {
                write_whole(&dir.join(name), text.as_bytes())?;
            }
        }
        Ok(())
    }

    /// Adds markers to the text of `tokenizer.json`. All other text is not changed, because parsing and printing it
    /// again would round the scores of the pieces.
    pub(super) fn add_markers(
        &mut self,
        path: &Path,
        markers: &[(&str, u32)],
    ) -> Result<(), Error> {
        let invalid = |source| Error::TokenizerJson { path: path.to_path_buf(), source };
        let mut parts: BTreeMap<&str, Box<RawValue>> =
            serde_json::from_str(&self.tokenizer).map_err(invalid)?;
        let mut added: Vec<serde_json::Value> = match parts.get("added_tokens") {
            Some(added) => serde_json::from_str(added.get()).map_err(invalid)?,
            None => Vec::new(),
        };
        added.extend(markers.iter().map(|&(content, id)| {
            serde_json::json!({
                "id": id, "content": content, "special": true,
                "single_word": false, "lstrip": false, "rstrip": false, "normalized": false,
            })
        }));
        parts.insert("added_tokens", serde_json::value::to_raw_value(&added).map_err(invalid)?);
        self.tokenizer = serde_json::to_string(&parts).map_err(invalid)?;
        Ok(())
    }
}

fn read_if_exists(path: &Path) -> Result<Option<String>, Error> {
    match read_text(path, MAX_BYTES) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(source) => Err(Error::Read { path: path.to_path_buf(), source }),
    }
}
