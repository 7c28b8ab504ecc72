//! Errors in corpora, unlabelled texts and binary files.

use std::fs;
use std::io::{Read, Write};
use std::path::Path;

use flate2::Compression;
use flate2::read::ZlibDecoder;
use flate2::write::ZlibEncoder;

use melm_text::parquet_file::{TagColumn, TaggedRow, write_table};

use super::{AUGMENT, Case, check, nothing, tiny_folder, write};
use crate::support::melm;

fn failing(
    variant: &'static str,
    command: &str,
    message: &'static str,
    prepare: fn(&Path),
) -> Case {
    Case { variant, prepare, command: command.to_owned(), exit: 1, message }
}

#[test]
fn wrong_corpora_are_refused() {
    check(&[
        failing("melm-text::error::Read", "check none.conll", "cannot read `none.conll`", nothing),
        failing("melm-text::error::Data", "check a.conll", "2 problems in `a.conll`", |folder| {
            write(folder, "a.conll", "a b c\nd e\n");
        }),
        failing(
            "melm-text::error::Mismatch",
            "score train.conll a.conll",
            "the tokens differ",
            |folder| {
                write(folder, "a.conll", "x O\n");
            },
        ),
        failing(
            "melm-text::error::NoName",
            "augment ids.jsonl --names O,B-PER --dev ids.jsonl -o out --model model --config plan.toml --method label-wise --name-list PER=names.txt --set names.share=1 --set filter.mode=off",
            "the tag `I-PER` has no id",
            |folder| {
                let line = |tokens: &str| format!("{{\"tokens\":{tokens},\"ner_tags\":[1,0]}}\n");
                write(folder, "ids.jsonl", line("[\"Ada\",\"sang\"]") + &line("[\"Bob\",\"ran\"]"));
                write(folder, "names.txt", "Grace Hopper\n");
            },
        ),
        failing("melm-text::problem::TagCount", "check a.jsonl", "2 tokens but 1 tag", |folder| {
            write(folder, "a.jsonl", "{\"tokens\":[\"a\",\"b\"],\"tags\":[\"O\"]}\n");
        }),
        failing(
            "melm-text::problem::Record",
            "check a.json --format label-studio",
            "`data` is not an object with a text",
            |folder| write(folder, "a.json", "[{\"data\":{}}]"),
        ),
        failing(
            "melm-text::spans::fault::Overlap",
            "convert a.jsonl --format doccano --to conll --overlaps refuse",
            "`Ada Byron` overlaps `Byron sang`",
            |folder| {
                let text = r#"{"text":"Ada Byron sang","label":[[0,9,"PER"],[4,14,"LOC"]]}"#;
                write(folder, "a.jsonl", text);
            },
        ),
        failing(
            "melm-text::spans::fault::NoType",
            "check a.jsonl --format doccano",
            "the span has no entity type",
            |folder| {
                write(folder, "a.jsonl", "{\"text\":\"Ada sang\",\"label\":[[0,3,\"\"]]}\n");
            },
        ),
        failing(
            "melm-text::tag::LongType",
            "check a.conll",
            "is not a tag: its entity type has 1001 bytes, and the limit is 1000",
            |folder| write(folder, "a.conll", format!("Ada B-{}\n", "x".repeat(1001))),
        ),
        failing(
            "melm-text::problem::NoTokens",
            "check a.jsonl",
            "the sentence has no tokens",
            |folder| {
                write(folder, "a.jsonl", "{\"tokens\":[],\"tags\":[]}\n");
            },
        ),
        failing(
            "melm-text::spans::fault::LongText",
            "check a.jsonl --format doccano",
            "the text is longer than 16 MiB",
            |folder| {
                let text = "a ".repeat(8 << 20);
                write(folder, "a.jsonl", format!("{{\"text\":\"{text}b\",\"label\":[]}}\n"));
            },
        ),
    ]);
}

#[test]
fn unsuitable_text_is_refused() {
    let command = format!("{AUGMENT} --unlabelled text.txt");
    check(&[
        failing(
            "melm-text::problem::NoTextKey",
            &command.replace("text.txt", "text.jsonl"),
            "the object has no key `tokens` and no key `text`",
            |folder| write(folder, "text.jsonl", "{\"x\":[\"Ada\"]}\n"),
        ),
        failing(
            "melm-text::problem::UnspacedScript and melm-text::tokenizer::script::UnspacedText",
            &command,
            "the text is in Chinese (Han) script, which does not separate words by spaces",
            |folder| write(folder, "text.txt", "東京都は日本の首都です。\n"),
        ),
        failing(
            "melm-text::problem::LongLine",
            &command,
            "the line is longer than 1 MiB",
            |folder| {
                write(folder, "text.txt", "a ".repeat(600_000));
            },
        ),
        failing(
            "melm-text::error::TooLarge",
            &command,
            "`text.txt` contains more than 10000000 tokens",
            |folder| {
                write(folder, "text.txt", "a\n".repeat(10_000_001));
            },
        ),
    ]);
}

