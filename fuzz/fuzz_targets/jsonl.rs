//! Reads arbitrary bytes as JSON lines. If they are accepted, writing the sentences and reading them again must give
//! the same sentences.
#![no_main]

use libfuzzer_sys::fuzz_target;
use melm_text::jsonl::JsonlWriter;
use melm_text::{Encoding, Format, ReadOptions, Source, Survey};

type Sentences = Vec<Vec<(String, String)>>;

/// Returns the sentences of a file and the file as our writer writes it, or `None` if the file has problems.
fn rewrite(source: &Source) -> Option<(Sentences, Vec<u8>)> {
    let options = ReadOptions {
        format: Some(Format::JSONL),
        tokens_key: Some("tokens".into()),
        tags_key: Some("ner_tags".into()),
        names: Some(["O", "B-PER", "I-PER"].map(str::to_owned).to_vec()),
        ..ReadOptions::default()
    };
    let mut writer = JsonlWriter::new(Vec::new(), None, "ner_tags", None);
    let mut sentences = Vec::new();
    let survey = Survey::read(source, &options, |record, types, _| {
        let tags = record.tags.iter().map(|&tag| {
            // Always IOBES, so that the text of a tag does not depend on the scheme of the records read so far.
            types.spell(tag, melm_text::Scheme::Iobes).to_string()
        });
        sentences.push(record.tokens.iter().map(ToString::to_string).zip(tags).collect());
        writer.write(record, &record.tags, types).unwrap();
    });
    survey.ok()?.require_sound(source, true).ok()?;
    Some((sentences, writer.finish()))
}

fuzz_target!(|bytes: &[u8]| {
    let Ok(source) = Source::from_bytes("fuzz".into(), bytes.to_vec(), Encoding::Utf8) else {
        return;
    };
    let Some((sentences, out)) = rewrite(&source) else { return };
    let again = Source::from_bytes("again".into(), out, Encoding::Utf8).unwrap();
    assert_eq!(rewrite(&again).expect("our own output can be read").0, sentences);
});
