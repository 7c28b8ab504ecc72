//! A labelled file: its text, its structure and its corpus. More sentences can be written in the format of the file.

use std::path::Path;

use crate::corpus::Corpus;
use crate::error::Error;
use crate::format::{ReadOptions, Reader, Structure};
use crate::formats::{Format, WriteSettings, WrittenFile};
use crate::jsonl::{JsonlKeys, TagNames};
use crate::problem::Problems;
use crate::record::Record;
use crate::sentence::Sentence;
use crate::source::{Encoding, Source};
use crate::spans::{Document, Documents};
use crate::tag::EntityTypes;

/// A file that was read whole: its text, how it stores sentences, and the sentences.
///
/// ```
/// use melm_text::{LabelledFile, ReadOptions, Source, Token};
/// let source = Source::from_text("a.conll", "in APPR O\nBonn NE B-LOC\n");
/// let file = LabelledFile::read(source, &ReadOptions::default())?;
/// let corpus = file.corpus();
/// let more = [corpus.sentences()[0].with_tokens([(1, Token::new("Ghent").unwrap())])];
/// let files = file.write_sentences(corpus.types(), &more, false)?;
/// assert_eq!(files[0].bytes, b"in APPR O\nGhent NE B-LOC\n\n");
/// # Ok::<(), melm_text::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct LabelledFile {
    source: Source,
    structure: Structure,
    corpus: Corpus,
}

impl LabelledFile {
    /// Opens a UTF-8 file and reads it: see [`Corpus::open`].
    pub fn open(path: impl AsRef<Path>) -> Result<Self, Error> {
        let path = path.as_ref();
        let source = Source::open(path, Encoding::Utf8)?;
        Self::read(source, &ReadOptions::default().with_names_beside(path))
    }

    /// Reads a text and stores it. Fails as [`Corpus::read`] does.
    pub fn read(source: Source, options: &ReadOptions) -> Result<Self, Error> {
        let (corpus, structure) = Corpus::read_with_structure(&source, options)?;
        Ok(Self { source, structure, corpus })
    }

    /// The text of the file.
    pub fn source(&self) -> &Source {
        &self.source
    }

    /// How the file stores its sentences.
    pub fn structure(&self) -> &Structure {
        &self.structure
    }

    /// The format of the file.
    pub fn format(&self) -> Format {
        self.structure.format()
    }

    /// The sentences of the file.
    pub fn corpus(&self) -> &Corpus {
        &self.corpus
    }

    /// Returns the corpus of this file. The corpus stores the file: see [`Corpus::files`].
    pub fn into_corpus(self) -> Corpus {
        Corpus::from_file(self)
    }

    /// Writes `more` sentences in the format, scheme and line ends of the file. If `own` is true, the sentences of the
    /// file come first: CoNLL rows and JSON lines byte for byte, records of other formats as they are. The tags of `more`
    /// must use `types`.
    ///
    /// CoNLL: a sentence keeps its columns. A sentence without columns gets the columns of the file, filled with `_`.
    /// JSON lines: tokens and tags are written under the keys of the file, and tags are written as ids if the file has
    /// ids. Comments are left out, because they describe the original sentence. Formats with spans: each sentence is a
    /// text of its own, with new offsets ([`Document::from_sentence`]).
    ///
    /// Fails with [`Error::NoName`] if the file has tag ids and a tag has no id, or if the format cannot write a text.
    pub fn write_sentences(
        &self,
        types: &EntityTypes,
        more: &[Sentence],
        own: bool,
    ) -> Result<Vec<WrittenFile>, Error> {
        if let Structure::Documents(documents) = &self.structure {
            return write_documents(documents, types, more, own);
        }
        let text = if own {
            self.append_sentences(types, more)?
        } else {
            self.format_sentences(types, more)?
        };
        let extension = self.format().extensions()[0];
        Ok(vec![WrittenFile { extension, bytes: text.into_bytes() }])
    }

