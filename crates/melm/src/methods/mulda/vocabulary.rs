//! Converts linearized sentences to the pieces of an mBART, and parses its output.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use melm_nn::seq2seq::GenerationConfig;
use melm_text::{Corpus, Language, Scheme, Sentence, Tag, Token};

use crate::Error;
use crate::markers::Markers;
use crate::methods::free_generation::{RejectReason, checked_sentence};
use crate::pieces::{PieceKind, PieceKinds, Tokenizer, is_clean};

/// Where the language piece stands in a sequence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LanguagePosition {
    /// mBART-50: language, text, end. The first input of the decoder is the end piece, and its first output is forced
    /// to be the language piece.
    Before,
    /// mBART: text, end, language. The first input of the decoder is the language piece.
    After,
}

/// A language piece that mBART-50 has and mBART does not.
const ONLY_IN_50: &str = "af_ZA";

/// The vocabulary of a model: the pieces of a tokenizer, plus a marker for each tag.
pub(super) struct Vocabulary {
    tokenizer: Tokenizer,
    kinds: PieceKinds,
    by_tag: BTreeMap<Tag, u32>,
    by_marker: HashMap<u32, Tag>,
    layout: LanguagePosition,
    languages: Languages,
    scheme: Scheme,
    /// The pieces that a model without pretraining has rows for, in the order of the rows. Such a model could not
    /// learn to write any other piece. `None` for a pretrained model, which has a row for every piece.
    rows: Option<Vec<u32>>,
}

/// The language pieces.
struct Languages {
    /// The language codes of the corpus. Empty if it has no languages.
    codes: Vec<Box<str>>,
    /// One piece for each code, or a single piece if there are no codes.
    pieces: Vec<u32>,
}

/// A linearized sentence as rows of the model, with a marker before each entity token.
pub(super) struct LinearizedSentence {
    rows: Vec<u32>,
    /// For each token, the index of its first row, which is its marker if it has one.
    starts: Vec<usize>,
    /// The index of the sentence's language, or 0 if the corpus has no languages.
    pub(super) language: usize,
}

impl LinearizedSentence {
    pub(super) fn n_tokens(&self) -> usize {
        self.starts.len()
    }

    /// The number of rows including the language and the end.
    pub(super) fn n_rows(&self) -> usize {
        self.rows.len() + 2
    }
}

impl Vocabulary {
    /// Creates the vocabulary of a pretrained model: its pieces, followed by the markers. `model` is its name for
    /// error messages. `language` is the language of a corpus without languages. The languages of other corpora are
    /// found by code: `de` matches `de_DE`.
    ///
    /// Fails if the model has no piece for a language.
    pub(super) fn from_pretrained(
        mut tokenizer: Tokenizer,
        corpus: &Corpus,
        model: &str,
        language: &str,
    ) -> Result<Self, Error> {
        let layout = if tokenizer.id(ONLY_IN_50).is_some() {
            LanguagePosition::Before
        } else {
            LanguagePosition::After
        };
        let find = |code: &str| {
            let is_own = |text: &str| text == code || text.starts_with(&format!("{code}_"));
            let mut added = tokenizer.added().iter().copied();
            let unknown =
                || Error::NoLanguage { model: model.to_owned(), language: code.to_owned() };
            added.find(|id| is_own(tokenizer.piece(*id))).ok_or_else(unknown)
        };
        let codes = codes(corpus);
        let pieces = match &codes[..] {
            [] => vec![find(language)?],
            all => all.iter().map(|code| find(code)).collect::<Result<_, _>>()?,
        };
        let markers = Markers::from_corpora(&[corpus], &mut tokenizer)?;
        Self::new(tokenizer, corpus, &markers, layout, Languages { codes, pieces })
    }

