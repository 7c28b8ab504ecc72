//! Tokenization: from the tokens of a corpus to the pieces that a model reads, with their alignment.
//!
//! [`Tokenizer::encode`] returns piece ids and, for each token, the range of its pieces. Later stages pass these
//! ranges on and never compute them from strings. Ids and ranges are equal to those of Hugging Face's
//! `tokenizer(tokens, is_split_into_words=True)` and `word_ids()`, with two exceptions:
//!
//! - **Every token has a piece.** Hugging Face has no piece for a token that is normalised to nothing, such as a
//!   zero-width space, so that the tag of the token would be lost. Here such a token becomes one `<unk>`, and
//!   [`Encoded::n_invisible`] counts these tokens.
//! - **The text of a corpus is never a special piece.** `<mask>`, `</s>` or `<B-PER>` in a corpus is split into
//!   ordinary pieces, while Hugging Face would read a special piece. Here special pieces and markers are only
//!   inserted by id.
//!
//! The classes for XLM-R and `CamemBERT` of transformers 5 parse the scores of pieces with Python's JSON parser, which
//! rounds some last bits differently from the `tokenizers` library. If two ways to split a token have the same score,
//! they can choose the other one. Here the scores are those of the `tokenizers` library.
//!
//! The `tokenizers` crate runs the rules of `tokenizer.json`, so that normalization, splitting and the search for pieces
//! are the same as in Hugging Face. Supported are unigram models (XLM-R, `CamemBERT`), byte-level BPE (`RoBERTa`,
//! `ModernBERT`), BPE with byte fallback (Gemma, `mmBERT`) and `WordPiece` (BERT, `DistilBERT`). In BPE models every token
//! gets a space before it, as with `add_prefix_space=True` in Python. The added pieces of the file are not passed to this
//! crate, so that it cannot find them in text. Each distinct token is segmented once. The rules are bounded: a file whose
//! rules make a text much longer is refused.

mod bounds;
mod charsmap;
mod coverage;
mod files;
mod kinds;
mod rules;
mod segmenter;
mod specials;
mod tokenizer;
mod vocab_txt;

pub use coverage::PieceCoverage;
pub use files::TokenizerFiles;
pub(crate) use kinds::is_clean;
pub use kinds::{PieceKind, PieceKinds};
pub use specials::SpecialPieces;
pub use tokenizer::{Encoded, Tokenizer};
