//! Aligned vectors of the words in mentions.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::fs::File;
use std::io::{self, BufReader, Read, Seek};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::ScopedJoinHandle;
use std::time::Duration;

use flate2::read::MultiGzDecoder;
use melm_nn::params::TABLE;
use melm_text::{Corpus, Error as TextError, WordVectors};

use crate::Error;
use crate::files::Fingerprint;
use crate::models::Pretrained;

/// The first bytes of a gzip file.
const GZIP: [u8; 2] = [0x1f, 0x8b];
/// The time between two progress reports.
const PROGRESS_INTERVAL: Duration = Duration::from_millis(20);
/// The number of bytes that are decompressed at a time.
const BUFFER: usize = 1 << 17;

/// The vectors of the words in mentions, by language. All languages share one vector space.
#[derive(Debug, Clone, PartialEq)]
pub struct MentionVectors {
    by_language: BTreeMap<String, WordVectors>,
}

impl MentionVectors {
    /// Reads the vector files of all languages of a corpus in parallel, plain or gzip. Only the vectors of words that
    /// occur in mentions are stored. `files` contains pairs of a language code and a path. `on_progress` is called
    /// with the number of bytes read and their total.
    ///
    /// Fails if a language has no file, if dimensions differ, or if a file has no vector for any mention word of its
    /// language.
    pub fn read(
        corpus: &Corpus,
        files: &[(String, PathBuf)],
        on_progress: &mut dyn FnMut(u64, u64),
    ) -> Result<Self, Error> {
        let path_of = |code: &str| {
            let found = files.iter().find(|(of, _)| of == code).map(|(_, path)| path);
            found.ok_or_else(|| Error::NoVectorsOf { language: code.to_owned() })
        };
        let codes = corpus.languages().iter().map(|part| path_of(&part.code));
        let paths: Vec<&PathBuf> = codes.collect::<Result<_, _>>()?;
        let by_language = read_files(&paths, &words_of_mentions(corpus), on_progress)?;
        let first = by_language.first().map_or(0, WordVectors::dimension);
        for ((vectors, path), part) in by_language.iter().zip(&paths).zip(corpus.languages()) {
            if vectors.dimension() != first {
                return Err(Error::VectorDimensions {
                    path: (*path).clone(),
                    found: vectors.dimension(),
                    other: paths[0].clone(),
                    expected: first,
                });
            }
            if vectors.is_empty() {
                let (path, language) = ((*path).clone(), part.code.to_string());
                return Err(Error::ForeignVectors { path, language });
            }
        }
        Ok(Self { by_language: codes_of(corpus).zip(by_language).collect() })
    }

    /// Computes the vector of each mention word as the mean embedding of its pieces in the masked language model.
    /// This needs no files. All languages share the embedding space of the model.
    pub fn from_piece_embeddings(corpus: &Corpus, pretrained: &Pretrained) -> Result<Self, Error> {
        let (tokenizer, checkpoint) = (pretrained.tokenizer(), pretrained.checkpoint());
        let config = checkpoint.config();
        let (n_rows, width) = (config.vocab_size, config.hidden_size);
        let mut table = vec![0.0; n_rows * width];
        checkpoint.read_into(TABLE, &[n_rows, width], &mut table)?;
        let unk = tokenizer.specials().unk;
        let mut by_language = Vec::new();
        for words in words_of_mentions(corpus) {
            let mut pairs = Vec::new();
            for word in words {
                let encoded = tokenizer.encode(&[word.as_str()])?;
                let range = encoded.tokens[0].clone();
                let pieces = &encoded.pieces[range.start as usize..range.end as usize];
                let known: Vec<_> = pieces.iter().filter(|piece| **piece != unk).collect();
                if known.is_empty() {
                    continue;
                }
                let mut mean = vec![0.0; width];
                for piece in &known {
                    let row = &table[**piece as usize * width..][..width];
                    mean.iter_mut().zip(row).for_each(|(m, v)| *m += v / known.len() as f32);
                }
                pairs.push((word, mean));
            }
            by_language.push(WordVectors::new(width, pairs));
        }
        Ok(Self { by_language: codes_of(corpus).zip(by_language).collect() })
    }

