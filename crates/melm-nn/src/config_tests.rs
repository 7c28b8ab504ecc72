use super::*;

const BASE: &str = r#"{
    "architectures": ["XLMRobertaForMaskedLM"], "attention_probs_dropout_prob": 0.1, "bos_token_id": 0,
    "eos_token_id": 2, "hidden_act": "gelu", "hidden_dropout_prob": 0.2, "hidden_size": 768,
    "initializer_range": 0.02, "intermediate_size": 3072, "layer_norm_eps": 1e-05,
    "max_position_embeddings": 514, "model_type": "xlm-roberta", "num_attention_heads": 12,
    "num_hidden_layers": 12, "output_past": true, "pad_token_id": 1, "type_vocab_size": 1,
    "vocab_size": 250002, "torch_dtype": "float16"
}"#;

fn parse(text: &str) -> Result<Config, Error> {
    Config::parse("config.json".as_ref(), text)
}

/// Parses `BASE` with the value of one key replaced by a JSON value.
fn with(key: &str, value: &str) -> Result<Config, Error> {
    let mut map: Map<String, Value> = serde_json::from_str(BASE).unwrap();
    map.insert(key.into(), serde_json::from_str(value).unwrap());
    parse(&Value::Object(map).to_string())
}

#[test]
fn the_keys_of_xlm_r_base_are_read() {
    let config = parse(BASE).unwrap();
    assert_eq!(
        (config.vocab_size, config.hidden_size, config.n_layers, config.n_heads),
        (250_002, 768, 12, 12)
    );
    assert!(
        (config.hidden_dropout - 0.2).abs() < 1e-7 && (config.layer_norm_eps - 1e-5).abs() < 1e-12
    );
    assert_eq!(config.max_pieces(), 512);
    assert_eq!(config.extra["output_past"], true);
}

#[test]
fn saving_keeps_unknown_keys_and_says_float32() {
    let config = parse(BASE).unwrap();
    let saved: Value = serde_json::from_str(&config.to_json()).unwrap();
    let original: Value = serde_json::from_str(BASE).unwrap();
    for (key, value) in original.as_object().unwrap() {
        if key != "torch_dtype" {
            assert_eq!(&saved[key], value, "{key}");
        }
    }
    assert_eq!(saved["dtype"], "float32");
    assert_eq!(saved.get("torch_dtype"), None);
    let again = parse(&config.to_json()).unwrap();
    assert_eq!(again.to_json(), config.to_json());
}

#[test]
fn unsupported_values_are_refused_by_key() {
    for (key, value) in [
        ("model_type", "\"deberta-v2\""),
        ("model_type", "3"),
        ("hidden_act", "\"gelu_new\""),
        ("position_embedding_type", "\"relative_key\""),
        ("is_decoder", "true"),
        ("tie_word_embeddings", "false"),
        ("num_attention_heads", "7"),
        ("num_attention_heads", "0"),
        ("hidden_size", "-3"),
        ("hidden_size", "\"768\""),
        ("vocab_size", "1e30"),
        ("vocab_size", "18446744073709551615"),
        ("num_hidden_layers", "1000000000"),
        ("pad_token_id", "250002"),
        ("max_position_embeddings", "4"),
        ("layer_norm_eps", "0"),
        ("hidden_dropout_prob", "1"),
        ("hidden_dropout_prob", "0.99999999999"),
        ("attention_probs_dropout_prob", "-0.1"),
        ("classifier_dropout", "1"),
        ("classifier_dropout", "\"0.1\""),
    ] {
        let error = with(key, value).expect_err(key);
        assert!(
            matches!(error, Error::Config { key: found, .. } if found == key),
            "{key} {value}: {error}"
        );
    }
}

