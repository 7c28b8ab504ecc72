//! Tests of tagging files whose sentences are read, tagged and written at the same time.

use crate::support::{TEXT, corpus, settings, train};
use melm::stage::Control;
use melm::tagger::{FileToTag, TagSummary, TaggerHead};
use melm::{Error, Tagger};
use melm_nn::cuda::{Cuda, CudaSettings, Precision};
use melm_nn::device::Device;
use melm_text::{ReadOptions, Source};

fn open(device: Device) -> Tagger {
    let dir = tempfile::tempdir().unwrap();
    let settings = settings(TaggerHead::Crf);
    let trained = train(dir.path(), &corpus(TEXT), &settings, &mut |_| Control::Continue).unwrap();
    trained.tagger.save(dir.path()).unwrap();
    Tagger::open(dir.path()).unwrap().with_device(device)
}

/// Returns a file of 2,200 short sentences with comments: two chunks of a GPU, or five of the CPU.
fn file() -> FileToTag {
    let words = ["Ada", "Bonn", "is", "Zuse", "."];
    let sentence = |at: usize| {
        let rows = (0..=at % 2).map(|token| format!("{} _ O\n", words[(at + token) % words.len()]));
        format!("# id {at}\n{}\n", rows.collect::<String>())
    };
    let text: String = (0..2_200).map(sentence).chain(["# the end\n".to_owned()]).collect();
    FileToTag::new(Source::from_text("test", text), &ReadOptions::default()).unwrap()
}

fn tag(tagger: &Tagger, with_probabilities: bool) -> (Vec<u8>, TagSummary) {
    let mut out = Vec::new();
    let mut positions = vec![0];
    let on_progress = &mut |done: u64, _: u64| {
        positions.push(done);
        Control::Continue
    };
    let summary = tagger.tag_file(&file(), with_probabilities, &mut out, on_progress).unwrap();
    assert!(positions.is_sorted(), "progress is reported in the order of the file");
    positions.dedup();
    assert!(positions.len() > 2, "progress is reported for each chunk");
    (out, summary)
}

#[test]
fn a_file_has_the_same_bytes_with_any_number_of_threads_and_on_a_gpu() {
    let mut tagger = open(Device::cpu(1));
    let wanted = [false, true].map(|with_probabilities| tag(&tagger, with_probabilities));
    let (text, summary) = &wanted[0];
    assert_eq!(summary.truncation.n_sentences, 2_200);
    assert!(text.ends_with(b"# the end\n"));
    assert!(!summary.mentions.is_empty(), "other sentences have other tags");
    for n_threads in [2, 5] {
        tagger = tagger.with_device(Device::cpu(n_threads));
        assert!([false, true].map(|with_probabilities| tag(&tagger, with_probabilities)) == wanted);
    }
    if cfg!(all(target_arch = "x86_64", unix)) {
        let settings = CudaSettings { precision: Precision::F32, ..CudaSettings::default() };
        tagger = tagger.with_device(Device::from(Cuda::emulated(&settings).unwrap()));
        assert!(tag(&tagger, false) == wanted[0]);
    }
}

#[test]
fn tagging_of_a_file_stops_if_the_observer_or_the_output_says_so() {
    let tagger = open(Device::cpu(2));
    let mut n_calls_after = 0;
    let outcome = tagger.tag_file(&file(), false, Vec::new(), &mut |done, total| {
        n_calls_after += u64::from(done > total / 2);
        if done > total / 2 { Control::Stop } else { Control::Continue }
    });
    assert!(matches!(outcome, Err(Error::Interrupted)));
    assert_eq!(n_calls_after, 1);
    let mut short = [0; 100];
    let full = tagger.tag_file(&file(), false, &mut short[..], &mut |_, _| Control::Continue);
    assert!(matches!(full, Err(Error::Text(melm_text::Error::Write { .. }))));
}

#[test]
fn a_lost_gpu_stops_the_tagging_of_a_file() {
    if !cfg!(all(target_arch = "x86_64", unix)) {
        return;
    }
    let settings = CudaSettings { precision: Precision::F32, ..CudaSettings::default() };
    // Each pass has one upload, so that the GPU is lost within the file.
    let lost = Cuda::emulated_until(&settings, 4).unwrap();
    let tagger = open(Device::cpu(2)).with_device(Device::from(lost));
    let outcome = tagger.tag_file(&file(), false, Vec::new(), &mut |_, _| Control::Continue);
    assert!(matches!(outcome, Err(Error::Engine(melm_nn::Error::Cuda { .. }))));
}
