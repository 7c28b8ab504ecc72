//! Reads a `DocBin`. The memory is bounded by the size of the file, whatever the file claims.

use std::collections::HashMap;
use std::io::{ErrorKind, Read};
use std::ops::Range;
use std::sync::Arc;

use flate2::bufread::ZlibDecoder;

use super::fault::DocBinFault;
use super::hash::{string_id, symbol_name};
use super::msgpack::{Malformed, Unpacker};
use super::{ENT_IOB, ENT_TYPE, NORM, ORTH, SENT_START, SpacyDoc, SpacyMention, iob, sent_start};
use crate::Limits;
use crate::bounded::read_beyond;

/// The largest size of the data of a file.
const MAX_DATA: usize = 1 << 30;
/// A file may always have this much data, however small it is.
const SMALL_DATA: usize = 64 << 20;
/// The data of a file may be this many times larger than the file. spaCy's own files are below 50.
const MAX_RATIO: usize = 200;
/// The largest size of all texts together. One string can be the text of many tokens.
const MAX_TEXT: usize = 256 << 20;

/// The documents of a file, and counts of what is not read.
#[derive(Debug, Default)]
pub struct DocBin {
    /// The documents.
    pub documents: Vec<SpacyDoc>,
    /// The number of tokens without annotation (`ENT_IOB` is 0). They are read as tokens outside of mentions.
    pub n_missing: usize,
    /// The number of documents with span groups, which are not read.
    pub n_span_groups: usize,
    /// The number of documents with user data, which is not read.
    pub n_user_data: usize,
    /// The number of documents with categories, which are not read.
    pub n_categories: usize,
    /// The ids of attributes that have values but are not read, such as lemmas.
    pub other_attributes: Vec<u64>,
}

/// The parts of the data.
#[derive(Debug, Default)]
struct Parts<'b> {
    attributes: Option<Vec<u64>>,
    tokens: Option<&'b [u8]>,
    spaces: Option<&'b [u8]>,
    lengths: Option<&'b [u8]>,
    /// The strings, not yet read.
    strings: Option<Unpacker<'b>>,
    /// For each document, whether its spaces are unknown.
    unknown_spaces: Vec<bool>,
    n_span_groups: usize,
    n_user_data: usize,
    n_categories: usize,
}

/// Reads the documents of a file. Fails if the bytes are not a `DocBin` with mentions, or if they contain more than the
/// limits allow.
pub fn read_doc_bin(bytes: &[u8]) -> Result<DocBin, DocBinFault> {
    read_doc_bin_within(bytes, Limits::default())
}

/// Reads the documents of a file as [`read_doc_bin`] does, with other limits.
pub fn read_doc_bin_within(bytes: &[u8], limits: Limits) -> Result<DocBin, DocBinFault> {
    let [small, ratio, largest] = [SMALL_DATA, MAX_RATIO, MAX_DATA].map(|n| limits.scale_size(n));
    let limit = bytes.len().saturating_mul(ratio).clamp(small, largest);
    let data = inflate(bytes, limit)?;
    let parts = Parts::read(&data).map_err(|Malformed(why)| DocBinFault::NotDocBin(why.into()))?;
    let table = Table::new(&parts)?;
    let mut strings = table.find_strings(&parts)?;
    table.check_size(&strings, limits.scale_size(MAX_TEXT))?;
    let mut bin = DocBin {
        n_span_groups: parts.n_span_groups,
        n_user_data: parts.n_user_data,
        n_categories: parts.n_categories,
        other_attributes: table.other_attributes(),
        ..DocBin::default()
    };
    for (at, rows) in table.documents.iter().enumerate() {
        let is_unknown = parts.unknown_spaces.get(at).copied().unwrap_or(false);
        let (document, n_missing) =
            table.read_document(at + 1, rows.clone(), is_unknown, &mut strings)?;
        bin.n_missing += n_missing;
        bin.documents.push(document);
    }
    Ok(bin)
}

