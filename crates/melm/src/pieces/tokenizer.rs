//! The tokenizer of a model.

use std::collections::HashMap;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard};

use super::files::TokenizerFiles;
use super::segmenter::{Segmenter, compose};
use super::specials::SpecialPieces;
use crate::Error;

/// The maximum number of tokens in the cache. It limits the memory that a huge corpus can take.
const MAX_CACHED: usize = 1 << 20;

/// The pieces of tokens that were segmented before.
type Cache = HashMap<Box<str>, Box<[u32]>>;

/// A sentence as the model reads it: `<s>`, the pieces of its tokens, `</s>`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Encoded {
    /// Piece ids, `<s>` and `</s>` included.
    pub pieces: Vec<u32>,
    /// For each token the range of its pieces in `pieces`: contiguous, non-empty, covering all but `<s>` and `</s>`.
    pub tokens: Vec<Range<u32>>,
    /// The number of tokens without a visible character, which are encoded as `<unk>`.
    pub n_invisible: usize,
}

/// Splits tokens into pieces. The [module](super) lists the differences from Hugging Face's tokenizers.
///
/// Clones share the rules and the cache of segmented tokens, which do not depend on markers. Each clone has its own
/// markers.
#[derive(Clone)]
pub struct Tokenizer {
    path: PathBuf,
    segmenter: Arc<Segmenter>,
    pieces: Vec<String>,
    ids: HashMap<String, u32>,
    /// Ids that never come from text: special pieces, markers and all other added pieces.
    added: Vec<u32>,
    specials: SpecialPieces,
    is_uncased: bool,
    files: TokenizerFiles,
    cache: Arc<RwLock<Cache>>,
}

impl Tokenizer {
    /// Opens the tokenizer of a model folder.
    ///
    /// # Errors
    /// If there is neither `tokenizer.json` nor BERT's `vocab.txt`, or it is damaged or of a kind that is not supported.
    pub fn open(dir: &Path) -> Result<Self, Error> {
        Self::new(TokenizerFiles::path(dir), TokenizerFiles::read(dir)?)
    }

    /// Opens a tokenizer whose files are embedded in the program.
    pub fn from_files(files: TokenizerFiles) -> Result<Self, Error> {
        Self::new(PathBuf::from("(embedded model)/tokenizer.json"), files)
    }

    fn new(path: PathBuf, files: TokenizerFiles) -> Result<Self, Error> {
        let segmenter = Segmenter::parse(&path, &files.tokenizer)?;
        let mut pieces = segmenter.pieces().to_vec();
        let mut added = Vec::new();
        for (piece, id) in segmenter.added().iter().cloned() {
            match pieces.get(id as usize) {
                Some(known) if *known == piece => {}
                None if id as usize == pieces.len() => pieces.push(piece),
                _ => return Err(Error::AddedPiece { path, piece, id }),
            }
            added.push(id);
        }
        let ids = (0u32..).zip(&pieces).map(|(id, piece)| (piece.clone(), id)).collect();
        let specials = SpecialPieces::find(&path, &ids)?;
        let is_uncased = segmenter.is_uncased();
        let (segmenter, cache) = (Arc::new(segmenter), Arc::default());
        let tokenizer =
            Self { path, segmenter, pieces, ids, added, specials, is_uncased, files, cache };
        tokenizer.check_added_pieces_not_in_text()?;
        Ok(tokenizer)
    }

