//! Checks that every checkpoint format is read as torch reads it, bit for bit. The files were made by
//! `tools/make_weights_golden.py`.

use crate::folder::{Folder, all_bits, golden};
use melm_nn::Error;
use melm_nn::weights::{Checkpoint, ModelPart, Tensor, save};
use safetensors::SafeTensors;
use std::sync::Mutex;

/// Returns the bits that torch reads from the folder.
fn expected(name: &str) -> Vec<u32> {
    let bytes = std::fs::read(golden(&format!("{name}.f32"))).unwrap();
    bytes.as_chunks().0.iter().map(|&bytes| u32::from_le_bytes(bytes)).collect()
}

#[test]
fn f32_f16_bf16_int8_and_shards_read_as_torch_reads_them() {
    for name in ["f32", "f16", "bf16", "int8", "sharded", "bare"] {
        let checkpoint = Checkpoint::open(&golden(name)).unwrap();
        assert_eq!(all_bits(&checkpoint).unwrap(), expected(name), "{name}");
    }
}

#[test]
fn names_of_old_checkpoints_are_translated() {
    let folder = Folder::copy_of("decoder");
    let checkpoint = folder.open().unwrap();
    assert!(checkpoint.contains("roberta.embeddings.word_embeddings.weight"));
    assert!(checkpoint.contains("lm_head.bias"));
    assert!(!checkpoint.contains("lm_head.decoder.weight"));
    // The position ids are stored in the file and listed, but cannot be read as a weight.
    let positions = "roberta.embeddings.position_ids";
    let error = checkpoint.read_into(positions, &[1, 9], &mut [0.0; 9]).unwrap_err();
    assert!(matches!(error, Error::Dtype { ref dtype, .. } if dtype == "I64"), "{error}");

    let ours = Checkpoint::open(&golden("f32")).unwrap();
    for name in ours.names() {
        let shape = ours.shape(name).unwrap();
        let mut out = [vec![0.0f32; shape.iter().product()], vec![0.0; shape.iter().product()]];
        ours.read_into(name, shape, &mut out[0]).unwrap();
        checkpoint.read_into(name, shape, &mut out[1]).unwrap();
        assert!(out[0].iter().zip(&out[1]).all(|(a, b)| a.to_bits() == b.to_bits()), "{name}");
    }
}

#[test]
fn a_bare_encoder_lists_its_missing_head() {
    let bare = Checkpoint::open(&golden("bare")).unwrap();
    assert_eq!(bare.missing(ModelPart::Encoder), [""; 0]);
    let head = ["dense.weight", "dense.bias", "layer_norm.weight", "layer_norm.bias", "bias"];
    assert_eq!(bare.missing(ModelPart::LmHead), head.map(|name| format!("lm_head.{name}")));
    let whole = Checkpoint::open(&golden("f32")).unwrap();
    assert_eq!(whole.missing(ModelPart::LmHead), [""; 0]);
}

/// The bytes of embedded models. They are kept, so that a sanitizer does not report them as lost.
static EMBEDDED: Mutex<Vec<&[u8]>> = Mutex::new(Vec::new());

#[test]
fn an_embedded_model_reads_like_a_folder_at_any_alignment() {
    let folder = Folder::copy_of("int8");
    let config = String::from_utf8(folder.read("config.json")).unwrap();
    for offset in 0..4 {
        let mut bytes = vec![0; offset];
        bytes.extend(folder.read("model.safetensors"));
        let bytes: &'static [u8] = &bytes.leak()[offset..];
        EMBEDDED.lock().unwrap().push(bytes);
        let checkpoint = Checkpoint::from_bytes(&config, bytes).unwrap();
        assert_eq!(all_bits(&checkpoint).unwrap(), expected("int8"), "offset {offset}");
    }
}

#[test]
fn a_saved_model_reads_back_and_is_valid_safetensors() {
    let original = Checkpoint::open(&golden("f16")).unwrap();
    let values: Vec<(&str, &[usize], Vec<f32>)> = original
        .names()
        .map(|name| {
            let shape = original.shape(name).unwrap();
            let mut out = vec![0.0; shape.iter().product()];
            original.read_into(name, shape, &mut out).unwrap();
            (name, shape, out)
        })
        .collect();
    let tensors: Vec<Tensor<'_>> =
        values.iter().map(|&(name, shape, ref data)| Tensor { name, shape, data }).collect();

    let folder = Folder::copy_of("bare"); // saving replaces the model in this folder
    let mapped = folder.open().unwrap();
    save(folder.path(), original.config(), &tensors).unwrap();
    assert_eq!(
        all_bits(&mapped).unwrap(),
        expected("bare"),
        "an open memory map keeps the old file"
    );

    assert_eq!(all_bits(&folder.open().unwrap()).unwrap(), expected("f16"));
    let bytes = folder.read("model.safetensors");
    let outside = SafeTensors::deserialize(&bytes).unwrap();
    assert_eq!(outside.len(), tensors.len());
    let mut files: Vec<_> =
        folder.path().read_dir().unwrap().map(|file| file.unwrap().file_name()).collect();
    files.sort();
    assert_eq!(files, ["config.json", "model.safetensors"], "no temporary file is left");
}

#[test]
fn a_tensor_that_does_not_fit_its_shape_is_not_saved() {
    let config = Checkpoint::open(&golden("f32")).unwrap().config().clone();
    let dir = tempfile::tempdir().unwrap();
    let tensor = |name, shape| Tensor { name, shape, data: &[0.0; 6] };
    for shape in [&[2, 2][..], &[usize::MAX, 2], &[]] {
        let error = save(dir.path(), &config, &[tensor("x", shape)]).unwrap_err();
        assert!(matches!(error, Error::TensorLength { .. }), "{error}");
    }
    let twice = [tensor("x", &[6]), tensor("x", &[2, 3])];
    assert!(matches!(save(dir.path(), &config, &twice), Err(Error::DuplicateTensor { .. })));
    assert_eq!(dir.path().read_dir().unwrap().count(), 0, "nothing is written");
}

#[test]
fn a_folder_that_cannot_be_written_is_named() {
    let config = Checkpoint::open(&golden("f32")).unwrap().config().clone();
    let file = tempfile::NamedTempFile::new().unwrap();
    let error = save(&file.path().join("model"), &config, &[]).unwrap_err();
    assert!(matches!(error, Error::Write { .. }), "{error}");
}