/// Decompresses the data of a file. Fails if it is larger than `limit`.
fn inflate(bytes: &[u8], limit: usize) -> Result<Vec<u8>, DocBinFault> {
    let mut decoder = ZlibDecoder::new(bytes);
    let (data, result) = read_beyond(decoder.by_ref(), limit as u64);
    if data.len() > limit {
        let limit = format!("{} MiB of data in {} bytes", limit >> 20, bytes.len());
        return Err(DocBinFault::TooLarge { limit });
    }
    let is_whole = decoder.total_in() == bytes.len() as u64;
    let damaged = |why: &str| Err(DocBinFault::Damaged(why.to_owned()));
    match result {
        Err(error) if error.kind() == ErrorKind::OutOfMemory => {
            let limit = format!("{} MiB, which is all the memory there is", data.len() >> 20);
            Err(DocBinFault::TooLarge { limit })
        }
        Ok(()) if is_whole => Ok(data),
        Ok(()) => damaged("other bytes follow its end"),
        Err(_) if is_whole => damaged("it ends too early"),
        Err(_) if data.is_empty() => {
            Err(DocBinFault::NotDocBin("it is not compressed by zlib".into()))
        }
        Err(_) => damaged("it cannot be decompressed"),
    }
}

impl<'b> Parts<'b> {
    fn read(data: &'b [u8]) -> Result<Self, Malformed> {
        let mut unpacker = Unpacker::new(data);
        let mut parts = Self::default();
        for _ in 0..unpacker.map()? {
            match unpacker.text()? {
                "attrs" => parts.attributes = Some(read_attributes(&mut unpacker)?),
                "tokens" => parts.tokens = Some(unpacker.bytes()?),
                "spaces" => parts.spaces = Some(unpacker.bytes()?),
                "lengths" => parts.lengths = Some(unpacker.bytes()?),
                "strings" => {
                    parts.strings = Some(unpacker);
                    unpacker.skip()?;
                }
                "flags" => parts.unknown_spaces = read_flags(&mut unpacker)?,
                "cats" => parts.n_categories = count_maps(&mut unpacker)?,
                "span_groups" => parts.n_span_groups = count_packed(&mut unpacker)?,
                "user_data" => parts.n_user_data = count_packed(&mut unpacker)?,
                _ => unpacker.skip()?,
            }
        }
        if !unpacker.is_at_end() {
            return Err(Malformed("bytes follow the end of the data"));
        }
        Ok(parts)
    }
}

fn read_attributes(unpacker: &mut Unpacker<'_>) -> Result<Vec<u64>, Malformed> {
    (0..unpacker.array()?).map(|_| unpacker.unsigned()).collect()
}

/// Reads the flags of each document. Returns whether the spaces of the document are unknown.
fn read_flags(unpacker: &mut Unpacker<'_>) -> Result<Vec<bool>, Malformed> {
    let mut unknown = Vec::new();
    for _ in 0..unpacker.array()? {
        let mut is_unknown = false;
        for _ in 0..unpacker.map()? {
            match unpacker.text()? {
                "has_unknown_spaces" => is_unknown = unpacker.boolean()?,
                _ => unpacker.skip()?,
            }
        }
        unknown.push(is_unknown);
    }
    Ok(unknown)
}

/// Counts the maps of an array that are not empty.
fn count_maps(unpacker: &mut Unpacker<'_>) -> Result<usize, Malformed> {
    let mut n = 0;
    for _ in 0..unpacker.array()? {
        let mut map = *unpacker;
        n += usize::from(map.map()? > 0);
        unpacker.skip()?;
    }
    Ok(n)
}

/// Counts the elements of an array that are not empty. Each element is a packed map or array.
fn count_packed(unpacker: &mut Unpacker<'_>) -> Result<usize, Malformed> {
    let mut n = 0;
    for _ in 0..unpacker.array()? {
        // 0x80 is an empty map, 0x90 an empty array.
        n += usize::from(!matches!(unpacker.bytes()?, [] | [0x80 | 0x90]));
    }
    Ok(n)
}

/// The rows of all tokens.
struct Table<'b> {
    attributes: &'b [u64],
    cells: &'b [[u8; 8]],
    spaces: &'b [u8],
    /// The rows of each document.
    documents: Vec<Range<usize>>,
    orth: usize,
    ent_iob: usize,
    ent_type: usize,
}