    /// Returns the text of the file, byte for byte, followed by `more` sentences as
    /// [`Self::format_sentences`] writes them.
    fn append_sentences(&self, types: &EntityTypes, more: &[Sentence]) -> Result<String, Error> {
        let mut text = self.source.text().to_owned();
        let line_end = self.line_end();
        if !text.is_empty() && !text.ends_with('\n') {
            text.push_str(line_end);
        }
        let is_conll = self.format() == Format::CONLL;
        if is_conll && !text.ends_with("\n\n") && !text.ends_with("\n\r\n") {
            text.push_str(line_end);
        }
        text.push_str(&self.format_sentences(types, more)?);
        Ok(text)
    }

    /// Returns `sentences` as CoNLL rows or JSON lines.
    fn format_sentences(
        &self,
        types: &EntityTypes,
        sentences: &[Sentence],
    ) -> Result<String, Error> {
        let text = match &self.structure {
            Structure::Conll(_) => self.format_rows(types, sentences),
            Structure::Jsonl { keys, .. } => self.format_objects(types, sentences, keys)?,
            Structure::Documents(_) => String::new(),
        };
        Ok(text.replace('\n', self.line_end()))
    }

    fn line_end(&self) -> &'static str {
        if self.source.text().contains("\r\n") { "\r\n" } else { "\n" }
    }

    fn format_rows(&self, types: &EntityTypes, sentences: &[Sentence]) -> String {
        let frame = self.corpus.sentences().iter().find_map(|sentence| sentence.frames().first());
        let scheme = self.corpus.scheme();
        let prepare = |sentence: &Sentence| {
            let mut sentence = sentence.clone().without_comments();
            sentence.rewrite_tags(scheme);
            match frame {
                Some(frame) => sentence.with_empty_columns(frame),
                None => sentence,
            }
        };
        let sentences = sentences.iter().map(prepare).collect();
        let corpus = Corpus::new(types.clone(), scheme, sentences)
            .expect("the tags were rewritten in this scheme");
        let mut out = Vec::new();
        let bare_types = self.structure.layout().is_some_and(|layout| layout.bare_types);
        corpus.write_rows(&mut out, bare_types).expect("writing to memory does not fail");
        String::from_utf8(out).expect("sentences are UTF-8")
    }

    /// Returns the names of the tag ids if the file is a JSON lines file with ids.
    pub(crate) fn id_names(&self) -> Option<&TagNames> {
        let Structure::Jsonl { names, .. } = &self.structure else { return None };
        names.as_ref().filter(|_| self.starts_with_ids())
    }

    /// Returns true if the first sentence of a JSON lines file has tag ids.
    fn starts_with_ids(&self) -> bool {
        let mut reader = Reader::with_structure(&self.source, &self.structure);
        let mut types = EntityTypes::default();
        reader.read(&mut Record::default(), &mut types, &mut Problems::default());
        matches!(reader, Reader::Jsonl(reader) if reader.uses_ids())
    }

    fn format_objects(
        &self,
        types: &EntityTypes,
        sentences: &[Sentence],
        keys: &JsonlKeys,
    ) -> Result<String, Error> {
        let names = self.id_names();
        let scheme = self.corpus.scheme();
        let to_text = |value: serde_json::Value| value.to_string();
        let [tokens_key, tags_key] =
            [&keys.tokens, &keys.tags].map(|key| to_text(key.as_str().into()));
        let mut out = String::new();
        for sentence in sentences {
            let mut sentence = sentence.clone();
            sentence.rewrite_tags(scheme);
            let tokens: Vec<_> = sentence.tokens().iter().map(AsRef::<str>::as_ref).collect();
            let spell = |tag: &_| types.spell(*tag, scheme).to_string();
            let tags: Vec<_> = sentence.tags().iter().map(spell).collect();
            let tags = match names {
                None => serde_json::json!(tags),
                Some(names) => {
                    let id = |tag: &String| {
                        let is_own =
                            |name: &String| name == tag || tag.strip_prefix("I-") == Some(name);
                        let found = names.iter().position(is_own);
                        found.ok_or_else(|| Error::NoName { tag: tag.clone() })
                    };
                    serde_json::json!(tags.iter().map(id).collect::<Result<Vec<_>, _>>()?)
                }
            };
            let tokens = to_text(tokens.into());
            out.push_str(&format!("{{{tokens_key}: {tokens}, {tags_key}: {tags}}}\n"));
        }
        Ok(out)
    }
}

