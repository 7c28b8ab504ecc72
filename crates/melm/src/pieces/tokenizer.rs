//! The tokenizer of a model.

use std::collections::HashMap;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};

use super::files::Files;
use super::segmenter::{Opened, Segmenter};
use crate::Error;

/// Distinct tokens remembered; beyond it tokens are segmented anew, so that a huge corpus cannot fill the memory.
const MOST_REMEMBERED: usize = 1 << 20;

/// Tokens and their pieces.
type Remembered = HashMap<Box<str>, Box<[u32]>>;

/// A sentence as the model reads it: `<s>`, the pieces of its tokens, `</s>`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Encoded {
    /// Piece ids, `<s>` and `</s>` included.
    pub pieces: Vec<u32>,
    /// For each token the range of its pieces in `pieces`: contiguous, non-empty, covering all but `<s>` and `</s>`.
    pub tokens: Vec<Range<u32>>,
    /// Tokens that have no piece of their own (nothing visible in them) and stand as `<unk>`.
    pub n_invisible: usize,
}

/// The ids of the special pieces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Specials {
    /// `<s>`, before a sentence.
    pub bos: u32,
    /// `</s>`, after a sentence.
    pub eos: u32,
    /// `<pad>`.
    pub pad: u32,
    /// `<unk>`, for characters the vocabulary lacks.
    pub unk: u32,
    /// `<mask>`, for pieces the model is to guess.
    pub mask: u32,
}

/// Cuts tokens into pieces; see the [module](super) for what it promises.
///
/// Copies have markers of their own and share the rules and what they remember, which do not depend on markers.
#[derive(Clone)]
pub struct Tokenizer {
    path: PathBuf,
    segmenter: Arc<Segmenter>,
    pieces: Vec<String>,
    ids: HashMap<String, u32>,
    /// Ids that only we may place: those of special pieces, markers and whatever else was added to the vocabulary.
    added: Vec<u32>,
    specials: Specials,
    files: Files,
    remembered: Arc<RwLock<Remembered>>,
}

impl Tokenizer {
    /// Opens the tokenizer of a model folder.
    pub fn open(dir: &Path) -> Result<Self, Error> {
        Self::new(dir.join("tokenizer.json"), Files::read(dir)?)
    }

    /// Opens a tokenizer that is part of the program.
    pub fn from_files(files: Files) -> Result<Self, Error> {
        Self::new(PathBuf::from("(embedded model)/tokenizer.json"), files)
    }

    fn new(path: PathBuf, files: Files) -> Result<Self, Error> {
        let Opened { segmenter, mut pieces, added } = Segmenter::parse(&path, &files.tokenizer)?;
        let mut ids = Vec::new();
        for (piece, id) in added {
            match pieces.get(id as usize) {
                Some(known) if *known == piece => {}
                None if id as usize == pieces.len() => pieces.push(piece),
                _ => return Err(Error::AddedPiece { path, piece, id }),
            }
            ids.push(id);
        }
        let added = ids;
        let ids = (0u32..).zip(&pieces).map(|(id, piece)| (piece.clone(), id)).collect();
        let specials = Specials::find(&path, &ids)?;
        let (segmenter, remembered) = (Arc::new(segmenter), Arc::default());
        let tokenizer = Self { path, segmenter, pieces, ids, added, specials, files, remembered };
        tokenizer.check_that_text_stays_text()?;
        Ok(tokenizer)
    }

    fn check_that_text_stays_text(&self) -> Result<(), Error> {
        for &id in self.added.iter().filter(|&&id| id != self.specials.unk) {
            let found = self.segmenter.segment(self.piece(id))?;
            if found.iter().any(|piece| *piece != self.specials.unk && self.added.contains(piece)) {
                return Err(Error::SpecialInText {
                    path: self.path.clone(),
                    piece: self.piece(id).to_owned(),
                });
            }
        }
        Ok(())
    }

    /// Encodes a sentence given as tokens. Never truncates.
    pub fn encode(&self, tokens: &[impl AsRef<str>]) -> Result<Encoded, Error> {
        let mut encoded = Encoded { pieces: vec![self.specials.bos], ..Encoded::default() };
        for token in tokens {
            let start = encoded.len();
            self.extend_with(token.as_ref(), &mut encoded.pieces)?;
            if encoded.len() == start {
                encoded.pieces.push(self.specials.unk);
                encoded.n_invisible += 1;
            }
            encoded.tokens.push(start..encoded.len());
        }
        encoded.pieces.push(self.specials.eos);
        Ok(encoded)
    }

