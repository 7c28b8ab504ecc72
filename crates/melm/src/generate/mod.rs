//! Generation (section 2.3): entity pieces are masked, and guessed by the fine-tuned model.
//!
//! Labels cannot shift, whatever the model predicts. At the start of a word only pieces that begin a word are
//! candidates, inside only those that go on with it; special pieces, markers, a bare `▁` and whatever a reader would
//! not see are none. A token with no masked piece is copied from its source, never spelled from pieces; so is one
//! whose guessed pieces spell no sound token. Hence a draft has its source's tokens outside mentions, byte for byte,
//! its number of tokens and its tags.
//!
//! ```
//! use std::ops::ControlFlow;
//! use melm::{draft::Novelty, linearize::linearize, markers::Markers, pieces::Tokenizer, run::Seed};
//! use melm::generate::{Drafter, GenerateSettings};
//! use melm_nn::{config::Config, device::Device, mlm::MaskedLm};
//! use melm_text::{Corpus, ReadOptions, Source};
//!
//! let source = Source::from_text("a.conll", "the O\nParty B-ORG\n");
//! let gold = Corpus::read(&source, &ReadOptions::default())?;
//! let mut tokenizer = Tokenizer::open("../../testdata/pieces/unigram".as_ref())?;
//! let markers = Markers::of(&[&gold], &mut tokenizer)?;
//! let linearized = linearize(&gold, &tokenizer, Some(&markers), 512)?;
//! // Here a model would be opened and fine-tuned; this one knows nothing.
//! let config = Config { vocab_size: tokenizer.n_pieces(), hidden_size: 8, n_layers: 1, n_heads: 2, ..Config::default() };
//! let model = MaskedLm::random(&config, 1)?;
//!
//! let (device, settings) = (Device::cpu(1), GenerateSettings::default());
//! let mut drafter = Drafter::new(&device, &model, &tokenizer, &settings);
//! let mut novelty = Novelty::of(&gold);
//! for round in 1..=3 {
//!     let key = Seed(1).stream("generate");
//!     let mut on_progress = |_| ControlFlow::Continue(());
//!     let Some(made) = drafter.round(&gold, &linearized, key, round, &mut on_progress)? else { break };
//!     for draft in novelty.keep(made.drafts) {
//!         assert_eq!(draft.sentence.tokens()[0].as_str(), "the");
//!         assert_ne!(draft.sentence.tokens()[1].as_str(), "Party");
//!     }
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod candidates;
mod drafter;
mod fill;
mod look;
mod settings;
mod spell;

pub use drafter::{Drafter, Progress, Round};
pub use settings::{
    FillOrder, GenerateSettings, NotASampling, NotATemperature, NotRanks, Ranks, Sampling,
    Temperature, WithoutMentions,
};
