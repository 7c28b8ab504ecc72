//! Writes a parquet file that Hugging Face `datasets` reads with its class names.

use std::sync::Arc;

use parquet::basic::{Compression, LogicalType, Repetition, Type as PhysicalType};
use parquet::data_type::{ByteArray, ByteArrayType, DataType, Int64Type};
use parquet::errors::Result;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::types::Type;
use serde_json::json;

use super::METADATA_KEY;
use crate::jsonl::TagNames;

/// The number of rows of a row group.
const GROUP: usize = 10_000;

/// The column of the tags.
#[derive(Debug, Clone, Copy)]
pub struct TagColumn<'a> {
    /// Its name.
    pub name: &'a str,
    /// The names of the classes, in the order of their ids.
    pub classes: &'a TagNames,
}

/// A row to write: the tokens, and the id of the tag of each token.
#[derive(Debug, Clone)]
pub struct TaggedRow<'a> {
    /// The tokens.
    pub tokens: Vec<&'a str>,
    /// The ids of the tags.
    pub tags: Vec<i64>,
}

/// Returns the bytes of a file with `rows`. The file has Snappy compression, and the names of the columns and classes
/// in its metadata.
pub fn write_table(tokens_column: &str, tags: TagColumn<'_>, rows: &[TaggedRow<'_>]) -> Vec<u8> {
    try_write(tokens_column, tags, rows).expect("writing to memory does not fail")
}

fn try_write(tokens_column: &str, tags: TagColumn<'_>, rows: &[TaggedRow<'_>]) -> Result<Vec<u8>> {
    let text = Type::primitive_type_builder("element", PhysicalType::BYTE_ARRAY)
        .with_repetition(Repetition::OPTIONAL)
        .with_logical_type(Some(LogicalType::String));
    let id = Type::primitive_type_builder("element", PhysicalType::INT64)
        .with_repetition(Repetition::OPTIONAL);
    let columns =
        vec![list_type(tokens_column, text.build()?)?, list_type(tags.name, id.build()?)?];
    let schema = Type::group_type_builder("schema").with_fields(columns).build()?;
    let schema = Arc::new(schema);
    let features = KeyValue::new(METADATA_KEY.to_owned(), describe(tokens_column, tags));
    let properties = WriterProperties::builder()
        .set_compression(Compression::SNAPPY)
        .set_created_by("melm".to_owned())
        .set_key_value_metadata(Some(vec![features]))
        .build();
    let mut writer = SerializedFileWriter::new(Vec::new(), schema, Arc::new(properties))?;
    for rows in rows.chunks(GROUP) {
        let mut group = writer.next_row_group()?;
        let to_bytes = |row: &TaggedRow<'_>| row.tokens.iter().map(|&token| token.into()).collect();
        let tokens: Vec<Vec<ByteArray>> = rows.iter().map(to_bytes).collect();
        write_lists::<ByteArrayType>(&mut group, &tokens)?;
        let tags: Vec<Vec<i64>> = rows.iter().map(|row| row.tags.clone()).collect();
        write_lists::<Int64Type>(&mut group, &tags)?;
        group.close()?;
    }
    writer.into_inner()
}

/// Returns the type of a column with lists, as the specification of parquet defines it.
fn list_type(name: &str, element: Type) -> Result<Arc<Type>> {
    let list = Type::group_type_builder("list")
        .with_repetition(Repetition::REPEATED)
        .with_fields(vec![Arc::new(element)])
        .build()?;
    let column = Type::group_type_builder(name)
        .with_repetition(Repetition::OPTIONAL)
        .with_logical_type(Some(LogicalType::List))
        .with_fields(vec![Arc::new(list)])
        .build()?;
    Ok(Arc::new(column))
}

/// Returns the features of the data set, as `datasets` describes them. `Sequence` is understood by all versions.
fn describe(tokens_column: &str, tags: TagColumn<'_>) -> String {
    let list = |feature| json!({"feature": feature, "_type": "Sequence"});
    json!({"info": {"features": {
        tokens_column: list(json!({"dtype": "string", "_type": "Value"})),
        tags.name: list(json!({"names": tags.classes, "_type": "ClassLabel"})),
    }}})
    .to_string()
}

/// Writes the next column of a row group. No list is null or contains a null.
fn write_lists<T: DataType>(
    group: &mut SerializedRowGroupWriter<'_, Vec<u8>>,
    lists: &[Vec<T::T>],
) -> Result<()> {
    /// The level of an empty list, and that of an element.
    const EMPTY: i16 = 1;
    const ELEMENT: i16 = 3;
    let (mut definitions, mut repetitions) = (Vec::new(), Vec::new());
    for list in lists {
        definitions.extend(std::iter::repeat_n(ELEMENT, list.len()));
        if list.is_empty() {
            definitions.push(EMPTY);
        }
        repetitions.extend((0..list.len().max(1)).map(|at| i16::from(at > 0)));
    }
    let values = lists.concat();
    if let Some(mut column) = group.next_column()? {
        column.typed::<T>().write_batch(&values, Some(&definitions), Some(&repetitions))?;
        column.close()?;
    }
    Ok(())
}
