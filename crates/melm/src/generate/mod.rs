//! Generation (section 2.3): entity pieces are masked, and the fine-tuned model fills them.
//!
//! The tags of a draft always fit its tokens, whatever the model predicts:
//!
//! - At the start of a word only pieces that begin a word are candidates; inside a word only pieces that continue one.
//! - Special pieces, markers, a bare `▁` and pieces with invisible characters are never candidates.
//! - A token without a masked piece is copied from the source, not spelled from pieces. A token whose chosen pieces
//!   do not spell a valid token is copied too.
//!
//! A draft therefore has the same tags and the same number of tokens as its source, and the same bytes outside
//! mentions.
//!
//! ```
//! use melm::{draft::{Novelty, Verdict}, entity_lm::EntityLm, markers::Markers, pieces::Tokenizer, random::Seed, stage::Control};
//! use melm::generate::{Drafter, GenerateSettings};
//! use melm_nn::{config::Config, device::Device, mlm::MaskedLm};
//! use melm_text::{Corpus, ReadOptions, Source};
//!
//! let source = Source::from_text("a.conll", "the O\nParty B-ORG\n");
//! let gold = Corpus::read(&source, &ReadOptions::default())?;
//! let mut tokenizer = Tokenizer::open("../../testdata/pieces/unigram".as_ref())?;
//! let markers = Markers::from_corpora(&[&gold], &mut tokenizer)?;
//! // A real program would fine-tune a pretrained model; this one has random parameters.
//! let config = Config { vocab_size: tokenizer.n_pieces(), hidden_size: 8, n_layers: 1, n_heads: 2, ..Config::default() };
//! let lm = EntityLm::from_parts(MaskedLm::random(&config, 1)?, tokenizer, Some(markers));
//! let linearized = lm.linearize(&gold)?;
//!
//! let device = Device::cpu(1);
//! let mut drafter = Drafter::new(lm, GenerateSettings::default());
//! let mut novelty = Novelty::new(&gold);
//! for round in 1..=3 {
//!     let key = Seed(1).stream("generate");
//!     let mut on_progress = |_, _| Control::Continue;
//!     let made = drafter.round(&device, &gold, &linearized, key, round, &mut on_progress)?;
//!     let is_new = |draft: &_| novelty.record(draft) == Verdict::New;
//!     for draft in made.drafts.into_iter().filter(is_new) {
//!         assert_eq!(draft.sentence.tokens()[0].as_str(), "the");
//!         assert_ne!(draft.sentence.tokens()[1].as_str(), "Party");
//!     }
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod candidates;
mod casing;
mod drafter;
mod fill;
mod fixed;
mod repeats;
mod score;
mod script;
mod settings;
mod spell;
mod whole_words;

pub use drafter::{Drafter, Round};
pub use fixed::FixedCounts;
pub(crate) use fixed::fix_tokens;
pub use settings::{
    FillOrder, GenerateSettings, InvalidRanks, InvalidSampling, InvalidTemperature, Ranks,
    Sampling, Temperature, WithoutMentions,
};
