//! More sentences behind those of a file, in its own format.

use crate::corpus::Corpus;
use crate::error::Error;
use crate::format::{ReadOptions, Reader};
use crate::jsonl::JsonlReader;
use crate::problem::Problems;
use crate::record::Record;
use crate::sentence::Sentence;
use crate::source::Source;
use crate::tag::EntityTypes;

/// The text of `source`, byte for byte, and behind it `more` sentences with the types and in the scheme of `corpus`,
/// which was read from it.
///
/// Columns: a sentence keeps those it came with; one that came with none has the file's, with `_` in them. JSON lines: tokens and tags, under the keys of the file, as ids if the
/// file has ids. Comments of the new sentences are left out: they speak of the sentences they were written for.
pub fn extended(
    (source, options): (&Source, &ReadOptions),
    corpus: &Corpus,
    more: &[Sentence],
) -> Result<String, Error> {
    let mut text = source.text().to_owned();
    if !text.is_empty() && !text.ends_with('\n') {
        text.push_str(line_end(source));
    }
    let is_columns = matches!(Reader::new(source, options)?, Reader::Conll(..));
    if is_columns && !text.ends_with("\n\n") && !text.ends_with("\n\r\n") {
        text.push_str(line_end(source));
    }
    text.push_str(&alike((source, options), corpus, more)?);
    Ok(text)
}

/// Only the `more` sentences of [`extended`].
pub fn alike(
    (source, options): (&Source, &ReadOptions),
    corpus: &Corpus,
    more: &[Sentence],
) -> Result<String, Error> {
    let text = match Reader::new(source, options)? {
        Reader::Conll(..) => columns(corpus, more),
        Reader::Jsonl(mut reader) => lines(&mut reader, options, (corpus, more))?,
    };
    Ok(text.replace('\n', line_end(source)))
}

fn line_end(source: &Source) -> &'static str {
    if source.text().contains("\r\n") { "\r\n" } else { "\n" }
}

fn columns(corpus: &Corpus, more: &[Sentence]) -> String {
    let frame = corpus.sentences().iter().find_map(|sentence| sentence.frames().first());
    let own = |sentence: &Sentence| {
        let sentence = sentence.clone().without_comments();
        match frame {
            Some(frame) => sentence.framed_as(frame),
            None => sentence,
        }
    };
    let sentences = more.iter().map(own).collect();
    let more = Corpus::new(corpus.types().clone(), corpus.scheme(), sentences)
        .expect("the sentences are valid in the corpus's scheme");
    let mut out = Vec::new();
    more.write_conll(&mut out).expect("memory takes all that is written");
    String::from_utf8(out).expect("sentences are text")
}

fn lines(
    reader: &mut JsonlReader<'_>,
    options: &ReadOptions,
    (corpus, more): (&Corpus, &[Sentence]),
) -> Result<String, Error> {
    let mut types = EntityTypes::default();
    reader.read(&mut Record::default(), &mut types, &mut Problems::default());
    let names = options.names.as_deref().filter(|_| reader.uses_ids());
    let mut out = String::new();
    for sentence in more {
        let tokens: Vec<_> = sentence.tokens().iter().map(AsRef::<str>::as_ref).collect();
        let spell = |tag: &_| corpus.types().spell(*tag, corpus.scheme()).to_string();
        let tags: Vec<_> = sentence.tags().iter().map(spell).collect();
        let tags = match names {
            None => serde_json::json!(tags),
            Some(names) => {
                let id = |tag: &String| {
                    let found = names.iter().position(|name| name == tag);
                    found.ok_or_else(|| Error::NoName { tag: tag.clone() })
                };
                serde_json::json!(tags.iter().map(id).collect::<Result<Vec<_>, _>>()?)
            }
        };
        let text = |value: serde_json::Value| value.to_string();
        let keys = [reader.tokens_key(), reader.tags_key()].map(|key| text(key.into()));
        let [tokens_key, tags_key] = keys;
        out.push_str(&format!("{{{tokens_key}: {}, {tags_key}: {tags}}}\n", text(tokens.into())));
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::token::Token;

    fn extend(text: &str, options: &ReadOptions) -> String {
        let source = Source::from_text("a", text);
        let corpus = Corpus::read(&source, options).unwrap();
        let more = [corpus.sentences()[0].with_tokens([(0, Token::new("Ghent").unwrap())])];
        let extended = extended((&source, options), &corpus, &more).unwrap();
        assert!(extended.starts_with(text));
        extended[text.len()..].to_owned()
    }

    #[test]
    fn a_sentence_from_nowhere_has_the_files_columns_with_nothing_in_them() {
        let text = "1 Bonn N E-2 B-LOC x\n2 is V - O y\n\n";
        let source = Source::from_text("a", text);
        let options =
            ReadOptions { token_column: Some(2), tag_column: Some(5), ..ReadOptions::default() };
        let corpus = Corpus::read(&source, &options).unwrap();
        let tags = corpus.sentences()[0].tags().to_vec();
        let tokens = ["Ghent", "was"].map(|token| Token::new(token).unwrap()).to_vec();
        let more = [Sentence::new(tokens, tags).unwrap()];
        let extended = extended((&source, &options), &corpus, &more).unwrap();
        assert_eq!(extended[text.len()..], *"_ Ghent _ _ B-LOC _\n_ was _ _ O _\n\n");
        let again = Corpus::read(&Source::from_text("b", &extended), &options).unwrap();
        assert_eq!(again.sentences().len(), 2);
    }

    #[test]
    fn the_file_stays_and_the_new_sentences_look_like_it() {
        let usual = ReadOptions::default();
        assert_eq!(
            extend("# id 1\nBonn NE B-LOC\nis V O\n", &usual),
            "\nGhent NE B-LOC\nis V O\n\n"
        );
        assert_eq!(extend("Bonn\tB-LOC\r\n\r\n", &usual), "Ghent\tB-LOC\r\n\r\n");
        assert_eq!(extend("Bonn B-LOC", &usual), "\n\nGhent B-LOC\n\n");
        assert_eq!(
            extend("{\"words\": [\"Bonn\"], \"tags\": [\"B-LOC\"], \"id\": 3}\n", &usual),
            "{\"words\": [\"Ghent\"], \"tags\": [\"B-LOC\"]}\n"
        );
        let names = Some(vec!["O".to_owned(), "B-LOC".to_owned()]);
        let options = ReadOptions { names, ..ReadOptions::default() };
        assert_eq!(
            extend("{\"tokens\": [\"Bonn\"], \"ner_tags\": [1]}", &options),
            "\n{\"tokens\": [\"Ghent\"], \"ner_tags\": [1]}\n"
        );
    }
}
