//! Tags files: replaces or adds the tags, and leaves everything else unchanged.

use std::cell::{Cell, RefCell};
use std::io::Write;
use std::ops::{Deref, Range};

use melm_nn::device::Device;
use melm_text::conll::ConllWriter;
use melm_text::jsonl::JsonlWriter;
use melm_text::{
    EntityTypes, Problems, ReadOptions, Reader, Record, Source, Survey, Tag, Writer,
    add_missing_tags,
};

use super::{TagSummary, TaggedSentence, Tagger, Truncation, pipeline};
use crate::Error;
use crate::stage::{OnBatch, OnProgress};

/// The number of sentences of [`FileToTag::sample`].
const SAMPLE: usize = 1_000;

/// The number of chunks of a file that are tagged at the same time with a GPU. One is tokenized or decoded while the GPU
/// computes the other.
const GPU_CHUNKS: usize = 2;

/// A file to tag. It may have tags of its own, which are replaced.
pub struct FileToTag {
    source: Source,
    survey: Survey,
    has_tags: bool,
    sentences: Range<usize>,
}

impl FileToTag {
    /// Reads a file. Its tags need not be valid in a scheme, since they are replaced. Fails if the file has other
    /// problems.
    pub fn new(source: Source, options: &ReadOptions) -> Result<Self, Error> {
        let with_tags = add_missing_tags(&source, options);
        let has_tags = with_tags.is_none();
        let source = with_tags.unwrap_or(source);
        let survey = Survey::read(&source, options, |_, _, _| {})?;
        survey.require_sound(&source, true)?;
        let sentences = 0..survey.n_sentences;
        Ok(Self { source, survey, has_tags, sentences })
    }

    /// Sets the sentences that are tagged and written, by their indices. By default these are all sentences. The comments
    /// after the last sentence of the file belong to this sentence.
    ///
    /// # Panics
    /// If the file has fewer sentences.
    #[must_use]
    pub fn with_sentences(mut self, sentences: Range<usize>) -> Self {
        assert!(sentences.start <= sentences.end && sentences.end <= self.survey.n_sentences);
        self.sentences = sentences;
        self
    }

    /// Returns true if the file has tags, which will be replaced. Otherwise tags will be added.
    pub fn has_tags(&self) -> bool {
        self.has_tags
    }

    /// Returns the tokens of the first sentences that are tagged, to judge whether a tagger knows their language.
    pub fn sample(&self) -> Vec<Vec<String>> {
        let mut reader = Reader::with_structure(&self.source, &self.survey.structure);
        let mut types = EntityTypes::default();
        skip(&mut reader, &mut types, self.sentences.start);
        let records = read_chunk(&mut reader, &mut types, self.sentences.len().min(SAMPLE));
        let tokens = |record: &Record<'_>| record.tokens.iter().map(ToString::to_string).collect();
        records.iter().map(tokens).collect()
    }

    /// The text of the file. If the file has no tags, every token has been given the tag `O`.
    pub fn source(&self) -> &Source {
        &self.source
    }

    /// The format and the counts of the file.
    pub fn survey(&self) -> &Survey {
        &self.survey
    }
}

