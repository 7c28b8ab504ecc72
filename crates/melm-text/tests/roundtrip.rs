//! Writing and reading again keeps tokens, tags, columns and comments, in every format and scheme.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use melm_text::conll::ConllWriter;
use melm_text::jsonl::JsonlWriter;
use melm_text::{
    Corpus, EntityTypes, Format, Mention, ReadOptions, Scheme, Sentence, Source, Survey, Tag,
    Token, Writer, mentions, write_tags,
};
use proptest::prelude::*;

const TINY: [&str; 5] =
    ["conll2003.conll", "conll2002.conll", "multiconer.conll", "germeval.conll", "bilou.conll"];

fn tiny(name: &str) -> Source {
    let path = format!("{}/../../testdata/tiny/{name}", env!("CARGO_MANIFEST_DIR"));
    Source::open(path.as_ref(), melm_text::Encoding::Utf8).unwrap()
}

fn read(source: &Source) -> Corpus {
    Corpus::read(source, &ReadOptions::default()).unwrap()
}

fn written(corpus: &Corpus) -> String {
    let mut out = Vec::new();
    corpus.write_conll(&mut out).unwrap();
    String::from_utf8(out).unwrap()
}

/// Tokens and tags as text, so that corpora with different tables of types can be compared.
fn spelled(corpus: &Corpus) -> Vec<Vec<(String, String)>> {
    let spell = |tag| corpus.types().spell(tag, corpus.scheme()).to_string();
    let sentence = |s: &Sentence| {
        s.tokens().iter().map(ToString::to_string).zip(s.tags().iter().map(|&t| spell(t))).collect()
    };
    corpus.sentences().iter().map(sentence).collect()
}

/// Converts record by record, as `melm convert` does.
fn convert(source: &Source, to: Format, scheme: Option<Scheme>) -> Source {
    let mut writer = if to == Format::CONLL {
        Writer::Conll(ConllWriter::new(Vec::new(), scheme))
    } else {
        Writer::Jsonl(JsonlWriter::new(Vec::new(), scheme, "ner_tags", None))
    };
    // A random token may look like the start of a JSON object, so detection would be wrong.
    let from = if source.name() == "random" { Some(Format::CONLL) } else { None };
    let options = ReadOptions { format: from, ..ReadOptions::default() };
    let survey = Survey::read(source, &options, |record, types, _| {
        let mut tags = record.tags.clone();
        if let Some(scheme) = scheme {
            write_tags(mentions(&record.tags), scheme, &mut tags);
        }
        writer.write(record, &tags, types).unwrap();
    });
    survey.unwrap().require_sound(source, true).unwrap();
    Source::from_text("converted", String::from_utf8(writer.finish()).unwrap())
}

#[test]
fn files_with_columns_comments_and_documents_are_written_byte_for_byte() {
    for name in TINY {
        let source = tiny(name);
        let mut expected = source.text().trim_end().to_owned();
        expected += "\n\n";
        assert_eq!(written(&read(&source)), expected, "{name} through a corpus");
        assert_eq!(convert(&source, Format::CONLL, None).text(), expected, "{name} by record");
    }
}

#[test]
fn conll_to_json_lines_to_conll_keeps_tokens_and_tags() {
    for name in TINY {
        let source = tiny(name);
        let json = convert(&source, Format::JSONL, None);
        let back = convert(&json, Format::CONLL, None);
        assert_eq!(spelled(&read(&back)), spelled(&read(&source)), "{name}");
    }
}

#[test]
fn iob1_to_iob2_to_iobes_to_iob1_is_the_identity() {
    let source = tiny("conll2003.conll");
    let mut there = convert(&source, Format::CONLL, None);
    let first = there.text().to_owned();
    for scheme in [Scheme::Iob2, Scheme::Iobes, Scheme::Iob1] {
        there = convert(&there, Format::CONLL, Some(scheme));
        assert_eq!(read(&there).scheme(), scheme);
    }
    assert_eq!(there.text(), first);
}

#[test]
fn line_ends_byte_order_marks_and_blank_lines_do_not_matter() {
    let plain = "Ada B-PER\nsang O\n\nOslo B-LOC\n\n";
    let wanted = spelled(&read(&Source::from_text("a", plain)));
    for text in [
        plain.replace('\n', "\r\n"),
        format!("\u{feff}{plain}"),
        plain.trim_end().to_owned(),
        plain.replace("\n\n", "\n\n\n \n\t\n"),
        format!("\n\n{plain}"),
        plain.replace(' ', "\t"),
        plain.replace(' ', "   "),
        plain.replace("O\n", "O  \n"),
    ] {
        assert_eq!(spelled(&read(&Source::from_text("b", text.clone()))), wanted, "{text:?}");
    }
}