/// Writes the `DocBin` of the test data as `a.spacy`, with other data.
fn write_doc_bin(folder: &Path, edit: impl FnOnce(&mut Vec<u8>)) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/spacy/usual.spacy");
    let mut data = Vec::new();
    ZlibDecoder::new(&fs::read(path).unwrap()[..]).read_to_end(&mut data).unwrap();
    edit(&mut data);
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(&data).unwrap();
    write(folder, "a.spacy", encoder.finish().unwrap());
}

/// Replaces the first attribute of a token that has a value.
fn replace_attribute(data: &mut [u8], from: u64, to: u64) {
    let at = data.windows(8).position(|window| window == from.to_le_bytes()).unwrap();
    data[at..at + 8].copy_from_slice(&to.to_le_bytes());
}

#[test]
fn damaged_doc_bins_are_refused() {
    check(&[
        failing(
            "melm-text::spacy::fault::UnknownIob",
            "check a.spacy",
            "document 1, token 1: ENT_IOB is 9, expected 0 to 3",
            |folder| write_doc_bin(folder, |data| replace_attribute(data, 3, 9)),
        ),
        failing(
            "melm-text::spacy::fault::NotStarted",
            "check a.spacy",
            "document 1, token 1: a mention continues that has not started",
            |folder| write_doc_bin(folder, |data| replace_attribute(data, 3, 1)),
        ),
        failing(
            "melm-text::spacy::fault::Mismatch",
            "check a.spacy",
            "the parts of the DocBin do not fit together",
            |folder| {
                write_doc_bin(folder, |data| {
                    // After the key come two bytes that state the length, and the number of tokens of the first document.
                    let at = data.windows(7).position(|window| window == b"lengths").unwrap();
                    data[at + 9] += 1;
                });
            },
        ),
        failing(
            "melm-text::spacy::fault::NoString",
            "check a.spacy",
            "document 1, token 1: the DocBin has no string with the id",
            |folder| {
                write_doc_bin(folder, |data| {
                    // After the key come three bytes that state the length, and the id of the first token.
                    let at = data.windows(6).position(|window| window == b"tokens").unwrap();
                    data[at + 9] ^= 1;
                });
            },
        ),
        failing(
            "melm-text::spacy::fault::TooLarge",
            "check a.spacy",
            "the DocBin contains more than",
            |folder| {
                write_doc_bin(folder, |data| *data = vec![0; 100 << 20]);
            },
        ),
    ]);
}

/// Writes a parquet file of the test data as `a.parquet`, with other bytes.
fn write_parquet(folder: &Path, edit: impl FnOnce(&mut Vec<u8>)) {
    let path = "../../testdata/parquet/uncompressed.parquet";
    let mut bytes = fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join(path)).unwrap();
    edit(&mut bytes);
    write(folder, "a.parquet", bytes);
}

/// Returns the position of the first token of the file that [`write_parquet`] changes.
fn first_token(bytes: &[u8]) -> usize {
    bytes.windows(6).position(|window| window == b"Angela").unwrap()
}

#[test]
fn damaged_parquet_files_are_refused() {
    check(&[
        failing(
            "melm-text::parquet_file::fault::Damaged",
            "check a.parquet",
            "the parquet file is damaged: the header of a page is not valid",
            |folder| {
                write_parquet(folder, |bytes| {
                    let at = first_token(bytes);
                    bytes[at - 20] = 0xff;
                });
            },
        ),
        failing(
            "melm-text::parquet_file::fault::NotUtf8",
            "check a.parquet",
            "row 1: a string of `tokens` is not UTF-8",
            |folder| {
                write_parquet(folder, |bytes| {
                    let at = first_token(bytes);
                    bytes[at] = 0xff;
                });
            },
        ),
        failing(
            "melm-text::parquet_file::fault::WrongType",
            "check a.parquet --tokens-key id",
            "the column `id` is not a list of strings",
            |folder| write_parquet(folder, |_| {}),
        ),
        failing(
            "melm-text::parquet_file::fault::TooLarge",
            "check a.parquet",
            "the parquet file contains more than 256 MiB of text",
            |folder| {
                // The dictionary of the file has the token once.
                let token = "x".repeat(1 << 20);
                let row = TaggedRow { tokens: vec![&token; 300], tags: vec![0; 300] };
                let classes = vec!["O".to_owned()];
                let tags = TagColumn { name: "ner_tags", classes: &classes };
                write(folder, "a.parquet", write_table("tokens", tags, &[row]));
            },
        ),
    ]);
}

#[test]
fn the_limits_of_files_can_be_raised() {
    let folder = tiny_folder();
    write_doc_bin(folder.path(), |data| *data = vec![0; 65 << 20]);
    let messages = |factor: &str| {
        let mut command = melm(folder.path(), "check a.spacy");
        let output = command.env("MELM_LIMIT_FACTOR", factor).output().unwrap();
        (output.status.code(), String::from_utf8(output.stderr).unwrap())
    };
    let (_, usual) = messages("");
    assert!(usual.contains("the DocBin contains more than 64 MiB"), "{usual}");
    let (_, raised) = messages("2");
    assert!(raised.contains("the file is not a spaCy DocBin"), "{raised}");
    for wrong in ["0", "1001", "-1", "2.5", "x"] {
        let (code, refused) = messages(wrong);
        assert_eq!(code, Some(2), "{refused}");
        assert!(refused.contains("expected a whole number from 1 to 1000"), "{refused}");
    }
}
