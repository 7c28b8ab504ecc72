//! Writes sentences as JSON lines.

use std::collections::HashMap;
use std::io::{self, Write};

use super::names::TagNames;
use crate::record::Record;
use crate::scheme::Scheme;
use crate::tag::{EntityTypes, Tag};

/// Writes one object for each sentence. Sentences from JSON lines keep their keys. Other sentences get the keys `id`,
/// `tokens` and `ner_tags`.
#[derive(Debug)]
pub struct JsonlWriter<W> {
    out: W,
    scheme: Option<Scheme>,
    tags_key: String,
    ids: Option<HashMap<String, usize>>,
    line: Vec<u8>,
}

impl<W: Write> JsonlWriter<W> {
    /// Writes to `out`. Tags are spelt with the letters of `scheme`. If `scheme` is `None`, tags are spelt as in the
    /// input. With `names`, tags are written as ids: their positions in `names`.
    pub fn new(out: W, scheme: Option<Scheme>, tags_key: &str, names: Option<TagNames>) -> Self {
        let ids = names.map(|names| names.into_iter().enumerate().map(|(id, n)| (n, id)).collect());
        Self { out, scheme, tags_key: tags_key.to_owned(), ids, line: Vec::new() }
    }

    /// Writes a sentence with `tags` in place of its own.
    ///
    /// # Panics
    /// If `names` were given and do not contain one of the tags.
    pub fn write(
        &mut self,
        record: &Record<'_>,
        tags: &[Tag],
        types: &EntityTypes,
    ) -> io::Result<()> {
        let mut line = std::mem::take(&mut self.line);
        line.clear();
        push_documents(record, &mut line);
        line.push(b'{');
        if record.fields.is_empty() {
            if let Some(id) = record.id() {
                push_key("id", &mut line)?;
                serde_json::to_writer(&mut line, id)?;
                line.push(b',');
            }
            push_key("tokens", &mut line)?;
            serde_json::to_writer(&mut line, &record.tokens)?;
            line.push(b',');
            push_key(&self.tags_key, &mut line)?;
            self.push_tags(tags, types, &mut line)?;
        } else {
            for (at, (key, raw)) in record.fields.iter().enumerate() {
                if at > 0 {
                    line.push(b',');
                }
                push_key(key, &mut line)?;
                if *key == self.tags_key {
                    self.push_tags(tags, types, &mut line)?;
                } else {
                    line.extend_from_slice(raw.as_bytes());
                }
            }
        }
        line.extend_from_slice(b"}\n");
        self.out.write_all(&line)?;
        self.line = line;
        Ok(())
    }

    /// Writes a sentence from JSON lines without changing a value.
    pub fn copy(&mut self, record: &Record<'_>) -> io::Result<()> {
        self.line.clear();
        push_documents(record, &mut self.line);
        for (at, (key, raw)) in record.fields.iter().enumerate() {
            self.line.push(if at == 0 { b'{' } else { b',' });
            push_key(key, &mut self.line)?;
            self.line.extend_from_slice(raw.as_bytes());
        }
        self.line.extend_from_slice(b"}\n");
        self.out.write_all(&self.line)
    }

    /// The output.
    pub fn out(&mut self) -> &mut W {
        &mut self.out
    }

    /// Returns the output without flushing it.
    pub fn finish(self) -> W {
        self.out
    }

    fn push_tags(&self, tags: &[Tag], types: &EntityTypes, line: &mut Vec<u8>) -> io::Result<()> {
        let scheme = self.scheme.unwrap_or(types.input_spelling());
        line.push(b'[');
        for (at, &tag) in tags.iter().enumerate() {
            if at > 0 {
                line.push(b',');
            }
            let text = types.spell(tag, scheme).to_string();
            match &self.ids {
                None => serde_json::to_writer(&mut *line, &text)?,
                Some(ids) => {
                    let id =
                        ids.get(&text).expect("the caller gives a name for every tag it writes");
                    write!(line, "{id}")?;
                }
            }
        }
        line.push(b']');
        Ok(())
    }
}

/// Appends the objects that mark the start of a document, if the sentence was read from JSON lines.
fn push_documents(record: &Record<'_>, line: &mut Vec<u8>) {
    for mark in record.lines_before.iter().filter(|mark| mark.starts_with('{')) {
        line.extend_from_slice(mark.as_bytes());
        line.push(b'\n');
    }
}

fn push_key(key: &str, line: &mut Vec<u8>) -> io::Result<()> {
    serde_json::to_writer(&mut *line, key)?;
    line.push(b':');
    Ok(())
}