/// Writes the documents of a file, if `own` is true, and then each of `more` sentences as a document.
fn write_documents(
    documents: &Documents,
    types: &EntityTypes,
    more: &[Sentence],
    own: bool,
) -> Result<Vec<WrittenFile>, Error> {
    let own = if own { &documents.documents[..] } else { &[] };
    let new = more.iter().map(|sentence| Document::from_sentence(sentence, types));
    let all: Vec<_> = own.iter().cloned().chain(new).collect();
    let settings = WriteSettings::new(documents.scheme);
    documents.format.write(&all, &settings)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::token::Token;

    fn read(text: &str, options: &ReadOptions) -> LabelledFile {
        LabelledFile::read(Source::from_text("a", text), options).unwrap()
    }

    /// Appends a copy of the first sentence of `text`, with another first token. Returns only the appended text.
    fn append(text: &str, options: &ReadOptions) -> String {
        let file = read(text, options);
        let corpus = file.corpus();
        let more = [corpus.sentences()[0].with_tokens([(0, Token::new("Ghent").unwrap())])];
        let appended = file.append_sentences(corpus.types(), &more).unwrap();
        assert!(appended.starts_with(text));
        appended[text.len()..].to_owned()
    }

    #[test]
    fn a_sentence_without_columns_gets_those_of_the_file_filled_with_underscores() {
        let text = "1 Bonn N E-2 B-LOC x\n2 is V - O y\n\n";
        let options =
            ReadOptions { token_column: Some(2), tag_column: Some(5), ..ReadOptions::default() };
        let file = read(text, &options);
        let corpus = file.corpus();
        let tags = corpus.sentences()[0].tags().to_vec();
        let tokens = ["Ghent", "was"].map(|token| Token::new(token).unwrap()).to_vec();
        let more = [Sentence::new(tokens, tags).unwrap()];
        let appended = file.append_sentences(corpus.types(), &more).unwrap();
        assert_eq!(appended[text.len()..], *"_ Ghent _ _ B-LOC _\n_ was _ _ O _\n\n");
        assert_eq!(read(&appended, &options).corpus().sentences().len(), 2);
    }

    #[test]
    fn the_text_stays_and_new_sentences_are_written_in_its_format() {
        let usual = ReadOptions::default();
        assert_eq!(
            append("# id 1\nBonn NE B-LOC\nis V O\n", &usual),
            "\nGhent NE B-LOC\nis V O\n\n"
        );
        assert_eq!(append("Bonn\tB-LOC\r\n\r\n", &usual), "Ghent\tB-LOC\r\n\r\n");
        assert_eq!(append("Bonn B-LOC", &usual), "\n\nGhent B-LOC\n\n");
        assert_eq!(
            append("{\"words\": [\"Bonn\"], \"tags\": [\"B-LOC\"], \"id\": 3}\n", &usual),
            "{\"words\": [\"Ghent\"], \"tags\": [\"B-LOC\"]}\n"
        );
        let names = Some(vec!["O".to_owned(), "B-LOC".to_owned()]);
        let options = ReadOptions { names, ..ReadOptions::default() };
        assert_eq!(
            append("{\"tokens\": [\"Bonn\"], \"ner_tags\": [1]}", &options),
            "\n{\"tokens\": [\"Ghent\"], \"ner_tags\": [1]}\n"
        );
    }

    #[test]
    fn open_finds_the_names_of_tag_ids_beside_the_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("train.jsonl");
        std::fs::write(&path, "{\"tokens\": [\"Bonn\"], \"ner_tags\": [1]}\n").unwrap();
        assert!(matches!(Corpus::open(&path), Err(Error::Data { .. })));
        std::fs::write(folder.path().join("train.jsonl.names"), "O\nB-LOC\n").unwrap();
        let corpus = Corpus::open(&path).unwrap();
        assert_eq!(corpus.types().name(corpus.types().sorted_by_name()[0]), "LOC");
    }
}
