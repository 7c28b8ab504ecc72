//! The files of a tokenizer. Their text is stored unchanged, so that it can be written beside a saved model.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::value::RawValue;

use crate::Error;
use crate::files::write_whole;

/// The texts of a tokenizer's files.
#[derive(Clone, Debug, Default)]
pub struct TokenizerFiles {
    /// `tokenizer.json`, the only file that this crate reads.
    pub tokenizer: String,
    /// `tokenizer_config.json`, which Python's transformers reads.
    pub tokenizer_config: Option<String>,
    /// `special_tokens_map.json`, which older versions of transformers read.
    pub special_tokens_map: Option<String>,
}

impl TokenizerFiles {
    /// Reads the files of a model folder.
    ///
    /// # Errors
    /// If there is no `tokenizer.json`, or a file cannot be read.
    pub(crate) fn read(dir: &Path) -> Result<Self, Error> {
        let Some(tokenizer) = read_if_exists(&dir.join("tokenizer.json"))? else {
            return Err(Error::NoTokenizer { dir: dir.to_path_buf() });
        };
        let tokenizer_config = read_if_exists(&dir.join("tokenizer_config.json"))?;
        let special_tokens_map = read_if_exists(&dir.join("special_tokens_map.json"))?;
        Ok(Self { tokenizer, tokenizer_config, special_tokens_map })
    }

    /// Writes the files into a model folder. Each file atomically replaces the existing one.
    pub(super) fn write(&self, dir: &Path) -> Result<(), Error> {
        std::fs::create_dir_all(dir)
            .map_err(|source| Error::Write { path: dir.to_path_buf(), source })?;
        let files = [
            ("tokenizer.json", Some(&self.tokenizer)),
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
    match std::fs::read_to_string(path) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(source) => Err(Error::Read { path: path.to_path_buf(), source }),
    }
}
