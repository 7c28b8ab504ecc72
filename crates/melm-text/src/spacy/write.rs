//! Writes a `DocBin`.

use std::collections::BTreeSet;
use std::io::Write;

use flate2::Compression;
use flate2::write::ZlibEncoder;

use super::hash::string_id;
use super::msgpack::Packer;
use super::{ENT_IOB, ENT_TYPE, ORTH, SENT_START, SpacyDoc, iob, sent_start};

/// The attributes of a token, in spaCy's order. The last one is written only if a document has sentences.
const ATTRIBUTES: [u64; 4] = [ORTH, ENT_IOB, ENT_TYPE, SENT_START];

/// Collects documents and writes them as one `DocBin`, as `DocBin(attrs=["ENT_IOB", "ENT_TYPE"])` of spaCy does. If a
/// document has sentences, `SENT_START` is written too.
#[derive(Debug, Default)]
pub struct DocBinWriter {
    /// The cells of each token, in the order of `ATTRIBUTES`.
    rows: Vec<[u64; ATTRIBUTES.len()]>,
    /// True if a document has sentences.
    has_sentences: bool,
    spaces: Vec<u8>,
    lengths: Vec<u8>,
    unknown_spaces: Vec<bool>,
    strings: BTreeSet<String>,
}

impl DocBinWriter {
    /// Adds a document. Text between tokens becomes tokens of its own, except for single spaces, so that `Doc.text` in
    /// spaCy is the text of the document.
    pub fn add(&mut self, document: &SpacyDoc) {
        let has_sentences = document.sentences.is_some();
        self.has_sentences |= has_sentences;
        let sentences = document.sentences.iter().flatten().map(|sentence| sentence.start);
        // Text before the first token belongs to the first sentence.
        let mut starts = sentences.filter(|&start| start > 0).peekable();
        let mut pieces = Pieces { writer: self, n: 0, has_sentences };
        let mut end = 0;
        let mut mentions = document.mentions.iter().peekable();
        for (at, token) in document.tokens.iter().enumerate() {
            while mentions.next_if(|mention| mention.tokens.end <= at).is_some() {}
            let mention = mentions.peek().filter(|mention| mention.tokens.start <= at);
            let gap = &document.text[end..token.start];
            // A gap inside a mention continues the mention.
            let before = mention.filter(|mention| mention.tokens.start < at);
            pieces.add_gap(gap, before.map(|mention| &*mention.entity_type));
            let tag = mention.map(|mention| {
                let is_first = mention.tokens.start == at;
                (if is_first { iob::BEGIN } else { iob::INSIDE }, &*mention.entity_type)
            });
            let (tag, entity_type) = tag.unwrap_or((iob::OUTSIDE, ""));
            let is_start = starts.next_if_eq(&at).is_some();
            pieces.add(&document.text[token.clone()], tag, entity_type, is_start);
            end = token.end;
        }
        pieces.add_gap(&document.text[end..], None);
        let n = i32::try_from(pieces.n).expect("a document has fewer than 2^31 tokens");
        self.lengths.extend_from_slice(&n.to_le_bytes());
        self.unknown_spaces.push(!document.has_spaces);
    }

    /// Returns the bytes of the file.
    pub fn finish(self) -> Vec<u8> {
        let n_documents = self.unknown_spaces.len();
        let mut packer = Packer::default();
        packer.small_map(8);
        packer.text("version");
        packer.text("0.1");
        packer.text("attrs");
        let n_attributes = ATTRIBUTES.len() - usize::from(!self.has_sentences);
        packer.array(n_attributes);
        for &attribute in &ATTRIBUTES[..n_attributes] {
            packer.unsigned(attribute);
        }
        let cells = self.rows.iter().flat_map(|row| &row[..n_attributes]);
        let tokens: Vec<u8> = cells.flat_map(|cell| cell.to_le_bytes()).collect();
        for (name, part) in
            [("tokens", &tokens), ("spaces", &self.spaces), ("lengths", &self.lengths)]
        {
            packer.text(name);
            packer.bytes(part);
        }
        packer.text("strings");
        packer.array(self.strings.len());
        self.strings.iter().for_each(|string| packer.text(string));
        packer.text("cats");
        packer.array(n_documents);
        (0..n_documents).for_each(|_| packer.small_map(0));
        packer.text("flags");
        packer.array(n_documents);
        for is_unknown in self.unknown_spaces {
            packer.small_map(1);
            packer.text("has_unknown_spaces");
            packer.boolean(is_unknown);
        }
        let mut encoder = ZlibEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(&packer.finish()).expect("writing to memory does not fail");
        encoder.finish().expect("writing to memory does not fail")
    }
}

/// The tokens of one document.
struct Pieces<'w> {
    writer: &'w mut DocBinWriter,
    /// The number of tokens written so far.
    n: usize,
    /// True if the document has sentences.
    has_sentences: bool,
}

impl Pieces<'_> {
    /// Adds a token. `is_start` is true if it starts a sentence; the first token of a document does so in any case.
    fn add(&mut self, text: &str, tag: u64, entity_type: &str, is_start: bool) {
        let start = match (is_start || self.n == 0, self.has_sentences) {
            (true, _) => sent_start::START,
            (false, true) => sent_start::INNER,
            (false, false) => sent_start::MISSING,
        };
        self.writer.rows.push([string_id(text), tag, string_id(entity_type), start]);
        self.writer.spaces.push(0);
        for string in [text, entity_type] {
            if !self.writer.strings.contains(string) {
                self.writer.strings.insert(string.to_owned());
            }
        }
        self.n += 1;
    }

    /// Adds the text between two tokens. A first space belongs to the token before; the rest is a token.
    fn add_gap(&mut self, gap: &str, mention: Option<&str>) {
        let mut rest = gap;
        if let (Some(after), 1..) = (gap.strip_prefix(' '), self.n) {
            *self.writer.spaces.last_mut().expect("a token was added") = 1;
            rest = after;
        }
        if !rest.is_empty() {
            let (tag, entity_type) = mention.map_or((iob::OUTSIDE, ""), |name| (iob::INSIDE, name));
            self.add(rest, tag, entity_type, false);
        }
    }
}
