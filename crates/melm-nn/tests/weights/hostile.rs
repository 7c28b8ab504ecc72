//! Hostile and damaged model folders. Checks that each kind of damage causes its own error and never a panic.

use crate::folder::{Folder, all_bits, golden};
use melm_nn::Error;
use melm_nn::lstm::{LstmConfig, LstmLm};
use melm_nn::seq2seq::{Seq2Seq, Seq2SeqConfig, StackConfig};
use melm_nn::tagger::{HeadKind, Tagger, TaggerSettings};
use melm_nn::weights::Checkpoint;
use proptest::prelude::*;
use serde_json::{Value, json};

const TABLE: &str = "roberta.embeddings.word_embeddings.weight";

/// Asserts that opening a folder fails with the given variant of the error, and that the message contains the given
/// text.
macro_rules! assert_error {
    ($folder:expr, $variant:pat, $says:expr) => {
        let error = $folder.error();
        assert!(matches!(error, $variant), "{error:?}");
        assert!(error.to_string().contains($says), "{error}");
    };
}

#[test]
fn a_missing_folder_or_configuration_is_named() {
    let folder = Folder::copy_of("f32");
    folder.remove("config.json");
    assert_error!(folder, Error::Read { .. }, "config.json");
}

#[test]
fn a_folder_without_weights_says_what_it_needs() {
    let folder = Folder::copy_of("f32");
    folder.remove("model.safetensors");
    assert_error!(folder, Error::NoWeights { .. }, "model.safetensors");
    folder.write("pytorch_model.bin", "");
    assert_error!(folder, Error::PickleOnly { .. }, "save_pretrained");
}

#[test]
fn a_git_lfs_pointer_is_recognised() {
    let folder = Folder::copy_of("f32");
    folder.write("model.safetensors", "version https://git-lfs.github.com/spec/v1\noid sha256:0\n");
    assert_error!(folder, Error::LfsPointer { .. }, "git lfs pull");
}

#[test]
fn a_truncated_file_is_refused() {
    let folder = Folder::copy_of("f32");
    let bytes = folder.read("model.safetensors");
    for length in (0..bytes.len()).step_by(97).chain([1, 7, 8, 9, bytes.len() - 1]) {
        folder.write("model.safetensors", &bytes[..length]);
        assert_error!(folder, Error::Safetensors { .. }, "truncated");
    }
}

#[test]
fn an_impossible_header_length_is_refused() {
    let folder = Folder::copy_of("f32");
    let mut bytes = folder.read("model.safetensors");
    for length in [0, 1, bytes.len() as u64, u64::from(u32::MAX), u64::MAX - 7, u64::MAX] {
        bytes[..8].copy_from_slice(&length.to_le_bytes());
        folder.write("model.safetensors", &bytes);
        assert_error!(folder, Error::Safetensors { .. }, "not a valid safetensors file");
    }
}

#[test]
fn offsets_that_overlap_or_lie_outside_the_file_are_refused() {
    for offsets in
        [json!([0, 4]), json!([4, 0]), json!([1, 265]), json!([0, u64::MAX]), json!([-1, 3])]
    {
        let folder = Folder::copy_of("f32");
        folder.edit_header(|header| header[TABLE]["data_offsets"] = offsets);
        assert_error!(folder, Error::Safetensors { .. }, "download it again");
    }
}

#[test]
fn shapes_whose_product_overflows_are_refused() {
    for shape in [json!([u64::MAX, 6]), json!([1u64 << 33, 1u64 << 33]), json!([1u64 << 62, 6])] {
        let folder = Folder::copy_of("f32");
        folder.edit_header(|header| header[TABLE]["shape"] = shape);
        assert_error!(folder, Error::Safetensors { .. }, "valid");
    }
}

#[test]
fn a_shape_other_than_the_configuration_implies_is_refused() {
    let folder = Folder::copy_of("f32");
    folder.edit_header(|header| header[TABLE]["shape"] = json!([6, 11]));
    assert_error!(folder, Error::Shape { .. }, "[6, 11], expected [11, 6]");
}

#[test]
fn a_caller_that_expects_another_shape_is_refused() {
    let checkpoint = Folder::copy_of("f32").open().unwrap();
    let error = checkpoint.read_into(TABLE, &[66], &mut [0.0; 66]).unwrap_err();
    assert!(matches!(error, Error::Shape { .. }), "{error}");
    let error = checkpoint.read_into("no.such", &[1], &mut [0.0]).unwrap_err();
    assert!(matches!(error, Error::MissingTensors { .. }), "{error}");
}