    /// Returns the vector of a token in a language. A token that has no vector as written is looked up in lower case,
    /// because the words of MUSE are in lower case.
    pub fn get(&self, language: &str, token: &str) -> Option<&[f32]> {
        let vectors = self.by_language.get(language)?;
        vectors.get(token).or_else(|| vectors.get(&token.to_lowercase()))
    }

    /// The dimension of the vectors.
    pub(crate) fn dimension(&self) -> usize {
        self.by_language.values().next().map_or(0, WordVectors::dimension)
    }

    /// The vectors of each language, by language code.
    pub fn by_language(&self) -> &BTreeMap<String, WordVectors> {
        &self.by_language
    }

    /// Adds the vectors of all words in the corpus's mentions to a fingerprint.
    pub fn add_to(&self, corpus: &Corpus, fingerprint: &mut Fingerprint) {
        for (code, words) in codes_of(corpus).zip(words_of_mentions(corpus)) {
            for word in &words {
                let vector = self.by_language.get(&code).and_then(|vectors| vectors.get(word));
                let bytes: Vec<u8> =
                    vector.unwrap_or_default().iter().flat_map(|v| v.to_le_bytes()).collect();
                fingerprint.add(word.as_bytes());
                fingerprint.add(&bytes);
            }
        }
    }
}

fn codes_of(corpus: &Corpus) -> impl Iterator<Item = String> {
    corpus.languages().iter().map(|part| part.code.to_string())
}

/// The tokens of a corpus's mentions by language, as written and in lower case.
fn words_of_mentions(corpus: &Corpus) -> Vec<BTreeSet<String>> {
    let mut words = vec![BTreeSet::new(); corpus.languages().len()];
    for sentence in corpus.sentences() {
        let Some(language) = sentence.language() else { continue };
        for token in sentence.mentions().flat_map(|mention| &sentence.tokens()[mention.tokens]) {
            words[language.index()].insert(token.to_string());
            words[language.index()].insert(token.as_str().to_lowercase());
        }
    }
    words
}

/// Reads the vectors of `words` from files, each in its own thread.
fn read_files(
    paths: &[&PathBuf],
    words: &[BTreeSet<String>],
    on_progress: &mut dyn FnMut(u64, u64),
) -> Result<Vec<WordVectors>, TextError> {
    let (done, total) = (AtomicU64::new(0), AtomicU64::new(0));
    std::thread::scope(|scope| {
        let readers = paths.iter().zip(words).map(|(path, words)| {
            let (done, total) = (&done, &total);
            scope.spawn(move || read_file(path, words, done, total))
        });
        let readers: Vec<_> = readers.collect();
        while !readers.iter().all(ScopedJoinHandle::is_finished) {
            on_progress(done.load(Ordering::Relaxed), total.load(Ordering::Relaxed));
            std::thread::sleep(PROGRESS_INTERVAL);
        }
        let join = |reader: ScopedJoinHandle<'_, _>| {
            reader.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        };
        readers.into_iter().map(join).collect()
    })
}

fn read_file(
    path: &Path,
    words: &BTreeSet<String>,
    done: &AtomicU64,
    total: &AtomicU64,
) -> Result<WordVectors, TextError> {
    let name = path.display().to_string();
    let failed = |source| TextError::Read { name: name.clone(), source };
    let needed: HashSet<&str> = words.iter().map(String::as_str).collect();
    let mut file = File::open(path).map_err(failed)?;
    total.fetch_add(file.metadata().map_err(failed)?.len(), Ordering::Relaxed);
    let mut start = Vec::new();
    (&mut file).take(GZIP.len() as u64).read_to_end(&mut start).map_err(failed)?;
    // A pipe cannot be rewound. For a pipe, the bytes that were already read are put in front of the rest.
    let head = if file.rewind().is_ok() { &[][..] } else { &start };
    let counted = head.chain(Counted { file, done });
    if start == GZIP {
        let decoder = MultiGzDecoder::new(BufReader::with_capacity(BUFFER, counted));
        WordVectors::read(&name, decoder, &needed)
    } else {
        WordVectors::read(&name, counted, &needed)
    }
}

/// A file that counts the bytes read from it.
struct Counted<'a> {
    file: File,
    done: &'a AtomicU64,
}

impl Read for Counted<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let n = self.file.read(buffer)?;
        self.done.fetch_add(n as u64, Ordering::Relaxed);
        Ok(n)
    }
}