    /// Creates the vocabulary of a model without pretraining: the pieces of a tokenizer that occur in gold.
    pub(super) fn from_corpus(
        mut tokenizer: Tokenizer,
        corpus: &Corpus,
        language: &str,
    ) -> Result<Self, Error> {
        let codes = codes(corpus);
        let names: Vec<_> = match &codes[..] {
            [] => vec![format!("[{language}]")],
            all => all.iter().map(|code| format!("[{code}]")).collect(),
        };
        let languages = Languages { pieces: tokenizer.add_markers(&names)?, codes };
        let markers = Markers::from_corpora(&[corpus], &mut tokenizer)?;
        let mut pieces =
            Self::new(tokenizer, corpus, &markers, LanguagePosition::Before, languages)?;
        let specials = pieces.tokenizer.specials();
        let mut used: BTreeSet<_> =
            [specials.bos, specials.pad, specials.eos, specials.unk, specials.mask].into();
        used.extend(&pieces.languages.pieces);
        used.extend(pieces.by_tag.values());
        for sentence in corpus.sentences() {
            used.extend(pieces.tokenizer.encode(sentence.tokens())?.pieces);
        }
        pieces.rows = Some(used.into_iter().collect());
        Ok(pieces)
    }

    fn new(
        tokenizer: Tokenizer,
        corpus: &Corpus,
        markers: &Markers,
        layout: LanguagePosition,
        languages: Languages,
    ) -> Result<Self, Error> {
        let by_tag = markers.by_tag(corpus)?;
        let by_marker = by_tag.iter().map(|(tag, id)| (*id, *tag)).collect();
        let (kinds, scheme) = (PieceKinds::new(&tokenizer), corpus.scheme());
        let rows = None;
        Ok(Self { tokenizer, kinds, by_tag, by_marker, layout, languages, scheme, rows })
    }

    /// The number of rows of the model's embedding table.
    pub(super) fn n_rows(&self) -> usize {
        self.rows.as_ref().map_or(self.tokenizer.n_pieces(), Vec::len)
    }

    /// The row of a piece, or the row of `<unk>` if the piece has no row.
    fn row(&self, piece: u32) -> u32 {
        let Some(rows) = &self.rows else { return piece };
        let at = |piece| rows.binary_search(&piece).ok().and_then(|row| u32::try_from(row).ok());
        let unk = self.tokenizer.specials().unk;
        at(piece).or_else(|| at(unk)).expect("`<unk>` has a row")
    }

    fn piece(&self, row: u32) -> u32 {
        self.rows.as_ref().map_or(row, |rows| rows[row as usize])
    }

    /// The rows of the padding piece and of the end piece.
    pub(super) fn padding_and_end(&self) -> (u32, u32) {
        let specials = self.tokenizer.specials();
        (self.row(specials.pad), self.row(specials.eos))
    }

    /// Linearizes a sentence, with a marker before each entity token. Tags without a marker, which can occur in a dev
    /// set, are left out.
    pub(super) fn linearize(
        &self,
        corpus: &Corpus,
        sentence: &Sentence,
    ) -> Result<LinearizedSentence, Error> {
        let encoded = self.tokenizer.encode(sentence.tokens())?;
        let code = sentence.language().map(|own| &corpus.languages()[own.index()].code);
        let language =
            code.and_then(|code| self.languages.codes.iter().position(|own| own == code));
        let language = language.unwrap_or_default();
        let mut body = LinearizedSentence { rows: Vec::new(), starts: Vec::new(), language };
        for (range, tag) in encoded.tokens.iter().zip(sentence.tags()) {
            body.starts.push(body.rows.len());
            let marker = self.by_tag.get(tag).copied();
            let own = &encoded.pieces[range.start as usize..range.end as usize];
            let pieces = marker.into_iter().chain(own.iter().copied());
            body.rows.extend(pieces.map(|piece| self.row(piece)));
        }
        Ok(body)
    }

    /// The rows of a language piece and of the end piece.
    fn language_and_end(&self, language: usize) -> (u32, u32) {
        (self.row(self.languages.pieces[language]), self.padding_and_end().1)
    }

    fn with_language(&self, language: usize, rows: impl Iterator<Item = u32>) -> Vec<u32> {
        let (language, end) = self.language_and_end(language);
        match self.layout {
            LanguagePosition::Before => [language].into_iter().chain(rows).chain([end]).collect(),
            LanguagePosition::After => rows.chain([end, language]).collect(),
        }
    }

