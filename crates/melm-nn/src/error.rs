//! The errors of this crate.

use std::path::PathBuf;

/// An error of this crate. Messages name the file, and tell the user what to do if this is known.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A file or folder could not be read.
    #[error("cannot read `{path}`")]
    Read {
        /// The file or folder.
        path: PathBuf,
        /// The I/O error.
        source: std::io::Error,
    },
    /// A file or folder could not be written.
    #[error("cannot write `{path}`; check that the folder can be written to and the disk has room")]
    Write {
        /// The file or folder.
        path: PathBuf,
        /// The I/O error.
        source: std::io::Error,
    },
    /// A JSON file of a model folder is not valid JSON or does not have the expected form.
    #[error("`{path}` is not valid JSON of the expected form; download the file again")]
    Json {
        /// The file.
        path: PathBuf,
        /// The error of the parser, with line and column.
        source: serde_json::Error,
    },
    /// A key of `config.json` is missing, has an invalid value, or asks for an unsupported architecture.
    #[error("`{path}`: `{key}` is {found}, expected {expected}")]
    Config {
        /// The configuration file.
        path: PathBuf,
        /// The key.
        key: &'static str,
        /// The value in the file, or `missing`.
        found: String,
        /// The supported values.
        expected: String,
    },
    /// The folder has no weights.
    #[error("`{path}` has no `model.safetensors`; give the folder of a Hugging Face model")]
    NoWeights {
        /// The folder.
        path: PathBuf,
    },
    /// The folder contains the weights only as a Python pickle. Opening a pickle can run code.
    #[error(
        "`{path}` has its weights only as `pytorch_model.bin`, a pickle that can run code when opened; convert it in Python: \
         `AutoModelForMaskedLM.from_pretrained(\"{path}\").save_pretrained(\"NEW\", safe_serialization=True)`"
    )]
    PickleOnly {
        /// The folder.
        path: PathBuf,
    },
    /// The weights file is a Git LFS pointer.
    #[error("`{path}` is a Git LFS pointer, not the weights; run `git lfs pull` in its folder")]
    LfsPointer {
        /// The file.
        path: PathBuf,
    },
    /// The header of a safetensors file is invalid or does not agree with the size of the file.
    #[error("`{path}` is not a valid safetensors file; it may be truncated, download it again")]
    Safetensors {
        /// The file.
        path: PathBuf,
        /// The error from the safetensors library.
        source: safetensors::SafeTensorError,
    },
    /// The shard index names a file that is not a `.safetensors` file in the folder of the index.
    #[error(
        "`{path}` names the shard `{shard}`, which is not a `.safetensors` file of the same folder; download the model again from a source you trust"
    )]
    ShardName {
        /// The index file.
        path: PathBuf,
        /// The name in the index.
        shard: String,
    },
    /// A shard that is named in the index is not in the folder.
    #[error(
        "`{path}` is missing, but `model.safetensors.index.json` names it; download all shards of the model again"
    )]
    MissingShard {
        /// The file of the shard.
        path: PathBuf,
    },
    /// A shard does not contain a tensor that the index assigns to it.
    #[error(
        "`{path}` does not have `{tensor}`, but `model.safetensors.index.json` says so; download all shards of the model again"
    )]
    NotInShard {
        /// The file of the shard.
        path: PathBuf,
        /// The tensor.
        tensor: String,
    },
    /// Some tensors of the architecture are missing in the folder.
    #[error("`{path}` lacks {} tensors of its architecture, the first is `{}`; check that this is the right kind of model", .tensors.len(), .tensors.first().map_or("", String::as_str))]
    MissingTensors {
        /// The folder.
        path: PathBuf,
        /// The names of the missing tensors. There is at least one.
        tensors: Vec<String>,
    },
    /// The model has no masked-LM head, so it cannot predict masked pieces.
    #[error(
        "`{path}` has no masked-LM head{}, so it cannot predict masked words; `augment` and `finetune` need a masked language model such as `xlm-roberta-base`, and `train` can use this model",
        .tensors.first().map_or_else(String::new, |name| format!(" (no tensor `{name}`)"))
    )]
    NoMaskedLmHead {
        /// The folder, or the family of a new model.
        path: PathBuf,
        /// The tensors of the head that the folder lacks. Empty if the family has no masked-LM head.
        tensors: Vec<String>,
    },
    /// A tensor does not have the shape that `config.json` implies.
    #[error(
        "`{path}`: `{tensor}` has shape {found:?}, expected {expected:?} from `config.json`; the two files belong to different models"
    )]
    Shape {
        /// The file.
        path: PathBuf,
        /// The tensor.
        tensor: String,
        /// The shape in the file.
        found: Vec<usize>,
        /// The shape that follows from the configuration or that the caller asked for.
        expected: Vec<usize>,
    },
    /// A tensor is stored in a number type that is not supported.
    #[error(
        "`{path}`: `{tensor}` is stored as {dtype}, expected F32, F16, BF16, or I8 with a scale; convert it in Python with `model.float().save_pretrained(\"NEW\")`"
    )]
    Dtype {
        /// The file.
        path: PathBuf,
        /// The tensor.
        tensor: String,
        /// The number type in the file.
        dtype: String,
    },
    /// An int8 tensor has no valid tensor of scales, `NAME.scale`.
    #[error(
        "`{path}`: `{tensor}` is stored as I8, but `{tensor}.scale` is {problem}; quantise the model again"
    )]
    Scale {
        /// The file.
        path: PathBuf,
        /// The int8 tensor.
        tensor: String,
        /// What is wrong with the scales.
        problem: &'static str,
    },
    /// A weight is NaN or infinite.
    #[error(
        "`{path}`: `{tensor}` has a number that is not finite; the file is damaged or the training of the model diverged"
    )]
    NotFinite {
        /// The file.
        path: PathBuf,
        /// The tensor.
        tensor: String,
    },
    /// The number of values of a tensor to be saved does not match its shape.
    #[error("`{tensor}` has {found} values, which does not fit its shape {shape:?}")]
    TensorLength {
        /// The tensor.
        tensor: String,
        /// The shape given.
        shape: Vec<usize>,
        /// The number of values given.
        found: usize,
    },
    /// Two tensors to be saved have the same name.
    #[error("two tensors to be saved are called `{tensor}`")]
    DuplicateTensor {
        /// The tensor.
        tensor: String,
    },
    /// A piece is outside the vocabulary.
    #[error(
        "piece {piece} is outside the vocabulary of {vocab_size} pieces; check that the tokenizer belongs to this model"
    )]
    PieceOutOfRange {
        /// The piece.
        piece: u32,
        /// The number of pieces in the vocabulary.
        vocab_size: usize,
    },
    /// A sentence is empty or has more pieces than the model has positions.
    #[error("a sentence has {n_pieces} pieces, expected 1 to {limit}; split it first")]
    SentenceLength {
        /// The number of pieces in the sentence.
        n_pieces: usize,
        /// The largest number of pieces that the model supports.
        limit: usize,
    },
    /// A sequence is too short to predict anything.
    #[error("a sequence of {n_tokens} tokens has nothing to predict; it needs a start and an end")]
    NothingToPredict {
        /// The number of tokens in the sequence.
        n_tokens: usize,
    },
    /// A model without GPU kernels was run on a GPU.
    #[error("this model has no GPU kernels; run it on the CPU")]
    NoKernels,
    /// A masked position is not a row of the batch, or the number of masked positions differs from the number of
    /// original pieces.
    #[error(
        "{n_positions} masked positions with {n_originals} originals do not fit a batch of {n_rows} pieces"
    )]
    MaskedPositions {
        /// The number of masked positions.
        n_positions: usize,
        /// The number of original pieces.
        n_originals: usize,
        /// The number of rows of the batch.
        n_rows: usize,
    },
    /// No parameter has this name.
    #[error("no parameter is called `{name}`")]
    NoParameter {
        /// The name.
        name: String,
    },
    /// No sequence of tags of this length is allowed by the transitions.
    #[error(
        "no sequence of {n_tokens} tags is possible; check the allowed transitions, and that the scores are numbers"
    )]
    NoTagSequence {
        /// The number of tokens of the sentence.
        n_tokens: usize,
    },
    /// The gold tags contain a transition that is not allowed, so their probability is zero.
    #[error("tag {tag} is not allowed at token {token}; correct the tags or remove the constraint")]
    ForbiddenTag {
        /// The token, counted from 0.
        token: usize,
        /// The tag.
        tag: u32,
    },
    /// A token of a batch points to a row outside its sentence, or the number of tokens differs from the number of
    /// tags.
    #[error(
        "{n_tokens} tokens with {n_tags} tags do not fit a batch of {n_rows} pieces; each token needs a row in its sentence and a tag"
    )]
    TaggedTokens {
        /// The number of tokens.
        n_tokens: usize,
        /// The number of tags.
        n_tags: usize,
        /// The number of rows of the batch.
        n_rows: usize,
    },
    /// A tag is not one of the tagger's tags.
    #[error("tag {tag} is not one of the {n_tags} tags of this tagger")]
    TagOutOfRange {
        /// The tag.
        tag: u32,
        /// The number of tags of the tagger.
        n_tags: usize,
    },
    /// A tagger was to be saved with a wrong number of tag names.
    #[error("there are {n_names} names for the {n_tags} tags of this tagger")]
    TagNames {
        /// The number of names.
        n_names: usize,
        /// The number of tags of the tagger.
        n_tags: usize,
    },
    /// There is no usable GPU.
    #[error("no CUDA device: {reason}; pass `--device cpu` to use the CPU")]
    NoCuda {
        /// Why no GPU can be used.
        reason: String,
    },
    /// A call to the GPU or its libraries failed.
    #[error("the CUDA device refused {what}: {reason}; pass `--device cpu` to use the CPU")]
    Cuda {
        /// The call that failed.
        what: &'static str,
        /// The error of the driver or library.
        reason: String,
    },
    /// The GPU has too little memory for even one sentence.
    #[error(
        "the CUDA device has too little memory: {} MiB wanted, {} of {} MiB free; stop other programs on it, choose a smaller model, or pass `--device cpu`",
        .wanted >> 20, .free >> 20, .total >> 20
    )]
    DeviceMemory {
        /// The number of bytes wanted.
        wanted: usize,
        /// The number of free bytes.
        free: usize,
        /// The total memory of the GPU in bytes.
        total: usize,
    },
    /// Memory could not be allocated.
    #[error(
        "cannot allocate {} MiB of memory; choose a smaller model or a machine with more memory",
        .wanted >> 20
    )]
    OutOfMemory {
        /// The number of bytes wanted, or `usize::MAX` if this number overflows.
        wanted: usize,
    },
    /// A size of a model exceeds the limit of this engine.
    #[error("`{key}` is {found}, more than the limit of {limit}")]
    Limit {
        /// The name of the size in the configuration.
        key: &'static str,
        /// The value of the size.
        found: usize,
        /// The largest value supported.
        limit: usize,
    },
    /// The gradients or the new parameters of an update are infinite or NaN.
    #[error("the gradients of update {step} are not finite; lower the learning rate")]
    NotFiniteStep {
        /// The number of the update, from 1.
        step: u64,
    },
    /// A saved state was changed after it was written, or is truncated.
    #[error(
        "`{path}` is damaged: its checksum does not fit its content; remove the folder `{}`, and run the same command again",
        .path.parent().unwrap_or(.path).display()
    )]
    DamagedState {
        /// The file.
        path: PathBuf,
    },
    /// A saved state does not belong to this training run.
    #[error("`{path}` does not belong to this training; remove it to start again")]
    State {
        /// The file.
        path: PathBuf,
    },
}

impl Error {
    /// Returns the error for a failed allocation of `len` numbers.
    pub(crate) fn out_of_memory(len: usize) -> Self {
        Self::OutOfMemory { wanted: len.saturating_mul(size_of::<f32>()) }
    }

    /// Fails if `found` is larger than `limit`.
    pub(crate) fn check_limit(key: &'static str, found: usize, limit: usize) -> Result<(), Self> {
        if found > limit { Err(Self::Limit { key, found, limit }) } else { Ok(()) }
    }
}
