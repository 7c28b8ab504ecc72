//! Any bytes as JSON lines: read or refused; what is read is written and read again to the same.
#![no_main]

use libfuzzer_sys::fuzz_target;
use melm_text::jsonl::JsonlWriter;
use melm_text::{Encoding, Format, ReadOptions, Source, Survey};

fn rewrite(source: &Source) -> Option<Vec<u8>> {
    let options = ReadOptions {
        format: Some(Format::Jsonl),
        tokens_key: Some("tokens".into()),
        tags_key: Some("ner_tags".into()),
        names: Some(["O", "B-PER", "I-PER"].map(str::to_owned).to_vec()),
        ..ReadOptions::default()
    };
    let mut writer = JsonlWriter::new(Vec::new(), None, "ner_tags", None);
    let survey = Survey::read(source, &options, |record, types, _| {
        writer.write(record, &record.tags, types).unwrap();
    });
    survey.ok()?.require_sound(source, true).ok()?;
    Some(writer.finish())
}

fuzz_target!(|bytes: &[u8]| {
    let Ok(source) = Source::from_bytes("fuzz".into(), bytes.to_vec(), Encoding::Utf8) else {
        return;
    };
    let Some(out) = rewrite(&source) else { return };
    let again = Source::from_bytes("again".into(), out.clone(), Encoding::Utf8).unwrap();
    assert_eq!(rewrite(&again), Some(out));
});