#[test]
fn a_missing_size_is_named() {
    let message = parse(r#"{"model_type": "xlm-roberta"}"#).unwrap_err().to_string();
    assert_eq!(
        message,
        "`config.json`: `vocab_size` is missing, expected a whole number from 1 to 16777216"
    );
}

#[test]
fn text_that_is_not_a_json_object_is_refused() {
    for text in ["", "[]", "{", "null", "\u{feff}{}", &"[".repeat(100_000)] {
        assert!(matches!(parse(text), Err(Error::Json { .. })), "{text:.10}");
    }
}

#[test]
fn the_classifier_dropout_defaults_to_that_of_hidden_rows() {
    for (value, wanted) in [("null", 0.2), ("0", 0.0), ("0.25", 0.25)] {
        let found = with("classifier_dropout", value).unwrap().classifier_dropout();
        assert!((found - wanted).abs() < f32::EPSILON, "{value}: {found}");
    }
}

#[test]
fn a_missing_model_type_is_taken_from_the_class() {
    assert_eq!(with("model_type", "null").unwrap().model_type, ModelType::XlmRoberta);
    let error = parse(r#"{"architectures": ["RemBertForMaskedLM"]}"#).unwrap_err();
    assert!(matches!(error, Error::Config { key: "model_type", .. }), "{error}");
}

#[test]
fn an_unsupported_family_is_refused_by_name_with_a_suggestion() {
    let message = with("model_type", "\"rembert\"").unwrap_err().to_string();
    assert_eq!(
        message,
        "`config.json`: `model_type` is `\"rembert\"`, expected one of `xlm-roberta`, `roberta`, `camembert`, \
         `bert`, `distilbert`, `electra`, `modernbert`; this engine runs no other: use `xlm-roberta-large` instead"
    );
}

#[test]
fn the_keys_of_distilbert_are_read_and_written() {
    let text = r#"{
        "activation": "gelu", "architectures": ["DistilBertForMaskedLM"], "attention_dropout": 0.05, "dim": 768,
        "dropout": 0.2, "hidden_dim": 3072, "initializer_range": 0.02, "max_position_embeddings": 512,
        "model_type": "distilbert", "n_heads": 12, "n_layers": 6, "pad_token_id": 0, "qa_dropout": 0.1,
        "seq_classif_dropout": 0.2, "sinusoidal_pos_embds": false, "tie_weights_": true, "vocab_size": 30522
    }"#;
    let config = parse(text).unwrap();
    assert_eq!((config.n_layers, config.intermediate_size, config.max_pieces()), (6, 3072, 512));
    assert!((config.attention_dropout - 0.05).abs() < 1e-7);
    assert!((config.classifier_dropout() - 0.2).abs() < 1e-7);
    let saved: Value = serde_json::from_str(&config.to_json()).unwrap();
    for (key, value) in serde_json::from_str::<Map<String, Value>>(text).unwrap() {
        assert_eq!(saved[&key], value, "{key}");
    }
    assert!(saved.get("hidden_size").is_none() && saved.get("type_vocab_size").is_none());
}

#[test]
fn an_electra_with_a_projection_is_refused() {
    let text = BASE.replace("xlm-roberta", "electra");
    let with_size =
        |size: &str| parse(&text.replacen('{', &format!("{{\"embedding_size\": {size},"), 1));
    assert!(with_size("768").is_ok());
    let message = with_size("128").unwrap_err().to_string();
    assert!(message.contains("`embedding_size` is `128`, expected 768"), "{message}");
}

/// The configuration of ModernBERT-base, as it was published with transformers 4.48.
const MODERNBERT: &str = r#"{
    "architectures": ["ModernBertForMaskedLM"], "attention_bias": false, "attention_dropout": 0.0,
    "bos_token_id": 50281, "classifier_activation": "gelu", "classifier_bias": false, "classifier_dropout": 0.0,
    "classifier_pooling": "mean", "cls_token_id": 50281, "decoder_bias": true, "deterministic_flash_attn": false,
    "embedding_dropout": 0.0, "eos_token_id": 50282, "global_attn_every_n_layers": 3, "global_rope_theta": 160000.0,
    "gradient_checkpointing": false, "hidden_activation": "gelu", "hidden_size": 768, "initializer_cutoff_factor": 2.0,
    "initializer_range": 0.02, "intermediate_size": 1152, "layer_norm_eps": 1e-05, "local_attention": 128,
    "local_rope_theta": 10000.0, "max_position_embeddings": 8192, "mlp_bias": false, "mlp_dropout": 0.0,
    "model_type": "modernbert", "norm_bias": false, "norm_eps": 1e-05, "num_attention_heads": 12,
    "num_hidden_layers": 22, "pad_token_id": 50283, "position_embedding_type": "absolute", "sep_token_id": 50282,
    "tie_word_embeddings": true, "torch_dtype": "float32", "transformers_version": "4.47.0.dev0", "vocab_size": 50368
}"#;

/// Parses `MODERNBERT` with the values of some keys replaced.
fn modern(changes: &Value) -> Result<Config, Error> {
    let mut map: Map<String, Value> = serde_json::from_str(MODERNBERT).unwrap();
    for (key, value) in changes.as_object().unwrap() {
        map.insert(key.clone(), value.clone());
    }
    parse(&Value::Object(map).to_string())
}

