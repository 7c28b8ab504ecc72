//! Tests of tagging on several threads, with 8-bit weights, and on a GPU.

use crate::support::{TEXT, corpus, settings, train};
use melm::Error;
use melm::stage::Control;
use melm::tagger::{ReadOn, TaggedSentence, TaggerHead, TaggerModel};
use melm_nn::cuda::{Cuda, CudaSettings, Precision};
use melm_nn::device::Device;
use melm_text::Tag;

fn trained() -> TaggerModel {
    let dir = tempfile::tempdir().unwrap();
    let settings = settings(TaggerHead::Crf);
    train(dir.path(), &corpus(TEXT), &settings, &mut |_| Control::Continue).unwrap().tagger
}

/// Sentences of different lengths, also longer than the model, and enough of them for all threads.
fn sentences() -> Vec<Vec<&'static str>> {
    let words =
        ["Ada", "Lovelace", "is", "not", "in", "Bonn", ".", "Konrad", "Zuse", "saw", "Rotterdam"];
    (0..300)
        .map(|at| (0..=at * 7 % 60).map(|token| words[(token * 5 + at) % words.len()]).collect())
        .collect()
}

/// Returns all results of `tag_each`, in the order of the sentences.
fn tag<'a>(tagger: &TaggerModel, on: impl Into<ReadOn<'a>>) -> Vec<TaggedSentence> {
    let sentences = sentences();
    let mut found = vec![None; sentences.len()];
    let truncation = tagger.tag_each(on, &sentences, &mut |at, tagged| {
        assert!(found[at].replace(tagged).is_none(), "each sentence is read once");
    });
    assert!(truncation.unwrap().n_windowed > 0);
    found.into_iter().map(Option::unwrap).collect()
}

fn tags(tagged: &[TaggedSentence]) -> Vec<Vec<Tag>> {
    tagged.iter().map(|one| one.tags.clone()).collect()
}

#[test]
fn any_number_of_threads_gives_the_same_bits() {
    let tagger = trained();
    let wanted = tag(&tagger, &Device::cpu(1));
    let int8 = tagger.quantize().unwrap();
    let wanted_int8 = tag(&tagger, ReadOn::new(&Device::cpu(1), Some(&int8)));
    for n_threads in [2, 5, 16] {
        let device = Device::cpu(n_threads);
        assert!(tag(&tagger, &device) == wanted);
        assert!(tag(&tagger, ReadOn::new(&device, Some(&int8))) == wanted_int8);
        let mut found = vec![Vec::new(); wanted.len()];
        tagger.find_tags(&device, &sentences(), &mut |at, tags| found[at] = tags).unwrap();
        assert!(found == tags(&wanted));
    }
}

#[test]
fn a_trained_tagger_finds_nearly_the_same_tags_with_8_bit_weights() {
    let tagger = trained();
    let int8 = tagger.quantize().unwrap();
    let device = Device::cpu(2);
    let (wanted, found) = (tag(&tagger, &device), tag(&tagger, ReadOn::new(&device, Some(&int8))));
    let all = || wanted.iter().zip(&found);
    let n: usize = wanted.iter().map(|one| one.tags.len()).sum();
    let same = |(a, b): (&TaggedSentence, &TaggedSentence)| {
        a.tags.iter().zip(&b.tags).filter(|(a, b)| a == b).count()
    };
    let n_same: usize = all().map(same).sum();
    assert!(n_same * 100 >= n * 98, "{n_same} of {n}");
    assert!(all().any(|(a, b)| a.probabilities != b.probabilities), "8-bit weights were used");
}

#[test]
fn a_gpu_whose_emissions_other_threads_decode_finds_the_same_tags() {
    if !cfg!(all(target_arch = "x86_64", unix)) {
        return;
    }
    let tagger = trained();
    let settings = CudaSettings { precision: Precision::F32, ..CudaSettings::default() };
    let gpu = Device::from(Cuda::emulated(&settings).unwrap());
    assert!(tags(&tag(&tagger, &gpu)) == tags(&tag(&tagger, &Device::cpu(2))));
}

#[test]
fn tagging_stops_within_a_chunk_on_one_thread_several_threads_and_a_gpu() {
    let dir = tempfile::tempdir().unwrap();
    trained().save(dir.path()).unwrap();
    let mut devices = vec![Device::cpu(1), Device::cpu(3)];
    if cfg!(all(target_arch = "x86_64", unix)) {
        devices.push(Device::from(Cuda::emulated(&CudaSettings::default()).unwrap()));
    }
    for device in devices {
        let tagger = melm::Tagger::open(dir.path()).unwrap().with_device(device);
        // All sentences are one chunk, so the second call is after a batch within it.
        for stop in [1, 2] {
            let mut n_calls = 0;
            let outcome = tagger.tag_in_chunks(&sentences(), &mut |done, _| {
                n_calls += 1;
                assert_eq!(done, 0, "the chunk is not finished");
                if n_calls == stop { Control::Stop } else { Control::Continue }
            });
            assert_eq!(n_calls, stop);
            assert!(matches!(outcome, Err(Error::Interrupted)));
        }
    }
}