#[test]
fn an_incomplete_encoder_is_refused_with_the_first_name() {
    let folder = Folder::copy_of("f32");
    folder.edit_header(|header| {
        let header = header.as_object_mut().unwrap();
        let query = header.remove("roberta.encoder.layer.1.attention.self.query.weight").unwrap();
        header.insert("something.else".into(), query);
    });
    assert_error!(folder, Error::MissingTensors { .. }, "layer.1.attention.self.query.weight");
}

#[test]
fn another_architecture_is_refused_by_its_type() {
    let folder = Folder::copy_of("f32");
    let config = String::from_utf8(folder.read("config.json")).unwrap();
    folder.write("config.json", config.replace("xlm-roberta", "rembert"));
    assert_error!(folder, Error::Config { .. }, "`model_type` is `\"rembert\"`");
}

#[test]
fn weights_in_another_number_type_are_refused() {
    let folder = Folder::copy_of("f32");
    folder.edit_header(|header| header[TABLE]["dtype"] = json!("I32"));
    assert_error!(folder, Error::Dtype { .. }, "I32");
}

#[test]
fn a_number_that_is_not_finite_is_found() {
    let folder = Folder::copy_of("f32");
    let mut bytes = folder.read("model.safetensors");
    let end = bytes.len();
    bytes[end - 4..].copy_from_slice(&f32::NAN.to_le_bytes());
    folder.write("model.safetensors", bytes);
    let error = all_bits(&folder.open().unwrap()).unwrap_err();
    assert!(matches!(error, Error::NotFinite { .. }), "{error}");
}

#[test]
fn int8_needs_one_finite_f32_scale_for_each_row() {
    let scale = format!("{TABLE}.scale");
    let check = |says: &str, edit: &dyn Fn(&mut Value)| {
        let folder = Folder::copy_of("int8");
        folder.edit_header(edit);
        assert_error!(folder, Error::Scale { .. }, says);
    };
    check("missing", &|header| {
        let stored = header.as_object_mut().unwrap().remove(&scale).unwrap();
        header["elsewhere"] = stored;
    });
    check("F32", &|header| header[&scale]["dtype"] = json!("I32"));
    check("row", &|header| header[&scale]["shape"] = json!([1, 11]));
}

#[test]
fn a_scale_that_is_not_finite_is_refused() {
    let folder = Folder::copy_of("int8");
    let mut place = 0;
    folder.edit_header(|header| {
        let bytes = header[format!("{TABLE}.scale")]["data_offsets"][0].as_u64().unwrap();
        place = usize::try_from(bytes).unwrap();
    });
    let mut bytes = folder.read("model.safetensors");
    let header = usize::try_from(u64::from_le_bytes(bytes[..8].try_into().unwrap())).unwrap();
    bytes[8 + header + place..][..4].copy_from_slice(&f32::NAN.to_le_bytes());
    folder.write("model.safetensors", bytes);
    assert_error!(folder, Error::Scale { .. }, "finite");
}

/// Returns a folder and the text of its `config.json`. The folder contains the weights of the test mBART. The
/// configuration has slightly more than 2^62 parameters, so that their size in bytes overflows.
fn hostile_mbart() -> (tempfile::TempDir, String) {
    let folder = tempfile::tempdir().unwrap();
    let stored = golden("../seq2seq/mbart");
    std::fs::copy(stored.join("model.safetensors"), folder.path().join("model.safetensors"))
        .unwrap();
    let config = std::fs::read_to_string(stored.join("config.json")).unwrap();
    let mut config: Value = serde_json::from_str(&config).unwrap();
    for (key, value) in [
        ("d_model", 1 << 24),
        ("encoder_layers", 1 << 10),
        ("decoder_layers", 1 << 10),
        ("encoder_attention_heads", 1),
        ("decoder_attention_heads", 1),
        ("encoder_ffn_dim", 1 << 24),
        ("decoder_ffn_dim", 1 << 24),
    ] {
        config[key] = json!(value);
    }
    let text = config.to_string();
    std::fs::write(folder.path().join("config.json"), &text).unwrap();
    (folder, text)
}

#[test]
fn an_mbart_configuration_is_compared_with_the_weights_before_anything_is_allocated() {
    let (folder, _) = hostile_mbart();
    let error = Seq2Seq::open(folder.path(), 3, 1).err().expect("the sizes overflow");
    assert!(matches!(error, Error::Shape { .. }), "{error}");
}

