//! Saves and opens taggers: a Hugging Face folder, plus a file with the tagging scheme.

use std::path::Path;

use melm_nn::files::{MAX_CONFIG_BYTES, read_text};
use melm_nn::tagger as nn;
use melm_nn::weights::Checkpoint;
use melm_text::Scheme;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{TagSet, TaggerModel};
use crate::Error;
use crate::files::write_whole;
use crate::pieces::Tokenizer;

/// The file for settings that have no place in the other files of a Hugging Face folder.
const FILE: &str = "tagger.json";

#[derive(Serialize, Deserialize)]
struct Extra {
    scheme: String,
    constrained: bool,
}

impl TaggerModel {
    /// Writes a folder that [`Self::open`] and Python's `AutoModelForTokenClassification` can open. Python ignores
    /// the CRF.
    pub fn save(&self, dir: &Path) -> Result<(), Error> {
        self.model.save(dir, &self.tags.names())?;
        self.tokenizer.save(dir)?;
        let scheme = self.tags.scheme().to_string();
        let extra = Extra { scheme, constrained: self.is_constrained };
        let text = serde_json::to_string_pretty(&extra).expect("two plain values are JSON");
        write_whole(&dir.join(FILE), (text + "\n").as_bytes())
    }

    /// Opens a folder written by [`Self::save`], or an XLM-R for token classification that was trained by another
    /// program.
    ///
    /// Fails if the folder is not a tagger, if its tags do not form a valid scheme, or if the tokenizer has more
    /// pieces than the model has rows.
    pub fn open(dir: &Path) -> Result<Self, Error> {
        let checkpoint = Checkpoint::open(dir)?;
        let Some(mut settings) = nn::TaggerSettings::from_checkpoint(&checkpoint) else {
            return Err(Error::NotATagger { dir: dir.to_path_buf() });
        };
        let extra = read_extra(dir)?;
        let wrong = |what: String| Error::TagNames { dir: dir.to_path_buf(), what };
        let names = names(checkpoint.config().extra.get("id2label"), settings.n_tags);
        let names = names.map_err(wrong)?;
        let scheme = match extra.as_ref().map(|extra| extra.scheme.parse::<Scheme>()) {
            None => None,
            Some(Ok(scheme)) => Some(scheme),
            Some(Err(error)) => return Err(wrong(error.to_string())),
        };
        let tags = TagSet::from_names(&names, scheme).map_err(wrong)?;
        let is_constrained = extra.is_none_or(|extra| extra.constrained);
        settings.allowed = is_constrained.then(|| tags.allowed());
        let model = nn::Tagger::open(&checkpoint, settings, 0)?;
        let tokenizer = Tokenizer::open(dir)?;
        let (n_pieces, n_rows) = (tokenizer.n_pieces(), checkpoint.config().vocab_size);
        if n_pieces > n_rows {
            let model = dir.display().to_string();
            return Err(Error::TooManyPieces { model, n_pieces, n_rows });
        }
        Ok(Self { model, tokenizer, tags, is_constrained })
    }
}

fn read_extra(dir: &Path) -> Result<Option<Extra>, Error> {
    let path = dir.join(FILE);
    match read_text(&path, MAX_CONFIG_BYTES) {
        Ok(text) => serde_json::from_str(&text)
            .map(Some)
            .map_err(|source| melm_nn::Error::Json { path, source }.into()),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(source) => Err(Error::Read { path, source }),
    }
}

/// Returns the names of the tags in the order of their numbers. Fails with a description of what is wrong with
/// `id2label`.
fn names(id2label: Option<&Value>, n_tags: usize) -> Result<Vec<String>, String> {
    let Some(map) = id2label.and_then(Value::as_object) else {
        return Err("`config.json` has no `id2label`".to_owned());
    };
    let name = |number: usize| {
        let found = map.get(&number.to_string()).and_then(Value::as_str);
        found.map(str::to_owned).ok_or_else(|| format!("`id2label` has no name for {number}"))
    };
    (0..n_tags).map(name).collect()
}