impl<'b> Table<'b> {
    fn new(parts: &'b Parts<'b>) -> Result<Self, DocBinFault> {
        let attributes = parts.attributes.as_deref().ok_or(DocBinFault::NoPart("attrs"))?;
        let tokens = parts.tokens.ok_or(DocBinFault::NoPart("tokens"))?;
        let spaces = parts.spaces.ok_or(DocBinFault::NoPart("spaces"))?;
        let lengths = parts.lengths.ok_or(DocBinFault::NoPart("lengths"))?;
        let column = |id, name| {
            attributes.iter().position(|&at| at == id).ok_or(DocBinFault::NoAttribute(name))
        };
        let (orth, ent_iob, ent_type) =
            (column(ORTH, "ORTH")?, column(ENT_IOB, "ENT_IOB")?, column(ENT_TYPE, "ENT_TYPE")?);
        let (cells, rest) = tokens.as_chunks::<8>();
        let n_rows = cells.len() / attributes.len();
        if !rest.is_empty() || !cells.len().is_multiple_of(attributes.len()) {
            let (n, width) = (tokens.len(), attributes.len());
            let why = format!("{n} bytes of tokens are not rows of {width} numbers");
            return Err(DocBinFault::Mismatch(why));
        }
        if spaces.len() != n_rows {
            let why = format!("{n_rows} tokens but {} spaces", spaces.len());
            return Err(DocBinFault::Mismatch(why));
        }
        let documents = split_rows(lengths, n_rows)?;
        Ok(Self { attributes, cells, spaces, documents, orth, ent_iob, ent_type })
    }

    fn cell(&self, row: usize, column: usize) -> u64 {
        u64::from_le_bytes(self.cells[row * self.attributes.len() + column])
    }

    fn other_attributes(&self) -> Vec<u64> {
        let is_read = |id: u64| [ORTH, NORM, ENT_IOB, ENT_TYPE, SENT_START].contains(&id);
        let has_values = |column| (0..self.spaces.len()).any(|row| self.cell(row, column) != 0);
        let others = self.attributes.iter().enumerate();
        let others = others.filter(|&(column, &id)| !is_read(id) && has_values(column));
        others.map(|(_, &id)| id).collect()
    }

    /// Returns the tokens of each sentence of a document, or `None` if the file does not say where sentences start.
    /// spaCy sets the first token of a document in any case.
    fn find_sentences(&self, rows: &Range<usize>) -> Option<Vec<Range<usize>>> {
        let column = self.attributes.iter().position(|&id| id == SENT_START)?;
        let later = rows.start + 1..rows.end;
        if later.clone().all(|row| self.cell(row, column) == sent_start::MISSING) {
            return None;
        }
        let starts = later
            .filter(|&row| self.cell(row, column) == sent_start::START)
            .map(|row| row - rows.start);
        let mut sentences = Vec::new();
        let mut start = 0;
        for end in starts.chain([rows.len()]) {
            sentences.push(start..end);
            start = end;
        }
        Some(sentences)
    }