impl Tagger {
    /// Writes a file with predicted tags to `out`, in the same format. All other columns, keys and comments stay. If
    /// `with_probabilities` is true, adds the probability of each tag as a last column or as the key
    /// `ner_probabilities`. Returns the numbers of sentences, tokens and mentions.
    ///
    /// `on_progress` receives the number of bytes that are tagged and written, and their total, also while a chunk is
    /// tagged. Fails with [`Error::Interrupted`] if `on_progress` asks to stop, and with [`melm_text::Error::Write`] if
    /// writing to `out` fails.
    pub fn tag_file(
        &self,
        file: &FileToTag,
        with_probabilities: bool,
        mut out: impl Write,
        on_progress: OnProgress<'_>,
    ) -> Result<TagSummary, Error> {
        let open = || Reader::with_structure(&file.source, &file.survey.structure);
        let (mut reader, mut types) = (open(), EntityTypes::default());
        skip(&mut reader, &mut types, file.sentences.start);
        let mut n_left = file.sentences.len();
        let read = || {
            let records = read_chunk(&mut reader, &mut types, n_left.min(self.chunk_size()));
            n_left -= records.len();
            let end = reader.position() as u64;
            (!records.is_empty()).then_some(Chunk { records, end })
        };
        let tag = |chunk: &Chunk<'_>, on_batch: OnBatch<'_>| {
            let sentences: Vec<Vec<&str>> = chunk
                .records
                .iter()
                .map(|record| record.tokens.iter().map(Deref::deref).collect())
                .collect();
            self.tag_chunk(&sentences, with_probabilities, on_batch)
        };
        let (mut writer, mut summary) = (self.file_writer(&open()), TagSummary::default());
        let tag_types = self.model().tags().types();
        let total = file.source.text().len() as u64;
        // Both the writer and the wait for a chunk report it.
        let (done, on_progress) = (Cell::new(0), RefCell::new(on_progress));
        let report = || (on_progress.borrow_mut())(done.get(), total).or_interrupted();
        let write = |chunk: &Chunk<'_>, tagged: TaggedChunk| {
            summary.truncation += tagged.truncation;
            for (record, sentence) in chunk.records.iter().zip(&tagged.sentences) {
                let TagsAsText { tags, probabilities } = sentence;
                summary.add(tags, tag_types);
                writer.write(record, tags, tag_types).map_err(write_error)?;
                if with_probabilities {
                    let bytes = std::mem::take(writer.out());
                    let bytes = add_probabilities(bytes, probabilities, &file.survey);
                    out.write_all(&bytes).map_err(write_error)?;
                }
            }
            out.write_all(writer.out()).map_err(write_error)?;
            writer.out().clear();
            done.set(chunk.end);
            report()
        };
        pipeline::tag_chunks(self.n_chunks(), read, tag, write, report)?;
        if file.sentences.end == file.survey.n_sentences {
            writer.write_lines_after(&file.survey.lines_after).map_err(write_error)?;
        }
        out.write_all(writer.out()).map_err(write_error)?;
        Ok(summary)
    }

    /// Returns the number of chunks of a file that are tagged at the same time. On the CPU, one keeps all threads busy.
    fn n_chunks(&self) -> usize {
        match self.device() {
            Device::Cpu(_) => 1,
            Device::Cuda(_) => GPU_CHUNKS,
        }
    }

    /// Tags the sentences of a chunk. Finds probabilities only if they are wanted.
    fn tag_chunk<T: AsRef<str> + Sync>(
        &self,
        sentences: &[Vec<T>],
        with_probabilities: bool,
        on_batch: OnBatch<'_>,
    ) -> Result<TaggedChunk, Error> {
        if !with_probabilities {
            let (tags, truncation) = self.find_tags_in_batches(sentences, on_batch)?;
            let without = |tags| TagsAsText { tags, probabilities: Vec::new() };
            return Ok(TaggedChunk {
                sentences: tags.into_iter().map(without).collect(),
                truncation,
            });
        }
        let (tagged, truncation) = self.tag_batches(sentences, on_batch)?;
        let with_text = |one: TaggedSentence| TagsAsText {
            probabilities: self.probabilities(&one),
            tags: one.tags,
        };
        Ok(TaggedChunk { sentences: tagged.into_iter().map(with_text).collect(), truncation })
    }

    /// Returns a writer in the format of the file and the scheme of the tagger.
    fn file_writer(&self, reader: &Reader<'_>) -> Writer<Vec<u8>> {
        let scheme = Some(self.model().tags().scheme());
        match reader {
            Reader::Conll(_) | Reader::Documents(_) => {
                Writer::Conll(ConllWriter::new(Vec::new(), scheme))
            }
            Reader::Jsonl(reader) => {
                Writer::Jsonl(JsonlWriter::new(Vec::new(), scheme, &reader.keys().tags, None))
            }
        }
    }

    /// Returns the probability of each predicted tag, with four decimals.
    fn probabilities(&self, tagged: &TaggedSentence) -> Vec<String> {
        let tags = self.model().tags();
        let numbers = tagged.tags.iter().map(|tag| tags.number(*tag).unwrap_or_default());
        let probabilities = numbers.enumerate().map(|(token, tag)| tagged.probability(token, tag));
        probabilities.map(|probability| format!("{probability:.4}")).collect()
    }
}

/// Some sentences of a file.
struct Chunk<'t> {
    records: Vec<Record<'t>>,
    /// The position in the file after the sentences.
    end: u64,
}

fn write_error(source: std::io::Error) -> Error {
    Error::Text(melm_text::Error::Write { source })
}

/// The tags of the sentences of a chunk.
struct TaggedChunk {
    sentences: Vec<TagsAsText>,
    /// Sentences and tokens of the chunk that were too long for the model.
    truncation: Truncation,
}

/// The tags of a sentence.
struct TagsAsText {
    tags: Vec<Tag>,
    /// The probabilities of the tags; empty if they are not wanted.
    probabilities: Vec<String>,
}

/// Adds a last column to the rows of a sentence, or a last key to the JSON object of a sentence.
fn add_probabilities(bytes: Vec<u8>, probabilities: &[String], survey: &Survey) -> Vec<u8> {
    let text = String::from_utf8(bytes).expect("the writer writes UTF-8");
    let Some(layout) = survey.layout() else {
        // Strip one brace only: the last value may end with braces of its own.
        let open = text.trim_end().strip_suffix('}').unwrap_or_default();
        let list = probabilities.join(",");
        return format!("{open},\"ner_probabilities\":[{list}]}}\n").into_bytes();
    };
    let separator = layout.separator.text();
    let lines: Vec<_> = text.trim_end_matches('\n').split('\n').collect();
    // The lines before the token rows are comments.
    let n_before = lines.len() - probabilities.len();
    let before = lines[..n_before].iter().map(|line| format!("{line}\n"));
    let rows = lines[n_before..].iter().zip(probabilities);
    let rows = rows.map(|(row, p)| format!("{}{separator}{p}\n", row.trim_end_matches(' ')));
    before.chain(rows).chain(["\n".to_owned()]).collect::<String>().into_bytes()
}

/// Reads the next `n` sentences, or those that are left.
fn read_chunk<'t>(reader: &mut Reader<'t>, types: &mut EntityTypes, n: usize) -> Vec<Record<'t>> {
    let mut records = Vec::new();
    let mut record = Record::default();
    while records.len() < n && reader.read(&mut record, types, &mut Problems::default()) {
        records.push(std::mem::take(&mut record));
    }
    records
}

/// Skips the next `n` sentences.
fn skip(reader: &mut Reader<'_>, types: &mut EntityTypes, n: usize) {
    let mut record = Record::default();
    for _ in 0..n {
        reader.read(&mut record, types, &mut Problems::default());
    }
}
