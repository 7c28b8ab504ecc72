//! Reads the tokens and tags of a parquet file.

use std::panic::{AssertUnwindSafe, catch_unwind};

use bytes::Bytes;
use parquet::basic::{Compression, Type};
use parquet::column::reader::{ColumnReader, ColumnReaderImpl};
use parquet::data_type::{ByteArray, ByteArrayType, DataType, Int32Type, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::metadata::RowGroupMetaData;
use parquet::file::reader::{FileReader, RowGroupReader, SerializedFileReader};
use parquet::schema::types::{ColumnDescriptor, SchemaDescriptor};

use super::METADATA_KEY;
use super::fault::ParquetFault;
use super::pages::PageTotals;
use crate::Limits;
use crate::jsonl::{TAGS_KEYS, TOKENS_KEYS, TagNames, parse_names};

/// The number of rows that are read at once.
const BATCH: usize = 1024;
/// The largest size of all texts together. One string of a dictionary can be the text of many tokens.
const MAX_TEXT: usize = 256 << 20;

/// The rows of a file.
#[derive(Debug)]
pub struct ParquetTable {
    /// The name of the column of the tokens.
    pub tokens_column: String,
    /// The name of the column of the tags.
    pub tags_column: String,
    /// The names of the classes of the tags, in the order of their ids. `None` if tags are strings.
    pub names: Option<TagNames>,
    /// The tokens and tags of each row.
    pub rows: Vec<ParquetRow>,
    /// The names of the columns that are not read.
    pub other_columns: Vec<String>,
}

/// One row.
#[derive(Debug, PartialEq, Eq)]
pub struct ParquetRow {
    /// The tokens. Empty if the list is empty or null.
    pub tokens: Vec<String>,
    /// The tags. Their number may differ from that of the tokens.
    pub tags: TagCells,
}

/// The tags of one row.
#[derive(Debug, PartialEq, Eq)]
pub enum TagCells {
    /// Ids of classes.
    Ids(Vec<i64>),
    /// Tags as strings.
    Texts(Vec<String>),
}

/// The names that the caller has given.
#[derive(Debug, Clone, Copy, Default)]
pub struct GivenNames<'a> {
    /// The column of the tokens.
    pub tokens_column: Option<&'a str>,
    /// The column of the tags.
    pub tags_column: Option<&'a str>,
    /// The names of the classes.
    pub classes: Option<&'a TagNames>,
}

/// A column with lists.
struct ListColumn {
    name: String,
    /// The index of the column with the elements.
    leaf: usize,
    /// The definition level of an element that is not null.
    max_level: i16,
    /// Whether elements may be null.
    has_nulls: bool,
    kind: Type,
}

/// Reads all rows. Fails if the bytes are not a parquet file with tokens and tags, or if they contain more than the
/// limits allow.
pub fn read_table(bytes: Vec<u8>, given: GivenNames<'_>) -> Result<ParquetTable, ParquetFault> {
    read_table_within(bytes, given, Limits::default())
}

/// Reads all rows as [`read_table`] does, with other limits.
pub fn read_table_within(
    bytes: Vec<u8>,
    given: GivenNames<'_>,
    limits: Limits,
) -> Result<ParquetTable, ParquetFault> {
    // The crate asserts some properties of files. What it leaves behind after a panic is dropped here.
    let read = AssertUnwindSafe(|| read_rows(bytes, given, limits));
    let invalid = || Err(ParquetFault::Damaged("its content is not valid".into()));
    catch_unwind(read).unwrap_or_else(|_| invalid())
}

fn read_rows(
    bytes: Vec<u8>,
    given: GivenNames<'_>,
    limits: Limits,
) -> Result<ParquetTable, ParquetFault> {
    let bytes = Bytes::from(bytes);
    let not_parquet = |error: ParquetError| ParquetFault::NotParquet(shorten(&error));
    let file = SerializedFileReader::new(bytes.clone()).map_err(not_parquet)?;
    let schema = file.metadata().file_metadata().schema_descr();
    let tokens = ListColumn::find(schema, given.tokens_column, &TOKENS_KEYS)?;
    let tags = ListColumn::find(schema, given.tags_column, &TAGS_KEYS)?;
    if tokens.kind != Type::BYTE_ARRAY {
        return Err(ParquetFault::WrongType { column: tokens.name, expected: "strings" });
    }
    let names = match tags.kind {
        Type::BYTE_ARRAY => None,
        Type::INT32 | Type::INT64 => Some(find_names(&file, &tags.name, given.classes)?),
        _ => {
            let (column, expected) = (tags.name, "strings or ids");
            return Err(ParquetFault::WrongType { column, expected });
        }
    };
    for column in [&tokens, &tags] {
        column.check_pages(&bytes, file.metadata().row_groups(), limits)?;
    }
    let mut rows = Vec::new();
    let mut total = TextTotal { n_bytes: 0, max_bytes: limits.scale_size(MAX_TEXT) };
    for group in 0..file.num_row_groups() {
        let group = file.get_row_group(group).map_err(|error| damaged(&error))?;
        read_group(&*group, &tokens, &tags, &mut rows, &mut total)?;
    }
    let is_other = |name: &String| *name != tokens.name && *name != tags.name;
    let other_columns = root_names(schema).filter(is_other).collect();
    let (tokens_column, tags_column) = (tokens.name, tags.name);
    Ok(ParquetTable { tokens_column, tags_column, names, rows, other_columns })
}

