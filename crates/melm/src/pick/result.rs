//! The picked sentences, and the files that they are written to.

use std::path::{Path, PathBuf};

use melm_text::{
    Corpus, Document, Format, LeftOut, Metadata, UnlabelledSentence, UnlabelledText, WriteSettings,
    WrittenFile,
};
use serde::Serialize;
use serde_json::json;

use super::{PickSummary, PickedSentence, PickedSentences};
use crate::Error;
use crate::draft::{ProposedLine, spell_tags, texts};
use crate::files::write_whole;

/// The sentences that were picked, the most useful one first.
#[derive(Debug)]
pub struct Picked {
    result: PickedSentences,
    /// The labelled sentences. The types and the scheme of the suggested tags are theirs.
    gold: Corpus,
    text: UnlabelledText,
    left_out: LeftOut,
}

/// The JSON form of a picked sentence.
#[derive(Serialize)]
struct PickLine<'a> {
    rank: usize,
    score: f64,
    similarity: f64,
    file: &'a str,
    line: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    language: Option<&'a str>,
    tokens: Vec<String>,
    tags: Vec<String>,
    panel: usize,
    probabilities: &'a [f64],
    mentions: Vec<ProposedLine>,
}

impl Picked {
    pub(super) fn new(
        result: PickedSentences,
        gold: Corpus,
        text: UnlabelledText,
        left_out: LeftOut,
    ) -> Self {
        Self { result, gold, text, left_out }
    }

    /// The sentences.
    pub fn sentences(&self) -> &[PickedSentence] {
        &self.result.sentences
    }

    /// The number of sentences of the text by what became of them.
    pub fn summary(&self) -> PickSummary {
        self.result.summary
    }

    /// The numbers of sentences that were left out before the panel voted.
    pub fn left_out(&self) -> LeftOut {
        self.left_out
    }

    /// The labelled sentences. The tags of [`Self::sentences`] have their types and scheme.
    pub fn gold(&self) -> &Corpus {
        &self.gold
    }

    /// Where a picked sentence comes from.
    pub fn source(&self, sentence: &PickedSentence) -> &UnlabelledSentence {
        &self.text.sentences()[sentence.number]
    }

    /// The format of the training file, or CoNLL if it was not read from a file.
    pub fn usual_format(&self) -> Format {
        self.gold.files().first().map_or(Format::CONLL, |file| file.format())
    }

    /// Returns the picked sentences as texts with their suggested spans. A text has the spacing of the original, and its
    /// rank, score and origin as other values.
    pub fn documents(&self) -> Vec<Document> {
        let numbered = self.sentences().iter().enumerate();
        numbered.map(|(at, one)| self.document(at + 1, one)).collect()
    }

    /// Writes the sentences in a format. In the format of the training file, CoNLL rows and JSON lines have the columns,
    /// keys and scheme of that file. Other formats also get the rank, the score and the origin of each sentence, if they
    /// can store them. Label Studio gets the tags as predictions, which a person has to confirm.
    pub fn to_files(&self, format: Format) -> Result<Vec<WrittenFile>, Error> {
        let file = self.gold.files().first().filter(|file| file.format() == format);
        if let Some(file) = file.filter(|_| [Format::CONLL, Format::JSONL].contains(&format)) {
            let sentences: Vec<_> =
                self.sentences().iter().map(|one| one.sentence.clone()).collect();
            return Ok(file.write_sentences(self.gold.types(), &sentences, false)?);
        }
        let settings = WriteSettings { scheme: self.gold.scheme(), are_suggestions: true };
        Ok(format.write(&self.documents(), &settings)?)
    }

    /// Returns a JSON line for each sentence with its rank, score, origin, tags and votes.
    pub fn to_lines(&self) -> String {
        let line = |(at, one): (usize, &PickedSentence)| {
            let line = self.line(at + 1, one);
            serde_json::to_string(&line).expect("a sentence has only JSON values") + "\n"
        };
        self.sentences().iter().enumerate().map(line).collect()
    }

    /// Writes the sentences to `path`, in `format` or else in the format of the training file, and their scores and votes
    /// to the same name with `.pick.jsonl` at the end. Replaces existing files. Returns the paths of all files.
    pub fn write(
        &self,
        path: impl AsRef<Path>,
        format: Option<Format>,
    ) -> Result<Vec<PathBuf>, Error> {
        let path = path.as_ref();
        let files = self.to_files(format.unwrap_or(self.usual_format()))?;
        let mut paths = Vec::new();
        for file in &files {
            let own = match files.len() {
                1 => path.to_path_buf(),
                _ => path.with_extension(file.extension),
            };
            write_whole(&own, &file.bytes)?;
            paths.push(own);
        }
        let lines = Self::lines_path(path);
        write_whole(&lines, self.to_lines().as_bytes())?;
        paths.push(lines);
        Ok(paths)
    }

    /// The path of the file of [`Self::to_lines`] beside `path`.
    pub fn lines_path(path: &Path) -> PathBuf {
        let mut name = path.as_os_str().to_owned();
        name.push(".pick.jsonl");
        name.into()
    }

    fn document(&self, rank: usize, one: &PickedSentence) -> Document {
        let source = self.source(one);
        let tokens: Vec<&str> = one.sentence.tokens().iter().map(AsRef::as_ref).collect();
        let mut values = vec![
            ("rank", json!(rank)),
            ("score", json!(round(one.score))),
            ("file", json!(source.file())),
            ("line", json!(source.line())),
        ];
        values.extend(source.language().map(|language| ("language", json!(language))));
        let metadata = values
            .into_iter()
            .map(|(key, value)| Metadata { key: key.into(), json: value.to_string().into() });
        Document::from_tokens(&tokens, &gaps(source), one.sentence.tags(), self.gold.types())
            .with_metadata(metadata.collect())
    }

    fn line<'s>(&'s self, rank: usize, one: &'s PickedSentence) -> PickLine<'s> {
        let source = self.source(one);
        let types = self.gold.types();
        PickLine {
            rank,
            score: round(one.score),
            similarity: round(one.similarity),
            file: source.file(),
            line: source.line(),
            language: source.language(),
            tokens: texts(one.sentence.tokens()),
            tags: spell_tags(one.sentence.tags(), &self.gold),
            panel: one.n_taggers,
            probabilities: &one.probabilities,
            mentions: one.proposed.iter().map(|one| ProposedLine::new(one, types)).collect(),
        }
    }
}

/// Rounds to six decimals. More would only show rounding errors.
fn round(value: f64) -> f64 {
    (value * 1e6).round() / 1e6
}

/// Returns the text before each token in the original text. Empty if the sentence has no text.
fn gaps(source: &UnlabelledSentence) -> Vec<&str> {
    let Some(text) = source.text() else { return Vec::new() };
    let spans = source.spans();
    let between = spans.windows(2).map(|pair| &text[pair[0].end..pair[1].start]);
    std::iter::once("").chain(between).collect()
}
