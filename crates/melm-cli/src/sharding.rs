//! The outputs of commands with `--shard`.

use std::path::{Path, PathBuf};

use melm::shard::{Shard, ShardHeader};

use crate::output::{is_stream_output, with_suffix};
use crate::terminal::{Terminal, count};

/// Returns the file that the shard of an output is written to: `OUT.shard-3-of-8`. Without a shard, and for a stream, this
/// is the output itself.
pub(crate) fn shard_path(out: &Path, shard: Option<Shard>) -> PathBuf {
    match shard {
        Some(shard) if !is_stream_output(out) => {
            // A folder may be given with a slash at its end, which is not part of its name.
            let out: PathBuf = out.components().collect();
            with_suffix(&out, &format!(".shard-{}-of-{}", shard.number(), shard.count()))
        }
        _ => out.to_path_buf(),
    }
}

/// Returns the folders of the shards of an output folder, except for `own`, in order.
pub(crate) fn shard_folders(out: &Path, own: &Path) -> Vec<PathBuf> {
    let parent = out.parent().filter(|parent| !parent.as_os_str().is_empty());
    let prefix = format!("{}.shard-", out.file_name().unwrap_or_default().to_string_lossy());
    let entries = std::fs::read_dir(parent.unwrap_or(Path::new(".")));
    let paths = entries.into_iter().flatten().flatten().map(|entry| entry.path());
    let is_shard = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default();
        name.to_string_lossy().starts_with(&prefix) && Some(name) != own.file_name()
    };
    let mut found: Vec<_> = paths.filter(|path| is_shard(path) && path.is_dir()).collect();
    found.sort();
    found
}

/// Says which part of the input a shard contains, and how shards are joined.
pub(crate) fn report_shard(header: &ShardHeader, out: &Path, terminal: &Terminal) {
    let Some(shard) = header.shard() else { return };
    let range = shard.range(header.input.n);
    let all = count(header.input.n, header.input.unit.name());
    let part = match range.len() {
        0 => format!("none of {all}"),
        1 => format!("{} of {all}", range.end),
        _ => format!("{} to {} of {all}", range.start + 1, range.end),
    };
    let join = if is_stream_output(out) {
        "`melm merge`".to_owned()
    } else {
        let (out, count) = (out.display(), shard.count());
        format!("`melm merge {out}.shard-*-of-{count} -o {out}`")
    };
    terminal.info(&format!("wrote shard {shard}: {part}; join all shards with {join}"));
}
