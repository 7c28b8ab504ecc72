//! Errors in the files of a model.

use std::path::Path;

use melm::pieces::Tokenizer;
use serde_json::{Value, json};

use super::{AUGMENT, Case, TAGGER, TRAIN, check, done, edit_json, remove, word_piece, write};

const PIECES: [&str; 6] = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a"];
const TOKENIZER: &str = "model/tokenizer.json";
const CONFIG: &str = "model/config.json";
const WEIGHTS: &str = "model/model.safetensors";

/// A training that fails with exit status 1.
fn training(variant: &'static str, message: &'static str, prepare: fn(&Path)) -> Case {
    Case { variant, prepare, command: TRAIN.to_owned(), exit: 1, message }
}

/// Changes the header of the weights. All data become zeros, as long as `edit` says.
fn edit_header(folder: &Path, edit: impl FnOnce(&mut serde_json::Map<String, Value>) -> usize) {
    let path = folder.join(WEIGHTS);
    let bytes = std::fs::read(&path).unwrap();
    let len = usize::try_from(u64::from_le_bytes(bytes[..8].try_into().unwrap())).unwrap();
    let mut header: Value = serde_json::from_slice(&bytes[8..8 + len]).unwrap();
    let n_bytes = edit(header.as_object_mut().unwrap());
    let header = header.to_string();
    let len = (header.len() as u64).to_le_bytes();
    std::fs::write(path, [&len[..], header.as_bytes(), &vec![0; n_bytes]].concat()).unwrap();
}

/// Stores every tensor with another type, whose numbers have `width` bytes.
fn store_as(folder: &Path, dtype: &str, width: usize) {
    edit_header(folder, |header| {
        let mut end = 0;
        for tensor in
            header.iter_mut().filter(|(name, _)| *name != "__metadata__").map(|(_, tensor)| tensor)
        {
            let sizes =
                tensor["shape"].as_array().unwrap().iter().map(|size| size.as_u64().unwrap());
            let start = end;
            end += usize::try_from(sizes.product::<u64>()).unwrap() * width;
            tensor["dtype"] = json!(dtype);
            tensor["data_offsets"] = json!([start, end]);
        }
        end
    });
}

#[test]
fn damaged_tokenizers_are_refused() {
    check(&[
        training(
            "melm::error::NoTokenizer",
            "`model` has no `tokenizer.json`; make one in Python",
            |folder| {
                remove(folder, TOKENIZER);
            },
        ),
        training("melm::error::TokenizerJson", "is not a valid Hugging Face tokenizer", |folder| {
            write(folder, TOKENIZER, "{");
        }),
        training("melm::error::NoSpecial", "has no piece `[MASK]`", |folder| {
            write(folder, TOKENIZER, word_piece(&PIECES[..4], &[]));
        }),
        training("melm::error::AddedPiece", "the added piece `x` has the id 9", |folder| {
            write(folder, TOKENIZER, word_piece(&PIECES, &[("x", 9)]));
        }),
        training(
            "melm::error::SpecialInText",
            "the text `a` in a corpus would become a special piece",
            |folder| {
                write(folder, TOKENIZER, word_piece(&PIECES, &[("a", 5)]));
            },
        ),
        Case {
            variant: "melm::error::MarkerTaken",
            prepare: |folder| {
                edit_json(folder, TOKENIZER, |json| {
                    json["model"]["vocab"][5] = json!(["<B-PER>", -1.0]);
                });
            },
            command: AUGMENT.to_owned(),
            exit: 1,
            message: "`<B-PER>` cannot be a marker",
        },
        training(
            "melm::error::TooManyPieces",
            "the tokenizer has 5005 pieces, but the model",
            |folder| {
                let pieces: Vec<String> = (0..5000).map(|at| format!("piece{at}")).collect();
                let pieces: Vec<&str> =
                    PIECES[..5].iter().copied().chain(pieces.iter().map(String::as_str)).collect();
                write(folder, TOKENIZER, word_piece(&pieces, &[]));
            },
        ),
        training(
            "melm::error::Segment",
            "the tokenizer cannot split the token `\u{1f600}`",
            |folder| {
                edit_json(folder, TOKENIZER, |json| {
                    let double = json!({
                        "type": "Replace", "pattern": { "String": "\u{1f600}" }, "content": "\u{1f600}\u{1f600}",
                    });
                    json["normalizer"] =
                        json!({ "type": "Sequence", "normalizers": vec![double; 40] });
                });
                write(folder, "train.conll", "Ada B-PER\n\u{1f600} O\n\n");
            },
        ),
    ]);
}

#[test]
fn a_language_that_the_model_does_not_know_is_refused() {
    check(&[Case {
        variant: "melm::error::NoLanguage",
        prepare: |folder| {
            let mut tokenizer = Tokenizer::open(&folder.join("model")).unwrap();
            tokenizer.add_markers(&["en_XX"]).unwrap();
            tokenizer.save(&folder.join("mbart")).unwrap();
            let config = json!({
                "model_type": "mbart", "vocab_size": tokenizer.n_pieces(), "d_model": 16,
                "max_position_embeddings": 16, "encoder_layers": 1, "encoder_attention_heads": 1,
                "encoder_ffn_dim": 16, "decoder_layers": 1, "decoder_attention_heads": 1, "decoder_ffn_dim": 16,
            });
            write(folder, "mbart/config.json", config.to_string());
            write(folder, "mbart/model.safetensors", "");
        },
        command: format!(
            "{AUGMENT} --method mulda --mulda-model mbart --set mulda.language=fr_XX --set filter.mode=off"
        ),
        exit: 1,
        message: "`mbart` does not know the language `fr_XX`; set one that it knows",
    }]);
}

