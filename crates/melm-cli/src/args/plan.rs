//! Options of every command that uses a model: what makes up the plan, and where it runs.

use std::path::PathBuf;
use std::str::FromStr;

use clap::Args as Group;
use melm::plan::Preset;

/// Settings: preset < file < `--set` < the other options.
#[derive(Debug, Group)]
#[command(next_help_heading = "Settings")]
pub(crate) struct Planning {
    /// Pretrained model: a folder, a name on the Hugging Face hub, or mini, which is built in
    #[arg(long, value_name = "DIR|NAME")]
    pub(crate) model: Option<String>,
    /// Pretrained model of the tagger [default: the same]
    #[arg(long, value_name = "DIR|NAME")]
    pub(crate) tagger_model: Option<String>,
    /// Pretrained mBART or mBART-50 of the method mulda: a folder [default: none, a small new model]
    #[arg(long, value_name = "DIR")]
    pub(crate) mulda_model: Option<String>,
    /// Where settings start from: best, paper or reference-code
    #[arg(long, value_parser = preset, default_value = "best")]
    pub(crate) preset: Preset,
    #[command(flatten)]
    pub(crate) layers: Layers,
    /// Seconds between two states on disk, from which a killed run goes on
    #[arg(long, value_name = "SECONDS", default_value_t = 30)]
    pub(crate) save_every: u64,
    #[command(flatten)]
    pub(crate) machine: Machine,
}

/// What is laid over a preset, or over the plan of a model.
#[derive(Debug, Group)]
#[command(next_help_heading = "Settings")]
pub(crate) struct Layers {
    /// Plan to lay over the preset or the model's own, such as the plan.toml of an earlier run
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// Set one key of the plan, as in `--set tagger.budget="300 updates"`; may be repeated
    #[arg(long, value_name = "KEY=VALUE")]
    pub(crate) set: Vec<String>,
    /// Seed of everything random
    #[arg(long, value_parser = clap::value_parser!(u64).range(..=i64::MAX.cast_unsigned()))]
    pub(crate) seed: Option<u64>,
}

/// Where it runs.
#[derive(Debug, Group)]
#[command(next_help_heading = "Machine")]
pub(crate) struct Machine {
    /// Where to compute: auto, cpu, cuda or cuda:N
    #[arg(long, default_value = "auto")]
    pub(crate) device: DeviceChoice,
    /// Threads [default: as many as there are cores]; the result does not depend on it
    #[arg(long, value_name = "N")]
    pub(crate) threads: Option<std::num::NonZeroUsize>,
    /// What a CUDA device computes products in: bf16, or f32 for exactness
    #[arg(long, default_value = "bf16", value_name = "TYPE")]
    pub(crate) precision: PrecisionChoice,
}

/// What a CUDA device computes products in.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PrecisionChoice(pub(crate) melm_nn::cuda::Precision);

impl FromStr for PrecisionChoice {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "bf16" => Ok(Self(melm_nn::cuda::Precision::Bf16)),
            "f32" => Ok(Self(melm_nn::cuda::Precision::F32)),
            _ => Err("expected bf16 or f32".into()),
        }
    }
}

/// Where to compute.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DeviceChoice {
    Auto,
    Cpu,
    Cuda(u32),
}

impl FromStr for DeviceChoice {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let number = text.strip_prefix("cuda:").map(str::parse);
        match (text, number) {
            ("auto", _) => Ok(Self::Auto),
            ("cpu", _) => Ok(Self::Cpu),
            ("cuda", _) => Ok(Self::Cuda(0)),
            (_, Some(Ok(number))) => Ok(Self::Cuda(number)),
            _ => Err("expected auto, cpu, cuda or cuda:N".into()),
        }
    }
}

pub(super) fn preset(name: &str) -> Result<Preset, String> {
    let found = Preset::NAMES.into_iter().find(|(known, _)| *known == name);
    found.map(|(_, preset)| preset).ok_or("expected best, paper or reference-code".into())
}
