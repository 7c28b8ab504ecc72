//! Tokenization: from the tokens of a corpus to the pieces that a model reads, with their alignment.
//!
//! [`Tokenizer::encode`] returns piece ids and, for each token, the range of its pieces. Later stages carry these ranges
//! and never compute them from strings. Ids and ranges equal those of Hugging Face's
//! `tokenizer(tokens, is_split_into_words=True)` and `word_ids()`, with two exceptions:
//!
//! - **Every token has a piece.** Hugging Face has no piece for a token that is normalised to nothing, such as a
//!   zero-width space, and its tag would be lost. Here it becomes one `<unk>`; [`Encoded::n_invisible`] counts them.
//! - **The text of a corpus is never a special piece.** `<mask>`, `</s>` or `<B-PER>` in a corpus is split into ordinary
//!   pieces. Special pieces and markers are placed by id. Hugging Face would read them from the text.
//!
//! The `tokenizers` crate runs the rules of `tokenizer.json`, so that normalization, splitting and the unigram search are
//! those of Hugging Face for any XLM-R model. It does not know the added pieces of the file, which is why they
//! cannot be found in text. Each distinct token is segmented once.

mod files;
mod kinds;
mod rules;
mod segmenter;
mod tokenizer;

pub use files::TokenizerFiles;
pub(crate) use kinds::is_clean;
pub use kinds::{PieceKind, PieceKinds};
pub use tokenizer::{Encoded, SpecialPieces, Tokenizer};
