//! The errors of this crate.

mod cure;
mod from;

use std::path::PathBuf;

use crate::augment::SilverError;
use crate::hub::HubError;
use crate::shard::ShardError;

/// An error of this crate. A message names the file or value, says what is wrong with it and, if known, what to do.
///
/// For [`Error::Read`], [`Error::Write`] and [`Error::Text`], [`Error::cure`] says what to do. The cause of an error
/// is its [`source`](std::error::Error::source).
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A file or folder could not be read. Errors of `melm-nn` and `melm-text` while reading a file become this one.
    #[error("cannot read `{path}`")]
    Read {
        /// The file or folder.
        path: PathBuf,
        /// The error of the operating system.
        source: std::io::Error,
    },
    /// A file or folder could not be written. Errors of `melm-nn` while writing a file become this one.
    #[error("cannot write `{path}`")]
    Write {
        /// The file or folder.
        path: PathBuf,
        /// The error of the operating system.
        source: std::io::Error,
    },
    /// The folder has neither `tokenizer.json` nor BERT's `vocab.txt`.
    #[error(
        "`{dir}` has no `tokenizer.json`; make one in Python: \
         `AutoTokenizer.from_pretrained(\"{dir}\").save_pretrained(\"{dir}\")`"
    )]
    NoTokenizer {
        /// The folder.
        dir: PathBuf,
    },
    /// A `tokenizer.json` is not valid JSON, or does not have the form that Hugging Face writes.
    #[error("`{path}` is not a valid Hugging Face tokenizer; download the file again")]
    TokenizerJson {
        /// The file.
        path: PathBuf,
        /// The error of the parser, with line and column.
        source: serde_json::Error,
    },
    /// The tokenizer is of an unsupported kind: aligning its pieces with tokens is not tested.
    #[error(
        "`{path}`: {found} is not supported; use the tokenizer of an XLM-R, RoBERTa or BERT model"
    )]
    TokenizerKind {
        /// The file.
        path: PathBuf,
        /// The kind that the file names.
        found: String,
    },
    /// A special piece that the model needs is not in the vocabulary.
    #[error(
        "`{path}` has no piece `{piece}`; use the tokenizer of an XLM-R, RoBERTa or BERT model"
    )]
    NoSpecial {
        /// The file.
        path: PathBuf,
        /// The piece.
        piece: &'static str,
    },
    /// An added piece has the id of another piece, or its id leaves a gap after the vocabulary.
    #[error(
        "`{path}`: the added piece `{piece}` has the id {id}, which is taken or leaves a gap in the vocabulary; save the tokenizer again in Python"
    )]
    AddedPiece {
        /// The file.
        path: PathBuf,
        /// The added piece.
        piece: String,
        /// The id of the added piece.
        id: u32,
    },
    /// The tokenizer would turn ordinary text into a special piece.
    #[error(
        "`{path}`: the text `{piece}` in a corpus would become a special piece; use the tokenizer of an XLM-R, RoBERTa or BERT model"
    )]
    SpecialInText {
        /// The file.
        path: PathBuf,
        /// The piece.
        piece: String,
    },
    /// A marker is empty, or the vocabulary already has a piece with its text.
    #[error(
        "`{marker}` cannot be a marker: the vocabulary already has this piece; rename the tag or language"
    )]
    MarkerTaken {
        /// The marker.
        marker: String,
    },
    /// The rules of the tokenizer fail on a token.
    #[error(
        "the tokenizer cannot split the token `{token}`; remove the token, or use another model"
    )]
    Segment {
        /// The token.
        token: String,
        /// The error that the tokenizer's rules returned.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// This program was built without the embedded model, and the caller did not pass its folder.
    #[error(
        "the model `mini` is not installed; run `pip install melm-mini`, build with the feature `mini`, or choose another model with \
         `--model DIR`"
    )]
    NoEmbeddedModel,
    /// The model is neither a folder nor a valid name on the hub.
    #[error(
        "`{name}` is neither a folder nor a model name such as `xlm-roberta-base`; check the path"
    )]
    NotAModel {
        /// The name as given.
        name: String,
    },
    /// A model could not be found in the cache or downloaded.
    #[error(transparent)]
    Hub(#[from] HubError),
    /// The tensor engine (`melm-nn`) failed for a reason other than reading or writing a file.
    #[error(transparent)]
    Engine(melm_nn::Error),
    /// Shards cannot be joined. [`Error::cure`] says what to do.
    #[error(transparent)]
    Shard(#[from] ShardError),
    /// The other shards of a run have not voted yet.
    #[error("the votes of {} taggers of pass {pass} are missing; run the other shards", .taggers.len())]
    VotesMissing {
        /// The pass.
        pass: u32,
        /// The numbers of the taggers, from 1.
        taggers: Vec<usize>,
    },
    /// The observer stopped the run. If the run has a folder, its state was saved there.
    #[error("stopped; run the same command again to continue")]
    Interrupted,
    /// The tokenizer has more pieces than the embedding of the model has rows.
    #[error(
        "`{model}`: the tokenizer has {n_pieces} pieces, but the model only {n_rows}; use the tokenizer and the weights of one model"
    )]
    TooManyPieces {
        /// The model.
        model: String,
        /// The number of pieces of the tokenizer.
        n_pieces: usize,
        /// The number of rows of the model's embedding.
        n_rows: usize,
    },
    /// The folder has a model that is not a tagger.
    #[error(
        "the model in `{dir}` is not a tagger (it has no `classifier.weight`); train one with `melm train`"
    )]
    NotATagger {
        /// The folder.
        dir: PathBuf,
    },
    /// The tag names of a tagger are missing or invalid.
    #[error("`{dir}/config.json`: {what}; `id2label` must give each id a tag such as `B-PER`")]
    TagNames {
        /// The folder.
        dir: PathBuf,
        /// The problem.
        what: String,
    },
    /// The training data has no mentions.
    #[error("`{name}` has no mentions to learn from; use a file with tags such as `B-PER`")]
    NoMentions {
        /// The file.
        name: String,
    },
    /// The method does not fine-tune a model.
    #[error(
        "the method `{method}` does not fine-tune a model; set the plan's `method` to `melm` or `melm-plain`"
    )]
    NothingToFinetune {
        /// The method.
        method: &'static str,
    },
    /// Every training sentence has more pieces than the model can read.
    #[error(
        "every sentence of the training set is too long for the model; split the sentences, or use a model for longer ones"
    )]
    NothingToLearn,
    /// A plan has no such key.
    #[error("{place}: a plan has no key `{}`{hint}", melm_text::shown(.key))]
    UnknownKey {
        /// The origin of the setting: a file or an option.
        place: String,
        /// The key.
        key: String,
        /// A suggestion of a similar key, such as `; did you mean …?`, or nothing.
        hint: String,
    },
    /// A value of the plan is invalid.
    #[error("{place}: {message}")]
    Setting {
        /// The origin of the setting: a file or an option.
        place: String,
        /// The problem.
        message: String,
    },
    /// The output folder contains something other than this run.
    #[error("`{dir}` has {found}; choose another folder, or pass `--force` to start again")]
    Occupied {
        /// The folder.
        dir: PathBuf,
        /// What the folder contains, and how this differs from the run.
        found: String,
    },
    /// Another process uses the output folder.
    #[error("`{dir}` is in use by {other}; wait until it ends, or choose another folder")]
    InUse {
        /// The folder.
        dir: PathBuf,
        /// The other process.
        other: String,
    },
    /// A folder of a run, or a file in it, is a link. Files are not written through links.
    #[error(
        "`{path}` is a link, and nothing is written outside of the output folder; put the files that it leads to in its place, or remove it"
    )]
    Link {
        /// The link.
        path: PathBuf,
    },
    /// A record of a run names a file that is not in its folder.
    #[error(
        "`{path}` names the file `{}`, which is not a file of its folder; pass `--force` to start again",
        melm_text::shown(.name)
    )]
    ForeignFile {
        /// The record.
        path: PathBuf,
        /// The name of the file.
        name: String,
    },
    /// A file of an earlier stage was changed after it was written, or is truncated.
    #[error(
        "`{path}` is damaged: its checksum does not fit its content; remove the folder `{}`, and run the same command again",
        .path.parent().unwrap_or(.path).display()
    )]
    DamagedStage {
        /// The file.
        path: PathBuf,
    },
    /// A result file was changed after the run wrote it.
    #[error(
        "`{path}` was changed after the run wrote it; move it away to keep it, or pass `--force` to start again"
    )]
    ResultChanged {
        /// The file.
        path: PathBuf,
    },
    /// A result file of a finished run is missing, and the state from which it could be made again was removed.
    #[error("`{path}` is missing from a finished run; pass `--force` to run it again")]
    ResultMissing {
        /// The file.
        path: PathBuf,
    },
    /// The corpus has only one language, and code-mixing needs two.
    #[error(
        "code-mixing needs sentences in at least two languages; pass a file for each: `en=a.conll de=b.conll`"
    )]
    OneLanguage,
    /// The unlabelled text has no sentences.
    #[error("the unlabelled text has no sentences; pass a file with at least one sentence")]
    NoText,
    /// Every sentence of the unlabelled text was left out.
    #[error(
        "every sentence of the unlabelled text is also in the training set, the dev set or a held-out file; pass other text"
    )]
    KnownText,
    /// Silver sentences cannot be used.
    #[error(transparent)]
    Silver(#[from] SilverError),
    /// A list of names has an entity type that the training set does not have.
    #[error(
        "the list of names `{file}` has the type `{entity_type}`, but the types of TRAIN are {known}"
    )]
    UnknownNameType {
        /// The file of the list.
        file: String,
        /// The type of the list.
        entity_type: String,
        /// The types of the training set.
        known: String,
    },
    /// No name of a list can be used.
    #[error(
        "no name in `{file}` can be used for {entity_type}: {repeated} repeat others, and {contradicted} have another type in TRAIN; pass other names"
    )]
    NoNames {
        /// The file of the list.
        file: String,
        /// The type of the list.
        entity_type: String,
        /// The number of repeated names.
        repeated: usize,
        /// The number of names that gold has only with another type.
        contradicted: usize,
    },
    /// The method does not use lists of names.
    #[error(
        "the method {method} uses no lists of names; use `melm-both` or `label-wise`, or pass no names"
    )]
    UnusedNames {
        /// The method.
        method: &'static str,
    },
    /// The unlabelled text has a language, but the training set has none.
    #[error(
        "the text `{file}` has the language `{language}`, but TRAIN has none; name TRAIN's language too: `en=FILE`"
    )]
    GoldWithoutLanguage {
        /// The file of the text.
        file: String,
        /// The language.
        language: String,
    },
    /// The training set has languages, but a sentence of the unlabelled text has none.
    #[error(
        "TRAIN has languages, but the text `{file}` has none; name its language too, for example `en={file}`"
    )]
    TextWithoutLanguage {
        /// The file of the text.
        file: String,
    },
    /// A token of the unlabelled text has a space, but spaces separate the columns of the training set.
    #[error(
        "`{file}`:{line}: the token `{token}` has a space, but spaces separate the columns of `{train}`; use a TRAIN with tabs: `melm convert {train} --separator tab -o FILE`"
    )]
    TokenWithSpace {
        /// The file of the text.
        file: String,
        /// The line of the first token of the sentence, from 1.
        line: usize,
        /// The token.
        token: String,
        /// The file of the training set.
        train: String,
    },
    /// A language has no vector file.
    #[error(
        "the language `{language}` has no word vectors; pass a file with `--vectors {language}=FILE`, or use the piece embeddings of the model with `--vectors pieces`"
    )]
    NoVectorsOf {
        /// The language.
        language: String,
    },
    /// A vector file has no vector for any word in the mentions of its language.
    #[error(
        "`{path}` has no vector for any word of the mentions in `{language}`; check that its language is `{language}`"
    )]
    ForeignVectors {
        /// The file.
        path: PathBuf,
        /// The language.
        language: String,
    },
    /// The vectors of two languages have different dimensions.
    #[error(
        "the vectors of `{path}` have {found} dimensions, those of `{other}` have {expected}; use vectors that are aligned in one space"
    )]
    VectorDimensions {
        /// A file.
        path: PathBuf,
        /// The dimension of the vectors in `path`.
        found: usize,
        /// Another file.
        other: PathBuf,
        /// The dimension of the vectors in `other`.
        expected: usize,
    },
    /// The content of a text file or vector file is invalid.
    #[error(transparent)]
    Text(melm_text::Error),
    /// A corpus has a tag without a marker.
    #[error("the tag `{tag}` has no marker; make the markers from all corpora that are linearized")]
    NoMarker {
        /// The tag.
        tag: String,
    },
    /// A multilingual encoder-decoder has no piece for a language.
    #[error(
        "`{model}` does not know the language `{language}`; set one that it knows, for example `--set mulda.language=de_DE`"
    )]
    NoLanguage {
        /// The model.
        model: String,
        /// The language.
        language: String,
    },
    /// A fine-tuned model has no marker for a tag of the corpus.
    #[error(
        "`{model}` has no marker for the tag `{tag}`; fine-tune it with `melm finetune` on data that has the tag"
    )]
    NotFinetunedFor {
        /// The model.
        model: String,
        /// The tag.
        tag: String,
    },
    /// A draft has a tag that the judge does not know.
    #[error(
        "the judge does not know the tag `{tag}`; train the judge on the data that the drafts were made from"
    )]
    UnknownTag {
        /// The tag.
        tag: String,
    },
    /// The training set has more entity types than a tagger can have tags for.
    #[error(
        "{n_types} entity types make {n_tags} tags in {scheme}, and a tagger has at most {limit}; check that the tag column is \
         right (`melm check`), or merge types"
    )]
    TooManyTags {
        /// The number of entity types.
        n_types: usize,
        /// The number of tags.
        n_tags: usize,
        /// The scheme.
        scheme: melm_text::Scheme,
        /// The largest number of tags.
        limit: usize,
    },
    /// The CRF of a tagger has more tags than a GPU can compute.
    #[error(
        "a CRF on a GPU has at most {limit} tags, and the training set has {n_tags}; pass `--device cpu` or \
         `--set tagger.head=linear`"
    )]
    TooManyGpuTags {
        /// The number of tags.
        n_tags: usize,
        /// The largest number of tags.
        limit: usize,
    },
    /// There are too few gold sentences to check them by folds.
    #[error(
        "too few gold sentences for a check with {n_folds} folds: {n_sentences}; use fewer folds (`gold_check.folds`), or do not \
         check gold"
    )]
    TooFewToCheck {
        /// The number of gold sentences.
        n_sentences: usize,
        /// The number of folds.
        n_folds: usize,
    },
    /// A line of a file of decisions is not a decision, or contradicts another line.
    #[error(
        "`{path}`:{line}: {what}; a line is `{{\"id\": \"…\", \"decision\": \"accept\"}}` or has the decision `reject`"
    )]
    NotADecision {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
        /// The problem.
        what: String,
    },
    /// Decisions have ids that no draft has.
    #[error(
        "`{path}`:{line}: no draft has the id `{id}` (unknown ids: {n_unknown}); pass the `drafts.jsonl` of the \
         folder that the report was made from"
    )]
    UnknownCandidates {
        /// The file of decisions.
        path: PathBuf,
        /// The first line with an unknown id, from 1.
        line: usize,
        /// The id.
        id: String,
        /// The number of unknown ids.
        n_unknown: usize,
    },
    /// A line of a drafts file is not a draft of this corpus.
    #[error(
        "`{path}`:{line}: {what}; pass drafts of `melm augment` or `melm generate`, and the corpus that they were made from"
    )]
    NotADraft {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
        /// The problem.
        what: String,
    },
    /// The loss or the gradients of a training run became infinite or NaN.
    #[error(
        "the training `{stage}` diverged at update {step}: {what} not finite; nothing was saved after update {}; lower its `learning_rate`, and start again with `--force`",
        .step.saturating_sub(1)
    )]
    Diverged {
        /// The stage that trains the model.
        stage: &'static str,
        /// The number of the update, from 1.
        step: u64,
        /// What is not finite, with its verb.
        what: &'static str,
    },
    /// The GPU failed in a training run, for example because a driver was reset or memory ran out.
    #[error("the GPU failed in update {step} of the training `{stage}`; {}", describe_saved(*.saved))]
    DeviceFailed {
        /// The stage that trains the model.
        stage: &'static str,
        /// The number of the update, from 1.
        step: u64,
        /// The number of updates in the saved state, or `None` if no state is saved.
        saved: Option<u64>,
        /// The error of the engine.
        source: Box<melm_nn::Error>,
    },
    /// The plan freezes tensors, but none has a name with this prefix.
    #[error(
        "the plan freezes `{start}`, but no tensor name starts with it; use the names of Hugging Face"
    )]
    NothingToFreeze {
        /// The prefix.
        start: String,
    },
}

/// Says what a user can do after a GPU failed.
fn describe_saved(n_updates: Option<u64>) -> String {
    match n_updates {
        Some(n) => format!(
            "the state after update {n} is saved: run the same command again to continue from there"
        ),
        None => "no state of this training is saved: run the same command again to start it again, with `--save-every` for \
                 a saved state"
            .to_owned(),
    }
}