#[test]
fn damaged_configurations_are_refused() {
    check(&[
        training("melm-nn::error::Read", "cannot read `model/config.json`", |folder| {
            remove(folder, CONFIG);
        }),
        training("melm-nn::error::Json", "is not valid JSON of the expected form", |folder| {
            write(folder, CONFIG, "{");
        }),
        training(
            "melm-nn::error::Config",
            "`hidden_size` is `\"x\"`, expected a whole number",
            |folder| {
                edit_json(folder, CONFIG, |json| json["hidden_size"] = json!("x"));
            },
        ),
        training(
            "melm-nn::error::MissingTensors",
            "lacks 16 tensors of its architecture",
            |folder| {
                edit_json(folder, CONFIG, |json| json["num_hidden_layers"] = json!(2));
            },
        ),
    ]);
}

#[test]
fn damaged_weights_are_refused() {
    check(&[
        training("melm-nn::error::NoWeights", "`model` has no `model.safetensors`", |folder| {
            remove(folder, WEIGHTS);
        }),
        training(
            "melm-nn::error::PickleOnly",
            "a pickle that can run code when opened",
            |folder| {
                remove(folder, WEIGHTS);
                write(folder, "model/pytorch_model.bin", "x");
            },
        ),
        training("melm-nn::error::LfsPointer", "is a Git LFS pointer, not the weights", |folder| {
            write(
                folder,
                WEIGHTS,
                "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 3\n",
            );
        }),
        training("melm-nn::error::Safetensors", "is not a valid safetensors file", |folder| {
            write(folder, WEIGHTS, [b'x'; 30]);
        }),
        training(
            "melm-nn::error::MissingShard",
            "is missing, but `model.safetensors.index.json` names it",
            |folder| {
                remove(folder, WEIGHTS);
                let index = json!({ "weight_map": { "a": "model-1.safetensors" } });
                write(folder, "model/model.safetensors.index.json", index.to_string());
            },
        ),
        training(
            "melm-nn::error::ShardName",
            "names the shard `../a.safetensors`, which is not a `.safetensors` file of the same folder",
            |folder| {
                remove(folder, WEIGHTS);
                let index = json!({ "weight_map": { "a": "../a.safetensors" } });
                write(folder, "model/model.safetensors.index.json", index.to_string());
            },
        ),
        training(
            "melm-nn::error::NotInShard",
            "`model/b.safetensors` does not have `a`, but `model.safetensors.index.json` says so",
            |folder| {
                // An index is used only without `model.safetensors`.
                std::fs::rename(folder.join(WEIGHTS), folder.join("model/b.safetensors")).unwrap();
                let index = json!({ "weight_map": { "a": "b.safetensors" } });
                write(folder, "model/model.safetensors.index.json", index.to_string());
            },
        ),
        training("melm-nn::error::Dtype", "is stored as I32, expected F32, F16, BF16", |folder| {
            store_as(folder, "I32", 4);
        }),
        training(
            "melm-nn::error::Scale",
            "is stored as I8, but `lm_head.bias.scale` is missing",
            |folder| {
                store_as(folder, "I8", 1);
            },
        ),
    ]);
}

#[test]
fn impossible_tag_sets_are_refused() {
    check(&[
        training(
            "melm::error::TooManyTags",
            "8200 entity types make 16401 tags in IOB2, and a tagger has at most 16384",
            |folder| {
                let sentences: String = (0..8200).map(|at| format!("a B-T{at}\n\n")).collect();
                write(folder, "train.conll", sentences);
            },
        ),
        // The masked language model is not fine-tuned first.
        Case {
            variant: "melm::error::TooManyTags",
            prepare: |folder| {
                let sentences: String = (0..8200).map(|at| format!("a B-T{at}\n\n")).collect();
                write(folder, "train.conll", sentences);
            },
            command: format!("{AUGMENT} --dry-run"),
            exit: 1,
            message: "8200 entity types make 16401 tags in IOB2, and a tagger has at most 16384",
        },
        Case {
            variant: "melm-nn::error::NoTagSequence",
            prepare: |folder| {
                done(folder, TAGGER);
                // In IOB2, no sentence can begin with any of these tags.
                let names = ["I-A", "I-B", "I-C", "I-D", "I-E"];
                let ids: Value = names
                    .iter()
                    .enumerate()
                    .map(|(id, name)| (id.to_string(), json!(name)))
                    .collect();
                edit_json(folder, "tagger/config.json", |json| json["id2label"] = ids);
            },
            command: "tag tagger train.conll".to_owned(),
            exit: 1,
            message: "no sequence of 6 tags is possible",
        },
        Case {
            variant: "melm::error::TagNames",
            prepare: |folder| {
                done(folder, TAGGER);
                edit_json(folder, "tagger/config.json", |json| {
                    json["id2label"].as_object_mut().unwrap().remove("1");
                });
            },
            command: "tag tagger train.conll".to_owned(),
            exit: 1,
            message: "`tagger/config.json`: `id2label` has no name for 1; `id2label` must give each id a tag",
        },
    ]);
}