#[test]
fn an_mbart_whose_size_overflows_is_out_of_memory() {
    let (_, text) = hostile_mbart();
    let config = Seq2SeqConfig::parse("config.json".as_ref(), &text).unwrap();
    let error = Seq2Seq::random(&config, 1).err().expect("the sizes overflow");
    assert!(matches!(error, Error::OutOfMemory { .. }), "{error}");
    let stack = StackConfig { n_layers: usize::MAX, ..config.encoder };
    let error = Seq2Seq::random(&Seq2SeqConfig { encoder: stack, ..config }, 1).err();
    assert!(matches!(error, Some(Error::Limit { .. })), "{error:?}");
}

#[test]
fn an_lstm_whose_size_overflows_is_an_error() {
    let config =
        LstmConfig { vocab_size: 9, embedding_size: 8, hidden_size: 16, n_layers: 1, dropout: 0.0 };
    let error = LstmLm::random(&LstmConfig { n_layers: 1_000_000_000, ..config }, 1).err();
    assert!(matches!(error, Some(Error::Limit { .. })), "{error:?}");
    for hostile in [
        LstmConfig { hidden_size: usize::MAX, ..config },
        LstmConfig { hidden_size: 1 << 30, ..config },
        LstmConfig { vocab_size: 1 << 62, ..config },
    ] {
        let error = LstmLm::random(&hostile, 1).err();
        assert!(matches!(error, Some(Error::OutOfMemory { .. })), "{error:?}");
    }
}

#[test]
fn a_tagger_whose_head_is_of_another_shape_is_refused_before_anything_is_allocated() {
    let checkpoint = Folder::copy_of("f32").open().unwrap();
    let settings = |n_tags| TaggerSettings { n_tags, kind: HeadKind::Crf, allowed: None };
    let error = Tagger::open(&checkpoint, settings(1 << 40), 1).err();
    assert!(matches!(error, Some(Error::Limit { .. })), "{error:?}");
    let tagger = Checkpoint::open(&golden("../tagger/model")).unwrap();
    let error = Tagger::open(&tagger, settings(1 << 14), 1).err();
    assert!(matches!(error, Some(Error::Shape { .. })), "{error:?}");
}

fn edit_index(folder: &Folder, edit: impl FnOnce(&mut Value)) {
    let name = "model.safetensors.index.json";
    let mut index = serde_json::from_slice(&folder.read(name)).unwrap();
    edit(&mut index);
    folder.write(name, index.to_string());
}

#[test]
fn an_index_may_not_name_files_outside_its_folder() {
    let names = [
        "../model.safetensors",
        "/etc/passwd",
        "a/../b.safetensors",
        "..",
        "",
        "model.bin",
        "C:x.safetensors",
    ];
    for name in names {
        let folder = Folder::copy_of("sharded");
        edit_index(&folder, |index| index["weight_map"][TABLE] = json!(name));
        assert_error!(folder, Error::ShardName { .. }, name);
    }
}

#[test]
fn a_shard_that_is_missing_or_lacks_a_tensor_is_named() {
    let folder = Folder::copy_of("sharded");
    edit_index(&folder, |index| {
        index["weight_map"]["lm_head.extra"] = index["weight_map"][TABLE].clone();
    });
    assert_error!(folder, Error::NotInShard { .. }, "lm_head.extra");
    let folder = Folder::copy_of("sharded");
    folder.remove("model-00002-of-00002.safetensors");
    assert_error!(folder, Error::MissingShard { .. }, "model-00002-of-00002.safetensors");
    folder.write("model.safetensors.index.json", "{\"weight_map\": 3}");
    assert_error!(folder, Error::Json { .. }, "index.json");
}

proptest! {
    /// Whatever bytes are damaged, the folder gives an error or readable weights, never a panic or a read outside the
    /// file.
    #[test]
    fn no_damage_causes_a_panic(
        form in prop::sample::select(vec!["f32", "int8", "sharded", "decoder"]),
        file in any::<prop::sample::Index>(),
        edits in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
        cut in prop::option::weighted(0.2, any::<prop::sample::Index>()),
    ) {
        let folder = Folder::copy_of(form);
        let mut names: Vec<_> = folder.path().read_dir().unwrap().map(|file| file.unwrap().file_name()).collect();
        names.sort();
        let name = file.get(&names).to_str().unwrap();
        let mut bytes = folder.read(name);
        // Most bytes of a file are tensor data, where any value is valid. Only the first bytes, which contain the
        // header, are damaged.
        let reach = bytes.len().min(3000);
        for (place, value) in edits {
            bytes[place.index(reach)] = value;
        }
        if let Some(cut) = cut {
            bytes.truncate(cut.index(bytes.len()));
        }
        folder.write(name, bytes);
        if let Ok(checkpoint) = folder.open() {
            let _ = all_bits(&checkpoint);
        }
    }
}
