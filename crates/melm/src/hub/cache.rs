//! The layout of the Hugging Face cache: `models--OWNER--NAME/{refs/main, snapshots/COMMIT/FILE}`.

use std::path::{Path, PathBuf};

/// Files without which a model cannot be opened; its weights come beside them.
pub(super) const NEEDED: [&str; 2] = ["config.json", "tokenizer.json"];
/// Files that Python likes to see beside a saved tokenizer.
#[cfg(feature = "hub")]
pub(super) const WELCOME: [&str; 2] = ["tokenizer_config.json", "special_tokens_map.json"];
pub(super) const WEIGHTS: &str = "model.safetensors";
pub(super) const INDEX: &str = "model.safetensors.index.json";

/// The folder of a model whose files are all there.
pub(super) fn find(cache: &Path, name: &str) -> Option<PathBuf> {
    let model = cache.join(format!("models--{}", name.replace('/', "--")));
    let commit = std::fs::read_to_string(model.join("refs/main")).ok()?;
    let folder = model.join("snapshots").join(plain(commit.trim())?);
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
        .all(|shard| plain(shard).is_some_and(|shard| folder.join(shard).is_file()))
}

/// A name that stays in its folder.
pub(super) fn plain(name: &str) -> Option<&str> {
    let stays = !name.is_empty() && !name.starts_with('.') && !name.contains(['/', '\\', ':']);
    stays.then_some(name)
}