/// Returns the names of the columns of a file, in order.
fn root_names(schema: &SchemaDescriptor) -> impl Iterator<Item = String> {
    schema.root_schema().get_fields().iter().map(|field| field.name().to_owned())
}

/// Returns the names of the classes: those given, or those in the metadata of the file.
fn find_names(
    file: &SerializedFileReader<Bytes>,
    column: &str,
    given: Option<&TagNames>,
) -> Result<TagNames, ParquetFault> {
    if let Some(names) = given {
        return Ok(names.clone());
    }
    let metadata = file.metadata().file_metadata().key_value_metadata();
    let mut values = metadata.into_iter().flatten().filter(|pair| pair.key == METADATA_KEY);
    let names = values.find_map(|pair| parse_names(pair.value.as_deref()?, column));
    names.ok_or_else(|| ParquetFault::NoNames { column: column.to_owned() })
}

impl ListColumn {
    /// Finds the column that is named, or the first with a usual name.
    fn find(
        schema: &SchemaDescriptor,
        name: Option<&str>,
        usual: &[&str],
    ) -> Result<Self, ParquetFault> {
        let wanted: Vec<_> = name.map_or_else(|| usual.to_vec(), |name| vec![name]);
        let roots: Vec<String> = root_names(schema).collect();
        let Some(name) = wanted.iter().find(|name| roots.iter().any(|root| root == *name)) else {
            let column = if name.is_some() { wanted[0] } else { usual[0] }.to_owned();
            let quoted: Vec<_> = roots.iter().take(20).map(|root| format!("`{root}`")).collect();
            return Err(ParquetFault::NoColumn { column, found: quoted.join(", ") });
        };
        let is_of = |leaf: &usize| schema.get_column_root(*leaf).name() == *name;
        let leaves: Vec<usize> = (0..schema.num_columns()).filter(is_of).collect();
        let wrong = || ParquetFault::WrongType { column: (*name).to_owned(), expected: "strings" };
        let [leaf] = leaves[..] else { return Err(wrong()) };
        let column: &ColumnDescriptor = &schema.column(leaf);
        if column.max_rep_level() != 1 {
            return Err(wrong());
        }
        Ok(Self {
            name: (*name).to_owned(),
            leaf,
            max_level: column.max_def_level(),
            has_nulls: column.self_type().is_optional(),
            kind: column.physical_type(),
        })
    }

    /// Checks all pages of the column: see [`PageTotals`].
    fn check_pages(
        &self,
        bytes: &[u8],
        groups: &[RowGroupMetaData],
        limits: Limits,
    ) -> Result<(), ParquetFault> {
        let mut totals = PageTotals::default();
        for group in groups {
            let chunk = group.columns().get(self.leaf);
            let chunk = chunk.ok_or_else(|| ParquetFault::Damaged("a column is missing".into()))?;
            let is_compressed = match chunk.compression() {
                Compression::UNCOMPRESSED => false,
                Compression::SNAPPY => true,
                other => {
                    let found = other.to_string();
                    let found = found.split('(').next().unwrap_or_default().to_lowercase();
                    return Err(ParquetFault::Compression { column: self.name.clone(), found });
                }
            };
            let start = chunk.dictionary_page_offset().unwrap_or(chunk.data_page_offset());
            let range =
                usize::try_from(start).ok().zip(usize::try_from(chunk.compressed_size()).ok());
            let pages = range.and_then(|(start, n)| bytes.get(start..start.checked_add(n)?));
            let outside = || ParquetFault::Damaged("a column is outside of the file".into());
            totals.add(pages.ok_or_else(outside)?, is_compressed, limits)?;
        }
        Ok(())
    }
}

/// The bytes of all texts so far, and the largest number.
struct TextTotal {
    n_bytes: usize,
    max_bytes: usize,
}