    /// Appends the pieces of a token, which depend on nothing but the token.
    fn extend_with(&self, token: &str, pieces: &mut Vec<u32>) -> Result<(), Error> {
        // A panic elsewhere cannot leave the map half-changed in a way that matters: entries are whole or absent.
        if let Some(known) =
            self.remembered.read().unwrap_or_else(PoisonError::into_inner).get(token)
        {
            pieces.extend_from_slice(known);
            return Ok(());
        }
        let new = self.segmenter.segment(token)?;
        pieces.extend_from_slice(&new);
        let mut remembered = self.remembered.write().unwrap_or_else(PoisonError::into_inner);
        if remembered.len() < MOST_REMEMBERED {
            remembered.insert(token.into(), new.into());
        }
        Ok(())
    }

    /// Gives each marker an id after the vocabulary; one that the tokenizer has as a marker already keeps its id.
    pub fn add_markers(&mut self, markers: &[impl AsRef<str>]) -> Result<Vec<u32>, Error> {
        let n_before = self.pieces.len();
        let mut result = Vec::with_capacity(markers.len());
        for marker in markers.iter().map(AsRef::as_ref) {
            result.push(match self.ids.get(marker) {
                Some(id) if self.is_marker(*id) => *id,
                None if !marker.is_empty() => self.push_marker(marker),
                _ => {
                    return Err(Error::MarkerTaken { marker: marker.to_owned() });
                }
            });
        }
        let new: Vec<_> = (0u32..)
            .zip(&self.pieces)
            .skip(n_before)
            .map(|(id, piece)| (piece.as_str(), id))
            .collect();
        if !new.is_empty() {
            self.files.add_markers(&self.path, &new)?;
        }
        Ok(result)
    }

    fn push_marker(&mut self, marker: &str) -> u32 {
        let id =
            u32::try_from(self.pieces.len()).expect("ids of pieces are u32 in the file itself");
        self.pieces.push(marker.to_owned());
        self.ids.insert(marker.to_owned(), id);
        self.added.push(id);
        id
    }

    /// Whether a piece was added as a marker.
    pub fn is_marker(&self, id: u32) -> bool {
        self.added.contains(&id) && !self.specials.ids().contains(&id)
    }

    /// The special pieces.
    pub fn specials(&self) -> Specials {
        self.specials
    }

    /// The number of pieces, markers included: the rows that the piece table needs.
    pub fn n_pieces(&self) -> usize {
        self.pieces.len()
    }

    /// The piece with this id, as the vocabulary writes it: a leading `▁` (byte-level `Ġ`) begins a word.
    ///
    /// # Panics
    /// If the id is not below [`Self::n_pieces`].
    pub fn piece(&self, id: u32) -> &str {
        &self.pieces[id as usize]
    }

    /// The id of a piece, special piece or marker.
    pub fn id(&self, piece: &str) -> Option<u32> {
        self.ids.get(piece).copied()
    }

    /// Special pieces, markers and whatever else was added to the vocabulary: what only we place.
    pub fn added(&self) -> &[u32] {
        &self.added
    }

    /// The text that a piece adds to its word; `None` if by itself it is no text, as one byte of several.
    pub fn text(&self, id: u32) -> Option<String> {
        self.segmenter.text(self.piece(id))
    }

    /// Whether the piece begins a word; special pieces and markers do not.
    pub fn is_word_initial(&self, id: u32) -> bool {
        self.segmenter.begins_word(self.piece(id))
    }

    /// The token that pieces spell, trimmed; special pieces and markers are spelled like any other.
    pub fn decode(&self, pieces: &[u32]) -> String {
        self.segmenter.spell(pieces.iter().map(|&id| self.piece(id).to_owned()).collect())
    }

    /// Writes the tokenizer's files, markers included, so that Python's `AutoTokenizer` opens the folder.
    pub fn save(&self, dir: &Path) -> Result<(), Error> {
        self.files.write(dir)
    }
}

impl Encoded {
    fn len(&self) -> u32 {
        u32::try_from(self.pieces.len()).expect("a sentence has fewer than 2^32 pieces")
    }
}

impl Specials {
    pub(super) const TEXTS: [&str; 5] = ["<s>", "</s>", "<pad>", "<unk>", "<mask>"];

    fn find(path: &Path, ids: &HashMap<String, u32>) -> Result<Self, Error> {
        let id = |piece| match ids.get(piece) {
            Some(&id) => Ok(id),
            None => Err(Error::NoSpecial { path: path.to_path_buf(), piece }),
        };
        let [bos, eos, pad, unk, mask] = Self::TEXTS.map(id);
        Ok(Self { bos: bos?, eos: eos?, pad: pad?, unk: unk?, mask: mask? })
    }

    fn ids(self) -> [u32; 5] {
        [self.bos, self.eos, self.pad, self.unk, self.mask]
    }
}
