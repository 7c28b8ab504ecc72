//! The layout of the Hugging Face cache: `models--OWNER--NAME/{refs/main, snapshots/COMMIT/FILE}`.

use std::path::{Path, PathBuf};

/// The files that every model needs, besides its weights.
pub(super) const NEEDED: [&str; 2] = ["config.json", "tokenizer.json"];
/// Optional files that Python expects beside a saved tokenizer.
#[cfg(feature = "hub")]
pub(super) const OPTIONAL: [&str; 2] = ["tokenizer_config.json", "special_tokens_map.json"];
pub(super) const WEIGHTS: &str = "model.safetensors";
pub(super) const INDEX: &str = "model.safetensors.index.json";

/// Finds the folder of a model in the cache. Returns `None` if any of its files is missing.
pub(super) fn find(cache: &Path, name: &str) -> Option<PathBuf> {
    let model = cache.join(format!("models--{}", name.replace('/', "--")));
    let commit = std::fs::read_to_string(model.join("refs/main")).ok()?;
    let folder = model.join("snapshots").join(plain_file_name(commit.trim())?);
    is_complete(&folder).then_some(folder)
}

fn is_complete(folder: &Path) -> bool {
    let has = |file: &str| folder.join(file).is_file();
    NEEDED.into_iter().all(has) && (has(WEIGHTS) || has_shards(folder))
}

fn has_shards(folder: &Path) -> bool {
    #[derive(serde::Deserialize)]
    struct Index {
        weight_map: std::collections::BTreeMap<String, String>,
    }
    let Ok(text) = std::fs::read_to_string(folder.join(INDEX)) else {
        return false;
    };
    let Ok(index) = serde_json::from_str::<Index>(&text) else {
        return false;
    };
    index
        .weight_map
        .values()
        .all(|shard| plain_file_name(shard).is_some_and(|shard| folder.join(shard).is_file()))
}

/// Returns `name` if it is a plain file name. Such a name cannot point outside its folder.
pub(super) fn plain_file_name(name: &str) -> Option<&str> {
    let stays = !name.is_empty() && !name.starts_with('.') && !name.contains(['/', '\\', ':']);
    stays.then_some(name)
}
