//! Builds a `tokenizer.json` from the `vocab.txt` of an old BERT model.
//!
//! The rules are those of Hugging Face's `BertTokenizer`. `tokenizer_config.json` may set `do_lower_case`,
//! `strip_accents` and `tokenize_chinese_chars`. If it does not set `do_lower_case`, the text is put in lower case only
//! if the vocabulary has no upper case. Hugging Face would put it in lower case for a cased vocabulary too, and the
//! model would read almost every name as `[UNK]`.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::rules::ParseError;

/// The maximum number of characters of a word, as in BERT. A longer word becomes `[UNK]`.
const MAX_CHARACTERS: usize = 100;

const SPECIALS: [&str; 5] = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"];

/// The classes whose rules are those of BERT.
const CLASSES: [&str; 4] =
    ["BertTokenizer", "DistilBertTokenizer", "ElectraTokenizer", "PreTrainedTokenizer"];

/// The part of `tokenizer_config.json` that determines the rules.
#[derive(Default, Deserialize)]
struct Settings {
    do_lower_case: Option<bool>,
    strip_accents: Option<bool>,
    tokenize_chinese_chars: Option<bool>,
    tokenizer_class: Option<String>,
}

/// The texts of the files that `vocab.txt` does not have.
pub(super) struct BuiltFiles {
    /// `tokenizer.json`.
    pub(super) tokenizer: String,
    /// `tokenizer_config.json` with the settings that were used, so that Python opens a saved folder with the same
    /// rules.
    pub(super) tokenizer_config: String,
}

/// Builds the files from the text of `vocab.txt` and of `tokenizer_config.json`, if there is one.
pub(super) fn build(vocab: &str, config: Option<&str>) -> Result<BuiltFiles, ParseError> {
    let mut config: Map<String, Value> = match config {
        Some(text) => serde_json::from_str(text)?,
        None => Map::new(),
    };
    let settings: Settings = serde_json::from_value(Value::Object(config.clone()))?;
    check_class(settings.tokenizer_class.as_deref())?;
    let vocab = read_vocabulary(vocab)?;
    let lowercase = settings.do_lower_case.unwrap_or_else(|| !has_upper_case(&vocab));
    let chinese = settings.tokenize_chinese_chars.unwrap_or(true);
    config.entry("tokenizer_class").or_insert(json!("BertTokenizer"));
    config.insert("do_lower_case".into(), json!(lowercase));
    config.insert("tokenize_chinese_chars".into(), json!(chinese));
    config.insert("strip_accents".into(), json!(settings.strip_accents));
    let normalizer = json!({
        "type": "BertNormalizer", "clean_text": true, "handle_chinese_chars": chinese,
        "strip_accents": settings.strip_accents, "lowercase": lowercase,
    });
    Ok(BuiltFiles {
        tokenizer: tokenizer_json(&vocab, &normalizer).to_string(),
        tokenizer_config: Value::Object(config).to_string(),
    })
}

fn check_class(class: Option<&str>) -> Result<(), ParseError> {
    let Some(class) = class else { return Ok(()) };
    if CLASSES.contains(&class.strip_suffix("Fast").unwrap_or(class)) {
        return Ok(());
    }
    Err(ParseError::Unsupported(format!("a `vocab.txt` of the tokenizer class `{class}`")))
}

/// Returns the id of each piece: the number of its line, from 0. A piece that occurs twice has its last number.
fn read_vocabulary(text: &str) -> Result<BTreeMap<&str, u32>, ParseError> {
    let lines = text.strip_suffix('\n').unwrap_or(text).split('\n').map(str::trim_end);
    let vocab: BTreeMap<_, _> = lines.zip(0u32..).collect();
    match SPECIALS.iter().find(|special| !vocab.contains_key(**special)) {
        Some(special) => {
            Err(ParseError::Unsupported(format!("a `vocab.txt` without the piece `{special}`")))
        }
        None => Ok(vocab),
    }
}

/// Returns true if an ordinary piece has an upper-case letter. Pieces in brackets, such as `[CLS]`, are not ordinary.
fn has_upper_case(vocab: &BTreeMap<&str, u32>) -> bool {
    let is_ordinary = |piece: &str| !(piece.starts_with('[') && piece.ends_with(']'));
    vocab.keys().any(|piece| is_ordinary(piece) && piece.chars().any(char::is_uppercase))
}

fn tokenizer_json(vocab: &BTreeMap<&str, u32>, normalizer: &Value) -> Value {
    let added: Vec<_> = SPECIALS
        .iter()
        .map(|piece| {
            json!({
                "id": vocab[piece], "content": piece, "special": true,
                "single_word": false, "lstrip": false, "rstrip": false, "normalized": false,
            })
        })
        .collect();
    let special = |piece: &str| json!({"SpecialToken": {"id": piece, "type_id": 0}});
    let sequence = |id: &str| json!({"Sequence": {"id": id, "type_id": 0}});
    let entry = |piece: &str| json!({"id": piece, "ids": [vocab[piece]], "tokens": [piece]});
    let single = json!([special("[CLS]"), sequence("A"), special("[SEP]")]);
    let pair = json!([
        special("[CLS]"), sequence("A"), special("[SEP]"),
        {"Sequence": {"id": "B", "type_id": 1}}, {"SpecialToken": {"id": "[SEP]", "type_id": 1}},
    ]);
    json!({
        "version": "1.0", "truncation": null, "padding": null, "added_tokens": added,
        "normalizer": normalizer, "pre_tokenizer": {"type": "BertPreTokenizer"},
        "post_processor": {
            "type": "TemplateProcessing", "single": single, "pair": pair,
            "special_tokens": {"[CLS]": entry("[CLS]"), "[SEP]": entry("[SEP]")},
        },
        "decoder": {"type": "WordPiece", "prefix": "##", "cleanup": true},
        "model": {
            "type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##",
            "max_input_chars_per_word": MAX_CHARACTERS, "vocab": vocab,
        },
    })
}