fn read_group(
    group: &dyn RowGroupReader,
    tokens: &ListColumn,
    tags: &ListColumn,
    rows: &mut Vec<ParquetRow>,
    total: &mut TextTotal,
) -> Result<(), ParquetFault> {
    let open =
        |column: &ListColumn| group.get_column_reader(column.leaf).map_err(|error| damaged(&error));
    let mut tokens_reader = open(tokens)?;
    let mut tags_reader = open(tags)?;
    loop {
        let first = rows.len() + 1;
        let token_lists = read_texts(&mut tokens_reader, tokens, first, total)?;
        let tag_lists = match tags.kind {
            Type::BYTE_ARRAY => {
                let texts = read_texts(&mut tags_reader, tags, first, total)?;
                texts.into_iter().map(TagCells::Texts).collect()
            }
            _ => read_ids(&mut tags_reader, tags, first)?,
        };
        if token_lists.len() != tag_lists.len() {
            let why =
                format!("`{}` and `{}` have different numbers of rows", tokens.name, tags.name);
            return Err(ParquetFault::Damaged(why));
        }
        if token_lists.is_empty() {
            return Ok(());
        }
        let lists = token_lists.into_iter().zip(tag_lists);
        rows.extend(lists.map(|(tokens, tags)| ParquetRow { tokens, tags }));
    }
}

/// Reads the next rows of a column of ids.
fn read_ids(
    reader: &mut ColumnReader,
    column: &ListColumn,
    first: usize,
) -> Result<Vec<TagCells>, ParquetFault> {
    let lists: Vec<Vec<i64>> = match reader {
        ColumnReader::Int64ColumnReader(reader) => read_lists::<Int64Type>(reader, column, first)?,
        ColumnReader::Int32ColumnReader(reader) => {
            let lists = read_lists::<Int32Type>(reader, column, first)?;
            lists.into_iter().map(|list| list.into_iter().map(i64::from).collect()).collect()
        }
        _ => return Err(ParquetFault::Damaged("a column has two types".into())),
    };
    Ok(lists.into_iter().map(TagCells::Ids).collect())
}

/// Reads the next rows of a column of strings.
fn read_texts(
    reader: &mut ColumnReader,
    column: &ListColumn,
    first: usize,
    total: &mut TextTotal,
) -> Result<Vec<Vec<String>>, ParquetFault> {
    let ColumnReader::ByteArrayColumnReader(reader) = reader else {
        return Err(ParquetFault::Damaged("a column has two types".into()));
    };
    let lists = read_lists::<ByteArrayType>(reader, column, first)?;
    let mut texts = Vec::with_capacity(lists.len());
    for (at, list) in lists.into_iter().enumerate() {
        total.n_bytes += list.iter().map(ByteArray::len).sum::<usize>();
        if total.n_bytes > total.max_bytes {
            let limit = format!("{} MiB of text", total.max_bytes >> 20);
            return Err(ParquetFault::TooLarge { limit });
        }
        let to_text = |bytes: &ByteArray| {
            let text = std::str::from_utf8(bytes.data()).map(str::to_owned);
            text.map_err(|_| ParquetFault::NotUtf8 { column: column.name.clone(), row: first + at })
        };
        texts.push(list.iter().map(to_text).collect::<Result<_, _>>()?);
    }
    Ok(texts)
}

/// Reads the lists of the next rows. Null lists become empty lists. `first` is the number of the first row.
fn read_lists<T: DataType>(
    reader: &mut ColumnReaderImpl<T>,
    column: &ListColumn,
    first: usize,
) -> Result<Vec<Vec<T::T>>, ParquetFault> {
    let (mut definitions, mut repetitions, mut values) = (Vec::new(), Vec::new(), Vec::new());
    reader
        .read_records(BATCH, Some(&mut definitions), Some(&mut repetitions), &mut values)
        .map_err(|error| damaged(&error))?;
    let mut values = values.into_iter();
    let mut lists: Vec<Vec<T::T>> = Vec::new();
    for (&repetition, &definition) in repetitions.iter().zip(&definitions) {
        if repetition == 0 {
            lists.push(Vec::new());
        }
        let n_lists = lists.len();
        let no_start = || ParquetFault::Damaged(format!("`{}` has no first row", column.name));
        let list = lists.last_mut().ok_or_else(no_start)?;
        if definition == column.max_level {
            let missing = || ParquetFault::Damaged(format!("`{}` lacks values", column.name));
            list.push(values.next().ok_or_else(missing)?);
        } else if column.has_nulls && definition == column.max_level - 1 {
            let (column, row) = (column.name.clone(), first + n_lists - 1);
            return Err(ParquetFault::Null { column, row });
        }
    }
    Ok(lists)
}

fn damaged(error: &ParquetError) -> ParquetFault {
    ParquetFault::Damaged(shorten(error))
}

/// Returns the message of an error of the `parquet` crate in one line.
fn shorten(error: &ParquetError) -> String {
    let message = match error {
        ParquetError::General(message) | ParquetError::EOF(message) => message.clone(),
        other => other.to_string(),
    };
    message.lines().next().unwrap_or_default().to_owned()
}
