//! The layout of the Hugging Face cache: `models--OWNER--NAME/{refs/main, snapshots/COMMIT/FILE}`.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use melm_nn::files::{MAX_CONFIG_BYTES, read_text};

/// The configuration, which every model needs.
pub(super) const CONFIG: &str = "config.json";
/// The files that have the rules of a tokenizer, in the order in which they are used. Old BERT models have only the
/// second one.
pub(super) const TOKENIZERS: [&str; 2] = ["tokenizer.json", "vocab.txt"];
/// Optional files that Python expects beside a saved tokenizer.
#[cfg(feature = "hub")]
pub(super) const OPTIONAL: [&str; 2] = ["tokenizer_config.json", "special_tokens_map.json"];
pub(super) const WEIGHTS: &str = "model.safetensors";
pub(super) const INDEX: &str = "model.safetensors.index.json";

/// Finds the folder of a model in the cache. Returns `None` if any of its files is missing.
pub(super) fn find(cache: &Path, name: &str) -> Option<PathBuf> {
    let model = model_folder(cache, name);
    let commit = read_text(&model.join("refs/main"), MAX_CONFIG_BYTES).ok()?;
    let folder = model.join("snapshots").join(plain_file_name(commit.trim())?);
    is_complete(&folder).then_some(folder)
}

/// Returns the folder of all versions of a model.
pub(super) fn model_folder(cache: &Path, name: &str) -> PathBuf {
    cache.join(format!("models--{}", name.replace('/', "--")))
}

fn is_complete(folder: &Path) -> bool {
    let has = |file: &str| folder.join(file).is_file();
    has(CONFIG) && TOKENIZERS.into_iter().any(has) && (has(WEIGHTS) || has_shards(folder))
}

fn has_shards(folder: &Path) -> bool {
    read_index(&folder.join(INDEX))
        .is_some_and(|shards| shards.iter().all(|shard| folder.join(shard).is_file()))
}

/// Returns the files that an index of weights names. Returns `None` if the index cannot be read, or names a file
/// outside its folder.
pub(super) fn read_index(path: &Path) -> Option<BTreeSet<String>> {
    #[derive(serde::Deserialize)]
    struct Index {
        weight_map: BTreeMap<String, String>,
    }
    let text = read_text(path, MAX_CONFIG_BYTES).ok()?;
    let index: Index = serde_json::from_str(&text).ok()?;
    let shards = index.weight_map.into_values();
    shards.map(|shard| plain_file_name(&shard).map(str::to_owned)).collect()
}

/// Returns `name` if it is a plain file name. Such a name cannot point outside its folder.
pub(super) fn plain_file_name(name: &str) -> Option<&str> {
    let stays = !name.is_empty() && !name.starts_with('.') && !name.contains(['/', '\\', ':']);
    stays.then_some(name)
}