    /// Fails if segmenting the text of an added piece yields an added piece.
    fn check_added_pieces_not_in_text(&self) -> Result<(), Error> {
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

    /// Encodes a sentence that is given as tokens. Never truncates.
    ///
    /// # Errors
    /// If the rules of the tokenizer fail on a token.
    pub fn encode(&self, tokens: &[impl AsRef<str>]) -> Result<Encoded, Error> {
        let mut encoded = Encoded { pieces: vec![self.specials.bos], ..Encoded::default() };
        // A sentence takes the lock once, not once for each token: threads that take a lock often slow each other down.
        let mut cache = self.read_cache();
        for token in tokens.iter().map(AsRef::as_ref) {
            let start = encoded.len();
            if let Some(known) = cache.get(token) {
                encoded.pieces.extend_from_slice(known);
            } else {
                drop(cache);
                encoded.pieces.extend_from_slice(&self.segment_new(token)?);
                cache = self.read_cache();
            }
            if encoded.len() == start {
                encoded.pieces.push(self.specials.unk);
                encoded.n_invisible += 1;
            }
            encoded.tokens.push(start..encoded.len());
        }
        encoded.pieces.push(self.specials.eos);
        Ok(encoded)
    }

    fn read_cache(&self) -> RwLockReadGuard<'_, Cache> {
        // A poisoned lock is safe to use: a panic cannot leave an incomplete entry in the map.
        self.cache.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the pieces of a token that is not in the cache, and adds it.
    fn segment_new(&self, token: &str) -> Result<Vec<u32>, Error> {
        let new = self.segmenter.segment(token)?;
        let mut cache = self.cache.write().unwrap_or_else(PoisonError::into_inner);
        if cache.len() < MAX_CACHED {
            cache.insert(token.into(), new.as_slice().into());
        }
        Ok(new)
    }

    /// Adds markers after the last piece of the vocabulary and returns their ids. A marker that was added before
    /// keeps its id.
    ///
    /// # Errors
    /// If a marker is empty, or if its text is already a piece or a special piece.
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

    /// Returns true if a piece was added to the vocabulary and is not a special piece.
    pub(crate) fn is_marker(&self, id: u32) -> bool {
        self.added.contains(&id) && !self.specials.ids().contains(&id)
    }

    /// The ids of the special pieces.
    pub fn specials(&self) -> SpecialPieces {
        self.specials
    }

    /// The number of pieces, markers included. The model's piece table needs a row for each.
    pub fn n_pieces(&self) -> usize {
        self.pieces.len()
    }

    /// Returns the piece with this id as the vocabulary writes it. A leading `▁` (byte-level: `Ġ`) begins a word; a
    /// leading `##` of BERT continues one.
    ///
    /// # Panics
    /// If `id` is not below [`Self::n_pieces`].
    pub fn piece(&self, id: u32) -> &str {
        &self.pieces[id as usize]
    }

    /// Returns the id of a piece, special piece or marker.
    pub fn id(&self, piece: &str) -> Option<u32> {
        self.ids.get(piece).copied()
    }

    /// The ids that never come from text: special pieces, markers and all other added pieces.
    pub fn added(&self) -> &[u32] {
        &self.added
    }

    /// Returns the text that a piece adds to its word, or `None` for a piece that is only part of a character.
    pub(crate) fn text(&self, id: u32) -> Option<String> {
        self.segmenter.text(self.piece(id))
    }

    /// Returns true if the piece begins a word. Special pieces and markers do not.
    pub fn is_word_initial(&self, id: u32) -> bool {
        self.segmenter.begins_word(self.piece(id)) && !self.added.contains(&id)
    }

    /// Returns true if the model reads every text in lower case.
    pub fn is_uncased(&self) -> bool {
        self.is_uncased
    }

    /// Returns, for each piece of a token, the part of the token's text that it stands for, as the corpus writes it.
    /// `None` for a piece that shares a character with another piece. Characters that the rules remove, such as an
    /// accent in a character of its own, belong to the piece before them.
    pub(crate) fn surfaces<'t>(&self, token: &'t str) -> Result<Vec<Option<&'t str>>, Error> {
        let ranges = self.segmenter.ranges(token)?;
        let surface = |at: usize| {
            let before = at.checked_sub(1).map(|before| &ranges[before]);
            let (range, next) = (&ranges[at], ranges.get(at + 1));
            let is_apart = before.is_none_or(|before| before.end <= range.start)
                && next.is_none_or(|next| range.end <= next.start);
            let start = if at == 0 { 0 } else { range.start };
            let end = next.map_or(token.len(), |next| next.start);
            is_apart.then(|| token.get(start..end)).flatten()
        };
        Ok((0..ranges.len()).map(surface).collect())
    }

    /// Returns the text that pieces spell, as [`Self::decode`] does, with composed characters. Models without accents
    /// also split Korean syllables into their parts.
    pub(crate) fn decode_composed(&self, pieces: &[u32]) -> String {
        compose(&self.decode(pieces))
    }

    /// Returns true if a piece can come from the text of a corpus.
    pub(super) fn is_reachable(&self, id: u32) -> bool {
        let piece = self.piece(id);
        let has_special = |special: u32| piece.contains(self.piece(special));
        !self.specials.ids().into_iter().any(has_special) && self.segmenter.is_reachable(piece)
    }

    /// Returns true if a piece is always a word of its own: punctuation and Chinese characters of BERT's models.
    /// Returns `None` if the model's tokens are not split into words, so that any piece may follow any other.
    pub(crate) fn stands_alone(&self, id: u32) -> Option<bool> {
        self.segmenter.stands_alone(&self.text(id)?)
    }

    /// Returns the text that pieces spell, without white space at its ends. The text of special pieces and markers is
    /// included.
    pub fn decode(&self, pieces: &[u32]) -> String {
        self.segmenter.spell(&pieces.iter().map(|&id| self.piece(id)).collect::<Vec<_>>())
    }

    /// Writes the tokenizer's files, markers included. Python's `AutoTokenizer` can open the folder.
    pub fn save(&self, dir: &Path) -> Result<(), Error> {
        self.files.write(dir)
    }
}

impl Encoded {
    fn len(&self) -> u32 {
        u32::try_from(self.pieces.len()).expect("a sentence has fewer than 2^32 pieces")
    }
}