    /// Returns the string of each id that the rows use. Strings that no row uses are not stored.
    fn find_strings(&self, parts: &Parts<'b>) -> Result<Strings<'b>, DocBinFault> {
        let mut strings = HashMap::new();
        for row in 0..self.spaces.len() {
            for column in [self.orth, self.ent_type] {
                let id = self.cell(row, column);
                // A missing string is found when its token is read, because the message then has the place.
                strings.entry(id).or_insert_with(|| symbol_name(id));
            }
        }
        let mut unpacker = parts.strings.ok_or(DocBinFault::NoPart("strings"))?;
        let malformed = |Malformed(why): Malformed| DocBinFault::NotDocBin(why.into());
        for _ in 0..unpacker.array().map_err(malformed)? {
            let text = unpacker.text().map_err(malformed)?;
            if let Some(found) = strings.get_mut(&string_id(text)) {
                *found = Some(text);
            }
        }
        let found = strings.into_iter().filter_map(|(id, text)| Some((id, text?)));
        Ok(Strings { texts: found.collect(), types: HashMap::new() })
    }

    /// Fails if the texts of all documents together are larger than the limit.
    fn check_size(&self, strings: &Strings<'_>, max_bytes: usize) -> Result<(), DocBinFault> {
        let length = |row| strings.text(self.cell(row, self.orth)).map_or(0, |text| text.len() + 1);
        let mut n_bytes = 0;
        for row in 0..self.spaces.len() {
            n_bytes += length(row);
            if n_bytes > max_bytes {
                let limit = format!("{} MiB of text", max_bytes >> 20);
                return Err(DocBinFault::TooLarge { limit });
            }
        }
        Ok(())
    }

    /// Returns what a row says about mentions, or `None` if spaCy does not know the value.
    fn mark(&self, row: usize) -> Option<Mark> {
        match (self.cell(row, self.ent_iob), self.cell(row, self.ent_type)) {
            // spaCy blocks a token for mentions by a mention without a type.
            (iob::BEGIN, 0) | (iob::OUTSIDE, _) => Some(Mark::Outside),
            (iob::BEGIN, entity_type) => Some(Mark::Begin(entity_type)),
            (iob::INSIDE, _) => Some(Mark::Inside),
            (iob::MISSING, _) => Some(Mark::Missing),
            _ => None,
        }
    }

    /// Reads the document of some rows. Returns it and the number of its tokens without annotation.
    fn read_document(
        &self,
        number: usize,
        rows: Range<usize>,
        has_unknown_spaces: bool,
        strings: &mut Strings<'_>,
    ) -> Result<(SpacyDoc, usize), DocBinFault> {
        let sentences = self.find_sentences(&rows);
        let has_spaces = !has_unknown_spaces;
        let mut document = SpacyDoc { sentences, has_spaces, ..SpacyDoc::default() };
        let mut n_missing = 0;
        let mut is_inside = false;
        for (at, row) in rows.enumerate() {
            let token = at + 1;
            let unknown = |id| DocBinFault::NoString { document: number, token, id };
            let start = document.text.len();
            document.text.push_str(strings.text(self.cell(row, self.orth)).map_err(unknown)?);
            document.tokens.push(start..document.text.len());
            if has_unknown_spaces || self.spaces[row] != 0 {
                document.text.push(' ');
            }
            let mark = self.mark(row).ok_or_else(|| {
                let value = self.cell(row, self.ent_iob);
                DocBinFault::UnknownIob { document: number, token, value }
            })?;
            if let Mark::Begin(id) = mark {
                let entity_type = strings.shared(id).map_err(unknown)?;
                document.mentions.push(SpacyMention { tokens: at..token, entity_type });
            } else if mark == Mark::Inside {
                let last = document.mentions.last_mut().filter(|_| is_inside);
                let fault = DocBinFault::NotStarted { document: number, token };
                last.ok_or(fault)?.tokens.end = token;
            }
            n_missing += usize::from(mark == Mark::Missing);
            is_inside = matches!(mark, Mark::Begin(_) | Mark::Inside);
        }
        Ok((document, n_missing))
    }
}

/// What a row says about mentions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mark {
    /// A mention starts, with the id of its entity type.
    Begin(u64),
    Inside,
    Outside,
    Missing,
}

/// The strings that the rows use, by their ids.
struct Strings<'b> {
    texts: HashMap<u64, &'b str>,
    /// The entity types that were used so far.
    types: HashMap<u64, Arc<str>>,
}

impl<'b> Strings<'b> {
    /// Returns the string of an id. Fails with the id if the file does not have it.
    fn text(&self, id: u64) -> Result<&'b str, u64> {
        self.texts.get(&id).copied().ok_or(id)
    }

    /// Does what [`Self::text`] does. Returns the same copy for the same id.
    fn shared(&mut self, id: u64) -> Result<Arc<str>, u64> {
        let text = self.text(id)?;
        Ok(Arc::clone(self.types.entry(id).or_insert_with(|| text.into())))
    }
}

/// Returns the rows of each document from the numbers of tokens, which are 32-bit integers.
fn split_rows(lengths: &[u8], n_rows: usize) -> Result<Vec<Range<usize>>, DocBinFault> {
    let (lengths, rest) = lengths.as_chunks::<4>();
    let mut documents = Vec::new();
    let mut end: usize = 0;
    for &length in lengths {
        let length = i32::from_le_bytes(length);
        let next = usize::try_from(length).ok().map(|length| end + length);
        let Some(next) = next.filter(|&next| next <= n_rows) else {
            let (number, n_left) = (documents.len() + 1, n_rows - end);
            let why = format!("document {number} has {length} tokens, but {n_left} are left");
            return Err(DocBinFault::Mismatch(why));
        };
        documents.push(end..next);
        end = next;
    }
    if end != n_rows || !rest.is_empty() {
        let why = format!("{} tokens belong to no document", n_rows - end);
        return Err(DocBinFault::Mismatch(why));
    }
    Ok(documents)
}