#[test]
fn the_keys_of_modernbert_are_read_and_written() {
    let config = parse(MODERNBERT).unwrap();
    assert_eq!((config.n_layers, config.intermediate_size, config.max_pieces()), (22, 1152, 8192));
    assert_eq!(config.rotary, Rotary::default());
    let windows: Vec<_> = (0..5).map(|layer| config.window(layer)).collect();
    assert_eq!(windows, [None, Some(64), Some(64), None, Some(64)]);
    assert_eq!([0, 1].map(|layer| config.theta(layer)), [Some(160_000.0), Some(10_000.0)]);
    assert!(config.hidden_dropout == 0.0 && config.classifier_dropout() == 0.0);
    let saved: Value = serde_json::from_str(&config.to_json()).unwrap();
    for (key, value) in serde_json::from_str::<Map<String, Value>>(MODERNBERT).unwrap() {
        if key != "torch_dtype" {
            assert_eq!(saved[&key], value, "{key}");
        }
    }
    assert!(saved.get("rope_parameters").is_none() && saved.get("layer_types").is_none());
}

#[test]
fn both_forms_of_rotary_positions_are_read() {
    // mmBERT has the same base in all layers.
    let config = modern(&json!({"local_rope_theta": 160_000, "pad_token_id": 0})).unwrap();
    assert_eq!(config.theta(1), Some(160_000.0));
    let config = modern(&json!({"local_rope_theta": null})).unwrap();
    assert_eq!(config.theta(1), Some(160_000.0));
    // A null key of the newer form means the older form, also after the configuration was saved.
    let null = json!({"rope_parameters": null, "layer_types": null, "local_rope_theta": 40});
    let config = parse(&modern(&null).unwrap().to_json()).unwrap();
    assert_eq!((config.theta(1), config.window(1)), (Some(40.0), Some(64)));
    let types: Vec<_> =
        (0..22).map(|l| if l == 1 { "full_attention" } else { "sliding_attention" }).collect();
    let parameters = json!({
        "full_attention": {"rope_type": "default", "rope_theta": 5000.0},
        "sliding_attention": {"rope_type": "default"}
    });
    let newer = json!({
        "layer_types": types, "rope_parameters": parameters, "local_attention": 9, "local_rope_theta": 70
    });
    let config = modern(&newer).unwrap();
    assert_eq!([0, 1].map(|layer| config.window(layer)), [Some(4), None]);
    // As in transformers, the older key counts where the newer one gives no base.
    assert_eq!([0, 1].map(|layer| config.theta(layer)), [Some(70.0), Some(5000.0)]);
    let again = parse(&config.to_json()).unwrap();
    assert_eq!((&again.rotary, again.to_json()), (&config.rotary, config.to_json()));
    // A configuration that was not read from a file is written in the older form, or with a list of layers.
    for rotary in [Rotary::default(), config.rotary.clone()] {
        let new = Config { rotary, extra: Map::new(), ..config.clone() };
        assert_eq!(parse(&new.to_json()).unwrap().rotary, new.rotary);
    }
}

#[test]
fn unsupported_variants_of_modernbert_are_refused_by_key() {
    for (key, value) in [
        ("attention_bias", json!(true)),
        ("mlp_bias", json!(true)),
        ("norm_bias", json!(true)),
        ("classifier_bias", json!(true)),
        ("decoder_bias", json!(false)),
        ("hidden_activation", json!("silu")),
        ("classifier_activation", json!("relu")),
        ("rope_scaling", json!({"rope_type": "yarn", "factor": 4.0})),
        ("rope_parameters", json!({"full_attention": {"rope_type": "yarn"}})),
        ("rope_parameters", json!({"rope_theta": 5000.0})),
        ("rope_parameters", json!({"full_attention": {"rope_theta": "5000"}})),
        ("global_rope_theta", json!(0)),
        ("local_rope_theta", json!("x")),
        ("layer_types", json!(["full_attention"])),
        ("layer_types", json!(vec!["chunked_attention"; 22])),
        ("global_attn_every_n_layers", json!(0)),
        ("local_attention", json!(-1)),
        ("head_dim", json!(32)),
        ("num_attention_heads", json!(768)),
        ("mlp_dropout", json!(1)),
    ] {
        let error = modern(&json!({key: value})).expect_err(key);
        assert!(matches!(error, Error::Config { key: found, .. } if found == key), "{error}");
    }
}