#[test]
fn comments_are_kept_and_a_hash_can_be_a_token() {
    let text = "# id 7\n# O\nmusic B-X\n\n# the end\n";
    let corpus = read(&Source::from_text("a", text));
    assert_eq!(corpus.sentences().len(), 1);
    assert_eq!(&*corpus.sentences()[0].lines_before()[0], "# id 7");
    assert_eq!(corpus.sentences()[0].tokens()[0].as_str(), "#");
    assert_eq!(written(&corpus), text, "the comment at the end is kept too");
}

/// Generates random tokens, of which many are unusual.
fn token() -> impl Strategy<Value = String> {
    let odd = prop::sample::select(vec![
        "#",
        "# id",
        "-DOCSTART- x",
        "-DOCSTART-x",
        "\u{200b}",
        "\u{feff}",
        "\u{2028}",
        "O",
        "B-X",
        "\"",
        "\\",
        "{",
        "a b",
        "\u{a0}",
        "é",
        "e\u{301}",
        "👩‍👩‍👧",
        " x",
        "x ",
        "\u{b}",
        "\u{85}",
    ]);
    prop_oneof![odd.prop_map(str::to_owned), any::<String>(), "[a-zA-Z]{1,6}"]
        .prop_filter("a token", |text| Token::new(text).is_ok() && !text.contains('\0'))
}

fn corpus() -> impl Strategy<Value = Corpus> {
    let sentence = prop::collection::vec((token(), 0..3u8, any::<bool>()), 1..7);
    let name = "[^\\s\\x00-\\x20-][^\\s\\x00-\\x20]{0,5}";
    let names = prop::collection::vec(name, 2..=2);
    (prop::collection::vec(sentence, 1..5), names, prop::sample::select(Scheme::ALL.to_vec()))
        .prop_map(|(sentences, names, scheme)| {
            let mut types = EntityTypes::default();
            let kinds: Vec<_> = names.iter().map(|name| types.intern(name)).collect();
            let make = |rows: Vec<(String, u8, bool)>| {
                let mut found: Vec<Mention> = Vec::new();
                for (at, (_, kind, joins)) in rows.iter().enumerate() {
                    let Some(&entity_type) = kinds.get(usize::from(*kind)) else { continue };
                    match found.last_mut() {
                        Some(m) if *joins && m.tokens.end == at && m.entity_type == entity_type => {
                            m.tokens.end += 1;
                        }
                        _ => found.push(Mention { entity_type, tokens: at..at + 1 }),
                    }
                }
                let mut tags = vec![Tag::Outside; rows.len()];
                write_tags(found, scheme, &mut tags);
                let tokens = rows.iter().map(|(text, ..)| Token::new(text).unwrap()).collect();
                Sentence::new(tokens, tags).unwrap()
            };
            let sentences = sentences.into_iter().map(make).collect();
            Corpus::new(types, scheme, sentences).unwrap()
        })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn reading_what_was_written_is_the_identity(corpus in corpus()) {
        let source = Source::from_text("a", written(&corpus));
        let options = ReadOptions {
            format: Some(Format::CONLL),
            scheme: Some(corpus.scheme()),
            token_column: Some(1),
            tag_column: Some(2),
            ..ReadOptions::default()
        };
        let read = Corpus::read(&source, &options).unwrap();
        prop_assert_eq!(spelled(&read), spelled(&corpus));
        prop_assert_eq!(written(&read), written(&corpus));
    }

    #[test]
    fn json_lines_hold_every_corpus(corpus in corpus()) {
        let source = Source::from_text("random", written(&corpus));
        let json = convert(&source, Format::JSONL, None);
        let options = ReadOptions { scheme: Some(corpus.scheme()), ..ReadOptions::default() };
        prop_assert_eq!(spelled(&Corpus::read(&json, &options).unwrap()), spelled(&corpus));
    }

    #[test]
    fn any_text_is_read_or_refused_but_never_crashes(text in any::<String>()) {
        let source = Source::from_text("a", text);
        for format in [Format::CONLL, Format::JSONL] {
            let options = ReadOptions { format: Some(format), ..ReadOptions::default() };
            if let Ok(corpus) = Corpus::read(&source, &options) {
                prop_assert!(corpus.sentences().iter().all(|s| !s.tokens().is_empty()));
            }
        }
    }
}
