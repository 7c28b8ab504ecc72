//! What can go wrong in the method.

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
    /// The folder has no `tokenizer.json`.
    #[error(
        "`{dir}` holds no `tokenizer.json`; make one in Python: \
         `AutoTokenizer.from_pretrained(\"{dir}\").save_pretrained(\"{dir}\")`"
    )]
    NoTokenizer {
        /// The folder.
        dir: PathBuf,
    },
    /// A `tokenizer.json` is not JSON, or not of the form Hugging Face writes.
    #[error("`{path}` is not a tokenizer as Hugging Face writes it; fetch the file again")]
    TokenizerJson {
        /// The file.
        path: PathBuf,
        /// What the parser said, with line and column.
        source: serde_json::Error,
    },
    /// The tokenizer is of a kind whose alignment we have not tested.
    #[error("`{path}`: {found} is not supported; use the tokenizer of an XLM-R or RoBERTa model")]
    TokenizerKind {
        /// The file.
        path: PathBuf,
        /// What it holds.
        found: String,
    },
    /// A special piece that the model needs is not in the vocabulary.
    #[error("`{path}` has no piece `{piece}`; use the tokenizer of an XLM-R or RoBERTa model")]
    NoSpecial {
        /// The file.
        path: PathBuf,
        /// The piece.
        piece: &'static str,
    },
    /// An added piece contradicts the vocabulary or leaves a gap after it.
    #[error(
        "`{path}`: the added piece `{piece}` has the id {id}, which does not fit the vocabulary; save the tokenizer again in Python"
    )]
    AddedPiece {
        /// The file.
        path: PathBuf,
        /// The added piece.
        piece: String,
        /// Its id.
        id: u32,
    },
    /// A special piece could be produced by ordinary text.
    #[error(
        "`{path}`: the text `{piece}` in a corpus would become the special piece; use the tokenizer of an XLM-R or RoBERTa model"
    )]
    SpecialInText {
        /// The file.
        path: PathBuf,
        /// The piece.
        piece: String,
    },
    /// A marker is empty or has the text of an ordinary or special piece.
    #[error(
        "`{marker}` cannot be a marker, as the vocabulary has it as a piece already; rename the tag or language"
    )]
    MarkerTaken {
        /// The marker.
        marker: String,
    },
    /// The tokenizer's own rules fail on a token.
    #[error("the tokenizer's rules fail on the token `{token}`")]
    Segment {
        /// The token.
        token: String,
        /// What the rules said.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// This program was built without the embedded model.
    #[error(
        "this program was built without the model `mini`; give a folder with `--model DIR`, or build with the feature `mini`"
    )]
    NoEmbeddedModel,
    /// What was given for a model can be neither a folder nor a name.
    #[error(
        "`{name}` is neither a folder nor the name of a model such as `xlm-roberta-base`; check the path"
    )]
    NotAModel {
        /// What was given.
        name: String,
    },
    /// The model is not in the cache, and this program cannot fetch it.
    #[error(
        "the model `{name}` is not in the cache `{cache}`, and this program was built without the feature `hub` to fetch it; give a folder with `--model DIR`"
    )]
    NotCached {
        /// The model.
        name: String,
        /// The cache that was searched.
        cache: PathBuf,
    },
    /// The model is not in the cache, and the hub cannot be reached.
    #[error(
        "the model `{name}` is not in the cache `{cache}`, and the Hugging Face hub cannot be reached; give a folder with `--model DIR`, or try again with a network"
    )]
    Offline {
        /// The model.
        name: String,
        /// The cache that was searched.
        cache: PathBuf,
        /// What the network said.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The hub answered that it has no such model for us.
    #[error(
        "the Hugging Face hub answers {status} for the model `{name}`; check its name, or log in with `hf auth login` if it is private"
    )]
    Refused {
        /// The model.
        name: String,
        /// The HTTP status.
        status: u16,
    },
    /// The hub's answer about the model is not what a hub answers.
    #[error(
        "the Hugging Face hub's answer about the model `{name}` makes no sense; check the endpoint"
    )]
    HubAnswer {
        /// The model.
        name: String,
    },
    /// The model on the hub lacks a file that we need.
    #[error(
        "the model `{name}` has no `{file}` on the Hugging Face hub; convert it in Python with `save_pretrained` and give the folder with `--model DIR`"
    )]
    NotOnHub {
        /// The model.
        name: String,
        /// The file.
        file: &'static str,
    },
    /// Fetching a file failed half-way.
    #[error(
        "fetching `{file}` of the model `{name}` failed; run the command again to go on where it stopped"
    )]
    Fetch {
        /// The model.
        name: String,
        /// The file.
        file: String,
        /// What the network or the disk said.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// A fetched file is not as long as the hub says.
    #[error(
        "fetching `{file}` of the model `{name}` gave {found} bytes, expected {expected}; it was removed, run the command again"
    )]
    FetchedLength {
        /// The model.
        name: String,
        /// The file.
        file: String,
        /// Bytes on disk.
        found: u64,
        /// Bytes by the hub.
        expected: u64,
    },
    /// The engine could not do it.
    #[error(transparent)]
    Engine(#[from] melm_nn::Error),
    /// The listener asked to stop; the state is on disk.
    #[error("stopped; the same command goes on from here")]
    Interrupted,
    /// A tokenizer has more pieces than the model has rows for.
    #[error(
        "`{model}`: the tokenizer has {n_pieces} pieces and the model rows for {n_rows}; they do not belong together"
    )]
    TooManyPieces {
        /// The model.
        model: String,
        /// Pieces of the tokenizer.
        n_pieces: usize,
        /// Rows of the piece table.
        n_rows: usize,
    },
    /// A folder holds no tagger.
    #[error(
        "`{dir}` holds a model, but no tagger (no `classifier.weight`); train one with `melm train`"
    )]
    NotATagger {
        /// The folder.
        dir: PathBuf,
    },
    /// The names of a tagger's tags are missing or wrong.
    #[error("`{dir}/config.json`: {what}; a tagger's `id2label` names each tag, as `B-PER`")]
    TagNames {
        /// The folder.
        dir: PathBuf,
        /// What is wrong.
        what: String,
    },
    /// Training data without any mention.
    #[error("`{name}` has no mention to learn from")]
    NoMentions {
        /// The file.
        name: String,
    },
    /// Fine-tuning with a method that has none.
    #[error(
        "the method `{method}` fine-tunes no model; set the plan's `method` to `melm` or `melm-plain`"
    )]
    NothingToFinetune {
        /// The method.
        method: &'static str,
    },
    /// No training sentence fits the model.
    #[error("no sentence of the training set fits the model; use one that reads longer sentences")]
    NothingToLearn,
    /// A key of the plan that does not exist.
    #[error("{place} has the key `{key}`, which no plan has{hint}")]
    UnknownKey {
        /// The file or option.
        place: String,
        /// The key.
        key: String,
        /// The nearest key there is, as a sentence.
        hint: String,
    },
    /// A value of the plan that cannot be.
    #[error("{place}: {message}")]
    Setting {
        /// The file or option.
        place: String,
        /// What is wrong.
        message: String,
    },
    /// The output folder holds something else.
    #[error("`{dir}` holds {found}; name another folder, or pass `--force` to begin anew")]
    Occupied {
        /// The folder.
        dir: PathBuf,
        /// What is in it.
        found: &'static str,
    },
    /// A result file was changed after the run wrote it.
    #[error(
        "`{path}` was changed since it was written; move it away to keep it, or pass `--force` to start anew"
    )]
    ResultChanged {
        /// The file.
        path: PathBuf,
    },
    /// Code-mixing with nothing to mix.
    #[error(
        "code-mixing needs sentences in two languages or more; name them: `en=a.conll de=b.conll`"
    )]
    OneLanguage,
    /// No file of vectors for a language.
    #[error(
        "there are no vectors for the language `{language}`; name their file with `--vectors {language}=FILE`, or compare by the model's pieces with `--vectors pieces`"
    )]
    NoVectorsOf {
        /// The language.
        language: String,
    },
    /// Vectors of which no word of a language's mentions has one.
    #[error(
        "`{path}` has a vector for no word of the mentions in `{language}`; check that it is of that language"
    )]
    ForeignVectors {
        /// The file.
        path: PathBuf,
        /// The language.
        language: String,
    },
    /// Vectors of two languages with different dimensions.
    #[error(
        "the vectors of `{path}` have {found} numbers, those of `{other}` {expected}; vectors to compare must be aligned in one space"
    )]
    VectorDimensions {
        /// One file.
        path: PathBuf,
        /// Its dimension.
        found: usize,
        /// Another.
        other: PathBuf,
        /// The other's.
        expected: usize,
    },
    /// A file of text or vectors could not be read, or there is something wrong in it.
    #[error(transparent)]
    Text(#[from] melm_text::Error),
    /// A corpus has a tag that no marker was made for.
    #[error(
        "the tag `{tag}` has no marker; make the markers from every corpus that is to be linearized"
    )]
    NoMarker {
        /// The tag.
        tag: String,
    },
    /// An encoder-decoder does not know a language.
    #[error(
        "`{model}` has no language `{language}`; name one that it has, as `--set mulda.language=de_DE`"
    )]
    NoLanguage {
        /// The model.
        model: String,
        /// The language.
        language: String,
    },
    /// A fine-tuned model has no marker for a tag of the corpus.
    #[error(
        "`{model}` has no marker for the tag `{tag}`; fine-tune it on data that has the tag, with `melm finetune`"
    )]
    NotFinetunedFor {
        /// The model.
        model: String,
        /// The tag.
        tag: String,
    },
    /// A draft has a tag that its judge does not know.
    #[error(
        "the judge does not know the tag `{tag}`; train it on the data that the drafts come from"
    )]
    UnknownTag {
        /// The tag.
        tag: String,
    },
    /// A line of a file of drafts is not a draft of this corpus.
    #[error("`{path}`:{line}: {what}; give the file that the drafts were made from")]
    NotADraft {
        /// The file.
        path: PathBuf,
        /// Its line, from 1.
        line: usize,
        /// What is wrong.
        what: String,
    },
    /// A loss is no number any more.
    #[error(
        "the training `{stage}` has diverged at update {step}; lower its `learning_rate`, and begin anew with `--force`"
    )]
    Diverged {
        /// The stage.
        stage: &'static str,
        /// The update.
        step: u64,
    },
    /// A name to freeze that no tensor begins with.
    #[error(
        "no tensor's name begins with `{start}`, which the plan wants to freeze; names are those of Hugging Face"
    )]
    NothingToFreeze {
        /// The beginning.
        start: String,
    },
}
