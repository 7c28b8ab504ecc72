//! What can go wrong below the method: model folders we cannot run or trust.

use std::path::PathBuf;

/// An error of this crate. Messages name the file and, where we know it, the cure.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A file or folder could not be read.
    #[error("cannot read `{path}`")]
    Read {
        /// The file or folder.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// A file or folder could not be written.
    #[error("cannot write `{path}`; check that the folder can be written to and the disk has room")]
    Write {
        /// The file or folder.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// A JSON file of a model folder is not JSON, or not of the right form.
    #[error("`{path}` is not the JSON we expect; fetch the file again")]
    Json {
        /// The file.
        path: PathBuf,
        /// What the parser said, with line and column.
        source: serde_json::Error,
    },
    /// A key of `config.json` is missing, of the wrong type, or asks for what this engine does not do.
    #[error("`{path}`: `{key}` is {found}, expected {expected}")]
    Config {
        /// The configuration file.
        path: PathBuf,
        /// The key at fault.
        key: &'static str,
        /// Its value as written, or `missing`.
        found: String,
        /// What this engine runs.
        expected: String,
    },
    /// The folder holds no weights.
    #[error("`{path}` holds no `model.safetensors`; give the folder of a Hugging Face model")]
    NoWeights {
        /// The folder.
        path: PathBuf,
    },
    /// The folder holds weights as a Python pickle, which can run code when opened.
    #[error(
        "`{path}` holds its weights only as `pytorch_model.bin`, a pickle that runs code when opened; convert it in Python: \
         `AutoModelForMaskedLM.from_pretrained(\"{path}\").save_pretrained(\"NEW\", safe_serialization=True)`"
    )]
    PickleOnly {
        /// The folder.
        path: PathBuf,
    },
    /// The weights are a Git LFS pointer, not the file it stands for.
    #[error("`{path}` is a Git LFS pointer, not the weights; run `git lfs pull` in its folder")]
    LfsPointer {
        /// The file.
        path: PathBuf,
    },
    /// The header of a safetensors file contradicts itself or the size of the file.
    #[error("`{path}` is not a sound safetensors file, truncated perhaps; fetch it again")]
    Safetensors {
        /// The file.
        path: PathBuf,
        /// What the header's validation said.
        source: safetensors::SafeTensorError,
    },
    /// The shard index names something that is not a `.safetensors` file of its own folder.
    #[error(
        "`{path}` names the shard `{shard}`, which is not a `.safetensors` file of the same folder; fetch the model again from a source you trust"
    )]
    ShardName {
        /// The index file.
        path: PathBuf,
        /// The name it gives.
        shard: String,
    },
    /// A shard that the index names is not in the folder.
    #[error(
        "`{path}` is missing, though `model.safetensors.index.json` names it; fetch the model again, all shards of it"
    )]
    MissingShard {
        /// The shard's file.
        path: PathBuf,
    },
    /// The index places a tensor in a shard that does not hold it.
    #[error(
        "`{path}` does not hold `{tensor}`, though `model.safetensors.index.json` says so; fetch the model again, all shards of it"
    )]
    NotInShard {
        /// The shard's file.
        path: PathBuf,
        /// The tensor.
        tensor: String,
    },
    /// Tensors that the architecture needs are not stored.
    #[error("`{path}` lacks {} of the tensors of its architecture, the first is `{}`; is this an XLM-R encoder?", .tensors.len(), .tensors.first().map_or("", String::as_str))]
    MissingTensors {
        /// The folder.
        path: PathBuf,
        /// The names, at least one.
        tensors: Vec<String>,
    },
    /// A tensor does not have the shape that `config.json` implies.
    #[error(
        "`{path}`: `{tensor}` has shape {found:?}, expected {expected:?} from `config.json`; the two files are not of one model"
    )]
    Shape {
        /// The file.
        path: PathBuf,
        /// The tensor.
        tensor: String,
        /// Its shape in the file.
        found: Vec<usize>,
        /// Its shape by the configuration or the caller.
        expected: Vec<usize>,
    },
    /// A tensor is stored in a number type that weights do not come in.
    #[error(
        "`{path}`: `{tensor}` is stored as {dtype}, expected F32, F16, BF16, or I8 with a scale; convert it in Python with `model.float().save_pretrained(\"NEW\")`"
    )]
    Dtype {
        /// The file.
        path: PathBuf,
        /// The tensor.
        tensor: String,
        /// The stored type.
        dtype: String,
    },
    /// An int8 tensor comes without a usable `NAME.scale`.
    #[error(
        "`{path}`: `{tensor}` is stored as I8, but `{tensor}.scale` is {problem}; quantise the model again"
    )]
    Scale {
        /// The file.
        path: PathBuf,
        /// The int8 tensor.
        tensor: String,
        /// What is wrong with its scale.
        problem: &'static str,
    },
    /// A weight is NaN or infinite.
    #[error(
        "`{path}`: `{tensor}` holds a number that is not finite; the file is damaged or its training diverged"
    )]
    NotFinite {
        /// The file.
        path: PathBuf,
        /// The tensor.
        tensor: String,
    },
    /// A tensor to be saved does not have as many values as its shape says.
    #[error("`{tensor}` has {found} values, but its shape {shape:?} does not hold that many")]
    Length {
        /// The tensor.
        tensor: String,
        /// The shape given.
        shape: Vec<usize>,
        /// The number of values given.
        found: usize,
    },
    /// Two tensors to be saved have one name.
    #[error("`{tensor}` is to be saved twice")]
    Twice {
        /// The tensor.
        tensor: String,
    },
    /// A piece has no row in the table.
    #[error(
        "piece {piece} has no row in a table of {vocab_size}; does the tokenizer belong to this model?"
    )]
    PieceOutOfRange {
        /// The piece.
        piece: u32,
        /// Rows of the table.
        vocab_size: usize,
    },
    /// A sentence is empty or has more pieces than the model has positions.
    #[error("a sentence has {n_pieces} pieces, expected 1 to {limit}; cut it first")]
    SentenceLength {
        /// Its pieces.
        n_pieces: usize,
        /// The most the model takes.
        limit: usize,
    },
    /// A sequence too short to guess anything of it.
    #[error(
        "a sequence of {n_tokens} tokens has nothing to predict; it needs a beginning and an end"
    )]
    NothingToPredict {
        /// Its tokens.
        n_tokens: usize,
    },
    /// A model that only the processor can compute was given a card.
    #[error("a card has no kernels for this model; give it the processor")]
    NoKernels,
    /// Masked positions are not rows of the batch, or not one original for each.
    #[error(
        "{n_positions} masked positions with {n_originals} originals do not fit a batch of {n_rows} pieces"
    )]
    MaskedPositions {
        /// Masked positions given.
        n_positions: usize,
        /// Originals given.
        n_originals: usize,
        /// Rows of the batch.
        n_rows: usize,
    },
    /// No parameter has such a name.
    #[error("no parameter is called `{name}`")]
    NoParameter {
        /// The name asked for.
        name: String,
    },
    /// No sequence of tags is allowed for a sentence of this length.
    #[error(
        "no sequence of {n_tokens} tags is possible; check the allowed transitions, and that the scores are numbers"
    )]
    NoTagSequence {
        /// Tokens of the sentence.
        n_tokens: usize,
    },
    /// The gold tags do what the allowed transitions exclude, so that their probability is zero.
    #[error(
        "tag {tag} at token {token} is not allowed there; repair the tags or lift the constraint"
    )]
    ForbiddenTag {
        /// The token, counted from 0.
        token: usize,
        /// The tag.
        tag: u32,
    },
    /// Tokens of a batch have no row in their sentence, or not one tag each.
    #[error(
        "{n_tokens} tokens with {n_tags} tags do not fit a batch of {n_rows} pieces; a token's row lies in its own sentence"
    )]
    TaggedTokens {
        /// Tokens given.
        n_tokens: usize,
        /// Tags given.
        n_tags: usize,
        /// Rows of the batch.
        n_rows: usize,
    },
    /// A tag is none of the tagger's.
    #[error("tag {tag} is none of the {n_tags} of this tagger")]
    TagOutOfRange {
        /// The tag.
        tag: u32,
        /// Tags of the tagger.
        n_tags: usize,
    },
    /// A tagger is to be saved with another number of names than it has tags.
    #[error("{n_names} names for the {n_tags} tags of this tagger")]
    TagNames {
        /// Names given.
        n_names: usize,
        /// Tags of the tagger.
        n_tags: usize,
    },
    /// There is no card to compute on.
    #[error("no CUDA device: {reason}; `--device cpu` does without one")]
    NoCuda {
        /// Why not.
        reason: String,
    },
    /// A card or its libraries refused something.
    #[error("the CUDA device refused {what}: {reason}; `--device cpu` does without it")]
    Cuda {
        /// What was asked for.
        what: &'static str,
        /// What it said.
        reason: String,
    },
    /// A card has too little memory, even for one sentence.
    #[error(
        "the CUDA device has no room: {} MiB wanted, {} of {} MiB free; stop what else runs on it, take a smaller model, or pass `--device cpu`",
        .wanted >> 20, .free >> 20, .total >> 20
    )]
    DeviceMemory {
        /// Bytes wanted.
        wanted: usize,
        /// Bytes free.
        free: usize,
        /// All bytes of the card.
        total: usize,
    },
    /// The main memory does not hold what a model needs.
    #[error(
        "cannot allocate {} MiB of memory; choose a smaller model or a machine with more memory",
        .wanted >> 20
    )]
    OutOfMemory {
        /// The bytes wanted; `usize::MAX` if the number overflows.
        wanted: usize,
    },
    /// A size of a model exceeds what this engine supports.
    #[error("`{key}` is {found}, more than the limit of {limit}")]
    Limit {
        /// The name of the size.
        key: &'static str,
        /// Its value.
        found: usize,
        /// The largest value supported.
        limit: usize,
    },
    /// A file of a training half-way is not what this training would have written.
    #[error("`{path}` does not belong to this training; remove it to begin anew")]
    State {
        /// The file.
        path: PathBuf,
    },
}

impl Error {
    /// The error for an allocation of `len` numbers that failed.
    pub(crate) fn out_of_memory(len: usize) -> Self {
        Self::OutOfMemory { wanted: len.saturating_mul(size_of::<f32>()) }
    }

    /// Refuses a size above `limit`.
    pub(crate) fn check_limit(key: &'static str, found: usize, limit: usize) -> Result<(), Self> {
        if found > limit { Err(Self::Limit { key, found, limit }) } else { Ok(()) }
    }
}
