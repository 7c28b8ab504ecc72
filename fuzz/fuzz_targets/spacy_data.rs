//! Reads arbitrary bytes as the data of a `DocBin` before compression. The target `spacy` seldom changes a file without
//! breaking its compression.
#![no_main]

use std::io::Write;

use flate2::Compression;
use flate2::write::ZlibEncoder;
use libfuzzer_sys::fuzz_target;
use melm_text::spacy::read_doc_bin;

fuzz_target!(|bytes: &[u8]| {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::none());
    encoder.write_all(bytes).unwrap();
    let _ = read_doc_bin(&encoder.finish().unwrap());
});
