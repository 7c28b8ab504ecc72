//! Writes sentences as JSON lines.

use std::io::{self, Write};

use super::names::TagNames;
use crate::record::Record;
use crate::scheme::Scheme;
use crate::tag::{EntityTypes, Tag};

/// Writes one object a sentence: the keys it came with, or `id`, `tokens` and `ner_tags`.
#[derive(Debug)]
pub struct JsonlWriter<W> {
    out: W,
    scheme: Option<Scheme>,
    tags_key: String,
    names: Option<TagNames>,
    line: Vec<u8>,
}

impl<W: Write> JsonlWriter<W> {
    /// Tags are spelt in `scheme`, or with the letters of the input; with `names` they are
    /// written as their positions in it.
    pub fn new(out: W, scheme: Option<Scheme>, tags_key: &str, names: Option<TagNames>) -> Self {
        Self { out, scheme, tags_key: tags_key.to_owned(), names, line: Vec::new() }
    }

    /// Writes a sentence with `tags` in place of its own.
    ///
    /// # Panics
    /// If `names` were given and lack one of the tags.
    pub fn write(
        &mut self,
        record: &Record<'_>,
        tags: &[Tag],
        types: &EntityTypes,
    ) -> io::Result<()> {
        let mut line = std::mem::take(&mut self.line);
        line.clear();
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

    /// Writes a sentence that came from JSON lines as it was.
    pub fn copy(&mut self, record: &Record<'_>) -> io::Result<()> {
        self.line.clear();
        for (at, (key, raw)) in record.fields.iter().enumerate() {
            self.line.push(if at == 0 { b'{' } else { b',' });
            push_key(key, &mut self.line)?;
            self.line.extend_from_slice(raw.as_bytes());
        }
        self.line.extend_from_slice(b"}\n");
        self.out.write_all(&self.line)
    }

    /// Hands the output back.
    pub fn finish(self) -> W {
        self.out
    }

    fn push_tags(&self, tags: &[Tag], types: &EntityTypes, line: &mut Vec<u8>) -> io::Result<()> {
        let scheme = self.scheme.unwrap_or(types.own_spelling());
        line.push(b'[');
        for (at, &tag) in tags.iter().enumerate() {
            if at > 0 {
                line.push(b',');
            }
            let text = types.spell(tag, scheme).to_string();
            match &self.names {
                None => serde_json::to_writer(&mut *line, &text)?,
                Some(names) => {
                    let id = names.iter().position(|name| *name == text);
                    let id = id.expect("the caller gives a name for every tag it writes");
                    write!(line, "{id}")?;
                }
            }
        }
        line.push(b']');
        Ok(())
    }
}

fn push_key(key: &str, line: &mut Vec<u8>) -> io::Result<()> {
    serde_json::to_writer(&mut *line, key)?;
    line.push(b':');
    Ok(())
}
