//! The options of commands that use a model: settings of the plan, and the device.

use std::path::PathBuf;
use std::str::FromStr;

use clap::Args as Group;
use melm::plan::Preset;

/// Options that choose the settings. Later ones override earlier ones in this order: preset, file,
/// `--set`, other options.
#[derive(Debug, Group)]
#[command(next_help_heading = "Settings")]
pub(crate) struct PlanOptions {
    /// Pretrained model: a folder, a name on the Hugging Face hub, or mini (embedded)
    #[arg(long, value_name = "DIR|NAME")]
    pub(crate) model: Option<String>,
    /// Pretrained model of the tagger [default: the value of --model]
    #[arg(long, value_name = "DIR|NAME")]
    pub(crate) tagger_model: Option<String>,
    /// Pretrained mBART or mBART-50 for `melm augment --method mulda`: a folder or a name on the
    /// Hugging Face hub [default: train a small model]
    #[arg(long, value_name = "DIR|NAME")]
    pub(crate) mulda_model: Option<String>,
    /// Preset of the settings: best, quick, paper or reference-code
    #[arg(long, value_parser = parse_preset, default_value = "best")]
    pub(crate) preset: Preset,
    #[command(flatten)]
    pub(crate) overrides: PlanOverrides,
    /// Seconds between two checkpoints, from which an interrupted run resumes
    #[arg(long, value_name = "SECONDS", default_value_t = 30)]
    pub(crate) save_every: u64,
    #[command(flatten)]
    pub(crate) device_options: DeviceOptions,
}

/// Options that override the settings of a preset or of a model.
#[derive(Debug, Group)]
#[command(next_help_heading = "Settings")]
pub(crate) struct PlanOverrides {
    /// File with settings, as TOML, such as the plan.toml of an earlier run
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// Change one setting, as in `--set tagger.budget="300 updates"`; may be repeated
    #[arg(long, value_name = "KEY=VALUE")]
    pub(crate) set: Vec<String>,
    /// Seed of all random numbers
    #[arg(long, value_parser = clap::value_parser!(u64).range(..=i64::MAX.cast_unsigned()))]
    pub(crate) seed: Option<u64>,
}

/// Options for the device that runs the computation.
#[derive(Debug, Group)]
#[command(next_help_heading = "Device")]
pub(crate) struct DeviceOptions {
    /// Device: auto (the first GPU, or else the CPU), cpu, cuda or cuda:N
    #[arg(long, default_value = "auto")]
    pub(crate) device: DeviceOption,
    /// Number of threads [default: the number of physical cores]; it does not change the result
    #[arg(long, value_name = "N")]
    pub(crate) threads: Option<std::num::NonZeroUsize>,
    /// Number type of matrix products: auto, f32 (precise), bf16 (GPU) or int8 (`tag` on the CPU)
    #[arg(long, default_value = "auto", value_name = "TYPE")]
    pub(crate) precision: PrecisionOption,
}

/// The number type of matrix products.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PrecisionOption {
    /// bf16 on a GPU, f32 on the CPU.
    Auto,
    F32,
    /// bf16 on a GPU, f32 on the CPU.
    Bf16,
    Int8,
}

impl FromStr for PrecisionOption {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "auto" => Ok(Self::Auto),
            "f32" => Ok(Self::F32),
            "bf16" => Ok(Self::Bf16),
            "int8" => Ok(Self::Int8),
            _ => Err("expected auto, f32, bf16 or int8".into()),
        }
    }
}

/// The device that the user chose.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DeviceOption {
    Auto,
    Cpu,
    Cuda(u32),
}

impl FromStr for DeviceOption {
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

pub(super) fn parse_preset(name: &str) -> Result<Preset, String> {
    let found = Preset::NAMES.into_iter().find(|(known, _)| *known == name);
    found.map(|(_, preset)| preset).ok_or("expected best, quick, paper or reference-code".into())
}
