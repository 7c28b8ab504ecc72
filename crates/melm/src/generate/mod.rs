//! Generation (section 2.3): entity pieces are masked, and guessed by the fine-tuned model.
//!
//! Labels cannot shift, whatever the model predicts. At the start of a word only pieces that begin a word are
//! candidates, inside only those that go on with it; special pieces, markers, a bare `▁` and whatever a reader would
//! not see are none. A token with no masked piece is copied from its source, never spelled from pieces; so is one
//! whose guessed pieces spell no sound token. Hence a draft has its source's tokens outside mentions, byte for byte,
//! its number of tokens and its tags.

mod candidates;
mod drafter;
mod fill;
mod look;
mod settings;
mod spell;

pub use drafter::{Drafter, Progress, Round};
pub use settings::{
    FillOrder, GenerateSettings, NotASampling, NotATemperature, NotRanks, Ranks, Sampling,
    Temperature,
};
