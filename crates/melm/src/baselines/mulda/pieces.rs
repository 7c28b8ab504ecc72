//! Linearized sentences as an mBART reads and writes them, and back.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use melm_nn::seq2seq::GenerationConfig;
use melm_text::{Corpus, Language, Scheme, Sentence, Tag, Token};

use crate::Error;
use crate::free_generation::{RejectReason, checked_sentence};
use crate::markers::Markers;
use crate::pieces::{PieceKind, PieceKinds, Tokenizer, is_clean};

/// Where the language stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LanguagePosition {
    /// mBART-50: language, text, end; the decoder starts from the end and is told the language.
    Before,
    /// mBART: text, end, language; the decoder starts from the language.
    After,
}

/// A language that mBART-50 has and mBART does not.
const ONLY_IN_50: &str = "af_ZA";

/// The pieces of a model: a tokenizer's, with a marker for each tag.
pub(super) struct Pieces {
    tokenizer: Tokenizer,
    kinds: PieceKinds,
    by_tag: BTreeMap<Tag, u32>,
    by_marker: HashMap<u32, Tag>,
    layout: LanguagePosition,
    languages: Languages,
    scheme: Scheme,
    /// The tokenizer's pieces that a model without pretraining has rows for, in the order of its rows; it could never
    /// write the others. A pretrained one has them all.
    rows: Option<Vec<u32>>,
}

/// The pieces of the languages.
struct Languages {
    /// The codes of the corpus; none if it has no languages.
    codes: Vec<Box<str>>,
    /// One piece for each of them, or the only one.
    pieces: Vec<u32>,
}

/// A linearized sentence: a marker before each entity token, in rows of the model.
pub(super) struct LinearizedSentence {
    rows: Vec<u32>,
    /// Where each token begins, its marker included.
    starts: Vec<usize>,
    /// Its language among those of the corpus; 0 if there are none.
    pub(super) language: usize,
}

impl LinearizedSentence {
    pub(super) fn n_tokens(&self) -> usize {
        self.starts.len()
    }

    /// Rows with what stands around them.
    pub(super) fn n_rows(&self) -> usize {
        self.rows.len() + 2
    }
}

impl Pieces {
    /// A pretrained model's own pieces, with markers behind them. `model` is for messages; `language` is that of a corpus
    /// without languages. Those of others go by their codes: `de` is `de_DE`.
    pub(super) fn pretrained(
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

    /// Those of a tokenizer's pieces that gold is made of, for a model that has learnt nothing yet.
    pub(super) fn used(
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

    /// The rows that the model's table needs.
    pub(super) fn n_rows(&self) -> usize {
        self.rows.as_ref().map_or(self.tokenizer.n_pieces(), Vec::len)
    }

    /// The row of a piece; of `<unk>` if it has none.
    fn row(&self, piece: u32) -> u32 {
        let Some(rows) = &self.rows else { return piece };
        let at = |piece| rows.binary_search(&piece).ok().and_then(|row| u32::try_from(row).ok());
        let unk = self.tokenizer.specials().unk;
        at(piece).or_else(|| at(unk)).expect("`<unk>` has a row")
    }

    fn piece(&self, row: u32) -> u32 {
        self.rows.as_ref().map_or(row, |rows| rows[row as usize])
    }

    /// The rows of padding and of a sentence's end.
    pub(super) fn padding_and_end(&self) -> (u32, u32) {
        let specials = self.tokenizer.specials();
        (self.row(specials.pad), self.row(specials.eos))
    }

    /// A sentence of a corpus with a marker before each entity token; tags without a marker (a dev set's) are left out.
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

    /// The rows of a language and of the end.
    fn around(&self, language: usize) -> (u32, u32) {
        (self.row(self.languages.pieces[language]), self.padding_and_end().1)
    }

    fn framed(&self, language: usize, rows: impl Iterator<Item = u32>) -> Vec<u32> {
        let (language, end) = self.around(language);
        match self.layout {
            LanguagePosition::Before => [language].into_iter().chain(rows).chain([end]).collect(),
            LanguagePosition::After => rows.chain([end, language]).collect(),
        }
    }

    /// What the encoder reads: the first tokens, and one mask for all that follows.
    pub(super) fn source(&self, body: &LinearizedSentence, n_tokens: usize) -> Vec<u32> {
        let end = body.starts.get(n_tokens).copied().unwrap_or(body.rows.len());
        let mask = self.row(self.tokenizer.specials().mask);
        self.framed(body.language, body.rows[..end].iter().copied().chain([mask]))
    }

    /// What the decoder is to write: the whole sentence.
    pub(super) fn target(&self, body: &LinearizedSentence) -> Vec<u32> {
        self.framed(body.language, body.rows.iter().copied())
    }

    /// How the decoder begins and ends in a language, `longest` pieces in all.
    pub(super) fn frame(&self, language: usize, longest: usize) -> GenerationConfig {
        let (language, end) = self.around(language);
        let (start, forced_first) = match self.layout {
            LanguagePosition::Before => (end, Some(language)),
            LanguagePosition::After => (language, None),
        };
        GenerationConfig { start, forced_first, forced_last: None, longest }
    }

    /// The sentence that the decoder wrote in a language.
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
        let mut words: Vec<(Tag, Vec<u32>)> = Vec::new();
        for piece in body {
            let is_waiting = words.last().is_some_and(|(_, pieces)| pieces.is_empty());
            match (self.by_marker.get(piece), self.kinds.kind(*piece)) {
                (Some(_), _) if is_waiting => return Err(RejectReason::TagWithoutToken),
                (Some(tag), _) => words.push((*tag, Vec::new())),
                (None, _) if *piece == self.kinds.unk => return Err(RejectReason::UnknownToken),
                (None, PieceKind::Unfit) => return Err(RejectReason::NotAToken),
                (None, PieceKind::Initial | PieceKind::Bare) => {
                    if !is_waiting {
                        words.push((Tag::Outside, Vec::new()));
                    }
                    words.last_mut().expect("one was begun").1.push(*piece);
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
        let tags = words.iter().map(|(tag, _)| *tag).collect();
        let tokens =
            words.iter().map(|(_, pieces)| self.spell(pieces)).collect::<Result<_, _>>()?;
        let sentence = checked_sentence(tokens, tags, self.scheme)?;
        Ok(match &self.languages.codes[..] {
            [] => sentence,
            _ => sentence.with_language(Language::from_index(language)),
        })
    }

    fn spell(&self, pieces: &[u32]) -> Result<Token, RejectReason> {
        let text = self.tokenizer.decode(pieces);
        let token = is_clean(&text).then(|| Token::new(&text).ok()).flatten();
        token.ok_or(RejectReason::NotAToken)
    }
}

/// The codes of a corpus's languages.
fn codes(corpus: &Corpus) -> Vec<Box<str>> {
    corpus.languages().iter().map(|part| part.code.clone()).collect()
}
