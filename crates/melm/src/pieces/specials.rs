//! The special pieces of a vocabulary.

use std::collections::HashMap;
use std::path::Path;

use crate::Error;

/// The ids of the special pieces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SpecialPieces {
    /// `<s>` or `[CLS]`, before each sentence.
    pub bos: u32,
    /// `</s>` or `[SEP]`, after each sentence.
    pub eos: u32,
    /// `<pad>` or `[PAD]`.
    pub pad: u32,
    /// `<unk>` or `[UNK]`, for characters that are not in the vocabulary.
    pub unk: u32,
    /// `<mask>` or `[MASK]`, in the place of pieces that the model predicts.
    pub mask: u32,
}

/// The names of the special pieces in each family: XLM-R and `RoBERTa`, BERT and `ModernBERT`, Gemma and `mmBERT`.
const NAMES: [[&str; 5]; 3] = [
    ["<s>", "</s>", "<pad>", "<unk>", "<mask>"],
    ["[CLS]", "[SEP]", "[PAD]", "[UNK]", "[MASK]"],
    ["<bos>", "<eos>", "<pad>", "<unk>", "<mask>"],
];

impl SpecialPieces {
    /// Returns true if a special piece of any family has this text.
    pub(super) fn is_name(piece: &str) -> bool {
        NAMES.as_flattened().contains(&piece)
    }

    /// Finds the special pieces by their names. Fails if one of them is missing in every family.
    pub(super) fn find(path: &Path, ids: &HashMap<String, u32>) -> Result<Self, Error> {
        let n_missing =
            |names: &&[&str; 5]| names.iter().filter(|name| !ids.contains_key(**name)).count();
        let names = NAMES.iter().min_by_key(n_missing).expect("there are several families");
        let id = |piece| match ids.get(piece) {
            Some(&id) => Ok(id),
            None => Err(Error::NoSpecial { path: path.to_path_buf(), piece }),
        };
        let [bos, eos, pad, unk, mask] = names.map(id);
        Ok(Self { bos: bos?, eos: eos?, pad: pad?, unk: unk?, mask: mask? })
    }

    /// Returns all five ids.
    pub(super) fn ids(self) -> [u32; 5] {
        [self.bos, self.eos, self.pad, self.unk, self.mask]
    }
}
