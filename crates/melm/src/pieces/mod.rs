//! Pieces: what the model reads instead of tokens, with the alignment between the two.
//!
//! [`Tokenizer::encode`] turns the tokens of a sentence into piece ids and, for each token, the range of its pieces;
//! everything later carries those ranges and never rebuilds them from strings. Ids and ranges equal Hugging Face's
//! `tokenizer(tokens, is_split_into_words=True)` and `word_ids()`, with two exceptions that a corpus needs:
//!
//! - **Every token has a piece.** A token that normalises to nothing (a lone zero-width space) has none in Hugging
//!   Face and would lose its tag; here it gets one `<unk>`, and [`Encoded::n_invisible`] counts such tokens.
//! - **A corpus is data.** The text `<mask>`, `</s>` or `<B-PER>` in a corpus is spelled out in ordinary pieces; only
//!   we place special pieces and markers, by id. Hugging Face would let a corpus inject them.
//!
//! The rules come from `tokenizer.json` and are run by the `tokenizers` crate: normalisers, splitting and the unigram
//! search are what Hugging Face itself runs, so that any XLM-R model fits, which an implementation of our own would
//! have to earn case by case. It never sees the added pieces of the file (that is how a corpus stays data), and it is
//! asked once a distinct token.

mod files;
mod kinds;
mod rules;
mod segmenter;
mod tokenizer;

pub use files::Files;
pub(crate) use kinds::is_clean;
pub use kinds::{PieceKind, PieceKinds};
pub use tokenizer::{Encoded, Specials, Tokenizer};