    /// The input of the encoder: the first `n_tokens` tokens, and one mask in place of the rest.
    pub(super) fn source(&self, body: &LinearizedSentence, n_tokens: usize) -> Vec<u32> {
        let end = body.starts.get(n_tokens).copied().unwrap_or(body.rows.len());
        let mask = self.row(self.tokenizer.specials().mask);
        self.with_language(body.language, body.rows[..end].iter().copied().chain([mask]))
    }

    /// The output that the decoder learns to write: the whole sentence.
    pub(super) fn target(&self, body: &LinearizedSentence) -> Vec<u32> {
        self.with_language(body.language, body.rows.iter().copied())
    }

    /// The settings of the decoder for a language, with at most `max_length` pieces.
    pub(super) fn generation_config(&self, language: usize, max_length: usize) -> GenerationConfig {
        let (language, end) = self.language_and_end(language);
        let (start, forced_first) = match self.layout {
            LanguagePosition::Before => (end, Some(language)),
            LanguagePosition::After => (language, None),
        };
        GenerationConfig { start, forced_first, forced_last: None, max_length }
    }

    /// Parses the rows that the decoder wrote in a language.
    pub(super) fn parse(&self, language: usize, written: &[u32]) -> Result<Sentence, RejectReason> {
        let pieces: Vec<_> = written.iter().map(|row| self.piece(*row)).collect();
        let end = self.tokenizer.specials().eos;
        let Some(body) = pieces.strip_suffix(&[end]) else { return Err(RejectReason::Unfinished) };
        let body = match self.layout {
            LanguagePosition::Before => {
                body.strip_prefix(&[self.languages.pieces[language]]).unwrap_or(body)
            }
            LanguagePosition::After => body,
        };
        let words = self.group_pieces(body)?;
        let tags = words.iter().map(|(tag, _)| *tag).collect();
        let tokens =
            words.iter().map(|(_, pieces)| self.spell(pieces)).collect::<Result<_, _>>()?;
        let sentence = checked_sentence(tokens, tags, self.scheme)?;
        Ok(match &self.languages.codes[..] {
            [] => sentence,
            _ => sentence.with_language(Language::from_index(language)),
        })
    }

    /// Groups pieces into tokens, each with the tag of the marker before it.
    fn group_pieces(&self, body: &[u32]) -> Result<Vec<(Tag, Vec<u32>)>, RejectReason> {
        let mut words: Vec<(Tag, Vec<u32>)> = Vec::new();
        for piece in body {
            let needs_token = words.last().is_some_and(|(_, pieces)| pieces.is_empty());
            match (self.by_marker.get(piece), self.kinds.kind(*piece)) {
                (Some(_), _) if needs_token => return Err(RejectReason::TagWithoutToken),
                (Some(tag), _) => words.push((*tag, Vec::new())),
                (None, _) if *piece == self.kinds.unk => return Err(RejectReason::UnknownToken),
                (None, PieceKind::Unfit) => return Err(RejectReason::NotAToken),
                (None, PieceKind::Initial | PieceKind::Bare) => {
                    if !needs_token {
                        words.push((Tag::Outside, Vec::new()));
                    }
                    words.last_mut().expect("a token was started above").1.push(*piece);
                }
                (None, PieceKind::Inner | PieceKind::Partial) => match words.last_mut() {
                    Some((_, pieces)) if !pieces.is_empty() => pieces.push(*piece),
                    _ => return Err(RejectReason::NotAToken),
                },
            }
        }
        if words.last().is_some_and(|(_, pieces)| pieces.is_empty()) {
            return Err(RejectReason::TagWithoutToken);
        }
        Ok(words)
    }

    fn spell(&self, pieces: &[u32]) -> Result<Token, RejectReason> {
        let text = self.tokenizer.decode(pieces);
        let token = is_clean(&text).then(|| Token::new(&text).ok()).flatten();
        token.ok_or(RejectReason::NotAToken)
    }
}

/// The language codes of a corpus.
fn codes(corpus: &Corpus) -> Vec<Box<str>> {
    corpus.languages().iter().map(|part| part.code.clone()).collect()
}
